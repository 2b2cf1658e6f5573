"""Searches over open settings: places, points that are run once, claims, shares, indices, and the worst case made smaller."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowloom import _core
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario
from flowloom.base.errors import KeyRefusedError
from flowloom.clusters import engines
from flowloom.papers.claims import Claim
from flowloom.runs import numbers
from flowloom.seek import Answer, Finding, judge, runs, search, seek, study
from flowloom.seek.answer import Share
from flowloom.seek.judge import Seen, Visit
from flowloom.seek.settings import Place, Setting
from flowloom.seek.study import Judgement, Study
from hypothesis import given
from hypothesis import strategies as st

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
    size = setting(low=Decimal(8000), high=Decimal(1000000), unit="B", decimals=0, log=True)
    assert [size.value(u) for u in (0.0, 0.5, 1.0)] == ["8000B", "89400B", "1000000B"]
    assert size.coordinate("8000B") == 0 and size.coordinate("1000000B") == 1
    assert size.coordinate("89400B") == pytest.approx(0.5, abs=1e-3)
    assert (size.shown("89400B"), size.shown("1000000B"), size.whole) == ("89.4 kB", "1 MB", "8 kB to 1 MB")
    share = setting(low=Decimal("0.2"), high=Decimal("0.8"))
    assert share.value(0.5) == "0.5" and share.coordinate("0.35") == pytest.approx(0.25)
    packets = setting(low=Decimal(2), high=Decimal(60), unit="pkt", decimals=0)
    assert packets.value(1 / 58) == "3pkt" and packets.coordinate("31pkt") == 0.5
    choice = setting(choices=["a", "b", "c"])
    assert [choice.value(u) for u in (0.0, 0.34, 0.999)] == ["a", "b", "c"] and choice.coordinate("b") == 0.5


def of_range(low: str, high: str, more: str = "", points: int = 8) -> Setting:
    """A setting as the reader of files returns it."""
    text = f"[seek]\n[[seek.setting]]\nname = 'x'\nkeys = ['a']\nsource = 's'\nlow = '{low}'\nhigh = '{high}'\n{more}\n"
    table = _core.seek(f"{text}[[seek.claim]]\nid = 'c'\n", "f.toml")
    assert table is not None
    return Setting.read(table["settings"][0], points)


@pytest.mark.parametrize(
    ("low", "high", "middle", "shown"),
    [
        ("0.98765", "0.98799", "0.98782", "0.98765 to 0.98799"),
        ("1000us", "1003us", "1001500ns", "1 ms to 1.003 ms"),
        ("1.0001Gbps", "1.0009Gbps", "1000500000bps", "1.0001 Gbit/s to 1.0009 Gbit/s"),
        ("1ns", "2ns", "1.5ns", "1 ns to 2 ns"),
        ("10001pkt", "10003pkt", "10002pkt", "10001 pkt to 10003 pkt"),
        ("-0.5003", "-0.5001", "-0.5002", "-0.5003 to -0.5001"),
        ("999999999999990B", "1000000000000000B", "999999999999995B", ""),
        ("0.001", "1.0", "0.5", "0.001 to 1"),
        ("1000", "8000", "4500", "1000 to 8000"),
    ],
)
def test_a_narrow_range_has_as_many_digits_as_it_needs(low: str, high: str, middle: str, shown: str) -> None:
    narrow = of_range(low, high)
    values = [narrow.value(u / 8) for u in range(9)]
    assert values[4] == middle and len(set(values)) == (3 if "pkt" in low else 9)
    assert (values[0], values[8]) == (of_range(low, high, f"usual = '{low}'").usual, of_range(low, high, f"usual = '{high}'").usual)
    assert not shown or narrow.whole == shown


@given(
    unit=st.sampled_from(
        [("", 9), ("%", 9), ("pkt", 0), ("B", 0), ("ns", 3), ("us", 6), ("ms", 9), ("bps", 0), ("Mbps", 6), ("KB", 3)]
    ),
    low=st.one_of(st.integers(-1000, 1000), st.integers(-(10**9), 10**9)),
    width=st.one_of(st.integers(1, 40), st.integers(1, 10**9)),
    decimals=st.integers(0, 9),
    log=st.booleans(),
    points=st.sampled_from([8, 64, 4096]),
)
def test_every_value_is_within_its_range(
    unit: tuple[str, int], low: int, width: int, decimals: int, log: bool, points: int
) -> None:
    name, most = unit
    decimals = min(decimals, most)
    low = low if name in ("", "%", "pkt") else abs(low)
    low = abs(low) + 1 if log else low
    ends = [Decimal(end).scaleb(-decimals) for end in (low, low + width)]
    texts = [f"{end:f}{name}" for end in ends]
    found = of_range(texts[0], texts[1], "log = true" if log else "", points)
    values = [found.value(u / 8) for u in range(9)]
    numbers = [found.number(value) for value in values]
    assert found.low <= numbers[0] and numbers == sorted(numbers) and numbers[-1] <= found.high
    for i, value in enumerate(values):
        # The reader of files compares exact numbers, and accepts a usual value only within the range.
        assert of_range(texts[0], texts[1], f"usual = '{value}'").usual == value
        assert found.coordinate(value) == pytest.approx(i / 8, abs=0.1) or len(set(values)) < 9
    exact = [
        float(found.low) * (float(found.high) / float(found.low)) ** (i / 8)
        if log
        else float(found.low) + float(found.high - found.low) * i / 8
        for i in range(9)
    ]
    for i in range(8):
        if exact[i + 1] - exact[i] > 2 * 10.0**-found.decimals:
            assert numbers[i] < numbers[i + 1], "values that the range tells apart differ"


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
    # A number that is missing at some swept values leaves the claim open, unless it is missed at another.
    assert not judge.seen(claim, [0.5, None]).known and not judge.seen(claim, [math.nan, 0.5]).known
    assert judge.seen(claim, [None, 0.8]) == Seen(0.8, False, (0.6 - 0.8) / ((0.6 - 0.4) / 2))
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
        {"draw": "1", "given": []},
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
[profile.far]
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
choices = ["far", "near"]
source = "any"
"""
    both = SEEK.replace("points = 4", 'points = 4\nscenarios = ["one.toml", "two.toml"]\nprofile = "short"')
    found = study.read(written(tmp_path, both + settings + OWN + 'scenario = "two"\n', "seek.toml"))
    place = found.place([0.5, 0.25, 0.75, 0.75])
    found.check([place])
    assert place.values[1:] == ("0.3", "long", "near")
    cores = [found.at(name, place) for name in ("one", "two")]
    one, two = (tomllib.loads(core.resolved()) for core in cores if isinstance(core, _core.Scenario))
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
    assert "there is no scenario" in error('[seek]\nscenarios = ["other.toml"]\n' + SEEK.replace("\n[seek]\n", ""), "other.txt")
    assert not (tmp_path / "out").exists(), "nothing is written"
    file = written(tmp_path, SCENARIO + SEEK.replace("points = 4", "pionts = 4"))
    assert main(["seek", str(file)]) == 2
    assert "did you mean `points`?" in capsys.readouterr().err


OWN = """
[[seek.claim]]
id = "times"
metric = "mean_fct_s"
system = "TCP"
at_most = 1
"""
SECOND = """
[[seek.setting]]
name = "second"
keys = ["workload.web.load"]
low = 0.2
high = 0.6
source = "any"
"""


def claims(text: str) -> str:
    return SCENARIO + SEEK + text


def changed(old: str, new: str, text: str = SCENARIO + SEEK) -> str:
    assert old in text
    return text.replace(old, new)


MISTAKES = {
    # Keys.
    "same key": (claims(SECOND.replace("workload.web.load", "system.DCTCP.qdisc.mark")), "keys = [", "is set by the setting"),
    "contained": (claims(SECOND.replace("workload.web.load", "system.DCTCP.qdisc")), "keys = [", "is set by the setting"),
    "spelled otherwise": (claims(SECOND.replace("workload.web.load", "small:system.'DCTCP'.qdisc.mark")), "keys = [", "is set by"),
    "unknown key": (changed("qdisc.mark", "qdisc.makr"), "keys = [", "did you mean `mark`?"),
    "unknown system in a key": (changed("system.DCTCP.q", "system.DCTPC.q"), "keys = [", "did you mean `DCTCP`?"),
    "unknown scenario": (changed("system.DCTCP.q", "smal:system.DCTCP.q"), "keys = [", "did you mean `small`?"),
    "unknown profile": (changed("points = 4", "points = 4\nprofile = 'p'"), "profile = 'p'", "there is no profile `p` in `small`"),
    "no claim depends on it": (
        claims(
            SECOND.replace("workload.web.load", "system.OTHER.qdisc.limit").replace("0.2", "'9pkt'").replace("0.6", "'99pkt'")
        ).replace(
            "[seek]", '[[system]]\nlabel = "OTHER"\ntransport = "newreno"\nqdisc = { kind = "droptail", limit = "10pkt" }\n[seek]'
        ),
        "keys = [",
        "`second` changes no result on which a claim depends",
    ),
    "name": (
        claims(SECOND.replace("workload.web.load", "name").replace("0.2", "1").replace("0.6", "2")),
        "keys = [",
        "has no effect",
    ),
    # Values.
    "usual outside": (changed('usual = "20pkt"', 'usual = "200pkt"'), "usual", "`200pkt` is out of the range"),
    "usual in another unit": (
        changed('usual = "20pkt"', 'usual = "20KB"'),
        "usual",
        "`20KB` is not in the unit of `low` and `high`",
    ),
    "usual of no choice": (
        changed('low = "2pkt"\nhigh = "60pkt"\nlog = true\nusual = "20pkt"', 'choices = ["2pkt", "20pkt"]\nusual = "22pkt"'),
        "usual",
        "did you mean `2pkt`?",
    ),
    # Claims.
    "empty bounds": (
        changed("at_least = 0.05", "at_least = 0.05\nat_most = 0"),
        "at_most = 0",
        "`0` is below `at_least`, which is `0.05`",
    ),
    "division by zero": (changed("at_least = 0.05", 'at_least = "1/0"'), "at_least", "`1/0` is not a number"),
    "percent": (changed("at_least = 0.05", 'at_least = "80%"'), "at_least", "did you mean `0.8`?"),
    "nan": (changed("at_least = 0.05", "at_least = nan"), "at_least", "`nan` is not a number"),
    "true": (changed("at_least = 0.05", "at_least = true"), "at_least", "`true` is not a number"),
    "no bounds": (changed("at_least = 0.05\n", ""), "[[seek.claim]]", "`seek.claim.0` has no bounds"),
    "unknown kind": (changed('"reduction"', '"reductoin"'), "kind", "did you mean `reduction`?"),
    "kind of claims.toml": (changed('"reduction"', '"spread"'), "kind", "can only be written in the `claims.toml`"),
    "no versus": (changed('versus = "TCP"\n', ""), "[[seek.claim]]", "`seek.claim.0.versus` is missing"),
    "no system": (changed('system = "DCTCP"\nversus', "versus"), "[[seek.claim]]", "`seek.claim.0.system` is missing"),
    "versus of a value": (changed('"reduction"', '"value"'), "versus", "has no effect on a claim of kind `value`"),
    "unknown claim": (changed('metric = "mean_queue_bytes"\nsystem', "system"), "system", "has no effect without `metric`"),
    "no claims.toml": (claims('[[seek.claim]]\nid = "f1"\n'), 'id = "f1"', "there is no claim `f1`"),
    "unknown metric": (changed("queue_bytes", "queue_byte"), "metric", "did you mean `mean_queue_bytes`?"),
    "unknown system": (changed('versus = "TCP"', 'versus = "TCPP"'), "versus", "did you mean `TCP`?"),
    "measured elsewhere": (claims(OWN.replace('system = "TCP"', 'kind = "measured"')), "kind", "no `figures.py` in this folder"),
    # Parameters.
    "confirm": (changed("points = 4", "points = 4\nconfirm = 2"), "confirm", "has no effect: all claims with `fit = false`"),
    "want": (changed("points = 4", "points = 4\nwant = 'largest'"), "want", "has no effect with `objective"),
    "same system": (changed('versus = "fast"', 'versus = "slow"', TWO + RATIO), "versus", "is the same system as `system`"),
    "unknown system of a ratio": (changed('system = "slow"', 'system = "slwo"', TWO + RATIO), "system", "did you mean `slow`?"),
    "unknown metric of a ratio": (changed("mean_fct_s", "mean_fct", TWO + RATIO), "metric", "did you mean `mean_fct_s`?"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_has_its_place_and_nothing_runs(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, line, message = MISTAKES[name]
    file = written(tmp_path, text)
    assert main(["seek", str(file), "--out", str(tmp_path / "out")]) == 2
    shown = capsys.readouterr().err
    assert message in shown and not (tmp_path / "out").exists(), shown
    places = [int(place) for place in re.findall(rf"{re.escape(file.name)}:(\d+):", shown)]
    assert any(text.splitlines()[place - 1].startswith(line) for place in places), shown


def test_a_mistake_is_found_before_a_cluster_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "engine", lambda *_: pytest.fail("the cluster has started"))
    text, _, _ = MISTAKES["unknown key"]
    assert main(["seek", str(written(tmp_path, text)), "--on", "dask", "--out", str(tmp_path / "out")]) == 2


def test_files_that_are_no_text_or_no_toml_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.toml").write_bytes(b'name = "\xff"')
    assert main(["seek", str(tmp_path / "small.toml")]) == 2
    assert "small.toml` is not UTF-8 text: byte 8" in capsys.readouterr().err
    written(tmp_path, "title = 3", "paper.toml")
    written(tmp_path, "[[claim", "claims.toml")
    assert main(["seek", str(written(tmp_path, SCENARIO + SEEK))]) == 2
    assert "claims.toml` is not TOML: " in capsys.readouterr().err


def test_scenarios_without_claims_and_files_with_other_tables_are_refused(tmp_path: Path) -> None:
    written(tmp_path, SCENARIO, "one.toml")
    written(tmp_path, SCENARIO, "two.toml")
    both = SEEK.replace("points = 4", 'points = 4\nscenarios = ["one.toml", "two.toml"]')
    with pytest.raises(_core.ScenarioError, match="no claim needs the scenario `two`"):
        seek(written(tmp_path, both, "seek.toml"), out=tmp_path / "out", meter=None)
    with pytest.raises(_core.ScenarioError, match="`seed` has no effect"):
        seek(written(tmp_path, "seed = 3" + both, "seek.toml"), out=tmp_path / "out", meter=None)
    with pytest.raises(_core.ScenarioError, match=r"did you mean `one\.toml`"):
        seek(written(tmp_path, both.replace("one.toml", "on.toml"), "seek.toml"), out=tmp_path / "out", meter=None)


CONTRADICTION = """
[seek]
points = 8
refine = 0
[[seek.setting]]
name = "lower threshold"
keys = ["system.TCP.qdisc.th_min"]
low = "1pkt"
high = "40pkt"
source = "any"
[[seek.setting]]
name = "upper threshold"
keys = ["system.TCP.qdisc.th_max"]
low = "20pkt"
high = "80pkt"
log = true
source = "any"
"""


def test_a_place_that_the_scenario_does_not_allow_is_named(tmp_path: Path) -> None:
    scenario = SCENARIO.replace(
        '{ kind = "droptail", limit = "100pkt" }', '{ kind = "red_ecn", th_min = "5pkt", th_max = "90pkt" }'
    )
    with pytest.raises(_core.ScenarioError) as raised:
        seek(written(tmp_path, scenario + CONTRADICTION + OWN), out=tmp_path / "out", meter=None)
    (found,) = raised.value.diagnostics
    where = re.search(
        r"not valid at (\d) of 8 places, such as lower threshold = (\d+)pkt, upper threshold = (\d+)pkt: ", found["message"]
    )
    assert where is not None and int(where[2]) > int(where[3]) and 0 < int(where[1]) < 8, found
    assert (scenario + CONTRADICTION).splitlines()[found["line"] - 1] == "[seek]"
    assert "narrow the ranges" in found["hint"] and not (tmp_path / "out").exists()
    # A mistake in the scenario itself is one in the scenario.
    with pytest.raises(_core.ScenarioError, match="did you mean `hosts`") as raised:
        seek(written(tmp_path, scenario.replace("hosts", "hots") + CONTRADICTION + OWN), out=tmp_path / "out", meter=None)
    assert "place" not in raised.value.diagnostics[0]["message"]


def test_every_kind_of_claim_needs_the_same_keys_in_both_files(tmp_path: Path) -> None:
    def reads(kind: str, keys: Sequence[str]) -> bool:
        given = "".join(f"{key} = '{key}'\n" for key in keys)
        text = f"{SEEK}[[seek.claim]]\nid = 'c'\nmetric = 'm'\nkind = '{kind}'\nat_least = 1\n{given}"
        try:
            return _core.seek(text, "small.toml") is not None
        except _core.ScenarioError:
            return False

    known = {kind for kind in numbers.KINDS if any(reads(kind, keys) for keys in ([], ["system"], ["system", "versus"]))}
    assert known == {"value", "ratio", "reduction", "increase", "difference", "measured"}
    for kind in known:
        for keys in ([], ["system"], ["versus"], ["system", "versus"]):
            table = {"id": "c", "figure": "f", "quote": "", "printed": "-", "metric": "m", "kind": kind, "at_least": 1}
            try:
                Claim.read(table | {key: key for key in keys})
                same = True
            except KeyRefusedError:
                same = False
            assert reads(kind, keys) == same, (kind, keys)


def test_a_mistake_in_the_claims_of_a_paper_has_its_place(tmp_path: Path) -> None:
    paper = 'title = "T"\nsource = "S"\n[[figure]]\nid = "f"\ntitle = "F"\nscenario = "small"\n'
    written(tmp_path, paper, "paper.toml")
    claim = '[[claim]]\nid = "c"\nfigure = "f"\nquote = "q"\nprinted = "-"\nkind = "value"\nmetric = "data_drops"\n'
    claim += 'system = "DCTCP"\nat_most = 0\n'
    written(tmp_path, SCENARIO, "small.toml")
    whole = (
        SEEK.split("[[seek.claim]]")[0].replace("points = 4", 'points = 4\nscenarios = ["small.toml"]')
        + '[[seek.claim]]\nid = "c"\n'
    )
    file = written(tmp_path, whole, "seek.toml")
    for old, new, line, message in [
        ('"value"', '"vlaue"', 6, "did you mean `value`?"),
        ("at_most = 0", 'at_most = "1/0"', 9, "`1/0` is not a number"),
        ("at_most = 0\n", "", 1, "claim `c` has no bounds"),
        ('system = "DCTCP"\n', "", 1, "claim `c` needs `system` or `systems`"),
    ]:
        written(tmp_path, claim.replace(old, new), "claims.toml")
        with pytest.raises(_core.ScenarioError, match=re.escape(message)) as raised:
            study.read(file)
        (found,) = raised.value.diagnostics
        assert (Path(found["file"]).name, found["line"]) == ("claims.toml", line)
    written(tmp_path, claim, "claims.toml")
    assert [one.key for one in study.read(file).judgements] == ["seek.claim.0"]
    # A claim that needs a figure whose scenario does not run has no number at any place.
    written(tmp_path, claim.replace("value", "exact").replace('system = "DCTCP"\n', ""), "claims.toml")
    with pytest.raises(_core.ScenarioError, match="does not depend on settings"):
        study.read(file)


DEADLINES = """
[[seek.claim]]
id = "deadlines"
metric = "deadline_miss_rate"
system = "DCTCP"
at_most = 0.5
"""


def test_places_without_a_number_do_not_count(tmp_path: Path) -> None:
    answer, files = seek(written(tmp_path, claims(DEADLINES)), out=tmp_path / "out", meter=None)
    assert isinstance(answer, Answer)
    drops, deadlines = (one for one in answer.study.judgements if one.id != "queues")
    assert (str(answer.share(deadlines)), answer.without(deadlines), answer.without(drops)) == ("-", 4, 0)
    assert answer.most == 1 and answer.together().of == 4, "the claim without numbers does not count"
    assert "`deadlines` has no number at any place." in answer.sentence()
    page = next(path for path in files if path.suffix == ".md").read_text()
    assert "places without a number" in page
    row = next(line for line in page.splitlines() if line.startswith("| deadlines"))
    assert " | - | 4 | " in row
    found = json.loads((tmp_path / "out" / "seek.json").read_text())
    assert all(visit["seen"]["deadlines"] == [None, None, None] for visit in found["visits"])
    alone = SCENARIO + SEEK.split("[[seek.claim]]")[0] + DEADLINES
    nothing, _ = seek(written(tmp_path, alone), out=tmp_path / "alone", meter=None)
    assert isinstance(nothing, Answer) and nothing.sentence() == "No claim has a number at any of 4 places."


def test_a_share_is_that_of_the_places_with_a_number() -> None:
    answer = synthetic(lambda a, b: a - 0.75 if b < 0.5 else math.nan)
    (claim,) = answer.study.fitted
    assert answer.share(claim) == Share(8, 32) == answer.together() and answer.without(claim) == 32
    assert "(of 32 places with a number for it)" in answer.sentence()
    assert "places without a number" in str(answer) and "places without a number" not in str(synthetic(lambda a, b: a))


def test_a_ratio_without_a_value_has_no_worst_place(tmp_path: Path) -> None:
    with pytest.raises(_core.ScenarioError, match="`deadline_miss_rate` has no value") as raised:
        seek(written(tmp_path, TWO + RATIO.replace("mean_fct_s", "deadline_miss_rate")), out=tmp_path / "out", meter=None)
    assert (
        "deadline_miss_rate"
        in (TWO + RATIO).replace("mean_fct_s", "deadline_miss_rate").splitlines()[raised.value.diagnostics[0]["line"] - 1]
    )


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
