"""The figures in the paper's layout, and the schedules of its example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flowloom import fluid
from flowloom.api.results import Results
from flowloom.figures import schedules, style
from flowloom.figures.panels import metric_panels, swept_axis
from flowloom.papers.pages import Findings
from flowloom.runs.numbers import Estimate, Number, find

from .against import PAPER, Series, differences
from .optimum import optimum

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMES = "ABCD"
ARRIVALS = (2, 3, 0, 1)
SIZES = (1, 2, 5, 6)
DEADLINES = (8, None, 6, None)
FREE = [flow for flow, deadline in enumerate(DEADLINES) if deadline is None]
POLICIES = {"fcfs": "(a) FCFS", "sjf": "(b) SJF", "edf_sjf": "(c) EDF, then SJF", "stam": "(d) STAM"}

TIMES = {
    "mean_fct_without_deadline_s": "(a) all, mean",
    "mean_fct_without_deadline_short_s": "(b) at most 100 KB, mean",
    "max_fct_without_deadline_short_s": "(b) at most 100 KB, largest",
}


def example(policy: str) -> tuple[float, int]:
    """Returns the mean completion time of the flows without a deadline of Table 1, and the number of missed deadlines."""
    finish = fluid(policy, 1.0, ARRIVALS, SIZES, DEADLINES)["finish"]
    mean = sum(finish[flow] - ARRIVALS[flow] for flow in FREE) / len(FREE)
    return mean, sum(deadline is not None and end > deadline for end, deadline in zip(finish, DEADLINES, strict=True))


def exact() -> dict[str, float]:
    """Returns the numbers of Table 1's schedules."""
    found: dict[str, float] = {}
    for policy in POLICIES:
        found[f"{policy}.mean_fct"], found[f"{policy}.missed"] = example(policy)
    best = optimum(ARRIVALS, SIZES, DEADLINES)
    assert best is not None, "three schedules meet both deadlines"
    found["optimum.mean_fct"] = best.total / len(FREE)
    return found


def table1(_results: Results) -> Figure:
    """Draws Fig. 2: the flow that the link serves, under four policies."""
    fig = style.figure(2, 2, width=4.6, height=2.2)
    for ax, (policy, title) in zip(style.panels(fig, 2, 2), POLICIES.items(), strict=True):
        schedules.bars(ax, fluid(policy, 1.0, ARRIVALS, SIZES, DEADLINES)["segments"], NAMES, ARRIVALS, DEADLINES)
        mean, missed = example(policy)
        ax.set_title(f"{title}: mean of B and D {mean:g}, deadlines missed: {missed}")
    return fig


def panels(results: Results, shown: Mapping[str, str]) -> Figure:
    """Draws a row of panels: each metric of `shown`, with its title, over the swept key, or by system."""
    x = swept_axis(results)
    return metric_panels(results, shown, x, width=4.6, height=4.3 if x else 0.8 + 0.26 * len(results.systems))


def against(shown: Mapping[str, Series], title: str | None = None) -> Figure:
    """Draws a panel for each figure of the paper in `shown`: STAM compared with each rival, printed numbers and ours."""
    fig, axes = style.grid(len(shown), 2, width=4.6, height=2.9)
    for ax, (figure, series) in zip(axes, shown.items(), strict=True):
        differences(ax, figure, series)
    style.legend(fig, axes, title)
    return fig


def printed(findings: Findings) -> Figure:
    """Draws the twenty printed numbers of Figs. 7, 8, 10 and 11a, and ours."""
    claims = {claim.id: claim for claim in findings.paper.claims}
    shown: dict[str, Series] = {}
    for figure, rivals in PAPER.items():
        found = {}
        for rival in rivals:
            name = f"{figure}-{rival.lower().replace('+', '-')}"
            estimate = next((one.estimate for one in findings.found[name] if one.estimate is not None), None)
            # A reduction is a negative difference.
            if estimate is not None and claims[name].kind == "reduction":
                estimate = Estimate(-estimate.mean, -estimate.high, -estimate.low, estimate.seeds)
            found[rival] = estimate
        shown[figure] = {"flowloom": found}
    return against(shown)


RULES = {
    "nobody": ("STAM, never", ", never"),
    "STAM alone": ("STAM, alone", ", never"),
    "STAM alone, as printed": ("STAM, as printed", ", never"),
    "all systems": ("STAM, gives up", ", gives up"),
}
"""The systems that give up late flows: STAM's label then, and the suffix of its rivals' labels."""


def rules(results: Results, figures: Mapping[str, str]) -> Figure:
    """Draws STAM compared with its rivals, by the systems that give up flows; `figures` maps figures of the paper to metrics."""
    shown: dict[str, Series] = {}
    for figure, metric in figures.items():
        series = {}
        for rule, (stam, behind) in RULES.items():
            found = {}
            for rival in PAPER[figure]:
                number = Number(
                    id="", figure="", scenario="rules", kind="increase", metric=metric, system=stam, versus=f"{rival}{behind}"
                )
                found[rival] = next((one.estimate for one in find(number, {"rules": results}) if one.estimate is not None), None)
            series[rule] = found
        shown[figure] = series
    return against(shown, "late flows are given up by")


def rules_incast(results: Results) -> Figure:
    """Draws Figs. 7 and 8 with 40 workers, by the systems that give up flows."""
    return rules(results, {"f7": "drop_rate_with_deadline", "f8": "mean_flow_goodput_without_deadline_bps"})


def rules_load8(results: Results) -> Figure:
    """Draws Figs. 10 and 11 at load 0.8, by the systems that give up flows."""
    return rules(results, {"f10": "deadline_miss_rate", "f11a": "mean_fct_without_deadline_s"})


def fig7(results: Results) -> Figure:
    """Draws the loss rate of flows with deadlines, and its effect on the requests."""
    return panels(
        results,
        {"drop_rate_with_deadline": "flows with deadlines, data packets dropped", "deadline_miss_rate": "miss rate of answers"},
    )


def fig8(results: Results) -> Figure:
    """Draws the throughput of flows without deadlines."""
    return panels(results, {"mean_flow_goodput_without_deadline_bps": "flows without deadlines, mean of size / FCT"})


def fig10(results: Results) -> Figure:
    """Draws the miss rate over load."""
    return panels(results, {"deadline_miss_rate": "flows with deadlines, miss rate"})


def fig11(results: Results) -> Figure:
    """Draws completion times over load."""
    return panels(results, TIMES)


def load8(results: Results) -> Figure:
    """Draws Figs. 10 and 11 at load 0.8."""
    return panels(results, {"deadline_miss_rate": "flows with deadlines, miss rate", **TIMES})


options = load8


def windows(results: Results) -> Figure:
    """Draws losses and throughput of incast over the initial window."""
    return panels(
        results,
        {
            "drop_rate_with_deadline": "flows with deadlines, data packets dropped",
            "deadline_miss_rate": "miss rate of answers",
            "mean_flow_goodput_without_deadline_bps": "flows without deadlines, mean of size / FCT",
        },
    )
