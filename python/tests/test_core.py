"""The compiled part, from Python: scenarios, runs, tables, errors, and the command line with its signals."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import flowloom as package
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flowloom import _core
from flowloom.figures.kinds import KINDS

SMALL: dict[str, Any] = {
    "seed": [1, 2],
    "topology": {"kind": "star", "hosts": 4},
    "workload": {"web": {"kind": "poisson", "flows": 30, "load": [0.2, 0.5]}},
    "measure": {"flows": "all"},
    "system": [
        {"label": "TCP", "transport": "newreno"},
        {"label": "short", "transport": "newreno", "qdisc": {"kind": "droptail", "limit": "4pkt"}},
    ],
}
TEXT = """
[topology]
kind = "star"
hosts = 4
[workload.web]
kind = "poisson"
flows = 30
load = 0.5
[measure]
flows = "all"
[[system]]
transport = "newreno"
"""


LONG = TEXT.replace("load = 0.5", 'load = 0.5\nsize = "fixed"\nmean = ["1KB", "100GB"]')
"""Two points: one is done at once, one takes minutes."""


def long() -> _core.Scenario:
    return _core.Scenario.from_toml(LONG)


# Scenarios


def test_automatic_seeds_are_as_many_as_the_precision_needs(tmp_path: Path) -> None:
    scenario = {**SMALL, "precision": "100%", "max_seeds": 4}
    found = package.run({**scenario, "metric": "flows"}, seeds="auto", out=tmp_path / "wide")
    assert found.seeds == [1, 2, 3]
    with pytest.warns(UserWarning, match="4 seeds, the limit") as caught:
        assert package.run({**scenario, "precision": "0.1%"}, seeds="auto", out=tmp_path / "narrow").seeds == [1, 2, 3, 4]
    assert [one.filename for one in caught if "the limit" in str(one.message)] == [__file__]
    with pytest.raises(_core.ScenarioError, match="there is no metric `p98_fct`"):
        package.run({**scenario, "metric": "p98_fct"}, seeds="auto")


def test_a_scenario_that_may_mislead_warns(tmp_path: Path) -> None:
    heavy = package.Scenario.from_toml(TEXT.replace("load = 0.5", "load = 1.5"), name="heavy.toml")
    found = next(warning for warning in heavy.warnings if "offers" in warning["message"])
    assert (found["file"], found["line"], found["col"]) == ("heavy.toml", 8, 8)
    assert "offers the link" in found["message"] and found["hint"]
    with pytest.warns(package.ScenarioWarning, match=r"heavy.toml:8:8: `workload.web.load`: `1.5` offers[^\n]*\nhint: ") as warned:
        heavy.run(out=tmp_path / "heavy")
    assert len(warned) == len(heavy.warnings)


def test_a_dict_is_the_same_scenario_as_its_text() -> None:
    scenario = {
        "topology": {"kind": "star", "hosts": 4},
        "workload": {"web": {"kind": "poisson", "flows": 30, "load": 0.5}},
        "measure": {"flows": "all"},
        "system": [{"transport": "newreno", "agent": None}],
    }
    assert _core.Scenario.from_dict(scenario).resolved() == _core.Scenario.from_toml(TEXT).resolved()


def test_points_carry_their_swept_values() -> None:
    points = _core.Scenario.from_dict(SMALL).points
    assert len(points) == 8 and len({point["point"] for point in points}) == 8
    assert {(p["system"], p["workload.web.load"], p["seed"]) for p in points} == set(
        itertools.product(("TCP", "short"), (0.2, 0.5), (1, 2))
    )


def test_options_override_the_scenario() -> None:
    points = _core.Scenario.from_dict(SMALL, set=[("workload.web.load", "0.9")], seeds=[7]).points
    assert [(p["system"], p["seed"]) for p in points] == [("TCP", 7), ("short", 7)]


def test_all_mistakes_are_told_at_once_with_their_places() -> None:
    wrong = TEXT.replace("hosts", "hots").replace("0.5", '"much"')
    with pytest.raises(_core.ScenarioError) as caught:
        _core.Scenario.from_toml(wrong, name="wrong.toml")
    found = caught.value.diagnostics
    assert {d["line"] for d in found} == {wrong[: wrong.index(word)].count("\n") + 1 for word in ("hots", '"much"')}
    assert all(d["file"] == "wrong.toml" and d["message"] and d["hint"] for d in found)
    assert "wrong.toml:4" in str(caught.value) and isinstance(caught.value, ValueError)


def test_what_is_no_scenario_is_refused() -> None:
    with pytest.raises(_core.ScenarioError):
        _core.Scenario.from_dict({"seed": 2**64})
    with pytest.raises(TypeError):
        _core.Scenario.from_dict({"seed": {1, 2}})


# Runs


def test_tables_of_a_run(tmp_path: Path) -> None:
    results = _core.Scenario.from_dict(SMALL).run(jobs=2, out=str(tmp_path / "r"))
    assert results.complete and results.path == str(tmp_path / "r")
    flows = pa.table(results.flows())
    assert flows.num_rows == 8 * 30
    assert flows.column_names[:5] == ["point", "system", "seed", "workload.web.load", "flow_id"]
    about = flows.schema.field("fct_ps").metadata or {}
    assert about[b"unit"] == b"ps" and about[b"description"]
    per_seed = pa.table(results.per_seed()).to_pylist()
    for row in pa.table(results.summary()).to_pylist():
        same = [
            other["value"]
            for other in per_seed
            if all(other[key] == row[key] for key in ("system", "workload.web.load", "metric")) and other["value"] is not None
        ]
        assert row["seeds"] == len(same)
        if same:
            assert row["mean"] == pytest.approx(sum(same) / len(same)) and row["ci95_low"] <= row["mean"] <= row["ci95_high"]
    assert pa.table(results.points())["state"].to_pylist() == ["done"] * 8
    assert pa.table(results.ports()).num_rows == 8 * 8
    assert pa.table(results.samples()).num_rows == pa.table(results.packets()).num_rows == 0
    again = _core.Results.open(str(tmp_path / "r"))
    assert pa.table(again.flows()).equals(flows)
    one = pq.read_table(next((tmp_path / "r").glob("tcp-*/flows.parquet")))
    # A file says of what point it is.
    assert one.num_rows == 30 and one.column_names == flows.column_names and set(one["system"].to_pylist()) == {"TCP"}


def test_metrics_are_those_of_the_flows() -> None:
    results = _core.Scenario.from_toml(TEXT).run()
    fct = sorted(row["fct_ps"] / 1e12 for row in pa.table(results.flows()).to_pylist())
    value = {row["metric"]: row["value"] for row in pa.table(results.per_seed()).to_pylist()}
    assert value["mean_fct_s"] == pytest.approx(sum(fct) / 30)
    assert (value["p50_fct_s"], value["p99_fct_s"], value["max_fct_s"]) == (fct[14], fct[29], fct[29])
    assert {"wall_s", "events_per_s", "hops_per_s"} < value.keys()


def test_samples_and_packets_on_request() -> None:
    text = TEXT + '[sample]\ninterval = "100us"\nports = true\nflows = true\npackets = true\n'
    results = _core.Scenario.from_toml(text).run()
    samples, packets = pa.table(results.samples()), pa.table(results.packets())
    metrics = set(samples["metric"].to_pylist()) - {"flow.ssthresh_bytes"}
    assert metrics == {"port.queue_bytes", "port.utilisation", "flow.rate_bps", "flow.cwnd_bytes", "flow.srtt_s"}
    ports = pa.table(results.ports()).to_pylist()
    dropped = packets["dropped"].to_pylist()
    assert dropped.count(False) == sum(port["tx_packets"] for port in ports)
    assert dropped.count(True) == sum(port["drops"] for port in ports)
    assert {"data", "ack"} <= set(packets["kind"].to_pylist())


def test_results_in_memory_go_away_with_the_last_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    results = _core.Scenario.from_toml(TEXT).run()
    assert results.path is None and len(list(tmp_path.iterdir())) == 1
    flows = results.flows()
    del results
    assert pa.table(flows).num_rows == 30
    stream = pa.RecordBatchReader.from_stream(flows)
    del flows
    assert stream.read_all().num_rows == 30
    del stream
    assert not list(tmp_path.iterdir())


def test_finished_points_are_kept(tmp_path: Path) -> None:
    scenario = _core.Scenario.from_dict(SMALL)
    scenario.run(out=str(tmp_path))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/manifest.json")}
    assert len(before) == 8
    scenario.run(out=str(tmp_path))
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/manifest.json")}


def test_progress_is_told_and_may_stop_the_run(tmp_path: Path) -> None:
    reported: list[dict[str, Any]] = []
    _core.Scenario.from_dict(SMALL).run(progress=reported.append)
    last = reported[-1]
    assert (last["points_done"], last["points_total"], last["flows_done"], last["flows_total"]) == (8, 8, 240, 240)
    assert last["events"] > 0 and last["elapsed_s"] > 0 and "point" in last

    def enough(tick: dict[str, Any]) -> None:
        if tick["points_done"] == 1:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        long().run(jobs=2, out=str(tmp_path / "r"), progress=enough)
    states = pa.table(_core.Results.open(str(tmp_path / "r")).points())["state"].to_pylist()
    assert states == ["done", "interrupted"]


def test_other_threads_go_on_during_a_run() -> None:
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()

    def after_some(tick: dict[str, Any]) -> None:
        if counted > 20 or tick["elapsed_s"] > 300:
            raise StopIteration

    with pytest.raises(StopIteration):
        long().run(jobs=1, progress=after_some)
    done.set()
    thread.join()
    assert counted > 20


def test_ctrl_c_stops_a_run(tmp_path: Path) -> None:
    begun = threading.Event()

    def interrupt() -> None:
        assert begun.wait(600)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        long().run(jobs=1, out=str(tmp_path / "r"), progress=lambda _: begun.set())
    # The run stops at once, and not at the end of a point, which takes minutes.
    assert not any(run.state == "done" for run in package.open(tmp_path / "r").runs)


def test_problems_with_files_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(_core.StorageError, match="not a run folder"):
        _core.Results.open(str(tmp_path))
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(_core.StorageError, match="not empty"):
        _core.Scenario.from_toml(TEXT).run(out=str(tmp_path))
    results = _core.Scenario.from_toml(TEXT).run(out=str(tmp_path / "r"))
    next((tmp_path / "r").glob("*/flows.parquet")).write_bytes(b"x")
    with pytest.raises((OSError, pa.ArrowException), match="damaged"):
        pa.table(results.flows())


# The rest of the module


def test_systems_are_compared_flow_by_flow(tmp_path: Path) -> None:
    results = _core.Scenario.from_dict(SMALL).run(out=str(tmp_path))
    table = pa.table(_core.compare([str(tmp_path)])).to_pylist()
    assert [(row["system_a"], row["system_b"], row["workload.web.load"], row["seeds"]) for row in table] == [
        ("TCP", "short", 0.2, 2),
        ("TCP", "short", 0.5, 2),
    ]
    fct: dict[tuple[Any, ...], dict[int, int]] = {}
    for row in pa.table(results.flows()).to_pylist():
        fct.setdefault((row["system"], row["workload.web.load"], row["seed"]), {})[row["flow_id"]] = row["fct_ps"]
    for row in table:
        means = []
        for seed in (1, 2):
            a, b = fct["TCP", row["workload.web.load"], seed], fct["short", row["workload.web.load"], seed]
            means.append(sum(math.log(b[i] / a[i]) for i in a) / len(a))
        assert row["mean_fct_ratio"] == pytest.approx(math.exp(sum(means) / 2)) and row["flows"] == 60, "the geometric mean"


def test_swapped_systems_have_reciprocal_ratios(tmp_path: Path) -> None:
    tables = []
    for name, systems in (("there", SMALL["system"]), ("back", SMALL["system"][::-1])):
        _core.Scenario.from_dict({**SMALL, "system": systems}).run(out=str(tmp_path / name))
        tables.append(pa.table(_core.compare([str(tmp_path / name)])).to_pylist())
    for there, back in zip(*tables, strict=True):
        assert (there["system_a"], there["system_b"]) == (back["system_b"], back["system_a"])
        for ratio, low, high in (
            ("mean_fct_ratio", "ci95_low", "ci95_high"),
            ("ratio_of_means", "of_means_ci95_low", "of_means_ci95_high"),
            ("median_fct_ratio", "median_fct_ratio", "median_fct_ratio"),
        ):
            assert there[ratio] * back[ratio] == pytest.approx(1)
            assert there[low] * back[high] == pytest.approx(1) and there[high] * back[low] == pytest.approx(1)
        assert there["p_holm"] == pytest.approx(back["p_holm"]) and 0 <= there["p_holm"] <= 1


def test_entries_of_every_room() -> None:
    parts = [room for room in _core.rooms() if room != "metrics"]
    assert {"transport", "qdisc", "router", "agent", "topology", "workload", "deadline"} <= set(parts)
    for room in parts:
        assert _core.entries(room)
        for entry in _core.entries(room):
            assert entry["summary"] and entry["source"]
            assert all(p["name"] and p["allowed"] and p["about"] for p in entry["parameters"])
            assert set(entry["queue_lengths"]) <= {p["name"] for p in entry["parameters"]}
    assert {"mean_fct_s", "p99_slowdown", "drops"} < {metric["name"] for metric in _core.entries("metrics")}
    with pytest.raises(ValueError, match="hint: one of transport, "):
        _core.entries("rooms")


def test_statistics_are_those_of_the_tables(tmp_path: Path) -> None:
    results = _core.Scenario.from_dict(SMALL).run()
    value: dict[tuple[Any, ...], list[float]] = {}
    for row in pa.table(results.per_seed()).to_pylist():
        if row["value"] is not None:
            value.setdefault((row["system"], row["workload.web.load"], row["metric"]), []).append(row["value"])
    for row in pa.table(results.summary()).to_pylist():
        sample = value.get((row["system"], row["workload.web.load"], row["metric"]), [])
        low, high = row["ci95_low"], row["ci95_high"]
        assert _core.estimate(sample) == (row["mean"], None if low is None else (low, high))
    ports, points = pa.table(results.ports()).to_pylist(), pa.table(results.points()).to_pylist()
    for point in points:
        length = point["window_until_ps"] - point["window_from_ps"]
        used = [_core.utilisation(row["window_busy_ps"], length) for row in ports if row["point"] == point["point"]]
        (most,) = [
            row["value"]
            for row in pa.table(results.per_seed()).to_pylist()
            if (row["point"], row["metric"]) == (point["point"], "max_utilisation")
        ]
        assert max(share for share in used if share is not None) == most
    assert _core.utilisation(0, 0) is None
    assert [_core.quantile([3.0, 1.0, 2.0], q) for q in (0, 500, 990)] == [1.0, 2.0, 3.0] and _core.quantile([], 500) is None
    with pytest.raises(ValueError, match="above 1000 per mille"):
        _core.quantile([1.0], 1001)


def test_lengths_of_queues_are_read_as_scenarios_write_them() -> None:
    for written, expected in (("20pkt", 30_000), ("131072B", 131_072), ("1.5KB", 1500), ("64KiB", 65_536), ("40", 60_000)):
        assert _core.queue_length(written, "1500B") == expected
    assert _core.queue_length("unlimited", "1500B") is None and _core.queue_length("20ms", "1500B") is None
    with pytest.raises(ValueError, match="has no unit"):
        _core.queue_length("20pkt", "1500")


def test_fluid_schedules() -> None:
    srpt = _core.fluid("srpt", 1.0, [0.0, 1.0], [4.0, 1.0])
    assert srpt["finish"] == [5.0, 2.0]
    assert srpt["segments"] == [(0, 0.0, 1.0, 1.0), (1, 1.0, 2.0, 1.0), (0, 2.0, 5.0, 1.0)]
    assert _core.fluid("ps", 1.0, [0.0, 0.0], [1.0, 3.0])["finish"] == [2.0, 4.0]
    assert _core.fluid("edf", 1.0, [0.0, 0.0], [1.0, 1.0], [None, 2.0])["finish"] == [2.0, 1.0]
    many = _core.fluid("fcfs", 2.0, [0.0] * 1000, [2.0] * 1000)
    assert many["finish"] == [float(i) for i in range(1, 1001)]
    for wrong in (
        ("srtp", 1.0, [0.0], [1.0]),
        ("srpt", 0.0, [0.0], [1.0]),
        ("srpt", 1.0, [0.0], []),
        ("ps", 1.0, [0.0], [float("nan")]),
    ):
        with pytest.raises(ValueError):
            _core.fluid(*wrong)


def letters(segments: list[tuple[int, float, float, float]]) -> str:
    """The flow of each slot of a schedule."""
    return "".join("ABCD"[flow] * round(end - start) for flow, start, end, _ in segments)


def test_schedules_of_mixed_flows() -> None:
    # Table 1 of STAM: A and C have deadlines.
    arrivals, sizes, deadlines = [2, 3, 0, 1], [1, 2, 5, 6], [8, None, 6, None]
    for policy, slots in {
        "fcfs": "CCCCCDDDDDDABB",
        "sjf": "CCABBCCCDDDDDD",
        "edf_sjf": "CCCCCABBDDDDDD",
        "stam": "CCCBCCBADDDDDD",
    }.items():
        assert letters(_core.fluid(policy, 1.0, arrivals, sizes, deadlines)["segments"]) == slots
    with pytest.raises(ValueError, match="each flow needs one of each"):
        _core.fluid("stam", 1.0, [0], [2], [])


# The command line


def flowloom(*args: str, cwd: Path, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "flowloom", *args]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=600)
    return process.returncode, out, err


def test_a_run_prints_its_table_and_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT)
    code, out, err = finish(flowloom("run", "small.toml", cwd=tmp_path))
    assert (code, out.splitlines()[0].split()[0]) == (0, "system")
    assert "results: results/small" in err and "events/s" in err
    code, out, err = finish(flowloom("run", "small.toml", cwd=tmp_path))
    assert code == 0 and "1 kept from an earlier run" in err
    code, out, err = finish(flowloom("compare", "results/small", cwd=tmp_path))
    assert code != 0 and "Traceback" not in err and "hint: " in err


def test_mistakes_end_with_2_and_no_trace(tmp_path: Path) -> None:
    (tmp_path / "wrong.toml").write_text(TEXT.replace("hosts", "hots"))
    code, out, err = finish(flowloom("run", "wrong.toml", cwd=tmp_path))
    assert (code, out) == (2, "") and "wrong.toml:4:1" in err and "did you mean" in err and "\x1b" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["wrong.toml"]
    assert finish(flowloom("report", "nothing", cwd=tmp_path))[0] in (2, 5)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_keep_what_is_finished(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    process = flowloom("run", "long.toml", "--jobs", "2", cwd=tmp_path)
    deadline = time.monotonic() + 600
    while not list(tmp_path.glob("results/long/*/manifest.json")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)
    process.send_signal(sent)
    exit_code, _, err = finish(process)
    assert exit_code == code and "run the same command again to continue" in err and "Traceback" not in err
    manifest = json.loads((tmp_path / "results/long/manifest.json").read_text())
    assert (manifest["complete"], manifest["stop_reason"]) == (False, "stopped")
    assert "done" in pq.read_table(tmp_path / "results/long/points.parquet")["state"].to_pylist()


def test_what_was_stopped_goes_on_to_the_same_results(tmp_path: Path) -> None:
    text = TEXT.replace("load = 0.5", 'load = 0.5\nsize = "fixed"\nmean = "20MB"') + "\n"
    (tmp_path / "some.toml").write_text(f"seed = [1, 2, 3, 4, 5, 6]\nideal = 'srpt'\n{text}")
    process = flowloom("run", "some.toml", "--jobs", "1", cwd=tmp_path)
    results = tmp_path / "results/some"
    deadline = time.monotonic() + 600
    while not list(results.glob("*/manifest.json")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130
    assert not json.loads((results / "manifest.json").read_text())["complete"]
    states = {path: json.loads(path.read_text())["state"] for path in results.glob("*/manifest.json")}
    kept = {path: path.stat().st_mtime_ns for path, state in states.items() if state == "done"}
    assert 1 <= len(kept) < 12
    code, _, err = finish(flowloom("run", "some.toml", cwd=tmp_path))
    assert code == 0 and f"{len(kept)} kept from an earlier run" in err
    assert kept == {path: path.stat().st_mtime_ns for path in kept}
    assert json.loads((results / "manifest.json").read_text())["complete"]
    assert finish(flowloom("run", "some.toml", "--out", "whole", cwd=tmp_path))[0] == 0
    assert contents(results) == contents(tmp_path / "whole")


def contents(folder: Path) -> dict[str, Any]:
    """All files of a run, but for what equal runs differ in: dates, wall time, memory, threads, and hashes of these."""
    found: dict[str, Any] = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        found[str(path.relative_to(folder))] = path.read_bytes()
        if path.name == "manifest.json":
            manifest = json.loads(path.read_text())
            assert "done" not in manifest or len(manifest["done"]) == len(manifest["points"])
            for key in (
                "started",
                "ended",
                "wall_s",
                "peak_memory_bytes",
                "jobs",
                "threads",
                "one_thread",
                "event_order",
                "manifest_hash",
                "done",
            ):
                manifest.pop(key, None)
            machine = ("wall_s", "events_per_s", "hops_per_s")
            manifest["metrics"] = [m for m in manifest.get("metrics", []) if m[0] not in machine]
            found[str(path.relative_to(folder))] = manifest
    return found


def test_jobs_and_the_order_of_events_change_no_byte(tmp_path: Path) -> None:
    for jobs, engine in ((1, "tree"), (2, "windows")):
        scenario = _core.Scenario.from_dict(SMALL | {"ideal": ["srpt", "ps"], "sample": {"ports": True, "packets": True}})
        scenario.run(jobs=jobs, engine=engine, out=str(tmp_path / str(jobs)))
        orders = [json.loads(path.read_text()).get("event_order") for path in tmp_path.glob(f"{jobs}/*/manifest.json")]
        assert set(orders) == {engine, None}, "none for ideal schedules"
    one, two = contents(tmp_path / "1"), contents(tmp_path / "2")
    assert one.keys() == two.keys() and len(one) > 8 * 5
    for name in one:
        assert one[name] == two[name], name


def test_a_run_that_cannot_use_windows_says_why() -> None:
    follows = {"transport": "pdq", "agent": "pdq", "policy": "dard", "router": "dard"}
    scenario = _core.Scenario.from_dict(SMALL | {"topology": {"kind": "fat_tree", "k": 4}, "system": [follows]})
    with pytest.warns(UserWarning, match="ran by the tree, not in windows: replies take the path of the data"):
        scenario.run(engine="windows")
    with pytest.raises(ValueError, match="`engine` is `window`: it must be `auto`, `tree` or `windows`"):
        scenario.run(engine="window")


def test_ideal_references_have_points_without_packets(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT)
    code, out, err = finish(flowloom("run", "small.toml", "--ideal", "srpt,ps", "--seed", "1,2", cwd=tmp_path))
    assert code == 0, err
    rows = {line.split("  ")[0]: line for line in out.splitlines()}
    assert {"newreno", "ideal SRPT", "ideal PS"} <= rows.keys()
    assert "ideal SRPT and ideal PS: ideal schedule of the same flows" in out
    results = _core.Results.open(str(tmp_path / "results/small"))
    points = pa.table(results.points()).to_pylist()
    assert [(p["system"], p["ideal"], p["events"] > 0) for p in points] == [
        *[("newreno", False, True)] * 2,
        *[("ideal SRPT", True, False)] * 2,
        *[("ideal PS", True, False)] * 2,
    ]
    assert len({p["flows_hash"] for p in points if p["seed"] == 1}) == 1, "the very same flows"
    mean = {row["system"]: row["mean"] for row in pa.table(results.summary()).to_pylist() if row["metric"] == "mean_fct_s"}
    assert mean["ideal SRPT"] < mean["ideal PS"] < mean["newreno"]
    drops = {row["system"]: row["mean"] for row in pa.table(results.summary()).to_pylist() if row["metric"] == "drops"}
    assert drops["ideal SRPT"] is None and drops["newreno"] is not None
    pairs = pa.table(_core.compare([str(tmp_path / "results/small")])).to_pylist()
    assert {(p["system_a"], p["system_b"]) for p in pairs} > {("newreno", "ideal SRPT")}
    code, _, err = finish(flowloom("check", "small.toml", "--ideal", "srtp", cwd=tmp_path))
    assert code == 2 and "did you mean `srpt`?" in err


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    first = flowloom("run", "long.toml", "--jobs", "1", cwd=tmp_path)
    deadline = time.monotonic() + 600
    while not (tmp_path / "results/long/manifest.json").exists():
        assert time.monotonic() < deadline and first.poll() is None
        time.sleep(0.05)
    code, _, err = finish(flowloom("run", "long.toml", cwd=tmp_path))
    first.send_signal(signal.SIGINT)
    assert finish(first)[0] == 130
    assert code == 5 and "in use" in err


def test_a_reader_that_leaves_is_no_error(tmp_path: Path) -> None:
    process = flowloom("list", cwd=tmp_path)
    assert process.stdout is not None
    process.stdout.close()
    process.wait(timeout=600)
    assert process.returncode == 0


def no_larger_files() -> None:
    """As on a full disk: a file ends at 2000 bytes."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))


def test_a_full_disk_ends_with_5_and_leaves_no_half_files(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT.replace("flows = 30", "flows = 2000"))
    code, out, err = finish(flowloom("run", "small.toml", "--out", "r", cwd=tmp_path, preexec_fn=no_larger_files))
    assert (code, out) == (5, "") and err.count("error: ") == 1 and "Traceback" not in err
    written = [path for path in (tmp_path / "r").rglob("*") if path.is_file()]
    for path in written:
        # What is there under its final name is whole.
        if path.suffix == ".parquet":
            pq.read_table(path)
        elif path.suffix == ".json":
            json.loads(path.read_text())
    assert not list((tmp_path / "r").glob("*/manifest.json")), "no point counts"
    assert finish(flowloom("run", "small.toml", "--out", "r", cwd=tmp_path))[0] == 0, "with space it goes on"
    assert contents(tmp_path / "r").keys() >= {"points.parquet", "summary.parquet"}
    assert not [path for path in (tmp_path / "r").rglob("*") if "tmp" in path.name], "nothing is left behind"


def test_a_folder_that_cannot_be_written_ends_with_5(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT)
    (tmp_path / "file").write_text("")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    places = ["file/r", "/proc/flowloom", *(["closed/r"] if os.geteuid() != 0 else [])]
    for out in places:
        code, _, err = finish(flowloom("run", "small.toml", "--out", out, cwd=tmp_path))
        assert code == 5 and "error: cannot" in err and "Traceback" not in err, (out, code, err)
    assert not list(closed.iterdir())


def test_figures_and_reports_that_cannot_be_written_end_with_5(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(TEXT)
    assert finish(flowloom("run", "small.toml", cwd=tmp_path))[0] == 0
    for command in (["report"], ["plot", "--kind", "metrics"]):
        code, _, err = finish(flowloom(*command, "results/small", "--out", "/proc/flowloom/x", cwd=tmp_path))
        assert code == 5 and "error: cannot use `/proc/flowloom`" in err and "Traceback" not in err, err


def test_help_teaches_by_example(tmp_path: Path) -> None:
    code, out, _ = finish(flowloom("--help", cwd=tmp_path))
    assert code == 0 and "flowloom examples demo" in out
    for command in ("check", "run", "report", "plot", "compare", "list", "explain", "examples", "lab", "papers", "completions"):
        code, text, _ = finish(flowloom(command, "--help", cwd=tmp_path))
        assert code == 0 and "Examples:" in text and command in out
    shown = re.search(r"^Kinds: (.*)$", finish(flowloom("plot", "--help", cwd=tmp_path))[1], re.MULTILINE)
    assert shown and re.findall(r"\w+(?=,|;|$)", shown[1]) == list(KINDS)
    assert finish(flowloom("--version", cwd=tmp_path))[1].startswith("flowloom 0.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_option(tmp_path: Path, shell: str) -> None:
    code, script, _ = finish(flowloom("completions", shell, cwd=tmp_path))
    assert code == 0
    for word in ("run", "compare", "ideal", "profile"):
        assert word in script
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        words = "source /dev/stdin; COMP_WORDS=(flowloom run --id); COMP_CWORD=2; _flowloom flowloom --id run; echo ${COMPREPLY[@]}"
        done = subprocess.run(["bash", "-c", words], input=script, capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["--ideal"]
