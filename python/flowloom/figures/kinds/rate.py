"""The figure `rate`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures.drawing import At
from flowloom.figures.traces import series
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Sending rate of the flows that send most, over time",
    needs="samples",
)


def draw(results: Data, at: At = None, most: int = 6) -> Figure:
    """Draws the figure."""
    return series(results, "flow.rate_bps", "rate", "bps", at, most, lambda run: {})
