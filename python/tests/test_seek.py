"""Searches over open settings: places, points that are run once, claims, shares, indices, and the worst case made smaller."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowloom import _core
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario
from flowloom.papers.claims import Claim
from flowloom.seek import Answer, Finding, judge, runs, search, seek, study
from flowloom.seek.answer import Share
from flowloom.seek.judge import Seen, Visit
from flowloom.seek.study import Judgement, Place, Setting, Study

pytest.importorskip("scipy")

SCENARIO = """
name = "small"
seed = 1
[topology]
kind = "star"
hosts = 4
rate = "1Gbps"
delay = "10us"
[workload.web]
kind = "poisson"
flows = 30
load = 0.5
size = "fixed"
mean = "60KB"
[measure]
flows = "all"
[[system]]
label = "TCP"
transport = "newreno"
qdisc = { kind = "droptail", limit = "100pkt" }
[[system]]
label = "DCTCP"
transport = "dctcp"
qdisc = { kind = "ecn_threshold", limit = "100pkt", mark = "20pkt" }
"""
SEEK = """
[seek]
points = 4
refine = 0
[[seek.setting]]
name = "threshold"
keys = ["system.DCTCP.qdisc.mark"]
low = "2pkt"
high = "60pkt"
log = true
usual = "20pkt"
source = "any"
[[seek.claim]]
id = "queues"
kind = "reduction"
metric = "mean_queue_bytes"
system = "DCTCP"
versus = "TCP"
at_least = 0.05
[[seek.claim]]
id = "drops"
kind = "value"
metric = "data_drops"
system = "DCTCP"
at_most = 0
fit = false
"""


def written(folder: Path, text: str, name: str = "small.toml") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def setting(**given: Any) -> Setting:
    return Setting(**{"name": "x", "keys": ["a"], "source": "any", **given})


def test_values_go_over_the_range_and_back() -> None:
    size = setting(low=8e3, high=1e6, unit="B", whole=True, log=True)
    assert [size.value(u) for u in (0.0, 0.5, 1.0)] == ["8000B", "89400B", "1000000B"]
    assert size.coordinate("8KB") == 0 and size.coordinate("1MB") == 1
    assert size.coordinate("89400B") == pytest.approx(0.5, abs=1e-3) and size.coordinate("2MB") is None
    assert (size.shown("89400B"), size.shown("1MB")) == ("89.4 kB", "1 MB")
    share = setting(low=0.2, high=0.8)
    assert share.value(0.5) == "0.5" and share.coordinate("0.35") == pytest.approx(0.25)
    packets = setting(low=2.0, high=60.0, unit="pkt", whole=True)
    assert packets.value(1 / 58) == "3pkt" and packets.coordinate("31pkt") == 0.5
    choice = setting(choices=["a", "b", "c"])
    assert [choice.value(u) for u in (0.0, 0.34, 0.999)] == ["a", "b", "c"] and choice.coordinate("b") == 0.5


def test_a_design_fills_the_space_and_depends_on_nothing_but_the_study(tmp_path: Path) -> None:
    found = study.read(written(tmp_path, SCENARIO + SEEK.replace("points = 4", "points = 16")))
    places = search.design(found)
    cells = sorted(int(place.coordinates[0] * 16) for place in places)
    assert cells == list(range(16)), "one place in each sixteenth"
    assert places == search.design(found)


def test_the_claim_that_is_missed_most_decides() -> None:
    claim = Claim(id="c", figure="f", kind="value", metric="m", quote="", printed="-", within=[0.4, 0.6])
    assert judge.seen(claim, [0.5, 0.55]) == Seen(0.55, True, (0.6 - 0.55) / ((0.6 - 0.4) / 2))
    assert judge.seen(claim, [0.5, 0.8]) == Seen(0.8, False, (0.6 - 0.8) / ((0.6 - 0.4) / 2))
    assert not judge.seen(claim, []).holds and math.isnan(judge.seen(claim, []).number)
    above = Claim(id="c", figure="f", kind="value", metric="m", quote="", printed="-", more_than=1)
    assert not judge.seen(above, [1.0]).holds and judge.seen(above, [1.1]).holds


def test_shares_have_the_intervals_of_wilson() -> None:
    from scipy.stats import binomtest

    for held, of in [(0, 64), (1, 64), (31, 64), (64, 64), (3, 7)]:
        expected = binomtest(held, of).proportion_ci(method="wilson")
        assert Share(held, of).interval == pytest.approx((expected.low, expected.high), abs=1e-6)


def test_a_share_of_nothing_is_a_bound() -> None:
    assert [str(Share(held, 64)) for held in (0, 32, 64)] == ["under 6 %", "50 % [38, 62]", "100 % [94, 100]"]


def synthetic(function: Any, places: int = 64) -> Answer:
    """An answer whose one claim is a function of two settings."""
    claim = Claim(id="c", figure="f", kind="value", metric="m", quote="", printed="-", at_least=0)
    made = Study(
        Path("f.toml"),
        "f",
        [setting(name="a"), setting(name="b")],
        [Judgement(claim, "f", True)],
        {"f": Path("f.toml")},
        {"draw": "1"},
    )
    from scipy.stats import qmc

    visits = []
    for a, b in qmc.Sobol(2, rng=np.random.default_rng(3)).random(places):
        number = float(function(a, b))
        visits.append(Visit(Place((a, b), (f"{a:.3f}", f"{b:.3f}")), "design", {"c": Seen(number, number >= 0, number)}))
    return Answer(made, visits)


def test_indices_are_those_of_closed_forms() -> None:
    # Var(2a + b) = (4 + 1) / 12.
    linear = synthetic(lambda a, b: 2 * a + b - 1.5).indices["c"]
    assert linear == pytest.approx([0.8, 0.2], abs=0.06)
    # Of (a - 1/2)(b - 1/2) neither explains anything by itself.
    product = synthetic(lambda a, b: (a - 0.5) * (b - 0.5), 256).indices["c"]
    assert product is not None and max(product) < 0.08
    rng = np.random.default_rng(1)
    assert synthetic(lambda a, b: rng.normal()).indices["c"] is None, "noise has no indices"


def test_shares_and_region_are_counted_by_the_design() -> None:
    answer = synthetic(lambda a, b: a - 0.75)
    (claim,) = answer.study.fitted
    assert answer.share(claim) == Share(16, 64) and answer.together() == Share(16, 64)
    assert answer.there(claim) == Share(16, 16) and answer.best().place.coordinates[0] > 0.97
    text = str(answer)
    assert "The claim holds in 25 % [16, 37] of the space." in text
    assert "No claim holds at any of 64 places." in str(synthetic(lambda a, b: -1 - a))


def test_a_choice_may_be_a_profile_and_a_key_may_be_of_one_scenario(tmp_path: Path) -> None:
    profiles = """
[profile.near.topology]
delay = "1us"
[profile.short.workload.web]
flows = 7
[profile.long.system.TCP]
transport.init_window = 30
qdisc.limit = "50pkt"
[profile.plain]
"""
    written(tmp_path, SCENARIO + profiles, "one.toml")
    written(
        tmp_path,
        SCENARIO.replace("workload.web", "workload.other") + profiles.replace("workload.web", "workload.other"),
        "two.toml",
    )
    settings = """
[[seek.setting]]
name = "load"
keys = ["one:workload.web.load", "two:workload.other.load"]
low = 0.2
high = 0.6
source = "any"
[[seek.setting]]
name = "window"
keys = ["profile"]
choices = ["plain", "long"]
source = "any"
[[seek.setting]]
name = "distance"
keys = ["two:profile"]
choices = ["plain", "near"]
source = "any"
"""
    both = SEEK.replace("points = 4", 'points = 4\nscenarios = ["one.toml", "two.toml"]\nprofile = "short"')
    found = study.read(written(tmp_path, both + settings, "seek.toml"))
    found.refuse_unknown()
    place = found.place([0.5, 0.25, 0.75, 0.75])
    assert place.values[1:] == ("0.3", "long", "near")
    one, two = (tomllib.loads(found.scenario(name, place).resolved()) for name in ("one", "two"))
    assert one["workload"]["web"]["load"] == two["workload"]["other"]["load"] == 0.3
    assert one["workload"]["web"]["flows"] == two["workload"]["other"]["flows"] == 7
    for scenario in (one, two):
        tcp = next(system for system in scenario["system"] if system["label"] == "TCP")
        assert (tcp["transport"]["init_window"], tcp["qdisc"]["limit"]) == (30, "50pkt")
    assert (one["topology"]["delay"], two["topology"]["delay"]) == ("10us", "1us")
    names = {found.place([0.5, 0.25, u, v]).name(found.settings) for u in (0.2, 0.7) for v in (0.2, 0.7)}
    assert len(names) == 4, "each place has a folder of its own"


def test_settings_that_a_small_design_does_not_cross_are_named() -> None:
    crossed = synthetic(lambda a, b: a)
    assert crossed.uncrossed() == [] and "cross" not in crossed.counted()
    visits = [Visit(Place((u, u), ("", "")), "design", v.seen) for u, v in zip(np.linspace(0, 1, 64), crossed.visits, strict=True)]
    same = Answer(crossed.study, visits)
    assert same.uncrossed() == [("a", "b")] and "Too few to cross a with b" in same.counted()
    # Eight places are too few for sixteen combinations in any case.
    assert Answer(crossed.study, visits[::8]).uncrossed() == []


class Counting(Executor):
    """Runs work at once and counts it."""

    def __init__(self) -> None:
        self.points: list[str] = []

    def submit(self, work: Any, /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.points.append(args[0].point)
        future.set_result(work(*args))
        return future


def test_a_point_is_run_once_and_never_again(tmp_path: Path) -> None:
    file, out = written(tmp_path, SCENARIO + SEEK), tmp_path / "out"
    first = Counting()
    answer, files = seek(file, out=out, on=first, meter=None)
    assert isinstance(answer, Answer)
    # Five places: TCP does not depend on the threshold.
    assert sorted(first.points) == ["dctcp-seed1"] * 5 + ["tcp-seed1"]
    again = Counting()
    same, _ = seek(file, out=out, on=again, meter=None)
    assert again.points == [] and str(same) == str(answer)
    threads, _ = seek(file, out=tmp_path / "threads", jobs=2, meter=None)
    assert str(threads) == str(answer)
    assert {path.suffix for path in files} == {".csv", ".json", ".md", ".png", ".svg"} and all(path.is_file() for path in files)
    # Every place is a run like any other, and says what the answer says.
    folder = next(folder.parent for folder in out.glob("*/*/points.parquet"))
    assert Results.open(folder).complete
    found = json.loads((out / "seek.json").read_text())
    assert len(found["visits"]) == 5 and {visit["stage"] for visit in found["visits"]} == {"design", "usual"}
    number = answer.visits[0].seen["queues"].number
    alone = Scenario.from_file(file, set={"system.DCTCP.qdisc.mark": answer.visits[0].place.values[0]}).run()
    by = {run.system: alone.metric(run, "mean_queue_bytes") or 0.0 for run in alone.runs}
    assert number == pytest.approx(1 - by["DCTCP"] / by["TCP"])


def test_a_scenario_that_changes_keeps_the_points_that_it_still_shares(tmp_path: Path) -> None:
    out = tmp_path / "out"
    seek(written(tmp_path, SCENARIO + SEEK), out=out, on=Counting(), meter=None)
    more = Counting()
    seek(written(tmp_path, SCENARIO.replace("seed = 1", "seed = [1, 2]") + SEEK), out=out, on=more, meter=None)
    assert sorted(more.points) == ["dctcp-seed2"] * 5 + ["tcp-seed2"]


def test_refinement_goes_towards_the_claims(tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    narrow = SEEK.replace("refine = 0", "refine = 8").replace("at_least = 0.05", "at_least = 0.99")
    answer, _ = seek(written(tmp_path, SCENARIO + narrow), out=tmp_path / "out", meter=None)
    assert isinstance(answer, Answer)
    near = [visit.misfit(answer.study.fitted) for visit in answer.visits if visit.stage == "refine"]
    assert len(near) == 8
    assert np.mean(near) < np.mean([visit.misfit(answer.study.fitted) for visit in answer.design])


RATIO = """
[seek]
objective = "ratio"
metric = "mean_fct_s"
system = "slow"
versus = "fast"
points = 4
refine = 0
[[seek.setting]]
name = "load"
keys = ["workload.web.load"]
low = 0.1
high = 0.7
source = "any"
"""
TWO = (
    SCENARIO.replace("10us", "200us")
    .replace('"TCP"', '"fast"')
    .replace('label = "DCTCP"\ntransport = "dctcp"', 'label = "slow"\ntransport = { kind = "newreno", init_window = 1 }')
)


def test_the_worst_case_is_found_made_smaller_and_replays(tmp_path: Path) -> None:
    file, out = written(tmp_path, TWO + RATIO), tmp_path / "out"
    finding, (worst,) = seek(file, out=out, meter=None)
    assert isinstance(finding, Finding) and finding.steps and worst == out / "worst.toml"
    largest = max(visit.seen["ratio"].number for visit in finding.visits)
    assert finding.extreme.seen["ratio"].number == largest > 1.3
    results = Scenario.from_file(worst).run()
    by = {run.system: results.metric(run, "mean_fct_s") or 0.0 for run in results.runs}
    assert sorted(by) == ["fast", "slow"] and by["slow"] / by["fast"] == pytest.approx(finding.value)
    assert math.log(finding.value) >= 0.8 * math.log(largest)
    assert sum(results.metric(run, "flows") or 0 for run in results.runs) < 2 * 30, "fewer flows show the same"


def test_mistakes_name_the_file_and_what_there_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def error(text: str, name: str = "small.toml") -> str:
        with pytest.raises((ValueError, _core.ScenarioError)) as raised:
            seek(written(tmp_path, text, name), out=tmp_path / "out", meter=None)
        return str(raised.value)

    assert "has no table `[seek]`" in error(SCENARIO)
    unknown = error(SCENARIO + SEEK.replace('metric = "mean_queue_bytes"\n', ""))
    assert "there is no claim `queues`" in unknown
    assert "there is no system `slwo`; did you mean `slow`?" in error(TWO + RATIO.replace('"slow"', '"slwo"'))
    assert "unknown key `makr`" in error(SCENARIO + SEEK.replace("qdisc.mark", "qdisc.makr"))
    assert "there is no system `DCTPC`; did you mean `DCTCP`?" in error(SCENARIO + SEEK.replace('"DCTCP"', '"DCTPC"'))
    assert "there is no metric `mean_queue_byte`; did you mean" in error(SCENARIO + SEEK.replace("queue_bytes", "queue_byte"))
    assert "there is no scenario" in error('[seek]\nscenarios = ["other.toml"]\n' + SEEK.replace("\n[seek]\n", ""))
    assert not (tmp_path / "out").exists(), "nothing is written"
    file = written(tmp_path, SCENARIO + SEEK.replace("points = 4", "pionts = 4"))
    assert main(["seek", str(file)]) == 2
    assert "did you mean `points`?" in capsys.readouterr().err


def flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)  # all links to the file are damaged


DAMAGE: dict[str, Callable[[Path], object]] = {
    "a bit": lambda folder: flipped(folder / "flows.parquet"),
    "the end": lambda folder: (folder / "flows.parquet").write_bytes((folder / "flows.parquet").read_bytes()[:-9]),
    "a bit of another table": lambda folder: flipped(folder / "ports.parquet"),
    "a file": lambda folder: (folder / "ports.parquet").unlink(),
    "the manifest": lambda folder: (folder / "manifest.json").write_text((folder / "manifest.json").read_text() + " "),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_damaged_point_is_run_again_wherever_it_is_needed(what: str, tmp_path: Path) -> None:
    # A system between the others gives the places other folders, into which finished points are linked.
    two = SCENARIO.replace("seed = 1", "seed = [1, 2]")
    more = two.replace("[[system]]", '[[system]]\nlabel = "OTHER"\ntransport = "newreno"\nqdisc = "droptail"\n[[system]]', 1)
    seek(written(tmp_path, two + SEEK), out=tmp_path / "out", meter=None)
    right, _ = seek(written(tmp_path, more + SEEK), out=tmp_path / "fresh", meter=None)
    for folder in (tmp_path / "out").glob("*/*/tcp-seed1"):
        if what in ("a file", "the manifest") or folder == min((tmp_path / "out").glob("*/*/tcp-seed1")):
            DAMAGE[what](folder)
    again = Counting()
    found, _ = seek(written(tmp_path, more + SEEK), out=tmp_path / "out", on=again, meter=None)
    assert sorted(again.points) == ["other-seed1", "other-seed2", "tcp-seed1"]
    assert str(found) == str(right)
    assert (tmp_path / "out" / "places.csv").read_bytes() == (tmp_path / "fresh" / "places.csv").read_bytes()


def test_a_search_with_a_lost_point_has_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "link", lambda point, to: None)
    with pytest.raises(_core.StorageError, match="lost points during the search: tcp-seed1"):
        seek(written(tmp_path, SCENARIO + SEEK), out=tmp_path / "out", meter=None)
    assert not (tmp_path / "out" / "places.csv").exists()
