"""Results read from folders."""

from __future__ import annotations

from pathlib import Path

import fake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flowloom.api.results import Results
from flowloom.runs.data import plain


def test_points_and_keys(results: Results) -> None:
    assert results.keys == [fake.LOAD]
    assert results.systems == ["MERP", "pFabric", "TCP"] and results.seeds == [1, 2, 3]
    assert len(results.runs) == 3 * 4 * 3
    assert results.runs[0].keys == {fake.LOAD: 0.2} and results.runs[0].end_ps == 2 * 10**12
    assert results.runs[0].utilisation(25 * 10**10) == 0.25, "of the window, not of the run"


def test_points_are_selected_by_short_names_and_lists(results: Results) -> None:
    chosen = results.select({"load": [0.2, "0.8"], "system": ["TCP"], "seed": 2})
    assert [(run.system, run.seed, run.keys[fake.LOAD]) for run in chosen] == [("TCP", 2, 0.2), ("TCP", 2, 0.8)]
    with pytest.raises(KeyError, match=r"not swept here\\nhint: choose by `workload\.web\.load`"):
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
    assert part.column_names == ["point", "system", "seed", fake.LOAD, "fct_ps"]
    whole = results.flows().to_pylist()
    expected = [r["fct_ps"] for r in whole if (r["system"], r["seed"], r[fake.LOAD]) == ("TCP", 1, 0.8)]
    assert part["fct_ps"].to_pylist() == expected and len(expected) == 400


def test_what_was_not_recorded_is_empty(results: Results, traced: Results) -> None:
    assert results.packets().num_rows == 0 and results.samples(["value"], {"seed": 1}).num_rows == 0
    assert traced.packets().num_rows > 0


def test_counters_are_null_where_the_system_does_not_count(tmp_path: Path) -> None:
    folder = fake.write(tmp_path, ("Homa", "TCP"), (0.2, 0.4), (1,))
    counted = sorted(folder.glob("homa-*/flows.parquet"))
    for file in counted:
        table = pq.read_table(file)
        field = pa.field("homa.grants", pa.uint64(), nullable=False, metadata={"unit": "packets"})
        pq.write_table(table.append_column(field, pa.array(range(table.num_rows), pa.uint64())), file)
    results = Results(fake.Results(str(folder)))
    assert results.keys == [fake.LOAD], "a counter is no swept key"
    for at in ({"system": ["Homa", "TCP"]}, {"load": [0.2, 0.4]}):
        rows = results.flows(["flow_id", "homa.grants"], at).to_pylist()
        assert len(rows) == 4 * 400
        assert all(row["homa.grants"] == (row["flow_id"] if row["system"] == "Homa" else None) for row in rows)
    assert results.flows(["homa.grants"], {"system": "TCP"})["homa.grants"].null_count == 800
    assert results.flows()["homa.grants"].null_count == 800
    with pytest.raises(KeyError, match="nonsense"):
        results.flows(["nonsense"], {"system": "TCP"})


def test_swept_values_are_numbers_where_they_can_be() -> None:
    assert [plain(v) for v in ("0.8", 3, None, "10us")] == [0.8, 3.0, None, "10us"]
