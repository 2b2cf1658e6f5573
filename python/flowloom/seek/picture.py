"""The figure of a search: where in the space claims hold together, and in which share of it each
claim holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.figures import style
from flowloom.figures.drawing import record
from flowloom.seek.answer import Answer
from flowloom.seek.settings import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from flowloom.seek.judge import Visit

SIZES = (16, 20, 26, 34, 44, 56)
"""The areas of marks in square points, from none of the claims to all."""


def draw(answer: Answer) -> Figure:
    """Draws an answer: a map of the two settings that decide most, and a bar for each claim."""
    with style.look():
        rows = len(answer.study.judgements)
        fig, (left, right) = style.grid(2, 2, width=4.6, height=max(3.4, 0.34 * rows + 1.2))
        chart(left, answer)
        bars(right, answer)
        style.legend(fig, [left])
    return fig


def deciding(answer: Answer) -> list[int]:
    """Returns the settings that explain most of the numbers of the fitted claims; the first
    settings if that is unknown.
    """
    weights = np.zeros(len(answer.study.settings))
    for one in answer.fitted:
        weights += np.array(answer.indices[one.id] or [0.0] * len(weights))
    return [int(i) for i in np.argsort(-weights, kind="stable")[:2]]


def chart(ax: Axes, answer: Answer) -> None:
    """Draws the places by the two settings that decide most; colour and size show how many claims
    hold there.
    """
    study, fitted = answer.study, answer.fitted
    first, *second = deciding(answer)
    colours = style.heat().reversed()
    visits = sorted(answer.searched, key=lambda visit: visit.held(fitted))

    def at(visit: Visit) -> tuple[float, float]:
        x = along(study.settings[first], visit, first)
        return x, along(study.settings[second[0]], visit, second[0]) if second else visit.held(fitted)

    for held in sorted({visit.held(fitted) for visit in visits}):
        here = [at(visit) for visit in visits if visit.held(fitted) == held]
        share = held / max(len(fitted), 1)
        ax.scatter(
            [x for x, _ in here],
            [y for _, y in here],
            s=SIZES[round(share * (len(SIZES) - 1))],
            color=colours(0.15 + 0.85 * (1 - share)) if held < answer.most else style.COLORS[0],
            edgecolors=style.INK if held == answer.most else "none",
            linewidths=0.6,
            label=f"{held} of {words.counted(len(fitted), 'claim')}",
            zorder=2 + held,
        )
    usual = answer.usual
    if usual is not None:
        ax.scatter(
            *at(usual),
            s=90,
            marker="*",
            color=style.COLORS[1],
            edgecolors=style.INK,
            linewidths=0.6,
            label="usual values",
            zorder=20,
        )
    axis(ax, study.settings[first], "x")
    if second:
        axis(ax, study.settings[second[0]], "y")
    else:
        ax.set_ylabel("claims that hold")
    ax.set_title("Claims that hold together", loc="left")
    for visit in visits:
        x, y = at(visit)
        record(
            ax,
            {"claims": visit.held(fitted)},
            {study.settings[first].name: [x], study.settings[second[0]].name if second else "held": [y]},
        )


def along(setting: Setting, visit: Visit, index: int) -> float:
    """Returns the position of a place on an axis: its number in the unit of the axis, or the rank
    of a listed value.
    """
    value = visit.place.values[index]
    if setting.choices:
        # Spread by the coordinate of the place, so that places with the same value do not overlap.
        return setting.choices.index(value) + (visit.place.coordinates[index] * setting.levels % 1 - 0.5) * 0.6
    factor, _ = setting.scale([float(setting.high)])
    return float(setting.number(value)) * factor


def axis(ax: Axes, setting: Setting, which: str) -> None:
    """Labels an axis, with its unit, and scales it."""
    one = getattr(ax, f"{which}axis")
    if setting.choices:
        one.set_ticks(range(setting.levels), labels=[style.label(choice) for choice in setting.choices])
        getattr(ax, f"set_{which}label")(setting.name)
        return
    if setting.log:
        style.log_axis(ax, which)
    _, name = setting.scale([float(setting.high)])
    getattr(ax, f"set_{which}label")(words.axis(setting.name, name) if name else setting.name)


def bars(ax: Axes, answer: Answer) -> None:
    """Draws the share of the space in which each claim holds, with its interval, and below them the
    share for all claims together.
    """
    study = answer.study
    listed = [*study.fitted, *study.kept_out]
    names, colours = [], []
    for row, one in enumerate(listed):
        share = answer.share(one)
        names.append(one.id)
        colours.append(style.COLORS[0] if one.fit else style.GREY)
        if not share.of:
            there = answer.there(one)
            text = f"judged at the best places: {there.held} of {there.of}" if there.of else "no number at any place"
            ax.text(1, row, text, va="center", fontsize="small", color=style.GREY)
            continue
        if answer.without(one):
            text = f"no number at {answer.without(one)} of {len(answer.design)} places"
            ax.text(99, row, text, va="center", ha="right", fontsize="small", color=style.INK)
        bar(ax, row, share.mean, share.interval, colours[-1], "" if one.fit else "///")
        record(ax, {"claim": one.id}, {"share": [share.mean], "low": [share.interval[0]], "high": [share.interval[1]]})
    together = answer.together()
    which = "all" if answer.most == len(answer.fitted) else f"{answer.most} of {len(answer.fitted)}"
    if together.of:
        names.append(f"{which} together")
        bar(ax, len(listed), together.mean, together.interval, style.COLORS[1], "")
        record(ax, {"claim": names[-1]}, {"share": [together.mean], "low": [together.interval[0]], "high": [together.interval[1]]})
    ax.set_yticks(range(len(names)), labels=[style.label(name) for name in names])
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.set_xlabel("share of the space in which it holds (%)")
    ax.set_title("Hatched: kept out of the search", loc="left")


def bar(ax: Axes, row: int, mean: float, interval: tuple[float, float], colour: str, hatch: str) -> None:
    """Draws one bar with its interval."""
    low, high = interval
    ax.barh(row, 100 * mean, height=0.6, color=colour, alpha=0.75, hatch=hatch, edgecolor="white")
    ax.plot([100 * low, 100 * high], [row, row], color=style.INK, linewidth=1.0)
