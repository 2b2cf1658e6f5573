"""Results of small real runs with tasks of programs that are written by hand, for tests of what reads tasks."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import pyarrow as pa
import small
from flowloom.api.results import Results
from flowloom.runs.data import Run
from flowloom.runs.programs import ProgramTask

US = 1_000_000
TASK = {
    "group_id": 0, "workload": "web", "name": "task", "iteration": 0, "operation": "compute", "size_bytes": None, "parts": 0,
    "start_ps": None, "first_finish_ps": None, "finish_ps": None, "time_ps": None, "last_rank": 0, "algorithm_bandwidth_bps": None,
    "bus_bandwidth_bps": None,
}  # fmt: skip
FLOWS = ("flow_id", "src", "dst", "size_bytes", "start_ps", "finish_ps", "group_id", "fct_ps", "ideal_fct_ps", "slowdown")
PARTS = ("group_id", "workload", "rank", "host", "start_ps", "finish_ps")

Rows = list[dict[str, Any]]


class Program:
    """The tasks and parts of a point. Times are in microseconds."""

    def __init__(self, workload: str = "web", first: int = 0) -> None:
        self.workload, self.first = workload, first
        self.tasks: Rows = []
        self.parts: Rows = []

    def task(
        self,
        name: str,
        times: Mapping[int, tuple[float | None, float | None]],
        iteration: int = 0,
        operation: str = "compute",
        size: int | None = None,
        bandwidth: float | None = None,
    ) -> int:
        """Adds a task with the start and end of each rank, and returns its `group_id`."""
        group = self.first + len(self.tasks)
        ps = {rank: tuple(None if time is None else round(time * US) for time in own) for rank, own in times.items()}
        start = min(own[0] for own in ps.values() if own[0] is not None)
        ends = [own[1] for own in ps.values()]
        known = [end for end in ends if end is not None]
        finish = max(known) if len(known) == len(ends) else None
        last = next((rank for rank, own in ps.items() if own[1] == finish), 0)
        row = {"group_id": group, "workload": self.workload, "name": name, "iteration": iteration, "operation": operation}
        row |= {"size_bytes": size, "parts": len(times), "start_ps": start, "first_finish_ps": min(known, default=None)}
        row |= {"finish_ps": finish, "time_ps": None if finish is None else finish - start, "last_rank": last}
        self.tasks.append(TASK | row | {"bus_bandwidth_bps": bandwidth})
        for rank, (begun, ended) in ps.items():
            self.parts.append(dict(zip(PARTS, (group, self.workload, rank, rank, begun, ended), strict=True)))
        return group


class WithTasks(Results):
    """Results whose tasks, parts, and flows are replaced by point."""

    given: Mapping[str, Mapping[str, Rows]]
    metrics: Sequence[Mapping[str, Any]] = ()

    def _table(self, name: str, columns: Sequence[str] | None, at: Mapping[str, object] | None) -> pa.Table:
        if name not in self.given:
            return super()._table(name, columns, at)
        rows = []
        for run in self.select(at):
            label = {"point": run.point, "system": run.system, "seed": run.seed, **run.keys}
            rows += [{**label, **row} for row in self.given[name].get(run.point, [])]
        if not rows:
            fields = {"flows": FLOWS, "tasks": TASK, "parts": PARTS}[name]
            return pa.table({key: pa.array([], pa.int64()) for key in ["point", *fields]})
        table = pa.Table.from_pylist(rows)
        return table if columns is None else table.select(["point", "system", "seed", *self.keys, *columns])

    def summary(self, workloads: bool = False) -> pa.Table:
        """Adds the metrics that are given."""
        table = super().summary(workloads)
        if not self.metrics:
            return table
        rows = table.to_pylist()
        first = dict.fromkeys(table.column_names)
        return pa.Table.from_pylist(rows + [{**first, **row} for row in self.metrics], schema=table.schema)


def with_tasks(results: Results, programs: Mapping[str, Sequence[Program]], flows: Mapping[str, Rows] | None = None) -> WithTasks:
    """Returns results with the tasks of these programs, by point."""
    found = copy(results)
    found.__class__ = WithTasks
    assert isinstance(found, WithTasks)
    given = {
        "tasks": {point: [row for one in some for row in one.tasks] for point, some in programs.items()},
        "parts": {point: [row for one in some for row in one.parts] for point, some in programs.items()},
    }
    found.given = given | ({} if flows is None else {"flows": flows})
    return found


def training(ranks: int, iterations: int, slow: float = 1.0, first: int = 0, workload: str = "web") -> Program:
    """Returns a program that computes three layers forward and backward and sums each gradient, with one slow rank per sum."""
    program, draw = Program(workload, first), random.Random(ranks)
    ready = dict.fromkeys(range(ranks), 0.0)
    for i in range(iterations):
        for layer in range(3):
            ends = {rank: at + 10 for rank, at in ready.items()}
            program.task(f"forward {layer}", {rank: (ready[rank], ends[rank]) for rank in ready}, i)
            ready = ends
        moved = dict(ready)
        for layer in (2, 1, 0):
            ends = {rank: at + 20 for rank, at in ready.items()}
            program.task(f"backward {layer}", {rank: (ready[rank], ends[rank]) for rank in ready}, i)
            begin = {rank: max(ends[rank], moved[rank]) for rank in ready}
            last = draw.randrange(ranks)
            done = max(begin.values())
            moved = {rank: done + slow * (22 + 3 * draw.random() + 8 * (rank == last)) for rank in ready}
            size, name = 8 << 20, f"gradients {layer}"
            program.task(name, {rank: (begin[rank], moved[rank]) for rank in ready}, i, "all_reduce", size, 3e11 / slow)
            ready = ends
        ready = {rank: max(ready[rank], moved[rank]) for rank in ready}
    return program


METRICS = {
    "mean_iteration_s": ("s", 3e-3),
    "max_iteration_s": ("s", 4e-3),
    "exposed_communication": ("", 0.2),
    "bubble_share": ("", 0.1),
    "mean_bus_bandwidth_bps": ("bps", 3e11),
}


def measured(results: WithTasks) -> WithTasks:
    """Adds metrics of tasks, which are larger for each further system."""
    rows = []
    for run in {(run.system, *run.keys.values()): run for run in results.runs}.values():
        for metric, (unit, value) in METRICS.items():
            mean = value * (1 + results.systems.index(run.system))
            ends = {"ci95_low": 0.9 * mean, "ci95_high": 1.1 * mean}
            place = {"system": run.system, **run.keys, "metric": metric, "unit": unit, "seeds": len(results.seeds)}
            rows.append({**place, "mean": mean, **ends})
    results.metrics = rows
    return results


def everywhere(results: Results) -> WithTasks:
    """Returns results with a training job at every point, and with the metrics of tasks."""
    return measured(with_tasks(results, {run.point: [training(6, 2)] for run in results.runs}))


def run(folder: Path, systems: Sequence[str] = ("MERP", "TCP"), seeds: Sequence[int] = (1,), **more: Any) -> Results:
    """Returns the results of a short real run."""
    return small.run(folder, systems, seeds=seeds, flows=5, **more)


def first(results: Results, system: str) -> Run:
    """Returns the first point of a system."""
    return results.select({"system": system})[0]


assert set(ProgramTask.__dataclass_fields__) <= set(TASK)
