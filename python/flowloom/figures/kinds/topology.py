"""The figure `topology`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from flowloom.base import words
from flowloom.base.errors import InputError, did_you_mean
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import MOST_PANELS, At, NoDataError, groups, record, swept
from flowloom.figures.network import Link, dead_cables, links, share_bar, topology_panel
from flowloom.runs.data import Data, Run, mean, windows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "The network: busier links are darker and wider, failed links are crossed out; at the highest swept value",
    needs="ports",
)


def mean_links(results: Data, runs: Sequence[Run]) -> list[Link]:
    """Returns the links of points that differ only by their seed, with their mean use."""
    found = [links(results, run) for run in runs]
    return [
        Link(same[0].port, same[0].name, same[0].tiers, mean([link.busy for link in same])) for same in zip(*found, strict=True)
    ]


def draw(results: Data, at: At = None, dead: Collection[Collection[str]] | None = None) -> Figure:
    """Draws the figure. `dead` are pairs of node names; by default, the links that were down at some time."""
    shown = groups(results, at, 1, ideals=False)
    if not shown:
        raise NoDataError("there is no point to draw\nhint: choose other points with `at`")
    name, systems = shown[-1]
    drawn = [run for runs in systems.values() for run in runs]
    crossed = dead_cables(results, drawn) if dead is None else {frozenset(cable) for cable in dead}
    panels = [(label, mean_links(results, runs)) for label, runs in list(systems.items())[:MOST_PANELS]]
    panels = [(label, found) for label, found in panels if found]
    if not panels:
        raise NoDataError("the results have no ports")
    known = sorted({"--".join(sorted(link.ends)) for _, found in panels for link in found})
    for unknown in ["--".join(sorted(cable)) for cable in crossed]:
        if unknown not in known:
            did = did_you_mean(unknown, known)
            raise InputError(f"there is no link `{unknown}`{did}\nhint: a link is a pair of nodes, such as those of `{known[0]}`")
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    fig, axes = style.grid(len(panels), columns, 7.5 if columns == 1 else 4.6, 3.0)
    for ax, (label, found) in zip(axes, panels, strict=True):
        lines = topology_panel(ax, found, crossed)
        ax.set_title(", ".join(filter(None, [label, name])))
        first = systems[label][0]
        links_ = {"link": [link.name for link in found], "busy (%)": [100 * link.busy for link in found]}
        record(ax, {"system": first.system, **swept(results, first)}, links_)
    share_bar(fig, axes, lines, f"utilisation of the busier direction (%)\n{words.window(windows(drawn))}")
    style.legend(fig, axes)
    return fig
