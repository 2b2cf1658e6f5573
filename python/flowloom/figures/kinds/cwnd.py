"""The figure `cwnd`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, one_per_system, record, swept, titled
from flowloom.figures.traces import missing, sampled
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Congestion window, slow-start threshold and smoothed round-trip time of one flow over time: the flow with the most samples",
    needs="samples",
)


def draw(results: Data, at: At = None, flow: int | None = None) -> Figure:
    """Draws the figure."""
    chosen = [(run, sampled(results, run, "flow.cwnd_bytes")) for _, run in one_per_system(results, at)]
    drawn = [(run, found) for run, found in chosen if found is not None and any(np.nanmax(v) > 0 for v in found.values.values())]
    if not drawn:
        raise missing("flow.cwnd_bytes")
    columns = style.across(len(drawn))
    blocks = -(-len(drawn) // columns)
    fig = style.figure(columns, 2 * blocks, width=5.0, height=2.3)
    axes = style.panels(fig, 2 * blocks, columns)
    kept = [ax for place, ax in enumerate(axes) if place // (2 * columns) * columns + place % columns < len(drawn)]
    for ax in axes:
        if ax not in kept:
            ax.remove()
    for place, (run, found) in enumerate(drawn):
        longest = max(found.values, key=lambda entity: (np.isfinite(found.values[entity]).sum(), -entity))
        shown = longest if flow is None or flow not in found.values else flow
        # The panel of the round-trip time is below that of the window.
        above = axes[place // columns * 2 * columns + place % columns]
        below = axes[(place // columns * 2 + 1) * columns + place % columns]
        here = {"system": run.system, **swept(results, run), "flow": shown}
        factor, unit = words.scale("bytes", [float(np.nanmax(found.values[shown]))])
        lines = [("cwnd", found), ("ssthresh", sampled(results, run, "flow.ssthresh_bytes"))]
        for i, (label, series) in enumerate(lines):
            if series is not None and shown in series.values:
                look = style.dashes(i) | {"linewidth": style.thick(1.2)}
                above.plot(series.times, series.values[shown] / factor, **look, label=label)
                record(above, here, {"time (ms)": series.times, words.axis(label, unit): series.values[shown] / factor})
        above.set(ylabel=words.axis("window", unit), title=titled(results, run, at), ylim=(0, None))
        trips = sampled(results, run, "flow.srtt_s")
        if trips is not None and shown in trips.values:
            factor, unit = words.scale("s", [float(np.nanmax(trips.values[shown]))])
            below.plot(
                trips.times,
                trips.values[shown] / factor,
                **style.dashes(2) | {"linewidth": style.thick(1.2), "linestyle": "-"},
                label="smoothed round-trip time",
            )
            below.set(ylabel=words.axis("round trip", unit))
            record(below, here, {"time (ms)": trips.times, words.axis("round trip", unit): trips.values[shown] / factor})
        below.set(xlabel=f"time (ms), flow {shown}", ylim=(0, None), xlim=above.get_xlim())
    style.legend(fig, kept)
    return fig
