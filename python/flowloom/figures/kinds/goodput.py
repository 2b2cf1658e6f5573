"""The figure `goodput`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import MOST_PANELS, At, groups, mark_changes, record, swept
from flowloom.figures.traces import Series, missing, sampled
from flowloom.runs.data import Data, Run, mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Goodput of all flows together over time, mean over seeds, with the goodput in a non-blocking network",
    needs="samples",
)

UNLIMITED = "only the links of hosts limit flows"


def non_blocking(results: Data, runs: Sequence[Run]) -> float | None:
    """Returns the goodput of the same flows in a non-blocking network, mean over points; `None` if
    the results have none.
    """
    found = [value for run in runs if (value := results.metric(run, "non_blocking_bps")) is not None]
    return mean(found) if found else None


def total(results: Data, run: Run) -> Series | None:
    """Returns the goodput of all flows of a point together, as the only entity of a series."""
    found = sampled(results, run, "flow.rate_bps")
    return None if found is None else Series(found.times, {0: np.nansum(list(found.values.values()), axis=0)})


def draw(results: Data, at: At = None) -> Figure:
    """Draws the figure."""
    rows = []
    for title, systems in groups(results, at, MOST_PANELS, ideals=False):
        curves = {label: [one for run in runs if (one := total(results, run)) is not None] for label, runs in systems.items()}
        rows.append((title, systems, {label: found for label, found in curves.items() if found}))
    if not any(curves for _, _, curves in rows):
        raise missing("flow.rate_bps")
    fig, axes = style.grid(len(rows), 1, width=7.5, height=2.6)
    for ax, (title, systems, curves) in zip(axes, rows, strict=True):
        first = next(iter(systems.values()))[0]
        for i, (label, found) in enumerate(curves.items()):
            steps = min(len(series_.times) for series_ in found)
            rate = np.mean([series_.values[0][:steps] for series_ in found], axis=0)
            ax.plot(found[0].times[:steps], rate / 1e9, **style.dashes(i), label=style.label(label))
            values = {"time (ms)": found[0].times[:steps], "goodput (Gbit/s)": rate / 1e9}
            record(ax, {"system": systems[label][0].system, **swept(results, systems[label][0])}, values)
        limit = non_blocking(results, [run for runs in systems.values() for run in runs])
        if limit is not None:
            ax.axhline(limit / 1e9, **style.reference(0), label=UNLIMITED)
            record(ax, {"system": UNLIMITED, **swept(results, first)}, {"goodput (Gbit/s)": [limit / 1e9]})
        ax.set(xlabel=words.axis("time", "ms"), ylabel=words.axis("goodput", "Gbit/s"), ylim=(0, None), title=title)
        mark_changes(ax, results, first)
    style.legend(fig, axes)
    return fig
