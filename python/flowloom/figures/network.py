"""Panels of the network: utilisation of links, over time and on a map, and links that failed."""

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
    """A directed link of a point, and the tiers of its ends: hosts 0, ToR switches 1, and so on up."""

    port: int
    name: str
    tiers: tuple[int, int]
    busy: float
    """Share of the measurement window in which it was busy."""

    @property
    def ends(self) -> tuple[str, str]:
        """The names of its nodes."""
        start, _, end = self.name.partition("->")
        return start, end

    @property
    def stage(self) -> tuple[int, int]:
        """The stage of a packet's way: up from the hosts, across, or down to the hosts."""
        low, high = self.tiers
        return (0, low) if low < high else (1, low) if low == high else (2, -low)


def links(results: Data, run: Run) -> list[Link]:
    """The links of a point, in the order in which packets cross them."""
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
    """The cables that were down at some time during a run."""
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
"""The share of all traffic at the end of a run that is cut off: it comes from a few late flows."""


def kinds_of_nodes(found: Sequence[Link]) -> dict[int, str]:
    """What to call the nodes of each tier: what their names have in front of the numbers, if that is one word."""
    stems: dict[int, set[str]] = {}
    for link in found:
        for end, tier in zip(link.ends, link.tiers, strict=True):
            stems.setdefault(tier, set()).add(re.sub(r"[\d_.-]*$", "", end))
    names = {tier: words.escaped(stem.pop()) if len(stem) == 1 else f"tier {tier}" for tier, stem in stems.items()}
    return names | {0: "hosts"}


@dataclass(frozen=True)
class Activity:
    """Utilisation by link and interval; a long idle period is one empty interval."""

    grid: Array
    edges: Array
    gaps: Sequence[Span]


def activity(found: Sequence[Link], times: Array, values: Mapping[int, Array]) -> Activity:
    """What was sampled of links, without the quiet end, averaged into about `COLUMNS` intervals."""
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
    """One panel: a row per link, a column per interval; darker is busier. Returns what a colour bar is made for."""
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
    """The colour bar, beside the panels."""
    aspect = max(30.0, fig.get_figheight() / 0.15)
    bar = fig.colorbar(drawn, ax=axes, label=label, ticks=[0, 0.25, 0.5, 0.75, 1], aspect=aspect, pad=0.01)
    bar.ax.set_yticklabels(["0", "25", "50", "75", "100"])
    bar.outline.set_visible(False)


# On a map

MOST_HOSTS = 64
"""Largest number of hosts that are drawn; of larger networks only switches are."""


MOST_LINES = 200
"""Cables of a larger map are drawn thinner, and as an image."""

MOST_CABLES = 2000
"""Of a larger map, neighbouring nodes of a tier are drawn as one, and the cables between two such groups as one line."""
BUNDLED_NODES = 16
"""Groups of nodes on each tier of such a map."""


def layout(found: Sequence[Link]) -> dict[str, tuple[float, float]]:
    """A place for each node: tiers one above the other, each spread over the whole width, nodes over those they are cabled to."""
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
    """For each node the node that stands for its group: about as many neighbours of a tier in each."""
    chosen: dict[str, str] = {}
    for tier in {y for _, y in places.values()}:
        here = sorted((name for name, (_, y) in places.items() if y == tier), key=lambda name: places[name])
        groups = np.array_split(np.array(here), min(BUNDLED_NODES, len(here)))
        chosen |= {str(name): str(group[len(group) // 2]) for group in groups for name in group}
    return chosen


def natural(name: str) -> list[object]:
    """Sorts `h10` behind `h9`."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name)]


def topology_panel(ax: Axes, found: Sequence[Link], dead: Collection[Cable] = ()) -> Any:
    """One panel: the network by tiers. Cables with a busier direction are darker and wider; failed cables are crossed out.

    A line of a large network stands for all cables between two groups of neighbours, with their mean.
    Returns what a colour bar is made for.
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
        ax.set_title(f"each line: the mean of up to {most} cables", fontsize=style.points(8), loc="right", y=-0.02)
        busy = {bundle: mean(shares) for bundle, shares in lines.items()}
        places = {name: places[name] for name in set(group.values())}
    dead_here = [cable for cable in busy if cable in dead]
    thin = min(1.0, (MOST_LINES / max(len(busy), 1)) ** 0.5)
    # The busiest are drawn last, on top.
    alive = sorted((cable for cable in busy if cable not in dead_here), key=lambda cable: busy[cable])
    drawn = LineCollection(
        [[places[end] for end in sorted(cable)] for cable in alive],
        array=np.array([busy[cable] for cable in alive]),
        cmap=style.heat(),
        norm=style.share(),
        linewidths=[style.thick(thin * (1.0 + 3.0 * busy[cable])) for cable in alive],
        zorder=1,
        # As an image: thousands of lines would make a page of megabytes.
        rasterized=len(alive) > MOST_LINES,
    )
    ax.add_collection(drawn)
    for i, cable in enumerate(dead_here):
        (x0, y0), (x1, y1) = (places[end] for end in sorted(cable))
        ax.plot([x0, x1], [y0, y1], color=style.INK, linestyle=(0, (2, 2)), linewidth=style.thick(1.2), zorder=2)
        middle = ((x0 + x1) / 2, (y0 + y1) / 2)
        ax.plot(*middle, "X", color=style.INK, markersize=8, zorder=4, label="failed link" if i == 0 else None)
    tiers = [y for _, y in places.values()]
    # Nodes of a large tier are small, so that they do not run together.
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
    # Names that would run into each other are left out.
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
