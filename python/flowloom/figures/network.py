"""Panels of the network: utilisation of links, over time and on a map, and failed links."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flowloom.base import words
from flowloom.figures import style
from flowloom.figures.drawing import Array
from flowloom.figures.traces import Span, cut_idle, idle
from flowloom.runs.data import Data, Run, mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Cable = frozenset[str]
"""The names of the two nodes that a cable connects."""


@dataclass(frozen=True)
class Link:
    """A directed link of a point, with the tiers of its ends: 0 for hosts, 1 for ToR switches, and
    so on upwards.
    """

    port: int
    name: str
    tiers: tuple[int, int]
    busy: float
    """The share of the measurement window in which the link was busy."""

    @property
    def ends(self) -> tuple[str, str]:
        """The names of its nodes."""
        start, _, end = self.name.partition("->")
        return start, end

    @property
    def stage(self) -> tuple[int, int]:
        """The stage of the link on a path: up from the hosts, across, or down to the hosts."""
        low, high = self.tiers
        return (0, low) if low < high else (1, low) if low == high else (2, -low)


def links(results: Data, run: Run) -> list[Link]:
    """Returns the links of a point, in the order in which packets cross them."""
    table = results.ports(["port_id", "name", "node", "peer", "tier", "window_busy_ps"], {"point": run.point})
    rows = table.to_pylist()
    tier = {row["node"]: row["tier"] for row in rows}
    found = [
        Link(
            row["port_id"],
            row["name"],
            (row["tier"], tier[row["peer"]]),
            run.utilisation(row["window_busy_ps"]),
        )
        for row in rows
    ]
    return sorted(found, key=lambda link: (link.stage, link.port))


def dead_cables(results: Data, runs: Sequence[Run]) -> set[Cable]:
    """Returns the cables that were down at some time during a run."""
    found: set[Cable] = set()
    for run in runs:
        for row in results.ports(["name", "down_ps"], {"point": run.point}).to_pylist():
            if row["down_ps"]:
                found.add(frozenset(row["name"].split("->")))
    return found


# Over time

ROWS_WITH_NAMES = 40
COLUMNS = 400
QUIET = 0.02
"""The share of all traffic that is cut off at the end of a run: it belongs to a few late flows."""


def kinds_of_nodes(found: Sequence[Link]) -> dict[int, str]:
    """Returns names for the nodes of each tier: the part of their names before the number, if all
    of a tier have the same.
    """
    stems: dict[int, set[str]] = {}
    for link in found:
        for end, tier in zip(link.ends, link.tiers, strict=True):
            stems.setdefault(tier, set()).add(re.sub(r"[\d_.-]*$", "", end))
    names = {tier: words.escaped(stem.pop()) if len(stem) == 1 else f"tier {tier}" for tier, stem in stems.items()}
    return names | {0: "hosts"}


@dataclass(frozen=True)
class Activity:
    """Utilisation by link and interval. A long idle period is one empty interval."""

    grid: Array
    edges: Array
    gaps: Sequence[Span]


def activity(found: Sequence[Link], times: Array, values: Mapping[int, Array]) -> Activity:
    """Averages the samples of links into about `COLUMNS` intervals, without the quiet end of the run."""
    grid = np.array([np.nan_to_num(values[link.port]) for link in found])
    sent = np.cumsum(grid.sum(axis=0))
    last = int(np.searchsorted(sent, (1 - QUIET) * sent[-1])) + 1 if sent[-1] > 0 else len(times)
    ends = times[:last]
    step = float(times[0] if len(times) == 1 else np.diff(times).min())
    gaps = idle([(0.0, 0.0), *((end - step, end) for end, used in zip(ends, grid.sum(axis=0), strict=False) if used > 0)])
    waiting = np.zeros(last, dtype=bool)
    for start, stop in gaps:
        waiting |= (ends > start + step / 2) & (ends <= stop + step / 2)
    pieces = [piece for piece in np.split(np.arange(last), np.flatnonzero(np.diff(waiting)) + 1) if not waiting[piece[0]]]
    kept = sum(map(len, pieces))
    columns: list[Array] = []
    edges = np.empty(0)
    for piece in pieces:
        starts = np.unique(
            np.linspace(0, len(piece), max(min(len(piece), COLUMNS * len(piece) // kept), 1), endpoint=False).astype(int)
        )
        if columns:
            columns.append(np.full((len(found), 1), np.nan))
        counts = np.diff(np.append(starts, len(piece)))
        columns.append(np.add.reduceat(grid[:, piece], starts, axis=1) / counts)
        edges = np.concatenate([edges, ends[piece[starts]] - step, [ends[piece[-1]]]])
    return Activity(np.hstack(columns), edges, gaps)


def heat_panel(ax: Axes, found: Sequence[Link], seen: Activity) -> Any:
    """Draws one panel: a row per link, a column per interval; darker is busier. Returns the artist
    for the colour bar.
    """
    rows = np.arange(len(found) + 1)
    mesh = ax.pcolormesh(seen.edges, rows, seen.grid, cmap=style.heat(), norm=style.share(), rasterized=True)
    ax.set_ylim(len(found), 0)
    cut_idle(ax, seen.gaps, float(seen.edges[-1]))
    stages = [link.stage for link in found]
    first = [i for i, stage in enumerate(stages) if i == 0 or stages[i - 1] != stage]
    for i in first[1:]:
        ax.axhline(i, color=style.PAPER, linewidth=style.thick(1.6))
    if len(found) <= ROWS_WITH_NAMES:
        ax.set_yticks(np.arange(len(found)) + 0.5, [words.escaped(link.name) for link in found], fontsize=style.points(7))
    else:
        nodes = kinds_of_nodes(found)
        middle = [(i + j) / 2 for i, j in zip(first, [*first[1:], len(found)], strict=True)]
        ax.set_yticks(middle, [f"{nodes[found[i].tiers[0]]} → {nodes[found[i].tiers[1]]}" for i in first])
    ax.tick_params(axis="y", length=0)
    ax.grid(visible=False)
    ax.set_xlabel("time (ms)")
    return mesh


def share_bar(fig: Figure, axes: Sequence[Axes], drawn: Any, label: str) -> None:
    """Draws the colour bar, to the right of the panels."""
    aspect = max(30.0, fig.get_figheight() / 0.15)
    bar = fig.colorbar(drawn, ax=axes, label=label, ticks=[0, 0.25, 0.5, 0.75, 1], aspect=aspect, pad=0.01)
    bar.ax.set_yticklabels(["0", "25", "50", "75", "100"])
    bar.outline.set_visible(False)


# On a map

MOST_HOSTS = 64
"""The maximum number of hosts that are drawn; of networks with more hosts, only switches are drawn."""


MOST_LINES = 200
"""The number of cables from which on they are drawn thinner, and as an image."""

MOST_CABLES = 2000
"""The number of cables from which on a group of neighbouring nodes of a tier is drawn as one node,
and all cables between two groups as one line.
"""
BUNDLED_NODES = 16
"""The number of groups of nodes on each tier of a map with groups."""


def layout(found: Sequence[Link]) -> dict[str, tuple[float, float]]:
    """Returns a position for each node: tiers above each other, each spread over the whole width,
    nodes above the nodes that they are cabled to.
    """
    tier: dict[str, int] = {}
    below: dict[str, set[str]] = {}
    for link in found:
        tier.update(zip(link.ends, link.tiers, strict=True))
        if link.tiers[1] != link.tiers[0]:
            high, low = link.ends if link.tiers[1] < link.tiers[0] else link.ends[::-1]
            below.setdefault(high, set()).add(low)
    order = {name: i for i, name in enumerate(sorted(tier, key=natural))}
    x: dict[str, float] = {}
    for level in sorted(set(tier.values())):
        here = [name for name in tier if tier[name] == level]

        def over(name: str) -> tuple[float, int]:
            under = [x[other] for other in below.get(name, ())]
            return (float(np.mean(under)) if under else 0.5, order[name])

        for i, name in enumerate(sorted(here, key=over)):
            x[name] = (i + 0.5) / len(here)
    return {name: (x[name], float(tier[name])) for name in tier}


def bundled(places: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """Returns, for each node, the node that represents its group: groups hold about the same number
    of neighbours of a tier.
    """
    chosen: dict[str, str] = {}
    for tier in {y for _, y in places.values()}:
        here = sorted((name for name, (_, y) in places.items() if y == tier), key=lambda name: places[name])
        groups = np.array_split(np.array(here), min(BUNDLED_NODES, len(here)))
        chosen |= {str(name): str(group[len(group) // 2]) for group in groups for name in group}
    return chosen


def natural(name: str) -> list[object]:
    """Returns the sort key of a name that puts `h10` after `h9`."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def topology_panel(ax: Axes, found: Sequence[Link], dead: Collection[Cable] = ()) -> Any:
    """Draws one panel: the network by tiers. Cables with a busier direction are darker and wider;
    failed cables are crossed out.

    In a large network, a line represents all cables between two groups of neighbours, with their
    mean. Returns the artist for the colour bar.
    """
    from matplotlib.collections import LineCollection

    hosts = {end for link in found for end, tier in zip(link.ends, link.tiers, strict=True) if tier == 0}
    if len(hosts) > MOST_HOSTS:
        found = [link for link in found if 0 not in link.tiers]
    busy: dict[Cable, float] = {}
    for link in found:
        busy[frozenset(link.ends)] = max(busy.get(frozenset(link.ends), 0.0), link.busy)
    places, dead = layout(found), set(dead)
    bundles = len(busy) > MOST_CABLES
    if bundles:
        group = bundled(places)
        lines: dict[Cable, list[float]] = {}
        for cable, share in busy.items():
            lines.setdefault(frozenset(group[end] for end in cable), []).append(share)
        dead = {frozenset(group[end] for end in cable) for cable in busy if cable in dead}
        most = max(len(shares) for shares in lines.values())
        ax.set_title(f"each line: mean of up to {most} cables", fontsize=style.points(8), loc="right", y=-0.02)
        busy = {bundle: mean(shares) for bundle, shares in lines.items()}
        places = {name: places[name] for name in set(group.values())}
    dead_here = [cable for cable in busy if cable in dead]
    thin = min(1.0, (MOST_LINES / max(len(busy), 1)) ** 0.5)
    # The busiest cables are drawn last, on top.
    alive = sorted((cable for cable in busy if cable not in dead_here), key=lambda cable: busy[cable])
    drawn = LineCollection(
        [[places[end] for end in sorted(cable)] for cable in alive],
        array=np.array([busy[cable] for cable in alive]),
        cmap=style.heat(),
        norm=style.share(),
        linewidths=[style.thick(thin * (1.0 + 3.0 * busy[cable])) for cable in alive],
        zorder=1,
        # Thousands of lines would make a page of megabytes, so they are drawn as an image.
        rasterized=len(alive) > MOST_LINES,
    )
    ax.add_collection(drawn)
    for i, cable in enumerate(dead_here):
        (x0, y0), (x1, y1) = (places[end] for end in sorted(cable))
        ax.plot([x0, x1], [y0, y1], color=style.INK, linestyle=(0, (2, 2)), linewidth=style.thick(1.2), zorder=2)
        middle = ((x0 + x1) / 2, (y0 + y1) / 2)
        ax.plot(*middle, "X", color=style.INK, markersize=8, zorder=4, label="failed link" if i == 0 else None)
    tiers = [y for _, y in places.values()]
    # Nodes of a large tier are small, so that they do not overlap.
    width = 72 * ax.bbox.width / ax.figure.dpi
    for tier in sorted(set(tiers)):
        here = [x for x, y in places.values() if y == tier]
        size = min(3.5 if tier == 0 else 6.0, 0.7 * width / len(here))
        look: dict[str, Any] = {"marker": "o" if tier == 0 else "s", "markersize": size, "markeredgewidth": 0}
        ax.plot(here, [tier] * len(here), color=style.INK, linestyle="none", zorder=3, **look)
    small = style.points(7)
    needed = {
        tier: sum(style.width_of(words.escaped(name), small) + small for name, (_, y) in places.items() if y == tier)
        for tier in set(tiers)
    }
    # Names that would overlap are left out.
    named = {tier for tier, total in needed.items() if tiers.count(tier) <= 20 and total <= 1.15 * width}
    for name, (x, y) in places.items():
        if y in named and not bundles:
            up = y == max(tiers)
            text: dict[str, Any] = {
                "fontsize": small,
                "ha": "center",
                "va": "bottom" if up else "top",
                "zorder": 5,
                "bbox": style.HALO,
            }
            ax.annotate(words.escaped(name), (x, y), (0, 5 if up else -5), textcoords="offset points", **text)
    ax.set(xlim=(0, 1), ylim=(min(tiers) - 0.35, max(tiers) + 0.3))
    ax.set_axis_off()
    return drawn
