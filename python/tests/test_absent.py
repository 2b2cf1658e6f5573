"""Questions about what results do not have: every command says what there is, and what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import flowloom
import pytest
from flowloom import __main__ as command
from flowloom.api.results import Results
from flowloom.runs.missing import missing

SWEEP = """
seed = [1, 2]
topology = { kind = "star", hosts = 5 }
[workload.web]
kind = "poisson"
flows = 20
load = [0.2, 0.4]
size = "fixed"
mean = "15KB"
[workload.incast]
kind = "incast"
senders = 4
size = "20KB"
[[system]]
label = "TCP"
transport = "newreno"
[[system]]
label = "DCTCP"
transport = "dctcp"
"""

JOB = """
topology = { kind = "star", hosts = 4 }
workload.job = { kind = "collective", bytes = "64KB", iterations = 2 }
system = [{ transport = "newreno" }]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep `r`, a shard `s` of it, and a job `j`."""
    where = tmp_path_factory.mktemp("absent")
    (where / "r.toml").write_text(SWEEP)
    (where / "j.toml").write_text(JOB)
    for name, more in (("r", []), ("s", ["--shard", "1/2"]), ("j", [])):
        file = where / ("j.toml" if name == "j" else "r.toml")
        assert command.main(["run", str(file), "--out", str(where / name), *more]) == 0
    return where


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests run in the folder of the results."""
    monkeypatch.chdir(folder)


FILTERS = {
    "workload == 'wbe'": ('no workload "wbe"; did you mean "web"?', "`workload` is one of incast, web"),
    "size_bytes > 1KB and not workload != 'incats'": ('did you mean "incast"?', "incast, web"),
    "src == 99": ("no flow has `src` = 99", "`src` is a number from 0 to 4"),
    "flow_id = 1_000_000": ("no flow has `flow_id` = 1000000", "from 0 to"),
    "group_id == 99 or flow_id == 0": ("no flow has `group_id` = 99", "`group_id` is a number from "),
    "system == 'TCP'": ("`system` is not a column of single flows", "`--at`"),
}


@pytest.mark.parametrize("chosen", FILTERS)
@pytest.mark.parametrize("name", ["table", "compare", "plot", "why", "report"])
def test_a_filter_for_what_no_flow_has_is_refused(name: str, chosen: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert command.main([name, "r", "--where", chosen]) == 2
    out, error = capfd.readouterr()
    assert not out and all(text in error for text in FILTERS[chosen]), error


@pytest.mark.parametrize("chosen", FILTERS)
def test_the_api_refuses_the_same_filters(chosen: str) -> None:
    results = flowloom.open("r")
    wrong: Sequence[Callable[[], object]] = [
        lambda: results.where(chosen),
        lambda: results.where("size_bytes > 1KB").where(chosen),
        lambda: flowloom.compare("r", where=chosen),
    ]
    for call in wrong:
        with pytest.raises(ValueError, match="hint: ") as found:
            call()
        assert all(text in str(found.value) for text in FILTERS[chosen])


def test_zero_flows_are_an_answer(capfd: pytest.CaptureFixture[str]) -> None:
    assert command.main(["table", "r", "--where", "timeouts > 1_000_000", "--format", "csv", "--metrics", "flows"]) == 0
    rows = capfd.readouterr().out.splitlines()
    assert rows[0].endswith(",flows") and len(rows) == 5 and all(row.endswith(",0") for row in rows[1:])
    assert flowloom.open("r").where("size_bytes > 1GB").flows().num_rows == 0
    with pytest.raises(ValueError, match="a column is missing"):
        flowloom.open("r").where("")


ABSENT: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("table", "r", "--at", "system=TPC"): ("no point has `system` = `TPC`; did you mean `TCP`?", "one of TCP, DCTCP"),
    ("table", "r", "--at", "laod=0.2"): ("`laod` is not swept here; did you mean `load`?",),
    ("table", "r", "--at", "load=0.3"): ("no point has `load` = `0.3`", "one of 0.2, 0.4"),
    ("table", "r", "--at", "load=0.2,0.3"): ("no point has `load` = `0.3`",),
    ("table", "r", "--at", "seed=3"): ("no point has `seed` = `3`", "one of 1, 2"),
    ("table", "r", "--at", "load=0.2", "--at", "point=tcp-load0.4-seed1"): ("together",),
    ("table", "r", "--metrics", "mean_fct"): ("did you mean `mean_fct_s`?",),
    ("plot", "r", "--at", "system=TPC"): ("did you mean `TCP`?",),
    ("plot", "r", "--systems", "TCP,DCTPC"): ("no system `DCTPC`; did you mean `DCTCP`?", "TCP, DCTCP"),
    ("plot", "r", "--kind", "slowdwn"): ("did you mean `slowdown`?",),
    ("plot", "r", "--metrics", "mean_fct"): ("did you mean `mean_fct_s`?",),
    ("plot", "r", "--kind", "slowdown", "--statistic", "p98"): ("did you mean `p95`?", "mean, p50, p95, p99"),
    ("plot", "j", "--kind", "busbw", "--workload", "jbo"): ("no workload `jbo`; did you mean `job`?",),
    ("plot", "j", "--kind", "timeline", "--workload", "jbo"): ("no workload `jbo`; did you mean `job`?",),
    ("why", "r", "--point", "tcp-load0.2-seed9"): ("did you mean `tcp-load0.2-seed1`?",),
    ("why", "r", "--at", "system=TPC"): ("did you mean `TCP`?",),
    ("why", "r", "--point", "tcp-load0.2-seed1", "--flow", "9999"): ("flow 9999 does not exist", "ids from 0"),
    ("why", "j", "--group", "99"): ("no group 99 has finished", "the groups are 0"),
    ("why", "j", "--collective", "all_reudce"): ("did you mean `all_reduce`?", "the collectives are all_reduce"),
    ("why", "j", "--collective", "99"): ("no collective `99`",),
    ("why", "j", "--collective", "slowest", "--point", "newreno-seed2"): ("did you mean `newreno-seed1`?",),
    ("export", "r", "--format", "htsim", "--point", "tcp-load0.2-seed9"): ("did you mean `tcp-load0.2-seed1`?",),
    ("export", "r", "--format", "htsmi"): ("did you mean `htsim`?",),
    ("play", "r", "--point", "tcp-load0.2-seed9"): ("did you mean `tcp-load0.2-seed1`?",),
    ("play", "r", "--at", "load=3"): ("no point has `load` = `3`",),
    ("pack", "r", "--scenario", "other.toml"): ("there is no scenario `other.toml`",),
    ("papers", "mrep"): ("did you mean `merp`?",),
    ("papers", "merp", "fgi5"): ("did you mean `fig5`?",),
    ("papers", "merp", "fig5", "--profile", "smok"): ("did you mean `smoke`?",),
    ("examples", "dmeo"): ("did you mean `demo`?",),
    ("explain", "newrneo"): ("did you mean `newreno`?",),
}


@pytest.mark.parametrize("line", ABSENT)
def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(
    line: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    assert command.main(list(line)) == 2
    out, error = capfd.readouterr()
    assert not out and error.startswith("error: ") and all(text in error for text in ABSENT[line]), error


@pytest.mark.parametrize("at", [{"system": "TPC"}, {"load": 0.3}, {"load": [0.2, 0.3]}, {"seed": 9}, {"point": "x"}, {"laod": 0.2}])
def test_the_api_refuses_points_that_there_are_not(at: dict[str, Any]) -> None:
    results = flowloom.open("r")
    reads: Sequence[Callable[[], object]] = [
        lambda: results.select(at),
        lambda: results.table(at=at),
        lambda: results.flows(at=at),
        lambda: results.counted(["fct_ps"], at),
        lambda: results.ports(["name"], at),
        lambda: results.plot("metrics", at=at),
        lambda: results.why_class(at),
    ]
    for read in reads:
        with pytest.raises(KeyError, match="hint: "):
            read()


EMPTY = [
    ["papers", "merp", "fig5", "--profile", ""],
    ["papers", ""],
    ["why", "j", "--collective", ""],
    ["why", "r", "--group", ""],
    ["why", "r", "--point", " "],
    ["table", "r", "--where", ""],
    ["table", "r", "--at", ""],
    ["table", "r", "--at", "load="],
    ["table", "r", "--metrics", "flows,,"],
    ["plot", "r", "--kind="],
    ["plot", "r", "--font", ""],
    ["plot", "r", "--systems", ""],
    ["run", "r.toml", "--set", ""],
    ["run", "r.toml", "--set", "workload.web.flows="],
    ["run", "r.toml", "--profile", ""],
    ["run", "r.toml", "--on", ""],
    ["check", "r.toml", "--profile", "a,"],
    ["export", "r", "--format", ""],
    ["play", "r", "--point", ""],
    ["explain", ""],
    ["examples", ""],
    ["seek", "r.toml", "--on", ""],
]


@pytest.mark.parametrize("line", EMPTY, ids=" ".join)
def test_an_empty_value_is_not_a_value_that_was_not_given(line: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert command.main(line) == 2
    out, error = capfd.readouterr()
    assert not out and error.startswith("error: "), error
    assert "a value is required" in error or "invalid value" in error, error


CALLS: Mapping[str, tuple[Callable[[Results], object], str]] = {
    "systems": (lambda r: r.plot("metrics", systems=[]), "`systems` is empty"),
    "metrics": (lambda r: r.plot("metrics", metrics=[]), "`metrics` is empty"),
    "table": (lambda r: r.table([]), "`metrics` is empty"),
    "style": (lambda r: r.plot("metrics", style=""), "`style` is empty"),
    "font": (lambda r: r.plot("metrics", font=""), "`font` is empty"),
    "x": (lambda r: r.plot("metrics", x=""), "`x` is empty"),
    "axis": (lambda r: r.plot("metrics", x="laod"), "did you mean `load`?"),
    "out": (lambda r: flowloom.plot(r, "metrics", ""), "`out` is empty"),
    "at": (lambda r: r.table(at={"load": []}), "no value of `load` is asked for"),
    "around": (lambda r: r.around(1, ""), "no point has `point` = ``"),
    "flows": (lambda r: r.around([], "tcp-load0.2-seed1"), "no flow is named"),
    "metric": (lambda r: r.metric(r.runs[0], "mean_fct"), "did you mean `mean_fct_s`?"),
    "dead": (lambda r: r.plot("topology", dead=[("h0", "s1")]), "no link `h0--s1`; did you mean `h0--s0`?"),
    "profile": (lambda r: flowloom.run("r.toml", profile=""), "which has an empty name"),
    "profiles": (lambda r: flowloom.Scenario.from_toml(SWEEP, profile="a,,b"), "which has an empty name"),
    "where": (lambda r: flowloom.compare("r", where=""), "a column is missing"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_api_takes_no_empty_or_unknown_value_for_none(name: str) -> None:
    call, text = CALLS[name]
    with pytest.raises((ValueError, KeyError), match="hint: ") as found:
        call(flowloom.open("r"))
    assert text in str(found.value)


def test_a_text_is_a_list_of_one_name() -> None:
    results = flowloom.open("r")
    assert results.table("flows").head == results.table(["flows"]).head == ["system", "workload", "load", "flows"]
    assert len(results.plot("metrics", metrics="flows", systems="TCP").axes) == 1
    assert results.plot("topology", dead=[]).axes, "an empty collection of links crosses out none"


SHARE = "4 of 8 points are missing, because only one shard of the run was run: join all shards with `flowloom merge`"


def test_every_command_says_how_many_points_are_missing(capfd: pytest.CaptureFixture[str]) -> None:
    lines: Sequence[tuple[Sequence[str], str]] = [
        (["table", "s"], "out"),
        (["table", "s", "--format", "latex"], "out"),
        (["table", "s", "--format", "csv"], "err"),
        (["table", "s", "--format", "markdown"], "err"),
        (["compare", "s"], "out"),
        (["report", "s"], "out"),
        (["plot", "s", "--kind", "metrics"], "err"),
        (["export", "s", "--format", "htsim", "--point", "tcp-load0.2-seed1"], "err"),
        (["play", "s", "--around", "0"], "err"),
        (["why", "s"], "err"),
    ]
    for line, stream in lines:
        assert command.main(list(line)) == 0, line
        found = capfd.readouterr()
        assert (found.out.count(SHARE), found.err.count(SHARE)) == ((1, 0) if stream == "out" else (0, 1)), (line, found)
    assert command.main(["compare", "r", "s"]) == 0
    assert f"s: {SHARE}" in capfd.readouterr().out
    assert command.main(["pack", "s"]) == 2
    assert SHARE in capfd.readouterr().err
    assert SHARE in Path("s/report.html").read_text(encoding="utf-8").replace("&#x27;", "'")


def test_a_whole_run_lacks_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    for line in (["table", "r"], ["plot", "r", "--kind", "metrics"], ["compare", "r"]):
        assert command.main(line) == 0
        found = capfd.readouterr()
        assert "missing" not in found.out + found.err
    assert missing(flowloom.open("r")) == ""


def test_the_api_says_how_many_points_are_missing() -> None:
    results = flowloom.open("s")
    assert SHARE in results.table().note and SHARE in str(results.table(at={"load": 0.2}))
    assert SHARE in results.where("workload == 'web'").table().note


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("stopped", ", because the run was stopped: the same `flowloom run` adds them"),
        ("running", ", because the run was killed, or is still running: the same"),
        ("failed", ", because a point failed: the same"),
        ("unknown", ": the same"),
    ],
)
def test_the_sentence_says_why_points_are_missing(reason: str, words: str) -> None:
    found = flowloom.open("s")

    class Stopped:
        complete = False
        manifest = json.dumps(json.loads(found._core.manifest) | {"stop_reason": reason})
        points = found._core.points

    results = Results(Stopped())  # type: ignore[arg-type]
    assert missing(results).startswith(f"4 of 8 points are missing{words}")
