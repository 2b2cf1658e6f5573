"""Panels against load, with the paper's axes and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from flowloom.api.results import Results
from flowloom.figures import drawing, style
from flowloom.figures.panels import axis_unit, curves, metric_panels, swept_axis
from flowloom.papers import claims, measures, shelf
from flowloom.runs import numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
    of = measures.results_of(results, claim.scenario) if claim.scenario else results
    worst = claims.judge(claim, {} if of is None else {claim.scenario or claim.figure: of}).worst.found
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
