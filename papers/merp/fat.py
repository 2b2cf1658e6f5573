"""MERP's losses on the fat tree, and the rules of our variant that avoid them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.figures import style
from flowloom.papers import measures
from flowloom.runs import numbers
from flowloom.runs.data import Data, Run

from .loads import over_base

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLUID = "ideal MERP"
LOAD = 0.8


def link_bytes(results: Data, run: Run) -> float:
    """Returns the bytes that ports sent, divided by the wire bytes of the flows at each port of their paths."""
    (sent,) = measures.ports(results, run, "tx_bytes")
    size, hops = measures.flows(results, run, "size_wire_bytes", "hops")
    return measures.share(float(np.nansum(sent)), float(np.nansum(size * hops)))


def dropped(results: Data, run: Run) -> float:
    """Returns the DATA packets dropped per 1000 sent."""
    return 1e3 * measures.share(*measures.totals(measures.flows(results, run, "drops", "tx_packets")))


def over_fluid(results: Data, system: str, metric: str, load: float = LOAD) -> numbers.Sample:
    """Returns a metric divided by that of MERP's own fluid on the same flows, by seed."""
    points = numbers.Points(results)
    return numbers.quotient(points.sample(system, metric, load=load), points.sample(FLUID, metric, load=load))


def dots(ax: Axes, systems: Sequence[str], found: Mapping[str, numbers.Sample], title: str) -> None:
    """A row for each system: mean over seeds and their range."""
    for i, system in enumerate(systems):
        values = list(found[system].values())
        if values:
            ax.plot([min(values), max(values)], [i, i], color=style.COLORS[0], linewidth=1.2)
            ax.plot([float(np.mean(values))], [i], "o", color=style.COLORS[0])
    ax.set_yticks(range(len(systems)), systems)
    ax.set(title=title, ylim=(len(systems) - 0.5, -0.5), xlim=(0, None))


def rules(results: Results, load: float) -> Figure:
    """A row for each system: mean FCT over the fluid's, bytes on links beyond those of the flows, drops."""
    points = numbers.Points(results)
    systems = [system for system in points.systems if system not in results.ideals]
    shown = {
        "mean FCT over the fluid's": {system: over_fluid(results, system, "mean_fct_s", load) for system in systems},
        "further bytes on links (% of the flows')": {
            system: {seed: 100 * (ratio - 1) for seed, ratio in points.sample(system, link_bytes, load=load).items()}
            for system in systems
        },
        "DATA packets dropped of 1000 sent": {system: points.sample(system, dropped, load=load) for system in systems},
    }
    fig = style.figure(3, 1, width=3.6, height=0.9 + 0.26 * len(systems))
    axes = style.panels(fig, 1, 3)
    for ax, (title, found) in zip(axes, shown.items(), strict=True):
        dots(ax, systems, found, title)
        ax.tick_params(labelleft=ax is axes[0])
    axes[0].axvline(1.0, color=style.GREY, linewidth=0.9)
    axes[0].axvline(1.3, color=style.INK, linewidth=0.8, linestyle=(0, (1, 2)), alpha=0.7)
    style.note(fig, f"load {load:g}: means over seeds and their range; dotted: 1.3 times the fluid")
    return fig


def cause(results: Results) -> Figure:
    """Draws the effect of each change of MERP on the fat tree."""
    return rules(results, max(numbers.Points(results).numbers("load"), default=LOAD))


def ours_tree(results: Results) -> Figure:
    """Draws the rules of our variant on one tree."""
    return rules(results, max(numbers.Points(results).numbers("load"), default=LOAD))


def ours(results: Results) -> Figure:
    """Draws mean FCT and mean expansion ratio divided by those of MERP's fluid, over load."""
    fig = style.figure(2, 1, width=4.6, height=3.5)
    left, right = style.panels(fig, 1, 2)
    systems = [system for system in results.systems if system != FLUID]
    for ax, metric, title in ((left, "mean_fct_s", "average FCT"), (right, "max_er", "maximum expansion ratio")):
        over_base(ax, results, metric, FLUID, systems)
        ax.set(title=f"{title} over that of MERP's fluid", ylabel="ratio")
    style.legend(fig, [left])
    return fig


def fat_tree(results: Mapping[str, Results]) -> dict[str, numbers.Sample]:
    """Returns the measurements for claims on the variant, by seed."""
    found: dict[str, numbers.Sample] = {}
    for figure in ("cause", "ours", "ours_tree"):
        if figure not in results:
            continue
        data = results[figure]
        points = numbers.Points(data)
        load = max(points.numbers("load"), default=LOAD)
        for system in points.systems:
            if system not in data.ideals:
                found[f"{figure}.{system}.fct"] = over_fluid(data, system, "mean_fct_s", load)
                found[f"{figure}.{system}.bytes"] = points.sample(system, link_bytes, load=load)
                found[f"{figure}.{system}.drops"] = points.sample(system, dropped, load=load)
    return found
