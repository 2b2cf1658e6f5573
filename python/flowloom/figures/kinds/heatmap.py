"""The figure `heatmap`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowloom.base.rooms import Meta
from flowloom.figures import network, style
from flowloom.figures.drawing import At, mark_changes, one_per_system, record, swept, titled
from flowloom.figures.network import activity, heat_panel, links, share_bar
from flowloom.figures.traces import missing, sampled
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Utilisation of every link over time, in the order in which packets cross the links; the quiet end of a run is cut off",
    needs="samples",
)

MOST_MAPS = 6
MOST_COLUMNS = 3
"""The maximum number of heat maps side by side."""


def draw(results: Data, at: At = None) -> Figure:
    """Draws the figure. Systems are one below the other; side by side if there are too many links to name."""
    drawn = []
    for _, run in one_per_system(results, at, MOST_MAPS):
        found, series = links(results, run), sampled(results, run, "port.utilisation")
        if series is not None:
            # Links that were not sampled are left out, since they may be busy; so are unused links of hosts.
            used = [link for link in found if link.port in series.values and (link.busy > 0 or 0 not in link.tiers)]
            used = used or [link for link in found if link.port in series.values]
            drawn.append((run, used, activity(used, series.times, series.values)))
    if not drawn:
        raise missing("port.utilisation")
    rows = max(len(found) for _, found, _ in drawn)
    height = max(0.8 + (0.13 * rows if rows <= network.ROWS_WITH_NAMES else min(0.022 * rows, 4.2)), 1.8)
    columns = 1 if rows <= network.ROWS_WITH_NAMES else min(len(drawn), MOST_COLUMNS)
    fig, axes = style.grid(len(drawn), columns, max(7.5 / columns, 3.4), height, rigid=rows <= network.ROWS_WITH_NAMES)
    for ax, (run, found, seen) in zip(axes, drawn, strict=True):
        mesh = heat_panel(ax, found, seen)
        mark_changes(ax, results, run)
        ax.set_title(titled(results, run, at))
        ax.tick_params(labelleft=style.leftmost(ax))
        starts, stops = seen.edges[:-1], seen.edges[1:]
        for link, busy in zip(found, seen.grid, strict=True):
            times = {"from (ms)": starts, "until (ms)": stops, "busy (%)": 100 * busy}
            record(ax, {"system": run.system, **swept(results, run), "link": link.name}, times)
    style.legend(fig, axes)
    share_bar(fig, axes, mesh, "utilisation (% of the interval)")
    return fig
