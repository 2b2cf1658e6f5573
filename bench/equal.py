"""Compares this tree with another commit: every point of the examples, the benchmarks and the papers at profile `smoke`.

`make equal REF=commit` builds the commit in a separate folder, runs both programs and compares

- the points: their names, hashes of configuration and flows, totals, metrics and the reason why each run ended;
- every column of every table of every point, value by value; columns that only this tree has are listed;
- the verdicts and numbers of every claim.

Dates, wall times, memory and the version of the program differ and are left out. Intervals may differ in their last digits.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parent.parent
BENCH = {
    "newreno": ["topology.k=4"],
    "dctcp": ["topology.k=4", "end=3ms"],
    "dcqcn": ["topology.k=4", "end=3ms"],
    "hpcc": ["topology.k=4", "end=3ms"],
    "swift": ["topology.k=4", "end=3ms"],
    "strict": ["topology.k=4"],
    "difs": ["topology.k=4"],
    "pfabric": ["workload.web.flows=400"],
    "pias": ["workload.web.flows=400"],
    "stam": ["workload.web.flows=400"],
    "expresspass": ["workload.web.flows=400"],
    "ssp": ["workload.web.flows=400"],
    "homa": ["workload.web.flows=400"],
    "ndp": ["workload.web.flows=400"],
    "uet": ["workload.web.flows=400"],
    "merp": ["workload.web.flows=1000"],
}
"""Scenarios of the folder `bench`, cut short."""
UNLIKE = {
    *("program", "schema_version", "started", "ended", "wall_s", "jobs", "threads", "one_thread"),
    *("event_order", "not_windows"),
    *("peak_memory_bytes", "events_per_s", "hops_per_s", "manifest_hash"),
    # Descriptions of counters, and hashes of files, which contain descriptions of columns: columns are compared value by value.
    "files",
    "about",
}
"""Keys that differ between equal runs (a manifest has dates, so its hash differs too), and the
version of the layout."""


def build(ref: str) -> Path:
    """Builds the tree of a commit in a folder that is kept, and returns the folder."""
    sha = subprocess.run(
        ["git", "rev-parse", f"{ref}^{{commit}}"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()
    tree = ROOT / "target" / "equal" / sha[:12]
    if not tree.exists():
        subprocess.run(["git", "clone", "--quiet", "--no-checkout", str(ROOT), str(tree)], check=True)
        subprocess.run(["git", "checkout", "--quiet", sha], cwd=tree, check=True)
    subprocess.run(["make", "build"], cwd=tree, check=True)
    return tree


def flowloom(tree: Path, *arguments: str) -> None:
    """Runs the program of a tree in the tree."""
    command = [str(tree / ".venv" / "bin" / "flowloom"), *arguments]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\nended with code {done.returncode}:\n{done.stderr}")


def run_all(tree: Path, out: Path, *options: str) -> None:
    """Runs all scenarios, with these options of `flowloom run`, and all papers, and writes their results to a folder."""
    for scenario in sorted((tree / "examples").glob("*.toml")):
        print(f"  examples/{scenario.name}", flush=True)
        flowloom(tree, "run", str(scenario), *options, "--out", str(out / "examples" / scenario.stem))
    for name, settings in BENCH.items():
        if not (tree / f"bench/{name}.toml").exists():
            continue  # an older tree
        print(f"  bench/{name}.toml", flush=True)
        sets = [word for setting in settings for word in ("--set", setting)]
        flowloom(tree, "run", f"bench/{name}.toml", *sets, *options, "--out", str(out / "bench" / name))
    for paper in sorted(path.parent.name for path in (tree / "papers").glob("*/claims.toml")):
        print(f"  papers/{paper}", flush=True)
        flowloom(tree, "papers", paper, "--profile", "smoke", "--out", str(out / "papers"))


def width_of(interval: list[float | None]) -> float | None:
    """Returns the width of an interval, which scales the tolerance of its ends; `None` without ends."""
    low, high = interval
    return None if low is None or high is None else high - low


def same(a: Any, b: Any, where: str, found: list[str], *, width: float | None = None) -> None:
    """Adds the differences between two JSON values to `found`, except for the keys of `UNLIKE`.

    With `width`, the values are the ends of an interval of this width and may differ slightly.
    """
    if isinstance(a, dict) and isinstance(b, dict):
        for key in [key for key in a if key not in UNLIKE]:
            if key not in b:
                found.append(f"{where}: `{key}` is gone")
            else:
                same(a[key], b[key], f"{where}: {key}", found, width=width_of(a[key]) if key == "ci95" else width)
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            name = x[0] if isinstance(x, list) and x and isinstance(x[0], str) else i
            if name not in UNLIKE:
                same(x, y, f"{where}[{name}]", found, width=width)
    elif width is not None and isinstance(a, float) and isinstance(b, float):
        if not math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-3 * width):
            found.append(f"{where}: {a} is now {b}")
    elif a != b and not (a != a and b != b):  # NaN is not itself
        found.append(f"{where}: {a!r} is now {b!r}")


def same_tables(old: Path, new: Path, where: str, found: list[str], fresh: set[str]) -> None:
    """Adds the columns that differ between two Parquet files to `found`."""
    a, b = pq.read_table(old), pq.read_table(new)
    fresh.update(f"{old.stem}.{name}" for name in b.column_names if name not in a.column_names)
    for name in a.column_names:
        if name in UNLIKE:
            continue
        if name not in b.column_names:
            found.append(f"{where}: column `{name}` is gone")
        elif a.column(name).to_pylist() != b.column(name).to_pylist():
            pairs = zip(a.column(name).to_pylist(), b.column(name).to_pylist(), strict=False)
            row = next((i for i, (x, y) in enumerate(pairs) if x != y and not (x != x and y != y)), None)
            if row is not None or a.num_rows != b.num_rows:
                found.append(f"{where}: column `{name}` differs from row {row} on")


def compare(old: Path, new: Path) -> tuple[int, int, list[str], set[str]]:
    """Returns the number of points and of claims compared, the differences, and the new columns."""
    found: list[str] = []
    fresh: set[str] = set()
    names = [{str(path.relative_to(side).parent) for path in side.rglob("flows.parquet")} for side in (old, new)]
    found += [
        f"{name}: only {which} has this point"
        for which, more in (("REF", names[0] - names[1]), ("this tree", names[1] - names[0]))
        for name in sorted(more)
    ]
    points = sorted(names[0] & names[1])
    for point in points:
        same(
            json.loads((old / point / "manifest.json").read_text()),
            json.loads((new / point / "manifest.json").read_text()),
            point,
            found,
        )
        for table in sorted((old / point).glob("*.parquet")):
            if (new / point / table.name).exists():
                same_tables(table, new / point / table.name, f"{point}/{table.name}", found, fresh)
            else:
                found.append(f"{point}/{table.name} is gone")
    claims = 0
    for path in sorted(old.rglob("claims.json")):
        name = path.relative_to(old)
        a, b = (json.loads((side / name).read_text()) for side in (old, new))
        keep = ("id", "metric", "bounds", "verdict", "parts")
        cut = [{claim["id"]: {key: claim[key] for key in keep} for claim in side["claims"]} for side in (a, b)]
        claims += len(cut[0])
        same(cut[0], cut[1], str(name), found)
    return len(points), claims, found, fresh


def main() -> int:
    """Builds, runs and compares both trees; returns 0 if everything is equal."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ref", help="the commit to compare with")
    parser.add_argument("--tree", type=Path, help="a tree of that commit that is already built")
    parser.add_argument("--threads", help="threads for each point of this tree, except in papers")
    options = parser.parse_args()
    tree = options.tree or build(options.ref)
    out = ROOT / "target" / "equal" / "results"
    subprocess.run(["rm", "-rf", str(out / "new")], check=True)
    old = out / tree.name
    if not (old / "done").exists():
        print(f"running {options.ref}", flush=True)
        run_all(tree, old)
        (old / "done").touch()
    print("running this tree", flush=True)
    run_all(ROOT, out / "new", *(["--threads", options.threads] if options.threads else []))
    points, claims, found, fresh = compare(old, out / "new")
    for column in sorted(fresh):
        print(f"new column: {column}")
    for line in found[:50]:
        print(line)
    if len(found) > 50:
        print(f"and {len(found) - 50} more")
    print(f"{points} points and {claims} claims compared with {options.ref}: {len(found)} differences")
    return 1 if found or not points else 0


if __name__ == "__main__":
    sys.exit(main())
