"""Writes traces for Perfetto (https://perfetto.dev): ranks, flows, links and queues as tracks over time.

A part of a rank in a task is a slice on the track of the rank; parts that overlap are on further
tracks with the same name, which Perfetto shows as one. A flow is a slice from start to finish on a
track of its own. If the run has a packet trace, a link has a slice for each packet in transmission,
and an instant for each dropped packet. Time series are counters. Times are whole nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from flowloom.base import words
from flowloom.base.files import write_whole
from flowloom.base.rooms import Meta
from flowloom.runs.data import Data, Run, named_ports
from flowloom.runs.programs import parts_of, placed, tasks_of

META = Meta(
    "Ranks, flows, links and queues as tracks over time, for ui.perfetto.dev",
    needs="flows",
    source="protos/perfetto/trace/track_event of Perfetto",
    suffix="pftrace",
)

SEQUENCE = 1
"""The sequence of all packets of the trace."""

Fact = int | float | str
VALUES: Mapping[type, str] = {int: "int", float: "double", str: "string"}
"""The names of the fields of facts, by type."""


def write(results: Data, run: Run, path: Path) -> None:
    """Writes a point."""
    try:
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
    except ImportError:
        raise ImportError("traces of Perfetto need a library\nhint: pip install 'flowloom[export]'") from None
    trace = Trace()
    tracks = Tracks(trace)
    ranks(tracks, results, run)
    flows(tracks, results, run)
    links(tracks, results, run)
    series(tracks, results, run)
    write_whole(path, trace.SerializeToString())


class Tracks:
    """Adds tracks and their events to a trace."""

    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.known = 0

    def track(self, name: str, parent: int | None = None, unit: str | None = None) -> int:
        """Adds a track; with a unit, it is a counter."""
        self.known += 1
        descriptor = self.trace.packet.add().track_descriptor
        descriptor.uuid, descriptor.name = self.known, name
        if parent is not None:
            descriptor.parent_uuid = parent
        if unit is not None:
            descriptor.counter.unit_name = unit
        return self.known

    def event(self, track: int, time_ps: int, kind: str) -> Any:
        """Adds an event to a track."""
        packet = self.trace.packet.add()
        packet.timestamp, packet.trusted_packet_sequence_id = time_ps // 1000, SEQUENCE
        event = packet.track_event
        event.track_uuid, event.type = track, getattr(event, f"TYPE_{kind}")
        return event

    def slice(self, track: int, start_ps: int, end_ps: int | None, name: str, facts: Iterable[tuple[str, Fact]]) -> None:
        """Adds a slice with known facts; without an end, it stays open."""
        event = self.event(track, start_ps, "SLICE_BEGIN")
        event.name = name
        for key, value in facts:
            fact = event.debug_annotations.add()
            fact.name = key
            setattr(fact, f"{VALUES[type(value)]}_value", value)
        if end_ps is not None:
            self.event(track, end_ps, "SLICE_END")


def ranks(tracks: Tracks, results: Data, run: Run) -> None:
    """Adds tracks for each rank of a program."""
    tasks = tasks_of(results, run)
    parents: dict[str, int] = {}
    for (workload, rank), parts in sorted(parts_of(results, run, tasks).items()) if tasks else ():
        if workload not in parents:
            parents[workload] = tracks.track(f"ranks of {workload}")
        own: dict[int, int] = {}
        for part, lane in zip(parts, placed(parts, run.end_ps or math.inf), strict=True):
            if lane not in own:
                own[lane] = tracks.track(f"rank {rank}", parents[workload])
            task = part.task
            facts: list[tuple[str, Fact]] = [("task", task.name), ("iteration", task.iteration), ("operation", task.operation)]
            optional = (("size_bytes", task.size_bytes), ("bus_bandwidth_bps", task.bus_bandwidth_bps))
            facts += [(key, value) for key, value in optional if value is not None]
            facts += [("last_rank", task.last_rank), ("host", f"h{part.host}")]
            tracks.slice(own[lane], part.start_ps, part.finish_ps, task.name, facts)


def flows(tracks: Tracks, results: Data, run: Run) -> None:
    """Adds a track for each flow."""
    wanted = ["flow_id", "src", "dst", "size_bytes", "start_ps", "finish_ps", "drops", "timeouts"]
    parent = tracks.track("flows")
    for row in results.flows(wanted, {"point": run.point}).to_pylist():
        if row["start_ps"] is None:
            continue
        name = f"flow {row['flow_id']}: h{row['src']} -> h{row['dst']}, {words.number(row['size_bytes'])} B"
        facts = ((key, row[key]) for key in ("size_bytes", "drops", "timeouts"))
        tracks.slice(tracks.track(name, parent), row["start_ps"], row["finish_ps"], name, facts)


def links(tracks: Tracks, results: Data, run: Run) -> None:
    """Adds a track for each link in the packet trace."""
    wanted = ["time_ps", "end_ps", "port_id", "kind", "flow_id", "offset", "size_bytes", "dropped"]
    rows = sorted(results.packets(wanted, {"point": run.point}).to_pylist(), key=lambda row: row["time_ps"])
    if not rows:
        return
    names, parent = named_ports(results, run), tracks.track("links")
    of = {port: tracks.track(names[port], parent) for port in sorted({row["port_id"] for row in rows})}
    for row in rows:
        name = f"flow {row['flow_id']} {row['kind']}"
        facts = [(key, row[key]) for key in ("offset", "size_bytes")]
        if row["dropped"]:
            tracks.event(of[row["port_id"]], row["time_ps"], "INSTANT").name = f"dropped: {name}"
        else:
            tracks.slice(of[row["port_id"]], row["time_ps"], row["end_ps"], name, facts)


def series(tracks: Tracks, results: Data, run: Run) -> None:
    """Adds a counter for each time series."""
    rows = results.samples(["time_ps", "entity", "metric", "value"], {"point": run.point}).to_pylist()
    if not rows:
        return
    names, parents, of = named_ports(results, run), dict[str, int](), dict[tuple[str, int], int]()
    for row in rows:
        metric, entity = row["metric"], row["entity"]
        if metric not in parents:
            parents[metric] = tracks.track(metric)
        if (metric, entity) not in of:
            kind = metric.split(".")[0]
            name = names[entity] if kind == "port" else f"{kind} {entity}"
            of[metric, entity] = tracks.track(name, parents[metric], words.unit(metric.rsplit("_", 1)[-1]))
        tracks.event(of[metric, entity], row["time_ps"], "COUNTER").double_counter_value = row["value"]
