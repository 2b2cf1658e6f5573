"""Figures of distributions over flows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.figures import style
from flowloom.figures.drawing import MOST_PANELS, Array, At, NoDataError, drawn_of, groups, looks, numbers, record, swept
from flowloom.runs.data import Data, Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def values(results: Data, runs: Sequence[Run], name: str) -> Array:
    """Returns a column of the counted flows of some points, all seeds together, without missing values."""
    parts = [numbers(results.counted([name], {"point": run.point}), name) for run in runs]
    joined = np.concatenate(parts) if parts else np.empty(0)
    return joined[~np.isnan(joined)]


def staircase(sample: Array, most: int = 400) -> tuple[Array, Array]:
    """Returns a sample, sorted, and the share of it above each value. A large sample is thinned
    out, least in the tail.
    """
    x = np.sort(sample)
    n = len(x)
    if n > most:
        body = np.linspace(0, n - 1, most // 2)
        tail = n - np.geomspace(1, n, most // 2)
        keep = np.unique(np.concatenate([body, tail]).astype(np.int64))
    else:
        keep = np.arange(n)
    return x[keep], (n - 1 - keep) / n


def distribution(results: Data, name: str, factor: float, quantity: str, unit: str, at: At) -> Figure:
    """Draws one row per swept value: the distribution on the left, its tail on logarithmic axes on
    the right.
    """
    rows = groups(results, at, MOST_PANELS)
    ends: list[float] = []
    fig, axes = style.grid(2 * len(rows), 2)
    for row, (title, systems) in enumerate(rows):
        body, tail = axes[2 * row], axes[2 * row + 1]
        for (label, runs), look in zip(systems.items(), looks([runs[0].ideal for runs in systems.values()]), strict=True):
            x, above = staircase(values(results, runs, name) * factor)
            if not len(x):
                continue
            ends += [float(x[0]), float(x[-1])]
            line = {key: value for key, value in look.items() if key != "marker"}
            body.plot(x, 1 - above, drawstyle="steps-post", **line, label=style.label(label))
            tail.plot(x[above > 0], above[above > 0], drawstyle="steps-post", **line, label=style.label(label))
            shares = {"share of flows at or below": 1 - above, "share of flows above": above}
            record(body, {"system": runs[0].system, **swept(results, runs[0])}, {words.axis(quantity, unit): x, **shares})
        body.set(xlabel=words.axis(quantity, unit), ylabel="share of flows at or below", ylim=(0, 1.01), title=title)
        tail.set(xlabel=words.axis(quantity, unit), ylabel="share of flows above", title=title)
        style.log_axis(tail, "y")
    if not ends:
        raise NoDataError(
            "no flow has finished: there is nothing to draw\nhint: set a later `end` in the scenario to give flows more time"
        )
    for ax in axes:
        style.log_axis(ax, "x")
        # The same range in all panels, so that rows can be compared.
        ax.set_xlim(min(ends) / 1.1, max(ends) * 1.1)
    style.legend(fig, axes)
    style.note(fig, drawn_of(results, at, [name for name, _ in rows]))
    return fig
