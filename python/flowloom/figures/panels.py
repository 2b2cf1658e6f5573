"""Panels of figures: metrics and other numbers by seed, against a swept key or by system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.figures import style
from flowloom.figures.drawing import Array, At, NoDataError, array, column_of, looks, record, varies, whiskers
from flowloom.runs import tables
from flowloom.runs.data import Data, Value, mean
from flowloom.runs.numbers import Curves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DWARFED = 8
"""The ratio of the largest values of two curves above which the axis is logarithmic: otherwise the
lower curve would stay below an eighth of the panel's height.
"""


@dataclass(frozen=True)
class Curve:
    """A metric of one system along the swept key, with its 95 % interval."""

    label: str
    x: list[Value]
    mean: Array
    low: Array
    high: Array
    ideal: bool = False
    system: str = ""
    rest: Mapping[str, Value] = field(default_factory=dict)
    """The swept values that all points of the curve have, by the names of their columns."""


def curves(results: Data, metric: str, x: str | None, at: At = None) -> tuple[str, list[Curve]]:
    """Returns the metric's unit, and one curve per system and per value of the swept keys other than `x`."""
    chosen = {(run.system, tuple(run.keys.values())) for run in results.select(at)}
    unit, found = "", dict[tuple[int, str], dict[Value, tables.Row]]()
    common: dict[tuple[int, str], Mapping[str, Value]] = {}
    for place, row in tables.places(results).items():
        if place not in chosen or metric not in row:
            continue
        fixed = {
            key: value
            for key, value in zip(results.keys, place[1], strict=True)
            if key != x and value is not None and varies(results, key, at)
        }
        rest = [f"{words.key(key, results.keys)} {words.number(value)}" for key, value in fixed.items()]
        here = place[1][results.keys.index(x)] if x else None
        unit = row[metric].unit
        curve = results.systems.index(place[0]), ", ".join([words.escaped(place[0]), *rest])
        common[curve] = {column_of(results, key): value for key, value in fixed.items()}
        found.setdefault(curve, {})[here] = row[metric]
    drawn = []
    for (system, label), points in sorted(found.items(), key=lambda item: item[0][0]):
        order = sorted(points, key=words.sorting)
        rows = [points[value] for value in order]
        means = array(row.mean for row in rows)
        drawn.append(
            Curve(
                label,
                order,
                means,
                np.maximum(array(row.mean if row.low is None else row.low for row in rows), tables.smallest(metric, means)),
                array(row.mean if row.high is None else row.high for row in rows),
                results.systems[system] in results.ideals,
                results.systems[system],
                common[system, label],
            )
        )
    return unit, drawn


def swept_axis(results: Data, at: At = None) -> str | None:
    """Returns the swept key for the x axis: the one with the most values, where keys with numbers
    come before keys with names.
    """

    def weight(key: str) -> tuple[bool, int]:
        values = {run.keys[key] for run in results.select(at)} - {None}
        return words.literals(sorted(values, key=str))[0] is not None, len(values)

    keys = [key for key in results.keys if varies(results, key, at)]
    return max(keys, key=weight, default=None)


def scale_value_axis(ax: Axes, drawn: Sequence[Curve], factor: float, which: str = "y") -> None:
    """Sets the limits of the axis of values. The axis is logarithmic if the curves differ too much
    (see `DWARFED`).
    """
    means = np.concatenate([curve.mean for curve in drawn]) / factor
    top = float(np.nanmax(np.concatenate([curve.high for curve in drawn]))) / factor
    peaks = [float(np.nanmax(curve.mean)) / factor for curve in drawn if np.nanmax(curve.mean, initial=0.0) > 0]
    if not peaks or max(peaks) <= DWARFED * min(peaks):
        ax.set(**{f"{which}lim": (0.0, 1.06 * top if top > 0 else 1.0)})
        return
    least = float(np.nanmin(means[means > 0]))
    if (means <= 0).any():
        # The axis is linear up to the smallest positive value, so that zeros can be drawn.
        style.log_axis(ax, which, linear_to=10 ** np.floor(np.log10(least)))
        ax.set(**{f"{which}lim": (0.0, 1.5 * top)})
    else:
        style.log_axis(ax, which)
        ax.set(**{f"{which}lim": (least / 1.6, 1.4 * top)})


def swept_ticks(ax: Axes, values: Sequence[float], names: Sequence[Value]) -> bool:
    """Sets ticks at the swept values, labelled as in the scenario, unless there are many. Returns
    whether it did.

    Values that double from one to the next get equal distances.
    """
    if not values or len(values) > 9:
        return False
    steps = np.array(values[1:]) / np.array(values[:-1]) if len(values) > 2 and values[0] > 0 else np.ones(1)
    if values[-1] >= 8 * values[0] and steps.min() > 1.3 and steps.max() <= 2 * steps.min():
        from matplotlib.ticker import NullLocator

        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(list(values), [words.number(name) for name in names])
    return True


def axis_unit(unit: str, drawn: Sequence[Curve]) -> tuple[float, str]:
    """Returns the size and the name of the unit for the axis of these curves, whose base unit is `unit`."""
    return words.scale(unit, np.concatenate([curve.mean for curve in drawn]))


def metric_panel(ax: Axes, results: Data, metric: str, x: str | None = None, at: At = None) -> None:
    """Draws one panel: a metric against the swept key `x` with 95 % bands, or, without a key, one
    system per row.
    """
    unit, every = curves(results, metric, x, at)
    drawn = [curve for curve in every if not np.isnan(curve.mean).all()]  # such as drops of ideal schedules
    if not drawn:
        raise NoDataError(f"the results have no metric `{metric}`")
    factor, name = axis_unit(unit, drawn)
    quantity = words.axis(words.title(metric), name)
    for curve in drawn:
        along = {} if x is None else {column_of(results, x): curve.x}
        ends = {"ci95 low": curve.low / factor, "ci95 high": curve.high / factor}
        record(ax, {"metric": quantity, "system": curve.system, **curve.rest}, {**along, "mean": curve.mean / factor, **ends})
    if x is None:
        scale_value_axis(ax, drawn, factor, "x")
        for i, (curve, look) in enumerate(zip(every, looks([curve.ideal for curve in every]), strict=True)):
            mean, low, high = (float(v[0]) / factor for v in (curve.mean, curve.low, curve.high))
            reach = whiskers(np.array([mean]), np.array([max(low, ax.get_xlim()[0])]), np.array([high]))
            ax.errorbar(mean, i, xerr=reach, color=look["color"], capsize=3)
            ax.plot(mean, i, look.get("marker", "d"), color=look["color"], clip_on=False, zorder=3, label=style.label(curve.label))
        ax.set_yticks(range(len(every)), [curve.label for curve in every])
        ax.set(xlabel=quantity, ylim=(len(every) - 0.5, -0.5))
        return
    scale_value_axis(ax, drawn, factor)
    present = {v for c in drawn for v in c.x if v is not None}
    numeric, x_unit = words.literals(sorted(present, key=str))
    at_place = dict(zip(sorted(present, key=str), numeric or [], strict=False))
    names = sorted(present, key=at_place.__getitem__ if at_place else str)
    for curve, look in zip(drawn, looks([curve.ideal for curve in drawn]), strict=True):
        if curve.x == [None]:  # a system without the key
            ax.axhline(curve.mean[0] / factor, color=look["color"], linestyle=look["linestyle"], label=style.label(curve.label))
            continue
        if numeric is None:
            place = array(names.index(v) if v is not None else None for v in curve.x)
        else:
            place = array(None if v is None else at_place[v] for v in curve.x)
        means, lows, highs = curve.mean / factor, curve.low / factor, curve.high / factor
        if len(place) > 1 and numeric is not None:
            ax.plot(place, means, **look, label=style.label(curve.label))
            bottom = ax.get_ylim()[0]
            ax.fill_between(place, np.maximum(lows, bottom), highs, color=look["color"], alpha=0.15, linewidth=0)
        else:
            point = look | {"linestyle": "none", "marker": look.get("marker", "_")}
            ax.errorbar(place, means, whiskers(means, lows, highs), **point, capsize=3, label=style.label(curve.label))
    if numeric is None:
        ax.set_xticks(range(len(names)), [words.number(v) for v in names])
    elif swept_ticks(ax, sorted(numeric), names):
        x_unit = ""  # the labels of ticks have units
    ax.set(xlabel=words.axis(words.key(x, results.keys), words.unit(x_unit)), ylabel=quantity)


def metric_panels(
    results: Data,
    shown: Mapping[str, str],
    x: str | None = None,
    at: At = None,
    width: float = 4.2,
    height: float | None = None,
    columns: int = 0,
) -> Figure:
    """Draws a panel for each metric in `shown`, with its title: against the swept key `x`, or,
    without a key, by system.

    `width` and `height` are those of a panel in inches. All panels are in one row unless `columns`
    is given.
    """
    lines = height is None and x is None
    if height is None:
        height = 3.1 if x is not None else 1.1 + 0.26 * len(curves(results, next(iter(shown)), None, at)[1])
    fig, axes = style.grid(len(shown), columns or len(shown), width, height, rigid=lines)
    for ax, (metric, title) in zip(axes, shown.items(), strict=True):
        metric_panel(ax, results, metric, x, at)
        ax.set_title(title)
        # Without a swept key, all panels have the same rows: the first panel of each row of panels names them.
        ax.tick_params(labelleft=x is not None or style.leftmost(ax))
    if x is not None:
        style.legend(fig, axes)
        style.align(fig)
    return fig


def range_panel(ax: Axes, curves: Curves, numbers: Mapping[str, int], factor: float = 1.0) -> list[tuple[Array, Array, Array]]:
    """Draws one panel: means over seeds with the range over seeds, in units of `factor`. `numbers`
    are the numbers of the curves' looks.

    Returns the smallest values, the means and the largest values of each curve.
    """
    drawn = []
    places = sorted({place for points in curves.values() for place in points})
    for name, points in curves.items():
        at = [place for place in places if points.get(place)]
        if at:
            values = [[value / factor for value in points[place].values()] for place in at]
            low, middle, high = (np.array([how(one) for one in values]) for how in (min, mean, max))
            look = style.line(numbers[name])
            ax.errorbar(
                at, middle, whiskers(middle, low, high), **look, capsize=2, elinewidth=style.thick(0.8), label=style.label(name)
            )
            drawn.append((low, middle, high))
    swept_ticks(ax, places, places)
    return drawn
