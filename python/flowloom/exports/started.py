"""The flows of a point as lists of flows have them: by their start, hosts by their numbers in other programs."""

from __future__ import annotations

from dataclasses import dataclass

from flowloom.data import Data, Run


@dataclass(frozen=True)
class Started:
    """A flow that has begun."""

    flow_id: int
    src: str
    dst: str
    size_bytes: int
    start_ps: int


def flows(results: Data, run: Run, largest: int, program: str) -> list[Started]:
    """The flows of a point in the order of their starts. A flow that waited for others has the start that it had in the run.

    Raises `ValueError` for a flow that never began, and for one larger than `largest` bytes, all that `program` can read.
    """
    names = hosts(results, run)
    found = []
    for row in results.flows(["flow_id", "src", "dst", "size_bytes", "start_ps"], {"point": run.point}).to_pylist():
        what = f"flow {row['flow_id']} of `{run.point}`"
        if row["start_ps"] is None:
            raise ValueError(f"{what} never began\nhint: it waits for a flow that did not end: a later `end` gives it more time")
        if row["size_bytes"] > largest:
            raise ValueError(f"{what} has {row['size_bytes']} bytes, more than {program} can read, {largest}")
        found.append(Started(row["flow_id"], names[row["src"]], names[row["dst"]], row["size_bytes"], row["start_ps"]))
    return sorted(found, key=lambda flow: (flow.start_ps, flow.flow_id))


def hosts(results: Data, run: Run) -> list[str]:
    """What other programs call the hosts: their names where these are numbers, as in files of HPCC; else their numbers from 0."""
    rows = results.ports(["node", "name", "tier"], {"point": run.point}).to_pylist()
    names = [row["name"].partition("->")[0] for row in sorted(rows, key=lambda row: row["node"]) if row["tier"] == 0]
    return names if all(name.isdecimal() for name in names) else [str(number) for number in range(len(names))]
