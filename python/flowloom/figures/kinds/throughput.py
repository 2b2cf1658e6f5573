"""The figure `throughput`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, mark_changes, one_per_system, titled
from flowloom.figures.traces import Span, missing, sampled, throughput_panel
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Throughput over time, stacked by flow size",
    needs="samples",
)


def draw(results: Data, at: At = None, span: Span | None = None, bins: int = 150) -> Figure:
    """Draws the figure."""
    chosen = [(run, sampled(results, run, "flow.rate_bps")) for _, run in one_per_system(results, at)]
    drawn = [(run, found) for run, found in chosen if found is not None]
    if not drawn:
        raise missing("flow.rate_bps")
    fig, axes = style.grid(len(drawn), 1, width=7.5, height=2.2)
    for ax, (run, found) in zip(axes, drawn, strict=True):
        throughput_panel(ax, results, run, found, span, bins)
        mark_changes(ax, results, run)
        ax.set_title(titled(results, run, at))
    style.legend(fig, axes)
    return fig
