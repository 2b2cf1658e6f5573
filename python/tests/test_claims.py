"""The vocabulary of claims, on numbers made for each verdict."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from flowloom.api.results import Results
from flowloom.base.errors import KeyRefusedError
from flowloom.papers import claims, pages
from flowloom.papers.claims import MET, NOT_MET, UNDECIDED, Claim, Judged, judge
from flowloom.runs.numbers import COMPUTED, Estimate, Found, Number, Points, average, combined, relative
from hypothesis import given
from hypothesis import strategies as st

LOAD = "workload.web.load"
Values = Mapping[tuple[str, float], Sequence[float]]


class Made:
    """Results that hold one metric, with the values given by system, load and seed, and the number of flows of a point."""

    path = None
    complete = True
    config = ""
    manifest = json.dumps({"sweep_keys": [LOAD]})

    def __init__(self, values: Values, metric: str = "mean_fct_s", flows: float = 100.0) -> None:
        self.values = values
        self.metric = metric
        self.flows_each = flows

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for (system, load), sample in self.values.items():
            for seed, value in enumerate(sample):
                key = {"point": f"{system}{load}{seed}", "system": system, "seed": seed, LOAD: load}
                rows.append(key | {"metric": self.metric, "unit": "s", "value": value})
                rows.append(key | {"metric": "flows", "unit": "", "value": self.flows_each})
        return rows

    def per_seed(self, filter: str | None = None, workloads: bool = False) -> pa.Table:
        return pa.Table.from_pylist(self._rows())

    def points(self) -> pa.Table:
        rows = [row for row in self._rows() if row["metric"] == "flows"]
        return pa.Table.from_pylist(rows).select(["point", "system", "seed", LOAD])

    def _none(self, filter: str | None = None, workloads: bool = False) -> pa.Table:
        raise NotImplementedError

    def chosen(self, point: str, filter: str | None = None) -> list[int]:
        raise NotImplementedError

    def refuse_absent(self, filter: str) -> None:
        raise NotImplementedError

    def file(self, point: str, table: str) -> None:
        raise NotImplementedError

    def whole(self) -> list[Path]:
        raise NotImplementedError

    flows = ports = tasks = parts = rank_times = samples = agents = packets = summary = by_size = series = groups = _none


def made(values: Values, metric: str = "mean_fct_s", flows: float = 100.0) -> Mapping[str, Results]:
    return {"fig": Results(Made(values, metric, flows))}


def claim(kind: str, **keys: Any) -> Claim:
    given = {"id": "c", "figure": "fig", "quote": "q", "kind": kind, "metric": "mean_fct_s", "printed": "1"}
    return Claim.read(given | ({} if kind in COMPUTED else {"at": {"load": 0.8}}) | keys)


NOISE = (0.98, 1.0, 1.02, 1.01, 0.99)


def sample(mean: float, noise: Sequence[float] = NOISE) -> list[float]:
    return [mean * n for n in noise]


PAIR = {"system": "A", "versus": "B"}


@pytest.mark.parametrize(
    ("keys", "verdict"),
    [
        ({"kind": "value", "system": "A", "at_most": 1.2}, MET),
        ({"kind": "value", "system": "A", "at_most": 0.9}, NOT_MET),
        ({"kind": "value", "system": "A", "at_most": 1.0}, UNDECIDED),
        ({"kind": "value", "system": "A", "within": [0.9, 1.1]}, MET),
        ({"kind": "value", "systems": ["A", "B"], "at_most": 3}, MET),
        ({"kind": "value", "systems": ["A", "B"], "at_most": 1.5}, NOT_MET),
        ({"kind": "value", "system": "A", "per": "flows", "at_most": 0.011}, MET),
        ({"kind": "ratio", "system": "B", "versus": "A", "at_least": 1.9}, MET),
        ({"kind": "ratio", "system": "B", "versus": "A", "at_least": 2.1}, NOT_MET),
        ({"kind": "reduction", **PAIR, "within": ["2/5", "3/5"]}, MET),
        ({"kind": "reduction", **PAIR, "at_least": 0.6}, NOT_MET),
        ({"kind": "increase", **PAIR, "at_most": -0.4}, MET),
        ({"kind": "increase", "system": "B", "versus": "A", "at_most": 0.5}, NOT_MET),
        ({"kind": "difference", "system": "B", "versus": "A", "more_than": 0}, MET),
        ({"kind": "difference", **PAIR, "more_than": 0}, NOT_MET),
        ({"kind": "spread", "systems": ["A", "A2"], "at_most": 0.2}, MET),
        ({"kind": "spread", "systems": ["A", "B"], "at_most": 0.2}, NOT_MET),
        ({"kind": "order", "systems": ["A", "A2", "B"], "at_least": 1}, MET),
        ({"kind": "order", "systems": ["A", "B", "A2"], "at_least": 1}, NOT_MET),
        ({"kind": "order", "systems": ["A", "loud", "B"], "at_least": 1}, UNDECIDED),
        ({"kind": "reduction", "system": "loud", "versus": "A", "at_least": 0}, UNDECIDED),
    ],
)
def test_verdicts(keys: dict[str, Any], verdict: str) -> None:
    loud = sample(1.0, (0.5, 1.5, 0.8, 1.3, 0.9))
    results = made({("A", 0.8): sample(1), ("A2", 0.8): sample(1.1), ("B", 0.8): sample(2), ("loud", 0.8): loud})
    assert judge(claim(**keys), results).verdict == verdict


def test_comparisons_are_paired_by_seed() -> None:
    # Seeds differ by a factor of three, systems by a tenth: only the paired difference can tell.
    seeds = (1.0, 3.0, 2.0)
    results = made({("A", 0.8): sample(0.9, seeds), ("B", 0.8): sample(1.0, seeds)})
    judged = judge(claim("reduction", **PAIR, within=[0.09, 0.11]), results)
    assert judged.verdict == MET
    assert judged.worst.found.estimate is not None and judged.worst.found.estimate.mean == pytest.approx(0.1)


@pytest.mark.parametrize(("slope", "verdict"), [(0.5, MET), (-0.5, NOT_MET), (0.0, UNDECIDED)])
def test_growth_of_a_gap(slope: float, verdict: str) -> None:
    values: dict[tuple[str, float], list[float]] = {}
    for load, noise in ((0.2, 0.1), (0.5, 0.0), (0.8, -0.1)):
        values["B", load] = [1.0] * 5
        values["A", load] = [1 - slope * load + noise * (n - 1) for n in NOISE]
    assert judge(claim("growth", **PAIR, over="load", at={}, more_than=0), made(values)).verdict == verdict


def test_growth_is_the_slope_of_a_line() -> None:
    values = {(s, x): [1 - 0.5 * x if s == "A" else 1.0] * 3 for s in "AB" for x in (0.2, 0.5, 0.8)}
    found = judge(claim("growth", **PAIR, over="load", at={}, more_than=0), made(values)).worst.found.estimate
    assert found is not None and found.mean == pytest.approx(0.5)


def test_contrast_of_two_figures() -> None:
    small = Results(Made({("A", 0.8): sample(0.9), ("B", 0.8): sample(1.0)}))
    large = Results(Made({("A", 0.8): sample(0.5), ("B", 0.8): sample(1.0)}))
    gap = claim("contrast", **PAIR, than="other", more_than=0)
    assert judge(gap, {"fig": large, "other": small}).verdict == MET
    assert judge(gap, {"fig": small, "other": large}).verdict == NOT_MET
    assert judge(gap, {"fig": large}).verdict == UNDECIDED


def test_every_value_must_hold() -> None:
    results = made({("A", 0.2): sample(1), ("A", 0.8): sample(5)})
    judged = judge(claim("value", system="A", at={"load": "all"}, at_most=2), results)
    assert judged.verdict == NOT_MET and judged.worst.found.where == "load 0.8"
    assert judge(claim("value", system="A", at={"load": [0.2]}, at_most=2), results).verdict == MET
    assert judge(claim("value", system="A", at={"load": 0.5}, at_most=2), results).reason == "not run at these values"


def test_up_to_asks_for_the_largest() -> None:
    results = made(
        {("A", load): sample(1 - cut) for load, cut in ((0.2, 0.1), (0.5, 0.3), (0.8, 0.2))}
        | {("B", load): sample(1) for load in (0.2, 0.5, 0.8)}
    )
    judged = judge(claim("reduction", **PAIR, at={"load": "all"}, take="largest", within=[0.25, 0.35]), results)
    assert (judged.verdict, [part.found.where for part in judged.parts]) == (MET, ["load 0.5"])
    assert judge(claim("reduction", **PAIR, at={"load": "all"}, take="smallest", at_least=0.15), results).verdict == NOT_MET


@pytest.mark.parametrize(("flows", "verdict"), [(20_000.0, MET), (19_000.0, UNDECIDED)])
def test_a_percentile_without_flows_beyond_it_decides_nothing(flows: float, verdict: str) -> None:
    results = made({("A", 0.8): sample(1)}, "p999_fct_s", flows)
    one = claim("value", system="A", metric="p999_fct_s", at_most=2)
    judged = judge(one, results)
    assert judged.verdict == verdict
    assert judged.reason == ("" if verdict == MET else "95 flows beyond the percentile over all seeds, 100 needed")
    # The reason survives the file of the page.
    found = [pages.found_of(pages.claim_json(judged)["parts"][0])]
    assert claims.verdict(one, found).verdict == verdict


def test_a_percentile_at_several_loads_rests_on_the_flows_of_each() -> None:
    results = made({(system, load): sample(1) for system in "AB" for load in (0.2, 0.8)}, "p999_fct_s", 19_000.0)
    judged = judge(claim("growth", **PAIR, metric="p999_fct_s", over="load", at={}, more_than=0), results)
    assert judged.reason == "95 flows beyond the percentile over all seeds, 100 needed"


def test_a_bound_chosen_after_the_result_says_so() -> None:
    results = made({("A", 0.8): sample(1)})
    judged = judge(claim("value", system="A", at_most=2, seen="the mean of a first run"), results)
    assert "chosen after the result" in str(pages.claims_table([judged]))


def test_a_setting_changed_after_the_result_is_no_bound_chosen_after_it() -> None:
    results = made({("A", 0.8): sample(1)})
    judged = judge(claim("value", system="A", at_most=2, changed="hosts took turns; the number was 3"), results)
    table = str(pages.claims_table([judged]))
    assert "with other settings than before" in table and "chosen after" not in table


def test_claims_with_the_same_note_share_a_line() -> None:
    every = [f"c{n}" for n in range(7)]
    assert pages.ids_text(every[:4], every) == "c0, c1, c2, c3"
    assert pages.ids_text(every[1:6], every) == "c1 to c5 (5 claims)"
    assert pages.ids_text([*every[:4], "c6"], every) == "c0, c1, c2, c3, c6"


def test_too_few_seeds_decide_nothing() -> None:
    results = made({("A", 0.8): [1.0, 1.0]})
    judged = judge(claim("value", system="A", at_most=100), results)
    assert (judged.verdict, judged.reason) == (UNDECIDED, "2 seeds, 3 needed")
    assert judge(claim("value", system="A", at_most=100, min_seeds=2), results).verdict == MET
    alone = made({("A", 0.8): [1.0]})
    assert judge(claim("value", system="A", at_most=100, min_seeds=1), alone).verdict == MET
    assert judge(claim("value", system="A", at_most=100), alone).verdict == UNDECIDED


def test_what_was_not_run_is_undecided() -> None:
    assert judge(claim("value", system="A", at_most=1), {}).reason == "not run"
    assert judge(claim("value", system="Z", at_most=1), made({("A", 0.8): sample(1)})).reason == "no value"


def test_exact_claims_need_no_results() -> None:
    third = claim("exact", within=["17/3", "17/3"], metric="m")
    assert judge(third, {}, {"m": 17 / 3}).verdict == MET
    assert judge(third, {}, {"m": 5.6667}).verdict == NOT_MET
    assert judge(third, {}).verdict == UNDECIDED


def test_measured_claims_have_a_number_per_seed() -> None:
    high = claim("measured", at_least=0.9, metric="m")
    assert judge(high, {}, {"m": {1: 0.95, 2: 0.96, 3: 0.94}}).verdict == MET
    assert judge(high, {}, {"m": {1: 0.5, 2: 0.51, 3: 0.52}}).verdict == NOT_MET
    assert judge(high, {}, {"m": {1: 0.95, 2: 0.96}}).verdict == UNDECIDED, "too few seeds"
    assert judge(high, {}).reason == "not run"
    assert judge(high, made({("A", 0.8): NOISE})).reason == "not computed"


def test_a_bound_counts_unless_it_must_be_passed() -> None:
    same = made({("A", 0.8): [1.0] * 3, ("B", 0.8): [1.0] * 3})
    assert judge(claim("difference", **PAIR, at_least=0), same).verdict == MET
    assert judge(claim("difference", **PAIR, more_than=0), same).verdict == NOT_MET


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"bound": 3}, "`bound` is not a key"),
        ({"kind": "better"}, "not a kind of claim"),
        ({"system": "A"}, "no bounds"),
        ({"system": 3, "at_least": 1}, "`system` is not a text in quotes"),
        ({"systems": "AB", "at_least": 1}, "`systems` is not a list of texts"),
        ({"system": "A", "at": "load", "at_least": 1}, "`at` is not a table"),
        # Keys of the kind.
        ({"at_least": 1}, "needs `system` or `systems`: its kind is `value`"),
        ({"at_least": 1, "system": "A", "systems": ["A", "B"]}, "needs `system` or `systems`, not both"),
        ({"at_least": 1, "system": "A", "versus": "B"}, "`versus` has no effect on a number of kind `value`"),
        ({"at_least": 1, "kind": "spread", "system": "A"}, "needs `systems`: its kind is `spread`"),
        ({"at_least": 1, "kind": "growth", "system": "A", "versus": "B"}, "needs `over`"),
        ({"at_least": 1, "kind": "reduction", "system": "A"}, "needs `versus`"),
        ({"at_least": 1, "kind": "contrast", "system": "A", "versus": "B"}, "needs `than`"),
        ({"at_least": 1, "kind": "measured", "at": {"load": 0.8}}, "`at` has no effect on a number of kind `measured`"),
        # Bounds.
        *[
            ({"system": "A", "at_least": wrong}, f"`{wrong}` is not a number")
            for wrong in ("1/0", "80%", math.nan, math.inf, True, [1])
        ],
        ({"system": "A", "within": [0, "x"]}, "`x` is not a number"),
        ({"system": "A", "within": [0]}, "is not a list of two numbers"),
        ({"system": "A", "within": [2, 1]}, "no number is within its bounds, 2 and 1"),
        ({"system": "A", "at_least": 2, "at_most": 1}, "no number is within its bounds, 2 and 1"),
        ({"system": "A", "at_least": 2, "more_than": 1}, "`more_than` cannot be combined with `at_least`"),
        ({"system": "A", "within": [1, 2], "at_most": 1}, "`at_most` cannot be combined with `within`"),
    ],
)
def test_wrong_claims_are_refused(keys: dict[str, Any], message: str) -> None:
    table = {"id": "c", "figure": "f", "quote": "q", "kind": "value", "metric": "m", "printed": "-"} | keys
    with pytest.raises(KeyRefusedError, match=re.escape(message)):
        Claim.read(table)


def test_the_interval_is_that_of_the_summary() -> None:
    # Mean 3, standard deviation sqrt(2.5), t(4) = 2.776.
    found = Estimate.of([1, 2, 3, 4, 5])
    assert (found.mean, found.low, found.high) == pytest.approx((3, 3 - 1.9632, 3 + 1.9632), abs=1e-4)
    one = Estimate.of([0.1])
    assert (one.mean, one.low, one.high) == (0.1, -math.inf, math.inf)
    # Without spread there is no width, whatever rounding makes of the sum.
    assert Estimate.of([0.1] * 3).low == Estimate.of([0.1] * 3).high == 0.1
    with pytest.raises(ValueError, match="at least one value"):
        Estimate.of([])


@given(st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=8), st.floats(-1e6, 1e6), st.floats(0, 1e6))
def test_verdicts_agree_with_the_interval(values: list[float], low: float, width: float) -> None:
    results = made({("A", 0.8): values})
    judged = judge(claim("value", system="A", within=[low, low + width]), results)
    e = Estimate.of(values)
    inside = claim("value", system="A", within=[low, low + width]).bounds
    expected = (
        MET if inside[0] <= e.low and e.high <= inside[1] else NOT_MET if e.high < inside[0] or e.low > inside[1] else UNDECIDED
    )
    assert judged.verdict == expected


def test_numbers_are_written_with_their_interval() -> None:
    share = claim("reduction", **PAIR, at_least=0.5)
    assert claims.text(share, Estimate(0.461, 0.41, 0.512, 5)) == "46 % [41, 51]"
    assert claims.text(share, Estimate(0.461, 0.459, 0.463, 5)) == "46.1 % [45.9, 46.3]"
    assert claims.bound_text(share) == "≥ 50 %"
    assert claims.bound_text(claim("value", system="A", within=[0.0408, 0.0416])) == "40.8 to 41.6 ms"
    assert claims.text(share, None) == "-"


def test_sentences_and_their_numbers_are_counted() -> None:
    results = made({("A", 0.8): NOISE})
    value: dict[str, Any] = {"system": "A", "metric": "mean_fct_s"}

    def one(quote: str, met: bool, **keys: Any) -> Judged:
        return judge(claim("value", quote=quote, **value, **({"within": [0.9, 1.1]} if met else {"at_most": 0.5}), **keys), results)

    calibrated, ours = (one("q", True, source=source) for source in ("calibrated", "ours"))
    sure = one("r", True, trivial="it is built for it")
    found = [one("p", True), one("p", False, source="figure"), calibrated, ours, sure, one("q", False, headline=True)]
    by_quote = [(part.quote, part.whose, part.verdict, part.counts) for part in claims.sentences(found)]
    assert by_quote == [
        ("q", "", "not met", True),
        ("p", "", "in part", True),
        ("q", "calibrated", "met", False),
        ("q", "ours", "met", False),
        ("r", "", "met", False),
    ]
    assert (
        pages.counts(found)
        == "2 sentences of the paper: 1 in part, 1 not met (3 numbers: 1 met, 2 not met); calibrated or ours: 2 met"
    )
    assert pages.counts([found[0]]) == "1 sentence of the paper: 1 met (1 number: 1 met)"
    undecided = judge(claim("value", quote="p", at_most=1.0, **value), results)
    assert [part.verdict for part in claims.sentences([found[0], undecided])] == ["undecided"]
    with pytest.raises(ValueError, match="`axis` is not a source of claims"):
        claim("value", at_most=1, source="axis", **value)


def test_explanations_quote_numbers_in_units() -> None:
    share = Number(id="a-share", figure="f", kind="reduction", metric="mean_fct_s")
    time = Number(id="time", figure="f", kind="value", metric="mean_fct_s")
    found = [Found("load 0.3", Estimate(0.461, 0.4, 0.5, 3)), Found("load 0.8", None, "no value")]
    known = {"a-share": (share, found), "time": (time, [Found("", Estimate.exact(0.0123))])}
    text = "{a-share at load 0.3}, {a-share at load 0.8}, {time}, {a-share at load 0.9}"
    assert claims.filled(text, known) == "46 %, -, 12.3 ms, -"
    with pytest.raises(ValueError, match=r"several values\nhint: name one of `load 0[.]3`, `load 0[.]8`"):
        claims.filled("{a-share}", known)
    with pytest.raises(ValueError, match="no number `b`"):
        claims.filled("{b}", known)


def test_points_of_several_results_make_one_sweep() -> None:
    low = Results(Made({("A", 0.2): [1.0, 2.0], ("B", 0.2): [2.0, 0.0]}))
    high = Results(Made({("A", 0.8): [3.0, 4.0]}))
    points = Points(low, high)
    assert points.systems == ["A", "B"] and points.numbers("load") == [0.2, 0.8]
    curves = points.curves("mean_fct_s", "load")
    assert curves == {"A": {0.2: {0: 1.0, 1: 2.0}, 0.8: {0: 3.0, 1: 4.0}}, "B": {0.2: {0: 2.0, 1: 0.0}}}
    # A system that was not run at a place has no sample there, and what divides by zero has no number.
    assert relative(curves, "B") == {"A": {0.2: {0: 0.5}, 0.8: {}}}
    assert points.sample("A", lambda _, run: math.nan if run.seed else 7.0, load=0.8) == {0: 7.0}
    assert points.sample("A", "mean_fct_s", load=0.5) == {} and math.isnan(average({}))
    with pytest.raises(ValueError, match="more than one point"):
        points.sample("A", "mean_fct_s")


def test_results_that_do_not_sweep_a_key_have_its_fixed_value() -> None:
    class Unswept(Made):
        manifest = json.dumps({"sweep_keys": []})

        def points(self) -> pa.Table:
            return super().points().drop_columns([LOAD])

    fixed, swept = Results(Unswept({("A", 0.2): [1.0]})), Results(Made({("A", 0.8): [3.0]}))
    assert Points(fixed, swept, load=0.2).curves("mean_fct_s", "load") == {"A": {0.2: {0: 1.0}, 0.8: {0: 3.0}}}
    assert Points(fixed).sample("A", "mean_fct_s", load=0.5) == {0: 1.0}, "a key that is not swept excludes nothing"


def test_samples_are_combined_by_the_seeds_that_all_have() -> None:
    assert combined([{2: 1.0, 1: 5.0}, {1: 2.0}], max) == {1: 5.0}
    assert combined([], max) == {}


@pytest.mark.parametrize(
    ("seeds", "words"), [([3], "seed 3"), ([1, 2], "seeds 1, 2"), ([1, 2, 3], "seeds 1 to 3"), ([1, 2, 4], "seeds 1, 2, 4")]
)
def test_seeds_in_words(seeds: list[int], words: str) -> None:
    assert pages.seeds_text(seeds) == words
