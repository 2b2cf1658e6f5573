"""Chooses the flows to explain: classes of flows, and the last flows of groups."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow.compute as pc

from flowloom.base.errors import InputError, UnknownNameError
from flowloom.runs.data import Data, Run, column
from flowloom.why.parts import spread

SLOWEST_GROUPS = 5
"""The number of groups that are explained if none is named."""


@dataclass(frozen=True)
class FlowClass:
    """A class of flows: finished flows of the results whose slowdown is in the upper part of the
    distribution.
    """

    filter: str | None = None
    """The filter of the results; see `Data.where`."""
    tail: float = 0.0
    """The quantile of slowdowns at and above which flows belong to the class."""

    def __str__(self) -> str:
        """Describes the class."""
        found = ["flows"]
        if self.filter is not None:
            found.append(f"where {self.filter}")
        if self.tail:
            found.append(f"with a slowdown from the {100 * self.tail:.10g}th percentile on")
        return " ".join(found)

    def flows(self, results: Data, run: Run, most: int) -> tuple[int, list[int]]:
        """Returns the number of flows of a point in the class, and at most `most` of them, spread
        evenly over it by slowdown.
        """
        table = results.counted(["flow_id", "slowdown"], {"point": run.point})
        table = table.filter(pc.is_valid(table["slowdown"]))
        table = table.sort_by([("slowdown", "ascending"), ("flow_id", "ascending")])
        ids: list[int] = column(table, "flow_id")
        slowdowns: list[float] = column(table, "slowdown")
        # The quantile by nearest rank, as all quantiles of flowloom.
        if slowdowns:
            ids = ids[bisect_left(slowdowns, slowdowns[max(math.ceil(self.tail * len(slowdowns)), 1) - 1]) :]
        return len(ids), [ids[i] for i in spread(len(ids), most)]


def stragglers(results: Data, groups: Sequence[int] | None, point: str | None) -> tuple[str, Mapping[int, int]]:
    """Returns the point, and the flow that finished last of each group, with its group: for
    `groups`, or for the groups that took longest.

    Without `point`, it is the only point, or the point with the group that took longest.
    """
    known = [run.point for run in results.runs if run.engine == "packet"]
    if point is not None:
        results.select({"point": point})
        known = [point]
    elif groups is not None and len(known) > 1:
        raise InputError(f"the run has {len(known)} points, so group {groups[0]} is ambiguous\nhint: name the point with `--point`")
    table = results.groups()
    table = table.filter(pc.field("point").isin(known) & pc.field("fct_ps").is_valid())
    if not table.num_rows:
        raise InputError(
            "no group of flows has finished\nhint: incasts, jobs and requests are groups; `--flow` explains single flows"
        )
    ended = zip(*(column(table, name) for name in ("fct_ps", "point", "group_id")), strict=True)
    longest = sorted(ended, key=lambda row: (-row[0], row[1], row[2]))
    point = point or str(longest[0][1])
    own: list[int] = [group for _, name, group in longest if name == point]
    for group in groups or ():
        if group not in own:
            listed = ", ".join(map(str, sorted(own)[:20])) + (f" and {len(own) - 20} more" if own[20:] else "")
            raise UnknownNameError(f"no group {group} has finished in `{point}`\nhint: the groups are {listed}")
    wanted = own[:SLOWEST_GROUPS] if groups is None else list(dict.fromkeys(groups))
    flows = results.flows(["flow_id", "group_id", "finish_ps"], {"point": point}).filter(pc.field("group_id").isin(wanted))
    last: dict[int, tuple[int, int]] = {}
    for group, *end in zip(*(column(flows, name) for name in ("group_id", "finish_ps", "flow_id")), strict=True):
        last[group] = max(last.get(group, (0, 0)), (end[0], end[1]))
    return point, {last[group][1]: group for group in wanted}
