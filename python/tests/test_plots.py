"""Figures: what is on their axes, not how they look."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small
from flowloom import Scenario, _core
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.figures import distributions, drawing, panels, plots, sizes, style, traces
from flowloom.figures.kinds import KINDS
from flowloom.figures.traces import Bar
from flowloom.pages import report
from flowloom.runs import tables
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from small import LOAD

UNITS = ("(ms)", "(s)", "(µs)", "(kB)", "(B)", "(MB)", "(Gbit/s)", "utilisation (%)")
PURE = ("rate", "expansion ratio", "slowdown", "share of flows", "drops", "load", "link")


def legend_texts(fig: Figure) -> set[str]:
    boxes = [*fig.legends, *(ax.get_legend() for ax in fig.axes)]
    return {text.get_text() for box in boxes if box is not None for text in box.get_texts()}


@pytest.mark.parametrize("name", ["slowdown", "metrics", "fct_cdf", "er_cdf", "fct_size", "utilisation"])
def test_axes_carry_units_and_curves_a_legend(results: Results, name: str) -> None:
    fig = plots.draw(results, name)
    assert fig.axes
    for ax in fig.axes:
        for label in (ax.get_xlabel(), ax.get_ylabel()):
            assert any(part in label for part in UNITS + PURE), label
    assert {text.split(",")[0] for text in legend_texts(fig) if not text.startswith("hollow")} == {"MERP", "pFabric", "TCP"}


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Long flows of two systems that share a link, in a measurement window, with time series and packets."""
    window: dict[str, Any] = {"measure": {"from": "2ms", "until": "20ms"}, "end": "20ms"}
    long = {"web": {"kind": "long", "pairs": "permutation"}}
    return small.run(tmp_path_factory.mktemp("crowded"), ("MERP", "TCP"), seeds=(4,), workload=long, sample=small.TRACES, **window)


@pytest.mark.parametrize("name", ["gantt", "queue", "rate", "throughput", "heatmap"])
def test_time_series_have_a_panel_per_system(crowded: Results, name: str) -> None:
    fig = plots.draw(crowded, name)
    panels = [ax for ax in fig.axes if ax.get_title()]
    assert [ax.get_title() for ax in panels] == ["MERP", "TCP"]
    assert {ax.get_xlabel() for ax in panels} == {"time (ms)"}
    assert legend_texts(fig) or fig.axes[-1].get_ylabel() == "utilisation (% of the interval)"


def test_every_kind_is_drawn_by_one_of_these_results(six_trained: Results, traced: Results) -> None:
    for name in KINDS:
        source = traced if KINDS[name].meta.needs in ("samples", "packets") else six_trained
        assert plots.draw(source, name).axes, name


def test_goodput_has_a_curve_per_system_and_what_a_network_that_blocks_nothing_gives(results: Results, crowded: Results) -> None:
    (ax,) = plots.draw(crowded, "goodput").axes
    found = {str(line.get_label()): np.asarray(line.get_ydata(), dtype=float) for line in ax.get_lines()}
    assert list(found) == ["MERP", "TCP", "only the links of hosts limit flows"]
    for run in crowded.runs:
        rates: dict[int, float] = {}
        for row in crowded.samples(None, {"point": run.point}).to_pylist():
            if row["metric"] == "flow.rate_bps":
                rates[row["time_ps"]] = rates.get(row["time_ps"], 0.0) + row["value"] / 1e9
        assert found[run.system] == pytest.approx(np.array([rates[time] for time in sorted(rates)]))
    # Each of four hosts sends to another one: of each frame of 1500 bytes on the wire, 1460 are payload.
    assert found["only the links of hosts limit flows"] == pytest.approx(4 * 1460 / 1500)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time (ms)", "goodput (Gbit/s)")
    with pytest.raises(drawing.NoDataError, match="flows = true"):
        plots.draw(results, "goodput")


def test_groups_that_do_not_finish_are_above_all_times(tmp_path: Path) -> None:
    burst = {"kind": "incast", "senders": 3, "size": "300KB", "repeat": 4}
    results = small.run(tmp_path, ("MERP", "TCP"), seeds=(1, 2), workload={"burst": burst}, end="31ms")
    ax = plots.draw(results, "group_cdf").axes[0]
    for line, system in zip(ax.get_lines(), ("MERP", "TCP"), strict=True):
        rows = [row for row in results.flows(at={"system": system}).to_pylist() if row["group_id"] is not None]
        groups = [[row for row in rows if (row["seed"], row["group_id"]) == place] for place in itertools.product((1, 2), range(4))]
        ended = [group for group in groups if all(row["finish_ps"] for row in group)]
        times = [max(row["finish_ps"] for row in group) - min(row["start_ps"] for row in group) for group in ended]
        assert 0 < len(times) < 8
        assert np.asarray(line.get_xdata(), dtype=float) == pytest.approx(np.sort(times) / 1e9)
        assert np.asarray(line.get_ydata(), dtype=float)[-1] == pytest.approx(len(times) / 8)
    assert ax.get_xlabel() == "group completion time (ms)"


def test_the_window_has_its_threshold_and_its_round_trip_beside_it(results: Results, crowded: Results) -> None:
    samples = [row for row in crowded.samples(None, {"system": "TCP"}).to_pylist() if row["metric"] == "flow.cwnd_bytes"]
    flow = max(samples, key=lambda row: row["value"])["entity"]
    above, below = plots.draw(crowded, "cwnd", flow=flow).axes
    assert [str(line.get_label()) for line in above.get_lines()] == ["cwnd", "ssthresh"]
    shown = np.asarray(above.get_lines()[0].get_ydata(), dtype=float)
    assert shown[np.isfinite(shown)] == pytest.approx([row["value"] / 1e3 for row in samples if row["entity"] == flow])
    assert [str(line.get_label()) for line in below.get_lines()] == ["smoothed round-trip time"]
    assert below.get_xlabel() == f"time (ms), flow {flow}" and above.get_xlim() == below.get_xlim()
    with pytest.raises(drawing.NoDataError, match="flows = true"):
        plots.draw(results, "cwnd")


def test_missing_data_names_what_to_record(results: Results) -> None:
    with pytest.raises(drawing.NoDataError, match="packets = true"):
        plots.draw(results, "gantt")
    with pytest.raises(drawing.NoDataError, match="ports = true"):
        plots.draw(results, "queue")
    with pytest.raises(ValueError, match="one of slowdown"):
        plots.draw(results, "pie")


def test_the_metric_panel_shows_the_summary(results: Results) -> None:
    fig = plots.draw(results, "metrics", metrics=["mean_fct_s"])
    (ax,) = fig.axes
    assert ax.get_xlabel() == "load" and ax.get_ylabel() == "mean FCT (ms)"
    shown = dict(np.column_stack(ax.lines[0].get_data()).tolist())
    chosen = results.select({"system": "MERP", "load": 0.8})
    means = [np.mean(results.flows(["fct_ps"], {"point": run.point})["fct_ps"].to_numpy()) / 1e9 for run in chosen]
    assert shown[0.8] == pytest.approx(np.mean(means))
    assert len(ax.collections) == 3, "one band per system"
    assert ax.get_yscale() == "linear" and ax.get_ylim()[0] == 0
    assert ax.get_xticks().tolist() == [0.2, 0.4, 0.6, 0.8], "a tick per load"


def curve(label: str, *mean: float) -> panels.Curve:
    values = np.array(mean)
    return panels.Curve(label, list(range(len(mean))), values, values, values)


def test_an_axis_is_logarithmic_when_a_curve_could_not_be_read() -> None:
    ax = Figure().add_subplot()
    for least, scale in ((10.0, "linear"), (80 / 8, "linear"), (9.9, "log"), (0.01, "log")):
        panels.scale_value_axis(ax, [curve("a", 1.0, 80.0), curve("b", 1.0, least)], 1.0)
        assert ax.get_yscale() == scale, least
        low, high = ax.get_ylim()
        assert low < min(1.0, least) and high > 80
        ax.set_yscale("linear")
    # What is nothing throughout can be read on any axis; what is nothing somewhere must stay on it.
    panels.scale_value_axis(ax, [curve("a", 1.0, 80.0), curve("b", 0.0, 0.0)], 1.0)
    assert ax.get_yscale() == "linear"
    panels.scale_value_axis(ax, [curve("a", 1.0, 80.0), curve("b", 0.0, 3.0)], 1.0)
    assert ax.get_yscale() == "symlog" and ax.get_ylim()[0] == 0


def test_values_that_double_stand_at_equal_distances() -> None:
    ax = Figure().add_subplot()
    assert panels.swept_ticks(ax, [0.2, 0.5, 0.8], [0.2, 0.5, 0.8])
    assert ax.get_xscale() == "linear"
    assert not panels.swept_ticks(ax, [float(n) for n in range(10)], list(range(10))), "too many to be named"
    panels.swept_ticks(ax, [4.0, 8.0, 16.0, 32.0], [4.0, 8.0, 16.0, 32.0])
    assert ax.get_xscale() == "log" and [t.get_text() for t in ax.get_xticklabels()] == ["4", "8", "16", "32"]


def test_labels_of_a_logarithmic_axis_are_plain_numbers() -> None:
    ax = Figure().add_subplot()
    style.log_axis(ax, "y")
    ax.set_ylim(0.5, 2000)
    label = ax.yaxis.get_major_formatter()
    assert [label(x) for x in (1, 10, 1000, 20, 0)] == ["1", "10", "1000", "", "0"]
    ax.set_ylim(8, 60)
    assert [label(x) for x in (10, 20, 50, 30)] == ["10", "20", "50", ""]


# Ideal references


def test_ideal_references_are_grey_dashed_curves(with_ideals: Results) -> None:
    (ax,) = plots.draw(with_ideals, "metrics", metrics=["mean_fct_s"]).axes
    handles, labels = ax.get_legend_handles_labels()
    look = dict(zip(labels, handles, strict=True))
    assert labels == ["MERP", "TCP", "ideal SRPT", "ideal PS"]
    assert look["MERP"].get_color() == style.COLORS[0] and look["TCP"].get_color() == style.COLORS[1]
    ideals = [look["ideal SRPT"], look["ideal PS"]]
    assert {line.get_color() for line in ideals} == {style.GREY} and {line.get_marker() for line in ideals} == {"None"}
    assert not {str(line.get_linestyle()) for line in ideals} & {"-"}
    for name in ("fct_cdf", "fct_size"):
        texts = legend_texts(plots.draw(with_ideals, name))
        assert {text.split(",")[0] for text in texts if not text.startswith("hollow")} == set(labels), name
    for name in ("utilisation", "topology"):
        texts = {ax.get_title().split(",")[0] for ax in plots.draw(with_ideals, name).axes} | legend_texts(
            plots.draw(with_ideals, name)
        )
        assert "MERP" in texts and "ideal SRPT" not in texts, name
    # A fluid drops no packets: no curve, not one at zero.
    (ax,) = plots.draw(with_ideals, "metrics", metrics=["drops"]).axes
    assert set(ax.get_legend_handles_labels()[1]) == {"MERP", "TCP"}


def test_without_a_sweep_systems_stand_below_each_other(traced: Results) -> None:
    ax = plots.draw(traced, "metrics", metrics=["max_er"]).axes[0]
    assert [t.get_text() for t in ax.get_yticklabels()] == ["MERP", "TCP"]
    assert ax.get_xlabel() == "maximum expansion ratio"


def test_intervals_stay_inside_and_rows_in_line(tmp_path: Path) -> None:
    found = small.run(tmp_path, ("MERP", "TCP"), 0.9, (1, 2), 100, ideal="srpt")
    fig = plots.draw(found, "metrics", metrics=["mean_fct_s", "drops"])
    first, second = fig.axes
    assert [t.get_text() for t in first.get_yticklabels()] == ["MERP", "TCP", "ideal SRPT"]
    assert first.get_yticks().tolist() == second.get_yticks().tolist() and first.get_ylim() == second.get_ylim()
    for ax in fig.axes:
        ends = [float(x) for bars in ax.collections for path in bars.get_paths() for x in np.asarray(path.vertices)[:, 0]]
        assert min(x for x in ends if not np.isnan(x)) >= ax.get_xlim()[0] - 1e-9


def test_labels_may_hold_commas(tmp_path: Path) -> None:
    found = small.run(tmp_path, ("TCP, 5 ms", "TCP, 1 s"), (0.2, 0.4), (1, 2))
    (ax,) = plots.draw(found, "metrics", metrics=["mean_fct_s"]).axes
    assert ax.get_legend_handles_labels()[1] == ["TCP, 5 ms", "TCP, 1 s"]


def test_curves_differ_by_more_than_colour() -> None:
    looks = [style.line(i) for i in range(12)]
    assert len({(look["marker"], str(look["linestyle"])) for look in looks[:6]}) == 6
    assert len({(look["color"], look["marker"], str(look["linestyle"])) for look in looks}) == 12


def test_packets_that_follow_each_other_are_one_bar() -> None:
    rows = [
        (0, 10, 1, "data", 7, False),
        (11, 21, 1, "data", 7, False),  # a short gap
        (21, 22, 1, "det", 8, False),  # not data
        (22, 32, 1, "data", 7, False),
        (33, 43, 1, "data", 8, False),  # another flow
        (43, 43, 1, "data", 9, True),  # dropped
        (44, 54, 1, "data", 7, False),
        (70, 80, 1, "data", 7, False),  # a long gap
        (0, 10, 2, "data", 7, False),  # another port
    ]
    names = ("time_ps", "end_ps", "port_id", "kind", "flow_id", "dropped")
    packets = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    assert traces.bars(packets) == [Bar(1, 7, 0, 32), Bar(1, 8, 33, 43), Bar(1, 7, 44, 54), Bar(1, 7, 70, 80), Bar(2, 7, 0, 10)]


def test_the_tail_keeps_its_last_points() -> None:
    x, above = distributions.staircase(np.arange(1.0, 100_001.0))
    assert len(x) <= 400
    assert x[-1] == 100_000 and above[-1] == 0
    assert x[-2] == 99_999 and above[-2] == pytest.approx(1e-5)
    assert above[np.searchsorted(x, 50_000)] == pytest.approx(0.5, abs=0.01)


def test_files_are_the_same_each_time(results: Results, tmp_path: Path) -> None:
    written = []
    for name in ("a", "b"):
        files = style.save(plots.draw(results, "metrics"), tmp_path / name / "metrics")
        assert [file.suffix for file in files] == [".png", ".svg"]
        written.append([file.read_bytes() for file in files])
    assert written[0] == written[1]
    assert b"dc:date" not in written[0][1]


def test_a_file_that_cannot_be_finished_leaves_the_former(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (before,) = style.save(plots.draw(results, "metrics"), tmp_path / "a.png")
    content = before.read_bytes()

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        style.save(plots.draw(results, "fct_cdf"), tmp_path / "a.png")
    assert list(tmp_path.iterdir()) == [before] and before.read_bytes() == content


def test_a_legend_fits_its_figure() -> None:
    cases = ((4.8, [f"theta 0.{i}" for i in range(5, 10)]), (4.2, ["TCP, RTO 200 ms", "b" * 40]), (12, list("abcdef")))
    for width, labels in cases:
        with style.look():
            fig = style.figure(1, 1, width=width)
            (ax,) = style.panels(fig, 1, 1)
            for i, label in enumerate(labels):
                ax.plot([0, 1], [0, i], **style.line(i), label=label)
            style.legend(fig, [ax])
            fig.canvas.draw()
            box = fig.legends[0].get_window_extent()
        assert box.x0 >= 0 and box.x1 <= fig.bbox.x1, (labels, box)


def test_inline_figures_follow_the_page(results: Results) -> None:
    text = style.inline_svg(plots.draw(results, "metrics"), "one")
    assert text.startswith("<svg") and style.INK not in text and "currentColor" in text
    assert 'id="one-' in text and "url(#" in text and "url(#one-" in text
    assert text.count("url(#") == text.count("url(#one-")


# What happens over time


def test_a_queue_has_the_same_look_in_every_panel(traced: Results) -> None:
    fig = plots.draw(traced, "queue", most=1)
    first, second = fig.axes
    assert first.lines[0].get_label() == second.lines[0].get_label()
    assert first.lines[0].get_color() == second.lines[0].get_color() == style.COLORS[0]
    rows = [row for row in traced.samples(None, {"system": "MERP"}).to_pylist() if row["metric"] == "port.queue_bytes"]
    ports = {row["name"]: row["port_id"] for row in traced.ports(at={"system": "MERP"}).to_pylist()}
    port = ports[str(first.lines[0].get_label())]
    expected = [(row["time_ps"] * 1e-9, row["value"] / 1e3) for row in rows if row["entity"] == port]
    assert np.column_stack(first.lines[0].get_data()) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("values", [[1, 1, 4, 9], [4, 1, 4, 0, 2], [7_000_000, 3, 7_000_000]])
def test_values_are_ranked_as_by_sorting(values: list[int]) -> None:
    distinct, place = traces.ranked(np.array(values, dtype=np.uint32))
    assert distinct.tolist() == sorted(set(values))
    assert distinct[place].tolist() == values


def test_throughput_is_stacked_by_size(traced: Results) -> None:
    run = drawing.one_per_system(traced, None)[0][1]
    found = traces.sampled(traced, run, "flow.rate_bps")
    assert found is not None
    edges = np.array([0.0, *found.times[9::10]])
    means = traces.binned(found, list(found.values), edges)
    total = np.sum([np.nan_to_num(values) for values in found.values.values()], axis=0)
    assert means[0] == pytest.approx(total[:10].mean()) and means.mean() == pytest.approx(total[: 10 * len(means)].mean())
    ax = Figure().add_subplot()
    traces.throughput_panel(ax, traced, run, found)
    bottom, top = (np.asarray(ax.patches[i].get_path().vertices, dtype=np.float64)[:, 1] for i in (0, -1))
    most = max(float(traces.binned(found, list(found.values), np.linspace(0, found.times[-1], n)).max()) for n in (100, 151, 200))
    assert bottom.min() == 0 and 0 < top.max() <= 1.01 * most / 1e9
    flows = [flow for chosen in traces.classes(traced, run).values() for flow in chosen]
    assert sorted(flows) == sorted(drawing.numbers(traced.flows(["flow_id"], {"point": run.point}), "flow_id"))


def test_pictures_of_queues_show_the_thresholds(tmp_path: Path) -> None:
    from flowloom import run

    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": {"burst": {"kind": "incast", "senders": 3, "size": "300KB"}},
        "system": [
            {"label": label, "transport": "dctcp", "qdisc": {"kind": "ecn_threshold", "limit": "128KiB", "mark": mark}}
            for label, mark in (("DCTCP", "20pkt"), ("swept", ["10pkt", "30KB"]))
        ],
        "sample": {"interval": "5us", "port": "s0->h0"},
    }
    results = run(scenario, out=tmp_path / "r")
    found = [traces.bounds(results, run) for run in results.runs]
    assert found == [{"limit": 131_072, "mark": mark} for mark in (30_000, 15_000, 30_000)]
    (ax, _) = plots.draw(results, "queue").axes
    assert [text.get_text() for text in ax.texts] == ["mark"] and len(ax.lines) == 2
    scenario["system"] = [{"label": "BOTCP", "transport": {"kind": "botcp", "occ_max": [60, 70]}, "agent": "bof"}]
    results = run(scenario, out=tmp_path / "botcp")
    assert [traces.bounds(results, run) for run in results.runs] == [
        {"limit": 150_000, "occ_long": 30_000, "occ_short": 60_000, "occ_max": most} for most in (90_000, 105_000)
    ]
    # Ports of two rates have two limits and no common line; each is in the table of ports.
    scenario["topology"] = {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 2, "delay": "10us"}
    scenario["system"] = [{"label": "DCTCP", "transport": {"kind": "dctcp", "stack": "fine"}}]
    scenario["sample"] = {"interval": "5us", "port": "leaf0->h0"}
    results = run(scenario, out=tmp_path / "rates")
    assert [traces.bounds(results, run) for run in results.runs] == [{}]
    ports = results.ports().to_pylist()
    switch, host = (next(port for port in ports if port["name"] == name) for name in ("leaf0->h0", "h0->leaf0"))
    assert switch["limit_bytes"] > switch["mark_bytes"] > 30_000 and host["limit_bytes"] is None
    uplinks = [port["limit_bytes"] for port in ports if port["rate_bps"] == 4 * switch["rate_bps"]]
    assert uplinks and all(abs(limit - 4 * switch["limit_bytes"]) <= 4 * 1500 for limit in uplinks)
    # Against a queue that stays far below, nothing is drawn.
    empty = Figure().add_subplot()
    traces.draw_bounds(empty, found[0], 1e3, 1e3)
    assert not empty.texts


def test_long_waits_are_cut_short() -> None:
    assert traces.idle([(0, 10), (12, 20)]) == []
    assert traces.idle([(0, 10), (5, 30), (1000, 1020), (1022, 1030)]) == [(30, 1000)]
    ax = Figure().add_subplot()
    traces.cut_idle(ax, [(30, 1000)], 1030)
    place = ax.transData.transform([(0, 0), (30, 0), (1000, 0), (1030, 0)])[:, 0]
    before, gap, after = np.diff(place)
    assert before == pytest.approx(after) and gap == pytest.approx(traces.SHORT * (before + after))
    ticks = ax.get_xticks()
    assert not ((ticks > 30) & (ticks < 1000)).any() and (ticks <= 30).sum() >= 2 and (ticks >= 1000).sum() >= 2
    assert [text.get_text() for text in ax.texts] == ["970 ms idle"]


def test_of_a_sweep_the_last_values_are_drawn_and_named(results: Results) -> None:
    chosen = drawing.one_per_system(results, None)
    assert [(run.system, run.keys[LOAD], run.seed) for _, run in chosen] == [
        ("MERP", 0.8, 1),
        ("pFabric", 0.8, 1),
        ("TCP", 0.8, 1),
    ]
    assert drawing.titled(results, chosen[0][1], None) == "MERP, load 0.8"
    (run,) = [run for system, run in drawing.one_per_system(results, {"load": 0.2}) if system == "TCP"]
    assert run.keys[LOAD] == 0.2 and drawing.titled(results, run, {"load": 0.2}) == "TCP"


# Against the size of flows


def test_slowdown_is_drawn_against_size_with_intervals(results: Results) -> None:
    fig = plots.draw(results, at={"load": 0.8})
    assert [ax.get_ylabel() for ax in fig.axes] == [
        "mean slowdown",
        "median slowdown",
        "95th percentile of slowdown",
        "99th percentile of slowdown",
    ]
    rows = [
        row for row in results.by_size().to_pylist() if (row["system"], row["quantity"], row[LOAD]) == ("MERP", "slowdown", 0.8)
    ]
    chosen = results.select({"system": "MERP", "load": 0.8})
    points = [results.flows(["size_bytes", "slowdown"], {"point": run.point}) for run in chosen]
    flows = [(point["size_bytes"].to_numpy(), point["slowdown"].to_numpy()) for point in points]

    def over_seeds(row: dict[str, Any], statistic: str) -> float:
        low, high = row["min_size_bytes"], row["max_size_bytes"]
        inside = [slowdown[(size >= low) & (size <= high)] for size, slowdown in flows]
        if statistic == "mean":
            return float(np.mean([np.mean(values) for values in inside]))
        share = int(statistic.removeprefix("p")) / 100
        return float(np.mean([np.quantile(values, share, method="inverted_cdf") for values in inside]))

    for ax, statistic in zip(fig.axes, ("mean", "p50", "p95", "p99"), strict=True):
        here = [row for row in rows if row["statistic"] == statistic]
        (line,) = [line for line in ax.lines if line.get_label() == "MERP"]
        expected = [(row["median_size_bytes"] / 1e3, over_seeds(row, statistic)) for row in here]
        assert np.column_stack(line.get_data()) == pytest.approx(np.array(expected))
        assert len(ax.collections) == 3, "a band per system"
        drawn = {
            (x, y)
            for line in ax.lines
            if line.get_markerfacecolor() == style.PAPER and line.get_color() == style.COLORS[0]
            for x, y in np.column_stack(line.get_data()).tolist()
        }
        few = {(row["median_size_bytes"] / 1e3, row["mean"]) for row in here if row["rests_on"] < sizes.FEW and statistic != "mean"}
        assert drawn == few and bool(few) == (statistic in ("p95", "p99")), statistic
    assert "hollow: rests on fewer than 10 flows" in legend_texts(fig)


def test_a_figure_says_which_swept_values_it_leaves_out(results: Results) -> None:
    intervals = "intervals: 95 % (Student's t) over 3 seeds"
    assert plots.draw(results, "slowdown").get_supxlabel() == intervals
    fig = plots.draw(results, "slowdown", most=2)
    assert fig.get_supxlabel() == f"drawn: load 0.2; load 0.8, of 4 swept values\n{intervals}" and len(fig.axes) == 8


def test_expansion_ratios_are_shown_where_merp_takes_part(results: Results, tmp_path: Path) -> None:
    other = small.run(tmp_path, ("TCP",))
    assert tables.takes_part(results, "merp") and not tables.takes_part(other, "merp")
    assert "er_cdf" in {kind.name for kind in plots.shown(results)} - {kind.name for kind in plots.shown(other)}
    assert "p99 ER" in results.table().head and not any("ER" in head for head in other.table().head)
    assert plots.draw(other, "er_cdf").axes, "by name it is drawn"


def test_a_figure_of_what_is_measured_in_the_window_names_it(results: Results, tmp_path: Path) -> None:
    from flowloom import run

    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": {"burst": {"kind": "incast", "senders": [2, 3], "size": "30KB"}},
        "system": [{"transport": "dctcp", "qdisc": {"kind": "ecn_threshold", "mark": "20pkt"}}],
        "measure": {"from": "2us", "until": "20us"},
    }
    made = run(scenario, seeds=[1, 2])
    fig = plots.draw(made, "sharing")
    assert fig.get_supxlabel() == "goodput: from 2 to 20 µs\nintervals: 95 % (Student's t) over 2 seeds"
    assert [ax.get_ylabel() for ax in fig.axes] == ["goodput (Gbit/s)", "mean group FCT (µs)", "group Jain's index"]
    assert "goodput" not in plots.draw(made, "metrics", metrics=["mean_fct_s"]).get_supxlabel()
    with pytest.raises(drawing.NoDataError, match="no groups"):
        plots.draw(Results.open(run({**scenario, "workload": {"w": POISSON}}, out=tmp_path / "r").path or ""), "sharing")


def test_flows_with_and_without_deadlines_are_side_by_side(tmp_path: Path) -> None:
    from flowloom import run

    deadline = {"kind": "uniform", "min": "50us", "max": "1ms", "share": 0.5}
    web = {"kind": "poisson", "flows": 30, "load": 0.5, "size": "fixed", "mean": "30KB", "deadline": deadline}
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": {"web": web}, "system": [{"policy": "edf_sjf"}]}
    fig = plots.draw(run(scenario, seeds=[1, 2]), "mixed")
    labels = [ax.get_xlabel() for ax in fig.axes]
    assert labels == ["deadline miss rate", "mean FCT without deadline (µs)", "mean FCT without deadline of short flows (µs)"]
    deadline["share"] = 1
    with pytest.raises(drawing.NoDataError, match="both flows with a deadline and flows without one"):
        plots.draw(Results.open(run(scenario, out=tmp_path / "r").path or ""), "mixed")


POISSON = {"kind": "poisson", "flows": 5, "load": 0.1, "size": "fixed", "mean": "1KB"}


def test_failures_are_marked_on_time_axes(tmp_path: Path) -> None:
    cut, late = {"at": "1ms", "until": "2ms", "node": "root"}, {"at": "1s", "node": "root"}
    events: dict[str, Any] = {"event": {"cut": cut, "late": late}, "failure": {"unreachable": "run"}, "end": "2s"}
    results = small.run(tmp_path, ("TCP",), flows=10, sample=small.TRACES, **events)
    assert drawing.changes(results, results.runs[0]) == [(1.0, False), (2.0, True), (1000.0, False)]
    for name in ("gantt", "queue", "rate", "throughput", "heatmap"):
        fig = plots.draw(results, name)
        lines = [line for line in fig.axes[0].lines if str(line.get_label()) in ("failure", "repair")]
        marks = [np.asarray(line.get_data()[0], dtype=np.float64)[0] for line in lines]
        assert marks == [1.0, 2.0], name
        assert {"failure", "repair"} <= legend_texts(fig), name


def test_a_legend_of_many_rows_makes_the_figure_higher() -> None:
    with style.look():
        fig = style.figure(1, 1)
        ax = fig.add_subplot()
        before = fig.get_figheight()
        for i in range(12):
            ax.plot([0, 1], [0, i], label=f"a system with a long name {i}")
        style.legend(fig, [ax])
        assert fig.get_figheight() > before + 1


def test_every_kind_of_figure_can_be_explained(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "figures"]) == 0
    listed = {line.split()[0] for line in capfd.readouterr().out.splitlines()}
    assert listed == set(KINDS)


def test_no_interval_goes_below_the_smallest_possible_value(tmp_path: Path) -> None:
    # Two seeds of few flows: Student's intervals of means and tails are wider than the values.
    scenario = {
        "seed": [1, 2],
        "topology": {"kind": "star", "hosts": 4},
        "workload": {"web": {"kind": "poisson", "flows": 60, "load": [0.6, 0.9]}},
        "measure": {"flows": "all"},
        "system": [{"label": "short", "transport": "newreno", "qdisc": {"kind": "droptail", "limit": "8pkt"}}],
    }
    results = Scenario.from_dict(scenario).run(out=tmp_path / "r")
    summary = [row for row in results.summary().to_pylist() if row["metric"] in ("p99_slowdown", "data_drops")]
    assert any(row["ci95_low"] < (0 if row["metric"] == "data_drops" else 1) for row in summary), "nothing to cut"
    for kind, options in (("slowdown", {}), ("metrics", {"metrics": ["p99_slowdown", "data_drops"]})):
        (path,) = style.save(plots.draw(results, kind, **options), tmp_path / kind, ["csv"])
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows and all(float(row["ci95_low"]) >= (0 if "drops" in row.get("metric", "") else 1) for row in rows), kind


def test_the_caption_names_bands_only_of_several_seeds(tmp_path: Path) -> None:
    for seeds, said in (([1], 0), ([1, 2], 1)):
        scenario = {
            "seed": seeds,
            "topology": {"kind": "star", "hosts": 4},
            "workload": {"web": {"kind": "poisson", "flows": 60, "load": [0.3, 0.5]}},
            "measure": {"flows": "all"},
            "system": [{"label": "TCP", "transport": "newreno"}],
        }
        found = report.figures(Scenario.from_dict(scenario).run(out=tmp_path / str(len(seeds))))
        assert sum("95 % bands over 2 seeds" in text for text in found) >= said
        assert said or not any("% bands" in text for text in found)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.floats(1e-12, 1e12), min_size=1, max_size=40), st.booleans())
def test_every_interval_contains_its_mean(values: list[float], equal: bool) -> None:
    values = [values[0]] * len(values) if equal else values
    mean, ends = _core.estimate(values)
    assert mean is not None and min(values) <= mean <= max(values)
    low, high = ends or (mean, mean)
    assert low <= mean <= high
    if equal:
        assert low == mean == high == values[0]
    ends_ = (np.array([value]) for value in (mean, low, high))
    assert (drawing.whiskers(*ends_) >= 0).all()


def test_whiskers_are_never_negative() -> None:
    mean, low, high = np.array([1.0, 0.1, 2.0, np.nan]), np.array([0.5, 0.2, -1.0, np.nan]), np.array([3.0, 0.05, 2.0, np.nan])
    found = drawing.whiskers(mean, low, high)
    assert found[:, :3].tolist() == [[0.5, 0.0, 3.0], [2.0, 0.0, 0.0]] and np.isnan(found[:, 3]).all()


def test_a_bound_that_means_pass_is_no_bound() -> None:
    assert tables.smallest("mean_slowdown", [1.0, 2.0]) == 1.0 and tables.smallest("mean_fct_s", [0.0]) == 0.0
    assert tables.smallest("mean_slowdown", [0.9, 2.0]) == tables.smallest("goodput", [-1.0]) == -np.inf


def test_equal_values_of_all_seeds_are_drawn(tmp_path: Path) -> None:
    """The sum of three equal bandwidths is rounded, so that their mean differs from them unless it is corrected."""
    systems = [{"label": "fine", "transport": "newreno"}, {"label": "ndp", "transport": "ndp", "qdisc": "trim"}]
    job = {"kind": "collective", "bytes": "64KB", "iterations": 3, "compute": "10us"}
    scenario = {"topology": {"kind": "star", "hosts": 4}, "workload": {"job": job}, "system": systems}
    out = str(tmp_path / "job")
    Scenario.from_dict(scenario, seeds=[1, 2, 3]).run(out=out)
    for line in (["report", out], ["plot", out, "--kind", "busbw,metrics,iterations", "--format", "csv"]):
        assert main(line) == 0
    rows = list(csv.DictReader((tmp_path / "job/figures/busbw.csv").read_text(encoding="utf-8").splitlines()))
    names = ("ci95_low", "bus_bandwidth_Gbit_per_s", "ci95_high")
    found = [tuple(float(row[name]) for name in names) for row in rows if row["ci95_low"]]
    assert len(found) == 2 and all(low <= mean <= high for low, mean, high in found)
