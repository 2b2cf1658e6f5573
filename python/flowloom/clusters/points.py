"""Runs points of a scenario on the workers of a cluster.

Points are independent. A worker gets the whole plan as text and the name of a point, and returns
the files of the point. The files are placed in the results folder as if the point had been run
there, so a run can begin on a cluster and end on a laptop.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from flowloom import _core
from flowloom.base.errors import InputError
from flowloom.base.files import put
from flowloom.runs.data import Data

Key = TypeVar("Key")

Progress = Callable[[dict[str, Any]], object]
"""A function that is called during a run with what is done so far."""

MANIFEST = "manifest.json"
"""The file of a point that is written last: without it, the point does not count as done."""

TRIES = 3
"""The maximum number of runs of a point whose worker cannot use its files, such as on a full disk."""

DEATHS = 2
"""The number of workers that may die while running a point before the point is set aside. Dask
counts itself.
"""


class SetAsideError(OSError):
    """Raised when workers could not run some points. All other points have been run."""


class VersionError(InputError):
    """Raised when a worker has another version of flowloom."""


class WorkerDiedError(Exception):
    """Raised by an executor if a worker died. The text is the predicate of a sentence: "was cancelled"."""


class NotRunError(Exception):
    """Raised by an executor if it cannot run a point, and another try would not help."""


@dataclass(frozen=True)
class Failure:
    """What kept a worker from returning a point."""

    why: str
    tries: int = 1
    """A point is set aside after so many failures of this kind."""


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
        raise InputError("a run on other machines needs `out`, the folder for its results")
    names = [point["point"] for point in core.points]
    unknown = [name for name in points or () if name not in names]
    if unknown:
        raise InputError(f"there is no point `{unknown[0]}`")
    out = Path(out)
    there = Data(core.run(1, 1, str(out), None, overwrite, []))
    wanted = [name for name in names if points is None or name in points]
    done = {run.point for run in there.runs if run.state == "done"} & set(wanted)
    plan = core.resolved()
    tasks = {name: Task(plan, str(folder), name, _core.version, core.memory) for name in wanted if name not in done}
    reporter = Reporter(progress, len(wanted), len(done))
    aside: dict[str, str] = {}
    try:
        with closing(collect(executor, tasks, lambda name: out / name)) as collected:
            for name, why in collected:
                if why is None:
                    reporter.done += 1
                    reporter.report(name)
                else:
                    aside[name] = why
    finally:
        # Points that were returned count, however the run ends.
        results = core.run(1, 1, str(out), None, False, [])
    if aside:
        first, why = next(iter(aside.items()))
        which = ", such as" if len(aside) > 1 else ":"
        hint = "the same command runs the missing points; without `--on`, it runs them on this machine"
        raise SetAsideError(f"{len(aside)} of {len(wanted)} points set aside{which} `{first}`: {why}\nhint: {hint}")
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


def collect(
    executor: Executor, tasks: Mapping[Key, Task], folder: Callable[[Key], Path]
) -> Generator[tuple[Key, str | None], None, None]:
    """Runs tasks and places their files in folders. Yields each key when its point is done, with
    `None`, or when the point is set aside, with the reason.
    """
    failures: Counter[tuple[Key, int]] = Counter()
    futures = {executor.submit(work, task): key for key, task in tasks.items()}
    try:
        while futures:
            # Further tries are added to `futures` and awaited in the next round.
            for future in as_completed(list(futures)):
                key = futures.pop(future)
                failure = place(future, folder(key))
                if failure is None:
                    yield key, None
                    continue
                failures[key, failure.tries] += 1
                if failures[key, failure.tries] < failure.tries:
                    futures[executor.submit(work, tasks[key])] = key
                else:
                    yield key, failure.why
    finally:
        for future in futures:
            future.cancel()


def place(future: Future[dict[str, bytes]], folder: Path) -> Failure | None:
    """Places the files of a point that a worker returned, or returns why there are none.

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
    except CancelledError:
        return Failure("the scheduler is gone")
    except WorkerDiedError as error:
        return Failure(f"{DEATHS} workers died while running it; the last {error}", DEATHS)
    except NotRunError as error:
        return Failure(str(error))
    except OSError as error:
        return Failure(f"its worker could not use a file: {error}".splitlines()[0], TRIES)
    except Exception as error:
        if type(error).__name__ != "KilledWorker":
            raise
        return Failure(killed(error))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    for name in sorted(files, key=lambda name: name == MANIFEST):
        put(folder / name, files[name])
    return None


def killed(error: Any) -> str:
    """Returns the message about a `KilledWorker` of Dask, which tries again itself."""
    return f"{error.allowed_failures + 1} workers died while running it; the last was {error.last_worker.address}"
