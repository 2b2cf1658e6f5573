"""The figures in the paper's layout, and the numbers for claims that compare patterns, sizes and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.figures import drawing, style, traces
from flowloom.figures.kinds import goodput, group_cdf
from flowloom.figures.panels import metric_panel, metric_panels, swept_axis
from flowloom.runs.data import Run, column, mean
from flowloom.runs.numbers import Points, Sample, average, combined, minus, quotient

if TYPE_CHECKING:
    from flowloom.papers.pages import Findings
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRIDES = ("stride(1)", "stride(2)", "stride(4)", "stride(8)")
STRIDES_1024 = ("stride(1)", "stride(8)", "stride(64)", "stride(256)")
STAGGERED = ("staggered(0.5, 0.3)", "staggered(0.2, 0.3)")
RANDX = ("random", "random(2)", "random(3)", "random(4)")
RANDBIJ = "permutation"
RANDOM = (*RANDX, RANDBIJ)
ECMP, SAME, HEDERA, DIFS = "ECMP", "ECMP, same hash", "Hedera", "DiFS"
PRINTED_EARS = {8: 304, 16: 4113, 32: 45183}
"""Table II, by the number of ports of a switch."""
STEADY = 0.05


def patterns_of(found: Points) -> list[str]:
    """The patterns, in the order of the scenario; results that do not sweep them have Random."""
    every = (value for one in found.results for run in one.runs for key, value in run.keys.items() if key.endswith("pairs"))
    return list(dict.fromkeys(str(value) for value in every)) or ["random"]


def measured(results: Mapping[str, Results]) -> dict[str, float | Sample]:
    """Returns the numbers that no single metric at one place gives, by figure."""
    found: dict[str, float | Sample] = {}
    if "fig4a_flow" in results:
        found |= of_patterns(Points(results["fig4a_flow"]))
    for figure in ("fig4a", "fig4a_2013"):
        if figure in results:
            found |= {f"{figure}.packets.{system}": sample for system, sample in engines(Points(results[figure])).items()}
    if "fig6_flow" in results:
        found |= of_shuffle(results["fig6_flow"], "fig6_flow")
    for figure, small, engine in (("fig5", "fig4a", "packet"), ("fig5_flow", "fig4a_flow", "flow")):
        if figure in results and small in results:
            sizes = of_sizes(Points(results[small]), Points(results[figure]), engine)
            found |= {f"{figure}.{name}": value for name, value in sizes.items()}
    if "fig4a" in results and "long60" in results:
        short, long = Points(results["fig4a"]), Points(results["long60"])
        for pattern in ("stride(4)", "random"):
            for system in (ECMP, SAME, HEDERA, DIFS):
                here, there = (one.sample(system, "goodput_bps", pairs=pattern, engine="packet") for one in (long, short))
                found[f"long60.{pattern}.{system}"] = quotient(here, there)
    for figure, engine in (("fig8", "packet"), ("fig8_flow", "flow")):
        if figure in results:
            for pattern in patterns_of(Points(results[figure])):
                found[f"{figure}.{pattern}"] = steady(results[figure], pattern, engine)
    for figure, engine in (("fig9", "packet"), ("fig9_flow", "flow")):
        if figure in results:
            found |= of_ears(results[figure], figure, engine)
    for table, figures, engine in (("table2", ("table2", "fig5"), "packet"), ("table2_flow", ("table2_flow",), "flow")):
        by_size = ears_by_size(results, figures, engine)
        found |= {f"{table}.ears.{k}": sample for k, sample in by_size.items()}
        found |= {f"{table}.growth.{k}": quotient(by_size[k], by_size[k // 2]) for k in (16, 32) if by_size.keys() >= {k, k // 2}}
    return {name: value for name, value in found.items() if value != {}}


def engines(found: Points) -> dict[str, Sample]:
    """Returns, by system and seed, the goodput by packets divided by that of the flow engine, mean over patterns."""
    by_system: dict[str, Sample] = {}
    for system in found.systems:
        each = [
            quotient(*(found.sample(system, "goodput_bps", pairs=pattern, engine=engine) for engine in ("packet", "flow")))
            for pattern in patterns_of(found)
        ]
        by_system[system] = combined([one for one in each if one], mean)
    return by_system


def of_patterns(found: Points) -> dict[str, float | Sample]:
    """Returns the numbers of Fig. 4 over several patterns, by the flow engine."""
    numbers: dict[str, float | Sample] = {}

    def goodput(system: str, pattern: str) -> Sample:
        return found.sample(system, "goodput_bps", pairs=pattern)

    def joint(system: str, patterns: Sequence[str]) -> Sample:
        return combined([goodput(system, pattern) for pattern in patterns if goodput(system, pattern)], mean)

    for system in (ECMP, SAME, HEDERA):
        gains = [quotient(goodput(DIFS, pattern), goodput(system, pattern)) for pattern in patterns_of(found)]
        numbers[f"fig4c_flow.largest.{system}"] = combined([gain for gain in gains if gain], lambda x: max(x) - 1)
        at_random = [quotient(goodput(DIFS, pattern), goodput(system, pattern)) for pattern in RANDOM]
        third = combined([gain for gain in at_random if gain], lambda x: sum(gain >= 1.33 for gain in x) / len(x))
        numbers[f"fig4c_flow.third.{system}"] = third
    for system in (ECMP, SAME, HEDERA, DIFS):
        numbers[f"fig4b_flow.staggered.{system}"] = quotient(joint(system, STAGGERED), joint(system, STRIDES))
    numbers["fig4c_flow.randbij"] = quotient(goodput(DIFS, RANDBIJ), goodput(DIFS, "stride(2)"))
    numbers["fig4c_flow.random"] = quotient(joint(DIFS, RANDX), joint(DIFS, STAGGERED))
    return numbers


SAME_PATTERN = {"stride(64)": "stride(4)", "stride(256)": "stride(8)", "stride(8)": "stride(2)"}
"""The stride of 16 hosts that crosses as many pods, by that of 1024 hosts."""


def of_sizes(small: Points, large: Points, engine: str) -> dict[str, float | Sample]:
    """Returns the numbers of Fig. 5 that compare 1024 hosts with 16."""
    numbers: dict[str, float | Sample] = {}

    def share(found: Points, system: str, pattern: str) -> Sample:
        return found.sample(system, "non_blocking_share", pairs=pattern, engine=engine)

    pairs = [(SAME_PATTERN.get(pattern, pattern), pattern) for pattern in patterns_of(large)]
    for system in (ECMP, SAME):
        here = combined([share(large, system, there) for _, there in pairs if share(large, system, there)], mean)
        there = combined([share(small, system, pattern) for pattern, _ in pairs if share(small, system, pattern)], mean)
        numbers[f"worse.{system}"] = quotient(here, there)

    def gap(found: Points, patterns: Sequence[str]) -> Sample:
        each = [quotient(share(found, DIFS, pattern), share(found, HEDERA, pattern)) for pattern in patterns]
        return combined([one for one in each if one], lambda x: mean(x) - 1)

    gaps = gap(large, [there for _, there in pairs]), gap(small, [here for here, _ in pairs])
    numbers["gap"] = minus(*gaps)
    return numbers


def of_shuffle(results: Results, figure: str) -> dict[str, float | Sample]:
    """Returns the times at which hosts are done, by seed (Fig. 6)."""
    times: dict[str, list[float]] = {}
    for group in results.groups().to_pylist():
        times.setdefault(str(group["point"]), []).append(np.inf if group["fct_ps"] is None else group["fct_ps"] * 1e-12)
    found = Points(results)
    of = {system: {run.seed: times[run.point] for _, run in found.runs(system, engine="packet")} for system in found.systems}
    numbers: dict[str, float | Sample] = {}
    for system, by_seed in of.items():
        numbers[f"{figure}.variation.{system}"] = {seed: max(done) / min(done) for seed, done in by_seed.items()}
        shared = by_seed.keys() & of.get(DIFS, {}).keys()
        numbers[f"{figure}.done.{system}"] = {
            seed: sum(time <= max(of[DIFS][seed]) for time in by_seed[seed]) / len(by_seed[seed]) for seed in sorted(shared)
        }
    return numbers


def steady(results: Results, pattern: str, engine: str) -> Sample:
    """Returns the time in s, by seed, from which DiFS' goodput stays within `STEADY` of its mean in the measurement window."""
    found: Sample = {}
    for _, run in Points(results).runs(DIFS, pairs=pattern, engine=engine):
        series = goodput.total(results, run)
        if series is not None:
            share = fractions(series, run)
            away = np.flatnonzero(np.abs(share - 1) > STEADY)
            found[run.seed] = float(series.times[away[-1]]) * 1e-3 if len(away) else 0.0
    return found


def fractions(series: traces.Series, run: Run) -> drawing.Array:
    """Returns a goodput divided by its mean in the measurement window."""
    start, end = (ps * 1e-9 for ps in run.window_ps or (0, 0))
    inside = (series.times > start) & (series.times <= end)
    return np.asarray(series.values[0] / series.values[0][inside].mean(), dtype=np.float64)


def ear_times(results: Results, run: Run) -> tuple[drawing.Array, drawing.Array]:
    """Returns the times in s at which switches received EARs, and their numbers."""
    series = traces.sampled(results, run, "switch.taken_packets")
    if series is None:
        return np.empty(0), np.empty(0)
    return series.times * 1e-3, np.nansum(list(series.values.values()), axis=0)


def of_ears(results: Results, figure: str, engine: str) -> dict[str, float | Sample]:
    """Returns the numbers of Fig. 9, by seed."""
    first: Sample = {}
    last: Sample = {}
    for _, run in Points(results).runs(DIFS, pairs="random", engine=engine):
        times, counts = ear_times(results, run)
        if counts.sum() > 0:
            first[run.seed] = float(counts[times <= 1.0].sum() / counts.sum())
            last[run.seed] = float(times[counts > 0][-1])
    return {f"{figure}.first": first, f"{figure}.last": last}


def ears_by_size(results: Mapping[str, Results], figures: Sequence[str], engine: str) -> dict[int, Sample]:
    """EARs under the random pattern, by the number of ports of a switch."""
    found: dict[int, Sample] = {}
    for figure in (figure for figure in figures if figure in results):
        here = Points(results[figure])
        sizes = here.values("k") or [16 if figure == "fig5" else 4]
        for k in sizes:
            sample = here.sample(DIFS, "made_packets", k=k, pairs="random", engine=engine)
            if sample:
                found[int(float(str(k)))] = sample
    return found


# Figures

GAINS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "16 hosts": {
        ECMP: ("f4a-highest", "f4b-ecmp", "f4c-all-ecmp"),
        SAME: ("f4a-highest-same", "f4b-ecmp-same", "f4c-all-ecmp-same"),
        HEDERA: ("f4a-highest-hedera", "f4b-hedera", "f4c-all-hedera"),
    },
    "1024 hosts": {ECMP: ("f5-highest-ecmp-flow",), SAME: ("f5-highest-same-flow",), HEDERA: ("f5-highest-hedera-flow",)},
}
"""The claims that compare DiFS with each rival, pattern by pattern."""


def gains(findings: Findings) -> Figure:
    """Draws the goodput of DiFS divided by that of each rival, by pattern, with the intervals of claims."""
    fig = style.figure(2, 1, width=4.2, height=3.9)
    axes = style.panels(fig, 1, 2)
    for ax, (title, rivals) in zip(axes, GAINS.items(), strict=True):
        patterns: dict[str, int] = {}
        for number, (rival, claims) in enumerate(rivals.items()):
            for one in (one for claim in claims for one in findings.found.get(claim, [])):
                e = one.estimate
                if e is None:
                    continue
                pattern = one.where.removeprefix("pairs ").partition(", engine")[0]
                y = patterns.setdefault(pattern, len(patterns)) + 0.22 * (number - 1)
                error = [[max(e.mean - max(e.low, 0), 0)], [max(min(e.high, 10 * e.mean) - e.mean, 0)]]
                look: dict[str, Any] = {"color": style.COLORS[number], "marker": style.MARKERS[number]}
                label = None if ax.get_legend_handles_labels()[1].count(rival) else rival
                ax.errorbar(e.mean, y, xerr=error, elinewidth=0.8, linestyle="none", label=label, **look)
        ax.axvline(1, color=style.INK, linewidth=0.9)
        ax.set(title=title, ylim=(len(patterns) - 0.5, -0.5), xlabel="goodput of DiFS over that of the rival")
        ax.set_yticks(range(len(patterns)), list(patterns))
        style.log_axis(ax, "x")
    style.legend(fig, axes)
    style.note(fig, "right of 1: DiFS is ahead; flow engine, Hedera annealed with 10 000 steps on 16 hosts and a million on 1024")
    return fig


def bars(results: Results, patterns: Sequence[str], systems: Sequence[str] | None = None) -> Figure:
    """Draws goodput by pattern, and below it its share of the non-blocking goodput. Hatched columns are of the flow engine."""
    found = Points(results)
    patterns = [pattern for pattern in patterns if pattern in patterns_of(found)]
    chosen = [system for system in results.systems if systems is None or system in systems]
    engines = [str(engine) for engine in found.values("engine")] or [""]
    fig = style.figure(1, 2, width=max(6.0, 1.5 * len(patterns) + 2.0), height=2.6)
    top, bottom = style.panels(fig, 2, 1)
    columns = [(system, engine) for system in chosen for engine in sorted(engines, reverse=True)]
    width = 0.86 / len(columns)
    for ax, metric, factor in ((top, "goodput_bps", 1e9), (bottom, "non_blocking_share", 1.0)):
        for i, (system, engine) in enumerate(columns):
            samples = [found.sample(system, metric, pairs=pattern, engine=engine) for pattern in patterns]
            heights = [average(sample) / factor if sample else 0.0 for sample in samples]
            spread = [float(np.std(list(sample.values()), ddof=1)) / factor if len(sample) > 1 else 0.0 for sample in samples]
            places = np.arange(len(patterns)) + (i - (len(columns) - 1) / 2) * width
            color = style.COLORS[chosen.index(system) % len(style.COLORS)]
            fluid = engine == "flow"
            look: dict[str, Any] = {"facecolor": "none", "edgecolor": color, "hatch": "////"} if fluid else {"color": color}
            label = None if fluid and len(engines) > 1 else system
            ax.bar(places, heights, width * 0.9, yerr=spread, error_kw={"elinewidth": 0.7}, linewidth=0.8, label=label, **look)
        ax.set_xticks(range(len(patterns)), patterns)
        ax.grid(axis="x", visible=False)
    for i, pattern in enumerate(patterns):
        limit = [v for s in chosen for e in engines for v in found.sample(s, "non_blocking_bps", pairs=pattern, engine=e).values()]
        if limit:
            top.hlines(
                mean(limit) / 1e9,
                i - 0.45,
                i + 0.45,
                color=style.INK,
                linewidth=0.9,
                label="" if i else "only the links of hosts limit flows",
            )
    top.set_ylabel(words.axis("goodput", "Gbit/s"))
    bottom.set_ylabel("share of the non-blocking\ngoodput")
    if "flow" in engines:
        top.bar([0], [0], facecolor="none", edgecolor=style.INK, hatch="////", linewidth=0.8, label="flow engine")
    style.legend(fig, [top])
    style.note(fig, "bars: standard deviation over seeds")
    return fig


def fig4a(results: Results) -> Figure:
    """Goodput under the strides."""
    return bars(results, STRIDES, [system for system in results.systems if system != "DiFS-FM"])


def fig4b(results: Results) -> Figure:
    """Goodput under the staggered patterns."""
    return bars(results, STAGGERED, [system for system in results.systems if system != "DiFS-FM"])


def fig4c(results: Results) -> Figure:
    """Goodput under the random patterns."""
    return bars(results, RANDOM, [system for system in results.systems if system != "DiFS-FM"])


fig4a_2013, fig4b_2013, fig4c_2013 = fig4a, fig4b, fig4c
fig4a_flow, fig4b_flow, fig4c_flow = fig4a, fig4b, fig4c


def fig5(results: Results) -> Figure:
    """Goodput on 1024 hosts."""
    return bars(results, patterns_of(Points(results)), [system for system in results.systems if system != "DiFS-FM"])


fig5_flow = fig5


def fig7(results: Results) -> Figure:
    """DiFS by counts and by rates."""
    return bars(results, patterns_of(Points(results)), [DIFS, "DiFS-FM"])


fig7_flow = fig7
long60 = fig5


def only_packets(results: Results) -> drawing.At:
    """Returns the points of the packet engine, if both engines ran."""
    return {"engine": "packet"} if Points(results).values("engine") else None


def fig6(results: Results) -> Figure:
    """When hosts have fetched everything."""
    return group_cdf.draw(results, only_packets(results))


fig6_2013 = fig6_flow = fig6

TABLE_1 = {
    "max_group_fct_s": "shuffle time",
    "mean_group_fct_s": "average completion time",
    "sum_group_goodput_bps": "average bisection bandwidth",
    "mean_host_retx_share": "packets sent again, mean of hosts",
    "mean_host_gap_packets": "out-of-order window, mean of hosts",
}


def table1(results: Results) -> Figure:
    """Table I, by system."""
    have = {str(metric) for metric in column(results.summary(), "metric")}
    shown = {metric: title for metric, title in TABLE_1.items() if metric in have}
    return metric_panels(results, shown, None, only_packets(results), 3.6, 1.2 + 0.3 * len(results.systems))


table1_2013 = table1


def table1_flow(results: Results) -> Figure:
    """Times and bandwidth of Table I, by system: the flow engine has no packets to reorder."""
    shown = {metric: title for metric, title in TABLE_1.items() if "packets" not in metric and "retx" not in metric}
    return metric_panels(results, shown, None, None, 3.6, 1.2 + 0.3 * len(results.systems))


def fig8(results: Results) -> Figure:
    """Goodput of DiFS over its final mean, over time."""
    fig = style.figure(1, 1, width=6.0)
    (ax,) = style.panels(fig, 1, 1)
    found = Points(results)
    for i, pattern in enumerate(patterns_of(found)):
        for _, run in found.runs(DIFS, pairs=pattern)[:1]:
            series = goodput.total(results, run)
            if series is not None:
                ax.plot(series.times * 1e-3, fractions(series, run), **style.dashes(i), label=pattern)
    ax.set(xlabel=words.axis("time", "s"), ylabel="goodput over its mean at the end", ylim=(0, None))
    style.log_axis(ax, "x")
    style.legend(fig, [ax])
    return fig


fig8_flow = fig8


def fig9(results: Results) -> Figure:
    """Distribution of the times at which switches receive EARs, Random."""
    fig = style.figure(1, 1, width=5.0)
    (ax,) = style.panels(fig, 1, 1)
    found = Points(results)
    for i, engine in enumerate(found.values("engine") or [""]):
        for _, run in found.runs(DIFS, pairs="random", engine=engine):
            times, counts = ear_times(results, run)
            if len(counts) and counts.sum() > 0:
                ax.plot(times, np.cumsum(counts) / counts.sum(), **style.dashes(i), label=drawing.titled(results, run, None))
    ax.set(xlabel=words.axis("time", "s"), ylabel="share of EARs received", ylim=(0, 1.02))
    style.legend(fig, [ax])
    return fig


fig9_flow = fig9


def table2(results: Results) -> Figure:
    """Draws EARs over the number of hosts, with the values of Table II."""
    fig = style.figure(1, 1, width=4.8)
    (ax,) = style.panels(fig, 1, 1)
    found = Points(results)
    for i, engine in enumerate(found.values("engine") or [""]):
        sizes = [k for k in found.values("k") or [4] if found.sample(DIFS, "made_packets", k=k, engine=engine)]
        means = [average(found.sample(DIFS, "made_packets", k=k, engine=engine)) for k in sizes]
        shown_ears(ax, [int(float(str(k))) for k in sizes], means, f"{engine or 'flow'} engine", i)
    shown_ears(ax, list(PRINTED_EARS), list(PRINTED_EARS.values()), "the paper", 5)
    style.log_axis(ax, "x")
    style.log_axis(ax, "y")
    ax.set(xlabel="hosts", ylabel="EARs")
    style.legend(fig, [ax])
    return fig


def shown_ears(ax: Axes, sizes: Sequence[int], ears: Sequence[float], label: str, number: int) -> None:
    """Draws a curve over the number of hosts of fat trees of these sizes; a count of zero is drawn at 0.5."""
    ax.plot([k**3 / 4 for k in sizes], [max(count, 0.5) for count in ears], **style.line(number), label=label)


table2_flow = table2


def sens_buffer(results: Results) -> Figure:
    """Draws the share of the non-blocking goodput by pattern, over the swept key: the packets that a port holds."""
    patterns = patterns_of(Points(results))
    fig = style.figure(len(patterns), 1)
    axes = style.panels(fig, 1, len(patterns))
    for ax, pattern in zip(axes, patterns, strict=True):
        at = {"pairs": pattern} if len(patterns) > 1 else None
        metric_panel(ax, results, "non_blocking_share", swept_axis(results, at), at)
        ax.set_title(pattern)
    style.legend(fig, axes)
    return fig


sens_annealing = sens_buffer


def sens_hedera(results: Results) -> Figure:
    """Table I's bandwidth and reordering against the period of Hedera."""
    fig = style.figure(2, 1)
    axes = style.panels(fig, 1, 2)
    for ax, metric in zip(axes, ("sum_group_goodput_bps", "mean_host_gap_packets"), strict=True):
        metric_panel(ax, results, metric, swept_axis(results))
        ax.set_title(TABLE_1[metric])
    style.legend(fig, axes)
    return fig
