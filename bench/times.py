"""Measures times that a user waits for, each the smallest of some runs: `make bench`. Exit code 1 if a time is above its limit."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from flowloom.cli import plugins

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "examples" / "demo.toml"

SCENARIO = """
seed = [1, 2, 3]
topology = "star"
[workload.web]
kind = "poisson"
flows = 200
load = [0.1, 0.2, 0.3, 0.4, 0.5]
[[system]]
transport = "newreno"
[[system]]
transport = "dctcp"
"""
"""30 points."""


def seconds(command: Sequence[str], runs: int) -> float:
    """Returns the smallest wall time of some runs of a command."""

    def once() -> float:
        began = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        return time.perf_counter() - began

    return min(once() for _ in range(runs))


def cpu_seconds(command: Sequence[str], runs: int) -> float:
    """Returns the smallest CPU time of some runs of a command, user and system."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    def once() -> float:
        before = used()
        subprocess.run(command, check=True, capture_output=True)
        return used() - before

    return min(once() for _ in range(runs))


def first_tables(flowloom: str, folder: Path) -> list[tuple[str, float, float]]:
    """Measures for each language the time from an edit of a new plug-in to its first table: built and run."""
    rows = []
    for lang, source, limit in (("python", "mine.py", 2.0), ("c", "mine.c", 10.0), ("rust", "mine.rs", 10.0)):
        out = folder / lang
        subprocess.run([flowloom, "new", "transport", "mine", "--lang", lang, "--out", str(out)], check=True, capture_output=True)
        build = plugins.project("transport", "mine", lang).build
        with (out / source).open("a", encoding="utf-8") as file:
            file.write("\n")
        began = time.perf_counter()
        if build:
            subprocess.run(build, cwd=out, check=True, capture_output=True)
        subprocess.run([flowloom, "run", "mine.toml", "--overwrite"], cwd=out, check=True, capture_output=True)
        rows.append((f"from an edit to the first table, {lang}", time.perf_counter() - began, limit))
    return rows


def python_factor(flowloom: str, folder: Path) -> float:
    """Returns the CPU time of a run with DCTCP as a plug-in in Python over that of the built-in one, both beyond their start."""
    shutil.copy(ROOT / "crates/plugin/new/transport/python/mine.py", folder)
    above, system = (ROOT / "bench/dctcp.toml").read_text(encoding="utf-8").split("[[system]]")
    variants = {"builtin": system, "python": system.replace('kind = "dctcp"', 'kind = "plugin", path = "mine.py"')}
    took = {}
    for name, variant in variants.items():
        (folder / f"{name}.toml").write_text(f"{above}[[system]]{variant}", encoding="utf-8")
        out = folder / f"{name}-results"
        run = [flowloom, "run", str(folder / f"{name}.toml"), "--threads", "1", "--overwrite", "--out", str(out)]
        # Once each: a point with results is not run again.
        times = [cpu_seconds([*run, "--set", f"end={end}"], 1) for end in ("1ms", "41ms")]
        took[name] = times[1] - times[0]
    return took["python"] / took["builtin"]


def main() -> int:
    """Measures and prints the times; returns 1 if a time is above its limit."""
    flowloom = str(Path(sys.executable).parent / "flowloom")
    with tempfile.TemporaryDirectory() as folder:
        scenario, results = Path(folder) / "s.toml", str(Path(folder) / "r")
        scenario.write_text(SCENARIO)
        subprocess.run([flowloom, "run", str(scenario), "--out", results], check=True, capture_output=True)
        demo = str(Path(folder) / "demo")
        subprocess.run([flowloom, "run", str(DEMO), "--out", demo], check=True, capture_output=True)
        three = [flowloom, "plot", demo, "--kind", "slowdown,fct_cdf,topology"]
        empty = seconds([sys.executable, "-c", ""], 5)
        rows = [
            ("import flowloom", seconds([sys.executable, "-c", "import flowloom"], 5) - empty, 0.2),
            ("flowloom --version, beyond Python's own start", seconds([flowloom, "--version"], 5) - empty, 0.05),
            ("flowloom plot, 30 points", seconds([flowloom, "plot", results], 2), 5.0),
            ("flowloom report, 30 points", seconds([flowloom, "report", results], 2), 5.0),
            ("flowloom report, the demo, CPU", cpu_seconds([flowloom, "report", demo], 3), 4.0),
            ("flowloom plot, three figures of the demo, CPU", cpu_seconds(three, 3), 3.0),
            *first_tables(flowloom, Path(folder)),
        ]
        factor = python_factor(flowloom, Path(folder))
    print(f"{'':<48}{'s':>8}{'limit':>8}")
    for name, took, limit in rows:
        print(f"{name:<48}{took:>8.3f}{limit:>8.2f}{'' if took <= limit else '  too slow'}")
    print(f"\nDCTCP as a plug-in in Python, fat tree of k = 8: {factor:.1f} times the CPU time of the built-in one")
    return int(any(took > limit for _, took, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
