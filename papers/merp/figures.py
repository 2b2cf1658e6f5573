"""The figures in the paper's layout, with the paper's axis ranges and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from flowloom import claims, drawing, fluid, measures, numbers, plots, schedules, shelf, style, traces, words
from flowloom.data import Run
from flowloom.panels import axis_unit, curves, metric_panel, metric_panels, swept_axis, swept_ticks
from flowloom.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = "ABC"
ARRIVALS = (0.0, 3.0, 0.0)
SIZES = (3.0, 3.0, 4.0)
POLICIES = {"srpt": "SRPT", "ps": "PS", "merp": "MERP"}
UNIT_MS = 7.2
"""One unit of time of table1.toml."""


def exact() -> dict[str, float]:
    """Table 1 as a fluid on one link: completion times and expansion ratios (Eqs. 1 and 3)."""
    found: dict[str, float] = {}
    for policy in POLICIES:
        finish = fluid(policy, 1.0, ARRIVALS, SIZES)["finish"]
        fct = [end - start for end, start in zip(finish, ARRIVALS, strict=True)]
        found |= {f"{policy}.fct.{name}": t for name, t in zip(NAMES, fct, strict=True)}
        found[f"{policy}.mean_fct"] = sum(fct) / len(fct)
        found[f"{policy}.max_er"] = max(t / size for t, size in zip(fct, SIZES, strict=True))
    return found


def table1(results: Results) -> Figure:
    """Fig. 1 as a fluid, and below it the same three flows at packet level."""
    fig = style.figure(3, 2, width=3.9, height=2.0)
    axes = style.panels(fig, 2, 3)
    for ax, (policy, title) in zip(axes, POLICIES.items(), strict=False):
        schedules.shares(ax, fluid(policy, 1.0, ARRIVALS, SIZES)["segments"], NAMES)
        ax.set_title(f"{title}, fluid")
    below = dict(zip(("pFabric", "MERP"), (axes[3], axes[5]), strict=True))
    for system, run in plots.one_per_system(results, None):
        packets = results.packets(None, {"point": run.point})
        named = plots.named_ports(results, run)
        spans: dict[str, list[tuple[int, float, float]]] = {}
        for bar in plots.bars({name: packets[name].to_pylist() for name in packets.column_names}):
            spans.setdefault(named[bar.port], []).append((bar.flow, bar.start * 1e-9 / UNIT_MS, bar.end * 1e-9 / UNIT_MS))
        shared = shared_link(spans)
        # Flows are numbered by their start: A, C, B. They come from h0, h1 and h2 in the order of their names.
        rows = results.flows(["flow_id", "src"], {"point": run.point}).to_pylist()
        names = {row["flow_id"]: NAMES[row["src"]] for row in rows if row["src"] < len(NAMES)}
        plots.gantt_panel(below[system], [(shared, spans[shared])], names, "units of 7.2 ms")
        below[system].set(xlim=(0, 10.4), title=f"{system}, packets")
    axes[4].remove()
    style.legend(fig, axes[:3])
    return fig


def shared_link(spans: Mapping[str, Sequence[tuple[int, float, float]]]) -> str:
    """The link that the most flows cross."""
    return max(spans, key=lambda name: (len({flow for flow, _, _ in spans[name]}), len(spans[name])))


@dataclass(frozen=True)
class Panel:
    """A panel against load: its metric and title, the range of the paper's axis, and the claims to print in the title."""

    metric: str
    title: str
    ends: tuple[float, float] | None = None
    claims: Sequence[str] = ()


def panels(results: Results, shown: Sequence[Panel], systems: Sequence[str] | None = None) -> Figure:
    """A row of panels, against load if the load is swept."""
    x = next((key for key in results.keys if key.endswith(".load")), swept_axis(results))
    at = {"system": list(systems)} if systems else None
    titles = {panel.metric: "\n".join([panel.title, *(printed(results, claim) for claim in panel.claims)]) for panel in shown}
    fig = metric_panels(results, titles, x, at, 4.6, 3.7)
    for ax, panel in zip(fig.axes, shown, strict=True):
        ax.title.set_fontsize(9)
        if panel.ends is not None:
            factor, _ = axis_unit(*curves(results, panel.metric, x, at))
            mark_axis(ax, panel.ends[0] / factor, panel.ends[1] / factor)
    return fig


def printed(results: Results, claim_id: str) -> str:
    """The paper's number and ours: "reduction at load 0.8: paper > 12 %, ours 14 % [11, 17]"."""
    claim = next(claim for claim in shelf.load("merp").claims if claim.id == claim_id)
    worst = claims.judge(claim, {claim.figure: results}).worst.found
    what = claim.system if claim.kind == "value" else claim.kind
    return f"{what} at {worst.where or 'load 0.8'}: paper {claim.printed}, ours {claims.text(claim, worst.estimate)}"


def mark_axis(ax: Axes, low: float, high: float) -> None:
    """Marks the ends of the paper's axis."""
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, max(top, 1.12 * high))
    for end in (low, high):
        if end > 0:
            ax.axhline(end, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
    ax.annotate(
        "paper's axis ends here", (0, high), (3, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
        fontsize=7.5, alpha=0.8,
    )  # fmt: skip


def fig5(results: Results) -> Figure:
    """Expansion ratios and tail FCT, mean size 1500 kB."""
    return versus(results, None, None, (0.4, 0.8), ("f5-max-er", "f5-ten-times"), ("f5-tail",))


def fig6(results: Results) -> Figure:
    """Expansion ratios and tail FCT, mean size 150 kB."""
    return versus(results, (0, 10), (0, 45), (0.02, 0.16), ("f6-max-er", "f6-fifteen"), ("f6-tail",))


Ends = tuple[float, float] | None


def versus(results: Results, p99: Ends, highest: Ends, fct: Ends, max_er: Sequence[str], tail: Sequence[str]) -> Figure:
    """The three panels of Figs. 5 and 6: MERP against pFabric, and the fluids of both orders in grey."""
    shown = [
        Panel("p99_er", "(a) 99th-percentile expansion ratio", p99),
        Panel("max_er", "(b) maximum expansion ratio", highest, max_er),
        Panel("p999_fct_s", "(c) 99.9th-percentile FCT", fct, tail),
    ]
    return panels(results, shown, [system for system in results.systems if system != "PDQ"])


def fig7(results: Results) -> Figure:
    """Average FCT of MERP, pFabric and TCP, and of PDQ, which the paper does not show; beside it, over that of pFabric."""
    fig = style.figure(2, 1, width=4.6, height=3.7)
    left, right = style.panels(fig, 1, 2)
    metric_panel(left, results, "mean_fct_s", load_key(results))
    left.set_title("\n".join(["average FCT", printed(results, "f7-gap")]), fontsize=9)
    factor, _ = axis_unit(*curves(results, "mean_fct_s", load_key(results)))
    mark_axis(left, 0.0, 0.1 / factor)
    over_base(right, results, "mean_fct_s", "pFabric", ("MERP", "PDQ", "ideal MERP", "ideal SRPT"))
    right.set(title="average FCT over pFabric's", ylabel="ratio")
    style.legend(fig, [left])
    return fig


def load_key(results: Results) -> str | None:
    """The swept load."""
    return next((key for key in results.keys if key.endswith(".load")), None)


def over_base(ax: Axes, results: Results, metric: str, base: str, systems: Sequence[str]) -> None:
    """A metric over that of one system, seed by seed, against load; systems look as in panels of all systems."""
    points = numbers.Points(results)
    shown = [base, *(system for system in systems if system in results.systems)]
    places = list(results.systems)
    ratios = numbers.relative(points.curves(metric, "load", shown), base)
    looks = drawing.looks([system in results.ideals for system in places])
    for system, found in ratios.items():
        at = [load for load in found if found[load]]
        estimates = [numbers.Estimate.of(list(found[load].values())) for load in at]
        look = looks[places.index(system)]
        ax.plot(at, [e.mean for e in estimates], **look, label=system)
        known = [(x, e) for x, e in zip(at, estimates, strict=True) if np.isfinite(e.low)]
        ax.fill_between(
            [x for x, _ in known], [e.low for _, e in known], [e.high for _, e in known], color=look["color"], alpha=0.15
        )
    ax.axhline(1.0, color=style.INK, linewidth=0.8)
    ax.set(xlabel="load")


def fig8(results: Results) -> Figure:
    """Impact of alpha."""
    shown = [Panel("p999_fct_s", "(a) 99.9th-percentile FCT", (0.03, 0.11)), Panel("drops", "(b) dropped packets, all ports")]
    return panels(results, shown)


def fig9(results: Results) -> Figure:
    """Impact of theta."""
    return panels(results, [Panel("p999_fct_s", "99.9th-percentile FCT", (0.03, 0.11))])


# Sections 5.1 and 6.2: route control.


def fig4(results: Results) -> Figure:
    """Utilisation of the two links from S3 to the spines."""
    chosen = [(run, traces.sampled(results, run, "port.utilisation")) for _, run in plots.one_per_system(results, None)]
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
    names = drawing.named_ports(results, run)
    one, two = (found.values[port] for port, name in names.items() if name.startswith("leaf0->spine"))
    return (one, two) if float(one.mean()) >= float(two.mean()) else (two, one)


def fig10(results: Results) -> Figure:
    """Mean FCT and mean expansion ratio against load."""
    return panels(results, [Panel("mean_fct_s", "(a) average FCT"), Panel("mean_er", "(b) average expansion ratio")])


def fig11(results: Results) -> Figure:
    """The distribution of FCTs at load 0.6, with lines at the paper's 100 and 200 ms and at 1 %."""
    fig = plots.fct_cdf(results, {"load": 0.6})
    tail = fig.axes[1]
    unit = 1e-3 if "(s)" in tail.get_xlabel() else 1.0
    for ms in (100, 200):
        tail.axvline(ms * unit, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
        tail.annotate(
            f"{ms} ms", (ms * unit, 1.0), (2, -9), xycoords=("data", "axes fraction"), textcoords="offset points", fontsize=7.5
        )
    tail.axhline(0.01, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
    tail.annotate("1 %", (0.0, 0.01), (2, 2), xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=7.5)
    return fig


def fig10_large(results: Results) -> Figure:
    """Fig. 10 with a mean size of 1500 kB."""
    return fig10(results)


def failure(results: Results) -> Figure:
    """One dead link from the start."""
    return fig10(results)


def failure_many(results: Results) -> Figure:
    """Several dead links."""
    fig = panels(results, [Panel("mean_fct_s", "average FCT, load 0.3"), Panel("mean_er", "average expansion ratio, load 0.3")])
    for ax in fig.axes:
        ax.set_xlabel("dead links")
    return fig


def failure_dynamic(results: Results) -> Figure:
    """A link that fails and comes back."""
    shown = [Panel("mean_fct_s", "average FCT"), Panel("p999_fct_s", "99.9th-percentile FCT"), Panel("timeouts", "timeouts")]
    return panels(results, shown)


# Section 6.3: switching between flows, and incast.

BIN_MS = 1.0


def received(results: Results, run: Run) -> tuple[drawing.Array, dict[int, drawing.Array], drawing.Array]:
    """The link to h0 in bins: the end of each bin in ms, the share of the link that each flow's DATA takes, and the total share."""
    port = next(port for port, name in drawing.named_ports(results, run).items() if name.endswith("->h0"))
    packets = results.packets(["port_id", "flow_id", "kind", "end_ps", "size_bytes", "dropped"], {"point": run.point})
    rows = [row for row in packets.to_pylist() if row["port_id"] == port and not row["dropped"]]
    data = [row for row in rows if row["kind"] == "data"]
    bins = int(max(row["end_ps"] for row in data) * 1e-9 / BIN_MS) + 1
    whole = 1e9 * BIN_MS * 1e-3 / 8  # bytes in a bin at 1 Gb/s

    def share(chosen: Sequence[Mapping[str, Any]]) -> drawing.Array:
        at = [min(int(row["end_ps"] * 1e-9 / BIN_MS), bins - 1) for row in chosen]
        return np.bincount(at, [row["size_bytes"] / whole for row in chosen], bins).astype(np.float64)

    flows = {flow: share([row for row in data if row["flow_id"] == flow]) for flow in sorted({row["flow_id"] for row in data})}
    return np.arange(1, bins + 1, dtype=np.float64) * BIN_MS, flows, share(rows)


def switching(results: Results) -> Figure:
    """Throughput of each flow, and utilisation of the shared link, in bins of 1 ms."""
    chosen = plots.one_per_system(results, None)
    fig = style.figure(1, len(chosen), width=7.5, height=2.0)
    axes = style.panels(fig, len(chosen), 1)
    for ax, (system, run) in zip(axes, chosen, strict=True):
        times, flows, everything = received(results, run)
        starts = times - BIN_MS
        for i, (flow, values) in enumerate(flows.items()):
            ax.plot(starts, values, drawstyle="steps-post", **style.dashes(i) | {"linewidth": 1.2}, label=f"flow {flow + 1}")
        ax.plot(starts, everything, drawstyle="steps-post", color=style.GREY, linewidth=0.8, label="link")
        ax.set(title=system, xlabel="time (ms)", ylabel="share of the link", ylim=(0, 1.08), xlim=(0, max(times[-1], 45)))
    style.legend(fig, axes)
    return fig


def incast(results: Results) -> Figure:
    """Time until the last answer has arrived, over that of all bytes at line rate, against the number of senders."""
    points = numbers.Points(results)
    fig = style.figure(3, 1, width=4.6, height=3.7)
    axes = style.panels(fig, 1, 3)
    above = []
    drawn = {system: found for system, found in points.curves("max_fct_s", "senders").items() if found}
    for i, (system, found) in enumerate(drawn.items()):
        middle = [numbers.average(sample) / (senders * ANSWER_S) for senders, sample in found.items()]
        axes[0].plot(list(found), middle, **style.line(i))
        if max(middle) > TOP:
            above.append(f"{system} takes up to {max(middle):.0f} times as long")
    axes[0].set_ylim(0.98, TOP)
    style.note(fig, "; ".join(above))
    if drawn:
        swept_ticks(axes[0], points.numbers("senders"), points.numbers("senders"))
    axes[0].set(title="time until the last answer has arrived", xlabel="senders", ylabel="over the bytes at 1 Gb/s")
    x = next((key for key in results.keys if key.endswith(".senders")), None)
    for ax, (metric, title) in zip(axes[1:], {"timeouts": "timeouts", "drops": "dropped packets"}.items(), strict=True):
        metric_panel(ax, results, metric, x)
        ax.set_title(title)
    style.legend(fig, axes[1:])
    return fig


TOP = 1.5
"""Where the panel ends."""
ANSWER_S = (64_000 + 44 * 40) * 8e-9
"""64 kB in 44 packets, on a wire of 1 Gb/s."""


def measured(results: Mapping[str, Results]) -> dict[str, numbers.Sample]:
    """The measurements for claims that no metric of a run covers, by seed."""
    found: dict[str, numbers.Sample] = {}
    if "fig4" in results:
        for run in results["fig4"].select({"system": "ECMP, MERP hosts"}):
            series = traces.sampled(results["fig4"], run, "port.utilisation")
            if series is not None:
                # The first sample contains the start of the long flow.
                long, other = (values[1:] for values in spine_links(results["fig4"], run, series))
                found.setdefault("fig4.long.mean", {})[run.seed] = float(long.mean())
                found.setdefault("fig4.long.sd", {})[run.seed] = float(long.std())
                found.setdefault("fig4.other.sd", {})[run.seed] = float(other.std())
    if "switching" in results:
        for system, run in plots.one_per_system(results["switching"], None):
            _, flows, everything = received(results["switching"], run)
            shared = sum(sum(values[i] > 0.05 for values in flows.values()) > 1 for i in range(len(everything)))
            # Without the first bin, which has the handshake, and the last, in which the flows end.
            found[f"switching.{system}.use"] = {run.seed: float(everything[1:-1].mean())}
            found[f"switching.{system}.shared"] = {run.seed: shared / len(everything)}
    for figure in ("convergence", "convergence_tree"):
        if figure in results:
            found |= ends(figure, results[figure])
    if "sens_losses" in results:
        found |= losses(results["sens_losses"])
    return found


def ends(figure: str, results: Results) -> dict[str, numbers.Sample]:
    """The excess over the fluid of the figures' setting, and where packets and delays are smallest."""
    points = numbers.Points(results)
    sizes, delays = points.values("mean"), points.values("delay")
    found: dict[str, numbers.Sample] = {}
    for system in points.systems:
        if system != FLUID:
            found[f"{figure}.{system}.near"] = excess(results, system, mean=sizes[0], delay=delays[-1])
            found[f"{figure}.{system}.far"] = excess(results, system, mean=sizes[-1], delay=delays[0])
    return found


WORST = 10
"""The flows that `losses` looks at: those with the largest expansion ratios."""


def losses(results: Results) -> dict[str, numbers.Sample]:
    """Data packets dropped and timeouts of a flow, mean over the ten flows with the largest expansion ratios, by system."""
    found: dict[str, numbers.Sample] = {}
    for run in results.runs:
        if run.system in results.ideals:
            continue
        fct, size, drops, timeouts = measures.flows(results, run, "fct_ps", "size_bytes", "drops", "timeouts")
        worst = np.argsort(-(fct / size))[:WORST]
        found.setdefault(f"sens_losses.{run.system}.drops", {})[run.seed] = float(drops[worst].mean())
        found.setdefault(f"sens_losses.{run.system}.timeouts", {})[run.seed] = float(timeouts[worst].mean())
    return found


# What the paper has not: each rule by itself, and packets against the fluid.


def ablation(results: Results) -> Figure:
    """The letter of the algorithms, then one rule more after the other, on one tree."""
    return rules(results)


def ablation_fat(results: Results) -> Figure:
    """The same on a fat tree."""
    return rules(results)


def rules(results: Results) -> Figure:
    """A row for each system and a panel for each load and metric."""
    loads = numbers.Points(results).numbers("load")
    shown = {"mean_er": "average expansion ratio", "max_er": "maximum expansion ratio", "unfinished": "flows without an end"}
    fig = style.figure(len(shown), len(loads), width=4.2, height=3.9)
    axes = style.panels(fig, len(loads), len(shown))
    for i, (load, (metric, title)) in enumerate((load, one) for load in loads for one in shown.items()):
        metric_panel(axes[i], results, metric, None, {"load": load})
        axes[i].set_title(f"{title}, load {load:g}")
        axes[i].tick_params(labelleft=i % len(shown) == 0)
    return fig


FLUID = "ideal MERP"


def excess(results: Results, system: str, **at: object) -> numbers.Sample:
    """The mean expansion ratio of a system over that of the fluid of the same flows, by seed."""
    points = numbers.Points(results)
    return numbers.quotient(points.sample(system, "mean_er", **at), points.sample(FLUID, "mean_er", **at))


def convergence(results: Results) -> Figure:
    """The mean expansion ratio over that of the fluid, against the mean size, for three delays, on a fat tree."""
    points = numbers.Points(results)
    systems = [system for system in points.systems if system != FLUID]
    sizes, delays = points.values("mean"), points.values("delay")
    fig = style.figure(len(systems), 1, width=3.9, height=3.2)
    axes = style.panels(fig, 1, len(systems))
    top = 1.1
    for ax, system in zip(axes, systems, strict=True):
        for i, delay in enumerate(delays):
            found = [list(excess(results, system, mean=size, delay=delay).values()) for size in sizes]
            middle = np.array([np.mean(one) if one else np.nan for one in found])
            least, most = (np.array([how(one, default=np.nan) for one in found]) for how in (min, max))
            look = style.line(i)
            ax.errorbar(
                range(len(sizes)), middle, [middle - least, most - middle], **look, capsize=2, label=f"{words.number(delay)} a link"
            )
            top = max(top, float(np.nanmax(most)))
        ax.axhline(1.0, color=style.GREY, linewidth=0.9)
        ax.axhline(1.1, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
        ax.set_xticks(range(len(sizes)), [words.number(size) for size in sizes])
        ax.set(title=system, xlabel="mean flow size")
    axes[0].set_ylabel("mean expansion ratio over the fluid's")
    for ax in axes:
        ax.set_ylim(0.9, 1.03 * top)
    style.legend(fig, axes)
    style.note(fig, "means over seeds and their range; dotted: a tenth above the fluid")
    return fig


def convergence_tree(results: Results) -> Figure:
    """The same on one tree."""
    return convergence(results)


def sens_losses(results: Results) -> Figure:
    """What the largest expansion ratio comes from, shape 1.05."""
    return plots.metrics(results, ("max_er", "p99_er", "timeouts", "retx_packets"))


SENSITIVITY = ("max_er", "p999_fct_s", "mean_fct_s")


def sens_shape(results: Results) -> Figure:
    """Shape of the Pareto sizes."""
    return plots.metrics(results, SENSITIVITY)


def sens_load(results: Results) -> Figure:
    """Load measured at the hosts."""
    return plots.metrics(results, SENSITIVITY)


def sens_systems(results: Results) -> Figure:
    """Settings that the paper leaves open."""
    return plots.metrics(results, (*SENSITIVITY, "timeouts"))


def sens_literal(results: Results) -> Figure:
    """MERP by the letter of the paper."""
    return plots.metrics(results, ("max_er", "mean_fct_s", "unfinished"))
