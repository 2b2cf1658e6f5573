"""Runs points of a scenario on the workers of a cluster.

Points are independent. A worker gets the whole plan as text and the name of a point, and returns
the files of the point. The files are placed in the results folder as if the point had been run
there, so a run can begin on a cluster and end on a laptop.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flowloom import _core
from flowloom.base.files import put
from flowloom.runs.data import Data

Progress = Callable[[dict[str, Any]], object]
"""A function that is called during a run with what is done so far."""

MANIFEST = "manifest.json"
"""The file of a point that is written last: without it, the point does not count as done."""

TRIES = 3
"""The maximum number of runs of a point whose worker cannot use its files, such as on a full disk."""


class SetAsideError(OSError):
    """Raised when workers could not run some points. All other points have been run."""


class VersionError(ValueError):
    """Raised when a worker has another version of flowloom."""


@dataclass(frozen=True)
class Task:
    """A point to run. A worker needs only flowloom and the files that the scenario names."""

    plan: str
    """The plan with every default, as TOML."""
    folder: str
    """The folder at which relative paths in the plan start."""
    point: str
    version: str
    """The version of the program that runs the scenario."""
    memory: str | None = None
    """The memory that the point may take; `None`: the memory that is free on the worker's machine."""


def work(task: Task) -> dict[str, bytes]:
    """Runs a point on a worker. Returns its files by name."""
    if _core.version != task.version:
        raise VersionError(versions({"a worker": _core.version}, task.version))
    plan = _core.Scenario.from_toml(task.plan, "plan", task.folder, memory=task.memory)
    with tempfile.TemporaryDirectory(prefix="flowloom-") as there:
        plan.run(1, 1, there, None, False, [task.point])
        return {file.name: file.read_bytes() for file in (Path(there) / task.point).iterdir()}


def version() -> str:
    """Returns the version of flowloom. Runs on a worker."""
    return _core.version


def versions(found: Mapping[str, str], own: str) -> str:
    """Returns the message about workers with another version."""
    listed = ", ".join(f"{worker} has flowloom {other}" for worker, other in found.items())
    return f"{listed}; this machine has {own}\nhint: install the same version on all machines: results depend on it"


def run(
    core: _core.Scenario,
    folder: Path,
    executor: Executor,
    out: str | Path | None,
    progress: Progress | None = None,
    overwrite: bool = False,
    points: Sequence[str] | None = None,
) -> _core.Results:
    """Runs the points of a scenario that are missing in `out` on the workers of `executor`.

    Relative paths in the scenario start at `folder`, on the workers too.

    The results have the same bytes as those of a run on this machine, except for times and memory
    in manifests. Each finished point is in `out` at once: a stopped run continues there, with any
    executor. A point whose worker dies or cannot write its files is tried again. If that fails, the
    point is set aside, all other points are run, and `SetAsideError` names it at the end.
    """
    if out is None:
        raise ValueError("a run on other machines needs `out`, the folder for its results")
    names = [point["point"] for point in core.points]
    unknown = [name for name in points or () if name not in names]
    if unknown:
        raise ValueError(f"there is no point `{unknown[0]}`")
    out = Path(out)
    there = Data(core.run(1, 1, str(out), None, overwrite, []))
    wanted = [name for name in names if points is None or name in points]
    done = {run.point for run in there.runs if run.state == "done"} & set(wanted)
    plan = core.resolved()
    tasks = [Task(plan, str(folder), name, _core.version, core.memory) for name in wanted if name not in done]
    reporter = Reporter(progress, len(wanted), len(done))
    try:
        aside = collect(executor, tasks, out, reporter)
    finally:
        # Points that were returned count, however the run ends.
        results = core.run(1, 1, str(out), None, False, [])
    if aside:
        first, why = next(iter(aside.items()))
        more = f", and {len(aside) - 1} more" if len(aside) > 1 else ""
        hint = "the same command runs the missing points; without `--on`, it runs them on this machine"
        raise SetAsideError(f"{len(aside)} of {len(wanted)} points set aside: `{first}`: {why}{more}\nhint: {hint}")
    lost = set(wanted) - {run.point for run in Data(results).runs if run.state == "done"}
    if lost:
        hint = "another program removed or replaced them; the same command runs them again"
        raise _core.StorageError(f"`{out}` lost points during the run: {', '.join(sorted(lost))}\nhint: {hint}")
    return results


@dataclass
class Reporter:
    """Reports the progress of a run."""

    progress: Progress | None
    total: int
    done: int

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.kept = self.done
        self.report(None)

    def report(self, point: str | None) -> None:
        """Reports what is done so far."""
        if self.progress is None:
            return
        elapsed, ran = time.monotonic() - self.began, self.done - self.kept
        left = elapsed * (self.total - self.done) / ran if ran else None
        known: dict[str, Any] = {"points_done": self.done, "points_total": self.total, "point": point, "points_skipped": self.kept}
        nothing = {"flows_done": 0, "flows_total": 0, "events": 0}
        self.progress(known | nothing | {"elapsed_s": elapsed, "remaining_s": left})


def collect(executor: Executor, tasks: Sequence[Task], out: Path, reporter: Reporter) -> dict[str, str]:
    """Runs tasks and places their files. Returns the points that were set aside, with the reasons."""
    tries = dict.fromkeys((task.point for task in tasks), 1)
    aside: dict[str, str] = {}
    open_ones = {executor.submit(work, task): task for task in tasks}
    try:
        while open_ones:
            again: dict[Future[dict[str, bytes]], Task] = {}
            for future in as_completed(list(open_ones)):
                task = open_ones.pop(future)
                why, retry = place(future, out / task.point)
                if why is None:
                    reporter.done += 1
                    reporter.report(task.point)
                elif retry and tries[task.point] < TRIES:
                    tries[task.point] += 1
                    again[executor.submit(work, task)] = task
                else:
                    aside[task.point] = why
            open_ones = again
    except BaseException:
        for future in open_ones:
            future.cancel()
        raise
    return aside


def place(future: Future[dict[str, bytes]], folder: Path) -> tuple[str | None, bool]:
    """Places the files of a point that a worker returned. Returns the reason if there are none, and
    whether to try again.

    Raises errors of the scenario, of the worker's version, and of this machine's disk.
    """
    try:
        files = future.result()
    except (VersionError, _core.ScenarioError, _core.RunError):
        raise
    except BrokenExecutor as error:
        raise OSError(
            f"a worker died, and the executor stopped all others: {error}\nhint: run the same command again to continue"
        ) from None
    except OSError as error:
        return f"its worker could not use a file: {error}".splitlines()[0], True
    except Exception as error:
        if not is_death(error):
            raise
        return f"its worker died repeatedly: {error}".splitlines()[0], False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: name == MANIFEST):
        put(folder / name, files[name])
    return None, False


def is_death(error: BaseException) -> bool:
    """Whether the error reports that workers died while running a point, as named by Dask and Slurm."""
    return type(error).__name__ in ("KilledWorker", "FailedJobError", "UncompletedJobError", "CancelledError")
