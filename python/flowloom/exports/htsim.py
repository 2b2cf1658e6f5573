"""Writes connection matrices of htsim (`.cm`), to run the flows of a point there.

The id of a flow is its number in flowloom plus one, since htsim does not allow 0. Its start is in
picoseconds. Hosts are numbered from 0; `Nodes` is their number.
"""

from __future__ import annotations

from pathlib import Path

from flowloom.base.files import write_whole
from flowloom.base.rooms import Meta
from flowloom.exports import started
from flowloom.runs.data import Data, Run

META = Meta(
    "The flows as a connection matrix of htsim",
    needs="flows",
    source="connection_matrix.cpp of Broadcom/csg-htsim",
    suffix="cm",
)

LARGEST = 2**31 - 1
"""htsim stores sizes in 31 bits."""


def write(results: Data, run: Run, path: Path) -> None:
    """Writes a point."""
    hosts = started.numbered(results, run)
    flows = started.flows(results, run, hosts, LARGEST, "htsim")
    head = [f"Nodes {len(hosts)}", f"Connections {len(flows)}"]
    lines = [f"{flow.src}->{flow.dst} id {flow.flow_id + 1} start {flow.start_ps} size {flow.size_bytes}" for flow in flows]
    write_whole(path, "\n".join([*head, *lines, ""]))
