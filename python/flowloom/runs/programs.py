"""Programs: their tasks, and the parts of ranks in tasks."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from flowloom.base import words
from flowloom.base.errors import UnknownNameError, did_you_mean
from flowloom.runs.data import Data, Run, column
from flowloom.runs.tables import Table

COMPUTE = "compute"
"""The operation of tasks that are computations."""
MOST_TASKS = 20
"""The maximum number of rows of a table of tasks."""

Rank = tuple[str, int]
"""A workload and the number of one of its ranks."""


@dataclass(frozen=True)
class ProgramTask:
    """A task of a program, as a row of the table `tasks`."""

    group_id: int
    workload: str
    name: str
    iteration: int
    operation: str
    size_bytes: int | None
    parts: int
    start_ps: int | None
    first_finish_ps: int | None
    finish_ps: int | None
    time_ps: int | None
    last_rank: int
    bus_bandwidth_bps: float | None

    @property
    def collective(self) -> bool:
        """Whether the task is a collective."""
        return self.operation != COMPUTE


@dataclass(frozen=True)
class RankPart:
    """The part of a rank in a task."""

    task: ProgramTask
    rank: int
    host: int
    start_ps: int
    finish_ps: int | None
    """The end; `None` if the part did not end."""


def tasks_of(results: Data, run: Run, workload: str | None = None) -> list[ProgramTask]:
    """Returns the tasks of a point, or those of one workload; empty if no workload has tasks.

    Raises `KeyError` for a workload that the scenario does not have.
    """
    if workload is not None and workload not in results.workloads:
        did = did_you_mean(workload, results.workloads)
        raise UnknownNameError(f"there is no workload `{workload}`{did}\nhint: the workloads are {', '.join(results.workloads)}")
    fields = list(ProgramTask.__dataclass_fields__)
    rows = results.tasks(fields, {"point": run.point}).to_pylist()
    tasks = [ProgramTask(**{name: row[name] for name in fields}) for row in rows]
    return [task for task in tasks if workload in (None, task.workload)]


def ranks_of(results: Data, run: Run, tasks: Sequence[ProgramTask]) -> list[Rank]:
    """Returns the ranks that take part in tasks of a point, by workload and number."""
    workloads = {task.group_id: task.workload for task in tasks}
    table = results.parts(["group_id", "rank"], {"point": run.point})
    pairs = table.group_by(["group_id", "rank"]).aggregate([]) if table.num_rows else table
    found = zip(column(pairs, "group_id"), column(pairs, "rank"), strict=True)
    order = {name: i for i, name in enumerate(results.workloads)}
    return sorted(
        {(workloads[group], rank) for group, rank in found if group in workloads}, key=lambda one: (order.get(one[0], 0), one)
    )


def parts_of(
    results: Data, run: Run, tasks: Sequence[ProgramTask], ranks: Collection[Rank] | None = None
) -> dict[Rank, list[RankPart]]:
    """Returns the parts of ranks in tasks of a point by rank, in the order of their starts. Parts that
    did not begin are left out. `ranks` are the ranks to read, by default all.
    """
    known = {task.group_id: task for task in tasks}
    names = ["group_id", "rank", "host", "start_ps", "finish_ps"]
    table = results.parts(names, {"point": run.point})
    wanted = {"group_id": sorted(known)} | ({} if ranks is None else {"rank": sorted({rank for _, rank in ranks})})
    for name, values in wanted.items():
        table = table.filter(pc.is_in(table[name], pa.array(values, table.schema.field(name).type)))
    found: dict[Rank, list[RankPart]] = {}
    for group, rank, host, start, finish in zip(*(column(table, name) for name in names), strict=True):
        task = known.get(group)
        if task is not None and start is not None and (ranks is None or (task.workload, rank) in ranks):
            found.setdefault((task.workload, rank), []).append(RankPart(task, rank, host, start, finish))
    for parts in found.values():
        parts.sort(key=lambda part: (part.start_ps, part.task.group_id))
    return found


def lanes(spans: Sequence[tuple[float, float]]) -> list[int]:
    """Returns a lane for each span such that spans of a lane do not overlap: the lowest free lane, in
    the order of starts.

    >>> lanes([(0, 3), (1, 2), (2, 4), (3, 5)])
    [0, 1, 1, 0]
    """
    found, free, busy, used = [0] * len(spans), list[int](), list[tuple[float, int]](), 0
    for i in sorted(range(len(spans)), key=lambda i: spans[i][0]):
        while busy and busy[0][0] <= spans[i][0]:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            heapq.heappush(free, used)
            used += 1
        found[i] = heapq.heappop(free)
        heapq.heappush(busy, (spans[i][1], found[i]))
    return found


def placed(parts: Sequence[RankPart], until: float) -> list[int]:
    """Returns a lane for each part of a rank such that parts of a lane do not overlap. If some parts
    overlap, computations and collectives have lanes of their own. Parts without an end last `until`.
    """

    def lanes_of(chosen: Sequence[RankPart]) -> list[int]:
        return lanes([(part.start_ps, until if part.finish_ps is None else part.finish_ps) for part in chosen])

    together = lanes_of(parts)
    if not any(together):
        return together
    computing = [part for part in parts if not part.task.collective]
    first = lanes_of(computing)
    above = max(first, default=-1) + 1
    rest = iter([above + lane for lane in lanes_of([part for part in parts if part.task.collective])])
    own = iter(first)
    return [next(rest) if part.task.collective else next(own) for part in parts]


def longest(results: Data, run: Run, most: int = MOST_TASKS) -> Table | None:
    """Returns the tasks of a point that took longest, after those that did not end; `None` if no
    workload has tasks.
    """
    tasks = tasks_of(results, run)
    if not tasks:
        return None
    shown = sorted(tasks, key=lambda task: (task.time_ps is not None, -(task.time_ps or 0), task.group_id))[:most]
    several = len({task.workload for task in tasks}) > 1
    size, bytes_ = words.scale("bytes", [task.size_bytes or 0 for task in shown])
    time, unit = words.scale("s", [(task.time_ps or 0) * 1e-12 for task in shown])

    def cells(task: ProgramTask) -> list[str]:
        spread = None if task.finish_ps is None or task.first_finish_ps is None else task.finish_ps - task.first_finish_ps
        return [
            task.name,
            *([task.workload] if several else []),
            task.operation,
            str(task.iteration),
            "-" if task.size_bytes is None else f"{task.size_bytes / size:.4g}",
            str(task.parts),
            *("-" if ps is None else f"{ps * 1e-12 / time:.4g}" for ps in (task.start_ps, task.time_ps, spread)),
            str(task.last_rank),
            "-" if task.bus_bandwidth_bps is None else f"{task.bus_bandwidth_bps / 1e9:.4g}",
        ]

    heads = ["task", *(["workload"] if several else []), "operation", "iteration", words.axis("size", bytes_), "ranks"]
    heads += [words.axis(name, unit) for name in ("start", "time", "spread of ends")] + ["last rank", "bus bandwidth (Gbit/s)"]
    note = "spread of ends: from the end of the first rank to the end of the last"
    if len(tasks) > most:
        note += f"\nthe {most} longest of {len(tasks)} tasks; `tasks.parquet` has all of them"
    return Table(heads, [cells(task) for task in shown], 2 + several, note)
