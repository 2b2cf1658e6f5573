"""The figure `metrics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures import summary
from flowloom.figures.drawing import At
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Metrics against the swept key, one panel each",
    bands=True,
    needs="summary",
)


def draw(results: Data, metrics: Sequence[str] | None = None, x: str | None = None, at: At = None) -> Figure:
    """Draws the figure."""
    return summary.metrics(results, metrics, x, at)
