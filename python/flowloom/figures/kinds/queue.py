"""The figure `queue`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures.drawing import At
from flowloom.figures.traces import bounds, series
from flowloom.runs.data import Data, named_ports

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Queue length over time at the ports with the longest queues, with the limits and thresholds of the system",
    needs="samples",
)


def draw(results: Data, at: At = None, most: int = 4) -> Figure:
    """Draws the figure."""
    names, lines = partial(named_ports, results), partial(bounds, results)
    return series(results, "port.queue_bytes", "queue", "bytes", at, most, names, lines)
