"""The figure `mixed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures.drawing import At, NoDataError
from flowloom.figures.summary import metrics
from flowloom.runs.data import Data, column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Deadline miss rate of flows with deadlines, and completion time of flows without: by system, or against the swept key",
    needs="summary",
)

MIXED = ("deadline_miss_rate", "mean_fct_without_deadline_s", "mean_fct_without_deadline_short_s")


def draw(results: Data, x: str | None = None, at: At = None) -> Figure:
    """Draws the figure."""
    if "mean_fct_without_deadline_s" not in set(column(results.summary(), "metric")):
        raise NoDataError(
            "the results do not have both flows with a deadline and flows without one"
            '\nhint: give a workload `deadline = { kind = "uniform", share = 0.8 }`'
        )
    return metrics(results, MIXED, x, at)
