"""Scenarios, read from a file, a text or a dict."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from flowloom import _core
from flowloom.api.results import Results
from flowloom.base import errors
from flowloom.base.errors import InputError

if TYPE_CHECKING:
    from concurrent.futures import Executor

Seeds = Sequence[int] | Literal["auto"] | None
"""Seeds that override those of a scenario; `"auto"`: as many as its `precision` needs; `None`: the
scenario's own.
"""

Progress = Callable[[dict[str, Any]], object]
"""A function that is called during a run with what is done so far; see `Scenario.run`."""


class ScenarioWarning(UserWarning):
    """A warning of a scenario: it can run, but its results may mislead, such as when a load exceeds
    the capacity of a link.
    """


class Scenario:
    """A checked scenario, with every default filled in and every sweep expanded into points.

    Made by `Scenario.from_file`, `Scenario.from_toml` and `Scenario.from_dict`.

    Examples
    --------
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
        """The folder at which relative paths in the scenario start."""
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
        """Reads a scenario file.

        Parameters
        ----------
        path : str or Path
            The file. Relative paths in the scenario start at its folder.
        set : mapping, optional
            Values that override keys of the scenario, such as `{"workload.web.load": 0.5}`.
        seeds : sequence of int or "auto", optional
            Seeds that override those of the scenario. `"auto"` takes as many seeds as the
            scenario's `precision` needs.
        profile : str, optional
            The profile of the scenario to apply. Several profiles, such as `"literal,smoke"`, are
            applied in order.
        memory : str, optional
            The memory that all points may take together, such as `"8GB"`. By default, the memory
            that is free on this machine.

        Returns
        -------
        Scenario
            The checked scenario.

        Raises
        ------
        ScenarioError
            If the scenario has mistakes, or if it or one of its points needs more memory.
        OSError
            If the file cannot be read.
        """
        path = Path(path)
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"`{path}` is not UTF-8 text: its byte {error.start} is wrong") from None
        core = _core.Scenario.from_toml(text, str(path), str(path.parent), *_settings(set, seeds), _profiles(profile), memory)
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
        """Reads a scenario from the text of a scenario file.

        Parameters
        ----------
        text : str
            The text, in TOML. Relative paths in the scenario start at the current folder.
        name : str, default "scenario"
            The name of the text in error messages.
        set : mapping, optional
            Values that override keys of the scenario, such as `{"workload.web.load": 0.5}`.
        seeds : sequence of int or "auto", optional
            Seeds that override those of the scenario. `"auto"` takes as many seeds as the
            scenario's `precision` needs.
        profile : str, optional
            The profile of the scenario to apply. Several profiles, such as `"literal,smoke"`, are
            applied in order.
        memory : str, optional
            The memory that all points may take together, such as `"8GB"`. By default, the memory
            that is free on this machine.

        Returns
        -------
        Scenario
            The checked scenario.

        Raises
        ------
        ScenarioError
            If the scenario has mistakes, or if it or one of its points needs more memory.
        """
        return cls(_core.Scenario.from_toml(text, name, ".", *_settings(set, seeds), _profiles(profile), memory))

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
        """Reads a scenario from a nested dict with the keys of a scenario file.

        Parameters
        ----------
        scenario : mapping
            The scenario. Values are texts, numbers, truth values, lists and dicts; numbers of NumPy
            are accepted.
        name : str, default "scenario"
            The name of the scenario in error messages.
        set : mapping, optional
            Values that override keys of the scenario, such as `{"workload.web.load": 0.5}`.
        seeds : sequence of int or "auto", optional
            Seeds that override those of the scenario. `"auto"` takes as many seeds as the
            scenario's `precision` needs.
        profile : str, optional
            The profile of the scenario to apply. Several profiles, such as `"literal,smoke"`, are
            applied in order.
        memory : str, optional
            The memory that all points may take together, such as `"8GB"`. By default, the memory
            that is free on this machine.

        Returns
        -------
        Scenario
            The checked scenario.

        Raises
        ------
        ScenarioError
            If the scenario has mistakes, or if it or one of its points needs more memory.
        """
        return cls(_core.Scenario.from_dict(_plain(scenario, ""), name, ".", *_settings(set, seeds), _profiles(profile), memory))

    @property
    def points(self) -> list[dict[str, Any]]:
        """The points to run, one dict per point: `point` (its name), `system`, `seed`, and the
        value of each swept key.
        """
        return self._core.points

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """The warnings, one dict per warning: `file`, `line`, `col`, `message`, `label` and `hint`."""
        return self._core.warnings

    def resolved(self) -> str:
        """Returns the resolved scenario as TOML.

        Returns
        -------
        str
            The scenario, with a comment on every value that it did not set itself.
        """
        return self._core.resolved()

    def run(
        self,
        *,
        jobs: int | None = None,
        threads: int | None = None,
        engine: Literal["auto", "tree", "windows"] = "auto",
        out: str | Path | None = None,
        progress: Progress | None = None,
        overwrite: bool = False,
        points: Sequence[str] | None = None,
        on: Executor | None = None,
    ) -> Results:
        """Runs the points of the scenario.

        Parameters
        ----------
        jobs : int, optional
            The number of points to run at the same time. By default, one per core.
        threads : int, optional
            The number of threads of each point. By default, the cores that no other point needs, if
            the network is large enough.
        engine : {"auto", "tree", "windows"}, default "auto"
            The order of events in a run by packets: by time, or node by node in windows, which is
            faster in large networks. `"auto"` chooses by the size of the network.
        out : str or Path, optional
            The folder for the results. Points that are finished there are not run again. By
            default, results stay in memory.
        progress : callable, optional
            A function that is called during the run with a dict: `points_done`, `points_total`,
            `point`, `flows_done`, `flows_total`, `events` and `elapsed_s` (in s).
        overwrite : bool, default False
            Whether to replace results of another scenario, setting or version in `out`.
        points : sequence of str, optional
            The names of the points to run. By default, all.
        on : concurrent.futures.Executor, optional
            An executor whose workers run the points, such as the executor of a Dask client. `out`
            is needed. The workers need the same version of flowloom, and the files that the
            scenario names.

        Returns
        -------
        Results
            The results. They depend neither on `jobs`, `threads` and `engine` nor on `on`.

        Raises
        ------
        StorageError
            If `out` holds results of another run and `overwrite` is false, or if it cannot be written.
        RunError
            If a run cannot start.
        ValueError
            If `jobs` or `threads` is below 1, if `engine` has another value, or if `on` is given without
            `out` or with an `engine`.

        Warns
        -----
        ScenarioWarning
            For each of `warnings`.
        """
        if jobs is not None and jobs < 1:
            raise InputError(
                f"`jobs` is {jobs}: it must be a whole number of at least 1\nhint: leave it out for one point per core"
            )
        if threads is not None and threads < 1:
            wanted = "a whole number of at least 1\nhint: leave it out to use the cores that are free"
            raise InputError(f"`threads` is {threads}: it must be {wanted}")
        for found in self.warnings:
            errors.warn("{file}:{line}:{col}: {message}\nhint: {hint}".format_map(found), ScenarioWarning)
        if on is not None and engine != "auto":
            raise InputError("`engine` cannot be given together with `on`: the workers choose it")
        if on is not None:
            from flowloom.clusters import points as remote

            return Results(remote.run(self._core, self.folder, on, out, progress, overwrite, points))
        where = None if out is None else str(out)
        return Results(
            self._core.run(
                jobs=jobs or 0,
                threads=threads or 0,
                engine=engine,
                out=where,
                progress=progress,
                overwrite=overwrite,
                points=None if points is None else list(points),
            )
        )

    def __repr__(self) -> str:
        return f"<Scenario of {len(self.points)} points>"


def _settings(given: Mapping[str, object] | None, seeds: Seeds) -> tuple[list[tuple[str, str]], Sequence[int] | None]:
    """Returns overrides and seeds as the compiled part takes them."""
    if isinstance(seeds, str):
        return [*_overrides(given), ("seed", seeds)], None
    return _overrides(given), seeds


def _profiles(profile: str | None) -> str | None:
    """Returns the names of profiles. Raises `ValueError` for an empty name."""
    if profile is not None and not all(name.strip() for name in profile.split(",")):
        raise InputError(f"`profile` is `{profile}`, which has an empty name\nhint: leave it out to apply no profile")
    return profile


def _plain(value: object, key: str) -> Any:
    """Returns the value of a dotted key with numbers of NumPy as numbers of Python. Raises
    `ScenarioError` for other values.
    """
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "shape", None) == ():
        value = item()
    if value is None or isinstance(value, str | bool):
        return value
    if key.count(".") > _DEEPEST:
        raise _refused(key[:40] + "...", f"is nested more than {_DEEPEST} deep")
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise _refused(key, f"`{value}` is too large: whole numbers have at most 63 bits")
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _refused(key, f"`{value}` is not a number that a scenario can hold")
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(inner, f"{key}.{name}" if key else str(name)) for name, inner in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(inner, f"{key}.{i}") for i, inner in enumerate(value)]
    raise _refused(key, f"a scenario cannot hold a value of the type `{type(value).__name__}`")


_DEEPEST = 50
"""The maximum depth of nested dicts; scenarios need less than ten."""


def _refused(key: str, why: str) -> _core.ScenarioError:
    """Returns the error for a value that a scenario cannot hold."""
    hint = "give texts, numbers, truth values, lists and dicts"
    error = _core.ScenarioError(f"`{key}`: {why}\nhint: {hint}")
    error.diagnostics = [{"file": "dict", "line": 1, "col": 1, "message": f"`{key}`: {why}", "label": "", "hint": hint}]
    return error


def _overrides(given: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Returns overrides as the pairs of texts that `--set` takes."""
    return [(key, _literal(value)) for key, value in (given or {}).items()]


def _literal(value: object) -> str:
    """Returns a value as it is written after `--set key=`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_quoted(v) for v in value) + "]"
    return str(value)


def _quoted(value: object) -> str:
    """Returns a value as an element of a list in TOML."""
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return _literal(value)
