"""Programs of ranks: their figures, tables, tracks, and the messages that delay a collective."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import programs
import pytest
import small
from flowloom import Scenario, ScenarioWarning, exports
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.figures import plots, style
from flowloom.figures.drawing import NoDataError
from flowloom.pages import playback, report
from flowloom.runs.programs import lanes, longest, parts_of, placed, ranks_of, tasks_of
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from programs import US, Program, WithTasks, measured, with_tasks

MIB = 1 << 20


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run of two systems without tasks."""
    return programs.run(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run of two systems with three seeds, without tasks."""
    return programs.run(tmp_path_factory.mktemp("seeds"), seeds=(1, 2, 3))


def of(results: Results, *tasks: Program) -> WithTasks:
    """The results with programs at the first point of each system."""
    return with_tasks(results, {programs.first(results, "MERP").point: tasks})


@pytest.fixture(scope="module")
def trained(plain: Results) -> WithTasks:
    """A training job of eight ranks on two systems, of which the second is slower."""
    points = [programs.first(plain, system).point for system in ("MERP", "TCP")]
    return with_tasks(plain, {points[0]: [programs.training(8, 3)], points[1]: [programs.training(8, 3, slow=1.6)]})


def legend(fig: Figure) -> list[str]:
    return [text.get_text() for box in fig.legends for text in box.get_texts()]


def bars(ax: Axes) -> dict[str, list[Any]]:
    """The corners of the bars of a panel, by label."""
    drawn = [one for one in ax.collections if isinstance(one, PolyCollection)]
    return {str(one.get_label()): [path.vertices for path in one.get_paths()] for one in drawn}


def test_parts_that_overlap_have_lanes_of_their_own() -> None:
    assert lanes([(0, 3), (1, 2), (2, 4), (3, 5)]) == [0, 1, 1, 0] and lanes([]) == []
    assert lanes([(0, 9), (1, 8), (2, 7), (7, 9)]) == [0, 1, 2, 2]


def test_computations_are_above_collectives_only_if_they_overlap(plain: Results) -> None:
    program = Program()
    program.task("forward", {0: (0, 10)})
    program.task("sum", {0: (10, 15)}, operation="all_reduce")
    run = programs.first(plain, "MERP")
    found = of(plain, program)
    assert placed(parts_of(found, run, tasks_of(found, run))["web", 0], 0) == [0, 0]
    program.task("gather", {0: (12, None)}, operation="all_gather")
    program.task("backward", {0: (13, 20)})
    found = of(plain, program)
    parts = parts_of(found, run, tasks_of(found, run))["web", 0]
    assert [part.task.name for part in parts] == ["forward", "sum", "gather", "backward"]
    assert placed(parts, 30 * US) == [0, 1, 2, 0]
    # Parts that did not begin are left out; so are those of other ranks and workloads.
    program.task("never", {0: (None, None), 1: (3, 4)})
    found = of(plain, program)
    tasks = tasks_of(found, run)
    assert len(parts_of(found, run, tasks)["web", 0]) == 4 and ranks_of(found, run, tasks) == [("web", 0), ("web", 1)]
    assert parts_of(found, run, tasks, [("web", 1)]).keys() == {("web", 1)}


def test_a_time_line_has_a_panel_per_system_and_a_bar_per_part(trained: WithTasks) -> None:
    fig = plots.draw(trained, "timeline")
    assert [ax.get_title() for ax in fig.axes] == ["MERP", "TCP"]
    assert {(ax.get_xlabel(), ax.get_ylabel()) for ax in fig.axes} == {("time (µs)", "rank")}
    assert legend(fig) == ["compute", "all_reduce", "start of an iteration", "last rank of a long collective"]
    assert fig.axes[0].get_xlim() == fig.axes[1].get_xlim(), "systems are compared on one time axis"
    for ax, system in zip(fig.axes, ("MERP", "TCP"), strict=True):
        run = programs.first(trained, system)
        tasks = tasks_of(trained, run)
        assert [label.get_text() for label in ax.get_yticklabels()] == [str(rank) for rank in range(8)]
        for operation, drawn in bars(ax).items():
            own = {task.group_id for task in tasks if task.operation == operation}
            spans = [
                (p.start_ps / US, (p.finish_ps or 0) / US)
                for some in parts_of(trained, run, tasks).values()
                for p in some
                if p.task.group_id in own
            ]
            found = [(corners[:, 0].min(), corners[:, 0].max()) for corners in drawn]
            assert np.array(sorted(found)) == pytest.approx(np.array(sorted(spans)))
        (marks,) = (line for line in ax.get_lines() if line.get_label() == "last rank of a long collective")
        ended = {task.finish_ps / US: task.last_rank for task in tasks if task.collective and task.finish_ps}
        rows = ax.get_yticks()
        found_ = {x: int(np.argmin(np.abs(rows - y))) for x, y in zip(*np.asarray(marks.get_data(), dtype=float), strict=True)}
        assert found_ == pytest.approx(ended)
        (starts,) = (one for one in ax.collections if isinstance(one, LineCollection))
        first = [min(task.start_ps or 0 for task in tasks if task.iteration == i) / US for i in range(3)]
        assert [segment[0][0] for segment in starts.get_segments()] == pytest.approx(first)
        assert {"iteration 0", "iteration 1", "iteration 2"} <= {text.get_text() for text in ax.texts}


def test_the_numbers_of_a_time_line_are_its_parts(trained: WithTasks) -> None:
    rows = list(csv.DictReader(io.StringIO(style.table(plots.draw(trained, "timeline", systems=["TCP"])))))
    run = programs.first(trained, "TCP")
    assert len(rows) == trained.parts(["rank"], {"point": run.point}).num_rows
    assert list(rows[0]) == ["system", "workload", "rank", "task", "operation", "iteration", "from_us", "until_us"]
    assert rows[0] == dict(zip(rows[0], ["TCP", "web", "0", "forward 0", "compute", "0", "0", "10"], strict=True))


def test_of_many_ranks_some_are_drawn_and_the_last_ones_are_kept(plain: Results) -> None:
    found = of(plain, programs.training(300, 2))
    fig = plots.draw(found, "timeline", most=20)
    (ax,) = fig.axes
    drawn = [int(label.get_text()) for label in ax.get_yticklabels()]
    last = {task.last_rank for task in tasks_of(found, programs.first(found, "MERP")) if task.collective}
    assert len(drawn) == 20 and drawn == sorted(drawn) and set(drawn) >= last
    assert np.diff(sorted(set(drawn) - last)).max() <= 2 * 300 / (20 - len(last))
    assert "20 of 300 ranks are drawn, spread evenly, and the last ranks of long collectives" in str(fig.get_supxlabel())
    assert "ranks are drawn" not in str(plots.draw(of(plain, programs.training(64, 1)), "timeline").get_supxlabel())


def test_a_time_line_can_be_cut_to_a_span_and_a_workload(plain: Results) -> None:
    found = of(plain, programs.training(4, 3), programs.training(3, 1, first=100, workload="other"))
    found.__dict__["config"] = {"workload": {"web": {}, "other": {}}}
    (ax,) = plots.draw(found, "timeline").axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "web 0",
        "web 1",
        "web 2",
        "web 3",
        "other 0",
        "other 1",
        "other 2",
    ]
    (ax,) = plots.draw(found, "timeline", workload="other", span=(0.05, 0.1)).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["0", "1", "2"]
    assert ax.get_xlim() == pytest.approx((50, 100)) and ax.get_xlabel() == "time (µs)"
    with pytest.raises(KeyError, match="there is no workload `othr`; did you mean `other`"):
        plots.draw(found, "timeline", workload="othr")
    with pytest.raises(NoDataError, match="the results have no tasks"):
        plots.draw(plain, "timeline")


def test_parts_beyond_the_lanes_are_drawn_on_others(plain: Results) -> None:
    program = Program()
    for i in range(7):
        program.task("sum", {0: (i, 20 + i)}, operation="all_reduce")
    fig = plots.draw(of(plain, program), "timeline")
    tops = {float(corners[:, 1].min()) for corners in bars(fig.axes[0])["all_reduce"]}
    assert len(tops) == 4 and "up to 7 parts of a rank overlap: some are drawn on others" in str(fig.get_supxlabel())


def test_of_many_iterations_the_first_are_drawn_and_a_span_draws_others(plain: Results) -> None:
    found = of(plain, programs.training(4, 9))
    fig = plots.draw(found, "timeline")
    (ax,) = fig.axes
    tasks = tasks_of(found, programs.first(found, "MERP"))
    assert ax.get_xlim() == pytest.approx((0, max(task.finish_ps or 0 for task in tasks if task.iteration < 4) / US))
    assert "the first 4 iterations; `span` draws other times" in str(fig.get_supxlabel())
    end = max(task.finish_ps or 0 for task in tasks) / US / 1000
    fig = plots.draw(found, "timeline", span=(0, end))
    assert [text.get_text() for text in fig.axes[0].texts][:3] == ["0", "2", "4"]
    assert "the first" not in str(fig.get_supxlabel())


def test_parts_without_an_end_last_until_the_end_of_the_run(plain: Results) -> None:
    program = Program()
    program.task("sum", {0: (0, 10), 1: (0, None)}, operation="all_reduce")
    fig = plots.draw(of(plain, program), "timeline")
    (ax,) = fig.axes
    assert legend(fig) == ["all_reduce", "all_reduce, did not end", "start of an iteration"]
    (corners,) = bars(ax)["all_reduce, did not end"]
    end = programs.first(plain, "MERP").end_ps
    factor = {"µs": US, "ms": 1000 * US}[ax.get_xlabel()[-3:-1]]
    assert end is not None and corners[:, 0].max() == pytest.approx(end / factor)


def test_iterations_have_their_time_and_the_communication_that_is_exposed(plain: Results, seeds: Results) -> None:
    fig = plots.draw(measured(of(seeds)), "iterations")
    assert [ax.get_xlabel() for ax in fig.axes] == [
        "mean iteration time (ms)",
        "maximum iteration time (ms)",
        "exposed communication",
        "bubble share",
    ]
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["MERP", "TCP"]
    with pytest.raises(NoDataError, match="no iteration of a program has ended"):
        plots.draw(plain, "iterations")


def test_the_table_has_the_metrics_of_tasks_near_the_start(seeds: Results) -> None:
    head = measured(of(seeds)).table().head
    tasks = ["mean iteration time (ms)", "exposed communication", "bubble share", "mean bus bandwidth (Gbit/s)"]
    assert head[:6] == ["system", "flows", *tasks]
    assert not any("iteration" in one for one in seeds.table().head)


def swept_sizes(results: Results) -> WithTasks:
    """All-reduces and all-to-alls of three sizes in each point, with a bandwidth that depends on the seed."""
    found = {}
    for run in results.runs:
        program = Program()
        for size in (MIB, 2 * MIB, 8 * MIB):
            for operation in ("all_reduce", "all_to_all"):
                for part in (-1e7, 1e7):
                    program.task("x", {0: (0, 1), 1: (0, 2)}, 0, operation, size, 5e8 + 1e7 * run.seed + size + part)
        found[run.point] = [program]
    return with_tasks(results, found)


def test_bus_bandwidth_is_drawn_against_the_size(seeds: Results) -> None:
    fig = plots.draw(swept_sizes(seeds), "busbw")
    assert [ax.get_title() for ax in fig.axes] == ["all_reduce", "all_to_all"]
    for ax in fig.axes:
        assert ax.get_xscale() == "log" and (ax.get_xlabel(), ax.get_ylabel()) == (
            "size of the collective",
            "bus bandwidth (Gbit/s)",
        )
        assert [label.get_text() for label in ax.get_xticklabels()] == ["1 MiB", "2 MiB", "8 MiB"]
        lines = {str(line.get_label()): line for line in ax.get_lines()}
        assert set(np.asarray(lines["rate of a host's link"].get_ydata(), dtype=float)) == {1.0}
        curve = next(box for box in ax.containers if box.get_label() == "TCP")
        means = np.asarray(curve[0].get_ydata(), dtype=float)
        assert means == pytest.approx([0.52 + size / 1e9 for size in (MIB, 2 * MIB, 8 * MIB)]), (
            "the mean over tasks, then over seeds"
        )
    assert "over 3 seeds" in str(fig.get_supxlabel())
    rows = list(csv.DictReader(io.StringIO(style.table(fig))))
    assert list(rows[0]) == ["system", "operation", "size_MB", "bus_bandwidth_Gbit_per_s", "ci95_low", "ci95_high"]
    assert len(rows) == 2 * (2 * 3 + 1)


def test_a_swept_key_that_sets_the_size_is_the_axis_and_other_keys_have_panels(tmp_path: Path) -> None:
    results = small.run(tmp_path, ("MERP",), load=(0.2, 0.4), flows=5, web={"mean": ["20KB", "30KB"]})
    keys = results.keys
    assert len(results.runs) == 4 and len(keys) == 2

    def programs_of(sets_size: str) -> Mapping[str, list[Program]]:
        found = {}
        for run in results.runs:
            program = Program()
            values = list(dict.fromkeys(str(one.keys[sets_size]) for one in results.runs))
            program.task("x", {0: (0, 1)}, 0, "all_reduce", MIB << values.index(str(run.keys[sets_size])), 1e8)
            found[run.point] = [program]
        return found

    for key in keys:
        fig = plots.draw(with_tasks(results, programs_of(key)), "busbw")
        other = next(one for one in keys if one != key)
        assert [ax.get_title() for ax in fig.axes] == [
            f"all_reduce, {other.split('.')[-1]} {value if isinstance(value, str) else f'{value:g}'}"
            for value in dict.fromkeys(run.keys[other] for run in results.runs)
        ]
        for ax in fig.axes:
            (curve,) = ax.containers
            assert len(np.asarray(curve[0].get_xdata())) == 2


def test_the_rate_of_hosts_is_drawn_if_it_is_the_same_everywhere(tmp_path: Path) -> None:
    cables = "a,b,rate,delay\nh0,s,1Gbps,1us\nh1,s,{},1us\n"
    text = '''topology = { kind = "file", path = "cables.csv" }
workload.web = { kind = "long", pairs = "h0->h1", size = "20KB" }
[[system]]
label = "MERP"
transport = "newreno"'''
    for rate, shown in (("1Gbps", True), ("2Gbps", False)):
        (tmp_path / "cables.csv").write_text(cables.format(rate))
        (tmp_path / "s.toml").write_text(text)
        with pytest.warns(ScenarioWarning):
            results = Scenario.from_file(tmp_path / "s.toml").run(out=tmp_path / rate)
        fig = plots.draw(swept_sizes(results), "busbw")
        assert ("rate of a host's link" in legend(fig)) == shown
        found = swept_sizes(results)
        found.__dict__["config"] = {"workload": {"web": {"per_server": 8}}}
        lines = {line.get_label(): line.get_ydata() for line in plots.draw(found, "busbw").axes[0].get_lines()}
        assert ("rate of the links of a server's 8 hosts" in lines) == shown
        if shown:
            assert set(np.asarray(lines["rate of the links of a server's 8 hosts"], dtype=float)) == {8.0}


def test_links_share_bars_by_tier_and_by_rail(results: Results) -> None:
    fig = plots.draw(results, "utilisation", by="tier")
    (ax,) = fig.axes
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels == ["hosts → tor\n4 links", "tor → root\n2 links", "root → tor\n2 links", "tor → hosts\n4 links"]
    runs = results.select({"system": "TCP", "load": 0.8})
    share: dict[str, list[float]] = {}
    for run in runs:
        for row in results.ports(["name", "window_busy_ps"], {"point": run.point}).to_pylist():
            share.setdefault(row["name"], []).append(100 * run.utilisation(row["window_busy_ps"]))
    up = [np.mean(share[f"h{i}->tor{i // 2}"]) for i in range(4)]
    rows = list(csv.DictReader(io.StringIO(style.table(fig))))
    row = next(row for row in rows if (row["system"], row["group"]) == ("TCP", "hosts → tor"))
    found = [float(row[name]) for name in ("links", "busy_percent", "least_percent", "most_percent")]
    assert found == pytest.approx([4, np.mean(up), min(up), max(up)])
    with pytest.raises(ValueError, match="links have no groups by `teir`; did you mean `tier`"):
        plots.draw(results, "utilisation", by="teir")
    with pytest.raises(NoDataError, match="no link belongs to a rail"):
        plots.draw(results, "utilisation", by="rail")


def test_rails_of_all_pods_share_bars(tmp_path: Path) -> None:
    topology = {"kind": "rail", "pods": 2, "servers": 2, "nics": 2, "spines": 1}
    results = small.run(tmp_path, ("TCP",), flows=30, topology=topology)
    (ax,) = plots.draw(results, "utilisation", by="rail").axes
    labels = [label.get_text() for label in ax.get_xticklabels()]
    assert labels[:4] == [
        "hosts → rail 0, 4 links",
        "hosts → rail 1, 4 links",
        "rail 0 → spine, 8 links",
        "rail 1 → spine, 8 links",
    ]
    assert len(labels) == 8


def test_ranks_have_tracks_in_perfetto(trained: WithTasks, tmp_path: Path) -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    run = programs.first(trained, "MERP")
    trace = protos.Trace.FromString(exports.write(trained, "perfetto", run.point, tmp_path / "t.pftrace").read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    (parent,) = (uuid for uuid, one in tracks.items() if one.name == "ranks of web")
    of_ranks = {uuid: one.name for uuid, one in tracks.items() if one.parent_uuid == parent}
    # Computations and collectives overlap, so that each rank has two tracks of one name.
    assert sorted(of_ranks.values()) == sorted(2 * [f"rank {i}" for i in range(8)])
    events = [p for p in trace.packet if p.HasField("track_event") and p.track_event.track_uuid in of_ranks]
    begun = [p for p in events if p.track_event.type == p.track_event.TYPE_SLICE_BEGIN]
    assert len(begun) == len(events) / 2 == trained.parts(["rank"], {"point": run.point}).num_rows
    for track in of_ranks:
        kinds = [p.track_event.type for p in events if p.track_event.track_uuid == track]
        assert kinds == kinds[:2] * (len(kinds) // 2), "slices of a track do not overlap"
    one = next(p for p in begun if p.track_event.name == "gradients 1")
    facts = {fact.name: fact for fact in one.track_event.debug_annotations}
    assert (facts["iteration"].int_value, facts["operation"].string_value) == (0, "all_reduce")
    assert (facts["bus_bandwidth_bps"].double_value, facts["size_bytes"].int_value) == (3e11, 8 << 20)


def test_playback_shows_what_ranks_do(trained: WithTasks, plain: Results) -> None:
    run = programs.first(trained, "MERP")
    found = playback.ranks(trained, run)
    assert [one["name"] for one in found] == [f"web {rank}" for rank in range(8)]
    parts = parts_of(trained, run, tasks_of(trained, run))["web", 3]
    drawn: Any = found[3]["parts"]
    assert [one[:3] for one in drawn] == [[p.start_ps / 1e3, (p.finish_ps or 0) / 1e3, p.task.operation] for p in parts]
    assert {(operation, lane) for _, _, operation, lane in drawn} == {("compute", 0), ("all_reduce", 1)}
    assert len(playback.ranks(of(plain, programs.training(100, 1)), run)) == playback.MOST_RANKS
    assert playback.ranks(plain, run) == []


def test_the_report_has_the_time_line_and_the_longest_tasks(trained: WithTasks, plain: Results) -> None:
    page = report.build(trained)
    assert 'id="tasks"' in page and 'id="fig-timeline"' in page
    bare = report.build(plain)
    assert 'id="tasks"' not in bare and 'id="fig-timeline"' not in bare
    run = programs.first(trained, "TCP")
    table = longest(trained, run)
    assert table is not None and len(table.rows) == 20 and "the 20 longest of 27 tasks" in table.note
    tasks = sorted((task.time_ps or 0 for task in tasks_of(trained, run)), reverse=True)
    place = table.head.index("time (µs)")
    assert [float(row[place]) for row in table.rows] == pytest.approx([ps / US for ps in tasks[:20]], rel=1e-3)
    assert longest(plain, run) is None


def test_tasks_that_did_not_end_come_first(plain: Results) -> None:
    program = Program()
    program.task("forward", {0: (0, 10), 1: (0, 12)})
    program.task("sum", {0: (10, 30), 1: (12, None)}, operation="all_reduce", size=MIB)
    table = longest(of(plain, program), programs.first(plain, "MERP"))
    assert table is not None
    assert table.rows == [
        ["sum", "all_reduce", "0", "1.049", "2", "10", "-", "-", "1", "-"],
        ["forward", "compute", "0", "-", "2", "0", "12", "2", "1", "-"],
    ]


def message(flow: int, src: int, dst: int, start: float, finish: float | None, ideal: float = 5) -> dict[str, Any]:
    """A row of the table of flows; times in microseconds."""
    fct = None if finish is None else round((finish - start) * US)
    row: dict[str, Any] = {
        "flow_id": flow,
        "src": src,
        "dst": dst,
        "size_bytes": 1000,
        "start_ps": round(start * US),
        "group_id": 1,
        **dict.fromkeys(("timeouts", "drops", "lost_link"), 0),
    }
    row |= {"finish_ps": None if finish is None else round(finish * US), "fct_ps": fct, "ideal_fct_ps": round(ideal * US)}
    return row | {"slowdown": None if fct is None else fct / (ideal * US)}


def delayed(plain: Results) -> WithTasks:
    """A sum in a ring of three ranks, whose rank 1 begins late, and an earlier and shorter one."""
    run = programs.first(plain, "TCP")
    program = Program()
    program.task("sum", {0: (0, 10), 1: (0, 10), 2: (0, 11)}, 0, "all_reduce", 3000)
    program.task("sum", {0: (20, 52), 1: (23, 50), 2: (20, 61)}, 1, "all_reduce", 3000)
    flows = [
        message(0, 1, 2, 24, 30),
        message(1, 0, 1, 20, 26),
        message(2, 2, 0, 32, 50, ideal=6),
        message(3, 0, 2, 50, 60),
        message(4, 0, 2, 51, None),
        # Arrives before the last one; and an end that the message of rank 0 could not have waited for.
        message(5, 1, 2, 30, 55),
        message(6, 1, 0, 40, 51),
        {**message(7, 1, 2, 50, 60.5), "group_id": 9},
    ]
    return with_tasks(plain, {run.point: [program]}, {run.point: flows})


def test_the_chain_of_a_collective_leads_back_from_the_end_of_its_last_rank(plain: Results) -> None:
    results = delayed(plain)
    found = results.why_collective()
    assert (found.task.group_id, found.task.last_rank, found.ended_ps) == (1, 2, 61 * US)
    assert [(one.flow_id, one.waited_ps / US, one.time_ps / US) for one in found.messages] == [(0, 1, 6), (2, 2, 18), (3, 0, 10)]
    # Rank 1 began at 23: all times from the start of the collective to its end are in the sum.
    assert found.begun_ps == 23 * US
    spent = sum(one.waited_ps + one.time_ps for one in found.messages)
    assert found.begun_ps + spent + (61 - 60) * US == found.ended_ps
    text = str(found)
    assert "sum, all_reduce of 3 kB between 3 ranks, iteration 1, group 1, took 41 µs" in text
    assert "rank 2 (h2) ended last, 11 µs after the first rank" in text
    assert "the last 3 messages before this end: 34 µs under way, 2.12 times the 16 µs in an unloaded network" in text
    assert "before them: 3 µs until the first sender began; between them: 3 µs; after them: 1 µs until the rank ended" in text
    point = programs.first(plain, "TCP").point
    assert f"--point {point} --flow 2` explains the message that lost most time" in text
    assert found.table().rows[1] == ["rank 2 (h2)", "rank 0 (h0)", "2", "1 kB", "12 µs", "2 µs", "18 µs", "6 µs", "3"]


def test_a_rank_also_waits_for_its_own_messages(plain: Results) -> None:
    run = programs.first(plain, "TCP")
    program = Program(first=1)
    program.task("sum", {0: (0, 10), 1: (0, 30)}, 0, "all_reduce", 3000)
    flows = [message(0, 0, 1, 1, 9), message(1, 1, 0, 9, 28)]
    found = with_tasks(plain, {run.point: [program]}, {run.point: flows}).why_collective()
    assert [one.flow_id for one in found.messages] == [0, 1]


def test_the_chain_of_a_collective_passes_the_message_that_a_failure_held_up() -> None:
    scenario = {
        "topology": {
            "kind": "leaf_spine",
            "leaves": 2,
            "spines": 2,
            "hosts_per_leaf": 4,
            "host_rate": "100Gbps",
            "spine_rate": "100Gbps",
        },
        "workload": {"job": {"kind": "collective", "op": "all_reduce", "bytes": "8MB", "chunk": "128KB", "window": 4}},
        "event": [{"at": "300us", "until": "200ms", "link": ["leaf0", "spine0"]}],
        "failure": {"detect": "10us"},
        "system": [{"label": "DCQCN", "transport": {"kind": "dcqcn", "rto": "67ms"}, "buffer": "pfc"}],
    }
    results = Scenario.from_dict(scenario).run()
    found = results.why_collective()
    # A message a window behind it started only when it had arrived.
    late = [one for one in found.messages if one.timeouts]
    assert late and sum(one.lost_ps for one in late) > 67_000 * US
    assert sum(one.waited_ps for one in found.messages) < 1000 * US, "no message began late without a reason"
    times = sum(one.waited_ps + one.time_ps for one in found.messages)
    assert found.begun_ps + times + (found.ended_ps - found.messages[-1].finish_ps) == found.ended_ps, "no time is missing"
    flows = {row["flow_id"]: row for row in results.flows().to_pylist()}
    for one in late:
        assert flows[one.flow_id]["timeouts"] == one.timeouts and one.lost == flows[one.flow_id]["lost_link"] > 0
    text = str(found)
    assert "waited for a retransmission timeout, after losses of" in text and "links that were down: leaf0--spine0" in text
    worst = max(late, key=lambda one: one.lost_ps)
    assert f"--flow {worst.flow_id}` explains the message that lost most time" in text
    assert found.table().head[-2:] == ["lost", "timeouts"]


def test_a_collective_is_named_by_its_name_or_number(plain: Results) -> None:
    results = delayed(plain)
    assert results.why_collective("sum").task.iteration == 1, "the slowest of its name"
    assert results.why_collective(0).task.iteration == 0
    assert str(results.why_collective(0)).endswith("it has no messages that ended before")
    with pytest.raises(KeyError, match="no collective `sun` has ended; did you mean `sum`\\?\nhint: the collectives are sum;"):
        results.why_collective("sun")
    with pytest.raises(KeyError, match="no point has `point` = `x`"):
        results.why_collective(point="x")
    with pytest.raises(ValueError, match="no collective has ended"):
        plain.why_collective()


def test_of_a_long_chain_the_messages_that_lost_little_share_rows(plain: Results) -> None:
    run = programs.first(plain, "TCP")
    program = Program(first=1)
    program.task("sum", {rank: (0, 6 * 60 + (rank == 0)) for rank in range(2)}, 0, "all_reduce", 3000)
    flows = [message(i, i % 2, 1 - i % 2, 6 * i, 6 * i + 6, ideal=1 if i in (30, 31) else 5) for i in range(60)]
    found = with_tasks(plain, {run.point: [program]}, {run.point: flows}).why_collective()
    assert len(found.messages) == 60
    rows = found.table().rows
    assert [row[2] for row in rows] == [*map(str, range(18)), "", "30", "31", ""]
    assert rows[18][0] == "12 messages" and rows[18][6:] == ["72 µs", "60 µs", "1.2"]
    assert rows[-1][0] == "28 messages"


def test_options_of_single_kinds_are_read_from_the_command_line(plain: Results, capfd: pytest.CaptureFixture[str]) -> None:
    assert plots.read_options({"span": "1ms,1500us", "workload": "web", "by": None}) == {"workload": "web", "span": (1.0, 1.5)}
    for bad in ("1ms", "2ms,1ms", "1,2", "a,b"):
        with pytest.raises(ValueError, match=r"is not a start and an end\nhint: write both"):
            plots.read_options({"span": bad})
    assert plain.path is not None
    assert main(["plot", str(plain.path), "--kind", "timeline", "--span", "0ms,1ms"]) == 2
    assert "the results have no tasks" in capfd.readouterr().err
    assert main(["plot", str(plain.path), "--kind", "fct_cdf", "--by", "tier"]) == 2
    assert "figures of the kind `fct_cdf` take no `by`\nhint: `utilisation` do" in capfd.readouterr().err
    assert main(["plot", str(plain.path), "--by", "tier", "--format", "csv"]) == 0
    assert capfd.readouterr().out.strip().endswith("utilisation.csv")
    assert main(["why", str(plain.path), "--collective", "slowest"]) == 2
    assert "no collective has ended" in capfd.readouterr().err
