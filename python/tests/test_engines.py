"""What the flow engine made says so, in every table and on every figure."""

from __future__ import annotations

import json
from pathlib import Path

import flowloom
import pytest
import small
from damage import forged
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.figures import drawing, plots
from flowloom.figures.kinds import KINDS
from flowloom.pages import report
from flowloom.runs import tables
from flowloom.runs.data import engine_note

NOTE = "flow engine: fluids with max-min fair rates, no packets"


@pytest.fixture(scope="module")
def fluid(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results of the flow engine, with an ideal reference and time series."""
    sample = {"interval": "100us", "ports": True, "flows": True}
    return small.run(tmp_path_factory.mktemp("fluid"), ("DCTCP", "TCP"), engine="flow", ideal="srpt", sample=sample)


def test_tables_say_that_the_flow_engine_made_them(fluid: Results, results: Results) -> None:
    assert tables.summary(fluid).note.endswith(NOTE)
    assert "engine" not in tables.summary(results).note
    assert "flow engine" not in report.build(results)


def test_reports_say_that_the_flow_engine_made_them(fluid: Results) -> None:
    links = tables.links(fluid, {"system": "TCP"})
    assert links.note.endswith(NOTE)
    assert all(row[3:] == ["-", "-", "0", "0"] and float(row[2]) > 0 for row in links.rows)
    assert NOTE in report.build(fluid)


def test_every_figure_says_that_the_flow_engine_made_it(fluid: Results, results: Results) -> None:
    drawn = 0
    for kind in KINDS:
        try:
            figure = plots.draw(fluid, kind)
        except drawing.NoDataError:
            continue
        drawn += 1
        assert NOTE in [text.get_text() for text in figure.texts], kind
    assert drawn >= 5
    assert NOTE not in [text.get_text() for text in plots.draw(results, "slowdown").texts]


def test_results_of_both_engines_name_both() -> None:
    assert (
        engine_note(["packet", "flow"]) == "partly flow engine (fluids with max-min fair rates, no packets), partly packet engine"
    )
    assert engine_note(["packet"]) == engine_note([]) == ""
    assert words.key("engine.kind", ["engine.kind"]) == "engine"


def test_results_of_before_are_of_the_packet_engine(tmp_path: Path) -> None:
    (point,) = small.run(tmp_path, ("TCP",)).runs
    manifest = tmp_path / "r" / point.point / "manifest.json"
    forged(manifest, lambda fields: fields.pop("engine"))
    forged(
        tmp_path / "r/manifest.json",
        lambda fields: fields["done"].update({point.point: json.loads(manifest.read_text())["manifest_hash"]}),
    )
    assert [run.engine for run in flowloom.open(tmp_path / "r").runs] == ["packet"]
