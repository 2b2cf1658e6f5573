"""The figure `utilisation`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowloom.base import words
from flowloom.base.errors import InputError, did_you_mean
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, NoDataError, groups, record, swept, whiskers
from flowloom.figures.network import Link, kinds_of_nodes, links
from flowloom.runs.data import Data, Run, column, mean, windows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

META = Meta(
    "Utilisation of the busiest links, averaged over seeds; at the highest swept value",
    needs="ports",
)

MOST_LINKS = 14
MOST_UPRIGHT = 6
"""The maximum number of groups whose labels are upright."""
BY = ("tier", "rail")
"""The groups of links that can share a bar."""
RAIL = re.compile(r"rail(\d+)_(\d+)")
"""Matches the name of the switch of a rail: `rail{pod}_{rail}`."""

Systems = Mapping[str, Sequence[Run]]
"""The points that are drawn, by system."""


def group_of(link: Link, by: str, names: Mapping[int, str]) -> str | None:
    """Returns the group of a link: the tiers of its ends, and by rail the rail of its switch instead
    of the tier. `None` if the link belongs to no rail.
    """
    shown = [names[tier] for tier in link.tiers]
    if by == "rail":
        rails = [RAIL.fullmatch(end) for end in link.ends]
        if not any(rails):
            return None
        shown = [f"rail {rail[2]}" if rail else name for rail, name in zip(rails, shown, strict=True)]
    return " → ".join(shown)


def by_group(results: Data, systems: Systems, by: str) -> dict[str, dict[str, list[float]]]:
    """Returns the utilisation of each link, averaged over seeds, by group of links and by system."""
    found: dict[str, dict[str, list[float]]] = {}
    for label, runs in systems.items():
        shares: dict[tuple[str, int], list[float]] = {}
        for run in runs:
            every = links(results, run)
            names = kinds_of_nodes(every)
            for link in every:
                group = group_of(link, by, names)
                if group is not None:
                    shares.setdefault((group, link.port), []).append(link.busy)
        for (group, _), own in shares.items():
            found.setdefault(group, {}).setdefault(label, []).append(mean(own))
    return found


def by_link(results: Data, systems: Systems, most: int) -> dict[str, dict[str, list[float]]]:
    """Returns the utilisation of the busiest links, averaged over seeds, by link and by system."""
    load: dict[str, dict[str, list[float]]] = {}
    for label, runs in systems.items():
        for run in runs:
            table = results.ports(["name", "window_busy_ps"], {"point": run.point})
            for port, busy in zip(column(table, "name"), column(table, "window_busy_ps"), strict=True):
                load.setdefault(port, {}).setdefault(label, []).append(run.utilisation(busy))
    found = {port: {label: [mean(shares)] for label, shares in of.items()} for port, of in load.items()}
    busiest = sorted(found, key=lambda port: -max(shares[0] for shares in found[port].values()))[:most]
    return {port: found[port] for port in busiest}


def bars(ax: Axes, results: Data, systems: Systems, shares: Mapping[str, Mapping[str, Sequence[float]]], by: str | None) -> None:
    """Draws a bar for each link or group and each system: the mean over links, with the range over links."""
    width = 0.8 / len(systems)
    for i, label in enumerate(systems):
        place = np.arange(len(shares)) + (i - (len(systems) - 1) / 2) * width
        own = [[100 * share for share in found.get(label, [0.0])] for found in shares.values()]
        middle, low, high = (np.array([how(one) for one in own]) for how in (mean, min, max))
        ax.bar(
            place,
            middle,
            width * 0.92,
            color=style.COLORS[i % len(style.COLORS)],
            hatch=style.HATCHES[i % len(style.HATCHES)],
            edgecolor="white",
            linewidth=0,
            label=style.label(label),
        )
        columns: dict[str, object] = {"link" if by is None else "group": list(shares), "busy (%)": middle}
        if by is not None:
            look: dict[str, Any] = {"color": style.INK, "linewidth": style.thick(1.0), "capsize": 2}
            ax.errorbar(place, middle, whiskers(middle, low, high), linestyle="none", **look)
            columns |= {"links": [len(one) for one in own], "least (%)": low, "most (%)": high}
        record(ax, {"system": systems[label][0].system, **swept(results, systems[label][0])}, columns)


def draw(results: Data, at: At = None, most: int | None = None, by: str | None = None) -> Figure:
    """Draws the figure: the `most` busiest links, or, with `by`, groups of all links."""
    if by is not None and by not in BY:
        did = did_you_mean(by, BY)
        raise InputError(f"links have no groups by `{by}`{did}\nhint: one of {', '.join(BY)}")
    shown = groups(results, at, 1, ideals=False)
    if not shown:
        raise NoDataError("there is no point to draw\nhint: choose other points with `at`")
    name, systems = shown[-1]
    shares = by_link(results, systems, MOST_LINKS if most is None else most) if by is None else by_group(results, systems, by)
    if not shares:
        raise NoDataError(f"no link belongs to a {by}\nhint: the switches of rails are called `rail0_0`, `rail0_1` and so on")
    fig, (ax,) = style.grid(1, 1, min(max(5.0, 0.22 * len(shares) * max(len(systems), 2)), 9.5), 3.4, rigid=True)
    bars(ax, results, systems, shares, by)
    labels, slanted = [words.escaped(one) for one in shares], by is None or len(shares) > MOST_UPRIGHT
    if by is not None:
        counts = [words.counted(max(len(own) for own in found.values()), "link") for found in shares.values()]
        between = ", " if slanted else "\n"
        labels = [f"{label}{between}{count}" for label, count in zip(labels, counts, strict=True)]
        style.note(fig, "bars: mean over the links of a group; lines: from the least to the most busy link")
    look: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if slanted else {}
    ax.set_xticks(range(len(shares)), labels, **look)
    measured = words.window(windows(run for runs in systems.values() for run in runs))
    ax.set(ylabel=f"utilisation (%)\n{measured}", xlabel="link" if by is None else "", title=name)
    ax.set(ylim=(0, 100), xlim=(-0.6, len(shares) - 0.4))
    ax.grid(axis="x", visible=False)
    style.legend(fig, [ax])
    return fig
