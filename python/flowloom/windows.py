"""Figures of what a sender does: its congestion window, its slow-start threshold and its round trip over time."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from flowloom import style, words
from flowloom.data import Data
from flowloom.drawing import At, kind, one_per_system, titled
from flowloom.traces import missing, sampled


@kind("samples")
def cwnd(results: Data, at: At = None, flow: int | None = None) -> Figure:
    """Congestion window, slow-start threshold and smoothed round trip over time, of one flow: the one with the most samples."""
    chosen = [(run, sampled(results, run, "flow.cwnd_bytes")) for _, run in one_per_system(results, at)]
    drawn = [(run, found) for run, found in chosen if found is not None and any(np.nanmax(v) > 0 for v in found.values.values())]
    if not drawn:
        raise missing("flow.cwnd_bytes")
    fig = style.figure(len(drawn), 2, width=5.0, height=2.3)
    axes = style.panels(fig, 2, len(drawn))
    for column, (run, found) in enumerate(drawn):
        longest = max(found.values, key=lambda entity: (np.isfinite(found.values[entity]).sum(), -entity))
        shown = longest if flow is None or flow not in found.values else flow
        above, below = axes[column], axes[len(drawn) + column]
        factor, unit = words.scale("bytes", [float(np.nanmax(found.values[shown]))])
        lines = [("cwnd", found), ("ssthresh", sampled(results, run, "flow.ssthresh_bytes"))]
        for i, (label, series) in enumerate(lines):
            if series is not None and shown in series.values:
                above.plot(series.times, series.values[shown] / factor, **style.dashes(i) | {"linewidth": 1.2}, label=label)
        above.set(ylabel=words.axis("window", unit), title=titled(results, run, at), ylim=(0, None))
        trips = sampled(results, run, "flow.srtt_s")
        if trips is not None and shown in trips.values:
            factor, unit = words.scale("s", [float(np.nanmax(trips.values[shown]))])
            below.plot(
                trips.times,
                trips.values[shown] / factor,
                **style.dashes(2) | {"linewidth": 1.2, "linestyle": "-"},
                label="smoothed round trip",
            )
            below.set(ylabel=words.axis("round trip", unit))
        below.set(xlabel=f"time (ms), flow {shown}", ylim=(0, None), xlim=above.get_xlim())
    style.legend(fig, axes)
    return fig
