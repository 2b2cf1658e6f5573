"""The figure `er_cdf`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures.distributions import distribution
from flowloom.figures.drawing import At
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Distribution of expansion ratios, with the tail on logarithmic axes; all seeds together",
    needs="flows",
    metric="mean_er",
)


def draw(results: Data, at: At = None) -> Figure:
    """Draws the figure."""
    return distribution(results, "expansion_ratio", 1.0, "expansion ratio", "", at)
