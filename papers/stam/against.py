"""STAM compared with each rival: printed numbers and ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from flowloom.figures import style
from flowloom.figures.drawing import record
from flowloom.runs.numbers import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRINTED = {
    "f7": "Fig. 7: loss rate of flows with deadlines",
    "f8": "Fig. 8: throughput of flows without deadlines",
    "f10": "Fig. 10: miss rate",
    "f11a": "Fig. 11a: mean FCT without deadlines",
}
PAPER = {
    "f7": {"FCFS": -82.4, "PIAS": -81.8, "EDF+SJF": 17.6, "Karuna": 14.3, "Aemon": -79.7},
    "f8": {"FCFS": 1.8, "PIAS": 2.8, "EDF+SJF": 25.94, "Karuna": 21.87, "Aemon": -1.7},
    "f10": {"FCFS": -22.7, "PIAS": -16.7, "EDF+SJF": 16.6, "Karuna": 6.2, "Aemon": -7.4},
    "f11a": {"FCFS": -19.2, "PIAS": 3.8, "EDF+SJF": -11.6, "Karuna": 28.1, "Aemon": 11.8},
}
"""The printed numbers of STAM relative to each rival, in per cent of the rival."""

BAND = 10
"""Points around the printed number that count as equal to it."""
EDGE = 108
"""The ends of the axes, in per cent; values beyond them are written at the edge."""

Series = Mapping[str, Mapping[str, Estimate | None]]
"""By name, then by rival: the difference of STAM to the rival, as a share of the rival."""


def percent(estimate: Estimate | None) -> float:
    """Returns the mean of an estimate in per cent."""
    return math.nan if estimate is None else 100 * estimate.mean


def differences(ax: Axes, figure: str, series: Series) -> None:
    """Draws one panel: STAM compared with each rival, printed numbers and ours."""
    names = list(PAPER[figure])
    for row, rival in enumerate(names):
        printed = PAPER[figure][rival]
        ax.barh(
            row,
            2 * BAND,
            left=printed - BAND,
            height=0.8,
            color=style.INK,
            alpha=0.12,
            linewidth=0,
            label="as printed, 10 points either way" if row == 0 else None,
        )
        ax.plot([printed, printed], [row - 0.4, row + 0.4], color=style.INK, linewidth=style.thick(1.2))
    for index, (name, found) in enumerate(series.items()):
        shift = 0.0 if len(series) == 1 else -0.28 + 0.56 * index / (len(series) - 1)
        look = style.line(index)
        for row, rival in enumerate(names):
            estimate = found.get(rival)
            if estimate is None:
                continue
            mean, low, high = (100 * value for value in (estimate.mean, estimate.low, estimate.high))
            inside = min(max(mean, -EDGE), EDGE)
            ax.plot(
                inside,
                row + shift,
                look["marker"],
                color=look["color"],
                clip_on=False,
                zorder=3,
                label=style.label(name) if row == 0 else None,
            )
            if inside == mean and math.isfinite(low) and math.isfinite(high):
                ax.plot([max(low, -EDGE), min(high, EDGE)], [row + shift] * 2, color=look["color"], linewidth=style.thick(1.0))
            elif inside != mean:
                ax.annotate(
                    f"{mean:+,.0f} %",
                    (inside, row + shift),
                    (-5, 0),
                    textcoords="offset points",
                    ha="right",
                    va="center",
                    fontsize=7,
                )
    record(
        ax,
        {"figure": PRINTED[figure]},
        {"rival": names, "printed": [PAPER[figure][rival] for rival in names]}
        | {name: [percent(found.get(rival)) for rival in names] for name, found in series.items()},
    )
    ax.axvline(0, color=style.INK, linewidth=style.thick(0.6), zorder=0)
    ax.set_yticks(range(len(names)), names)
    ax.set(xlim=(-EDGE, EDGE), ylim=(len(names) - 0.4, -0.6), xlabel="STAM against the rival (%)", title=PRINTED[figure])
