"""The figure `slowdown`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures.drawing import At
from flowloom.figures.sizes import against_size
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Slowdown against flow size, in bins of equal count",
    bands=True,
    needs="by_size",
)


def draw(results: Data, at: At = None, most: int = 4, statistic: str | Sequence[str] | None = None) -> Figure:
    """Draws the figure."""
    return against_size(results, "slowdown", "slowdown", at, most, statistic)
