"""The flows of a point in the order of their starts, with hosts named as another program names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flowloom.base.errors import InputError
from flowloom.runs.data import Data, Run


@dataclass(frozen=True)
class Started:
    """A flow that has begun, between hosts as another program names them."""

    flow_id: int
    src: str
    dst: str
    size_bytes: int
    start_ps: int


def flows(results: Data, run: Run, hosts: Sequence[str], largest: int, program: str) -> list[Started]:
    """Returns the flows of a point in the order of their starts. A flow that waited for others has
    its start in the run.

    `hosts` are the names of the hosts in `program`. Raises `ValueError` for a flow that never
    began, and for a flow of more than `largest` bytes, the maximum that `program` can read.
    """
    found = []
    for row in results.flows(["flow_id", "src", "dst", "size_bytes", "start_ps"], {"point": run.point}).to_pylist():
        what = f"flow {row['flow_id']} of `{run.point}`"
        if row["start_ps"] is None:
            raise InputError(
                f"{what} never began\nhint: it waits for a flow that did not finish; set a later `end` in the scenario"
            )
        if row["size_bytes"] > largest:
            raise InputError(f"{what} has {row['size_bytes']} bytes; {program} reads at most {largest}")
        found.append(Started(row["flow_id"], hosts[row["src"]], hosts[row["dst"]], row["size_bytes"], row["start_ps"]))
    return sorted(found, key=lambda flow: (flow.start_ps, flow.flow_id))


def named(results: Data, run: Run) -> list[str]:
    """Returns the names of the hosts."""
    rows = results.ports(["node", "name", "tier"], {"point": run.point}).to_pylist()
    # A host has a row for each of its NICs.
    hosts = {row["node"]: row["name"].partition("->")[0] for row in rows if row["tier"] == 0}
    return [hosts[node] for node in sorted(hosts)]


def numbered(results: Data, run: Run) -> list[str]:
    """Returns the numbers of the hosts, from 0, as texts."""
    return [str(number) for number in range(len(named(results, run)))]
