"""Names of users never meet names of ours: a workload `all`, a system `mean`, a swept key `workload.web.mean`."""

from __future__ import annotations

import csv
import warnings
from pathlib import Path
from types import SimpleNamespace

import flowloom
import programs
import pytest
from flowloom import __main__ as command
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.figures import drawing
from flowloom.runs import tables
from flowloom.runs.points import plain
from flowloom.why import chain

SYSTEMS = ["all", "mean", "summary", "manifest.json", "_", "point", "nan", "1", "1.0", "1_0", "all flows", "-"]


def incasts(*names: str) -> dict[str, object]:
    return {name: {"kind": "incast", "senders": 2 + i, "size": "20KB"} for i, name in enumerate(names)}


def run(workloads: dict[str, object], systems: list[dict[str, object]], **more: object) -> Results:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return flowloom.run({"topology": {"kind": "star", "hosts": 9}, "workload": workloads, "system": systems, **more})


def system(label: str, **transport: object) -> dict[str, object]:
    return {"label": label, "transport": {"kind": "newreno", **transport}}


WORKLOADS = [("all", "web"), ("web", "all"), ("all flows", "all"), ("all flows", "(all flows)"), ("_", "mean")]


@pytest.mark.parametrize("names", WORKLOADS)
def test_the_row_for_all_flows_is_never_that_of_a_workload(names: tuple[str, ...]) -> None:
    found = run(incasts(*names), [system("A")])
    own = {names[0]: "2", names[1]: "3"}
    table = found.table(["flows"])
    *rows, last = [(row[1], row[2]) for row in table.rows]
    assert dict(rows) == own and last[1] == "5" and last[0] not in own
    assert list(csv.reader(table.csv().splitlines()))[1:] == [["A", name, flows] for name, flows in (*rows, last)]
    whole = [row for row in found.summary(workloads=True).to_pylist() if row["metric"] == "flows"]
    assert {row["workload"]: f"{row['mean']:.0f}" for row in whole} == own | {None: "5"}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run with a system for each of our names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(incasts("all"), [system(label) for label in SYSTEMS])
        scenario = flowloom.Scenario.from_toml(found.config_text)
        return scenario.run(out=tmp_path_factory.mktemp("names") / "r")


@pytest.mark.parametrize("label", SYSTEMS)
def test_a_label_is_found_whatever_it_looks_like(labelled: Results, label: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert [run.system for run in labelled.select({"system": label})] == [label]
    (one,) = labelled.select({"system": label})
    assert [run.system for run in labelled.select({"point": one.point})] == [label]
    assert command.main(["table", str(labelled.path), "--at", f"system={label}", "--metrics", "flows", "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines() == ["system,flows", f"{label},2"]


def test_every_command_takes_these_labels(labelled: Results, capfd: pytest.CaptureFixture[str]) -> None:
    assert [row[0] for row in labelled.table().rows] == SYSTEMS
    export = ["export", "--format", "perfetto", "--point", "all-seed1"]
    for line in (["report"], ["plot", "--kind", "metrics,fct_cdf"], ["compare"], ["why"], export):
        assert command.main([line[0], str(labelled.path), *line[1:]]) == 0, line
    capfd.readouterr()
    assert flowloom.open(labelled.path or "").complete, "no file of a command has replaced one of the run"


def test_words_of_python_are_no_numbers() -> None:
    names = ["nan", "inf", "1_000", "Infinity", " 1", "१"]
    assert [plain(name) for name in names] == names
    assert [plain(value) for value in (3, "0.5", "-1e-3", "1E3", ".5", "1.", None)] == [3.0, 0.5, -1e-3, 1e3, 0.5, 1.0, None]


def test_a_swept_key_named_like_a_column_is_shown_in_full(tmp_path: Path) -> None:
    web = {"kind": "poisson", "flows": 20, "load": 0.3, "size": "fixed", "mean": ["15KB", "30KB"]}
    found = run({"web": web}, [system("A"), system("B", init_window=4)])
    assert found.table(["flows"]).head == ["system", "mean", "flows"]
    found.plot("metrics", metrics=["flows"])
    flowloom.plot(found, "metrics", tmp_path / "m.csv", metrics=["flows"])
    rows = list(csv.DictReader((tmp_path / "m.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["workload_web_mean"] for row in rows} == {"15KB", "30KB"} and {float(row["mean"]) for row in rows} == {20.0}


COLUMNS = ["system", "workload", "statistic", "mean", "link", "rank", "flow", "flows", "metric", "operation", "port"]


@pytest.mark.parametrize("last", COLUMNS)
def test_no_swept_key_is_shown_as_another_column(last: str) -> None:
    for key, column in ((f"system.A.transport.{last}", f"system.A.transport.{last}"), (f"a.{last}.kind", f"a.{last}")):
        assert drawing.column_of(SimpleNamespace(keys=[key]), key) == column  # type: ignore[arg-type]


def test_the_last_words_of_a_part_and_of_a_key_may_be_one() -> None:
    keys = ["topology.kind", "workload.web.topology"]
    assert [words.key(key, keys) for key in keys] == ["topology", "workload.web.topology"]
    keys = ["workload.web.drop_rate", "system.A.qdisc.drop rate"]
    assert len({words.key(key, keys) for key in keys}) == 2


def test_curves_of_systems_that_look_the_same_are_two() -> None:
    """The label of a system may be that of another one with its swept values."""
    found = run(incasts("w"), [system("A", init_window=[2, 4]), system("A, init window 2", init_window=3)])
    ((_, curves),) = drawing.groups(found, None)
    assert len(curves) == 3 and all(len(runs) == 1 for runs in curves.values())
    assert {runs[0].system for runs in curves.values()} == {"A", "A, init window 2"}


def test_pauses_are_those_of_buffers() -> None:
    buffer = tables.BUFFERS[0]
    port = {f"{buffer}.pauses": 3, f"{buffer}.paused_ps": 7, "mine.pauses": 100, "mine.paused_ps": None}
    assert tables.pauses(port) == (3.0, 7.0)


def test_a_collective_may_have_one_of_our_words_as_its_name(six: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    job = programs.Program()
    for name, end in (("slowest", 10), ("0", 30), ("other", 50)):
        job.task(name, {0: (0, end), 1: (0, end)}, operation="all_reduce")
    monkeypatch.setattr(chain, "walked", lambda results, run, task: task)
    found = programs.with_tasks(six, {six.runs[0].point: [job]})
    for asked, name in (("slowest", "slowest"), ("0", "0"), ("1", "0"), ("other", "other"), ("2", "other")):
        assert chain.chain(found, asked).name == name, asked  # type: ignore[attr-defined]
    other = programs.Program()
    other.task("other", {0: (0, 50)}, operation="all_reduce")
    other.task("short", {0: (0, 5)}, operation="all_reduce")
    assert chain.chain(programs.with_tasks(six, {six.runs[0].point: [other]}), "slowest").name == "other"  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["all", "random", "rotating", "h0..h3", "h*"])
def test_a_node_is_not_called_like_a_choice_of_nodes(name: str, tmp_path: Path) -> None:
    (tmp_path / "net.csv").write_text(f"a,b,rate,delay\n{name},s,1Gbps,1us\nh1,s,1Gbps,1us\nh2,s,1Gbps,1us\n")
    (tmp_path / "s.toml").write_text(
        'topology = { kind = "file", path = "net.csv" }\n'
        'workload = { kind = "incast", senders = 1, size = "1KB" }\n'
        'system = [{ transport = "newreno" }]\n'
    )
    with pytest.raises(flowloom.ScenarioError, match="is not a name: `all`, `random`, `rotating`"):
        flowloom.Scenario.from_file(tmp_path / "s.toml")


@pytest.mark.parametrize("name", ["10ms", "none"])
def test_a_workload_is_not_called_like_a_time_that_another_one_takes(name: str) -> None:
    """`until` takes a time or the name of another workload."""
    rounds = {"kind": "incast", "senders": 2, "size": "1KB", "interval": "1ms", "repeat": 3, "until": name}
    web = {"kind": "incast", "senders": 2, "size": "1KB"}
    with pytest.raises(flowloom.ScenarioError, match=f"`{name}` is a time or a word, and the name of a workload"):
        flowloom.Scenario.from_dict(
            {"topology": "star", "workload": {name: web, "in": rounds}, "system": [{"transport": "newreno"}]}
        )
