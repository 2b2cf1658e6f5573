"""Scenarios, read from a file, a text or a dict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flowloom import _core
from flowloom.api.results import Results
from flowloom.base import errors

if TYPE_CHECKING:
    from concurrent.futures import Executor

Seeds = Sequence[int] | Literal["auto"] | None
"""Seeds instead of the scenario's; `auto`: as many as its `precision` needs."""

Progress = Callable[[dict[str, Any]], object]
"""Called during a run with what is done so far; see `Scenario.run`."""


class ScenarioWarning(UserWarning):
    """A scenario can run and may mislead: its load is above what a link carries, its systems are compared unlike, ..."""


class Scenario:
    """A checked scenario: every default filled in, every sweep expanded into points.

    >>> scenario = Scenario.from_dict({
    ...     "topology": {"kind": "star", "hosts": 4, "rate": "1Gbps", "delay": "10us"},
    ...     "workload": {"web": {"kind": "poisson", "flows": 50, "load": [0.2, 0.4], "size": "fixed", "mean": "15KB"}},
    ...     "system": [{"label": "TCP", "transport": "newreno"}],
    ... }, seeds=[1, 2])
    >>> len(scenario.points)
    4
    """

    def __init__(self, core: _core.Scenario, folder: str | Path = ".") -> None:
        self._core = core
        self._folder = Path(folder).absolute()

    @property
    def folder(self) -> Path:
        """Where the relative paths in the scenario start."""
        return self._folder

    @classmethod
    def from_file(
        cls,
        path: str | Path,
        *,
        set: Mapping[str, object] | None = None,
        seeds: Seeds = None,
        profile: str | None = None,
        memory: str | None = None,
    ) -> Scenario:
        """Read a scenario file. `set` overrides keys: `{"workload.web.load": 0.5}`.

        `memory`, such as `"8GB"`, is the memory that its points may take together, instead of what is free on this machine. A
        scenario or point that needs more is refused with a `ScenarioError`.
        """
        path = Path(path)
        text = path.read_text(encoding="utf-8")
        core = _core.Scenario.from_toml(text, str(path), str(path.parent), *settings(set, seeds), profile, memory)
        return cls(core, path.parent)

    @classmethod
    def from_toml(
        cls,
        text: str,
        *,
        name: str = "scenario",
        set: Mapping[str, object] | None = None,
        seeds: Seeds = None,
        profile: str | None = None,
        memory: str | None = None,
    ) -> Scenario:
        """Read a scenario from the text of a scenario file."""
        return cls(_core.Scenario.from_toml(text, name, ".", *settings(set, seeds), profile, memory))

    @classmethod
    def from_dict(
        cls,
        scenario: Mapping[str, Any],
        *,
        name: str = "scenario",
        set: Mapping[str, object] | None = None,
        seeds: Seeds = None,
        profile: str | None = None,
        memory: str | None = None,
    ) -> Scenario:
        """Read a scenario from a nested dict with the keys of a scenario file."""
        return cls(_core.Scenario.from_dict(plainly(scenario, ""), name, ".", *settings(set, seeds), profile, memory))

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points to run, each with its name, system, seed and swept values."""
        return self._core.points

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What can run and may mislead, one dict per warning: `file`, `line`, `col`, `message`, `label`, `hint`."""
        return self._core.warnings

    def resolved(self) -> str:
        """The whole plan as TOML, with a comment on every value that the scenario did not set itself."""
        return self._core.resolved()

    def run(
        self,
        *,
        jobs: int | None = None,
        threads: int | None = None,
        out: str | Path | None = None,
        progress: Progress | None = None,
        overwrite: bool = False,
        points: Sequence[str] | None = None,
        on: Executor | None = None,
    ) -> Results:
        """Run all points, or those that `points` names, `jobs` at a time (`None`: one per core).

        Each runs on `threads` threads (`None`: on cores that no other point needs, where the network is large enough to gain).
        Neither changes a result.

        With `out`, results go to that folder, and points already finished there are not run again. Results of another scenario,
        setting or version in it are replaced only with `overwrite`; without, `StorageError` is raised. `progress` is called with
        a dict: `points_done`, `points_total`, `point`, `flows_done`, `flows_total`, `events`, `elapsed_s`. Each of `warnings` is a
        `ScenarioWarning`.

        `on` is an executor of `concurrent.futures` whose workers run the points, such as that of a Dask client; `out` is needed
        then. The results are the same bytes. See `flowloom.clusters.points.run`.
        """
        if jobs is not None and jobs < 1:
            raise ValueError(f"`jobs` is {jobs}: it must be a whole number from 1\nhint: leave it out for one point per core")
        if threads is not None and threads < 1:
            wanted = "a whole number from 1\nhint: leave it out for the cores that are free"
            raise ValueError(f"`threads` is {threads}: it must be {wanted}")
        for found in self.warnings:
            text = "{file}:{line}:{col}: {message}\nhint: {hint}".format_map(found)
            errors.warn(text, ScenarioWarning)
        if on is not None:
            from flowloom.clusters import points as remote

            return Results(remote.run(self._core, self.folder, on, out, progress, overwrite, points))
        where = None if out is None else str(out)
        return Results(
            self._core.run(jobs or 0, threads or 0, where, progress, overwrite, None if points is None else list(points))
        )

    def __repr__(self) -> str:
        return f"<Scenario of {len(self.points)} points>"


def settings(given: Mapping[str, object] | None, seeds: Seeds) -> tuple[list[tuple[str, str]], Sequence[int] | None]:
    """Overrides and seeds as the compiled part takes them."""
    if isinstance(seeds, str):
        return [*overrides(given), ("seed", seeds)], None
    return overrides(given), seeds


def plainly(value: object, key: str) -> Any:
    """A value, at a dotted key, as a scenario can hold it: NumPy's numbers become Python's. Raises `ScenarioError` for others."""
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        value = item()
    if value is None or isinstance(value, str | bool):
        return value
    if key.count(".") > DEEPEST:
        raise refused(key[:40] + "...", f"is nested more than {DEEPEST} deep")
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise refused(key, f"`{value}` is too large: whole numbers have at most 63 bits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise refused(key, f"`{value}` is not a number that a scenario can hold")
        return value
    if isinstance(value, Mapping):
        return {str(name): plainly(inner, f"{key}.{name}" if key else str(name)) for name, inner in value.items()}
    if isinstance(value, list | tuple | range):
        return [plainly(inner, f"{key}.{i}") for i, inner in enumerate(value)]
    raise refused(key, f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__} is no value of a scenario")


DEEPEST = 50
"""As deep as a dict may be nested; no scenario needs ten."""


def refused(key: str, why: str) -> _core.ScenarioError:
    """The error for a value of a dict."""
    hint = "give texts, numbers, truth values, lists and dicts"
    error = _core.ScenarioError(f"`{key}`: {why}\nhint: {hint}")
    error.diagnostics = [{"file": "dict", "line": 1, "col": 1, "message": f"`{key}`: {why}", "label": "", "hint": hint}]
    return error


def overrides(given: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Overrides as the pairs of texts that `--set` takes."""
    return [(key, literal(value)) for key, value in (given or {}).items()]


def literal(value: object) -> str:
    """A value as it is written after `--set key=`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(quoted(v) for v in value) + "]"
    return str(value)


def quoted(value: object) -> str:
    """An element of a list in TOML."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return literal(value)
