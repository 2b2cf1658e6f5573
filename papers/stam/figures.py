"""The figures in the paper's layout, and the schedules of its example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from flowloom import fluid, optimum, schedules, style
from flowloom.panels import metric_panels, swept_axis
from flowloom.results import Results

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
    """The mean completion time of the flows without a deadline of Table 1, and how many deadlines are missed."""
    finish = fluid(policy, 1.0, ARRIVALS, SIZES, DEADLINES)["finish"]
    mean = sum(finish[flow] - ARRIVALS[flow] for flow in FREE) / len(FREE)
    return mean, sum(deadline is not None and end > deadline for end, deadline in zip(finish, DEADLINES, strict=True))


def exact() -> dict[str, float]:
    """Numbers of Table 1's schedules."""
    found: dict[str, float] = {}
    for policy in POLICIES:
        found[f"{policy}.mean_fct"], found[f"{policy}.missed"] = example(policy)
    best = optimum(ARRIVALS, SIZES, DEADLINES)
    assert best is not None, "three schedules meet both deadlines"
    found["optimum.mean_fct"] = best["mean"]
    return found


def table1(_results: Results) -> Figure:
    """Fig. 2: which flow the link serves, under four policies."""
    fig = style.figure(2, 2, width=4.6, height=2.2)
    for ax, (policy, title) in zip(style.panels(fig, 2, 2), POLICIES.items(), strict=True):
        schedules.bars(ax, fluid(policy, 1.0, ARRIVALS, SIZES, DEADLINES)["segments"], NAMES, ARRIVALS, DEADLINES)
        mean, missed = example(policy)
        ax.set_title(f"{title}: mean of B and D {mean:g}, deadlines missed: {missed}")
    return fig


def panels(results: Results, shown: Mapping[str, str]) -> Figure:
    """A row of panels: each metric of `shown`, with its title, against the swept key, or by system."""
    x = swept_axis(results)
    return metric_panels(results, shown, x, width=4.6, height=3.5 if x else 0.8 + 0.26 * len(results.systems))


def fig7(results: Results) -> Figure:
    """Loss rate of flows with deadlines."""
    return panels(results, {"drop_rate_with_deadline": "flows with deadlines, data packets dropped"})


def fig8(results: Results) -> Figure:
    """Throughput of flows without deadlines."""
    return panels(results, {"mean_flow_goodput_without_deadline_bps": "flows without deadlines, mean of size / FCT"})


fig7_pushout = fig7
fig8_pushout = fig8


def incast_miss(results: Results) -> Figure:
    """What the losses mean for the requests."""
    return panels(results, {"deadline_miss_rate": "miss rate of answers", "groups_in_time": "requests in time"})


def fig10(results: Results) -> Figure:
    """Miss rate against load."""
    return panels(results, {"deadline_miss_rate": "flows with deadlines, miss rate"})


def fig11(results: Results) -> Figure:
    """Completion times against load."""
    return panels(results, TIMES)


BOTH = {"deadline_miss_rate": "flows with deadlines, miss rate", **TIMES}


def load8(results: Results) -> Figure:
    """Figs. 10 and 11 at load 0.8."""
    return panels(results, BOTH)


sens_stam = load8
sens_rivals = load8
sens_delay = load8


def sens_incast(results: Results) -> Figure:
    """Losses, deadlines and throughput of incast."""
    return panels(
        results,
        {
            "drop_rate_with_deadline": "flows with deadlines, data packets dropped",
            "deadline_miss_rate": "miss rate of answers",
            "mean_flow_goodput_without_deadline_bps": "flows without deadlines, mean of size / FCT",
        },
    )
