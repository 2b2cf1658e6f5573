"""The figure `gantt`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, NoDataError, mark_changes, one_per_system, record, swept, titled
from flowloom.figures.traces import bars, gantt_panel
from flowloom.runs.data import Data, column, named_ports

if TYPE_CHECKING:
    from matplotlib.figure import Figure

META = Meta(
    "Transmissions of flows on links over time; consecutive data packets of a flow are drawn as one bar",
    needs="packets",
)


def draw(
    results: Data,
    at: At = None,
    ports: Sequence[str] | None = None,
    names: Mapping[int, str] | None = None,
    most: int = 12,
) -> Figure:
    """Draws the figure."""
    drawn = []
    for _, run in one_per_system(results, at):
        trace = results.packets(None, {"point": run.point})
        if not trace.num_rows:
            continue
        spans: dict[int, list[tuple[int, float, float]]] = {}
        for bar in bars({name: column(trace, name) for name in trace.column_names}):
            spans.setdefault(bar.port, []).append((bar.flow, bar.start * 1e-9, bar.end * 1e-9))
        known = named_ports(results, run)
        rows = [(known.get(port, str(port)), spans[port]) for port in sorted(spans)]
        if ports is not None:
            rows = [row for row in rows if row[0] in map(words.escaped, ports)]
        elif len(rows) > most:
            busy = sorted(rows, key=lambda row: -sum(end - start for _, start, end in row[1]))[:most]
            rows = [row for row in rows if row in busy]
        drawn.append((run, rows))
    if not any(rows for _, rows in drawn):
        raise NoDataError("the results have no packet trace\nhint: set `packets = true` in the scenario's `[sample]` table")
    height = max(len(rows) for _, rows in drawn) * style.row(0.32) + 1.0
    fig, axes = style.grid(len(drawn), 1, width=7.5, height=height, rigid=True)
    for ax, (run, rows) in zip(axes, drawn, strict=True):
        gantt_panel(ax, rows, names)
        for link, shown in rows:
            times = {"flow": [flow for flow, _, _ in shown], "from (ms)": [start for _, start, _ in shown]}
            times["until (ms)"] = [end for _, _, end in shown]
            record(ax, {"system": run.system, **swept(results, run), "link": link}, times)
        mark_changes(ax, results, run)
        ax.set_title(titled(results, run, at))
    flows = {flow for _, rows in drawn for _, spans_ in rows for flow, _, _ in spans_}
    if len(flows) <= 10:
        style.legend(fig, axes)
    return fig
