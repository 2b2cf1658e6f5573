"""Results of a run as Arrow tables, read from memory or from a results folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from flowloom.tables import Table

Value = float | str | None
"""A swept value: a number, a literal such as `10Gbps`, or `None` where the system does not have the key."""


class Stream(Protocol):
    """What can be read as an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""


class Core(Protocol):
    """What [`Results`] needs of the compiled part."""

    @property
    def path(self) -> str | None:
        """The folder, if there is one."""

    @property
    def complete(self) -> bool:
        """Whether every point ran to its end."""

    def flows(self) -> Stream:
        """One row per flow."""

    def ports(self) -> Stream:
        """One row per port."""

    def samples(self) -> Stream:
        """Time series."""

    def packets(self) -> Stream:
        """Transmissions of packets."""

    def points(self) -> Stream:
        """One row per point."""

    def summary(self) -> Stream:
        """Metrics over seeds."""

    def per_seed(self) -> Stream:
        """Metrics by point."""


@dataclass(frozen=True)
class Run:
    """One point: a system, a seed and the values of the swept keys."""

    point: str
    system: str
    seed: int
    keys: Mapping[str, Value]
    state: str = "done"
    """`done`, or `interrupted`: stopped from outside."""
    end_ps: float | None = None
    """Simulated time at its end."""
    ideal: bool = False
    """An ideal reference: a fluid schedule of the same flows, no system."""


def plain(value: object) -> Value:
    """A swept value as a number where it is one."""
    if value is None or isinstance(value, float):
        return value
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def matches(key: str, wanted: str) -> bool:
    """Whether `wanted` names the dotted key `key`: in full, or by its last words."""
    return key == wanted or key.endswith("." + wanted)


def column(table: pa.Table, name: str) -> list[Any]:
    """A column as a list."""
    values: list[Any] = table[name].to_pylist()
    return values


def read(stream: Stream) -> pa.Table:
    """An Arrow table of anything that streams one."""
    return pa.RecordBatchReader.from_stream(stream).read_all()


class Results:
    """The results of a run.

    Every table is a `pyarrow.Table` whose columns carry their unit at the end of their name and a description in their metadata.

    >>> import flowloom
    >>> results = flowloom.run({
    ...     "topology": {"kind": "star", "hosts": 4, "rate": "1Gbps", "delay": "10us"},
    ...     "workload": {"web": {"kind": "poisson", "flows": 50, "load": 0.4, "size": "fixed", "mean": "15KB"}},
    ...     "system": [{"label": "TCP", "transport": "newreno"}],
    ... })
    >>> results.flows().num_rows
    50
    >>> results.systems
    ['TCP']
    """

    def __init__(self, core: Core) -> None:
        self._core = core

    @classmethod
    def open(cls, folder: str | Path) -> Results:
        """Open a results folder."""
        from flowloom import _core

        return cls(_core.Results.open(str(folder)))

    @property
    def path(self) -> Path | None:
        """The folder, or `None` when the results are only in memory."""
        return None if self._core.path is None else Path(self._core.path)

    @property
    def name(self) -> str:
        """What to call the results in a title."""
        return str(self.manifest.get("name") or (self.path.name if self.path else "results"))

    @property
    def complete(self) -> bool:
        """Whether every point ran to its end."""
        return self._core.complete

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """The folder's `manifest.json`, or an empty dict in memory."""
        file = None if self.path is None else self.path / "manifest.json"
        if file is None or not file.is_file():
            return {}
        found = json.loads(file.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}

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
                ideal=bool(row.get("ideal")),
            )
            for row in rows
        ]

    @cached_property
    def keys(self) -> list[str]:
        """The swept keys, dotted."""
        # Only swept keys have dots in their names.
        return [name for name in read(self._core.points()).column_names if "." in name]

    @property
    def systems(self) -> list[str]:
        """The labels of the systems, in the order of the scenario; those of ideal references are last."""
        return list(dict.fromkeys(run.system for run in self.runs))

    @property
    def ideals(self) -> list[str]:
        """The labels that are ideal references: fluid schedules of the same flows, no systems."""
        return list(dict.fromkeys(run.system for run in self.runs if run.ideal))

    @property
    def seeds(self) -> list[int]:
        """The seeds, sorted."""
        return sorted({run.seed for run in self.runs})

    def select(self, at: Mapping[str, object] | None = None) -> list[Run]:
        """The points where the keys have the given values. A key may be named by its last words, and have one value or a list:
        `{"load": 0.8}`, `{"system": ["MERP", "pFabric"]}`.

        `system`, `seed` and `point` can be asked for as well. Raises `KeyError` for a key that is not swept.
        """
        chosen = self.runs
        for name, wanted in (at or {}).items():
            values = {plain(value) for value in (wanted if isinstance(wanted, list | tuple) else [wanted])}
            if name in ("system", "seed", "point"):
                chosen = [run for run in chosen if plain(getattr(run, name)) in values]
                continue
            keys = [key for key in self.keys if matches(key, name)]
            if not keys:
                known = ", ".join(f"`{key}`" for key in self.keys) or "nothing is swept"
                raise KeyError(f"`{name}` is not swept here: {known}")
            chosen = [run for run in chosen if any(run.keys[key] in values for key in keys)]
        return chosen

    def flows(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """One row per flow: all columns and points, or only those asked for."""
        return self._table("flows", columns, at)

    def ports(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """One row per egress port and point."""
        return self._table("ports", columns, at)

    def samples(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Time series, if the scenario has a `[sample]` table."""
        return self._table("samples", columns, at)

    def packets(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """One row per transmission of a packet, if the scenario has `packets = true` in its `[sample]` table."""
        return self._table("packets", columns, at)

    def points(self) -> pa.Table:
        """One row per point: its system, seed, swept keys and state."""
        return read(self._core.points())

    def summary(self) -> pa.Table:
        """One row per system, swept keys and metric: the mean over seeds with its 95 % confidence interval."""
        return read(self._core.summary())

    def per_seed(self) -> pa.Table:
        """One row per point and metric."""
        return read(self._core.per_seed())

    def _table(self, name: str, columns: Sequence[str] | None, at: Mapping[str, object] | None) -> pa.Table:
        runs = self.select(at)
        if self.path is not None and (columns is not None or at is not None):
            return self._from_files(name, columns, runs)
        table: pa.Table = read(getattr(self._core, name)())
        if columns is not None:
            table = table.select(["point", "system", "seed", *self.keys, *columns])
        if at is not None and table.num_rows:
            chosen = {run.point for run in runs}
            table = table.filter(pa.array([p in chosen for p in column(table, "point")]))
        return table

    def _from_files(self, name: str, columns: Sequence[str] | None, runs: Iterable[Run]) -> pa.Table:
        # Straight from the points' files, so that a figure of one column of one point does not read everything.
        assert self.path is not None
        parts = []
        for run in runs:
            file = self.path / run.point / f"{name}.parquet"
            if file.is_file():
                part = pq.read_table(file, columns=None if columns is None else list(columns))
                parts.append(self._labelled(part, run))
        return pa.concat_tables(parts, promote_options="permissive") if parts else pa.table({})

    def _labelled(self, part: pa.Table, run: Run) -> pa.Table:
        labels: dict[str, Any] = {"point": run.point, "system": run.system, "seed": run.seed, **run.keys}
        for place, (name, value) in enumerate(labels.items()):
            if name not in part.column_names:
                kind: Any = pa.uint64() if name == "seed" else pa.string() if isinstance(value, str) else pa.float64()
                column: Any = pa.array([value] * part.num_rows, kind)
                part = part.add_column(place, pa.field(name, kind), column)
        return part

    def table(self, metrics: Sequence[str] | None = None) -> Table:
        """The summary as an aligned text table: one row per system and swept values."""
        from flowloom import tables

        return tables.summary(self, metrics)

    def plot(self, kind: str = "metrics", **options: Any) -> Figure:
        """Draw a figure; see `flowloom.plot`."""
        from flowloom import plots

        return plots.draw(self, kind, **options)

    def report(self, out: str | Path | None = None) -> Path:
        """Write one HTML file that holds everything and opens without a network. Returns its path."""
        from flowloom import report

        return report.write(self, out)

    def __repr__(self) -> str:
        state = "" if self.complete else ", incomplete"
        return f"<Results {self.name}: {len(self.systems)} systems, {len(self.runs)} points{state}>"
