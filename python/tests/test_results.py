"""Results read from folders."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import small
from flowloom.api.results import Results
from flowloom.runs.data import plain
from small import LOAD


def test_points_and_keys(results: Results) -> None:
    assert results.keys == [LOAD]
    assert results.systems == ["MERP", "pFabric", "TCP"] and results.seeds == [1, 2, 3]
    assert len(results.runs) == 3 * 4 * 3
    first = results.runs[0]
    flows = pq.read_table(f"{results.path}/{first.point}/flows.parquet").to_pylist()
    starts, finishes = ([flow[time] for flow in flows] for time in ("start_ps", "finish_ps"))
    assert first.keys == {LOAD: 0.2} and first.end_ps is not None and first.end_ps >= max(finishes) > max(starts)
    assert first.window_ps == (min(starts), max(starts))
    assert first.utilisation((max(starts) - min(starts)) // 4) == pytest.approx(0.25), "of the window, not of the run"


def test_points_are_selected_by_short_names_and_lists(results: Results) -> None:
    chosen = results.select({"load": [0.2, "0.8"], "system": ["TCP"], "seed": 2})
    assert [(run.system, run.seed, run.keys[LOAD]) for run in chosen] == [("TCP", 2, 0.2), ("TCP", 2, 0.8)]
    with pytest.raises(KeyError, match=r"not swept here\nhint: choose by `workload\.web\.load`"):
        results.select({"rate": 1})


def test_a_notebook_shows_the_summary(results: Results) -> None:
    assert "3 systems, 36 points>" in repr(results)
    page = results._repr_html_()
    assert page.startswith(f"<p>{results.name}: 3 systems, 36 points, in <code>{results.path}</code></p>")
    # As many rows as the table has, and numbers on the right.
    assert page.count("<tr>") == 1 + len(results.table().rows) and ".n { text-align: right !important }" in page
    assert repr(results.table()) == str(results.table())


def test_few_columns_of_few_points_are_those_of_the_whole(results: Results) -> None:
    part = results.flows(["fct_ps"], {"load": 0.8, "system": "TCP", "seed": 1})
    assert part.column_names == ["point", "system", "seed", LOAD, "fct_ps"]
    whole = results.flows().to_pylist()
    expected = [r["fct_ps"] for r in whole if (r["system"], r["seed"], r[LOAD]) == ("TCP", 1, 0.8)]
    assert part["fct_ps"].to_pylist() == expected and len(expected) == 400


def test_what_was_not_recorded_is_empty(results: Results, traced: Results) -> None:
    assert results.packets().num_rows == 0 and results.samples(["value"], {"seed": 1}).num_rows == 0
    assert traced.packets().num_rows > 0


def test_counters_are_null_where_the_system_does_not_count(tmp_path: Path) -> None:
    results = small.run(tmp_path, ("Homa", "TCP"), (0.2, 0.4))
    assert results.keys == [LOAD], "a counter is no swept key"
    files = {run.point: tmp_path / "r" / run.point / "flows.parquet" for run in results.runs if run.system == "Homa"}
    grants = {point: pq.read_table(file)["homa.grants"].to_pylist() for point, file in files.items()}
    assert all(map(any, grants.values()))
    for at in ({"system": ["Homa", "TCP"]}, {"load": [0.2, 0.4]}):
        rows = results.flows(["flow_id", "homa.grants"], at).to_pylist()
        assert len(rows) == 4 * 40
        assert all(row["homa.grants"] == (grants[row["point"]][row["flow_id"]] if row["point"] in grants else None) for row in rows)
    assert results.flows(["homa.grants"], {"system": "TCP"})["homa.grants"].null_count == 80
    assert results.flows()["homa.grants"].null_count == 80
    with pytest.raises(KeyError, match="nonsense"):
        results.flows(["nonsense"], {"system": "TCP"})


def test_swept_values_are_numbers_where_they_can_be() -> None:
    assert [plain(v) for v in ("0.8", 3, None, "10us")] == [0.8, 3.0, None, "10us"]
