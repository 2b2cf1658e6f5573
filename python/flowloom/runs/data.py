"""What a run left, read from memory or from a results folder: its points, and its tables as Arrow tables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flowloom import _core
from flowloom.base import words
from flowloom.runs.core import Core, Stream

Value = float | str | None
"""A swept value: a number, a literal such as `10Gbps`, or `None` where the system does not have the key."""


@dataclass(frozen=True)
class Run:
    """One point: a system, a seed and the values of the swept keys."""

    point: str
    system: str
    seed: int
    keys: Mapping[str, Value]
    state: str = "done"
    """`done`, or `interrupted`: the run was stopped."""
    end_ps: int | None = None
    """Simulated time at the end of the run."""
    ideal: bool = False
    """Whether it is an ideal schedule of the same flows as a fluid instead of a simulated system."""
    engine: str = "packet"
    """What moved the flows: `packet`, `flow` (fluids with max-min fair rates), or `ideal`."""

    not_measured: int = 0
    """Flows that count in no metric: under way at the start, behind the last that counts, or outside the window."""

    window_ps: tuple[int, int] | None = None
    """The measurement window; `None` if the run ended before the window began, and of ideal schedules."""

    def utilisation(self, busy_ps: int | None) -> float:
        """The share of the measurement window in which a port was busy for `busy_ps`."""
        start, end = self.window_ps or (0, 0)
        return _core.utilisation(busy_ps or 0, end - start) or 0.0


def plain(value: object) -> Value:
    """A swept value as a number where it is one."""
    if value is None or isinstance(value, float):
        return value
    try:
        return float(str(value))
    except ValueError:
        return str(value)


def window_of(row: Mapping[str, Any]) -> tuple[int, int] | None:
    """The measurement window of a row of the points."""
    ends = row.get("window_from_ps"), row.get("window_until_ps")
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def engine_note(engines: Iterable[str]) -> str:
    """What to say beside numbers that these engines made: nothing where all are of the packet engine.

    >>> engine_note(["flow", "flow"])
    'flow engine: fluids with max-min fair rates, no packets'
    """
    found = set(engines)
    if "flow" not in found:
        return ""
    if found == {"flow"}:
        return "flow engine: fluids with max-min fair rates, no packets"
    return "in part flow engine (fluids with max-min fair rates, no packets), in part packet engine"


def windows(runs: Iterable[Run]) -> list[tuple[int, int]]:
    """The measurement windows of points."""
    return [run.window_ps for run in runs if run.window_ps is not None]


def matches(key: str, wanted: str) -> bool:
    """Whether `wanted` names the dotted key `key`: in full, or by its last words.

    As in a scenario, a bare name stands for its `kind`.

    >>> matches("workload.web.load", "load"), matches("engine.kind", "engine")
    (True, True)
    """
    return any(name == wanted or name.endswith("." + wanted) for name in (key, key.removesuffix(".kind")))


def mean(values: Sequence[float]) -> float:
    """The mean over seeds."""
    found, _ = _core.estimate(values)
    assert found is not None, "a mean of nothing"
    return found


def column(table: pa.Table, name: str) -> list[Any]:
    """A column as a list."""
    values: list[Any] = table[name].to_pylist()
    return values


def read(stream: Stream) -> pa.Table:
    """An Arrow table of anything that streams one."""
    return pa.RecordBatchReader.from_stream(stream).read_all()


def part(file: Path, columns: Sequence[str] | None, where: pc.Expression | None = None) -> pa.Table:
    """The table of one point: all columns, or those of `columns` that it has. A counter is a column only where it counts.

    With `where` only the rows that it chooses are kept in memory.
    """
    # Arrow takes a relative path such as `alpha:0.9/x` for a URI.
    path = file.absolute()
    try:
        with pq.ParquetFile(path) as whole:
            wanted = None if columns is None else [name for name in whole.schema_arrow.names if name in columns]
            # Without a filter there is no need for Arrow's datasets, which take longer to import and to set up.
            return whole.read(wanted) if where is None else pq.read_table(path, columns=wanted, filters=where)
    except pa.ArrowException as error:
        hint = "repeat the `flowloom run` that wrote the folder: it runs damaged points again and keeps the others"
        raise _core.StorageError(f"`{file}` is damaged: it is not a whole Parquet file\nhint: {hint}") from error


class Data:
    """The points and tables of a run.

    Every table is a `pyarrow.Table` whose columns carry their unit at the end of their name and a description in their metadata.
    """

    filter: str | None = None
    """Which flows these results are about: all that count, or those that this filter chooses."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @classmethod
    def open(cls, folder: str | Path) -> Self:
        """Open a results folder."""
        return cls(_core.Results.open(str(folder)))

    @property
    def path(self) -> Path | None:
        """The folder, or `None` when the results are only in memory."""
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
        """The folder's `manifest.json`, or an empty dict in memory."""
        found: dict[str, Any] = {} if self.path is None else json.loads(self._core.manifest)
        return found

    def whole(self) -> list[Path]:
        """The paths of all files of the results. The content of each has been compared with its hash."""
        return self._core.whole()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved scenario."""
        return tomllib.loads(self._core.config)

    @property
    def config_text(self) -> str:
        """The resolved scenario as TOML."""
        return self._core.config

    def plays(self, entry: str) -> bool:
        """Whether a system of the scenario has the entry `entry` in one of its slots, or an ideal schedule is called so."""
        systems = self.config.get("system", [])
        kinds = {part.get("kind") for system in systems for part in system.values() if isinstance(part, dict)}
        return entry in kinds or entry in self.config.get("ideal", [])

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
        """The swept keys, dotted."""
        # Only swept keys have dots in their names.
        return [name for name in read(self._core.points()).column_names if "." in name]

    @property
    def systems(self) -> list[str]:
        """The labels of the systems, in the order of the scenario; those of ideal schedules are last."""
        return list(dict.fromkeys(run.system for run in self.runs))

    @property
    def ideals(self) -> list[str]:
        """The labels of ideal schedules: the same flows served as a fluid instead of a simulated system."""
        return list(dict.fromkeys(run.system for run in self.runs if run.ideal))

    def engine_note(self, at: Mapping[str, object] | None = None) -> str:
        """What to say beside numbers of these points where the flow engine made some of them; else nothing."""
        return engine_note(run.engine for run in self.select(at) if not run.ideal)

    @property
    def seeds(self) -> list[int]:
        """The seeds, sorted."""
        return sorted({run.seed for run in self.runs})

    def select(self, at: Mapping[str, object] | None = None) -> list[Run]:
        """The points where the keys have the given values. A key may be named by its last words, and have one value or a list:
        `{"load": 0.8}`, `{"system": ["A", "B"]}`.

        `system`, `seed` and `point` can be asked for as well. Raises `KeyError` for a key that is not swept.
        """
        chosen = self.runs
        for name, wanted in (at or {}).items():
            values = {plain(value) for value in (wanted if isinstance(wanted, list | tuple) else [wanted])}
            if name in ("system", "seed", "point"):
                chosen = [run for run in chosen if plain(getattr(run, name)) in values]
                continue
            keys = self._named(name)
            chosen = [run for run in chosen if any(run.keys[key] in values for key in keys)]
        return chosen

    def where(self, chosen: str | None) -> Self:
        """These results, about some of the flows only: every table, figure and statistic of flows is made of those.

        `where("workload == 'web' and size_bytes <= 100KB")`. A filter compares columns of the flows with numbers, texts in quotes,
        `true`, `false` or `null`, and joins comparisons by `and`, `or`, `not` and parentheses. Raises `ValueError` for what is no
        filter.
        """
        if not chosen:
            return self
        found = copy(self)
        found.filter = f"({self.filter}) and ({chosen})" if self.filter else chosen
        found.__dict__.pop("_metrics", None)
        for run in self.runs[:1]:
            self._core.chosen(run.point, found.filter)
        return found

    def choosing(self, systems: Sequence[str]) -> Self:
        """These results with some of the systems only, in this order. Raises `KeyError` for a system that was not run."""
        for name in [name for name in systems if name not in self.systems]:
            near = _core.nearest(name, self.systems)
            did = f"; did you mean `{near}`?" if near else ""
            raise KeyError(f"no system is called `{name}`{did}\nhint: the systems are {', '.join(self.systems)}")
        chosen = copy(self)
        chosen.__dict__["runs"] = [run for name in dict.fromkeys(systems) for run in self.runs if run.system == name]
        return chosen

    def _named(self, name: str) -> list[str]:
        """The swept keys that `name` means."""
        keys = [key for key in self.keys if matches(key, name)]
        if not keys:
            near = _core.nearest(name, [*self.keys, *(key.rsplit(".", 1)[-1] for key in self.keys)])
            known = ", ".join(f"`{key}`" for key in [*self.keys, "system", "seed"])
            raise KeyError(f"`{name}` is not swept here{f'; did you mean `{near}`?' if near else ''}\nhint: choose by {known}")
        return keys

    def _values(self, name: str) -> list[Value]:
        """The values that a key has, in the order of the points."""
        if name in ("system", "seed", "point"):
            return list(dict.fromkeys(plain(getattr(run, name)) for run in self.runs))
        return list(dict.fromkeys(run.keys[key] for key in self._named(name) for run in self.runs if run.keys[key] is not None))

    def has(self, name: str, value: object) -> bool:
        """Whether some point has this value of a key. Raises `KeyError` for a key that is not swept."""
        return plain(value) in self._values(name)

    def refuse_absent(self, at: Mapping[str, object] | None) -> None:
        """Raises `KeyError` for keys and values that no point has, and names those that there are."""
        for name, wanted in (at or {}).items():
            for value in wanted if isinstance(wanted, list | tuple) else [wanted]:
                if not self.has(name, value):
                    known = self._values(name)
                    listed = ", ".join(map(str, known[:20])) + (f" and {len(known) - 20} more" if known[20:] else "")
                    raise KeyError(f"no point has `{name}` = `{value}`\nhint: `{name}` is one of {listed}")
        if at and not self.select(at):
            asked = " and ".join(f"`{name}` = `{value}`" for name, value in at.items())
            raise KeyError(f"no point has {asked} together\nhint: leave one of them out")

    def flows(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """One row per flow: all columns and points, or only those asked for.

        All flows, those that do not count included, unless these are results about some of the flows; see `where`.
        """
        return self._table("flows", columns, at) if self.filter is None else self.counted(columns, at)

    def counted(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """The flows that count in metrics, one row each."""
        if columns is not None:
            self._schema("flows", columns)
        more = None if columns is None else [*columns, *(name for name in ("flow_id", "measured") if name not in columns)]
        parts = []
        for run in self.select(at):
            table = self._table("flows", more, {"point": run.point})
            if self.filter is None:
                table = table.filter(table["measured"])
            else:
                ids = pa.array(self._core.chosen(run.point, self.filter), type=pa.uint32())
                table = table.filter(pc.is_in(table["flow_id"], ids))
            parts.append(
                table if columns is None else table.select([name for name in table.column_names if name in self._kept(columns)])
            )
        return pa.concat_tables(parts) if parts else self._empty("flows", columns)

    def _kept(self, columns: Sequence[str]) -> set[str]:
        """The columns of a table of which some were asked for."""
        return {"point", "system", "seed", *self.keys, *columns}

    def ports(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """One row per egress port and point."""
        return self._table("ports", columns, at)

    def samples(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Time series, if the scenario has a `[sample]` table."""
        return self._table("samples", columns, at)

    def sampled_metrics(self, run: Run) -> list[str]:
        """The quantities of which a point has time series."""
        return sorted(str(name) for name in pc.unique(self._point("samples", run, ["metric"])["metric"]).to_pylist())

    def sampled(self, run: Run, metric: str) -> pa.Table:
        """Time, entity and value of every sample of one quantity at a point, with much less memory than `samples` takes."""
        return self._point("samples", run, ["time_ps", "entity", "value"], pc.field("metric") == metric)

    def agents(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """What agents of ports know of each flow over time, if the scenario has `agents = true` in its `[sample]` table."""
        return self._table("agents", columns, at)

    def packets(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """One row per transmission of a packet, if the scenario has `packets = true` in its `[sample]` table."""
        return self._table("packets", columns, at)

    def points(self) -> pa.Table:
        """One row per point: its system, seed, swept keys and state."""
        return read(self._core.points())

    @property
    def workloads(self) -> list[str]:
        """The names of the workloads, in the order of the scenario."""
        return list(self.config.get("workload", {}))

    def summary(self, workloads: bool = False) -> pa.Table:
        """One row per system, swept keys and metric: the mean over seeds with its 95 % confidence interval.

        With `workloads`, rows for the flows of each workload too, in a column `workload`, which is null for all flows.
        """
        return read(self._core.summary(self.filter, workloads))

    def by_size(self) -> pa.Table:
        """Slowdown and completion time by flow size, in bins of equal count."""
        return read(self._core.by_size(self.filter))

    def series(self) -> pa.Table:
        """Mean and quantiles over time of every series that was sampled, in the measurement window."""
        return read(self._core.series())

    def groups(self) -> pa.Table:
        """Start, finish and goodput of every group of flows that began: an incast, a request, what a host fetches in a shuffle."""
        return read(self._core.groups(self.filter))

    def per_seed(self, workloads: bool = False) -> pa.Table:
        """One row per point and metric; see `summary`."""
        return read(self._core.per_seed(self.filter, workloads))

    def metric(self, run: Run, name: str) -> float | None:
        """A metric of a point, in its base unit; `None` where the point has none."""
        return self._metrics.get((run.point, name))

    @cached_property
    def _metrics(self) -> dict[tuple[str, str], float | None]:
        return {(str(row["point"]), str(row["metric"])): row["value"] for row in self.per_seed().to_pylist()}

    def _table(self, name: str, columns: Sequence[str] | None, at: Mapping[str, object] | None) -> pa.Table:
        runs = self.select(at)
        if self.path is not None and (columns is not None or at is not None):
            return self._from_files(name, columns, runs)
        table: pa.Table = read(getattr(self._core, name)())
        if columns is not None:
            self._schema(name, columns)
            table = table.select(["point", "system", "seed", *self.keys, *columns])
        if at is not None and table.num_rows:
            chosen = {run.point for run in runs}
            table = table.filter(pa.array([p in chosen for p in column(table, "point")]))
        return table

    def _from_files(self, name: str, columns: Sequence[str] | None, runs: Iterable[Run]) -> pa.Table:
        # Straight from the points' files, so that a figure of one column of one point does not read everything.
        parts = []
        for run in runs:
            file = self._core.file(run.point, name)
            if file is not None:
                parts.append(self._labelled(part(file, columns), run))
        if not parts:
            return self._empty(name, columns)
        table = pa.concat_tables(parts, promote_options="permissive")
        for missing in [column for column in columns or () if column not in table.column_names]:
            # Other points have it.
            field = self._schema(name, [missing]).field(missing)
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table

    def _point(self, name: str, run: Run, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Columns of a point's table, without the point's labels, and of its rows those that `where` chooses."""
        file = None if self.path is None else self._core.file(run.point, name)
        if file is not None:
            return part(file, columns, where)
        table = self._table(name, None, {"point": run.point})
        if not table.column_names:
            # Of this table nothing is known where no point has it.
            return pa.table({column: pa.nulls(0) for column in columns})
        return (table if where is None else table.filter(where)).select(columns)

    def _schema(self, name: str, columns: Sequence[str]) -> pa.Schema:
        """The columns of the table `name`. Raises `KeyError` when it lacks one of `columns`."""
        schema = pa.RecordBatchReader.from_stream(getattr(self._core, name)()).schema
        for missing in [column for column in columns if schema.names and column not in schema.names]:
            near = _core.nearest(missing, schema.names)
            did = f"; did you mean `{near}`?" if near else ""
            raise KeyError(f"`{name}` has no column `{missing}`{did}\nhint: its columns are {', '.join(schema.names)}")
        return schema

    def _empty(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        """The table `name` without rows."""
        table: pa.Table = self._schema(name, columns or ()).empty_table()
        if columns is None or not table.column_names:
            return table
        return table.select(["point", "system", "seed", *self.keys, *columns])

    def _labelled(self, part: pa.Table, run: Run) -> pa.Table:
        labels: dict[str, Any] = {"point": run.point, "system": run.system, "seed": run.seed, **run.keys}
        for place, (name, value) in enumerate(labels.items()):
            if name not in part.column_names:
                kind: Any = pa.uint64() if name == "seed" else pa.string() if isinstance(value, str) else pa.float64()
                column: Any = pa.repeat(pa.scalar(value, kind), part.num_rows)
                part = part.add_column(place, pa.field(name, kind), column)
        return part


def named_ports(results: Data, run: Run) -> dict[int, str]:
    """Names of the ports of a point as shown: `tor0->root`."""
    table = results.ports(["port_id", "name"], {"point": run.point})
    return dict(zip(column(table, "port_id"), map(words.escaped, column(table, "name")), strict=True))
