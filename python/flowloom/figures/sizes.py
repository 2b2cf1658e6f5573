"""Figures against the size of flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flowloom.base import words
from flowloom.base.errors import InputError, did_you_mean
from flowloom.figures import style
from flowloom.figures.drawing import Array, At, NoDataError, array, drawn_of, groups, interval_note, looks, record, swept
from flowloom.runs import tables
from flowloom.runs.data import Data, Value, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STATISTICS = {"mean": "mean", "p50": "median", "p95": "95th percentile of", "p99": "99th percentile of"}
"""The statistics of the flows of a size, in words."""
FEW = 10
"""The number of flows below which the marker of a quantile is hollow."""


@dataclass(frozen=True)
class Binned:
    """A statistic by flow size, in bins of equal count: sizes in bytes, means over seeds with their
    intervals.
    """

    size: Array
    mean: Array
    low: Array
    high: Array
    few: npt.NDArray[np.bool_]
    """Whether the value rests on fewer than `FEW` flows."""


def binned(results: Data, quantity: str) -> dict[tuple[str, tuple[Value, ...], str], Binned]:
    """Returns a quantity by size for every system, value of the swept keys and statistic."""
    found: dict[tuple[str, tuple[Value, ...], str], list[dict[str, Any]]] = {}
    for row in results.by_size().to_pylist():
        if row["quantity"] == quantity and row["mean"] is not None:
            place = str(row["system"]), tuple(plain(row[key]) for key in results.keys), str(row["statistic"])
            found.setdefault(place, []).append(row)

    def gathered(rows: list[dict[str, Any]]) -> Binned:
        mean = array(row["mean"] for row in rows)
        low, high = (array(row[end] for row in rows) for end in ("ci95_low", "ci95_high"))
        few = np.array([row["statistic"] != "mean" and row["rests_on"] < FEW for row in rows])
        size = array(row["median_size_bytes"] for row in rows)
        return Binned(size, mean, np.where(np.isnan(low), mean, low), np.where(np.isnan(high), mean, high), few)

    return {place: gathered(rows) for place, rows in found.items()}


def size_curve(
    ax: Axes, shown: Binned, least: float | Array, look: Mapping[str, Any], label: str, factor: float = 1.0, scale: float = 1.0
) -> bool:
    """Draws one curve with its 95 % band, not below `least`; sizes in units of `factor` bytes,
    values in units of `scale`.

    Returns whether some of its markers are hollow, since they rest on few flows.
    """
    x, y = shown.size / factor, shown.mean / scale
    ax.plot(x, y, **look, label=style.label(label))
    ax.fill_between(x, np.maximum(shown.low / scale, least), shown.high / scale, color=look["color"], alpha=0.15, linewidth=0)
    hollow = {"linestyle": "none", "marker": look.get("marker", "o"), "markerfacecolor": style.PAPER, "zorder": 3}
    ax.plot(x[shown.few], y[shown.few], **hollow, color=look["color"])
    return bool(shown.few.any())


def hollow_label(ax: Axes, flows: str = "flows") -> None:
    """Explains hollow markers in the legend."""
    label = f"hollow: rests on fewer than {FEW} {flows}"
    ax.plot([], [], "o", color=style.GREY, markerfacecolor=style.PAPER, label=label)


def chosen_statistics(asked: str | Sequence[str] | None) -> list[str]:
    """Returns the statistics asked for, by default all. Raises `ValueError` for an unknown statistic."""
    asked = [asked] if isinstance(asked, str) else list(dict.fromkeys(asked or STATISTICS))
    for unknown in (name for name in asked if name not in STATISTICS):
        did = did_you_mean(unknown, STATISTICS)
        raise InputError(f"`{unknown}` is not a statistic of this figure{did}\nhint: one of {', '.join(STATISTICS)}")
    return asked


def against_size(results: Data, quantity: str, name: str, at: At, most: int, statistic: str | Sequence[str] | None) -> Figure:
    """Draws one row of panels per swept value, one panel per statistic. With a single swept value
    or statistic, there are up to two panels in a row.
    """
    chosen = chosen_statistics(statistic)
    rows = groups(results, at, most)
    found = binned(results, quantity)
    columns = 2 if len(rows) == 1 or len(chosen) == 1 else len(chosen)
    fig, axes = style.grid(len(chosen) * len(rows), columns, width=4.2 if columns == 2 else 3.1, height=2.7)
    panels = [(group, systems, statistic) for group, systems in rows for statistic in chosen]
    drawn: dict[str, list[Binned]] = {}
    for _, systems, statistic in panels:
        for runs in systems.values():
            here = found.get((runs[0].system, tuple(runs[0].keys.values()), statistic))
            drawn.setdefault(statistic, []).extend([here] if here else [])
    every = [b for some in drawn.values() for b in some]
    if not every:
        raise NoDataError(
            "no flow has finished: there is nothing to draw\nhint: set a later `end` in the scenario to give flows more time"
        )
    factor, unit = words.scale("bytes", [float(np.median(np.concatenate([b.size for b in every])))])
    scale, y_unit = words.scale("s" if quantity.endswith("_s") else "", np.concatenate([b.mean for b in every]))
    few = False
    for ax, (group, systems, statistic) in zip(axes, panels, strict=True):
        for (label, runs), look in zip(systems.items(), looks([runs[0].ideal for runs in systems.values()]), strict=True):
            shown = found.get((runs[0].system, tuple(runs[0].keys.values()), statistic))
            if shown is None:
                continue
            # Student's interval may extend to impossible values.
            shown = replace(shown, low=np.maximum(shown.low, tables.smallest(quantity, shown.mean)))
            few |= size_curve(ax, shown, shown.mean / scale / 50, look, label, factor, scale)
            columns_ = {words.axis("flow size", unit): shown.size / factor, words.axis(name, y_unit): shown.mean / scale}
            ends = {"ci95 low": shown.low / scale, "ci95 high": shown.high / scale, "rests on few flows": shown.few}
            record(ax, {"system": runs[0].system, **swept(results, runs[0]), "statistic": statistic}, columns_ | ends)
        quantity_label = words.axis(f"{STATISTICS[statistic]} {name}", y_unit)
        ax.set(xlabel=words.axis("flow size", unit), ylabel=quantity_label, title=group)
        style.log_axis(ax, "x")
        style.log_axis(ax, "y")
        # The same range in all panels of a statistic, so that rows can be compared.
        means = np.concatenate([b.mean for b in drawn[statistic]]) / scale
        tops = np.concatenate([b.high for b in drawn[statistic]]) / scale
        bottoms = np.concatenate([b.low for b in drawn[statistic]]) / scale
        low = max(float(bottoms.min()), 1.0 if quantity == "slowdown" else float(means.min()) / 2) / 1.05
        ax.set_ylim(low, min(float(tops.max()), 2 * float(means.max())) * 1.1)
    if few:
        hollow_label(axes[0])
    style.legend(fig, axes)
    style.align(fig)
    style.note(fig, drawn_of(results, at, [group for group, _ in rows]))
    interval_note(fig, results, at)
    return fig
