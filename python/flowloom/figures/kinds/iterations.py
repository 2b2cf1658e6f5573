"""The figure `iterations`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures.drawing import At, NoDataError
from flowloom.figures.summary import metrics
from flowloom.runs.data import Data, column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Time of an iteration, communication that no computation hides, and the pipeline bubble: by system, or against the swept key",
    needs="summary",
)

ITERATIONS = ("mean_iteration_s", "max_iteration_s", "exposed_communication", "bubble_share")


def draw(results: Data, x: str | None = None, at: At = None) -> Figure:
    """Draws the figure."""
    if "mean_iteration_s" not in set(column(results.summary(), "metric")):
        raise NoDataError("no iteration of a program has ended\nhint: only workloads that are programs of ranks have iterations")
    return metrics(results, ITERATIONS, x, at)
