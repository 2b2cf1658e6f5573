"""Small real runs, for tests of what reads results."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from flowloom.api.results import Results
from flowloom.api.scenario import Scenario, ScenarioWarning

LOAD = "workload.web.load"
STRICT = {"kind": "strict", "classes": 4, "evict": "worst_class"}
TCP = {"transport": "newreno", "qdisc": {"kind": "droptail", "limit": "50pkt"}}
SYSTEMS: dict[str, dict[str, Any]] = {
    "MERP": {"transport": "merp", "agent": "merp", "qdisc": STRICT},
    "pFabric": {"transport": {"kind": "pfabric", "handshake": True}, "qdisc": "pfabric"},
    "DCTCP": {"transport": "dctcp"},
    "Homa": {"transport": "homa"},
}
"""Systems by label; every other label is a TCP."""
TRACES = {"interval": "100us", "ports": True, "flows": True, "packets": True}
WEB = {"kind": "poisson", "load_ref": "uplinks", "size": "pareto", "mean": "30KB", "normalize_load": True}
SHORT_AND_LONG = """
name = "mixed"
seed = [1, 2]
[topology]
kind = "star"
hosts = 4
[workload.web]
kind = "poisson"
flows = 30
load = 0.2
size = "fixed"
mean = ["15KB", "100GB"]
[[system]]
label = "TCP"
transport = "newreno"
"""
"""Two points that take milliseconds and two that take hours."""


def end(process: subprocess.Popen[str]) -> None:
    """Kills a process and closes its pipes."""
    with process:
        process.kill()


def scenario(
    systems: Iterable[str],
    load: float | Sequence[float] = 0.5,
    seeds: Sequence[int] = (1,),
    flows: int = 40,
    web: dict[str, Any] | None = None,
    workload: dict[str, Any] | None = None,
    **more: Any,
) -> Scenario:
    """Returns a scenario with a Poisson workload between four hosts in two racks.

    `web` changes parameters of that workload, and `workload` adds workloads or replaces it.
    """
    spec = {
        "topology": {"kind": "single_tree", "racks": 2, "hosts_per_rack": 2},
        "workload": {"web": {**WEB, "flows": flows, "load": load, **(web or {})}, **(workload or {})},
        "measure": {"flows": "all"},
        "system": [{"label": label, **SYSTEMS.get(label, TCP)} for label in systems],
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScenarioWarning)
        return Scenario.from_dict(spec | more, seeds=seeds)


def run(folder: Path, *args: Any, points: Sequence[str] | None = None, **more: Any) -> Results:
    """Runs `scenario(*args, **more)`, or some of its points, into a new folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScenarioWarning)
        return scenario(*args, **more).run(out=folder / "r", points=points)
