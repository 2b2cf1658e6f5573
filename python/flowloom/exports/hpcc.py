"""Writes flow files of HPCC's simulator (ns-3), to run the flows of a point there.

A flow is a line with source, destination, priority group 3, port 100, bytes and the start in
seconds, to the picosecond. Hosts keep their names if these are numbers, as in a topology of HPCC's
simulator; otherwise they are numbered from 0.
"""

from __future__ import annotations

from pathlib import Path

from flowloom.base.files import write_whole
from flowloom.base.rooms import Meta
from flowloom.exports import started
from flowloom.runs.data import Data, Run

META = Meta(
    "The flows as a flow file of HPCC's simulator (ns-3)",
    needs="flows",
    source="simulation/mix of alibaba-edu/High-Precision-Congestion-Control",
    suffix="txt",
)

LARGEST = 2**32 - 1
"""HPCC's simulator stores sizes in 32 bits."""


def write(results: Data, run: Run, path: Path) -> None:
    """Writes a point."""
    names = started.named(results, run)
    hosts = names if all(name.isdecimal() for name in names) else started.numbered(results, run)
    flows = started.flows(results, run, hosts, LARGEST, "HPCC's simulator")
    lines = [f"{flow.src} {flow.dst} 3 100 {flow.size_bytes} {seconds(flow.start_ps)}" for flow in flows]
    write_whole(path, "\n".join([str(len(flows)), *lines, ""]))


def seconds(time_ps: int) -> str:
    """Returns a time in seconds as text, without rounding."""
    whole, rest = divmod(time_ps, 10**12)
    return f"{whole}.{rest:012}"
