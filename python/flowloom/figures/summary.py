"""Figures of metrics against a swept key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowloom.base import words
from flowloom.figures import style
from flowloom.figures.drawing import At, NoDataError, interval_note
from flowloom.figures.panels import metric_panels, swept_axis
from flowloom.runs import tables
from flowloom.runs.data import Data, column, windows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

METRICS = (
    "deadline_miss_rate",
    "mean_slowdown",
    "p99_slowdown",
    "p99_slowdown_short",
    "mean_fct_s",
    "p99_fct_s",
    "mean_fct_without_deadline_s",
    "p99_er",
    "data_drops",
)


def metrics(results: Data, metrics: Sequence[str] | None = None, x: str | None = None, at: At = None) -> Figure:
    """Draws metrics against the swept key, one panel each, with 95 % confidence bands over seeds."""
    tables.refuse_unknown(metrics or ())
    have = set(column(results.summary(), "metric"))
    chosen = [m for m in (metrics or METRICS) if m in have]
    if metrics is None:
        values = tables.places(results).values()
        chosen = [m for m in tables.defined(results, chosen) if tables.speaks(m, values)]
    if not chosen:
        raise NoDataError(f"the results have none of these metrics\nhint: they have {', '.join(sorted(have))}")
    x = swept_axis(results, at) if x is None else results._named(x)[0]
    fig = metric_panels(results, dict.fromkeys(chosen, ""), x, at, columns=3)
    measured = [words.title(metric) for metric in chosen if metric in tables.WINDOWED]
    if measured:
        style.note(fig, f"{words.joined(measured)}: {words.window(windows(results.select(at)))}")
    interval_note(fig, results, at)
    return fig
