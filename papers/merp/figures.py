"""The figures in the paper's layout, with the paper's axis ranges and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from flowloom import fluid
from flowloom.api.results import Results
from flowloom.figures import drawing, schedules, style, traces
from flowloom.figures.panels import axis_unit, curves, metric_panel, range_panel, swept_ticks
from flowloom.papers import measures
from flowloom.runs import numbers
from flowloom.runs.data import Data, Run, named_ports

from .additions import (
    ablation,
    ablation_fat,
    convergence,
    convergence_acks,
    convergence_acks_fat,
    convergence_tree,
    ends,
    losses,
    sens_load,
    sens_losses,
    sens_systems,
    without_acks,
)  # fmt: skip
from .fat import cause, fat_tree, ours, ours_tree
from .loads import Panel, load_key, mark_axis, over_base, panels, printed
from .routes import backlogs, failure, failure_dynamic, fig4, fig10, fig10_large, fig11, link_use, recovery

if TYPE_CHECKING:
    from flowloom.papers.pages import Findings
    from matplotlib.figure import Figure

__all__ = [
    "ablation", "ablation_fat", "cause", "convergence", "convergence_acks", "convergence_acks_fat", "convergence_tree",
    "failure", "failure_dynamic", "fig4", "fig10", "fig10_large", "fig11", "ours", "ours_tree",
    "sens_load", "sens_losses", "sens_systems",
]  # fmt: skip

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
    # Section 4.4: 12 bytes a flow in the smallest memory of a switch.
    return found | {"table.flows": float(4 * 2**20 // 12)}


PROMISES = {
    "f5-max-er": "max. expansion ratio below pFabric's, 1500 kB",
    "f6-max-er": "max. expansion ratio below pFabric's, 150 kB",
    "f5-tail": "99.9th-percentile FCT below pFabric's, 1500 kB",
    "f6-tail": "99.9th-percentile FCT below pFabric's, 150 kB",
    "f6-rto-tail": "and with a timeout of 1.5 ms",
    "f10-fct-ecmp": "mean FCT below ECMP's with one hash, worst load",
    "f10-fct-conga10": "mean FCT below CONGA's, worst load",
}
"""The reductions that the paper promises, and the system that each is compared with."""


def promise(findings: Findings) -> Figure:
    """The reductions that the paper promises, in per cent, and ours with their 95 % intervals."""
    fig = style.figure(1, 1, width=6.4, height=2.9)
    (ax,) = style.panels(fig, 1, 1)
    claims = {claim.id: claim for claim in findings.paper.claims}
    for i, name in enumerate(PROMISES):
        low, high = claims[name].bounds
        middle = low if not np.isfinite(high) else (low + high) / 2
        ax.plot([100 * middle], [i], "|", color=style.INK, markersize=14, markeredgewidth=2, label="paper" if i == 0 else None)
        found = [one.estimate for one in findings.found.get(name, ()) if one.estimate is not None]
        worst = min(found, key=lambda estimate: estimate.mean, default=None)
        if worst is not None:
            if np.isfinite(worst.low):
                ax.plot([100 * worst.low, 100 * worst.high], [i, i], color=style.COLORS[0], linewidth=1.5)
            ax.plot([100 * worst.mean], [i], "o", color=style.COLORS[0], label="ours" if i == 0 else None)
    ax.axvline(0.0, color=style.GREY, linewidth=0.9)
    ax.set_yticks(range(len(PROMISES)), list(PROMISES.values()))
    # Linear up to 100 %: the reductions stay apart although one is far below zero.
    ax.set_xscale("symlog", linthresh=100.0)
    ax.set_xticks([-1000, -100, -50, 0, 50, 100], ["−1000", "−100", "−50", "0", "50", "100"])
    ax.set(xlabel="reduction by MERP (%)", ylim=(len(PROMISES) - 0.5, -0.5), xlim=(-1500, 100))
    style.legend(fig, [ax])
    return fig


def table1(results: Results) -> Figure:
    """Fig. 1 as a fluid, and below it the same three flows at packet level."""
    fig = style.figure(3, 2, width=3.9, height=2.0)
    axes = style.panels(fig, 2, 3)
    for ax, (policy, title) in zip(axes, POLICIES.items(), strict=False):
        schedules.shares(ax, fluid(policy, 1.0, ARRIVALS, SIZES)["segments"], NAMES)
        ax.set_title(f"{title}, fluid")
    below = dict(zip(("pFabric", "MERP"), (axes[3], axes[5]), strict=True))
    for system, run in drawing.one_per_system(results, None):
        packets = results.packets(None, {"point": run.point})
        named = named_ports(results, run)
        spans: dict[str, list[tuple[int, float, float]]] = {}
        for bar in traces.bars({name: packets[name].to_pylist() for name in packets.column_names}):
            spans.setdefault(named[bar.port], []).append((bar.flow, bar.start * 1e-9 / UNIT_MS, bar.end * 1e-9 / UNIT_MS))
        shared = shared_link(spans)
        # Flows are numbered by their start: A, C, B. They come from h0, h1 and h2 in the order of their names.
        rows = results.flows(["flow_id", "src"], {"point": run.point}).to_pylist()
        names = {row["flow_id"]: NAMES[row["src"]] for row in rows if row["src"] < len(NAMES)}
        traces.gantt_panel(below[system], [(shared, spans[shared])], names, "units of 7.2 ms")
        below[system].set(xlim=(0, 10.4), title=f"{system}, packets")
    axes[4].remove()
    style.legend(fig, axes[:3])
    return fig


def shared_link(spans: Mapping[str, Sequence[tuple[int, float, float]]]) -> str:
    """Returns the link that the most flows cross."""
    return max(spans, key=lambda name: (len({flow for flow, _, _ in spans[name]}), len(spans[name])))


def fig5(results: Results) -> Figure:
    """Expansion ratios and tail FCT, mean size 1500 kB."""
    return versus(results, None, None, (0.4, 0.8), ("f5-max-er", "f5-ten-times"), ("f5-tail",))


def today(results: Results) -> Figure:
    """Draws MERP and pFabric next to later transports, by load."""
    return panels(results, [Panel("mean_slowdown", ""), Panel("p99_er", ""), Panel("max_er", "")])


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
    return panels(results, shown)


def fig7(results: Results) -> Figure:
    """Draws the average FCT of MERP, pFabric, TCP and PDQ (not in the paper); next to it, divided by that of pFabric."""
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


def largest_er(results: Data, run: Run) -> float:
    """Returns the mean expansion ratio of the largest hundredth of the flows."""
    size, ratio = measures.flows(results, run, "size_bytes", "expansion_ratio")
    return measures.statistic(ratio[np.argsort(-size, kind="stable")[: max(len(size) // 100, 1)]])


PROBES = ("", ", probe each RTT")
"""The suffixes of Fig. 8's systems: as printed, and with a probe at least each round trip."""


def data_drops(results: Data, run: Run) -> float:
    """Returns the DATA packets dropped per 1000 sent."""
    return 1e3 * measures.share(*measures.totals(measures.flows(results, run, "drops", "tx_packets")))


def other_drops(results: Data, run: Run) -> float:
    """Returns the packets without payload that were dropped, per flow: probes, ACKs, SYNs and BOOSTs."""
    (data,) = measures.flows(results, run, "drops")
    return ((results.metric(run, "drops") or 0.0) - float(np.nansum(data))) / len(data)


def fig8(results: Results) -> Figure:
    """Draws the impact of alpha on the tail and on drops; above as printed, below with a probe at least each round trip."""
    points = numbers.Points(results)
    fig = style.figure(3, len(PROBES), width=4.4, height=3.3)
    axes = style.panels(fig, len(PROBES), 3)
    shown: Mapping[str, numbers.Measure] = {
        "DATA packets dropped of 1000 sent": data_drops,
        "other packets dropped a flow": other_drops,
    }
    for row, suffix in enumerate(PROBES):
        systems = [system for system in points.systems if system.endswith(PROBES[1]) == bool(suffix)]
        tail, *rest = axes[3 * row : 3 * row + 3]
        metric_panel(tail, results, "p999_fct_s", load_key(results), {"system": systems})
        factor, _ = axis_unit(*curves(results, "p999_fct_s", load_key(results), {"system": systems}))
        mark_axis(tail, 0.03 / factor, 0.11 / factor)
        tail.set_title("99.9th-percentile FCT" + suffix, fontsize=9)
        for ax, (title, what) in zip(rest, shown.items(), strict=True):
            found = points.curves(what, "load", systems)
            drawn = range_panel(ax, found, {system: i for i, system in enumerate(systems)})
            least = min((float(v) for _, middle, _ in drawn for v in middle if v > 0), default=1.0)
            style.log_axis(ax, "y", linear_to=10 ** np.floor(np.log10(least)))
            ax.set(xlabel="load", ylim=(0, None))
            ax.set_title(title + suffix, fontsize=9)
    style.legend(fig, [axes[0]])
    return fig


def fig9(results: Results) -> Figure:
    """Draws the impact of theta, at alpha 0.9: the tail, and next to it the tail divided by that of theta 0.8."""
    fig = style.figure(2, 1, width=4.6, height=3.5)
    left, right = style.panels(fig, 1, 2)
    metric_panel(left, results, "p999_fct_s", load_key(results))
    left.set_title("99.9th-percentile FCT")
    over_base(right, results, "p999_fct_s", "theta 0.8", [system for system in results.systems if system != "theta 0.8"])
    right.set(title="over that of theta 0.8, seed by seed", ylabel="ratio")
    style.legend(fig, [left])
    return fig


# Switching between flows, and incast.

BIN_MS = 1.0


def received(results: Results, run: Run) -> tuple[drawing.Array, dict[int, drawing.Array], drawing.Array]:
    """The link to h0 in bins: the end of each bin in ms, the share of the link that each flow's DATA takes, and the total share."""
    port = next(port for port, name in named_ports(results, run).items() if name.endswith("->h0"))
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
    chosen = drawing.one_per_system(results, None)
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
    """Draws the time until the last answer has arrived, divided by that of all bytes at line rate, over the number of senders."""
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
        found |= link_use(results["fig4"])
    if "fig5" in results:
        points = numbers.Points(results["fig5"])
        merp, pfabric = (points.sample(system, largest_er, load=0.8) for system in ("MERP", "pFabric"))
        found["fig5.largest"] = {seed: 1 - ratio for seed, ratio in numbers.quotient(merp, pfabric).items()}
    if "fig8" in results:
        points = numbers.Points(results["fig8"])
        drops = {system: points.sample(system, data_drops, load=0.8) for system in points.systems}
        for system, sample in drops.items():
            found[f"fig8.{system}.data"] = sample
            found[f"fig8.{system}.data_more"] = numbers.minus(sample, drops["alpha 0.999" + PROBES[system.endswith(PROBES[1])]])
    if "fig10" in results:
        found |= backlogs(results["fig10"])
    found |= fat_tree(results)
    if "failure_dynamic" in results:
        found |= recovery(results["failure_dynamic"])
    if "switching" in results:
        for system, run in drawing.one_per_system(results["switching"], None):
            _, flows, everything = received(results["switching"], run)
            shared = sum(sum(values[i] > 0.05 for values in flows.values()) > 1 for i in range(len(everything)))
            # Without the first bin, which has the handshake, and the last, in which the flows end.
            found[f"switching.{system}.use"] = {run.seed: float(everything[1:-1].mean())}
            found[f"switching.{system}.shared"] = {run.seed: shared / len(everything)}
    for figure in ("convergence", "convergence_tree"):
        if figure in results:
            found |= ends(figure, results[figure])
    for figure in ("convergence_acks", "convergence_acks_fat"):
        if figure in results:
            found[f"{figure}.fluid"] = without_acks(results[figure])
    found = {name: sample for name, sample in found.items() if sample}
    if "sens_losses" in results:
        found |= losses(results["sens_losses"])
    return found
