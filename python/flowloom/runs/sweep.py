"""The points of a run in memory or in a folder, and the choice of points and flows."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from flowloom import _core
from flowloom.base import words
from flowloom.base.errors import UnknownNameError, did_you_mean
from flowloom.runs.arrow import read
from flowloom.runs.core import Core
from flowloom.runs.points import Run, Value, matches, plain, window_of

LABELS = ("system", "seed", "point")
"""The keys that every point has. They come before swept keys, which can be given in full."""


class Sweep:
    """The points of a run, with the systems, seeds and swept values."""

    filter: str | None = None
    """The filter that chooses the flows of these results, as given to `where`; `None` for all flows
    that count in metrics.
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Opens a results folder.

        Parameters
        ----------
        folder : str or Path
            The folder that a run wrote, such as `results/demo`.

        Returns
        -------
        Results
            The results. Tables are read when they are first used.

        Raises
        ------
        StorageError
            If the folder is not a results folder, or if a file in it is damaged.
        """
        return cls(_core.Results.open(str(folder)))

    @property
    def path(self) -> Path | None:
        """The results folder, or `None` for results in memory."""
        return None if self._core.path is None else Path(self._core.path)

    @property
    def name(self) -> str:
        """The name of the results in titles."""
        return str(self.manifest.get("name") or (self.path.name if self.path else "results"))

    @property
    def complete(self) -> bool:
        """Whether every point ran to its end."""
        return self._core.complete

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The content of the folder's `manifest.json`; empty for results in memory."""
        found: dict[str, Any] = {} if self.path is None else json.loads(self._core.manifest)
        return found

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved scenario, with every default, as a nested dict."""
        return tomllib.loads(self._core.config)

    @property
    def config_text(self) -> str:
        """The resolved scenario, with every default, as TOML."""
        return self._core.config

    @cached_property
    def runs(self) -> list[Run]:
        """All points, in the order of the scenario."""
        rows = read(self._core.points()).to_pylist()
        keys = self.keys
        return [
            Run(
                point=str(row["point"]),
                system=str(row["system"]),
                seed=int(row["seed"]),
                keys={key: plain(row[key]) for key in keys},
                state=str(row.get("state", "done")),
                end_ps=row.get("end_ps"),
                window_ps=window_of(row),
                not_measured=int(row.get("not_measured") or 0),
                ideal=bool(row.get("ideal")),
                engine=str(row.get("engine") or "packet"),
            )
            for row in rows
        ]

    @cached_property
    def keys(self) -> list[str]:
        """The dotted names of the swept keys, such as `workload.web.load`."""
        found: list[str] = json.loads(self._core.manifest)["sweep_keys"]
        return found

    @property
    def systems(self) -> list[str]:
        """The labels of the systems, in the order of the scenario; those of ideal schedules are last."""
        return list(dict.fromkeys(run.system for run in self.runs))

    @property
    def ideals(self) -> list[str]:
        """The labels of the ideal schedules, which serve the same flows as a fluid instead of
        simulating a system.
        """
        return list(dict.fromkeys(run.system for run in self.runs if run.ideal))

    @property
    def seeds(self) -> list[int]:
        """The seeds, sorted."""
        return sorted({run.seed for run in self.runs})

    @property
    def workloads(self) -> list[str]:
        """The names of the workloads, in the order of the scenario."""
        return list(self.config.get("workload", {}))

    def select(self, at: Mapping[str, object] | None = None) -> list[Run]:
        """Returns the points where keys have given values.

        Parameters
        ----------
        at : mapping of str to value or list of values, optional
            The wanted values by key, such as `{"load": 0.8, "system": ["A", "B"]}`. A key is a
            swept key, in full or by its last words, or `system`, `seed` or `point`. By default, all
            points.

        Returns
        -------
        list of Run
            The points, in the order of the scenario.

        Raises
        ------
        KeyError
            If a key is not swept, or if no point has these values.
        """
        chosen = self.runs
        for name, wanted in (at or {}).items():
            values = [self._read(name, value) for value in (wanted if isinstance(wanted, list | tuple) else [wanted])]
            if not values:
                raise UnknownNameError(f"no value of `{name}` is asked for\nhint: leave the key out for all values")
            chosen = [run for run in chosen if any(value in values for value in self._of(run, name))]
            known = {value for run in chosen for value in self._of(run, name)}
            if not known.issuperset(values):
                self._refuse_absent(name, values)
        if at and self.runs and not chosen:
            asked = " and ".join(f"`{name}` = `{value}`" for name, value in at.items())
            raise UnknownNameError(f"no point has {asked} together\nhint: leave out one of these keys")
        return chosen

    def where(self, chosen: str | None) -> Self:
        """Returns these results for some of the flows only: all their tables, figures and
        statistics use only these flows.

        Parameters
        ----------
        chosen : str or None
            A filter, such as `workload == 'web' and size_bytes <= 100KB`. It compares columns of
            the flows with numbers, texts in quotes, `true`, `false` or `null`, and joins
            comparisons by `and`, `or`, `not` and parentheses. It is joined by `and` with the filter
            that these results have already. `None` chooses all flows.

        Returns
        -------
        Results
            The results for the chosen flows. The original is not changed.

        Raises
        ------
        ValueError
            If the text is not a filter, names an unknown column, or compares with a workload, a
            host, a group or a flow that these results do not have.
        """
        if chosen is None:
            return self
        self._core.refuse_absent(chosen)
        found = copy(self)
        found.filter = f"({self.filter}) and ({chosen})" if self.filter else chosen
        found.__dict__.pop("_metrics", None)
        return found

    def _named(self, name: str) -> list[str]:
        """Returns the swept keys that `name` denotes. Raises `KeyError` if there are none."""
        keys = [key for key in self.keys if matches(key, name)]
        if not keys:
            did = did_you_mean(name, [*self.keys, *(key.rsplit(".", 1)[-1] for key in self.keys), *LABELS])
            known = ", ".join(f"`{key}`" for key in [*self.keys, "system", "seed"])
            raise UnknownNameError(f"`{name}` is not swept here{did}\nhint: choose by {known}")
        return keys

    def _read(self, name: str, value: object) -> Value:
        """Returns a value of a key as the points have it."""
        return str(value) if name in ("system", "point") else plain(value)

    def _of(self, run: Run, name: str) -> list[Value]:
        """Returns the values of a key at a point; several if the key denotes several swept keys."""
        if name in LABELS:
            return [self._read(name, getattr(run, name))]
        return [run.keys[key] for key in self._named(name) if run.keys[key] is not None]

    def _values(self, name: str) -> list[Value]:
        """Returns the values of a key, in the order of the points."""
        return list(dict.fromkeys(value for run in self.runs for value in self._of(run, name)))

    def _refuse_absent(self, name: str, values: Sequence[Value]) -> None:
        """Raises `KeyError` if no point has one of the values of a key."""
        known = self._values(name)
        for value in values:
            if value not in known and known:
                shown = list(map(words.number, known))
                did = did_you_mean(words.number(value), shown)
                listed = ", ".join(shown[:20]) + (f" and {len(known) - 20} more" if known[20:] else "")
                raise UnknownNameError(f"no point has `{name}` = `{words.number(value)}`{did}\nhint: `{name}` is one of {listed}")
