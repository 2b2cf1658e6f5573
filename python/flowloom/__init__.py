"""A packet-level simulator of data-center transports.

A scenario names a network, workloads and the systems to compare. A run simulates every combination
of system, swept values and seed on the same flows.

>>> import flowloom
>>> results = flowloom.run({
...     "topology": "star",
...     "workload": {"web": {"kind": "poisson", "flows": 100, "load": 0.5}},
...     "system": [{"label": "TCP", "transport": "newreno"}],
... })
>>> results.counted(["size_bytes", "fct_ps"]).num_rows
100

Functions:
    run         run a scenario: a dict, a file or a `Scenario`
    open        open a results folder
    compare     compare systems flow by flow
    plot        draw a figure of results, and write it to a file
    entries     the transports, queue disciplines, topologies, metrics, ... by room
    fluid       schedule flows on one link as a fluid: no packets, no delay

Classes:
    Scenario    a checked scenario, with every default and every point
    Results     the results of a run: tables, figures, a report, where the time of flows went
    Run         one point of results: a system, a seed and swept values

Errors and warnings:
    ScenarioError    a scenario has mistakes
    RunError         a run could not start, or broke an invariant
    StorageError     a results folder cannot be read or written
    ScenarioWarning  a scenario can run, but its results may mislead

`flowloom list` prints the parts of scenarios, and `flowloom explain NAME` the parameters of one part.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Literal

    import pyarrow as pa
    from matplotlib.figure import Figure

    from flowloom._core import RunError, ScenarioError, StorageError, entries, fluid
    from flowloom.api.results import Results
    from flowloom.api.scenario import Progress, Scenario, ScenarioWarning, Seeds
    from flowloom.runs.data import Run

    __version__: str

# Without `open`: `from flowloom import *` must not hide Python's own function.
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

# Arrow and NumPy take a quarter of a second to import: each name is imported when it is first used.
# Nothing else is imported here: a Ctrl-C before the first line of a command would print a traceback.
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
    """Imports a name of the package when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module `flowloom` has no attribute `{name}`")
    import importlib

    value = getattr(importlib.import_module(_HOMES[name]), "version" if name == "__version__" else name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOMES, "open", *(name for name in globals() if name.startswith("__"))})


def run(
    scenario: Scenario | Mapping[str, Any] | str | Path,
    *,
    set: Mapping[str, object] | None = None,
    seeds: Seeds = None,
    profile: str | None = None,
    memory: str | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    engine: Literal["auto", "tree", "windows"] = "auto",
    out: str | Path | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Results:
    """Runs a scenario.

    Parameters
    ----------
    scenario : Scenario, dict, str or Path
        The scenario: a `Scenario`, a nested dict with the keys of a scenario file, or the path of a
        scenario file.
    set : mapping, optional
        Values that override keys of the scenario, such as `{"workload.web.load": 0.5}`.
    seeds : sequence of int or "auto", optional
        Seeds that override those of the scenario. `"auto"` takes as many seeds as the scenario's
        `precision` needs.
    profile : str, optional
        The profile of the scenario to apply. Several profiles, such as `"literal,smoke"`, are
        applied in order.
    memory : str, optional
        The memory that all points may take together, such as `"8GB"`. By default, the memory that
        is free on this machine.
    jobs : int, optional
        The number of points to run at the same time. By default, one per core.
    threads : int, optional
        The number of threads of each point. By default, the cores that no other point needs, if the
        network is large enough.
    engine : {"auto", "tree", "windows"}, default "auto"
        The order of events in a run by packets: by time, or node by node in windows, which is faster
        in large networks. `"auto"` chooses by the size of the network.
    out : str or Path, optional
        The folder for the results. Points that are finished there are not run again. By default,
        results stay in memory.
    progress : callable, optional
        A function that is called during the run with a dict; see `Scenario.run`.
    overwrite : bool, default False
        Whether to replace results of another run in `out`.

    Returns
    -------
    Results
        The results. They depend neither on `jobs` and `threads` nor on `engine`.

    Raises
    ------
    ScenarioError
        If the scenario has mistakes.
    StorageError
        If `out` holds results of another run and `overwrite` is false, or if it cannot be written.
    RunError
        If a run cannot start.
    ValueError
        If `set`, `seeds`, `profile` or `memory` is given together with a `Scenario`.

    Warns
    -----
    ScenarioWarning
        For each warning of the scenario: its results may mislead.
    """
    from collections.abc import Mapping

    from flowloom.api.scenario import Scenario

    if isinstance(scenario, Scenario):
        if set or seeds or profile or memory:
            from flowloom._core import InputError

            raise InputError(
                "`set`, `seeds`, `profile` and `memory` cannot be given together with a `Scenario`"
                "\nhint: give them to `Scenario.from_file`, `from_toml` or `from_dict`"
            )
        ready = scenario
    elif isinstance(scenario, Mapping):
        ready = Scenario.from_dict(scenario, set=set, seeds=seeds, profile=profile, memory=memory)
    else:
        ready = Scenario.from_file(scenario, set=set, seeds=seeds, profile=profile, memory=memory)
    return ready.run(jobs=jobs, threads=threads, engine=engine, out=out, progress=progress, overwrite=overwrite)


def open(folder: str | Path) -> Results:
    """Opens a results folder.

    Parameters
    ----------
    folder : str or Path
        The folder that a run wrote, such as `results/demo`.

    Returns
    -------
    Results
        The results.

    Raises
    ------
    StorageError
        If the folder is not a results folder, or if a file in it is damaged.
    """
    from flowloom.api.results import Results

    return Results.open(folder)


def compare(*folders: str | Path, where: str | None = None) -> pa.Table:
    """Compares the systems in results folders, flow by flow.

    Flows are paired by flow id, seed and swept values, since all systems of a scenario serve the same flows.

    Parameters
    ----------
    *folders : str or Path
        The results folders.
    where : str, optional
        A filter that chooses flows, such as `"size_bytes <= 100KB"`; see `Results.where`.

    Returns
    -------
    pyarrow.Table
        One row per pair of systems (`system_a`, `system_b`) and swept values: ratios b / a, whose
        reciprocals are those of the swapped pair, with their 95 % confidence intervals over seeds.

    Raises
    ------
    StorageError
        If a folder is not a results folder.
    ValueError
        If `where` is not a filter.
    """
    from flowloom import _core
    from flowloom.runs.data import read

    return read(_core.compare([str(folder) for folder in folders], where))


def plot(
    results: Results | str | Path,
    kind: str = "slowdown",
    out: str | Path | None = None,
    *,
    at: Mapping[str, object] | None = None,
    systems: Sequence[str] | None = None,
    style: str | None = None,
    width: str | float | None = None,
    height: str | float | None = None,
    font: str | None = None,
    metrics: Sequence[str] | None = None,
    x: str | None = None,
    statistic: str | Sequence[str] | None = None,
    most: int | None = None,
    flow: int | None = None,
    ports: Sequence[str] | None = None,
    names: Mapping[int, str] | None = None,
    span: tuple[float, float] | None = None,
    workload: str | None = None,
    by: str | None = None,
    bins: int | None = None,
    dead: Collection[Collection[str]] | None = None,
) -> Figure:
    """Draws a figure of results, and writes it to files.

    Parameters
    ----------
    results : Results, str or Path
        The results, or their folder.
    kind : str, default "slowdown"
        The kind of figure; `flowloom list figures` prints all.
    out : str or Path, optional
        The file to write. Its suffix is the format: `.png`, `.svg`, `.pdf`, or `.csv` for the
        numbers of the figure. Without a suffix, a PNG and an SVG file are written. By default, no
        file is written.
    at : mapping, optional
        The points to draw, such as `{"load": 0.8}`; see `Results.select`. By default, all; kinds
        with one point per panel draw the last swept values and the first seed.
    systems : sequence of str, optional
        The labels of the systems to draw, in this order. By default, all.
    style : {"screen", "paper"}, optional
        The look. `paper` has text of 8 points and thin lines, and is 3.33 inches wide unless
        `width` is given.
    width, height : str or float, optional
        The size of the whole figure: a number of inches, or a text with `in`, `cm`, `mm` or `pt`,
        such as `"8.5cm"`.
    font : str, optional
        The name of an installed TrueType font, such as `"Times"`, or `"usetex"` to set all text with LaTeX.
    metrics : sequence of str, optional
        The metrics to draw, a panel each, such as `["mean_fct_s"]`. Kind `metrics`.
    x : str, optional
        The swept key on the horizontal axis, in full or by its last word; by default the key with
        the most values. Kinds `metrics`, `mixed`, `sharing` and `iterations`.
    statistic : str or sequence of str, optional
        The statistics to draw, a panel each: `mean`, `p50`, `p95`, `p99`; by default all. Kinds
        `slowdown` and `fct_size`.
    most : int, optional
        The maximum number of swept values (kinds `slowdown` and `fct_size`), ports (`queue`), links
        (`utilisation`, `gantt`), flows (`rate`) or ranks (`timeline`) to draw.
    flow : int, optional
        The id of the flow to draw; by default the flow with the most samples. Kind `cwnd`.
    ports : sequence of str, optional
        The links to draw, such as `["tor0->root"]`. Kind `gantt`.
    names : mapping of int to str, optional
        Names for flows, by flow id. Kind `gantt`.
    span : tuple of float, optional
        The start and end of the time axis in ms; by default the whole run, and of jobs with
        many iterations the first ones. Kinds `throughput` and `timeline`.
    workload : str, optional
        The name of the workload to draw; by default all that have tasks. Kinds `timeline` and `busbw`.
    by : {"tier", "rail"}, optional
        Draws a bar for each group of links instead of one for each link. Kind `utilisation`.
    bins : int, optional
        The maximum number of intervals on the time axis. Kind `throughput`.
    dead : collection of pairs of str, optional
        The links to cross out, as pairs of node names; by default the links that were down during
        the run. Kind `topology`.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. It keeps its look when it is saved.

    Raises
    ------
    ValueError
        If the results do not hold what the kind needs, if there is no such kind, or if the kind
        does not take an option.
    KeyError
        If a key is not swept, if no point has a value, or if there is no such system.
    StorageError
        If the folder is not a results folder.

    Examples
    --------
    Draw two metrics as wide as a column of a paper::

        flowloom.plot("results/demo", "metrics", "metrics.pdf", metrics=["mean_fct_s", "p99_fct_s"],
        style="paper")
    """
    from pathlib import Path

    from flowloom._core import InputError
    from flowloom.api.results import Results
    from flowloom.figures import style as styles

    if out is not None and not str(out):
        raise InputError("`out` is empty\nhint: leave it out to write no file")
    figure = (results if isinstance(results, Results) else open(results)).plot(
        kind,
        at=at,
        systems=systems,
        style=style,
        width=width,
        height=height,
        font=font,
        metrics=metrics,
        x=x,
        statistic=statistic,
        most=most,
        flow=flow,
        ports=ports,
        names=names,
        span=span,
        workload=workload,
        by=by,
        bins=bins,
        dead=dead,
    )
    if out is not None:
        styles.save(figure, Path(out))
    return figure
