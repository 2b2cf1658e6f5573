"""The figure `fct_cdf`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures.distributions import distribution, values
from flowloom.figures.drawing import At
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Distribution of flow completion times, with the tail on logarithmic axes; all seeds together",
    needs="flows",
)


def draw(results: Data, at: At = None) -> Figure:
    """Draws the figure."""
    first = results.select(at)[:1]
    sample = values(results, first, "fct_ps")
    factor, unit = words.scale("s", [float(np.median(sample)) * 1e-12] if len(sample) else [])
    return distribution(results, "fct_ps", 1e-12 / factor, "FCT", unit, at)
