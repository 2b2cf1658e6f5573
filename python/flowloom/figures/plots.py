"""Figures of results: metrics and distributions over flows. Metrics are read from the results.

Every kind of figure is a small function with `@kind`: here, in `traces` (what happens over time), in `windows` (senders), and in
`network` (links).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from flowloom import _core
from flowloom.base import words
from flowloom.figures import style
from flowloom.figures.drawing import (
    KINDS,
    LOOK,
    MOST_PANELS,
    Array,
    At,
    NoDataError,
    array,
    draw,
    drawn_of,
    groups,
    interval_note,
    kind,
    known,
    looks,
    numbers,
    one_per_system,
    record,
    refuse_options,
    shown,
    swept,
    takers,
)
from flowloom.figures.network import topology_panel
from flowloom.figures.panels import metric_panel, metric_panels, swept_axis
from flowloom.figures.traces import Bar, bars, gantt_panel
from flowloom.figures.windows import cwnd
from flowloom.runs import tables
from flowloom.runs.data import Data, Run, Value, column, plain, windows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "KINDS",
    "LOOK",
    "METRICS",
    "MOST_PANELS",
    "Bar",
    "NoDataError",
    "bars",
    "cwnd",
    "draw",
    "gantt_panel",
    "groups",
    "known",
    "metric_panel",
    "metrics",
    "one_per_system",
    "refuse_options",
    "shown",
    "takers",
    "topology_panel",
]

METRICS = (
    "deadline_miss_rate",
    "mean_slowdown",
    "p99_slowdown",
    "p99_slowdown_short",
    "mean_fct_s",
    "p99_fct_s",
    "mean_fct_without_deadline_s",
    "p99_er",
    "data_drops",
)
STATISTICS = {"mean": "mean", "p50": "median", "p95": "95th percentile of", "p99": "99th percentile of"}
"""What is drawn of the flows of a size, in words."""
FEW = 10
"""A quantile that rests on fewer flows is drawn hollow."""

# Metrics


@kind("summary")
def metrics(results: Data, metrics: Sequence[str] | None = None, x: str | None = None, at: At = None) -> Figure:
    """Metrics against the swept key, one panel each, with 95 % confidence bands over seeds."""
    tables.refuse_unknown(metrics or ())
    have = set(column(results.summary(), "metric"))
    chosen = [m for m in (metrics or METRICS) if m in have]
    if metrics is None:
        values = tables.places(results).values()
        chosen = [m for m in tables.without_strangers(results, chosen) if tables.speaks(m, values)]
    if not chosen:
        raise NoDataError(f"the results hold none of these metrics\nhint: they hold {', '.join(sorted(have))}")
    if x is None:
        x = swept_axis(results, at)
    elif x not in results.keys:
        x = next((key for key in results.keys if key.endswith("." + x)), x)
    fig = metric_panels(results, dict.fromkeys(chosen, ""), x, at, columns=3)
    measured = [words.title(metric) for metric in chosen if metric in tables.WINDOWED]
    if measured:
        style.note(fig, f"{words.joined(measured)}: {words.window(windows(results.select(at)))}")
    interval_note(fig, results, at)
    return fig


SHARING = ("goodput_bps", "mean_group_fct_s", "group_jain_index")


@kind("summary")
def sharing(results: Data, x: str | None = None, at: At = None) -> Figure:
    """Goodput, completion time of groups and fairness (Jain's index) against the swept key, as the number of senders."""
    if "groups" not in set(column(results.summary(), "metric")):
        raise NoDataError(
            "the results hold no groups of flows\nhint: an incast has groups, and so has a table of flows with the column `group`"
        )
    return metrics(results, SHARING, x, at)


MIXED = ("deadline_miss_rate", "mean_fct_without_deadline_s", "mean_fct_without_deadline_short_s")


@kind("summary")
def mixed(results: Data, x: str | None = None, at: At = None) -> Figure:
    """What flows with deadlines miss beside how long those without one take: by system, or against the swept key."""
    if "mean_fct_without_deadline_s" not in set(column(results.summary(), "metric")):
        raise NoDataError(
            "the results do not hold both flows with a deadline and flows without one"
            '\nhint: give a workload `deadline = { kind = "uniform", share = 0.8 }`'
        )
    return metrics(results, MIXED, x, at)


# Distributions over flows


def values(results: Data, runs: Sequence[Run], name: str) -> Array:
    """A column of the flows of some points that count, all seeds together, without what is missing."""
    parts = [numbers(results.counted([name], {"point": run.point}), name) for run in runs]
    joined = np.concatenate(parts) if parts else np.empty(0)
    return joined[~np.isnan(joined)]


def staircase(sample: Array, most: int = 400) -> tuple[Array, Array]:
    """A sample, sorted, and the share of it that is above each value: a subset of the points, dense towards the tail."""
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
    """One row per swept value: the distribution on the left, its tail on logarithmic axes on the right."""
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
            "no flow has finished: there is nothing to draw\nhint: a later `end` in the scenario gives flows more time"
        )
    for ax in axes:
        style.log_axis(ax, "x")
        # The same range everywhere, so that rows can be compared.
        ax.set_xlim(min(ends) / 1.1, max(ends) * 1.1)
    style.legend(fig, axes)
    style.note(fig, drawn_of(results, at, [name for name, _ in rows]))
    return fig


@kind("flows")
def fct_cdf(results: Data, at: At = None) -> Figure:
    """Distribution of flow completion times, with the tail on logarithmic axes; all seeds together."""
    first = results.select(at)[:1]
    sample = values(results, first, "fct_ps")
    factor, unit = words.scale("s", [float(np.median(sample)) * 1e-12] if len(sample) else [])
    return distribution(results, "fct_ps", 1e-12 / factor, "FCT", unit, at)


@kind("flows", only_with="merp")
def er_cdf(results: Data, at: At = None) -> Figure:
    """Distribution of expansion ratios, with the tail on logarithmic axes; all seeds together."""
    return distribution(results, "expansion_ratio", 1.0, "expansion ratio", "", at)


@kind("summary")
def group_cdf(results: Data, at: At = None) -> Figure:
    """Distribution of the completion times of groups, as of hosts in a shuffle; all seeds together."""
    times: dict[str, list[float]] = {}
    for group in results.groups().to_pylist():
        # A group with a flow that did not finish is above all times.
        times.setdefault(group["point"], []).append(np.inf if group["fct_ps"] is None else group["fct_ps"] * 1e-12)
    rows = [row for row in groups(results, at) if any(run.point in times for runs in row[1].values() for run in runs)]
    ended = [time for some in times.values() for time in some if time < np.inf]
    if not rows or not ended:
        raise NoDataError(
            "no group of flows has finished: there is nothing to draw\nhint: incasts, requests and shuffles have groups"
        )
    factor, unit = words.scale("s", [float(np.median(ended))])
    fig, axes = style.grid(len(rows), len(rows))
    for ax, (title, systems) in zip(axes, rows, strict=True):
        for (label, runs), look in zip(systems.items(), looks([runs[0].ideal for runs in systems.values()]), strict=True):
            x = np.sort([time / factor for run in runs for time in times.get(run.point, [])])
            share = np.arange(1, len(x) + 1) / max(len(x), 1)
            line = {key: value for key, value in look.items() if key != "marker"}
            ax.plot(x[x < np.inf], share[x < np.inf], drawstyle="steps-post", **line, label=style.label(label))
            columns = {words.axis("group completion time", unit): x[x < np.inf], "share of groups at or below": share[x < np.inf]}
            record(ax, {"system": runs[0].system, **swept(results, runs[0])}, columns)
        ax.set(xlabel=words.axis("group completion time", unit), ylabel="share of groups at or below", ylim=(0, 1.01), title=title)
    style.legend(fig, axes)
    style.note(fig, drawn_of(results, at, [name for name, _ in rows]))
    return fig


# Against the size of flows


@dataclass(frozen=True)
class Binned:
    """A statistic by flow size, in bins of equal count: sizes in bytes, means over seeds with their intervals."""

    size: Array
    mean: Array
    low: Array
    high: Array
    few: npt.NDArray[np.bool_]
    """Where it rests on fewer than `FEW` flows."""


def binned(results: Data, quantity: str) -> dict[tuple[str, tuple[Value, ...], str], Binned]:
    """A quantity by size for every system, value of the swept keys and statistic."""
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
    """One curve with its 95 % band, not below `least`; sizes in units of `factor` bytes, values in units of `scale`.

    Returns whether some of it is hollow, since it rests on few flows.
    """
    x, y = shown.size / factor, shown.mean / scale
    ax.plot(x, y, **look, label=style.label(label))
    ax.fill_between(x, np.maximum(shown.low / scale, least), shown.high / scale, color=look["color"], alpha=0.15, linewidth=0)
    hollow = {"linestyle": "none", "marker": look.get("marker", "o"), "markerfacecolor": style.PAPER, "zorder": 3}
    ax.plot(x[shown.few], y[shown.few], **hollow, color=look["color"])
    return bool(shown.few.any())


def hollow_label(ax: Axes, flows: str = "flows") -> None:
    """Says in the legend what a hollow marker is."""
    label = f"hollow: rests on fewer than {FEW} {flows}"
    ax.plot([], [], "o", color=style.GREY, markerfacecolor=style.PAPER, label=label)


def chosen_statistics(asked: str | Sequence[str] | None) -> list[str]:
    """The statistics asked for, or all. Raises `ValueError` for what is none of them."""
    asked = [asked] if isinstance(asked, str) else list(dict.fromkeys(asked or STATISTICS))
    for unknown in (name for name in asked if name not in STATISTICS):
        near = _core.nearest(unknown, list(STATISTICS))
        did = f"; did you mean `{near}`?" if near else ""
        raise ValueError(f"`{unknown}` is not a statistic of flows of a size{did}\nhint: one of {', '.join(STATISTICS)}")
    return asked


def against_size(results: Data, quantity: str, name: str, at: At, most: int, statistic: str | Sequence[str] | None) -> Figure:
    """One row of panels per swept value, one panel per statistic; a single swept value or statistic has up to two in a row."""
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
        raise NoDataError("no flow finished: there is nothing to draw against the size")
    factor, unit = words.scale("bytes", [float(np.median(np.concatenate([b.size for b in every])))])
    scale, y_unit = words.scale("s" if quantity.endswith("_s") else "", np.concatenate([b.mean for b in every]))
    few = False
    for ax, (group, systems, statistic) in zip(axes, panels, strict=True):
        for (label, runs), look in zip(systems.items(), looks([runs[0].ideal for runs in systems.values()]), strict=True):
            shown = found.get((runs[0].system, tuple(runs[0].keys.values()), statistic))
            if shown is None:
                continue
            # Student's interval may reach below what a slowdown or a time can be.
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


@kind("by_size")
def slowdown(results: Data, at: At = None, most: int = 4, statistic: str | Sequence[str] | None = None) -> Figure:
    """Slowdown against flow size, in bins of equal count, with 95 % bands over seeds."""
    return against_size(results, "slowdown", "slowdown", at, most, statistic)


@kind("flows")
def fct_size(results: Data, at: At = None, most: int = 4, statistic: str | Sequence[str] | None = None) -> Figure:
    """Flow completion time against flow size, in bins of equal count, with 95 % bands over seeds."""
    return against_size(results, "fct_s", "FCT", at, most, statistic)
