"""Figures, and the numbers for claims that need time series, ports or the shares of single messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.figures import sizes, style, traces
from flowloom.figures.drawing import Array
from flowloom.figures.panels import range_panel, swept_ticks
from flowloom.papers.measures import flows, ports, totals
from flowloom.runs.data import Data, Run, mean
from flowloom.runs.numbers import Curves, Points, Sample, average, quotient

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DCQCN, PATCHED = "DCQCN", "TIMELY, patched"
LOOKS = {name: i for i, name in enumerate((DCQCN, "TIMELY", "HPCC", "PowerTCP", "theta-PowerTCP", "Swift", "DCTCP", PATCHED))}
"""Style numbers of systems; those of all figures."""
JOIN_MS, SETTLED_MS = 2.0, 4.0
"""When the incast starts, and from when on its queue counts."""
RATE_BPS, RTT_S = 25e9, 29e-6
"""The rate of the receiver's link in the incast, and the round trip that controllers assume."""
BDP = RATE_BPS * RTT_S / 8
PHASE_MS = 100.0
"""The time between the starts of two messages of the fairness figure at full size."""
TAIL = 0.2
"""The last part of each phase, in which shares count."""
LOAD = 0.6
"""The load of the figures by size."""
GBPS, KB = 1e9, 1e3
CONTROLS = ("no control", DCQCN, "TIMELY", "HPCC", "PowerTCP")
RECOVERIES = {"PFC": "PFC, go-back-N", "go-back-N": "drops, go-back-N", "IRN": "drops, IRN"}
"""The parts of labels in `pfc.toml`, and what they mean."""

# Numbers


def averaged(results: Data, run: Run, metric: str, start: float) -> float:
    """Returns the mean of the samples of the receiver's port after a time in ms; NaN without samples."""
    found = traces.sampled(results, run, metric)
    values = np.empty(0) if found is None else next(iter(found.values.values()))[found.times > start]
    return float(np.nanmean(values)) if len(values) else math.nan


def used(results: Data, run: Run) -> float:
    """Returns the share of the receiver's link that is used from the start of the incast on."""
    return averaged(results, run, "port.utilisation", JOIN_MS)


def waiting(results: Data, run: Run) -> float:
    """Returns the mean queue of the receiver's port some time after the start of the incast, in bandwidth-delay products."""
    return averaged(results, run, "port.queue_bytes", SETTLED_MS) / BDP


def longest(results: Data, run: Run) -> float:
    """Returns the longest queue of any switch, in bandwidth-delay products."""
    tier, longest_queue = ports(results, run, "tier", "max_queue_bytes")
    return float(longest_queue[tier > 0].max()) / BDP


def jain(shares: Array) -> float:
    """Returns Jain's fairness index of n shares: 1 if all are equal, 1 / n if one has everything."""
    return float(shares.sum() ** 2 / (len(shares) * (shares**2).sum())) if (shares > 0).any() else math.nan


def delivered_equally(results: Data, run: Run) -> float:
    """Returns Jain's index of the bytes that the messages deliver in the measurement window."""
    return jain(flows(results, run, "window_delivered_bytes")[0])


def shares_of_phases(results: Data, run: Run) -> float:
    """Returns Jain's index of the rates at the end of each phase with several messages, averaged over these phases."""
    found = traces.sampled(results, run, "flow.rate_bps")
    if found is None:
        return math.nan
    start = np.sort(flows(results, run, "start_ps")[0]) * 1e-9
    phase = float(np.diff(start).min())
    indices = []
    for count in range(2, len(start) + 1):
        end = start[count - 1] + phase
        inside = (found.times > end - TAIL * phase) & (found.times <= end)
        rates = np.array([np.nan_to_num(values[inside]).sum() for values in found.values.values()])
        indices.append(jain(np.sort(rates)[-count:]))
    return mean(indices)


def paused(results: Data, run: Run) -> float:
    """Returns the time for which ports are paused, as a share of the time of all ports."""
    (time,) = ports(results, run, "pfc.paused_ps")
    end = results.metric(run, "end_s") or math.nan
    return totals([time])[0] * 1e-12 / (len(time) * end)


def measured(results: Mapping[str, Results]) -> dict[str, float | Sample]:
    """Returns the numbers that no single metric gives, by figure."""
    numbers: dict[str, float | Sample] = {}
    if "incast" in results:
        found = Points(results["incast"])
        for senders in found.numbers("senders"):
            for system in found.systems:
                for name, what in (("used", used), ("queue", waiting), ("longest", longest)):
                    numbers[f"incast.{name}.{senders:g}.{system}"] = found.sample(system, what, senders=senders)
    for figure in ("fairness", "fairness_near"):
        if figure in results:
            found = Points(results[figure])
            numbers |= {f"{figure}.jain.{system}": found.sample(system, shares_of_phases) for system in found.systems}
    if "pfc" in results:
        found = Points(results["pfc"])
        times = {control: found.sample(f"{control}, PFC", paused) for control in CONTROLS}
        numbers |= {f"pfc.paused.{control}": quotient(time, times[DCQCN]) for control, time in times.items()}
        numbers |= {f"pfc.share.{control}": time for control, time in times.items()}
    return {name: value for name, value in numbers.items() if value != {}}


# Figures


def first_runs(results: Results, **at: object) -> dict[str, Run]:
    """Returns one point for each system: that of the first seed."""
    found: dict[str, Run] = {}
    points = Points(results)
    for system in points.systems:
        runs = points.runs(system, **at)
        if runs:
            found[system] = min((run for _, run in runs), key=lambda run: run.seed)
    return found


def joined(senders: int) -> Callable[[Results], Figure]:
    """Returns a figure of throughput and queue of the receiver's link over time, a column for each system."""

    def draw(results: Results) -> Figure:
        runs = first_runs(results, senders=senders)
        fig = style.figure(len(runs), 2, width=2.2, height=1.7)
        axes = style.panels(fig, 2, len(runs))
        tops = [0.0, 0.0]
        for column, (system, run) in enumerate(runs.items()):
            for row, (metric, factor) in enumerate((("port.utilisation", GBPS / RATE_BPS), ("port.queue_bytes", KB))):
                found = traces.sampled(results, run, metric)
                ax = axes[row * len(runs) + column]
                if found is not None:
                    values = next(iter(found.values.values())) / factor
                    ax.plot(found.times, values, color=style.COLORS[row], linewidth=1.0)
                    tops[row] = max(tops[row], float(np.nanmax(values)))
                ax.axvline(JOIN_MS, **style.reference(0))
            axes[column].set_title(system)
            axes[len(runs) + column].set_xlabel("time (ms)")
        for ax, (row, quantity) in zip((axes[0], axes[len(runs)]), enumerate(("throughput (Gbit/s)", "queue (kB)")), strict=True):
            ax.set_ylabel(quantity)
            for other in axes[row * len(runs) : (row + 1) * len(runs)]:
                other.set_ylim(0, 1.06 * tops[row])
                other.tick_params(labelleft=other is ax)
        style.note(fig, f"dashed: {senders} messages start; one bandwidth-delay product is {BDP / KB:.0f} kB; samples of 10 µs")
        return fig

    return draw


incast, incast255 = joined(10), joined(255)


def senders(results: Results) -> Figure:
    """Draws the use of the link, its queue and the equality of shares by the number of senders."""
    found = Points(results)
    fig = style.figure(3, 1)
    axes = style.panels(fig, 1, 3)
    for ax, what, factor, quantity in (
        (axes[0], "max_utilisation", 1.0, "share of the link used"),
        (axes[1], "max_mean_queue_bytes", KB, "mean queue (kB)"),
        (axes[2], delivered_equally, 1.0, "Jain's index"),
    ):
        drawn = range_panel(ax, found.curves(what, "senders"), LOOKS, factor)
        ax.set(xlabel="senders", ylabel=quantity)
        if factor == KB:
            style.log_axis(ax, "y")
        elif drawn:
            least = min(float(low.min()) for low, _, _ in drawn)
            ax.set_ylim(max(0.0, least - 0.05), 1.01)
    style.legend(fig, axes)
    style.note(fig, "second half of 20 ms; bars: range over seeds")
    return fig


def fairness(results: Results) -> Figure:
    """Draws the throughput of each message over time, a panel for each system."""
    runs = first_runs(results)
    fig, axes = style.grid(len(runs), 4, width=2.6, height=1.9)
    for ax, (system, run) in zip(axes, runs.items(), strict=True):
        found = traces.sampled(results, run, "flow.rate_bps")
        if found is not None:
            for i, (_, values) in enumerate(sorted(found.values.items())):
                ax.plot(found.times, values / GBPS, color=style.COLORS[i], linewidth=0.9, label=f"message {i + 1}")
        index = average(Points(results).sample(system, shares_of_phases))
        ax.set_title(f"{system}: {index:.2f}")
        ax.set(xlabel="time (ms)", ylabel="throughput (Gbit/s)", ylim=(0, 1.06 * RATE_BPS / GBPS))
    style.legend(fig, axes[:1])
    style.note(fig, f"titles: Jain's index of the rates in the last {TAIL:.0%} of each phase, mean over phases and seeds")
    return fig


fairness_near = fairness


def by_size_and_load(results: Results) -> Figure:
    """Draws mean and p99 slowdown by size at one load, and the tail of small flows and the mean of large ones by load."""
    found, points = sizes.binned(results, "slowdown"), Points(results)
    fig = style.figure(4, 1, width=3.5)
    axes = style.panels(fig, 1, 4)
    few = False
    for ax, statistic, title in ((axes[0], "mean", "mean"), (axes[1], "p99", "99th percentile of")):
        for system in points.systems:
            keys = [key for key in found if key[0] == system and LOAD in key[1] and key[2] == statistic]
            for key in keys:
                few |= sizes.size_curve(ax, found[key], 1.0, style.line(LOOKS[system]), system, KB)
        for axis in "xy":
            style.log_axis(ax, axis)
        ax.set(xlabel="flow size (kB)", ylabel=f"{title} slowdown", title=f"load {LOAD:g}")
    if few:
        sizes.hollow_label(axes[0])
    for ax, metric, quantity in (
        (axes[2], "p99_slowdown_short", "p99 slowdown, up to 100 KB"),
        (axes[3], "mean_slowdown_long", "mean slowdown, above 100 KB"),
    ):
        curves: Curves = points.curves(metric, "load")
        range_panel(ax, curves, LOOKS)
        style.log_axis(ax, "y")
        swept_ticks(ax, points.numbers("load"), points.numbers("load"))
        ax.set(xlabel="load", ylabel=quantity)
    style.legend(fig, axes)
    style.note(fig, "bands: 95 % intervals; bars: range over seeds")
    return fig


websearch = hadoop = by_size_and_load


def pfc(results: Results) -> Figure:
    """Draws slowdowns, pauses and dropped packets of each controller with PFC, with go-back-N and with IRN."""
    found = Points(results)
    shown: list[tuple[str, Callable[[Data, Run], float] | str, float, bool]] = [
        ("mean slowdown", "mean_slowdown", 1.0, True),
        ("p99 slowdown, up to 100 KB", "p99_slowdown_short", 1.0, True),
        ("ports paused (% of the time)", paused, 0.01, False),
        ("data packets dropped (%)", dropped, 0.01, False),
        ("messages unfinished after 100 ms (%)", unfinished, 0.01, False),
    ]
    fig = style.figure(len(shown), 1, width=3.2, height=2.4)
    axes = style.panels(fig, 1, len(shown))
    for ax, (quantity, what, factor, logarithmic) in zip(axes, shown, strict=True):
        for i, (recovery, label) in enumerate(RECOVERIES.items()):
            for row, control in enumerate(CONTROLS):
                values = [value / factor for value in found.sample(f"{control}, {recovery}", what).values()]
                if values:
                    draw_range(ax, values, row + 0.22 * (i - 1), i, label if row == 0 else "_")
        ax.set_yticks(range(len(CONTROLS)), CONTROLS)
        ax.set(xlabel=quantity, ylim=(len(CONTROLS) - 0.5, -0.5))
        ax.tick_params(labelleft=ax is axes[0])
        if logarithmic:
            style.log_axis(ax, "x")
        else:
            ax.set_xlim(left=0)
    style.legend(fig, axes)
    style.note(fig, "bars: range over seeds")
    return fig


def dropped(results: Data, run: Run) -> float:
    """Returns the share of data packets that switches drop."""
    lost, sent = (results.metric(run, name) or 0.0 for name in ("data_drops", "tx_packets"))
    return lost / sent if sent else math.nan


def unfinished(results: Data, run: Run) -> float:
    """Returns the share of messages that have not finished at the end of the run."""
    left, all_of = (results.metric(run, name) or 0.0 for name in ("unfinished", "flows"))
    return left / all_of if all_of else math.nan


def draw_range(ax: Axes, values: list[float], y: float, look: int, label: str) -> None:
    """Draws the mean of some values and their range at height `y`."""
    middle = mean(values)
    error = [[middle - min(values)], [max(values) - middle]]
    color = style.COLORS[look]
    ax.errorbar(middle, y, xerr=error, fmt=style.MARKERS[look], color=color, markersize=4, capsize=2, elinewidth=0.8, label=label)
