"""Figures and a table of all transports: overview, by size, by load, incast, sensitivities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from flowloom import _core
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.figures import sizes, style
from flowloom.figures.drawing import Array
from flowloom.figures.panels import swept_ticks
from flowloom.papers.measures import flows, ports, results_of, share, statistic, totals, transport, wasted_credits
from flowloom.runs.data import Data, Run, mean
from flowloom.runs.numbers import Measure, Points, average, quotient

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REACTIVE, RDMA, NETWORK, RECEIVER = "windows that react", "RDMA: rates that react", "switches schedule", "receivers schedule"
FAMILIES = {REACTIVE: 0, RDMA: 3, NETWORK: 2, RECEIVER: 1}
"""The part that decides which packets are sent, with a style number."""
FAMILY = {
    **dict.fromkeys(("NewReno", "CUBIC", "BBR", "TCP with ECN", "DCTCP", "L2DCT", "PIAS", "BOTCP", "MPTCP", "Swift"), REACTIVE),
    **dict.fromkeys(("DCQCN", "TIMELY", "HPCC", "PowerTCP", "theta-PowerTCP"), RDMA),
    **dict.fromkeys(("pFabric", "MERP", "PDQ"), NETWORK),
    **dict.fromkeys(("ExpressPass", "Aeolus", "SSP", "pHost", "Homa", "NDP", "SIRD", "dcPIM"), RECEIVER),
}


def family(system: str) -> str:
    """Returns the part that decides in a system, or in a variant of it: `Homa, 3 BDP`."""
    return FAMILY[system.partition(",")[0]]


SHORT, LONG = 100_000, 1_000_000
CLASSES = {"up to 100 KB": (0, SHORT), "100 KB to 1 MB": (SHORT, LONG), "above 1 MB": (LONG, 10**18)}
LOAD = 0.6
"""The load of the table, of the figure by size and of the sensitivities."""
HOST_RATE = 100e9

# Numbers of a point


def slowdown(low: int, high: int, quantile: int | None = None) -> Measure:
    """The mean slowdown of the flows above `low` up to `high` bytes, or a quantile in thousandths."""

    def of(results: Data, run: Run) -> float:
        size, value = flows(results, run, "size_bytes", "slowdown")
        return statistic(value[(size > low) & (size <= high)], quantile)

    return of


def switches(results: Data, run: Run, name: str) -> Array:
    """A column of the ports of switches."""
    tier, value = ports(results, run, "tier", name)
    return value[tier > 0]


def mean_queue(results: Data, run: Run) -> float:
    """The queue of a switch's port, averaged over the window and the ports."""
    return float(np.nanmean(switches(results, run, "window_mean_queue_bytes")))


def longest_queue(results: Data, run: Run) -> float:
    """The longest queue of any switch."""
    return float(switches(results, run, "max_queue_bytes").max())


def again(results: Data, run: Run) -> float:
    """Returns the share of data packets that are retransmissions."""
    return share(*totals(flows(results, run, "retx_packets", "tx_packets")))


def unused(results: Data, run: Run) -> float:
    """Returns the share of credits or tokens that send nothing; NaN for transports that have none."""
    kind = transport(results, run)
    if kind in ("expresspass", "aeolus", "ssp"):
        return wasted_credits(results, run)
    if kind == "phost":
        # Each data packet takes a token.
        expired, sent = totals(flows(results, run, "phost.expired", "tx_packets"))
        return share(expired, expired + sent)
    return np.nan


def trimmed(results: Data, run: Run) -> float:
    """Returns the share of data packets that lose their payload at a port; NaN for transports without trimming."""
    if transport(results, run) != "ndp":
        return np.nan
    return share(*totals(flows(results, run, "ndp.trims", "tx_packets")))


def by_place(found: Points, what: str | Measure, along: str, **at: object) -> dict[str, list[float]]:
    """Means over seeds of each system, by the values of a swept key."""
    places = found.numbers(along)
    return {system: [average(found.sample(system, what, **{**at, along: place})) for place in places] for system in found.systems}


# The figures of dots, and the table

Shown = tuple[str, str | Measure, str]
"""A title, a number, and its unit; `%` for a share."""
FIRST: list[Shown] = [
    ("mean slowdown, flows up to 100 KB", slowdown(0, SHORT), ""),
    ("99th percentile of the slowdown, flows up to 100 KB", slowdown(0, SHORT, 990), ""),
    ("mean slowdown, flows above 1 MB", slowdown(LONG, 10**18), ""),
    ("queue of switches, mean over time and ports", mean_queue, "bytes"),
    ("data packets sent again", again, "%"),
]
"""The panels of the first figure, which has a sixth of incasts."""
MORE: list[Shown] = [
    ("mean slowdown, flows of 100 KB to 1 MB", slowdown(SHORT, LONG), ""),
    ("99th percentile of the slowdown, flows of 100 KB to 1 MB", slowdown(SHORT, LONG, 990), ""),
    ("99th percentile of the slowdown, flows above 1 MB", slowdown(LONG, 10**18, 990), ""),
    ("queue of switches, longest", longest_queue, "bytes"),
    ("credits, tokens unused (○), packets trimmed (△)", unused, "%"),
]
SHOWN_LOADS = (0.3, 0.6, 0.8)
"""Returns the loads of the dots that were run."""


def overview(results: Results) -> Figure:
    """All transports: slowdowns of short and long flows, queues, retransmissions, and incasts of short flows."""
    return dots(results, FIRST, 0)


def details(results: Results) -> Figure:
    """All transports: flows of medium size, tails, longest queues, wasted credits, and incasts of longer flows."""
    return dots(results, MORE, 1)


def dots(results: Results, shown: Sequence[Shown], size: int) -> Figure:
    """A panel for each number, and one of the incasts whose flows have the size of this index, where they were run."""
    found, bursts = Points(results), incasts(results)
    fig = style.figure(3, 2, width=4.2, height=4.2)
    axes = style.panels(fig, 2, 3)
    loads = [load for load in found.numbers("load") if load in SHOWN_LOADS]
    for ax, (title, what, unit) in zip(axes, shown, strict=False):
        rows_panel(ax, found.systems, at_loads(found, what, loads), unit, log=what not in (unused, again))
        if what is unused:
            rows_panel(ax, found.systems, at_loads(found, trimmed, loads), unit, log=False, marker="^")
        ax.set_title(title, fontsize=9)
    if bursts is None:
        axes[-1].axis("off")
    else:
        few, *_, many = bursts.numbers("senders")
        chosen = sizes_of(bursts)[size]
        ends = {system: [times[0], times[-1]] for system, times in stretch(bursts, chosen).items()}
        rows_panel(axes[-1], found.systems, ends, "", log=True)
        axes[-1].set_title(f"incast of {few:g} and {many:g} × {spaced(chosen)}: time over that of the bytes", fontsize=9)
    for i, ax in enumerate(axes):
        ax.tick_params(labelleft=i % 3 == 0)
        for y in (y for y in range(1, len(found.systems)) if family(found.systems[y]) != family(found.systems[y - 1])):
            ax.axhline(y - 0.5, color=style.INK, linewidth=0.6)
    for i, load in enumerate(loads):
        axes[0].plot([], [], "o", color=style.INK, alpha=shade(i, len(loads)), label=f"load {load:g}")
    for who, look in FAMILIES.items():
        axes[0].plot([], [], "s", color=style.COLORS[look], label=who)
    style.legend(fig, axes)
    more = "; incasts: the darker dot has more senders" if bursts is not None else ""
    style.note(fig, f"means over seeds; the slowdown of a flow is its completion time over that of the flow alone{more}")
    return fig


def at_loads(found: Points, what: str | Measure, loads: Sequence[float]) -> dict[str, list[float]]:
    """Returns the means over seeds of each system at some loads."""
    return {system: [average(found.sample(system, what, load=load)) for load in loads] for system in found.systems}


def shade(i: int, count: int) -> float:
    """Returns the opacity of dot `i` of `count`; it grows from dot to dot."""
    return 0.25 + 0.75 * (i + 1) / count


def rows_panel(
    ax: Axes, systems: Sequence[str], series: Mapping[str, Sequence[float]], unit: str, log: bool, marker: str = "o"
) -> None:
    """Draws systems one below another, with the numbers of each as dots that get darker."""
    known = [value for values in series.values() for value in values if not np.isnan(value)]
    factor, name = words.scale(unit, known)
    for i, system in enumerate(systems):
        color = style.COLORS[FAMILIES[family(system)]]
        x = [value / factor for value in series[system]]
        ax.plot(x, [i] * len(x), color=color, linewidth=0.8, alpha=0.4)
        for j, place in enumerate(x):
            ax.plot(place, i, marker, color=color, alpha=shade(j, len(x)), markersize=6, markeredgewidth=0, clip_on=False)
    ax.set_yticks(range(len(systems)), systems)
    ax.set(ylim=(len(systems) - 0.5, -0.5), xlabel=name)
    if log and known and min(known) > 0:
        style.log_axis(ax, "x")
        left, right = ax.get_xlim()
        ax.set_xlim(left, max(right, 2.2 * left))
    else:
        ax.set_xlim(left=0)
        ax.locator_params(axis="x", nbins=4)


def incasts(results: Results) -> Points | None:
    """The incasts, if they were run."""
    found = results_of(results, "incast")
    return None if found is None else Points(found)


def sizes_of(bursts: Points) -> list[str]:
    """The sizes of an incast's flows."""
    return [str(size) for size in bursts.values("size")]


def spaced(size: str) -> str:
    """A size with a space before its unit."""
    return size.replace("KB", " KB")


def stretch(bursts: Points, size: str) -> dict[str, list[float]]:
    """The completion of incasts over the time of their payload at the rate of the receiver's link: by system and senders."""
    alone = float(size.removesuffix("KB")) * 8e3 / HOST_RATE
    senders = bursts.numbers("senders")
    times = by_place(bursts, "mean_group_fct_s", "senders", size=size)
    return {system: [time / (n * alone) for time, n in zip(means, senders, strict=True)] for system, means in times.items()}


COLUMNS: list[Shown] = [
    ("slowdown\nmean\n≤ 100 KB", slowdown(0, SHORT), ""),
    ("slowdown\np99\n≤ 100 KB", slowdown(0, SHORT, 990), ""),
    ("slowdown\nmean\n> 1 MB", slowdown(LONG, 10**18), ""),
    ("slowdown\np99\n> 1 MB", slowdown(LONG, 10**18, 990), ""),
    ("queue\nmean\n(kB)", mean_queue, "kB"),
    ("queue\nlongest\n(kB)", longest_queue, "kB"),
    ("data\nre-sent\n(%)", again, "%"),
    ("credits\nunused\n(%)", unused, "%"),
    ("data\ntrimmed\n(%)", trimmed, "%"),
]
UNITS = {"%": 0.01, "kB": 1e3}
"""The units of the columns, in base units."""
NAMES = (0.0, 0.1, 0.18, 0.34)
"""Where the columns of words begin, and the columns of numbers."""


def table(results: Results) -> Figure:
    """Draws the information, ports and routes of each transport, and its numbers at load 0.6 and in the largest incasts."""
    found, bursts = Points(results), incasts(results)
    largest: dict[str, Mapping[str, Sequence[float]]] = {}
    heads = ["", "knows", "ports, agent, policy, routes", *(title for title, _, _ in COLUMNS)]
    if bursts is not None:
        largest = {size: stretch(bursts, size) for size in sizes_of(bursts)}
        heads += [f"incast\n{max(bursts.numbers('senders')):g} ×\n{spaced(size)}" for size in largest]
    lines = []
    for system in found.systems:
        cells = [cell(average(found.sample(system, what, load=LOAD)) / UNITS.get(unit, 1.0)) for _, what, unit in COLUMNS]
        cells += [cell(times[system][-1]) for times in largest.values()]
        lines.append([system, known_of(results, system), ports_of(results, system), *cells])
    places = [*NAMES[:3], *np.linspace(NAMES[3] + 0.06, 1.0, len(heads) - 3)]
    fig = style.figure(1, 1, width=13.0, height=0.5 + 0.24 * (len(lines) + 3))
    (ax,) = style.panels(fig, 1, 1)
    ax.set(xlim=(0, 1), ylim=(len(lines) - 0.4, -3.4))
    ax.axis("off")
    for place, head in zip(places, heads, strict=True):
        ax.text(place, -0.8, head, ha=side(place), va="bottom", fontsize=8.5, fontweight="bold")
    for i, line in enumerate(lines):
        colors = [style.COLORS[FAMILIES[family(line[0])]], *[style.INK] * len(line)]
        for place, text, color in zip(places, line, colors, strict=False):
            ax.text(place, i, text, ha=side(place), va="center", fontsize=8.5, color=color)
        if i == 0 or family(line[0]) != family(lines[i - 1][0]):
            ax.axhline(i - 0.5, color=style.INK, linewidth=0.6)
    more = "; incast: completion over bytes / link rate" if largest else ""
    style.note(
        fig, f"load {LOAD:g}, means over seeds; slowdown by flow size{more}; needs of switches and hosts: docs/transports.md"
    )
    return fig


def cell(value: float) -> str:
    """Formats a number of the table; a dash for none."""
    return "–" if np.isnan(value) else f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def side(place: float) -> str:
    """Aligns words left and numbers right in their column."""
    return "left" if place < NAMES[3] else "right"


@cache
def knowledge() -> Mapping[str, str]:
    """Returns the information that each transport has of a flow before its bytes are sent."""
    return {entry["name"]: ", ".join(entry["knows"]) or "nothing" for entry in _core.entries("transport")}


def known_of(results: Results, system: str) -> str:
    """Returns the information that the transport of a system has."""
    return knowledge()[transport(results, next(run for run in results.runs if run.system == system))]


def ports_of(results: Results, system: str) -> str:
    """Returns the ports of a system, and its agent, policy and routes."""
    config = next(one for one in results.config["system"] if one["label"] == system)
    qdisc = config["qdisc"]
    classes = f", {qdisc['classes']} classes" if "classes" in qdisc else ""
    parts = [qdisc["kind"] + classes]
    parts += [f"{room} {config[room]['kind']}" for room in ("agent", "policy") if config.get(room)]
    parts += [config["router"]["kind"]] if config["router"]["kind"] != "ecmp" else []
    return ", ".join(parts)


# Small multiples: a panel per system, with the others in grey


def multiples(
    found: Points, curves: Callable[[str], Sequence[tuple[Array, Array]]], labels: Sequence[str], x: str, y: str
) -> Figure:
    """Draws a panel per system on equal logarithmic scales of `y`, with its curves in colour and all others in grey."""
    names = [system for system in found.systems if system in FAMILY]
    columns = 4
    rows = -(-len(names) // columns)
    fig = style.figure(columns, rows, width=2.7, height=2.0)
    axes = style.panels(fig, rows, columns)
    every = {system: curves(system) for system in found.systems}
    for ax in axes[len(names) :]:
        ax.remove()
    for i, (ax, name) in enumerate(zip(axes, names, strict=False)):
        for other in every.values():
            for j, (place, value) in enumerate(other):
                ax.plot(place, value, color=style.GREY, linewidth=0.6, alpha=0.35, linestyle=style.DASHES[j])
        for system in [name, *(s for s in found.systems if s.startswith(f"{name},"))]:
            for j, (place, value) in enumerate(every[system]):
                own = system == name
                look = {
                    "color": style.COLORS[FAMILIES[FAMILY[name]]],
                    "linestyle": style.DASHES[j],
                    "marker": style.MARKERS[j],
                    "markersize": 3.5,
                    "markerfacecolor": style.COLORS[FAMILIES[FAMILY[name]]] if own else style.PAPER,
                }
                ax.plot(place, value, **look)
        ax.set_title(name)
        style.log_axis(ax, "y")
        if i >= len(names) - columns:
            ax.set_xlabel(x)
        if i % columns == 0:
            ax.set_ylabel(y)
    drawn = np.concatenate([value for pairs in every.values() for _, value in pairs] or [np.ones(1)])
    drawn = drawn[~np.isnan(drawn) & (drawn > 0)]
    for ax in axes[: len(names)]:
        ax.set_ylim(drawn.min() / 1.15, drawn.max() * 1.15)
    for j, label in enumerate(labels):
        axes[0].plot([], [], color=style.INK, linestyle=style.DASHES[j], marker=style.MARKERS[j], markersize=3.5, label=label)
    for system in (system for system in found.systems if system not in FAMILY):
        axes[0].plot([], [], "o", color=style.INK, markerfacecolor=style.PAPER, markersize=3.5, label=f"hollow: {system}")
    axes[0].plot([], [], color=style.GREY, linewidth=0.8, label="the other transports")
    style.legend(fig, axes[:1])
    return fig


def by_size(results: Results) -> Figure:
    """Slowdown against flow size at load 0.6: mean and p99."""
    found = Points(results)
    binned = sizes.binned(results, "slowdown")

    def curves(system: str) -> list[tuple[Array, Array]]:
        here = [
            binned[key]
            for statistic in ("mean", "p99")
            for key in binned
            if (key[0], key[2]) == (system, statistic) and LOAD in key[1]
        ]
        return [(one.size / 1e3, one.mean) for one in here]

    fig = multiples(found, curves, ["mean", "p99"], "flow size (kB)", "slowdown")
    for ax in fig.axes:
        style.log_axis(ax, "x")
    return fig


def by_load(results: Results) -> Figure:
    """Slowdown against load: p99 of short flows, mean of long ones."""
    found = Points(results)

    loads = found.numbers("load")
    means = [by_place(found, metric, "load") for metric in ("p99_slowdown_short", "mean_slowdown_long")]

    def curves(system: str) -> list[tuple[Array, Array]]:
        return [(np.array(loads), np.array(one[system])) for one in means]

    fig = multiples(found, curves, ["p99, flows up to 100 KB", "mean, larger flows"], "load", "slowdown")
    for ax in fig.axes:
        ax.set_xticks(loads)
    return fig


def incast(results: Results) -> Figure:
    """Draws the completion of an incast by the number of senders, divided by the time that the receiver's link alone would need."""
    found = Points(results)
    senders = found.numbers("senders")
    times = [stretch(found, size) for size in sizes_of(found)]

    def curves(system: str) -> list[tuple[Array, Array]]:
        return [(np.array(senders), np.array(one[system])) for one in times]

    labels = [f"{spaced(size)} from each sender" for size in sizes_of(found)]
    fig = multiples(found, curves, labels, "senders", "completion over\nbytes / link rate")
    for ax in fig.axes:
        swept_ticks(ax, senders, senders)
    return fig


# Sensitivities: systems are named by what is changed

SENSITIVITY: list[Shown] = [
    ("p99 slowdown, flows up to 100 KB,\nover that of the default", "p99_slowdown_short", ""),
    ("mean slowdown, larger flows,\nover that of the default", "mean_slowdown_long", ""),
    ("mean queue of switches,\nover that of the default", mean_queue, ""),
]
FACTORS = {"x0.5": ("v", "half"), "x2": ("^", "double"), "": ("D", "as named")}


def varied(label: str) -> tuple[str, str, str]:
    """A label's system, what is changed, and the factor: `DCTCP, K x0.5`."""
    system, _, change = label.partition(", ")
    name, _, factor = change.rpartition(" ")
    return (system, name, factor) if factor in FACTORS else (system, change, "")


def sensitivity(results: Results) -> Figure:
    """Draws the effect of half and double of a parameter relative to the default, seed by seed."""
    found = Points(results)
    rows = list(dict.fromkeys(varied(label)[:2] for label in found.systems if "," in label))
    rows.sort(key=lambda row: found.systems.index(row[0]))
    fig = style.figure(len(SENSITIVITY), 1, width=3.5, height=1.0 + 0.2 * len(rows))
    axes = style.panels(fig, 1, len(SENSITIVITY))
    for i, (ax, (title, what, _)) in enumerate(zip(axes, SENSITIVITY, strict=True)):
        ax.axvline(1.0, color=style.INK, linewidth=0.8)
        for label in (label for label in found.systems if "," in label):
            system, name, factor = varied(label)
            over = list(quotient(found.sample(label, what), found.sample(system, what)).values())
            if over:
                marker = FACTORS[factor][0]
                color = style.COLORS[FAMILIES[family(system)]]
                y = rows.index((system, name))
                error = [[mean(over) - min(over)], [max(over) - mean(over)]]
                fill = style.PAPER if factor == "x0.5" else color
                ax.errorbar(mean(over), y, xerr=error, fmt=marker, color=color, markerfacecolor=fill, elinewidth=0.7, capsize=2)
        for y in (y for y in range(1, len(rows)) if rows[y][0] != rows[y - 1][0]):
            ax.axhline(y - 0.5, color=style.GREY, linewidth=0.5)
        ax.set_yticks(range(len(rows)), [f"{system}: {name}" for system, name in rows])
        ax.set(ylim=(len(rows) - 0.5, -0.5), xlabel=title)
        ax.tick_params(labelleft=i == 0)
        style.log_axis(ax, "x")
        left, right = ax.get_xlim()
        ax.set_xlim(min(left, 0.48), max(right, 2.1))
    for factor, (marker, label) in FACTORS.items():
        fill = style.PAPER if factor == "x0.5" else style.INK
        axes[0].plot([], [], marker, color=style.INK, markerfacecolor=fill, label=label)
    style.legend(fig, axes[:1])
    style.note(fig, f"load {LOAD:g}; bars: range over seeds")
    return fig


sens_reactive = sens_proactive = sensitivity
