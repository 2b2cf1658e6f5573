"""Figures, and the numbers for claims that compare results with closed forms or with another scenario."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.figures import style
from flowloom.papers.measures import flows
from flowloom.runs.data import Data, Run, mean
from flowloom.runs.numbers import Points, Sample, minus

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BALANCED = ("UET, one path", "UET, oblivious", "UET, bitmap", "UET, REPS", "UET, mixed", "NDP", "DCQCN, one path")
"""Systems of the permutation, in the order of the figures."""
TRANSPORTS = ("no control", "UET, NSCC", "UET, RCCC", "NDP", "Homa", "DCQCN", "HPCC", "Swift")
"""Systems of the collectives, in the order of the figures; their places are their styles."""
FREE = "no control"
OPS = {"all_reduce": "all-reduce in rings", "all_to_all": "all-to-all"}
MICRO, GBPS = 1e-6, 1e9
HOSTS, RATE_BPS, DELAY_S = 16, 400e9, 500e-9
"""The network of `forms`."""
MTU, HEADER = 4096, 64

# Numbers


def closed_form(op: str, size: float) -> float:
    """Returns the time in seconds of a collective of `size` bytes in the network of `forms`, with ACKs for all packets."""
    steps = HOSTS - 1
    message = size / HOSTS
    packets = math.ceil(message / (MTU - HEADER))
    step = (message + 2 * HEADER * packets) * 8 / RATE_BPS
    latency = 2 * DELAY_S + MTU * 8 / RATE_BPS
    # A rank learns that its last message has arrived when a bare header could have come back.
    known = 2 * DELAY_S + 2 * HEADER * 8 / RATE_BPS
    return 2 * steps * (step + latency) + known if op == "all_reduce" else steps * step + latency + known


def size_of(word: str) -> float:
    """Returns a size such as `16MB` in bytes."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if word.endswith(unit):
            return float(word.removesuffix(unit)) * factor
    return float(word.removesuffix("B"))


def furthest(results: Data, op: str) -> Sample:
    """Returns the time without control divided by the closed form, at the size that is furthest from it, by seed."""
    points = Points(results)
    found: Sample = {}
    for size in points.values("bytes"):
        form = closed_form(op, size_of(str(size)))
        for seed, time in points.sample(FREE, "mean_collective_s", op=op, bytes=size).items():
            found[seed] = max(found.get(seed, 1.0), time / form, key=lambda ratio: abs(ratio - 1))
    return found


def measured(results: Mapping[str, Results]) -> dict[str, float | Sample]:
    """Returns the numbers that no single metric gives, by figure."""
    numbers: dict[str, float | Sample] = {}
    if "forms" in results:
        numbers |= {f"forms.{op}": furthest(results["forms"], op) for op in OPS}
    if "balance" in results and "balance_failed" in results:
        whole, failed = Points(results["balance"]), Points(results["balance_failed"])
        for system in failed.systems:
            later = minus(failed.sample(system, "max_fct_s"), whole.sample(system, "max_fct_s"))
            numbers[f"balance_failed.later.{system}"] = {seed: seconds / MICRO for seed, seconds in later.items()}
    return {name: value for name, value in numbers.items() if value != {}}


# Figures


def rows(ax: Axes, names: tuple[str, ...], values: Mapping[str, list[float]]) -> None:
    """Draws the mean of the values of each system and their range, a row for each system."""
    for row, name in enumerate(names):
        found = values.get(name)
        if found:
            middle = mean(found)
            error = [[middle - min(found)], [max(found) - middle]]
            ax.errorbar(middle, row, xerr=error, fmt="o", color=style.COLORS[0], markersize=4, capsize=2, elinewidth=0.8)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)


def from_zero(ax: Axes) -> None:
    """Lets the axis begin at zero, with some room beyond the largest value."""
    ax.set_xlim(0, 1.05 * ax.get_xlim()[1])


def by_system(results: Data, metric: str, factor: float, **at: object) -> dict[str, list[float]]:
    """Returns a metric at each seed, by system."""
    points = Points(results)
    return {system: [value / factor for value in points.sample(system, metric, **at).values()] for system in points.systems}


def balance(results: Results) -> Figure:
    """Draws last and mean completion of the permutation for each system."""
    fig = style.figure(3, 1, width=3.2, height=2.3)
    axes = style.panels(fig, 1, 3)
    for ax, metric, factor, quantity in (
        (axes[0], "max_fct_s", MICRO, "last completion (µs)"),
        (axes[1], "mean_fct_s", MICRO, "mean completion (µs)"),
        (axes[2], "retx_packets", 1.0, "packets retransmitted"),
    ):
        rows(ax, BALANCED, by_system(results, metric, factor))
        ax.set(xlabel=quantity)
        ax.tick_params(labelleft=ax is axes[0])
        if factor == MICRO:
            style.log_axis(ax, "x")
        else:
            from_zero(ax)
    ideal = [float(value) for value in np.unique(ideal_us(results))]
    for ax in axes[:2]:
        ax.axvline(ideal[0], **style.reference(0))
    style.note(fig, "dashed: a message alone in the network; bars: range over seeds")
    return fig


def ideal_us(results: Data) -> np.ndarray:
    """Returns the completion times that the messages would have alone, in microseconds."""
    run = results.runs[0]
    (ideal,) = flows(results, run, "ideal_fct_ps")
    return np.asarray(ideal) * 1e-6


def balance_failed(results: Results) -> Figure:
    """Draws the distribution of completion times with a cable that fails, a curve for each system."""
    fig = style.figure(1, 1, width=6.0, height=3.2)
    (ax,) = style.panels(fig, 1, 1)
    points = Points(results)
    for look, system in enumerate(BALANCED):
        times = np.sort(np.concatenate([completions_us(one, run) for one, run in points.runs(system)] or [np.empty(0)]))
        if len(times):
            ax.plot(times, 1 - np.arange(len(times)) / len(times), label=system, **(style.line(look) | {"marker": ""}))
    style.log_axis(ax, "x")
    style.log_axis(ax, "y")
    ax.set(xlabel="completion time (µs)", ylabel="share of messages that take longer")
    style.legend(fig, [ax])
    style.note(fig, "all seeds together")
    return fig


def completions_us(results: Data, run: Run) -> np.ndarray:
    """Returns the completion times of the messages that finished, in microseconds."""
    (times,) = flows(results, run, "fct_ps")
    found = np.asarray(times, dtype=float) * 1e-6
    return found[np.isfinite(found)]


def forms(results: Results) -> Figure:
    """Draws bus bandwidth by size for both collectives, with the closed form."""
    points = Points(results)
    sizes = sorted(points.values("bytes"), key=lambda size: size_of(str(size)))
    bytes_of = [size_of(str(size)) for size in sizes]
    fig = style.figure(2, 1, width=3.6, height=2.6)
    axes = style.panels(fig, 1, 2)
    for ax, (op, title) in zip(axes, OPS.items(), strict=True):
        factor = 2 if op == "all_reduce" else 1
        moved = [factor * (HOSTS - 1) / HOSTS * size * 8 / GBPS for size in bytes_of]
        for look, system in enumerate(TRANSPORTS):
            values = [list(points.sample(system, "mean_collective_s", op=op, bytes=size).values()) for size in sizes]
            if all(values):
                drawn = [bits / mean(value) for bits, value in zip(moved, values, strict=True)]
                ax.plot(bytes_of, drawn, label=system, **style.line(look))
        form = [bits / closed_form(op, size) for bits, size in zip(moved, bytes_of, strict=True)]
        ax.plot(bytes_of, form, label="closed form", **style.reference(0))
        style.log_axis(ax, "x")
        ax.set(xlabel="size (bytes)", ylabel="bus bandwidth (Gbit/s)", title=title, ylim=(0, 1.02 * RATE_BPS / GBPS))
    style.legend(fig, axes)
    return fig


def both(results: Results) -> Figure:
    """Draws the time of an all-reduce and of an all-to-all for each transport."""
    names = TRANSPORTS[1:]
    fig = style.figure(2, 1, width=3.4, height=2.4)
    axes = style.panels(fig, 1, 2)
    for ax, (op, title) in zip(axes, OPS.items(), strict=True):
        rows(ax, names, by_system(results, "mean_collective_s", MICRO, op=op))
        ax.set(xlabel="time (µs)", title=title)
        from_zero(ax)
        ax.tick_params(labelleft=ax is axes[0])
    style.note(fig, "bars: range over seeds")
    return fig


rail = fat_tree = both


def training(results: Results) -> Figure:
    """Draws the time of a step and its exposed communication for each transport."""
    names = tuple(name for name in TRANSPORTS if name in results.systems)
    fig = style.figure(2, 1, width=3.4, height=1.9)
    axes = style.panels(fig, 1, 2)
    for ax, metric, factor, quantity in (
        (axes[0], "mean_iteration_s", 1e-3, "time of a step (ms)"),
        (axes[1], "exposed_communication", 0.01, "exposed communication (% of the step)"),
    ):
        rows(ax, names, by_system(results, metric, factor))
        ax.set(xlabel=quantity)
        from_zero(ax)
        ax.tick_params(labelleft=ax is axes[0])
    return fig
