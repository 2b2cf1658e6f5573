"""Which flows are meant: workloads, filters, and what the default table says, checked by polars."""

from __future__ import annotations

import re
from pathlib import Path

import flowloom
import polars as pl
import pytest
from flowloom.api.results import Results

ROOT = Path(__file__).parents[2]
SMALL = "workload == 'background' and size_bytes <= 100KB"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The example of the question that a referee asks, on a smaller network."""
    sizes = {
        "topology.leaves": "3",
        "topology.hosts_per_leaf": "8",
        "workload.background.flows": "150",
        "workload.incast.senders": "16",
    }
    found = flowloom.Scenario.from_file(ROOT / "examples" / "background_and_incast.toml", set=sizes, seeds=[1, 2])
    return found.run(out=tmp_path_factory.mktemp("results") / "referee")


def flows(results: Results) -> pl.LazyFrame:
    """All flows of all points, as somebody reads them who knows polars alone."""
    return pl.scan_parquet(f"{results.path}/*/flows.parquet")


def test_tables_of_flows_have_one_schema(results: Results) -> None:
    frame = flows(results).collect()
    assert frame.height == sum(run.not_measured for run in results.runs) + frame["measured"].sum()
    assert set(frame["system"].unique()) == set(results.systems)
    assert frame["workload.background.load"].dtype.is_numeric()
    assert frame.filter(pl.col("system") == "ExpressPass")["expresspass.credits"].sum() > 0
    assert (
        frame.filter(pl.col("system") == "DCTCP")["expresspass.credits"].null_count()
        == frame.filter(pl.col("system") == "DCTCP").height
    )


def test_the_default_table_is_what_polars_finds(results: Results) -> None:
    keys = ["system", "workload.background.cdf", "workload.background.load"]
    small = pl.col("size_bytes") <= 100_000
    rank = (pl.col("slowdown").filter(small).count() * 0.99).ceil().cast(pl.Int64) - 1
    point = (
        flows(results)
        .filter("measured")
        .group_by([*keys, "workload", "seed"])
        .agg(
            flows=pl.len().cast(pl.Float64),
            mean_slowdown=pl.col("slowdown").mean(),
            p99_slowdown_short=pl.col("slowdown").filter(small).sort().get(rank),
        )
    )
    over_seeds = point.group_by([*keys, "workload"]).agg(pl.col("flows", "mean_slowdown", "p99_slowdown_short").mean()).collect()
    table = results.table(["flows", "mean_slowdown", "p99_slowdown_short"])
    assert table.head == ["system", "workload", "cdf", "load", "flows", "mean slowdown", "p99 slowdown short"]
    shown = {tuple(row[:4]): [cell.split()[0] for cell in row[4:]] for row in table.rows}
    assert {row[1] for row in shown} == {"background", "incast", "all flows"}
    for row in over_seeds.iter_rows(named=True):
        cells = shown[row["system"], row["workload"], row["workload.background.cdf"], f"{row['workload.background.load']:g}"]
        for cell, name in zip(cells, ("flows", "mean_slowdown", "p99_slowdown_short"), strict=True):
            decimals = len(cell.partition(".")[2])
            assert abs(float(cell) - row[name]) <= 0.5001 * 10**-decimals, (row, name, cell)
    # The answer to the question is in it: of the background alone pFabric has the shortest tail of small flows.
    of_background = over_seeds.filter(pl.col("workload") == "background").sort("p99_slowdown_short")
    first = of_background.group_by([*keys[1:]], maintain_order=True).first()
    assert set(first["system"]) == {"pFabric"}


def test_a_filter_is_the_same_everywhere(results: Results) -> None:
    chosen = flows(results).filter("measured", pl.col("workload") == "background", pl.col("size_bytes") <= 100_000).collect()
    some = results.where(SMALL)
    assert some.flows(["slowdown"]).num_rows == chosen.height
    assert pl.Series(some.flows(["slowdown"])["slowdown"].to_pylist()).sort().to_list() == chosen["slowdown"].sort().to_list()
    counts = {row["point"]: row["value"] for row in some.per_seed().to_pylist() if row["metric"] == "flows"}
    assert counts == {point: float(n) for point, n in chosen.group_by("point").len().iter_rows()}
    assert (
        sum(row["flows"] for row in some.by_size().to_pylist() if (row["statistic"], row["quantity"]) == ("mean", "fct_s"))
        == chosen.height
    )
    # Only metrics of flows have a value: what ports count is not of these flows.
    assert not {"drops", "max_queue_bytes", "events"} & {row["metric"] for row in some.per_seed().to_pylist()}
    table = some.table()
    assert SMALL in table.note and "workload" not in table.head
    compared = flowloom.compare(str(results.path), where=SMALL).to_pylist()
    systems = len(results.systems)
    assert len(compared) == 4 * systems * (systems - 1) // 2
    assert all(row["p99_slowdown_ratio"] > 0 for row in compared)
    figure = results.where(SMALL).plot("metrics", metrics=["p99_slowdown"], at={"load": 0.8})
    assert figure.get_axes()
    assert results.where(None) is results and results.where("drops == 0").where("drops > 0").flows().num_rows == 0


@pytest.mark.parametrize(("text", "message"), [("size <= 3", "no column `size`"), ("workload == web", 'write "web"')])
def test_a_wrong_filter_is_explained(results: Results, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        results.where(text)
