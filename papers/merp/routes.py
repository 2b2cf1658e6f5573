"""Sections 5.1 and 6.2: route control."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.figures import drawing, style, traces
from flowloom.figures.drawing import Array
from flowloom.figures.kinds import fct_cdf
from flowloom.figures.panels import metric_panel
from flowloom.papers import measures
from flowloom.runs import numbers
from flowloom.runs.data import Data, Run, named_ports

from .loads import Panel, load_key, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def fig4(results: Results) -> Figure:
    """Utilisation of the two links from S3 to the spines."""
    chosen = [(run, traces.sampled(results, run, "port.utilisation")) for _, run in drawing.one_per_system(results, None)]
    fig = style.figure(1, len(chosen), width=7.5, height=2.3)
    axes = style.panels(fig, len(chosen), 1)
    for ax, (run, found) in zip(axes, chosen, strict=True):
        if found is not None:
            named = zip(spine_links(results, run, found), ("long flow's link", "other link"), strict=True)
            for i, (values, label) in enumerate(named):
                ax.plot(found.times, values, **style.dashes(i) | {"linewidth": 1.2}, label=label)
        ax.set(title=run.system, xlabel="time (ms)", ylabel="utilisation", ylim=(0, 1.2))
    style.legend(fig, axes)
    return fig


def spine_links(results: Results, run: Run, found: traces.Series) -> tuple[drawing.Array, drawing.Array]:
    """The utilisation of the busier link, which carries the long flow, and of the other link."""
    names = named_ports(results, run)
    one, two = (found.values[port] for port, name in names.items() if name.startswith("leaf0->spine"))
    return (one, two) if float(one.mean()) >= float(two.mean()) else (two, one)


def link_use(results: Results) -> dict[str, numbers.Sample]:
    """The means and standard deviations of both links' utilisation in Fig. 4."""
    found: dict[str, numbers.Sample] = {"fig4.long.mean": {}, "fig4.long.sd": {}, "fig4.other.sd": {}}
    for run in results.select({"system": "ECMP, MERP hosts"}):
        series = traces.sampled(results, run, "port.utilisation")
        if series is not None:
            # The first sample contains the start of the long flow.
            long, other = (values[1:] for values in spine_links(results, run, series))
            found["fig4.long.mean"][run.seed] = float(long.mean())
            found["fig4.long.sd"][run.seed] = float(long.std())
            found["fig4.other.sd"][run.seed] = float(other.std())
    return {name: sample for name, sample in found.items() if sample}


SHOWN_LOADS = (0.6, 0.8)
"""The loads at which the number of flows in the network is drawn over time."""


def fig10(results: Results) -> Figure:
    """Mean FCT and mean expansion ratio against load; below, the flows in the network over time."""
    loads = [load for load in SHOWN_LOADS if load in numbers.Points(results).numbers("load")]
    fig = style.figure(2, 2, width=5.2, height=3.3)
    axes = style.panels(fig, 2, 2)
    for ax, (metric, title) in zip(
        axes, {"mean_fct_s": "(a) average FCT", "mean_er": "(b) average expansion ratio"}.items(), strict=False
    ):
        metric_panel(ax, results, metric, load_key(results))
        ax.set_title(title)
    growing = {load: flow_panel(ax, results, load) for ax, load in zip(axes[2:], loads, strict=False)}
    for ax in axes[2 + len(loads) :]:
        ax.remove()
    style.legend(fig, axes[:2])
    style.note(
        fig,
        "; ".join(f"at load {load:g} still growing when arrivals end: {', '.join(who)}" for load, who in growing.items() if who),
    )
    return fig


def in_network(results: Data, run: Run) -> tuple[Array, Array]:
    """Times of arrivals in s, sorted, and the number of flows in the network at each, the one that arrives included."""
    start, finish = measures.flows(results, run, "start_ps", "finish_ps")
    start = np.sort(start)
    gone = np.searchsorted(np.sort(finish[~np.isnan(finish)]), start, side="right")
    return start * 1e-12, np.arange(1.0, len(start) + 1) - gone


GROWS = 1.5
"""The number of flows grows if its mean in the last quarter of the arrivals exceeds that in the second by this factor."""


def flow_panel(ax: Axes, results: Results, load: float) -> list[str]:
    """One panel: the number of flows in the network while flows arrive, first seed. Returns the systems in which it grows."""
    growing = []
    looks = dict(zip(results.systems, drawing.looks([system in results.ideals for system in results.systems]), strict=True))
    for system, run in drawing.one_per_system(results, {"load": load}):
        times, flows = in_network(results, run)
        quarter = max(len(flows) // 4, 1)
        if flows[-quarter:].mean() > GROWS * flows[quarter : 2 * quarter].mean():
            growing.append(system)
        shown = slice(None, None, max(len(times) // 300, 1))
        line = {key: value for key, value in looks[system].items() if key not in ("marker", "markersize")}
        ax.plot(times[shown], flows[shown], **line | {"linewidth": 1.0}, label=system)
    style.log_axis(ax, "y")
    ax.set(title=f"flows in the network, load {load:g}, first seed", xlabel="time (s)", ylabel="flows", xlim=(0, None))
    return growing


def backlogs(results: Results) -> dict[str, numbers.Sample]:
    """The most flows that are in the network at once at any load, by seed. No switch has more than these."""

    def most(data: Data, run: Run) -> float:
        return float(in_network(data, run)[1].max())

    points = numbers.Points(results)
    of = [points.sample("MERP", most, load=load) for load in points.numbers("load")]
    return {"fig10.MERP.flows": numbers.combined(of, max)}


def fig11(results: Results) -> Figure:
    """The distribution of FCTs at load 0.6, with lines at the paper's 100 and 200 ms and at 1 %."""
    fig = fct_cdf.draw(results, {"load": 0.6})
    tail = fig.axes[1]
    unit = 1e-3 if "(s)" in tail.get_xlabel() else 1.0
    for ms, side in ((100, "right"), (200, "left")):
        tail.axvline(ms * unit, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
        tail.annotate(
            f"{ms} ms", (ms * unit, 1.0), (-2 if side == "right" else 2, -9), ha=side, xycoords=("data", "axes fraction"),
            textcoords="offset points", fontsize=7.5,
        )  # fmt: skip
    tail.axhline(0.01, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
    tail.annotate("1 %", (0.0, 0.01), (2, 2), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=7.5)
    return fig


def fig10_large(results: Results) -> Figure:
    """Fig. 10 with a mean size of 1500 kB."""
    return fig10(results)


def failure(results: Results) -> Figure:
    """One dead link from the start."""
    return panels(results, [Panel("mean_fct_s", "average FCT"), Panel("mean_er", "average expansion ratio")])


# A link that fails and comes back: the same flows with and without the failure.

BIN_MS = 100.0
"""The flows of a bin start within it."""


def dead(results: Results) -> tuple[float, float] | None:
    """Returns the times in ms between which the link of `failure_dynamic` is dead; `None` without a manifest."""
    times = [time for time, _ in drawing.changes(results, results.runs[0])]
    return (times[0], times[1]) if len(times) == 2 else None


def paired(results: Results, system: str, load: float) -> dict[int, tuple[Array, Array, Array]]:
    """Starts in ms, and FCTs with and without the failure, of the same flows, by seed; Fig. 10 has the runs without."""
    whole = measures.results_of(results, "fig10")
    found = {}
    for seed, (data, run) in {run.seed: (data, run) for data, run in numbers.Points(results).runs(system, load=load)}.items():
        others = (
            [] if whole is None else [other for _, other in numbers.Points(whole).runs(system, load=load) if other.seed == seed]
        )
        if whole is None or not others:
            continue
        start, size, fct = measures.flows(data, run, "start_ps", "size_bytes", "fct_ps")
        start_there, size_there, fct_there = measures.flows(whole, others[0], "start_ps", "size_bytes", "fct_ps")
        assert np.array_equal(start, start_there) and np.array_equal(size, size_there), "both scenarios serve the same flows"
        found[seed] = (start * 1e-9, fct, fct_there)
    return found


PAIRED_LOADS = (0.4, 0.6)
"""The loads at which flows are drawn with and without the failure."""


def failure_dynamic(results: Results) -> Figure:
    """A link that fails and comes back: metrics against load; below, FCTs over those of the same flows without a failure."""
    fig = style.figure(2, 2, width=5.2, height=3.3)
    axes = style.panels(fig, 2, 2)
    for ax, (metric, title) in zip(axes, {"mean_fct_s": "average FCT", "timeouts": "timeouts"}.items(), strict=False):
        metric_panel(ax, results, metric, load_key(results))
        ax.set_title(title)
    span = dead(results)
    loads = [load for load in PAIRED_LOADS if load in numbers.Points(results).numbers("load")]
    for ax, load in zip(axes[2:], loads, strict=False):
        for i, system in enumerate(results.systems):
            edges, ratio = over_whole(results, system, load)
            if len(ratio):
                look = {key: value for key, value in style.line(i).items() if key not in ("marker", "markersize")}
                ax.stairs(ratio, edges * 1e-3, baseline=None, color=look["color"], linestyle=look["linestyle"], linewidth=1.2)
        if span is not None:
            ax.axvspan(span[0] * 1e-3, span[1] * 1e-3, color=style.GREY, alpha=0.2, linewidth=0)
        ax.axhline(1.0, color=style.INK, linewidth=0.8)
        ax.set_ylim(0.0, None)
        ax.set(title=f"FCT over that without a failure, load {load:g}", xlabel="start of the flows (s)", ylabel="ratio of means")
    for ax in axes[2 + len(loads) :]:
        ax.remove()
    style.legend(fig, axes[:2])
    style.note(fig, "grey: the link is dead; flows that start within 0.1 s of each other, all seeds")
    return fig


def over_whole(results: Results, system: str, load: float) -> tuple[Array, Array]:
    """Edges of bins in ms, and the mean FCT of the flows that start in each over that of the same flows without a failure."""
    found = list(paired(results, system, load).values())
    if not found:
        return np.zeros(1), np.zeros(0)
    start, fct, whole = (np.concatenate(column) for column in zip(*found, strict=True))
    end = min(float(starts.max()) for starts, _, _ in found)
    edges = np.arange(0.0, end - end % BIN_MS + BIN_MS / 2, BIN_MS)
    with_failure, without = (np.histogram(start, edges, weights=values)[0] for values in (fct, whole))
    return edges, np.divide(with_failure, without, out=np.full(len(without), np.nan), where=without > 0)


RECOVERY_LOAD = 0.4
"""The load at which recovery is judged: no system is overloaded there without a failure."""


def recovery(results: Results) -> dict[str, numbers.Sample]:
    """Mean FCT over that of the same flows without a failure, of flows that start while the link is dead, and after, by seed."""
    found: dict[str, numbers.Sample] = {}
    span = dead(results)
    if span is None:
        return found
    for system in results.systems:
        for seed, (start, fct, whole) in paired(results, system, RECOVERY_LOAD).items():
            while_dead, after = (start >= span[0]) & (start < span[1]), start >= span[1]
            for name, chosen in (("during", while_dead), ("after", after)):
                if chosen.any():
                    found.setdefault(f"failure_dynamic.{system}.{name}", {})[seed] = float(
                        fct[chosen].mean() / whole[chosen].mean()
                    )
    return found
