"""A stand-in for the compiled part: results folders with made-up numbers, in the layout of real ones.

Only for tests of what reads results (tables, figures, reports, claims). Nothing here is simulated.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from flowloom import _core

SYSTEMS = {"MERP": 1.0, "pFabric": 0.95, "TCP": 3.0}
IDEALS = {"ideal SRPT": 0.6, "ideal PS": 1.2}
TAIL = {"MERP": 1.0, "pFabric": 2.0, "TCP": 2.5}
LOAD = "workload.web.load"
WINDOW = {"window_from_ps": 0, "window_until_ps": 10**12}


def flows(system: str, load: float, seed: int, count: int = 400) -> pa.Table:
    """Made-up flows: the same sizes and starts for all systems, completion times that grow with load."""
    shared = np.random.default_rng([seed, round(load * 100)])
    size = np.minimum(60e3 * (1 - shared.random(count)) ** (-1 / 1.8), 1e8).astype(np.int64)
    start = np.cumsum(shared.exponential(1e9 / load, count)).astype(np.int64)
    own = np.random.default_rng([seed, round(load * 100), len(system)])
    ideal = size * 8000 + 44_000_000
    wait = own.exponential(load / (1 - 0.7 * load), count) * (1 + own.pareto(3.0, count) * TAIL.get(system, 1.0))
    fct = (ideal * (1.05 + (SYSTEMS | IDEALS).get(system, 1.0) * wait)).astype(np.int64)
    wire = size + 40 * np.ceil(size / 1500).astype(np.int64)
    zero = np.zeros(count, dtype=np.int64)
    return pa.table(
        {
            "flow_id": pa.array(range(count), pa.uint32()),
            "measured": pa.array([True] * count),
            "src": pa.array(own.integers(0, 9, count), pa.uint32()),
            "dst": pa.array(own.integers(0, 9, count), pa.uint32()),
            "size_bytes": pa.array(size, pa.uint64()),
            "size_wire_bytes": pa.array(wire, pa.uint64()),
            "start_ps": pa.array(start),
            "finish_ps": pa.array(start + fct),
            "fct_ps": pa.array(fct),
            "ideal_fct_ps": pa.array(ideal),
            "slowdown": fct / ideal,
            "expansion_ratio": fct / (wire * 8000),
            "tx_packets": pa.array(size // 1460 + 1, pa.uint64()),
            "drops": pa.array(zero + (5 if system == "TCP" else 0), pa.uint64()),
            "timeouts": pa.array(zero, pa.uint32()),
            "hops": pa.array(zero + 4, pa.uint8()),
        }
    )


TREE = ("h0->tor0", "h1->tor0", "h2->tor0", "tor0->root", "root->tor0")
"""Made-up ports of three hosts, a ToR and a root."""
PORTS = {
    "leaf_spine": ("h0->leaf0", "h1->leaf0", "leaf0->spine0", "leaf0->spine1", "spine0->leaf0"),
    "star": ("h1->s0", "h2->s0", "h3->s0", "s0->h0", "s0->h1"),
}
"""What they are called in other topologies."""


def ports(load: float, down: Sequence[int] = (), names: Sequence[str] = TREE) -> pa.Table:
    """Made-up ports; those of `down` are down for a while."""
    busy = [load / 3, load / 4, load / 3.5, load * 0.75, load * 0.7]
    return pa.table(
        {
            "port_id": pa.array(range(5), pa.uint32()),
            "node": pa.array([0, 1, 2, 3, 4], pa.uint32()),
            "peer": pa.array([3, 3, 3, 4, 3], pa.uint32()),
            "tier": pa.array([0, 0, 0, 1, 2], pa.uint8()),
            "name": list(names),
            "rate_bps": pa.array([10**9] * 5, pa.uint64()),
            "tx_bytes": pa.array([int(b * 125e6) for b in busy], pa.uint64()),
            "drops": pa.array([0, 0, 0, 14, 3], pa.uint64()),
            "data_drops": pa.array([0, 0, 0, 12, 3], pa.uint64()),
            "marks": pa.array([0] * 5, pa.uint64()),
            "busy_ps": pa.array([int(b * 1e12) for b in busy]),
            "max_queue_bytes": pa.array([3000, 3000, 4500, 150_000, 90_000], pa.uint64()),
            "down_ps": pa.array([10**9 if port in down else 0 for port in range(5)], pa.uint64()),
            "mean_queue_bytes": [200.0, 150.0, 250.0, 21_000.0, 9_000.0],
            "window_busy_ps": pa.array([int(b * 1e12) for b in busy]),
            "window_mean_queue_bytes": [300.0, 250.0, 350.0, 31_000.0, 19_000.0],
        }
    )


def samples(system: str) -> pa.Table:
    """Made-up time series: queues of two ports, use of all, and rates of two flows. The second half is quiet but for one packet."""
    rows = []
    for step in range(100):
        time = step * 50_000_000
        for port in (3, 4):
            rows.append((time, port, "port.queue_bytes", 1e5 * abs(math.sin(step / 9 + port)) * TAIL.get(system, 1)))
        for port in range(5):
            used = 0.1 * (port + 1) if step < 50 else 0.01 if step == 99 and port == 0 else 0.0
            rows.append((time, port, "port.utilisation", used))
        for flow in (0, 1):
            rows.append((time, flow, "flow.rate_bps", 1e9 if (step // 25) % 2 == flow else 0.0))
            rows.append((time, flow, "flow.cwnd_bytes", 1e4 + 1e3 * (step % 20)))
            if step > 20:
                rows.append((time, flow, "flow.ssthresh_bytes", 1e4))
            rows.append((time, flow, "flow.srtt_s", 1e-4 + 1e-5 * (step % 20)))
    names = ("time_ps", "entity", "metric", "value")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def packets() -> pa.Table:
    """Made-up transmissions of Table 1's MERP schedule on two links: A, then C, then B, 60 packets a unit."""
    rows = []
    for port, delay in ((0, 0), (3, 22_000_000)):
        for flow, first, last in ((0, 0, 3), (2, 3, 7), (1, 7, 10)):
            for i in range(first * 60, last * 60):
                start = i * 12_012_012 + delay
                rows.append((start, start + 12_000_000, port, "data", flow, i * 1460, 1500, 0, False))
                if i % 40 == 0:
                    rows.append((start, start + 320_000, port, "det", 1, 0, 40, 0, False))
    names = ("time_ps", "end_ps", "port_id", "kind", "flow_id", "offset", "size_bytes", "class", "dropped")
    return pa.table(dict(zip(names, zip(*rows, strict=True), strict=True)))


def metrics(table: pa.Table) -> dict[str, tuple[str, float]]:
    """The metrics of one point's flows."""
    fct = np.sort(np.array(table["fct_ps"].to_pylist()) * 1e-12)
    er = np.sort(np.array(table["expansion_ratio"].to_pylist()))

    def rank(sorted_values: Any, share: float) -> float:
        return float(sorted_values[max(math.ceil(share * len(sorted_values)), 1) - 1])

    return {
        "flows": ("count", float(len(fct))),
        "unfinished": ("count", 0.0),
        "mean_fct_s": ("s", float(fct.mean())),
        "p99_fct_s": ("s", rank(fct, 0.99)),
        "p999_fct_s": ("s", rank(fct, 0.999)),
        "max_fct_s": ("s", float(fct[-1])),
        "mean_er": ("ratio", float(er.mean())),
        "p99_er": ("ratio", rank(er, 0.99)),
        "max_er": ("ratio", float(er[-1])),
        "mean_slowdown": ("", float(np.mean(table["slowdown"].to_numpy()))),
        "p99_slowdown": ("", rank(np.sort(table["slowdown"].to_numpy()), 0.99)),
        "groups": ("", 2.0),
        "mean_group_fct_s": ("s", float(fct[-1])),
        "group_jain_index": ("", 0.9),
        "deadline_miss_rate": ("", 0.1),
        "mean_fct_without_deadline_s": ("s", float(fct[0])),
        "mean_fct_without_deadline_short_s": ("s", float(fct[0]) / 2),
        "non_blocking_bps": ("bps", 2.5e9),
        "drops": ("count", float(np.asarray(table["drops"].to_numpy()).sum())),
        "data_drops": ("count", float(np.asarray(table["drops"].to_numpy()).sum())),
        "timeouts": ("count", 0.0),
    }


def write(
    folder: Path,
    systems: Sequence[str] = tuple(SYSTEMS),
    loads: Sequence[float] = (0.2, 0.4, 0.6, 0.8),
    seeds: Sequence[int] = (1, 2, 3),
    traces: bool = False,
    key: str | None = LOAD,
    ideals: Sequence[str] = (),
    down: Sequence[int] = (),
    config: str | None = None,
    names: Sequence[str] = TREE,
    engine: str = "packet",
) -> Path:
    """Write a results folder."""
    points, per_seed = [], []
    for system in (*systems, *ideals):
        for load in loads if key else loads[:1]:
            for seed in seeds:
                swept = {key: load} if key else {}
                point = f"{system.lower().replace(' ', '-')}-load{load}-seed{seed}"
                here = folder / point
                here.mkdir(parents=True, exist_ok=True)
                table = flows(system, load, seed)
                pq.write_table(table, here / "flows.parquet")
                pq.write_table(ports(load, down, names).slice(0, 0 if system in ideals else 5), here / "ports.parquet")
                if traces and system not in ideals:
                    pq.write_table(samples(system), here / "samples.parquet")
                    pq.write_table(packets(), here / "packets.parquet")
                moved = {"ideal": system in ideals, "engine": "ideal" if system in ideals else engine}
                rest = {"state": "done", **moved, "end_ps": 2 * 10**12, **WINDOW}
                points.append({"point": point, "system": system, "seed": seed, **swept, **rest})
                for metric, (unit, value) in metrics(table).items():
                    if system in ideals and metric in ("drops", "data_drops", "timeouts"):
                        value = math.nan
                    row = {"point": point, "system": system, "seed": seed, **swept}
                    per_seed.append(row | {"metric": metric, "unit": unit, "value": None if math.isnan(value) else value})
    pq.write_table(pa.Table.from_pylist(points), folder / "points.parquet")
    pq.write_table(pa.Table.from_pylist(per_seed), folder / "summary.parquet")
    manifest = {"name": "demo", "program": "0.1.0+0", "complete": True, "stop_reason": "done", "seed": list(seeds)}
    manifest["config"] = CONFIG if config is None else config
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


CONFIG = """seed = [1, 2, 3]

[topology]
kind = "star"  # <default>

[[system]]
label = "MERP"
[system.transport]
kind = "merp"
"""


def by_size(table: pa.Table, keys: Sequence[str], bins: int = 5) -> pa.Table:
    """A made-up table by size: equal counts, all statistics."""
    rows = []
    places = list(
        dict.fromkeys((row["system"], *(row[key] for key in keys)) for row in table.select(["system", *keys]).to_pylist())
    )
    for place in places:
        here = [row for row in table.to_pylist() if (row["system"], *(row[key] for key in keys)) == place]
        sizes = np.sort([row["size_bytes"] for row in here])
        for i, part in enumerate(np.array_split(sizes, bins)):
            inside = [row for row in here if part[0] <= row["size_bytes"] <= part[-1]]
            for quantity, unit, of in (("slowdown", "", "slowdown"), ("fct_s", "s", "fct_ps")):
                for statistic, per_mille in (("mean", None), ("p50", 500), ("p95", 950), ("p99", 990)):
                    seeds = []
                    for seed in sorted({row["seed"] for row in inside}):
                        values = [row[of] * (1e-12 if unit else 1.0) for row in inside if row["seed"] == seed]
                        seeds.append(float(np.mean(values)) if per_mille is None else float(_core.quantile(values, per_mille) or 0))
                    mean, interval = _core.estimate(seeds)
                    low, high = interval or (None, None)
                    rows.append(
                        dict(zip(("system", *keys), place, strict=True))
                        | {"bin": i, "min_size_bytes": int(part[0]), "max_size_bytes": int(part[-1])}
                        | {
                            "median_size_bytes": int(part[len(part) // 2]),
                            "quantity": quantity,
                            "unit": unit,
                            "statistic": statistic,
                        }
                        | {"seeds": len(seeds), "mean": mean, "ci95_low": low, "ci95_high": high, "flows": len(inside)}
                        | {"rests_on": len(inside) if per_mille is None else int(len(inside) * (1 - per_mille / 1000))}
                    )
    return pa.Table.from_pylist(rows)


class Results:
    """Reads a folder as the compiled part does."""

    def __init__(self, path: str) -> None:
        self.path: str | None = path
        self.complete = True

    @staticmethod
    def open(folder: str) -> Results:
        return Results(folder)

    def _all(self, name: str) -> pa.Table:
        parts = []
        for row in self.points().to_pylist():
            file = Path(str(self.path)) / row["point"] / f"{name}.parquet"
            if file.is_file():
                part = pq.read_table(file)
                for i, (key, value) in enumerate(
                    (k, v) for k, v in row.items() if k not in ("state", "ideal", "engine", "end_ps", *WINDOW)
                ):
                    part = part.add_column(i, key, [[value] * len(part)])
                parts.append(part)
        return pa.concat_tables(parts, promote_options="default") if parts else pa.table({})

    @property
    def manifest(self) -> str:
        return (Path(str(self.path)) / "manifest.json").read_text()

    @property
    def config(self) -> str:
        return str(json.loads(self.manifest)["config"])

    def file(self, point: str, table: str) -> Path | None:
        file = Path(str(self.path)) / point / f"{table}.parquet"
        return file if file.is_file() else None

    def whole(self) -> list[Path]:
        return sorted(path for path in Path(str(self.path)).rglob("*") if path.is_file())

    def series(self) -> pa.Table:
        return pa.table({})

    def groups(self, filter: str | None = None) -> pa.Table:
        """Four groups per point: three take 1 s, 2 s and 3 s times the number of the system, and one does not finish."""
        rows = self.points().to_pylist()
        systems = list(dict.fromkeys(row["system"] for row in rows))

        def fct_ps(system: str, n: int) -> int | None:
            return None if n == 4 else n * (1 + systems.index(system)) * 10**12

        return pa.Table.from_pylist(
            [{"point": row["point"], "fct_ps": fct_ps(row["system"], n)} for row in rows for n in (1, 2, 3, 4)]
        )

    def by_size(self, filter: str | None = None) -> pa.Table:
        return by_size(self.flows(), [name for name in self.points().column_names if "." in name])

    def flows(self) -> pa.Table:
        return self._all("flows")

    def ports(self) -> pa.Table:
        return self._all("ports")

    def samples(self) -> pa.Table:
        return self._all("samples")

    def agents(self) -> pa.Table:
        return pa.table({})

    def packets(self) -> pa.Table:
        return self._all("packets")

    def points(self) -> pa.Table:
        return pq.read_table(Path(str(self.path)) / "points.parquet")

    def chosen(self, point: str, filter: str | None = None) -> list[int]:
        return []

    def per_seed(self, filter: str | None = None, workloads: bool = False) -> pa.Table:
        return pq.read_table(Path(str(self.path)) / "summary.parquet")

    def summary(self, filter: str | None = None, workloads: bool = False) -> pa.Table:
        found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        for row in self.per_seed().to_pylist():
            place = tuple(v for k, v in row.items() if k not in ("point", "seed", "value"))
            found.setdefault(place, []).append(row)
        rows = []
        for group in found.values():
            sample = [row["value"] for row in group if row["value"] is not None]
            mean, interval = _core.estimate(sample)
            low, high = interval or (None, None)
            first = {k: v for k, v in group[0].items() if k not in ("point", "seed", "value")}
            rows.append(first | {"seeds": len(sample), "mean": mean, "ci95_low": low, "ci95_high": high})
        return pa.Table.from_pylist(rows)


class Scenario:
    """Takes a scenario's systems, loads and seeds, and makes numbers up for them."""

    def __init__(self, spec: Mapping[str, Any], seeds: Sequence[int] | None, profile: str | None) -> None:
        spec = merged(spec, spec.get("profile", {}).get(profile or "", {}))
        self.systems = [s.get("label", "TCP") for s in spec["system"]]
        web = next(iter(spec["workload"].values()))
        self.loads = listed(web.get("load", 0.5))
        self.seeds = list(seeds) if seeds else [int(s) for s in listed(spec.get("seed", 1))]
        self.key = f"workload.{next(iter(spec['workload']))}.load" if len(self.loads) > 1 else None
        self.sample = "sample" in spec
        topology = spec["topology"]
        self.ports = PORTS.get(topology if isinstance(topology, str) else topology["kind"], TREE)

    @staticmethod
    def from_toml(
        text: str,
        name: str = "scenario",
        dir: str = ".",
        set: Sequence[tuple[str, str]] = (),
        seeds: Sequence[int] | None = None,
        profile: str | None = None,
        memory: str | None = None,
    ) -> Scenario:
        return Scenario(tomllib.loads(text), seeds, profile)

    @staticmethod
    def from_dict(
        scenario: Mapping[str, Any],
        name: str = "scenario",
        dir: str = ".",
        set: Sequence[tuple[str, str]] = (),
        seeds: Sequence[int] | None = None,
        profile: str | None = None,
        memory: str | None = None,
    ) -> Scenario:
        return Scenario(scenario, seeds, profile)

    @property
    def memory(self) -> str | None:
        return None

    def resolved(self) -> str:
        return "seed = 1  # default\n"

    @property
    def points(self) -> list[dict[str, Any]]:
        product = ((s, x, n) for s in self.systems for x in self.loads for n in self.seeds)
        return [{"point": f"{s}-{x}-{n}", "system": s, "seed": n} for s, x, n in product]

    warnings: Sequence[dict[str, Any]] = ()

    def run(
        self,
        jobs: int = 0,
        threads: int = 0,
        out: str | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
        overwrite: bool = False,
        points: object = None,
    ) -> Results:
        assert out is not None
        write(Path(out), self.systems, self.loads, self.seeds, self.sample, self.key, names=self.ports)
        total = len(self.points)
        for done in range(1, total + 1):
            if progress:
                progress({"points_done": done, "points_total": total, "point": "x", "elapsed_s": 0.1 * done})
        return Results(out)


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with the tables of `over` merged into it."""
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def listed(value: object) -> list[Any]:
    """A value as a list."""
    return list(value) if isinstance(value, list | tuple) else [value]


def compare(dirs: Sequence[str], filter: str | None = None) -> pa.Table:
    return pa.table({"system_a": ["MERP"], "system_b": ["TCP"], LOAD: [0.8], "flows": [400], "mean_fct_ratio": [2.5]})
