"""Figures, and the numbers for claims that compare two systems flow by flow or need a class of sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.figures import distributions, style, traces
from flowloom.figures.drawing import Array
from flowloom.figures.kinds.slowdown import draw as by_size
from flowloom.figures.panels import DWARFED, metric_panels, range_panel
from flowloom.papers.measures import flows, ports, share, statistic, totals, transport, wasted_credits
from flowloom.runs.data import Data, Run
from flowloom.runs.numbers import Curves, Measure, Points, Sample, average, minus, quotient, relative

if TYPE_CHECKING:
    from flowloom.papers.pages import Findings
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FASTER = 0.9
"""Smallest gain, in round trips, that counts as a round trip earlier."""
SMALL, LARGE = 100_000, 1_000_000
"""Largest size of small flows, and the size that large flows exceed, in bytes."""
BURST = 25 * 1460
"""The burst of SSP, in whole packets."""
EXPRESSPASS, AEOLUS, SSP = "ExpressPass", "Aeolus", "SSP"
BASES = (EXPRESSPASS, AEOLUS)
PRINTED = {EXPRESSPASS: 0.568, AEOLUS: 0.292}
"""Reduction of the p99 FCT by SSP, as printed in the abstract."""
PRINTED_FASTER = 0.63

BDP, BARE = "SSP, burst of a BDP", "SSP, losses not protected"
LOOKS = {EXPRESSPASS: 0, AEOLUS: 1, SSP: 2, BDP: 3, BARE: 4}
"""Style numbers of systems in several figures. No figure shows two systems with the same style."""


def rtt(results: Data) -> float:
    """Returns the delay over the longest path and back in s: six links and two hosts each way. 52 us in the study."""
    network = results.config["topology"]
    link, host = (words.milliseconds(network[key]) or 0.0 for key in ("delay", "host_delay"))
    return 2e-3 * (6 * link + 2 * host)


def buffer(results: Data, system: str) -> float:
    """Returns the buffer of a port of a system, in bytes: 384.5 KB in most of the study."""
    (limit,) = (one["qdisc"]["limit"] for one in results.config["system"] if one["label"] == system)
    return (words.literals([limit, "1B"])[0] or [math.nan])[0]


def large_fct(results: Data, run: Run) -> float:
    """Returns the mean FCT of large flows, in s."""
    size, fct = flows(results, run, "size_bytes", "fct_ps")
    return statistic(fct[size > LARGE]) * 1e-12


def in_first(results: Data, run: Run) -> float:
    """Returns the share of small flows that complete in the first round trip."""
    size, fct = flows(results, run, "size_bytes", "fct_ps")
    return float((fct[size <= SMALL] <= rtt(results) * 1e12).mean())


def lost(results: Data, run: Run) -> float:
    """Returns the share of scheduled packets that are lost. Each credit that is not wasted has sent a scheduled packet."""
    kind = transport(results, run)
    there, credits, wasted = totals(flows(results, run, *(f"{kind}.{name}" for name in ("scheduled_lost", "credits", "wasted"))))
    return share(there, credits - wasted)


def beyond(results: Data, run: Run) -> float:
    """Returns the share of the slowest hundredth of small flows that is longer than a burst of 36 kB (25 packets)."""
    size, fct = flows(results, run, "size_bytes", "fct_ps")
    small = size <= SMALL
    slowest = small & (fct >= np.percentile(fct[small], 99))
    return float((size[slowest] > BURST).mean())


def dropped(results: Data, run: Run) -> float:
    """Returns the number of data packets that ports drop."""
    return totals(flows(results, run, "drops"))[0]


def alone(results: Data, run: Run) -> float:
    """Returns the share of the early drops at ports at which no protected packet waited."""
    return share(*totals(ports(results, run, "credit.dropped_alone", "credit.dropped_early")))


def queues(results: Data, run: Run) -> Array:
    """Returns the lengths of the queues of all ports of switches in the measurement window, in bytes, in rising order."""
    port, tier = ports(results, run, "port_id", "tier")
    switches = set(port[tier > 0].astype(int))
    series = traces.sampled(results, run, "port.queue_bytes")
    if series is None:
        return np.empty(0)
    start, end = (ps * 1e-9 for ps in run.window_ps or (0, 0))
    inside = (series.times >= start) & (series.times <= end)
    found = np.concatenate([values[inside] for number, values in series.values.items() if number in switches])
    return np.asarray(np.sort(found[~np.isnan(found)]), dtype=np.float64)


def p999(results: Data, run: Run) -> float:
    """Returns the 99.9th percentile of queue lengths, as a share of the buffer."""
    return statistic(queues(results, run), 999) / buffer(results, run.system)


def longest(results: Data, run: Run) -> float:
    """Returns the longest queue of any port, as a share of the buffer."""
    return float(ports(results, run, "max_queue_bytes")[0].max()) / buffer(results, run.system)


# Numbers of results


def saved(found: Points, base: str, system: str, load: float) -> dict[int, Array]:
    """Returns the round trips by which small flows complete earlier than with `base`, by seed. Flows are joined by their number."""
    gains: dict[int, Array] = {}
    bases = {run.seed: (one, run) for one, run in found.runs(base, load=load)}
    for one, run in found.runs(system, load=load):
        if run.seed in bases:
            (number, size, fct), (same, _, base_fct) = (
                flows(*point, "flow_id", "size_bytes", "fct_ps") for point in ((one, run), bases[run.seed])
            )
            assert np.array_equal(number, same), "all systems see the same flows, in one order"
            gains[run.seed] = (base_fct - fct)[size <= SMALL] * 1e-12 / rtt(one)
    return gains


def ahead(found: Points, base: str, system: str, load: float) -> Sample:
    """Returns the share of small flows that complete a round trip earlier than with `base`."""
    return {seed: float((gain >= FASTER).mean()) for seed, gain in saved(found, base, system, load).items() if len(gain)}


def lowered(found: Points, base: str, system: str, load: float) -> Sample:
    """Returns the reduction of the p99 FCT of small flows compared with `base`, as a share."""
    here, there = (found.sample(one, "p99_fct_short_s", load=load) for one in (system, base))
    return {seed: 1 - left for seed, left in quotient(here, there).items()}


def measured(results: Mapping[str, Results]) -> dict[str, float | Sample]:
    """Returns the numbers that no single metric gives, by figure."""
    numbers: dict[str, float | Sample] = {}
    if "first" in results:
        numbers |= of_loads(Points(results["first"]))
    if "queue_time" in results:
        found = Points(results["queue_time"])
        for system in found.systems:
            numbers[f"queue_time.p999.{system}"] = found.sample(system, p999)
            numbers[f"queue_time.max.{system}"] = found.sample(system, longest)
    for workload in WORKLOADS:
        if workload in results:
            numbers[f"{workload}.beyond"] = Points(results[workload]).sample(SSP, beyond)
    if "webserver" in results:
        found = Points(results["webserver"])
        numbers |= {f"webserver.lost.{name}": found.sample(name, lost) for name in (SSP, BDP)}
    return {name: value for name, value in numbers.items() if value != {}}


def of_loads(found: Points) -> dict[str, float | Sample]:
    """Returns the numbers of the claims, by load."""
    loads = found.numbers("load")
    numbers: dict[str, float | Sample] = {}
    for load in loads:
        done = {system: found.sample(system, in_first, load=load) for system in found.systems}
        large = {system: found.sample(system, large_fct, load=load) for system in found.systems}
        for system in found.systems:
            numbers[f"first.{system}.{load:g}"] = done[system]
            numbers[f"queue.max.{system}.{load:g}"] = found.sample(system, longest, load=load)
            numbers[f"waste.data.{system}.{load:g}"] = found.sample(system, dropped, load=load)
            if system != EXPRESSPASS:
                numbers[f"waste.lost.{system}.{load:g}"] = found.sample(system, lost, load=load)
            for base in BASES:
                if system.startswith(SSP):
                    numbers[f"first.gain.{base}.{load:g}"] = minus(done[SSP], done[base])
                    numbers[f"faster.{base}.{system}.{load:g}"] = ahead(found, base, system, load)
                    numbers[f"price.{base}.{system}.{load:g}"] = quotient(large[system], large[base])
    return numbers


def scaled(curves: Curves, unit: str) -> tuple[float, str]:
    """Returns the unit in which all values are easy to read."""
    return words.scale(unit, [value for points in curves.values() for sample in points.values() for value in sample.values()])


def panel(ax: Axes, curves: Curves, quantity: str, unit: str = "", title: str = "", x: str = "load") -> None:
    """Draws means and ranges over seeds by load. An axis with a unit is logarithmic if one curve is far above another."""
    factor, name = scaled(curves, unit)
    drawn = range_panel(ax, curves, {system: LOOKS.get(system, 3) for system in curves}, factor)
    peaks = [float(middle.max()) for _, middle, _ in drawn if middle.max() > 0]
    least = min((float(low.min()) for low, _, _ in drawn), default=0.0)
    if unit and peaks and max(peaks) > DWARFED * min(peaks) and least > 0:
        style.log_axis(ax, "y")
    else:
        ax.set_ylim(min(0.0, least), 1.06 * max((float(high.max()) for _, _, high in drawn), default=1.0) or 1.0)
    ax.set(xlabel=x, ylabel=words.axis(quantity, name), title=title)


def systems_panel(ax: Axes, samples: Mapping[str, Sample], quantity: str, unit: str = "") -> None:
    """Draws systems one below another: means over seeds, with the range over seeds."""
    factor, name = scaled({"": dict(enumerate(samples.values()))}, unit)
    means = {system: average(sample) / factor for system, sample in samples.items() if sample}
    for i, (system, sample) in enumerate(samples.items()):
        if system in means:
            ends = [means[system] - min(sample.values()) / factor], [max(sample.values()) / factor - means[system]]
            look = style.line(LOOKS.get(system, LOOKS[system.split(",")[0]]))
            fill = look["color"] if system in LOOKS else style.PAPER
            marker = {"color": look["color"], "marker": look["marker"], "markerfacecolor": fill}
            ax.errorbar(means[system], i, xerr=ends, **marker, capsize=3, clip_on=False)
    ax.set_yticks(range(len(samples)), list(samples))
    ax.set(xlabel=words.axis(quantity, name), ylim=(len(samples) - 0.5, -0.5))
    positive = [value for value in means.values() if value > 0]
    if unit and positive and len(positive) == len(means) and max(positive) > DWARFED * min(positive):
        style.log_axis(ax, "x")
    else:
        ax.set_xlim(left=0)
        ax.locator_params(axis="x", nbins=5)


def row(count: int, rows: int = 1, width: float = 4.2) -> tuple[Figure, list[Axes]]:
    """Creates a figure of `rows` rows of `count` panels."""
    fig = style.figure(count, rows, width=width)
    return fig, style.panels(fig, rows, count)


def finish(fig: Figure, axes: Sequence[Axes], about: str = "") -> Figure:
    """Draws the legend above the panels, and a note on the bars below them."""
    style.legend(fig, axes)
    style.note(fig, "; ".join(filter(None, [about, "bars: range over seeds"])))
    return fig


Shown = tuple[str | Measure, str, str]
"""A panel: a metric or another number, its name, and its unit. `OVER` instead of a unit: divided by ExpressPass' value."""
OVER = "over"
P99, SHARE = "p99 FCT, flows up to 100 KB", "flows up to 100 KB done\nin the first round trip"
TAIL, MEAN = ("p99_fct_short_s", P99, "s"), ("mean_fct_short_s", "mean FCT, flows up to 100 KB", "s")
DONE, LARGE_ONES = (in_first, SHARE, ""), (large_fct, "mean FCT, flows above 1 MB", "s")
QUEUE, LONGEST = ("mean_queue_bytes", "queue, mean over time and ports", "bytes"), ("max_queue_bytes", "longest queue", "bytes")
LOST, WASTED = (lost, "share of scheduled packets lost", ""), (wasted_credits, "share of credits wasted", "")
PORT = ("max_mean_queue_bytes", "queue, mean over time,\nport with the longest", "bytes")
ALONE = (alone, "share of early drops where\nno protected packet waited", "")


def by_load(columns: int, *shown: Shown) -> Callable[[Results], Figure]:
    """Draws a figure of panels by load. Only transports with bursts count bursts."""

    def draw(results: Results) -> Figure:
        found = Points(results)
        fig, axes = row(columns, len(shown) // columns, 4.2 if columns == 2 else 3.8)
        for ax, (what, quantity, unit) in zip(axes, shown, strict=True):
            systems = [system for system in found.systems if what not in (lost, alone) or system != EXPRESSPASS]
            curves = found.curves(what, "load", systems)
            if unit == OVER:
                panel(ax, relative(curves, EXPRESSPASS), f"{quantity},\nover that of ExpressPass")
            else:
                panel(ax, curves, quantity, unit)
        return finish(fig, axes)

    return draw


p99 = by_load(2, TAIL, (*TAIL[:2], OVER), MEAN, (*MEAN[:2], OVER))
first = by_load(1, DONE)
price = by_load(2, LARGE_ONES, (*LARGE_ONES[:2], OVER))
queue = by_load(3, QUEUE, PORT, LONGEST)
waste = by_load(3, LOST, WASTED, ALONE)


def reduction(results: Results) -> Figure:
    """Draws the reduction of the p99 FCT, and the values of the abstract."""
    found = Points(results)
    fig, axes = row(2)
    for ax, base in zip(axes, BASES, strict=True):
        shown = [system for system in found.systems if system.startswith(SSP) or (system, base) == (AEOLUS, EXPRESSPASS)]
        curves = {system: {load: lowered(found, base, system, load) for load in found.numbers("load")} for system in shown}
        panel(ax, curves, f"reduction of p99 FCT\nagainst {base}")
        ax.axhline(PRINTED[base], **style.reference(0), label="abstract: SSP")
        ax.axhspan(PRINTED[base] - 0.1, PRINTED[base] + 0.1, color=style.GREY, alpha=0.12, linewidth=0)
        if base == EXPRESSPASS:
            implied = 1 - (1 - PRINTED[EXPRESSPASS]) / (1 - PRINTED[AEOLUS])
            ax.axhline(implied, **style.reference(1), label="abstract: Aeolus, implied")
        ax.set_ylim(top=1)
    return finish(fig, axes, "flows up to 100 KB; grey: 10 points about the printed number")


def faster(results: Results) -> Figure:
    """Draws the share of small flows that complete a round trip earlier, and the distribution of the gain."""
    found = Points(results)
    fig, axes = row(2, 2)
    chosen = [system for system in found.systems if system.startswith(SSP)]
    load = Points(results).numbers("load")[-1]
    for ax, below, base in zip(axes[:2], axes[2:], BASES, strict=True):
        curves = {system: {load: ahead(found, base, system, load) for load in found.numbers("load")} for system in chosen}
        panel(ax, curves, "share of flows up to 100 KB\na round trip faster", title=f"against {base}")
        ax.axhline(PRINTED_FASTER, **style.reference(0), label="abstract")
        ax.set_ylim(0, 1.03)
        for system in chosen:
            gains = np.sort(np.concatenate([*saved(found, base, system, load).values(), np.empty(0)]))
            kept = np.unique(np.linspace(0, len(gains) - 1, 600).astype(int)) if len(gains) else np.empty(0, int)
            below.plot(gains[kept], 1 - kept / max(len(gains), 1), **style.dashes(LOOKS[system]), label=system)
        below.axvline(FASTER, **style.reference(0))
        below.axhline(PRINTED_FASTER, **style.reference(0))
        below.set(xlabel="round trips saved", ylabel="share of flows up to 100 KB\nthat save more", xlim=(-2, 8), ylim=(0, 1.03))
        below.set_title(f"against {base}, load {load:g}")
    return finish(fig, axes, f"a round trip faster: by {FASTER:g} of {rtt(results) * 1e6:g} µs")


def slowdown(results: Results) -> Figure:
    """Draws slowdown by flow size at the highest load."""
    return by_size(results, {"load": Points(results).numbers("load")[-1]})


def queue_time(results: Results) -> Figure:
    """Draws how often queues of switches are longer than a length, and the cost of a bound."""
    found = Points(results)
    fig, axes = row(2, width=5.2)
    for system in found.systems:
        lengths = np.sort(np.concatenate([*(queues(one, run) for one, run in found.runs(system)), np.empty(0)]))
        if not len(lengths) or lengths[-1] <= 0:
            continue
        x, above = distributions.staircase(lengths)
        shown = (x > 0) & (above > 0)
        axes[0].plot(x[shown] / 1e3, above[shown], drawstyle="steps-post", **style.dashes(LOOKS[system]), label=system)
    for which in "xy":
        style.log_axis(axes[0], which)
    axes[0].axvline(buffer(results, found.systems[0]) / 1e3, **style.reference(0), label="buffer")
    axes[0].axhline(1e-3, **style.reference(1), label="99.9th percentile")
    axes[0].set(xlabel="queue of a switch port (kB)", ylabel="share of samples above", title="all ports of switches, every 50 µs")
    samples = {system: found.sample(system, "p99_fct_short_s") for system in found.systems}
    systems_panel(axes[1], samples, P99, "s")
    return finish(fig, axes, "load 0.6")


def incast(results: Results) -> Figure:
    """Draws mean completion and longest queue by the number of senders."""
    found = Points(results)
    sizes = [str(size) for size in found.values("size")]
    fig, axes = row(3, len(sizes), width=3.8)
    for i, size in enumerate(sizes):
        title, (left, middle, right) = f"{size.replace('KB', ' KB')} from each sender", axes[3 * i : 3 * i + 3]
        times, longest = (found.curves(metric, "senders", size=size) for metric in ("mean_fct_s", "max_queue_bytes"))
        panel(left, times, "mean FCT", "s", title, "senders")
        panel(middle, relative(times, EXPRESSPASS), "mean FCT over that of ExpressPass", "", title, "senders")
        panel(right, longest, "longest queue", "bytes", title, "senders")
    return finish(fig, axes)


def listed(systems: Sequence[str], *shown: Shown) -> Callable[[Results], Figure]:
    """Draws a figure of panels with systems one below another."""

    def draw(results: Results) -> Figure:
        found = Points(results)
        here = [system for system in systems if system in found.systems]
        fig = style.figure(len(shown), 1, width=3.6, height=1.1 + 0.26 * len(here))
        axes = style.panels(fig, 1, len(shown))
        for i, (ax, (what, quantity, unit)) in enumerate(zip(axes, shown, strict=True)):
            systems_panel(ax, {system: found.sample(system, what) for system in here}, quantity, unit)
            ax.tick_params(labelleft=i == 0)
        style.note(fig, "bars: range over seeds")
        return fig

    return draw


FIVE = (EXPRESSPASS, AEOLUS, SSP, BARE, BDP)
cachefollower = datamining = listed(FIVE, TAIL, MEAN, DONE, LARGE_ONES)
# The largest flow has 500 KB.
webserver = listed(FIVE, TAIL, MEAN, DONE)


def named(curves: Mapping[str, Mapping[float, str]], x: str, *shown: Shown, log: bool = False) -> Callable[[Results], Figure]:
    """Draws a figure of panels over a parameter, from the systems that have its values. With `log` its axis is logarithmic."""

    def draw(results: Results) -> Figure:
        found = Points(results)
        fig, axes = row(2, 2)
        for ax, (what, quantity, unit) in zip(axes, shown, strict=True):
            drawn = {
                label: {place: found.sample(system, what) for place, system in systems.items()} for label, systems in curves.items()
            }
            panel(ax, drawn, quantity, unit, "", x)
            if log:
                style.log_axis(ax, "x")
        return finish(fig, axes)

    return draw


BDP_KB = 650.0
"""One bandwidth-delay product, in kB."""
CHOICE = (TAIL, DONE, LARGE_ONES, LONGEST)
sens_burst = named(
    {
        SSP: {36.0: SSP, BDP_KB: BDP} | {size: f"SSP, burst {size:g} KB" for size in (10.0, 20.0, 45.0, 60.0, 100.0)},
        AEOLUS: dict.fromkeys((10.0, BDP_KB), AEOLUS),
        EXPRESSPASS: dict.fromkeys((10.0, BDP_KB), EXPRESSPASS),
    },
    "burst of SSP (kB)",
    *CHOICE,
    log=True,
)
sens_threshold = named(
    {
        SSP: {6: SSP} | {size: f"SSP, K_S {size:g} KB" for size in (1.5, 12, 24, 96)},
        AEOLUS: {6: AEOLUS} | {size: f"Aeolus, K {size:g} KB" for size in (1.5, 24, 96)},
    },
    "threshold of early drops (kB)",
    *(TAIL, DONE, LARGE_ONES, QUEUE),
)
sens_buffer = named(
    {name: {384.5: name} | {size: f"{name}, buffer {size} KB" for size in (100, 1000)} for name in (*BASES, SSP)},
    "buffer of a port (kB)",
    *CHOICE,
)
sens_credits = listed(
    [name + change for name in (*BASES, SSP) for change in ("", ", alpha 1/2", ", Algorithm 1")], TAIL, DONE, LARGE_ONES, WASTED
)


def today(results: Results) -> Figure:
    """Draws SSP next to later transports, by load."""
    shown = ("mean_fct_short_s", "p99_fct_short_s", "mean_fct_long_s", "max_queue_bytes")
    return metric_panels(results, dict.fromkeys(shown, ""), "workload.web.load", width=3.2)


CHOICES = (
    "two levels",
    "least left first",
    "no priority",
    "drops beside bursts",
    "sender finds losses",
    "losses not protected",
    "protected after 3 losses",
    "drops no credit losses",
    "unconfirmed sent again",
)
sens_choices = listed([SSP, *(f"SSP, {choice}" for choice in CHOICES)], TAIL, LARGE_ONES, LOST, LONGEST)

# The verdict, from the numbers of claims

WORKLOADS = {"webserver": "web server", "cachefollower": "cache follower", "datamining": "data mining"}


def verdict(findings: Findings) -> Figure:
    """Draws the printed numbers of the abstract, and its words on other workloads, compared with our numbers."""
    fig, (left, right) = row(2, width=4.6)
    bounds = {claim.id: claim.bounds for claim in findings.paper.claims}
    rows = {
        "p99, against\nExpressPass": ("p99-expresspass-printed", "p99-expresspass-bdp"),
        "p99, against\nAeolus": ("p99-aeolus-printed", "p99-aeolus-bdp"),
        "a round trip faster\nthan with Aeolus": ("faster-aeolus", ""),
    }
    for i, (here, bdp) in enumerate(rows.values()):
        low, high = (100 * bound for bound in bounds[here])
        band: dict[str, Any] = {
            "color": style.GREY,
            "alpha": 0.25,
            "linewidth": 0,
            "label": None if i else "near the printed number",
        }
        left.barh([i], [high - low], left=low, height=0.7, **band)
        mark(left, findings, here, i, SSP, 100, None if i else "burst of 36 kB")
        if bdp:
            mark(left, findings, bdp, i, BDP, 100, None if i else "burst of one bandwidth-delay product")
    left.set_yticks(range(len(rows)), list(rows))
    left.set(xlabel="reduction, or share of flows (%)", title="web search: the printed numbers", ylim=(2.6, -0.6), xlim=(0, 100))
    for i, figure in enumerate(WORKLOADS):
        for base in BASES:
            mark(right, findings, f"{figure}-{base.lower()}", i, base, 1, f"over that of {base}" if not i else None)
    right.axvline(1, **style.reference(0), label="no difference")
    right.axvline(0.8, **style.reference(1), label="significant: 20 % less")
    right.set_yticks(range(len(WORKLOADS)), list(WORKLOADS.values()))
    right.set(xlabel="p99 FCT of SSP, as a ratio", title="the other workloads", ylim=(2.6, -0.6))
    right.set_xlim(left=0)
    style.legend(fig, [left, right])
    style.note(fig, "flows up to 100 KB, load 0.6; bars: 95 %")
    return fig


def mark(ax: Axes, findings: Findings, claim: str, at: float, look: str, factor: float, label: str | None = None) -> None:
    """Returns a number of a claim with its interval."""
    (found,) = findings.found[claim]
    if found.estimate is not None:
        middle, low, high = (value * factor for value in (found.estimate.mean, found.estimate.low, found.estimate.high))
        line = style.line(LOOKS[look])
        options = {"color": line["color"], "marker": line["marker"], "linestyle": "none", "label": label}
        ax.errorbar([middle], [at], xerr=[[max(middle - low, 0)], [max(high - middle, 0)]], capsize=3, **options)
