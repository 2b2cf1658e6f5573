"""Figures that the paper does not have: each rule by itself, packets compared with the fluid, sensitivities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.figures import style, summary
from flowloom.figures.panels import metric_panel
from flowloom.papers import measures
from flowloom.runs import numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def ablation(results: Results) -> Figure:
    """Draws the algorithms as printed, then one more rule at a time, on one tree."""
    return rules(results)


def ablation_fat(results: Results) -> Figure:
    """Draws the ablation on a fat tree."""
    return rules(results)


def rules(results: Results) -> Figure:
    """Draws a row for each system and a panel for each load and metric."""
    loads = numbers.Points(results).numbers("load")
    shown = {"mean_er": "average expansion ratio", "max_er": "maximum expansion ratio"}
    if any(results.metric(run, "unfinished") for run in results.runs):
        shown["unfinished"] = "flows without an end"
    fig = style.figure(len(shown), len(loads), width=4.2, height=3.9)
    axes = style.panels(fig, len(loads), len(shown))
    for i, (load, (metric, title)) in enumerate((load, one) for load in loads for one in shown.items()):
        metric_panel(axes[i], results, metric, None, {"load": load})
        axes[i].set_title(f"{title}, load {load:g}")
        axes[i].tick_params(labelleft=i % len(shown) == 0)
    return fig


FLUID = "ideal MERP"


def excess(results: Results, system: str, **at: object) -> numbers.Sample:
    """Returns the mean expansion ratio of a system divided by that of the fluid of the same flows, by seed."""
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
    """Draws the convergence on one tree."""
    return convergence(results)


LEFT = 0.973
"""The share of a link that ACKs of full packets leave: 40 bytes for each 1500 take 2.6 %, and alpha 0.1 %."""


def without_acks(results: Results) -> numbers.Sample:
    """The mean expansion ratio of the fluid on links without the share of ACKs, over that on whole links, by seed.

    Ratios on slower links count in longer units of time.
    """
    points = numbers.Points(results)
    loads = points.numbers("load")
    whole = points.sample(FLUID, "mean_er", rate="1Gbps", load=loads[0]) if loads else {}
    less = points.sample(FLUID, "mean_er", rate="973Mbps", load=loads[-1]) if loads else {}
    return {seed: ratio / LEFT for seed, ratio in numbers.quotient(less, whole).items()}


def convergence_acks(results: Results) -> Figure:
    """Mean expansion ratios over the fluid's at 15 MB and 100 ns: the fluid on links without the share of ACKs, and MERP."""
    return far_ends(results, "convergence_tree")


def convergence_acks_fat(results: Results) -> Figure:
    """Draws the share of ACKs on a fat tree."""
    return far_ends(results, "convergence")


def far_ends(results: Results, figure: str) -> Figure:
    """A row for the fluid on links without the share of ACKs, and one for each system of the convergence study `figure`."""
    found = {"fluid without what ACKs take": without_acks(results)}
    packets = measures.results_of(results, figure)
    if packets is not None:
        systems = [system for system in packets.systems if system != FLUID]
        found |= {system: ends(figure, packets).get(f"{figure}.{system}.far", {}) for system in systems}
    fig = style.figure(1, 1, width=5.6, height=2.4)
    (ax,) = style.panels(fig, 1, 1)
    for i, sample in enumerate(found.values()):
        values = list(sample.values())
        if values:
            ax.plot([min(values), max(values)], [i, i], color=style.COLORS[i], linewidth=1.2)
            ax.plot([numbers.average(sample)], [i], style.MARKERS[i], color=style.COLORS[i])
    ax.axvline(1.0, color=style.GREY, linewidth=0.9)
    ax.set_yticks(range(len(found)), list(found))
    ax.set(xlabel="mean expansion ratio over the fluid's", ylim=(len(found) - 0.5, -0.5))
    return fig


def sens_losses(results: Results) -> Figure:
    """Draws the causes of the largest expansion ratio, shape 1.05."""
    return summary.metrics(results, ("max_er", "p99_er", "timeouts", "retx_packets"))


SENSITIVITY = ("max_er", "p999_fct_s", "mean_fct_s")


def sens_load(results: Results) -> Figure:
    """Draws the results with the load measured at the hosts."""
    return summary.metrics(results, SENSITIVITY)


def sens_systems(results: Results) -> Figure:
    """Draws the effect of settings that the paper leaves open."""
    return summary.metrics(results, (*SENSITIVITY, "timeouts"))


def ends(figure: str, results: Results) -> dict[str, numbers.Sample]:
    """The excess over the fluid of the figures' setting, and where packets and delays are smallest."""
    points = numbers.Points(results)
    sizes, delays = points.values("mean"), points.values("delay")
    found: dict[str, numbers.Sample] = {}
    for system in points.systems if sizes and delays else ():
        if system != FLUID:
            found[f"{figure}.{system}.near"] = excess(results, system, mean=sizes[0], delay=delays[-1])
            found[f"{figure}.{system}.far"] = excess(results, system, mean=sizes[-1], delay=delays[0])
    return found


WORST = 10
"""Number of flows in `losses`: those with the largest expansion ratios."""


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
