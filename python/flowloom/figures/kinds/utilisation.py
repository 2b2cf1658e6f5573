"""The figure `utilisation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, NoDataError, groups, record, swept
from flowloom.runs.data import Data, column, mean, windows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Utilisation of the busiest links, averaged over seeds; at the highest swept value",
    needs="ports",
)

MOST_LINKS = 14


def draw(results: Data, at: At = None, most: int = MOST_LINKS) -> Figure:
    """Draws the figure."""
    shown = groups(results, at, 1, ideals=False)
    if not shown:
        raise NoDataError("there is no point to draw\nhint: choose other points with `at`")
    name, systems = shown[-1]
    load: dict[str, dict[str, list[float]]] = {}
    for label, runs in systems.items():
        for run in runs:
            table = results.ports(["name", "window_busy_ps"], {"point": run.point})
            for port, busy in zip(column(table, "name"), column(table, "window_busy_ps"), strict=True):
                load.setdefault(port, {}).setdefault(label, []).append(run.utilisation(busy))
    busy_share = {port: {label: mean(shares) for label, shares in by.items()} for port, by in load.items()}
    busiest = sorted(busy_share, key=lambda port: -max(busy_share[port].values()))[:most]
    fig, (ax,) = style.grid(1, 1, min(max(5.0, 0.22 * len(busiest) * max(len(systems), 2)), 9.5), 3.4, rigid=True)
    width = 0.8 / len(systems)
    for i, label in enumerate(systems):
        place = np.arange(len(busiest)) + (i - (len(systems) - 1) / 2) * width
        heights = [100 * busy_share[port].get(label, 0.0) for port in busiest]
        ax.bar(
            place,
            heights,
            width * 0.92,
            color=style.COLORS[i % len(style.COLORS)],
            hatch=style.HATCHES[i % len(style.HATCHES)],
            edgecolor="white",
            linewidth=0,
            label=style.label(label),
        )
        first = systems[label][0]
        record(ax, {"system": first.system, **swept(results, first)}, {"link": busiest, "busy (%)": heights})
    ax.set_xticks(range(len(busiest)), [words.escaped(port) for port in busiest], rotation=45, ha="right", rotation_mode="anchor")
    measured = words.window(windows(run for runs in systems.values() for run in runs))
    ax.set(ylabel=f"utilisation (%)\n{measured}", xlabel="link", title=name, ylim=(0, 100), xlim=(-0.6, len(busiest) - 0.4))
    ax.grid(axis="x", visible=False)
    style.legend(fig, [ax])
    return fig
