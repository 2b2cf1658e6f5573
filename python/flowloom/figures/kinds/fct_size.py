"""The figure `fct_size`."""

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
    "Flow completion time against flow size, in bins of equal count",
    bands=True,
    needs="flows",
)


def draw(results: Data, at: At = None, most: int = 4, statistic: str | Sequence[str] | None = None) -> Figure:
    """Draws the figure."""
    return against_size(results, "fct_s", "FCT", at, most, statistic)
