"""The paper's figures in its layout: its panels, where its axes end, and the numbers it prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flowloom import claims, fluid, papers, plots, style
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
    """Fig. 1 as a fluid, and below it the same three flows packet by packet."""
    fig = style.figure(3, 2, width=3.9, height=2.0)
    axes = style.panels(fig, 2, 3)
    for ax, (policy, title) in zip(axes, POLICIES.items(), strict=False):
        schedule(ax, fluid(policy, 1.0, ARRIVALS, SIZES)["segments"])
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
    """The link that most flows cross."""
    return max(spans, key=lambda name: (len({flow for flow, _, _ in spans[name]}), len(spans[name])))


def schedule(ax: Axes, segments: Sequence[tuple[int, float, float, float]]) -> None:
    """Who gets which share of the link when."""
    labelled = set()
    for flow, start, end, rate in sorted(segments):
        base = sum(r for f, s, e, r in segments if f < flow and s < end and start < e)
        name = NAMES[flow]
        label = name if name not in labelled else None
        labelled.add(name)
        ax.bar(
            start, rate, end - start, bottom=base, align="edge", color=style.COLORS[flow], hatch=style.HATCHES[flow],
            edgecolor="white", linewidth=0.6, label=label,
        )  # fmt: skip
        if (end - start) * rate > 0.5:
            box = {"facecolor": style.COLORS[flow], "edgecolor": "none", "pad": 1.5}
            ax.text((start + end) / 2, base + rate / 2, name, ha="center", va="center", color="white", bbox=box)
    ax.set(xlim=(0, 10.4), ylim=(0, 1.05), xlabel="time (units)", ylabel="share of the link", yticks=(0, 0.5, 1))


@dataclass(frozen=True)
class Panel:
    """A panel against load: its metric and title, where the paper's axis begins and ends, and the claims that it shows."""

    metric: str
    title: str
    ends: tuple[float, float] | None = None
    claims: Sequence[str] = ()


def panels(results: Results, shown: Sequence[Panel], systems: Sequence[str] | None = None) -> Figure:
    """A row of panels."""
    fig = style.figure(len(shown), 1, width=4.6, height=3.7)
    axes = style.panels(fig, 1, len(shown))
    x = next((key for key in results.keys if key.endswith(".load")), None)
    for ax, panel in zip(axes, shown, strict=True):
        factor = plots.metric_panel(ax, results, panel.metric, x, {"system": list(systems)} if systems else None)
        ax.set_title("\n".join([panel.title, *(printed(results, claim) for claim in panel.claims)]), fontsize=9)
        if panel.ends is not None:
            mark_axis(ax, panel.ends[0] / factor, panel.ends[1] / factor)
    style.legend(fig, axes)
    return fig


def printed(results: Results, claim_id: str) -> str:
    """The paper's number and ours: "reduction at load 0.8: paper > 12 %, ours 14 % [11, 17]"."""
    claim = next(claim for claim in papers.load("merp").claims if claim.id == claim_id)
    found = claims.judge(claim, {claim.figure: results}).worst
    what = claim.system if claim.kind == "value" else claim.kind
    return f"{what} at {found.where or 'load 0.8'}: paper {claim.printed}, ours {claims.text(claim, found.estimate)}"


def mark_axis(ax: Axes, low: float, high: float) -> None:
    """Marks where the paper's axis begins and ends."""
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
    """The three panels of Figs. 5 and 6: MERP against pFabric."""
    shown = [
        Panel("p99_er", "(a) 99th-percentile expansion ratio", p99),
        Panel("max_er", "(b) maximum expansion ratio", highest, max_er),
        Panel("p999_fct_s", "(c) 99.9th-percentile FCT", fct, tail),
    ]
    return panels(results, shown, ("MERP", "pFabric"))


def fig7(results: Results) -> Figure:
    """Average FCT of MERP, pFabric and TCP."""
    return panels(results, [Panel("mean_fct_s", "MERP against pFabric", (0, 0.1), ("f7-gap",))])


def fig8(results: Results) -> Figure:
    """Impact of alpha."""
    shown = [Panel("p999_fct_s", "(a) 99.9th-percentile FCT", (0.03, 0.11)), Panel("drops", "(b) dropped packets, all ports")]
    return panels(results, shown)


def fig9(results: Results) -> Figure:
    """Impact of theta."""
    return panels(results, [Panel("p999_fct_s", "99.9th-percentile FCT", (0.03, 0.11))])


SENSITIVITY = ("max_er", "p999_fct_s", "mean_fct_s")


def sens_shape(results: Results) -> Figure:
    """Shape of the Pareto sizes."""
    return plots.metrics(results, SENSITIVITY)


def sens_load(results: Results) -> Figure:
    """Load measured at the hosts."""
    return plots.metrics(results, SENSITIVITY)


def sens_systems(results: Results) -> Figure:
    """Settings the paper leaves open."""
    return plots.metrics(results, (*SENSITIVITY, "timeouts"))


def sens_literal(results: Results) -> Figure:
    """MERP read literally."""
    return plots.metrics(results, ("max_er", "mean_fct_s", "unfinished"))
