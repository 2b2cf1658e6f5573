"""The figures in the paper's layout, with the paper's axis ranges and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from flowloom import claims, drawing, fluid, numbers, plots, schedules, shelf, style, traces
from flowloom.data import Run
from flowloom.panels import axis_unit, curves, metric_panels, swept_axis
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
    """The three panels of Figs. 5 and 6: MERP against pFabric, and PDQ, which the paper does not show."""
    shown = [
        Panel("p99_er", "(a) 99th-percentile expansion ratio", p99),
        Panel("max_er", "(b) maximum expansion ratio", highest, max_er),
        Panel("p999_fct_s", "(c) 99.9th-percentile FCT", fct, tail),
    ]
    return panels(results, shown, ("MERP", "pFabric", "PDQ"))


def fig7(results: Results) -> Figure:
    """Average FCT of MERP, pFabric and TCP, and of PDQ, which the paper does not show."""
    return panels(results, [Panel("mean_fct_s", "MERP against pFabric", (0, 0.1), ("f7-gap",))])


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
    tail.axhline(0.01, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
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
        for i, (flow, values) in enumerate(flows.items()):
            ax.plot(times, values, drawstyle="steps-pre", **style.dashes(i) | {"linewidth": 1.2}, label=f"flow {flow + 1}")
        ax.plot(times, everything, drawstyle="steps-pre", color=style.GREY, linewidth=0.8, label="link")
        ax.set(title=system, xlabel="time (ms)", ylabel="share of the link", ylim=(0, 1.08), xlim=(0, max(times[-1], 45)))
    style.legend(fig, axes)
    return fig


def incast(results: Results) -> Figure:
    """Time until the last answer has arrived, against the number of senders."""
    shown = [
        Panel("max_fct_s", "time until the last answer has arrived"),
        Panel("timeouts", "timeouts"),
        Panel("drops", "dropped packets"),
    ]
    return panels(results, shown)


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
    return found


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
