"""flowloom: a packet-level simulator of data-center transports.

>>> import flowloom
>>> results = flowloom.run({
...     "topology": {"kind": "single_tree", "racks": 3, "hosts_per_rack": 3, "rate": "1Gbps", "delay": "10us"},
...     "workload": {"web": {"kind": "poisson", "flows": 100, "load": 0.5, "size": "exponential", "mean": "30KB"}},
...     "system": [{"label": "TCP", "transport": "newreno"}],
... })
>>> summary = results.summary().to_pylist()
>>> next(row["mean"] for row in summary if row["metric"] == "flows")
100.0
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flowloom import _core
from flowloom._core import entries, fluid
from flowloom.data import Run, read
from flowloom.results import Results
from flowloom.scenario import Progress, Scenario, ScenarioWarning, Seeds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "Results",
    "Run",
    "Scenario",
    "ScenarioWarning",
    "__version__",
    "compare",
    "entries",
    "fluid",
    "open",
    "plot",
    "run",
]

__version__: str = _core.version


def run(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    *,
    set: Mapping[str, object] | None = None,
    seeds: Seeds = None,
    profile: str | None = None,
    jobs: int = 0,
    out: str | Path | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run a scenario: a `Scenario`, a dict, or the path of a file.

    `set`, `seeds` and `profile` override the scenario's own values; `seeds="auto"` takes as many seeds as the scenario's `precision` needs; with `out`, results go to that folder. Several profiles, as
    `"literal,smoke"`, are laid over one another in order.
    """
    if isinstance(scenario, Scenario):
        if set or seeds or profile:
            raise ValueError("`set`, `seeds` and `profile` belong where the Scenario is made")
        ready = scenario
    elif isinstance(scenario, Mapping):
        ready = Scenario.from_dict(scenario, set=set, seeds=seeds, profile=profile)
    else:
        ready = Scenario.from_file(scenario, set=set, seeds=seeds, profile=profile)
    return ready.run(jobs=jobs, out=out, progress=progress)


def open(folder: str | Path) -> Results:
    """Open a results folder."""
    return Results.open(folder)


def compare(*folders: str | Path) -> pa.Table:
    """Compare the systems found in results folders, flow by flow: see `flowloom compare`.

    Flows are paired by flow id, seed and swept values, since all systems of a scenario see the same flows.
    """
    return read(_core.compare([str(folder) for folder in folders]))


def plot(
    results: Results | str | Path,
    kind: str = "slowdown",
    out: str | Path | None = None,
    **options: Any,
) -> Figure:
    """Draw a figure of results and, with `out`, write it as PNG and SVG beside each other.

    `kind` is one of the names in `flowloom.plots.KINDS`; `at={"load": 0.8}` picks points.
    """
    from flowloom import plots, style

    figure = plots.draw(results if isinstance(results, Results) else open(results), kind, **options)
    if out is not None:
        style.save(figure, Path(out))
    return figure
