"""The figures in the paper's layout, and the measurements for claims about single runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.figures import distributions, drawing, style, summary, traces
from flowloom.figures.drawing import Array
from flowloom.figures.panels import metric_panel, metric_panels
from flowloom.papers import measures
from flowloom.runs import numbers
from flowloom.runs.data import Data, Run, Value, column

if TYPE_CHECKING:
    from flowloom.papers.pages import Findings
    from matplotlib.figure import Figure

Note = Callable[[str, Run, float], None]
"""Records a named number of a run."""

SYSTEMS = ("BOTCP", "TCP", "DCTCP")
CLOCKS = {"clock 10 ms": "", "clock 1 us": ", clock 1 us"}
"""The suffix of the systems' labels, by clock granularity."""
PACKET = 1500
PAYLOAD = 1460
"""Payload of a full packet: in the figures, BOTCP's option takes no payload."""
LINE_BPS = 10e9
JOIN_MS = 1.0
"""Time at which the short flows of Fig. 8 start."""
ROUND_TRIP_US = 10.5
"""The round trip in the star of Figs. 8 and 9, without queueing."""


def panels(results: Results, shown: Mapping[str, str]) -> Figure:
    """Draws a row of panels: each metric of `shown`, with its title, over the swept key."""
    x = next((key for key in results.keys if key.endswith((".load", ".delay"))), None)
    return metric_panels(results, shown, x, width=4.6, height=3.5)


def fig6(results: Results) -> Figure:
    """Draws the average FCT of short flows."""
    return panels(results, {"mean_fct_short_s": "flows of at most 100 KB, average"})


def fig7(results: Results) -> Figure:
    """Draws the 99th-percentile FCT of short flows."""
    return panels(results, {"p99_fct_short_s": "flows of at most 100 KB, 99th percentile"})


def fig11(results: Results) -> Figure:
    """Draws the average FCT of long flows."""
    return panels(results, {"mean_fct_long_s": "flows of more than 100 KB, average"})


THREE = {
    "mean_fct_short_s": "short flows, average",
    "p99_fct_short_s": "short flows, 99th percentile",
    "mean_fct_long_s": "long flows, average",
}


def datamining(results: Results) -> Figure:
    """Draws the three metrics over load."""
    return panels(results, THREE)


def sens_delay(results: Results) -> Figure:
    """Draws the three metrics over the delay of a link."""
    return panels(results, THREE)


def sens_load(results: Results) -> Figure:
    """Draws the three metrics by system, one row per load."""
    loads = sorted({run.keys[key] for run in results.runs for key in results.keys if key.endswith(".load")}, key=str)
    fig = style.figure(len(THREE), max(len(loads), 1), width=4.0, height=4.6)
    axes = style.panels(fig, max(len(loads), 1), len(THREE))
    for i, ax in enumerate(axes):
        row, place = divmod(i, len(THREE))
        metric, title = list(THREE.items())[place]
        metric_panel(ax, results, metric, None, {"load": loads[row]} if loads else None)
        ax.set_title(f"{title}, load {loads[row]}" if loads else title)
        ax.tick_params(labelleft=place == 0)
    return fig


def sens_extreme(results: Results) -> Figure:
    """Draws metrics by system."""
    return summary.metrics(results, ("mean_fct_s", "max_fct_s", "drops"))


# The settings that decide whether short flows are faster.

TRAFFIC = {"matrix_web": "web search", "matrix_mining": "data mining", "matrix_fanin": "bursts"}
"""The scenarios of the matrix, in the order of its columns."""
SHORT_KB = (10, 100)
"""Largest sizes of short flows, in KB."""
OURS = {"X 10 KB": "BOTCP", "X 50 KB": "BOTCP, X 50 KB"}
RIVALS = ("TCP", "TCP, RFC 3168", "TCP, ns-2", "DCTCP")
WINDOWS = {"window 2": "", "window 1": ", window 1"}


@dataclass(frozen=True)
class Place:
    """A column of the matrix: traffic at one load, and the largest size of its short flows."""

    results: Results
    at: Mapping[str, Value]
    most_kb: int
    name: str
    bursts: bool


def matrix_places(results: Results) -> list[Place]:
    """Returns the columns of the scenarios that were run."""
    found = []
    for scenario, name in TRAFFIC.items():
        one = results if results.config["name"] == "botcp-" + scenario.replace("_", "-") else measures.results_of(results, scenario)
        if one is None:
            continue
        fanin = scenario == "matrix_fanin"
        key = "interval" if fanin else "load"
        # A longer interval is a lighter load.
        swept = sorted(numbers.Points(one).values(key), key=words.sorting, reverse=fanin)
        for load, value in zip(("0.3", "0.8"), swept, strict=True):
            found += [Place(one, {key: value}, kb, f"{name}\nload {load}\n≤ {kb} KB", fanin) for kb in SHORT_KB[fanin:]]
    return found


def short(place: Place, system: str, per_mille: int | None) -> numbers.Sample:
    """Returns the mean FCT of a system's short flows, or a quantile in thousandths, by seed."""

    def of(results: Data, run: Run) -> float:
        fct, size = measures.flows(results, run, "fct_ps", "size_bytes")
        return measures.statistic(fct[size <= 1000 * place.most_kb], per_mille)

    return numbers.Points(place.results).sample(system, of, **place.at)


def matrix_rows() -> list[tuple[str, str, str]]:
    """Returns the rows: their names, and the two compared systems."""
    return [
        (f"{x}, {rival}, {window}", ours, rival + suffix)
        for rival in RIVALS
        for window, suffix in WINDOWS.items()
        for x, ours in OURS.items()
    ]


STATISTICS: Mapping[str, int | None] = {"mean": None, "p99": 990}


def ratios(results: Results, which: str) -> list[list[numbers.Sample]]:
    """Returns the FCT of BOTCP's short flows divided by that of a rival: a row per setting of the systems, a column per traffic."""
    places = matrix_places(results)
    known = {
        (i, system): short(place, system, STATISTICS[which]) for i, place in enumerate(places) for system in place.results.systems
    }
    return [[numbers.quotient(known[i, ours], known[i, rival]) for i in range(len(places))] for _, ours, rival in matrix_rows()]


def largest(results: Results) -> dict[str, numbers.Sample]:
    """Returns the largest ratio of each row by seed: of averages and of 99th percentiles, for Poisson traffic and for bursts."""
    places = matrix_places(results)
    found: dict[str, numbers.Sample] = {}
    for which in STATISTICS:
        for (name, _, _), line in zip(matrix_rows(), ratios(results, which), strict=True):
            for traffic, bursts in (("poisson", False), ("bursts", True)):
                columns = [sample for sample, place in zip(line, places, strict=True) if place.bursts == bursts]
                if columns:
                    found[f"matrix.{traffic}.{which}.{name}"] = numbers.combined(columns, max)
    return found


def mean_queue(results: Data, run: Run) -> float:
    """Returns the mean queue of a port in packets; ports are weighted by their busy time."""
    queue, busy = measures.ports(results, run, "mean_queue_bytes", "busy_ps")
    return measures.share(float((queue * busy).sum()), float(busy.sum())) / PACKET


def matrix(results: Results) -> Figure:
    """Draws BOTCP's ratio to its rivals in all settings: below 1 its short flows are faster."""
    places, rows = matrix_places(results), matrix_rows()
    fig = style.figure(len(STATISTICS), 1, width=0.9 * len(places) + 1.8, height=0.33 * len(rows) + 1.6)
    axes = style.panels(fig, 1, len(STATISTICS))
    for ax, (which, title) in zip(axes, {"mean": "mean FCT", "p99": "99th-percentile FCT"}.items(), strict=True):
        found = ratios(results, which)
        means = np.array([[numbers.average(sample) for sample in line] for line in found])
        ax.imshow(np.log2(means), cmap="PuOr_r", vmin=-1.5, vmax=1.5, aspect="auto")
        for i, line in enumerate(found):
            for j, sample in enumerate(line):
                sure = bool(sample) and (min(sample.values()) > 1) == (max(sample.values()) > 1)
                ax.text(
                    j, i, f"{means[i, j]:.2f}", ha="center", va="center", fontsize=8,
                    fontweight="bold" if sure else "normal", color="white" if abs(np.log2(means[i, j])) > 1.1 else style.INK,
                )  # fmt: skip
        ax.set_xticks(range(len(places)), [place.name for place in places], fontsize=7)
        ax.set_yticks(range(len(rows)), [name for name, _, _ in rows], fontsize=8)
        ax.tick_params(labelleft=ax is axes[0], length=0)
        ax.grid(visible=False)
        ax.set_title(f"BOTCP over the rival, {title} of short flows")
    style.note(fig, "violet, below 1: BOTCP is faster; bold: at all seeds")
    return fig


def matrix_waits(results: Results) -> Figure:
    """Draws the excess of short flows over their ideal completion time, and the dropped packets."""
    places = [place for place in matrix_places(results) if place.most_kb == SHORT_KB[-1]]
    systems = list(places[0].results.systems)
    shown: dict[str, numbers.Measure] = {
        "excess over the ideal FCT (us), flows ≤ 100 KB": lost_us,
        "packets dropped of 10 000": dropped,
    }
    fig = style.figure(len(shown), 1, width=0.8 * len(places) + 1.8, height=0.3 * len(systems) + 1.4)
    axes = style.panels(fig, 1, len(shown))
    for ax, (title, what) in zip(axes, shown.items(), strict=True):
        ax.set(xlim=(-0.5, len(places) - 0.5), ylim=(len(systems) - 0.5, -0.5), title=title)
        for j, place in enumerate(places):
            for i, system in enumerate(systems):
                number = numbers.average(numbers.Points(place.results).sample(system, what, **place.at))
                ax.text(j, i, readable(number), ha="center", va="center", fontsize=8)
        ax.set_xticks(range(len(places)), [place.name.rsplit("\n", 1)[0] for place in places], fontsize=7)
        ax.set_yticks(range(len(systems)), systems, fontsize=8)
        ax.tick_params(labelleft=ax is axes[0], length=0)
        ax.grid(visible=False)
    return fig


def readable(number: float) -> str:
    """Formats a number for a cell of a table.

    >>> readable(15912.3), readable(7.25), readable(0.004), readable(0.0)
    ('15 912', '7.2', '< 0.1', '0')
    """
    if 0 < number < 0.1:
        return "< 0.1"
    return f"{number:,.0f}".replace(",", " ") if number >= 100 or number == 0 else f"{number:.1f}"


PACKETS = ((1, "1"), (3, "2, 3"), (7, "4 to 7"), (68, "8 to 68"))
"""Classes of short flows: the most packets of 1460 bytes, and a name."""


def matrix_mining(results: Results) -> Figure:
    """Draws the excess of short flows over their ideal FCT, by packets of a flow."""
    points = numbers.Points(results)
    systems = [system for system in points.systems if "RFC" not in system and "ns-2" not in system]
    fig = style.figure(2, 1, width=5.6, height=3.7)
    axes = style.panels(fig, 1, 2)
    for ax, load in zip(axes, points.numbers("load"), strict=False):
        for i, system in enumerate(systems):
            middle = [numbers.average(points.sample(system, excess_us(n), load=load)) for n in range(len(PACKETS))]
            ax.plot(range(len(PACKETS)), middle, **style.line(i), label=system)
        ax.set_xticks(range(len(PACKETS)), [name for _, name in PACKETS])
        style.log_axis(ax, "y")
        ax.set(title=f"load {load:g}", xlabel="packets of the flow", ylabel="excess over the ideal FCT (us)")
    style.legend(fig, axes[:1])
    return fig


def excess_us(n: int) -> numbers.Measure:
    """Returns the mean excess in us of flows of the class `n` of `PACKETS` over their ideal FCT."""

    def of(results: Data, run: Run) -> float:
        fct, ideal, size = measures.flows(results, run, "fct_ps", "ideal_fct_ps", "size_bytes")
        packets = -(-size // PAYLOAD)
        chosen = (packets <= PACKETS[n][0]) & (packets > (PACKETS[n - 1][0] if n else 0))
        return measures.statistic((fct - ideal)[chosen]) * 1e-6

    return of


def lost_us(results: Data, run: Run) -> float:
    """Returns the mean excess in us of short flows over their ideal FCT."""
    fct, ideal, size = measures.flows(results, run, "fct_ps", "ideal_fct_ps", "size_bytes")
    return measures.statistic((fct - ideal)[size <= 1000 * SHORT_KB[-1]]) * 1e-6


def dropped(results: Data, run: Run) -> float:
    """Returns the data packets dropped per 10 000 sent."""
    return 1e4 * measures.share(*measures.totals(measures.flows(results, run, "drops", "tx_packets")))


DECIDES = {
    "TCP that drops ACKs\n(RFC 3168)": "rfc3168",
    "TCP that drops data and ACKs\n(stock ns-2)": "ns2",
    "TCP that drops neither": "tcp",
    "DCTCP that drops neither": "dctcp",
}
"""The rivals of the first figure, by the packets that their ports drop instead of marking, and their names in claims."""
PICKS = {
    "poisson": {"2-10": "rivals begin with 2 packets", "1-50": "all begin with 1"},
    "bursts": {"2-10": "rivals begin with 2 packets", "1-10": "all begin with 1"},
}
"""The windows and X of the first figure, by traffic, as claims name them."""


def decides(findings: Findings) -> Figure:
    """Draws the largest ratio of the FCT of short flows, BOTCP to each rival, for the settings that decide."""
    fig = style.figure(2, 1, width=4.4, height=2.9)
    axes = style.panels(fig, 1, 2)
    labels: dict[str, int] = {}
    for ax, traffic, title in zip(axes, PICKS, ("web search, data mining", "bursts of 40 flows"), strict=True):
        for pick, label in PICKS[traffic].items():
            for which, word in (("mean", "average"), ("p99", "99th percentile")):
                found = [findings.found.get(f"m-{traffic}-{which}-{rival}-{pick}", []) for rival in DECIDES.values()]
                means = [f[0].estimate.mean if f and f[0].estimate else math.nan for f in found]
                number = labels.setdefault(f"{word}, {label}", len(labels))
                rows = np.arange(len(DECIDES)) + 0.14 * (number % 4 - 1.5)
                ax.plot(means, rows, **(style.line(number) | {"linestyle": "none"}), label=f"{word}, {label}")
        ax.axvline(1, color=style.INK, linewidth=0.9)
        ax.set(title=title, ylim=(len(DECIDES) - 0.5, -0.5), xlabel="largest ratio of FCT, BOTCP over rival")
        ax.set_yticks(range(len(DECIDES)), list(DECIDES))
        ax.tick_params(labelleft=ax is axes[0])
        style.log_axis(ax, "x")
    style.legend(fig, axes)
    style.note(fig, "left of 1: BOTCP is faster; X = 10 KB, in the left panel 50 KB where all begin with 1")
    return fig


# Fig. 8: long and short flows on one link.


FIG8_SPAN_MS = (0.8, 2.0)
FIG8_BINS = 120
"""Bins of 10 us, less than a round trip without queueing."""


def fig8(results: Results) -> Figure:
    """Draws stacked throughput around the time at which the short flows join; the right column has other settings."""
    fig = style.figure(2, len(SYSTEMS), width=5.2, height=2.0)
    axes = style.panels(fig, len(SYSTEMS), 2)
    for i, (system, run) in enumerate(drawing.one_per_system(results, None)):
        ax = axes[2 * (i % len(SYSTEMS)) + i // len(SYSTEMS)]
        found = traces.sampled(results, run, "flow.rate_bps")
        if found is not None:
            traces.throughput_panel(ax, results, run, found, FIG8_SPAN_MS, FIG8_BINS)
        ax.set_title(system)
    style.legend(fig, axes)
    return fig


def short_flows(results: Results, run: Run) -> list[int]:
    """Returns the short flows of Fig. 8, which start later than the long flows."""
    table = results.flows(["flow_id", "start_ps"], {"point": run.point})
    return [f for f, start in zip(column(table, "flow_id"), column(table, "start_ps"), strict=True) if start > 0]


def last_finish_ms(results: Results, run: Run) -> float:
    """Returns the time in ms from the start of the short flows to the finish of the last one."""
    table = results.flows(["flow_id", "finish_ps"], {"point": run.point})
    short = short_flows(results, run)
    finish = [t for f, t in zip(column(table, "flow_id"), column(table, "finish_ps"), strict=True) if f in short]
    return float(max(finish)) * 1e-9 - JOIN_MS


def long_share(results: Results, run: Run, start: float, end: float) -> float:
    """Returns the share of the link that the long flows use between two times in ms: goodput over the rate of full packets."""
    found = traces.sampled(results, run, "flow.rate_bps")
    assert found is not None
    short = short_flows(results, run)
    inside = (found.times > start) & (found.times <= end)
    total = sum(float(np.nan_to_num(values[inside]).mean()) for flow, values in found.values.items() if flow not in short)
    return total / (LINE_BPS * PAYLOAD / PACKET)


def growth_per_round_trip(results: Results, run: Run, until: int | None) -> float:
    """Returns the growth factor of the short flows' windows per round trip, from 2 segments to `until` or to the flows' end."""
    windows, queue = traces.sampled(results, run, "flow.cwnd_bytes"), traces.sampled(results, run, "port.queue_bytes")
    assert windows is not None and queue is not None
    (waiting,) = queue.values.values()
    factors = []
    for flow in short_flows(results, run):
        window = windows.values[flow] / PAYLOAD
        first = int(np.argmax(window >= 2))
        last = int(np.argmax(window >= until)) if until else int(np.flatnonzero(~np.isnan(window))[-1])
        start, end = float(windows.times[first]), float(windows.times[last])
        if end <= start:
            return math.nan  # the window begins at that size
        # Over a single doubling, the round trip is that of the packets sent when the growth begins.
        seen = waiting[queue.times == start] if until else waiting[(queue.times > start) & (queue.times <= end)]
        queued = float(seen.mean())
        round_trip_ms = ROUND_TRIP_US * 1e-3 + queued * 8 / LINE_BPS * 1e3
        factors.append(float(window[last] / window[first]) ** (round_trip_ms / (end - start)))
    return float(np.median(factors))


# Figs. 9 and 10: extreme flow load.


def queue_of(results: Results, run: Run) -> tuple[Array, Array]:
    """Returns times in ms, and the number of packets that wait at the bottleneck."""
    found = traces.sampled(results, run, "port.queue_bytes")
    assert found is not None
    (values,) = found.values.values()
    return found.times, values / PACKET


BOUNDS = {"limit": "buffer", "occ_max": "Bm", "th_min": "threshold", "mark": "K"}
"""The paper's names for the limits and thresholds of queues."""
LOAD_MS = 6.0
"""Time by which BOTCP's flows of Fig. 9 have finished."""
COLUMNS = (("clock 10 ms", "", LOAD_MS), ("clock 10 ms, to the last flow", "", None), ("clock 1 us", ", clock 1 us", LOAD_MS))
"""The columns of Fig. 9: title, suffix of the systems' labels, end of the time axis in ms."""


def fig9(results: Results) -> Figure:
    """Draws the queue in KiB, as in the paper: while BOTCP's flows last, until the last flow finishes, and with a finer clock."""
    fig = style.figure(len(COLUMNS), len(SYSTEMS), width=4.4, height=1.9)
    axes = style.panels(fig, len(SYSTEMS), len(COLUMNS))
    runs = dict(drawing.one_per_system(results, None))
    for i, ax in enumerate(axes):
        row, place = divmod(i, len(COLUMNS))
        title, suffix, end = COLUMNS[place]
        run = runs[SYSTEMS[row] + suffix]
        times, packets = queue_of(results, run)
        ax.plot(times, packets * PACKET / 1024, color=style.COLORS[row], linewidth=0.9)
        known = traces.bounds(results, run)
        traces.draw_bounds(ax, {word: known[name] for name, word in BOUNDS.items() if name in known}, 1024, 2**17)
        last = max(float(queue_of(results, runs[system + suffix])[0][-1]) for system in SYSTEMS)
        ax.set(title=f"{SYSTEMS[row]}, {title}", ylim=(0, 140), xlim=(0, end or last))
        ax.set(xlabel="time (ms)" if row == len(SYSTEMS) - 1 else "", ylabel="queue (KiB)" if place == 0 else "")
    return fig


def fig10(results: Results) -> Figure:
    """Draws the distribution of FCTs with both clock granularities."""
    fig = style.figure(len(CLOCKS), 1, width=4.6, height=3.3)
    axes = style.panels(fig, 1, len(CLOCKS))
    runs = dict(drawing.one_per_system(results, None))
    for ax, (clock, suffix) in zip(axes, CLOCKS.items(), strict=True):
        for i, system in enumerate(SYSTEMS):
            fct, above = distributions.staircase(distributions.values(results, [runs[system + suffix]], "fct_ps") * 1e-9)
            ax.plot(fct, 1 - above, drawstyle="steps-post", **style.dashes(i), label=system)
        ax.set(title=clock, xlabel="FCT (ms)", ylabel="share of flows at or below", ylim=(0, 1.01))
        style.log_axis(ax, "x")
    style.legend(fig, axes)
    return fig


def second_busy_ms(times: Array, packets: Array) -> float | None:
    """Returns the time in ms at which packets wait again after the queue was empty for at least 2 ms; `None` if it never was."""
    busy = times[packets > 0]
    gaps = np.flatnonzero(np.diff(busy) >= 2.0)
    return float(busy[gaps[0] + 1]) if len(gaps) else None


def measured(results: Mapping[str, Results]) -> dict[str, numbers.Sample]:
    """Returns the measurements for claims that no metric of a run covers, by seed."""
    found: dict[str, numbers.Sample] = {}

    def note(name: str, run: Run, value: float) -> None:
        found.setdefault(name, {})[run.seed] = value

    if "fig8" in results:
        here = results["fig8"]
        runs = dict(drawing.one_per_system(here, None))
        finish = {system: last_finish_ms(here, run) for system, run in runs.items()}
        for system, run in runs.items():
            end = JOIN_MS + finish[system]
            note(f"fig8.{system}.before", run, long_share(here, run, 0.5, JOIN_MS))
            note(f"fig8.{system}.during", run, long_share(here, run, JOIN_MS, end))
            note(f"fig8.{system}.after", run, long_share(here, run, end + 1.0, end + 2.0))
            if system.startswith("BOTCP"):
                note(f"fig8.{system}.growth", run, growth_per_round_trip(here, run, 4))
                note(f"fig8.{system}.growth_to_end", run, growth_per_round_trip(here, run, None))
        for name, ours in (("", "BOTCP"), ("_50", "BOTCP, X 50 KB")):
            if {ours, "TCP", "DCTCP"} <= finish.keys():
                note(f"fig8.TCP.later{name}", runs["TCP"], finish["TCP"] / finish[ours])
                note(f"fig8.DCTCP.last{name}", runs["DCTCP"], finish["DCTCP"] / max(finish["TCP"], finish[ours]))
    if "fig9" in results:
        extreme(results["fig9"], note)
    if "matrix" in results:
        found |= largest(results["matrix"])
        points = numbers.Points(results["matrix"])
        found |= {f"matrix.{system}.queue": points.sample(system, mean_queue, load=0.8) for system in points.systems}
    return found


def extreme(results: Results, note: Note) -> None:
    """Returns the measurements for Figs. 9 and 10."""
    runs = dict(drawing.one_per_system(results, None))
    fct = {system: distributions.values(results, [run], "fct_ps") * 1e-9 for system, run in runs.items()}
    for system, run in runs.items():
        times, packets = queue_of(results, run)
        note(f"fig9.{system}.plateau", run, float(packets[(times > 0.8) & (times <= 2.8)].mean()))
        note(f"fig9.{system}.peak", run, float(packets.max()))
        note(f"fig9.{system}.above", run, float(times[np.argmax(packets > 60)]))
        note(f"fig9.{system}.again", run, float((distributions.values(results, [run], "timeouts") >= 2).mean()))
        second = second_busy_ms(times, packets)
        if second is not None:
            note(f"fig9.{system}.second", run, second)
        note(f"fig9.{system}.earlier", run, float((fct[system] < fct["BOTCP"].min()).mean()))
        note(f"fig9.{system}.slowest", run, float(fct[system].max() / fct["BOTCP"].max()))
