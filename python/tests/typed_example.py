"""A program that uses the public names of flowloom. The strict type checker reads it; `test_public.py` runs it too."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import flowloom

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

SCENARIO: dict[str, Any] = {
    "topology": {"kind": "star", "hosts": 4, "rate": "1Gbps"},
    "workload": {"web": {"kind": "poisson", "flows": 40, "load": [0.3, 0.6]}},
    "system": [{"label": "TCP", "transport": "newreno"}, {"label": "DCTCP", "transport": "dctcp"}],
}


def show(progress: dict[str, Any]) -> None:
    """Takes the progress of a run."""
    assert progress["points_done"] <= progress["points_total"]


def checked() -> flowloom.Scenario:
    """Reads a scenario. Mistakes are exceptions, with one dict per mistake."""
    try:
        flowloom.Scenario.from_dict({**SCENARIO, "topology": "stra"})
    except flowloom.ScenarioError as error:
        message: str = error.diagnostics[0]["message"]
        assert "stra" in message
    scenario = flowloom.Scenario.from_dict(SCENARIO, set={"workload.web.load": [0.3, 0.5]}, seeds=[1, 2])
    points: list[dict[str, Any]] = scenario.points
    assert len(points) == 8 and scenario.resolved()
    return scenario


def read(results: flowloom.Results) -> None:
    """Reads numbers and tables."""
    run: flowloom.Run = results.select({"load": 0.5, "system": "TCP"})[0]
    fct_s: float | None = results.metric(run, "mean_fct_s")
    assert fct_s is not None and fct_s > 0
    flows: pa.Table = results.flows(["size_bytes", "fct_ps"], at={"load": 0.5})
    assert flows.num_rows >= 160
    few = results.where("size_bytes <= 100KB")
    assert few.counted().num_rows <= results.counted().num_rows
    share: float = run.utilisation(0)
    assert share == 0.0
    print(results.table(["mean_fct_s"], at={"load": 0.5}))
    assert results.table().csv().startswith("system,")


def main(folder: Path) -> None:
    """Runs the scenario, and writes figures and a report into a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", flowloom.ScenarioWarning)
        results: flowloom.Results = checked().run(out=folder, progress=show, jobs=1)
    read(results)
    systems: list[str] = flowloom.open(folder).systems
    assert systems == ["TCP", "DCTCP"]
    ratios: pa.Table = flowloom.compare(folder, where="size_bytes <= 100KB")
    assert ratios.num_rows > 0
    figure: Figure = results.plot("metrics", metrics=["mean_fct_s"], style="paper", width="8.5cm")
    assert figure.axes
    flowloom.plot(results, "slowdown", folder / "slowdown.csv", statistic="p99", at={"load": 0.5}, systems=["TCP"])
    why = results.why(slowest=1, point=results.runs[0].point)
    parts_ps: int = sum(why.flows[0].parts.values())
    assert parts_ps == why.flows[0].fct_ps
    report: Path = results.report()
    assert report.is_file()
    served: dict[str, Any] = flowloom.fluid("srpt", 1.0, [0.0, 0.0], [2.0, 1.0])
    assert served["finish"] == [3.0, 1.0]
    names = [entry["name"] for entry in flowloom.entries("transport")]
    assert "dctcp" in names, flowloom.__version__


if __name__ == "__main__":
    main(Path(sys.argv[1]))
