"""The results of a run: its points, and its tables as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flowloom import _core
from flowloom.base import words
from flowloom.base.errors import UnknownNameError, did_you_mean
from flowloom.base.rooms import refuse_unknown
from flowloom.runs.arrow import column, part, read
from flowloom.runs.points import Run, Value, engine_note, matches, mean, plain, windows
from flowloom.runs.sweep import Sweep

__all__ = ["Data", "Run", "Value", "column", "engine_note", "matches", "mean", "named_ports", "plain", "read", "windows"]


class Data(Sweep):
    """The points and tables of a run.

    Every table is a `pyarrow.Table`. The name of a column ends with its unit, and its metadata
    holds a description.
    """

    def flows(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns the flows.

        Without a filter (see `where`), flows that no metric counts are included; their column
        `measured` is false.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read, such as `["size_bytes", "fct_ps"]`; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per flow, with the columns `point`, `system`, `seed`, the swept keys, and the
            columns asked for. Times are in ps, sizes in bytes. A counter that a system does not
            have is null.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("flows", columns, at) if self.filter is None else self.counted(columns, at)

    def counted(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns the flows that count in metrics.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per flow, with columns as in `flows`.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
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
        """Returns the names of the columns to keep: the labels of points, and the columns asked for."""
        return {"point", "system", "seed", *self.keys, *columns}

    def ports(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns the egress ports with their counters.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per point and egress port, with the columns `point`, `system`, `seed`, the swept
            keys, and the columns asked for. Times are in ps, sizes in bytes, rates in bit/s.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("ports", columns, at)

    def tasks(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns the tasks of programs: computations and collectives, with their times and bandwidths.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per task: `name`, `iteration`, `operation`, `time_ps`, `bus_bandwidth_bps` and
            others. Empty if no workload has tasks.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("tasks", columns, at)

    def parts(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns the time line of programs: when each rank began and ended its part of each task.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per task and rank: `group_id` (the number of the task), `rank`, `host`,
            `start_ps` and `finish_ps`. Empty if no workload has tasks.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("parts", columns, at)

    def rank_times(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns how ranks spend the time of jobs: computation, communication by kind, and waiting.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per rank for the whole job (`iteration` is null) and one for each iteration.
            All other times add up to `time_ps`. Empty unless ranks of a workload compute.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("rank_times", columns, at)

    def samples(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns the time series, which the table `[sample]` of the scenario asks for.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per sample: `time_ps`, `entity` (the number of a port or flow), `metric` and
            `value`, in the unit at the end of the metric's name. Empty if nothing was sampled.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("samples", columns, at)

    def sampled_metrics(self, run: Run) -> list[str]:
        """Returns the metrics that were sampled at a point.

        Parameters
        ----------
        run : Run
            The point.

        Returns
        -------
        list of str
            The names of the metrics, sorted, such as `port.queue_bytes`.
        """
        return sorted(str(name) for name in pc.unique(self._point("samples", run, ["metric"])["metric"]).to_pylist())

    def sampled(self, run: Run, metric: str) -> pa.Table:
        """Returns the samples of one metric at a point, with much less memory than `samples` takes.

        Parameters
        ----------
        run : Run
            The point.
        metric : str
            The name of the metric, such as `port.queue_bytes`.

        Returns
        -------
        pyarrow.Table
            One row per sample, with the columns `time_ps`, `entity` and `value`; empty if the
            metric was not sampled.
        """
        return self._point("samples", run, ["time_ps", "entity", "value"], pc.field("metric") == metric)

    def agents(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns what agents of ports know of each flow over time, if `[sample]` of the scenario
        has `agents = true`.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per sample, port, flow and value; empty if agents were not sampled.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("agents", columns, at)

    def packets(self, columns: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> pa.Table:
        """Returns the packet trace, if `[sample]` of the scenario has `packets = true`.

        Parameters
        ----------
        columns : sequence of str, optional
            The columns to read; by default all.
        at : mapping, optional
            The points to read, as for `select`; by default all.

        Returns
        -------
        pyarrow.Table
            One row per transmission of a packet at a port. Times are in ps, sizes in bytes. Empty
            without a trace.

        Raises
        ------
        KeyError
            If there is no such column, or a key is not swept.
        """
        return self._table("packets", columns, at)

    def points(self) -> pa.Table:
        """Returns the points.

        Returns
        -------
        pyarrow.Table
            One row per point: its system, seed, swept keys, state and measurement window.
        """
        return read(self._core.points())

    def summary(self, workloads: bool = False) -> pa.Table:
        """Returns the metrics, averaged over seeds.

        Parameters
        ----------
        workloads : bool, default False
            Whether to add rows for the flows of each workload. They have its name in the column
            `workload`, which is null in the rows for all flows.

        Returns
        -------
        pyarrow.Table
            One row per system, swept keys and metric: the mean over seeds (`mean`) and its 95 %
            confidence interval (`ci95_low`, `ci95_high`; null with one seed), in the base unit of
            the column `unit`.
        """
        return read(self._core.summary(self.filter, workloads))

    def by_size(self) -> pa.Table:
        """Returns slowdown and completion time by flow size.

        Returns
        -------
        pyarrow.Table
            One row per system, swept keys, bin, quantity and statistic, averaged over seeds. The
            bins of sizes hold about as many flows each.
        """
        return read(self._core.by_size(self.filter))

    def series(self) -> pa.Table:
        """Returns the mean and quantiles of every sampled time series, over the measurement window.

        Returns
        -------
        pyarrow.Table
            One row per point, metric and entity (a port or flow).
        """
        return read(self._core.series())

    def groups(self) -> pa.Table:
        """Returns the groups of flows that began: an incast, a request, or the flows that a host
        fetches in a shuffle.

        Returns
        -------
        pyarrow.Table
            One row per point and group: start, finish and completion time in ps, and goodput in bit/s.
        """
        return read(self._core.groups(self.filter))

    def per_seed(self, workloads: bool = False) -> pa.Table:
        """Returns the metrics of every point.

        Parameters
        ----------
        workloads : bool, default False
            Whether to add rows for the flows of each workload, as for `summary`.

        Returns
        -------
        pyarrow.Table
            One row per point and metric: the value (`value`), in the base unit of the column `unit`.
        """
        return read(self._core.per_seed(self.filter, workloads))

    def metric(self, run: Run, name: str) -> float | None:
        """Returns a metric of a point.

        Parameters
        ----------
        run : Run
            The point.
        name : str
            The name of the metric, such as `mean_fct_s`; `flowloom list metrics` prints all.

        Returns
        -------
        float or None
            The metric in its base unit, which is s, bytes or bit/s; `None` if the point has no such metric.

        Raises
        ------
        ValueError
            If there is no metric of this name.
        """
        if (run.point, name) not in self._metrics:
            refuse_unknown("metric", name, (entry["name"] for entry in _core.entries("metrics")))
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
        # Reads the files of the points: a figure of one column of one point must not read everything.
        parts = []
        for run in runs:
            file = self._core.file(run.point, name)
            if file is not None:
                parts.append(self._labelled(part(file, columns), run))
        if not parts:
            return self._empty(name, columns)
        table = pa.concat_tables(parts, promote_options="permissive")
        for missing in [name for name in columns or () if name not in table.column_names]:
            # Only points that are not read have this column.
            field = self._schema(name, [missing]).field(missing)
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table

    def _point(self, name: str, run: Run, columns: Sequence[str], where: pc.Expression | None = None) -> pa.Table:
        """Reads columns of a point's table, without the labels of the point; with `where`, only the
        rows that it chooses.
        """
        file = None if self.path is None else self._core.file(run.point, name)
        if file is not None:
            return part(file, columns, where)
        table = self._table(name, None, {"point": run.point})
        if not table.column_names:
            # No point has this table, so its columns are unknown.
            return pa.table({column: pa.nulls(0) for column in columns})
        return (table if where is None else table.filter(where)).select(columns)

    def _schema(self, name: str, columns: Sequence[str]) -> pa.Schema:
        """Returns the schema of a table. Raises `KeyError` if the table lacks one of `columns`."""
        schema = pa.RecordBatchReader.from_stream(getattr(self._core, name)()).schema
        for missing in [known for known in columns if schema.names and known not in schema.names]:
            did = did_you_mean(missing, schema.names)
            raise UnknownNameError(f"`{name}` has no column `{missing}`{did}\nhint: its columns are {', '.join(schema.names)}")
        return schema

    def _empty(self, name: str, columns: Sequence[str] | None) -> pa.Table:
        """Returns a table without rows."""
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
    """Returns the names of the ports of a point as shown, such as `tor0->root`, by port id."""
    table = results.ports(["port_id", "name"], {"point": run.point})
    return dict(zip(column(table, "port_id"), map(words.escaped, column(table, "name")), strict=True))
