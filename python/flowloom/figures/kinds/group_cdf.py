"""The figure `group_cdf`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, NoDataError, drawn_of, groups, looks, record, swept
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Distribution of the completion times of groups of flows, such as requests or the hosts of a shuffle; all seeds together",
    needs="summary",
)


def draw(results: Data, at: At = None) -> Figure:
    """Draws the figure."""
    times: dict[str, list[float]] = {}
    for group in results.groups().to_pylist():
        # A group with a flow that did not finish counts as longer than all others.
        times.setdefault(group["point"], []).append(np.inf if group["fct_ps"] is None else group["fct_ps"] * 1e-12)
    rows = [row for row in groups(results, at) if any(run.point in times for runs in row[1].values() for run in runs)]
    ended = [time for some in times.values() for time in some if time < np.inf]
    if not rows or not ended:
        raise NoDataError(
            "no group of flows has finished: there is nothing to draw\nhint: incasts, requests and shuffles have groups"
        )
    factor, unit = words.scale("s", [float(np.median(ended))])
    fig, axes = style.grid(len(rows), len(rows))
    for ax, (title, systems) in zip(axes, rows, strict=True):
        for (label, runs), look in zip(systems.items(), looks([runs[0].ideal for runs in systems.values()]), strict=True):
            x = np.sort([time / factor for run in runs for time in times.get(run.point, [])])
            share = np.arange(1, len(x) + 1) / max(len(x), 1)
            line = {key: value for key, value in look.items() if key != "marker"}
            ax.plot(x[x < np.inf], share[x < np.inf], drawstyle="steps-post", **line, label=style.label(label))
            columns = {words.axis("group completion time", unit): x[x < np.inf], "share of groups at or below": share[x < np.inf]}
            record(ax, {"system": runs[0].system, **swept(results, runs[0])}, columns)
        ax.set(xlabel=words.axis("group completion time", unit), ylabel="share of groups at or below", ylim=(0, 1.01), title=title)
    style.legend(fig, axes)
    style.note(fig, drawn_of(results, at, [name for name, _ in rows]))
    return fig
