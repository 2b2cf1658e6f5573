"""Text tables."""

from __future__ import annotations

import numpy as np
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.runs import tables


def test_numbers_stand_on_the_right_and_columns_align(results: Results) -> None:
    lines = str(tables.summary(results)).splitlines()
    head, rule, rows, note = lines[0], lines[1], lines[2:-1], lines[-1]
    assert len(rows) == 3 * 4
    ends = [i + 1 for i in range(len(rule)) if rule[i] == "─" and (i + 1 == len(rule) or rule[i + 1] == " ")]
    for row in rows:
        for end in ends[2:]:  # system and load are on the left
            assert row[end - 1].isdigit(), (row, end)
    for name in ("system", "load", "flows", "mean FCT (ms)", "mean slowdown", "p99 slowdown", "p99 ER", "data drops"):
        assert name in head
    assert "95 % confidence interval over 3 seeds" in note


def test_systems_to_compare_stand_together(results: Results) -> None:
    rows = tables.summary(results).rows
    assert [row[0] for row in rows[:3]] == ["MERP", "pFabric", "TCP"]
    assert [row[1] for row in rows[:3]] == ["0.2", "0.2", "0.2"]


def test_intervals_are_shown_where_seeds_differ(results: Results) -> None:
    table = tables.summary(results, ["flows", "mean_fct_s"])
    assert table.head[2:] == ["flows", "mean FCT (ms)"]
    assert table.rows[0][2] == "400" and " ± " in table.rows[0][3]


def test_one_seed_has_no_interval(traced: Results) -> None:
    table = tables.summary(traced)
    assert "one seed" in table.note
    assert not any("±" in cell for row in table.rows for cell in row)


def test_columns_of_zeros_are_left_out(results: Results) -> None:
    head = tables.summary(results).head
    assert "timeouts" in head and "unfinished" not in head
    assert "timeouts" not in tables.summary(results, at={"system": "MERP", "load": 0.2}).head


def test_a_miss_rate_of_nothing_is_shown_where_there_are_deadlines() -> None:
    def speaks(metric: str, mean: float | None) -> bool:
        return tables.speaks(metric, [{metric: tables.Row("", mean, None, None)}])

    assert [speaks("deadline_miss_rate", mean) for mean in (0.0, 0.2, None)] == [True, True, False]
    assert [speaks("drops", mean) for mean in (0.0, 0.2, None)] == [False, True, False]


def test_the_unit_fits_the_whole_column() -> None:
    rows = [tables.Row("s", 0.002, 0.001, 0.003), tables.Row("s", 0.0123, 0.0120, 0.0126), None]
    assert tables.column(rows) == ("ms", [" 2.0 ± 1.0".strip(), "12.3 ± 0.3", "-"])


def test_links_are_sorted_by_use_and_carry_units(results: Results) -> None:
    table = tables.links(results, {"system": "TCP", "load": 0.8})
    busy: dict[str, list[float]] = {}
    for run in results.select({"system": "TCP", "load": 0.8}):
        starts = results.flows(["start_ps"], {"point": run.point})["start_ps"].to_numpy()
        for port in results.ports(at={"point": run.point}).to_pylist():
            busy.setdefault(port["name"], []).append(100 * port["window_busy_ps"] / (starts.max() - starts.min()))
    assert {row[0]: row[2] for row in table.rows} == {name: f"{np.mean(shares):.1f}" for name, shares in busy.items()}
    assert [float(row[2]) for row in table.rows] == sorted((float(row[2]) for row in table.rows), reverse=True)
    assert "busy (%)" in table.head and "max queue (kB)" in table.head


def test_a_long_table_of_links_is_cut_and_says_so(results: Results) -> None:
    at = {"system": "TCP", "load": 0.8, "seed": 1}
    table = tables.links(results, at, most=2)
    assert len(table.rows) == 2 and "the 2 busiest of 12 links" in table.note
    starts = results.flows(["start_ps"], at)["start_ps"].to_numpy() / 1e9
    assert f"from {starts.min():.3g} to {starts.max():.3g} ms" in table.note, "its window"


def test_the_summary_names_the_window_of_what_is_measured_in_it(results: Results) -> None:
    assert "over all flows that count, from an empty network" in tables.summary(results).note
    assert {"goodput_bps", "mean_utilisation", "mean_queue_bytes"} < tables.WINDOWED and "mean_fct_s" not in tables.WINDOWED


def test_other_formats_escape() -> None:
    table = tables.Table(["a"], [["x|y <b>"]], 1)
    assert "x\\|y" in table.markdown() and "&lt;b&gt;" in table.html()


def test_words() -> None:
    assert words.title("p99_er") == "99th-percentile expansion ratio"
    assert words.key("a.load", ["a.load", "b.load"]) == "a.load"
    assert words.literals(["10us", "20us"]) == ([10.0, 20.0], "us")
    assert words.literals(["2ms", "10us"]) == ([2000.0, 10.0], "us")
    assert words.literals(["10us", "1KB"]) == (None, "")
    assert words.literals(["10us", "auto"]) == (None, "")
    assert sorted(["auto", "5s", "50ms", "500ms", "1"], key=words.sorting) == ["1", "50ms", "500ms", "5s", "auto"]
    assert words.scale("bytes", [1.5e6, 2e3]) == (1e6, "MB")
    assert words.decimals([12.34]) == 1 and words.decimals([1.0, 400.0]) == 0


def test_an_interval_that_passes_the_smallest_possible_value_is_the_range_of_the_seeds() -> None:
    """Seeds with 0, 1 and 1520 drops: their interval begins at -1671."""
    rows = [
        tables.Row("packets", 507.0, -1671.0, 2685.0, 0.0, 1520.0),
        tables.Row("packets", 6006.0, 5284.0, 6728.0, 5700.0, 6300.0),
    ]
    assert tables.column(rows, 0.0)[1] == ["507 in 0–1520", "6006    ±  722"]
    # Without a bound the interval stays.
    assert tables.column(rows)[1] == ["507 ± 2178", "6006 ±  722"]
    assert [tables.smallest(metric, [2.0]) for metric in ("timeouts", "p99_slowdown", "slowdown_drift")] == [0.0, 1.0, -np.inf]
    table = tables.Table(["system", "data drops"], [["TCP", "507 in 0–1520"], ["MERP", "6006 ±  722"]], 1)
    assert table.csv().splitlines() == [
        "system,data_drops,data_drops_half_ci95,data_drops_lowest,data_drops_highest",
        "TCP,507,,0,1520",
        "MERP,6006,722,,",
    ]


def test_summaries_say_what_ranges_are(results: Results) -> None:
    """The ranges are those of the points."""
    table = tables.summary(results, ["timeouts", "data_drops"])
    ranges = [(row, cell.strip()) for row in table.rows for cell in row[2:] if " in " in cell]
    assert ranges and "in a–b: the smallest and the largest seed" in table.note
    seeds: dict[tuple[str, str], list[float]] = {}
    for point in results.per_seed().to_pylist():
        if point["metric"] in ("timeouts", "data_drops"):
            seeds.setdefault((point["system"], str(point[results.keys[0]])), []).append(point["value"])
    for row, cell in ranges:
        found = tables.RANGE.fullmatch(cell)
        assert found is not None
        assert {float(found[2]), float(found[3])} <= set(seeds[row[0], row[1]])
    assert "a–b" not in tables.summary(results, ["flows"]).note
