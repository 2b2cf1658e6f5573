"""Measures times that a user waits for, each the smallest of some runs: `make bench`. Exit code 1 if a time is above its limit."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

DEMO = Path(__file__).parents[1] / "examples" / "demo.toml"

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
        ]
    print(f"{'':<48}{'s':>8}{'limit':>8}")
    for name, took, limit in rows:
        print(f"{name:<48}{took:>8.3f}{limit:>8.2f}{'' if took <= limit else '  too slow'}")
    return int(any(took > limit for _, took, limit in rows))


if __name__ == "__main__":
    sys.exit(main())
