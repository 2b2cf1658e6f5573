"""Playback: one HTML file that plays the packets of a run over its network, for one system or for
two side by side on the same flows.
"""

from __future__ import annotations

import html
import json
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from flowloom.base import words
from flowloom.base.errors import InputError
from flowloom.base.files import write_whole
from flowloom.figures import network, style, traces
from flowloom.figures.drawing import Array, numbers, one_per_system
from flowloom.pages import report
from flowloom.pages.explore import packed
from flowloom.pages.web import web
from flowloom.runs import again, programs
from flowloom.runs.data import Data, Run

PLAYER = web("unpack.js") + web("queues.js") + web("player.js")
COLOURS = (*style.COLORS, "#8A63D2", "#8B4513", "#8F9300", "#D01C5B")
"""Colours of flows, kinds of packets and priority classes. Each colour is used twice: plain, then striped."""
MOST = 150_000
"""The maximum number of transmissions of a system in a page; later transmissions are left out."""
MOST_RANKS = 32
"""The maximum number of ranks of programs in a page; of more ranks, some are shown, spread evenly."""
MOST_VALUES = 200_000
"""The maximum number of values in the tables of agents of a system in a page; later values are left out."""
CUT = ("trimmed", "returned")
"""The kinds of packets that arrived at a port as `data` and left it with another kind."""
CONTROLS = web("player.html")


def write(
    results: Data,
    at: Mapping[str, object] | None = None,
    out: Path | None = None,
    around: Sequence[int] = (),
    files: str | Path = ".",
) -> Path:
    """Writes the page of the points that `at` chooses, one per system. Returns its path, by default
    `playback.html` in the results folder.

    With `around`, the points run again, and the page has the packets around these flows (see
    `Results.around`), by default in `playback-around-17.html`. Raises `ValueError` for results
    without a packet trace.
    """
    if out is None and results.path is None:
        raise InputError("the results are not in a folder\nhint: give the file to write with `out`")
    results.select(at)  # refuses values that no point has
    shows: list[dict[str, object]] = []
    for system, run in one_per_system(results, at):
        if around and run.engine != "packet":
            continue
        packets = again.around(results, around, run.point, files) if around else None
        one = show(results, system, run, packets, around)
        shows += [] if one is None else [one]
    if not shows:
        hint = "set `packets = true` in the scenario's `[sample]` table, or name a flow with `--around` to run its point again"
        raise InputError(f"the results have no packets\nhint: {hint}")
    name = "-".join(["playback", *(["around", *map(str, around)] if around else [])])
    path = out or (results.path or Path()) / f"{name}.html"
    cut = [str(one["system"]) for one in shows if not one["whole"]]
    notes = [f"only the first {MOST} transmissions of {words.joined(cut)} are played"] if cut else []
    short = [str(one["system"]) for one in shows if not one["tablesWhole"]]
    notes += [f"only the first {MOST_VALUES} values in the tables of {words.joined(short)} are shown"] if short else []
    if around:
        flows = words.joined([str(flow) for flow in around])
        which = f"flow {flows}: all packets that passed the ports of its path while it was open"
        several = f"flows {flows}: all packets that passed the ports of their paths while they were open"
        notes.append(f"packets around {which if len(around) == 1 else several}, and the way of these packets at other ports")
    data = packed(json.dumps(shows, separators=(",", ":")))
    colours = f"const COLOURS = {json.dumps(COLOURS)}, OTHERS = {json.dumps(style.GREY)};"
    script = f'{colours}\n{PLAYER}\nstart("{data}");'
    parts = [
        f"<h1>{html.escape(results.name)}: playback</h1>",
        *(f"<p class=note>{html.escape(note)}</p>" for note in notes),
        CONTROLS,
        f'<script type="module">{script}</script>',
    ]
    write_whole(path, report.page(f"{results.name}: playback", parts))
    return path


def show(
    results: Data, system: str, run: Run, packets: pa.Table | None = None, around: Sequence[int] = ()
) -> dict[str, object] | None:
    """Returns the data of a point for the player, with times in ns; `None` if the point has no
    packets.

    `packets` are the packets `around` some flows, which replace the trace of the whole point.
    """
    table = results.packets(None, {"point": run.point}) if packets is None else packets
    if not table.num_rows:
        return None
    found = network.links(results, run)
    places = network.layout(found)
    names = sorted(places, key=network.natural)
    index = {name: i for i, name in enumerate(names)}
    ports = {link.port: i for i, link in enumerate(found)}
    rows = {name: numbers(table, name) for name in ("time_ps", "end_ps", "port_id", "flow_id", "size_bytes", "class", "offset")}
    # Twice as many as are played: packets that wait at the end of the playback are sent later.
    order = np.argsort(rows["time_ps"], kind="stable")[: 2 * MOST]
    columns = {name: values[order] for name, values in rows.items()}
    kinds = [str(kind) for kind in np.array(table["kind"].to_pylist())[order]]
    named = sorted(set(kinds))
    dropped = np.array(table["dropped"].to_pylist(), dtype=bool)[order]
    ends = {ports[link.port]: (index[link.ends[0]], index[link.ends[1]]) for link in found}
    port = np.array([ports[int(p)] for p in columns["port_id"]])
    start, end = columns["time_ps"] / 1e3, columns["end_ps"] / 1e3
    hops = Hops(ends, port, start, end, columns["flow_id"], columns["offset"], kinds, dropped)
    whole = table.num_rows <= MOST
    played = np.ones(len(order), dtype=bool) if whole else (start <= start[MOST - 1]) | (hops.joined <= start[MOST - 1])
    flows = results.flows(["flow_id", "size_bytes", "size_wire_bytes", "start_ps", "finish_ps"], {"point": run.point}).to_pylist()
    passing = set(np.unique(columns["flow_id"]).astype(int).tolist()) - set(around) if around else set()
    if around:
        flows = [row for row in flows if row["flow_id"] in passing or row["flow_id"] in around]
    window = traces.sampled(results, run, "flow.cwnd_bytes")
    known, all_known = tables(results, run, ports)
    return {
        "system": system,
        "whole": whole,
        "until": None if whole else float(start[MOST - 1]),
        "nodes": [[words.escaped(name), *(round(part, 4) for part in places[name])] for name in names],
        "links": [list(ends[i]) for i in range(len(found))],
        "port": port[played].tolist(),
        "start": start[played].tolist(),
        "end": end[played].tolist(),
        "joined": hops.joined[played].tolist(),
        "delay": hops.delays.tolist(),
        "flow": columns["flow_id"].astype(int)[played].tolist(),
        "kinds": named,
        "kind": np.searchsorted(named, kinds)[played].tolist(),
        "class": columns["class"].astype(int)[played].tolist(),
        "dropped": dropped.astype(int)[played].tolist(),
        "tables": known,
        "tablesWhole": all_known,
        "ranks": ranks(results, run),
        "flows": [
            {
                "id": row["flow_id"], "size": row["size_bytes"], "wire": row["size_wire_bytes"], "start": row["start_ps"] / 1e3,
                "finish": None if row["finish_ps"] is None else row["finish_ps"] / 1e3,
                "got": [] if row["flow_id"] in passing else hops.delivered(row["flow_id"], columns["size_bytes"]),
                "passing": row["flow_id"] in passing,
                "window": None if window is None else curve(window, row["flow_id"]),
            }
            for row in flows
        ],
    }  # fmt: skip


def ranks(results: Data, run: Run) -> list[dict[str, object]]:
    """Returns what ranks of programs do over time: by rank, the start and end of each part in ns, its
    operation, and its lane among parts that overlap.
    """
    tasks = programs.tasks_of(results, run)
    known = programs.ranks_of(results, run, tasks) if tasks else []
    chosen = [known[i] for i in np.linspace(0, len(known) - 1, min(len(known), MOST_RANKS)).round().astype(int)]
    found = programs.parts_of(results, run, tasks, chosen) if tasks else {}
    until = float(run.end_ps or 0)

    def row(part: programs.RankPart, lane: int) -> list[object]:
        return [part.start_ps / 1e3, (until if part.finish_ps is None else part.finish_ps) / 1e3, part.task.operation, lane]

    return [
        {
            "name": words.escaped(f"{rank[0]} {rank[1]}"),
            "parts": [row(part, lane) for part, lane in zip(parts, programs.placed(parts, until), strict=True)],
        }
        for rank, parts in ((rank, found.get(rank, [])) for rank in chosen)
    ]


def tables(results: Data, run: Run, ports: Mapping[int, int]) -> tuple[list[dict[str, object]], bool]:
    """Returns what the agents of ports know of flows: for each link, the names of values and, by
    time in ns, rows. Also returns whether nothing was left out.
    """
    table = results.agents(["time_ps", "port_id", "flow_id", "column", "value"], {"point": run.point})
    found: dict[int, dict[str, Any]] = {}
    for row in table.slice(0, MOST_VALUES).to_pylist():
        port = found.setdefault(ports[row["port_id"]], {"columns": [], "looks": {}})
        if row["column"] not in port["columns"]:
            port["columns"].append(row["column"])
        flows = port["looks"].setdefault(row["time_ps"], {})
        flows.setdefault(row["flow_id"], {})[row["column"]] = float(f"{row['value']:.6g}")
    return [
        {
            "link": link,
            "columns": port["columns"],
            "times": [time / 1e3 for time in port["looks"]],
            "rows": [
                [[flow, *(values.get(column) for column in port["columns"])] for flow, values in flows.items()]
                for flows in port["looks"].values()
            ],
        }
        for link, port in sorted(found.items())
    ], table.num_rows <= MOST_VALUES


def curve(window: traces.Series, flow: int) -> list[list[float]]:
    """Returns a flow's window in bytes over time in ns."""
    values = window.values.get(flow)
    if values is None:
        return []
    known = np.isfinite(values)
    return [[float(t) * 1e6, float(v)] for t, v in zip(window.times[known], values[known], strict=True)]


class Hops:
    """The order of the transmissions of each packet. The trace has one row for each port that a
    packet leaves.
    """

    def __init__(
        self, ends: Mapping[int, tuple[int, int]], port: Array, start: Array, end: Array, flow: Array, offset: Array,
        kinds: Sequence[str], dropped: Array,
    ) -> None:  # fmt: skip
        self.port, self.end, self.flow, self.offset, self.kinds, self.dropped = port, end, flow, offset, kinds, dropped
        self.before = np.full(len(port), -1)
        """The row of the previous hop of each packet, or -1."""
        self.last = np.ones(len(port), dtype=bool)
        """Whether the hop is the last of its packet."""
        # Packets on their way to a node, by the fields that a port of this node records of them.
        coming: dict[tuple[int, int, int, str], deque[int]] = defaultdict(deque)
        for i in range(len(port)):
            node, peer = ends[int(port[i])]
            same = (int(flow[i]), int(offset[i]), kinds[i])
            waiting = coming.get((node, *same))
            if not waiting and kinds[i] in CUT:
                waiting = coming.get((node, *same[:2], "data"))
            if waiting and end[waiting[0]] <= start[i]:
                self.before[i] = waiting.popleft()
                self.last[self.before[i]] = False
            if not dropped[i]:
                coming[peer, *same].append(i)
        follows = self.before >= 0
        self.delays = np.full(len(ends), np.inf)
        """The delay of each port's link: the shortest time from the end of a transmission to the
        next one of the same packet.
        """
        np.minimum.at(self.delays, port[self.before[follows]], (start[follows] - end[self.before[follows]]))
        known = self.delays[np.isfinite(self.delays)]
        self.delays[~np.isfinite(self.delays)] = known.min() if len(known) else 0.0
        self.joined = start.copy()
        """The time when the packet joined the port's queue: its arrival, or, at its first port, its
        start of transmission.
        """
        self.joined[follows] = end[self.before[follows]] + self.delays[port[self.before[follows]]]

    def delivered(self, flow: int, size: Array) -> list[list[float]]:
        """Returns when new bytes of a flow arrive: times, and the bytes on the wire so far."""
        seen: set[float] = set()
        found, total = [], 0.0
        for i in np.flatnonzero((self.flow == flow) & self.last & (self.dropped == 0)).tolist():
            if self.kinds[i] == "data" and self.offset[i] not in seen:
                seen.add(self.offset[i])
                total += float(size[i])
                found.append([float(self.end[i] + self.delays[self.port[i]]), total])
        return found
