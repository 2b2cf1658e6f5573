"""Connection matrices of htsim (`.cm`): the flows of a point, to run them there.

A flow has the number that it has in flowloom plus one, since 0 is not allowed there, and its start in picoseconds. Hosts have
their numbers from 0, since `Nodes` says how many there are.
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
"""That program reads sizes into 31 bits."""


def write(results: Data, run: Run, path: Path) -> None:
    """Writes a point."""
    hosts = started.numbered(results, run)
    flows = started.flows(results, run, hosts, LARGEST, "htsim")
    head = [f"Nodes {len(hosts)}", f"Connections {len(flows)}"]
    lines = [f"{flow.src}->{flow.dst} id {flow.flow_id + 1} start {flow.start_ps} size {flow.size_bytes}" for flow in flows]
    write_whole(path, "\n".join([*head, *lines, ""]))
