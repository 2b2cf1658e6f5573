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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Any

    import pyarrow as pa
    from matplotlib.figure import Figure

    from flowloom._core import RunError, ScenarioError, StorageError, entries, fluid
    from flowloom.api.results import Results
    from flowloom.api.scenario import Progress, Scenario, ScenarioWarning, Seeds
    from flowloom.runs.data import Run

    __version__: str

# `open` is not among them: `from flowloom import *` must not hide Python's own.
__all__ = [
    "Results",
    "Run",
    "RunError",
    "Scenario",
    "ScenarioError",
    "ScenarioWarning",
    "StorageError",
    "__version__",
    "compare",
    "entries",
    "fluid",
    "plot",
    "run",
]

# Arrow and NumPy take a quarter of a second to import: each name is imported when it is first used. Nothing else is imported here,
# since a Ctrl-C before the first line of a command would print a traceback.
_HOMES = {
    "Progress": "flowloom.api.scenario",
    "Results": "flowloom.api.results",
    "Run": "flowloom.runs.data",
    "RunError": "flowloom._core",
    "Scenario": "flowloom.api.scenario",
    "ScenarioError": "flowloom._core",
    "ScenarioWarning": "flowloom.api.scenario",
    "Seeds": "flowloom.api.scenario",
    "StorageError": "flowloom._core",
    "__version__": "flowloom._core",
    "entries": "flowloom._core",
    "fluid": "flowloom._core",
}


def __getattr__(name: str) -> Any:
    """A name of the package, imported when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module `flowloom` has no attribute `{name}`")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), "version" if name == "__version__" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})


def run(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    *,
    set: Mapping[str, object] | None = None,
    seeds: Seeds = None,
    profile: str | None = None,
    memory: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    out: str | Path | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Results:
    """Run a scenario: a `Scenario`, a dict, or the path of a file.

    `set`, `seeds` and `profile` override the scenario's own values; `seeds="auto"` takes as many seeds as the scenario's
    `precision` needs. With `out`, results go to that folder, and those of another run in it are replaced only with `overwrite`.
    Several profiles, as `"literal,smoke"`, are laid over one another in order. `memory`, such as `"8GB"`, is what its points
    may take together, instead of what is free on this machine.
    """
    from collections.abc import Mapping

    from flowloom.api.scenario import Scenario

    if isinstance(scenario, Scenario):
        if set or seeds or profile or memory:
            raise ValueError("`set`, `seeds`, `profile` and `memory` belong where the Scenario is made")
        ready = scenario
    elif isinstance(scenario, Mapping):
        ready = Scenario.from_dict(scenario, set=set, seeds=seeds, profile=profile, memory=memory)
    else:
        ready = Scenario.from_file(scenario, set=set, seeds=seeds, profile=profile, memory=memory)
    return ready.run(jobs=jobs, threads=threads, out=out, progress=progress, overwrite=overwrite)


def open(folder: str | Path) -> Results:
    """Open a results folder."""
    from flowloom.api.results import Results

    return Results.open(folder)


def compare(*folders: str | Path, where: str | None = None) -> pa.Table:
    """Compare the systems found in results folders, flow by flow: see `flowloom compare`.

    Flows are paired by flow id, seed and swept values, since all systems of a scenario see the same flows. `where` chooses
    flows, as in `where="size_bytes <= 100KB"`.
    """
    from flowloom import _core
    from flowloom.runs.data import read

    return read(_core.compare([str(folder) for folder in folders], where))


def plot(
    results: Results | str | Path,
    kind: str = "slowdown",
    out: str | Path | None = None,
    **options: Any,
) -> Figure:
    """Draw a figure of results and, with `out`, write it as PNG and SVG next to each other, or as the one file that `out` names.

    `kind` is one of the names that `flowloom list figures` prints; `at={"load": 0.8}` picks points, `systems=["A", "B"]` systems
    in their order. `style="paper"`, `width="3.33in"`, `height` and `font="Times"` fit the figure to a paper. A name that ends with
    `.csv` writes the numbers that the figure shows. Other options are those of the kind, as `metrics` and `statistic`.
    """
    from pathlib import Path

    from flowloom.api.results import Results
    from flowloom.figures import plots, style

    figure = plots.draw(results if isinstance(results, Results) else open(results), kind, **options)
    if out is not None:
        style.save(figure, Path(out))
    return figure
