"""Figures, and the numbers for claims that compare systems size by size or find the highest load that a system sustains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.figures import sizes, style
from flowloom.figures.panels import DWARFED, metric_panels, range_panel
from flowloom.papers.measures import flows, results_of, statistic
from flowloom.runs.data import Data, Run, mean
from flowloom.runs.numbers import Curves, Points, Sample, combined, minus, quotient, relative

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WORKLOADS = ("w1", "w2", "w3", "w4", "w5")
HOMA, PFABRIC, PHOST, NDP, PIAS = FIVE = ("Homa", "pFabric", "pHost", "NDP", "PIAS")
ONE = "Homa, overcommitment 1"
LOOKS = {system: number for number, system in enumerate((*FIVE, ONE))}
QUANTILES = {"p50": 500, "p99": 990}
"""The quantiles of the claims, in per mille."""
ROUGHLY, CLEARLY = 1.25, 1.2
"""Largest ratio of roughly equal slowdowns, and smallest ratio of clearly different slowdowns."""
OVERLOADED = {("w1", PHOST)}
"""Workloads whose data and packets without payload exceed the rates of links; left out of the claims on all workloads."""
FIRST_LOAD = 0.8
"""The load of the figures by workload."""
NONE = 0.75
"""Represents the highest load of a system that does not sustain the first load."""
IDEAL = "ideal big switch"
KEEPS_UP = 0.95
"""A system sustains a load if it completes at least this share of the payload that the ideal schedule completes."""

# Numbers by size


def bins(results: Results) -> list[tuple[int, int]]:
    """Returns the smallest and the largest size of each bin of sizes."""
    rows = results.by_size().to_pylist()
    return sorted({(int(row["min_size_bytes"]), int(row["max_size_bytes"])) for row in rows})


def slowdowns(results: Results, system: str) -> dict[str, dict[int, list[float]]]:
    """Returns the quantiles of slowdown in all bins of sizes, by quantile and seed; NaN if no message has finished."""
    found: dict[str, dict[int, list[float]]] = {name: {} for name in QUANTILES}
    ends = bins(results)
    for run in results.select({"system": system}):
        size, slowdown = flows(results, run, "size_bytes", "slowdown")
        inside = [slowdown[(size >= low) & (size <= high)] for low, high in ends]
        for name, per_mille in QUANTILES.items():
            found[name][run.seed] = [statistic(values, per_mille) for values in inside]
    return found


def fits(rival: str, homa: float, other: float) -> bool:
    """Returns whether the slowdowns of Homa and another system are as the abstract says."""
    return homa <= ROUGHLY * other if rival == PFABRIC else other >= CLEARLY * homa


def by_size(results: Mapping[str, Results]) -> dict[str, float | Sample]:
    """Returns the share of the bins of sizes in which the abstract's words hold: for each workload, and for all together."""
    numbers: dict[str, float | Sample] = {}
    every: dict[str, list[dict[int, list[bool]]]] = {}
    for workload in (name for name in WORKLOADS if name in results):
        of = {system: slowdowns(results[workload], system) for system in FIVE}
        for rival in FIVE[1:]:
            for quantile in QUANTILES:
                homa, other = of[HOMA][quantile], of[rival][quantile]
                held = {seed: [fits(rival, *pair) for pair in zip(homa[seed], other[seed], strict=True)] for seed in homa}
                numbers[f"{workload}.{quantile}.{rival}"] = {seed: mean(inside) for seed, inside in held.items() if inside}
                if (workload, rival) not in OVERLOADED:
                    every.setdefault(f"ratio.{quantile}.{rival}", []).append(held)
    if all(workload in results for workload in WORKLOADS):
        for name, parts in every.items():
            seeds = sorted(set.intersection(*(set(part) for part in parts)))
            joined = {seed: [one for part in parts for one in part[seed]] for seed in seeds}
            numbers[name] = {seed: mean(inside) for seed, inside in joined.items() if inside}
    return numbers


# Numbers by load


def of_loads(higher: Results, first: Results | None) -> Points:
    """Returns the points at all loads. The first load has separate results."""
    return Points(*([first] if first else []), higher, load=FIRST_LOAD)


def completed(results: Data, run: Run) -> float:
    """Returns the payload in bytes of the messages that complete while the second half of the messages arrives."""
    size, start, finish = flows(results, run, "size_bytes", "start_ps", "finish_ps")
    # All systems see the same arrivals.
    middle, last = np.median(start), start.max()
    return float(size[(finish > middle) & (finish <= last)].sum())


def sustained(shares: Mapping[float, Sample]) -> Sample:
    """Returns the highest load up to which a system keeps up with the ideal schedule, by seed; `NONE` if there is none."""
    loads = sorted(shares)

    def highest(by_load: Sequence[float]) -> float:
        kept = list(takewhile(lambda pair: pair[1] >= KEEPS_UP, zip(loads, by_load, strict=True)))
        return kept[-1][0] if kept else NONE

    return combined([shares[load] for load in loads], highest)


def measured(results: Mapping[str, Results]) -> dict[str, float | Sample]:
    """Returns the numbers that no single metric gives, by figure."""
    numbers = by_size(results)
    if "load" in results and "w4" in results:
        done = of_loads(results["load"], results["w4"]).curves(completed, "load")
        highest = {system: sustained(points) for system, points in relative(done, IDEAL).items()}
        for system, sample in highest.items():
            top = max(done[system])
            numbers[f"load.max.{system}"] = sample
            numbers[f"load.above.{system}"] = minus(highest[HOMA], sample)
            numbers[f"load.done.{system}"] = quotient(done[HOMA][top], done[system][top])
    return {name: value for name, value in numbers.items() if value != {}}


# Figures


def size_axis(ax: Axes) -> None:
    """Sets up a logarithmic axis of message sizes in bytes."""
    style.log_axis(ax, "x")
    ax.set_xlabel("message size (B)")


def value_axis(ax: Axes, shown: Sequence[float]) -> None:
    """Sets up an axis of slowdowns from 1 on, logarithmic if some of them would be hard to read."""
    top = max(shown, default=1.0)
    if top > DWARFED:
        style.log_axis(ax, "y")
        ax.set_ylim(1, 1.4 * top)
    else:
        ax.set_ylim(1, 1 + 1.06 * (top - 1) if top > 1 else 2)


def slowdown(results: Results) -> Figure:
    """Draws median and 99th percentile of slowdown by message size."""
    found = sizes.binned(results, "slowdown")
    fig = style.figure(2, 1)
    axes = style.panels(fig, 1, 2)
    few = False
    for ax, (quantile, title) in zip(axes, (("p50", "median"), ("p99", "99th percentile of")), strict=True):
        shown: list[float] = []
        for system in FIVE:
            b = found.get((system, (), quantile))
            if b is None:
                continue
            shown += b.mean.tolist()
            few |= sizes.size_curve(ax, b, 1.0, style.line(LOOKS[system]), system)
        size_axis(ax)
        value_axis(ax, shown)
        ax.set_ylabel(f"{title} slowdown")
    if few:
        sizes.hollow_label(axes[0], "messages")
    style.legend(fig, axes)
    return fig


w1 = w2 = w3 = w4 = w5 = slowdown


def ratio(results: Results) -> Figure:
    """Draws the p99 slowdowns of the other systems divided by Homa's, by message size, for all workloads that were run."""
    opened = {name: results if name == WORKLOADS[-1] else results_of(results, name) for name in WORKLOADS}
    shown = {name: one for name, one in opened.items() if one is not None}
    fig = style.figure(len(shown), 1, width=2.7, height=2.9)
    axes = style.panels(fig, 1, len(shown))
    tops: list[float] = []
    for ax, (name, one) in zip(axes, shown.items(), strict=True):
        found = sizes.binned(one, "slowdown")
        homa = found.get((HOMA, (), "p99"))
        for rival in FIVE[1:]:
            other = found.get((rival, (), "p99"))
            if homa is not None and other is not None and len(homa.mean) == len(other.mean):
                over = other.mean / homa.mean
                ax.plot(homa.size, over, **style.line(LOOKS[rival]), label=rival)
                tops += over.tolist()
        ax.axhspan(1 / ROUGHLY, CLEARLY, color=style.GREY, alpha=0.12, linewidth=0)
        ax.axhline(1, **style.reference(0), label=HOMA)
        size_axis(ax)
        style.log_axis(ax, "y")
        ax.set_title(name.upper())
    for ax in axes:
        ax.set_ylim(min([0.7, *tops]) / 1.05, max([1.5, *tops]) * 1.1)
    axes[0].set_ylabel("p99 slowdown over Homa's")
    style.legend(fig, axes)
    style.note(fig, f"means over seeds; grey: between 1/{ROUGHLY:g} and {CLEARLY:g}")
    return fig


def load(results: Results) -> Figure:
    """Draws the completed payload as a share of the ideal schedule's, and slowdowns, by load."""
    found = of_loads(results, results_of(results, "w4"))
    systems = [system for system in found.systems if system != IDEAL]
    fig = style.figure(3, 1, width=3.8)
    axes = style.panels(fig, 1, 3)
    over_load(axes[0], relative(found.curves(completed, "load"), IDEAL), "completed, over the ideal schedule")
    axes[0].axhline(KEEPS_UP, **style.reference(0), label=f"sustained: at least {KEEPS_UP:g}")
    for ax, metric, name in (
        (axes[1], "p99_slowdown", "p99 slowdown"),
        (axes[2], "mean_slowdown_long", "mean slowdown above 100 KB"),
    ):
        value_axis(ax, over_load(ax, found.curves(metric, "load", systems), name))
    style.legend(fig, axes)
    style.note(fig, "completed: payload of messages that end while the second half arrives; bars: range over seeds")
    return fig


def over_load(ax: Axes, curves: Curves, quantity: str) -> list[float]:
    """Draws means and ranges over seeds by load, and returns the means."""
    drawn = range_panel(ax, curves, LOOKS)
    ax.set(xlabel="load", ylabel=quantity)
    return [value for _, middle, _ in drawn for value in middle.tolist()]


def listed(metrics: Sequence[str]) -> Callable[[Results], Figure]:
    """Draws a figure of metrics with systems one below another."""
    return lambda results: metric_panels(results, dict.fromkeys(metrics, ""), width=3.4)


sens = listed(("p99_slowdown", "p99_slowdown_short", "mean_slowdown_long", "max_queue_bytes"))
sens_rivals = listed(("p99_slowdown", "p99_slowdown_short", "mean_slowdown_long", "retx_packets"))
