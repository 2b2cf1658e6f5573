"""Runs the points of many scenarios: a point that several scenarios need is run once."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from flowloom import _core
from flowloom.api.results import Results
from flowloom.base.meter import Meter
from flowloom.clusters.points import MANIFEST, Reporter, Task, collect

Key = tuple[str, str]
"""A point in any folder: the hash of all that its result depends on, and its name."""


@dataclass(frozen=True)
class Wanted:
    """A scenario to run into a folder."""

    core: _core.Scenario
    folder: Path
    """The folder at which relative paths in the scenario start."""
    out: Path
    points: Sequence[str] | None = None
    """The points that are needed; `None`: all."""

    @property
    def needed(self) -> Sequence[str]:
        """The points that are needed."""
        return list(self.core.config_hashes()) if self.points is None else self.points


@dataclass
class Runs:
    """Runs scenarios into folders of a search. A point that exists in another folder is linked, not
    run again.
    """

    root: Path
    executor: Executor | None = None
    """The executor that runs the points; `None`: `jobs` threads."""
    jobs: int | None = None
    meter: Callable[[str], Meter] | None = None
    known: dict[Key, Path] = field(default_factory=dict)
    """The folders of points that are done."""

    def __post_init__(self) -> None:
        for manifest in sorted(self.root.glob(f"*/*/*/{MANIFEST}")):
            self.remember(manifest.parent)

    def remember(self, folder: Path) -> None:
        """Records a point that is done."""
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # the run that needs this point reports the damage
        if manifest.get("state") == "done" and manifest.get("program") == _core.version:
            self.known[manifest.get("config_hash", ""), folder.name] = folder

    def run(self, label: str, wanted: Iterable[Wanted]) -> list[Results]:
        """Runs the missing points. Returns the results in the order of `wanted`.

        Raises `StorageError` if a point is missing or damaged at the end.
        """
        every = list(wanted)
        missing: dict[Key, list[Path]] = {}
        tasks: dict[Key, Task] = {}
        total = 0
        for one in {one.out: one for one in every}.values():
            done = finished(one)
            hashes = one.core.config_hashes()
            plan = one.core.resolved()
            for point in one.needed:
                total += 1
                key = hashes[point], point
                if point in done:
                    self.known[key] = one.out / point
                elif self.whole(key):
                    link(self.known[key], one.out / point)
                else:
                    missing.setdefault(key, []).append(one.out / point)
                    tasks.setdefault(key, Task(plan, str(one.folder.absolute()), point, _core.version))
        meter = self.meter(label) if self.meter and tasks else None
        try:
            self.collect(tasks, missing, Reporter(meter, total, total - sum(map(len, missing.values()))))
        finally:
            if meter is not None:
                meter.close()
        found = [Results(one.core.run(1, 1, str(one.out), None, False, [])) for one in every]
        for one, results in zip(every, found, strict=True):
            lost = set(one.needed) - {run.point for run in results.runs if run.state == "done"}
            if lost:
                hint = "another program removed or changed them; the same command runs them again"
                raise _core.StorageError(f"`{one.out}` lost points during the search: {', '.join(sorted(lost))}\nhint: {hint}")
        return found

    def whole(self, key: Key) -> bool:
        """Returns whether a point is done in another folder. Compares all its files with their hashes,
        since a run reports damage only in its own folder.
        """
        try:
            if key in self.known and _core.check_point(self.known[key]) == key:
                return True
        except _core.StorageError:
            pass  # the point is run again
        self.known.pop(key, None)
        return False

    def collect(self, tasks: Mapping[Key, Task], missing: Mapping[Key, Sequence[Path]], reporter: Reporter) -> None:
        """Runs tasks and places their files in every folder that needs them."""
        if not tasks:
            return
        executor = self.executor or ThreadPoolExecutor(self.jobs or os.cpu_count() or 1)
        try:
            with closing(collect(executor, tasks, lambda key: missing[key][0])) as collected:
                for key, why in collected:
                    if why is not None:
                        raise OSError(f"point `{key[1]}`: {why}\nhint: run the same command again to continue")
                    first, *others = missing[key]
                    self.known[key] = first
                    for other in others:
                        link(first, other)
                    reporter.done += 1 + len(others)
                    reporter.report(key[1])
        finally:
            if self.executor is None:
                executor.shutdown()


def finished(one: Wanted) -> set[str]:
    """Returns the points that are done in the folder of a scenario. Removes those that are damaged."""
    return {run.point for run in Results(one.core.run(1, 1, str(one.out), None, False, [])).runs if run.state == "done"}


def link(point: Path, to: Path) -> None:
    """Puts a finished point into another folder, by links, or by copies if links are not possible.
    The manifest comes last.
    """
    to.mkdir(parents=True, exist_ok=True)
    for file in sorted((file for file in point.iterdir() if file.is_file()), key=lambda file: file.name == MANIFEST):
        (to / file.name).unlink(missing_ok=True)
        try:
            os.link(file, to / file.name)
        except OSError:
            shutil.copyfile(file, to / file.name)
