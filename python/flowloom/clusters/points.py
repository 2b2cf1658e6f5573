"""Points of a scenario on the workers of a cluster.

Points are independent. A worker gets the whole plan as text and the name of a point, and sends the files of the point back. The
files are placed in the results folder as if the point had been run there, so that a run can begin on a cluster and end on a laptop.
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
"""Called during a run with what is done so far."""

MANIFEST = "manifest.json"
"""The file of a point that is written last: without it the others do not count."""

TRIES = 3
"""How often a point is run whose worker has trouble with files, such as a full disk."""


class SetAsideError(OSError):
    """Points that workers could not run. All others have been run."""


class VersionError(ValueError):
    """A worker has another version of flowloom."""


@dataclass(frozen=True)
class Task:
    """A point to run. A worker needs nothing but the program, and the files that the scenario names."""

    plan: str
    """The plan with every default, as TOML."""
    folder: str
    """Where the relative paths in it start."""
    point: str
    version: str
    """The program that asks."""
    memory: str | None = None
    """The memory that the point may take; `None`: what is free on the worker's machine."""


def work(task: Task) -> dict[str, bytes]:
    """Runs a point, on a worker. Returns its files by name."""
    if _core.version != task.version:
        raise VersionError(versions({"a worker": _core.version}, task.version))
    plan = _core.Scenario.from_toml(task.plan, "plan", task.folder, memory=task.memory)
    with tempfile.TemporaryDirectory(prefix="flowloom-") as there:
        plan.run(1, 1, there, None, False, [task.point])
        return {file.name: file.read_bytes() for file in (Path(there) / task.point).iterdir()}


def version() -> str:
    """The version of the program, asked of a worker."""
    return _core.version


def versions(found: Mapping[str, str], own: str) -> str:
    """What to say of workers with another version."""
    listed = ", ".join(f"{worker} has flowloom {other}" for worker, other in found.items())
    return f"{listed}; this is {own}\nhint: install the same version on all machines: results depend on it"


def run(
    core: _core.Scenario,
    folder: Path,
    executor: Executor,
    out: str | Path | None,
    progress: Progress | None = None,
    overwrite: bool = False,
    points: Sequence[str] | None = None,
) -> _core.Results:
    """Runs the points of a scenario that `out` does not have yet on the workers of `executor`.

    Relative paths in the scenario start at `folder`, on the workers too.

    The results are the same bytes as those of a run on this machine, except for times and memory in manifests. What is done is in
    `out` at once: a run that was stopped goes on there, on whatever executor. A point whose worker dies, or cannot write its files,
    is tried again; when that does not help it is set aside, the others are run, and `SetAsideError` names it at the end.
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
    told = Told(progress, len(wanted), len(done))
    try:
        aside = collect(executor, tasks, out, told)
    finally:
        # What came back counts, however this ends.
        results = core.run(1, 1, str(out), None, False, [])
    if aside:
        first, why = next(iter(aside.items()))
        more = f", and {len(aside) - 1} more" if len(aside) > 1 else ""
        hint = "the same command runs what is missing, and without `--on` it runs here"
        raise SetAsideError(f"{len(aside)} of {len(wanted)} points set aside: `{first}`: {why}{more}\nhint: {hint}")
    lost = set(wanted) - {run.point for run in Data(results).runs if run.state == "done"}
    if lost:
        hint = "something else removed or replaced them: the same command runs them again"
        raise _core.StorageError(f"`{out}` has lost points of the run while it ran: {', '.join(sorted(lost))}\nhint: {hint}")
    return results


@dataclass
class Told:
    """Tells how far a run is."""

    progress: Progress | None
    total: int
    done: int

    def __post_init__(self) -> None:
        self.began = time.monotonic()
        self.kept = self.done
        self.tell(None)

    def tell(self, point: str | None) -> None:
        """Reports what is done so far."""
        if self.progress is None:
            return
        elapsed, ran = time.monotonic() - self.began, self.done - self.kept
        left = elapsed * (self.total - self.done) / ran if ran else None
        known: dict[str, Any] = {"points_done": self.done, "points_total": self.total, "point": point, "points_skipped": self.kept}
        nothing = {"flows_done": 0, "flows_total": 0, "events": 0}
        self.progress(known | nothing | {"elapsed_s": elapsed, "remaining_s": left})


def collect(executor: Executor, tasks: Sequence[Task], out: Path, told: Told) -> dict[str, str]:
    """Runs tasks and places what comes back. Returns the points that were set aside, and why."""
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
                    told.done += 1
                    told.tell(task.point)
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
    """Places the files of a point that has come back. Returns why there are none, if so, and whether to try again.

    Raises what is wrong with the scenario, with the worker's version, or with this machine's disk.
    """
    try:
        files = future.result()
    except (VersionError, _core.ScenarioError, _core.RunError):
        raise
    except BrokenExecutor as error:
        raise OSError(f"a worker died and took the others with it: {error}\nhint: the same command goes on from here") from None
    except OSError as error:
        return f"its worker could not use a file: {error}".splitlines()[0], True
    except Exception as error:
        if not is_death(error):
            raise
        return f"its worker died again and again: {error}".splitlines()[0], False
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: name == MANIFEST):
        put(folder / name, files[name])
    return None, False


def is_death(error: BaseException) -> bool:
    """Whether the error says that workers died of a point, in the words of Dask and of Slurm."""
    return type(error).__name__ in ("KilledWorker", "FailedJobError", "UncompletedJobError", "CancelledError")
