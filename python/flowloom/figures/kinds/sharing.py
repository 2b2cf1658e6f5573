"""The figure `sharing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures.drawing import At, NoDataError
from flowloom.figures.summary import metrics
from flowloom.runs.data import Data, column

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Goodput, completion time of groups and fairness (Jain's index) against the swept key, such as the number of senders",
    needs="summary",
)

SHARING = ("goodput_bps", "mean_group_fct_s", "group_jain_index")


def draw(results: Data, x: str | None = None, at: At = None) -> Figure:
    """Draws the figure."""
    if "groups" not in set(column(results.summary(), "metric")):
        raise NoDataError(
            "the results have no groups of flows\nhint: an incast has groups, and so has a table of flows with the column `group`"
        )
    return metrics(results, SHARING, x, at)
