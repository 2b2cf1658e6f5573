"""Claims of a paper: a small vocabulary, judged on the results of several seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import Any

from flowloom import _core, words
from flowloom.data import Data, Value, matches, plain

RULES = """\
A claim names a metric, one or more systems and the swept values at which it is meant, and says in which bounds a number must lie.
Numbers that compare systems are formed per seed, since all systems of a scenario see the same flows, and averaged afterwards;
the 95 % interval of the average is Student's t over the seeds. A claim is met when the whole interval is within the bounds, not met
when the whole interval is outside, and undecided otherwise, or when there are fewer seeds than the claim asks for.
"""
"""How claims are judged, for the pages of the papers."""

MET, NOT_MET, UNDECIDED = "met", "not met", "undecided"

PAPER_SOURCES = ("text", "figure")
"""The paper says it in words, or shows it in a figure or by the range of an axis."""

SOURCES = (*PAPER_SOURCES, "calibrated", "ours")
"""A claim that is not the paper's own is `calibrated`, where settings or bounds were chosen with its outcome in view, or `ours`,
where it is judged on an experiment that the paper does not have, or says what the paper does not."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its 95 % interval; a single seed has none."""

    mean: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, sample: Sequence[float]) -> Estimate:
        """The estimate from one value per seed."""
        mean, interval = _core.estimate(sample)
        if mean is None:
            raise ValueError("an estimate needs at least one value")
        low, high = interval or (-math.inf, math.inf)
        return cls(mean, low, high, len(sample))

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """A number that does not depend on seeds."""
        return cls(value, value, value, 0)


@dataclass(frozen=True)
class Claim:
    """One claim of a paper."""

    id: str
    figure: str
    quote: str
    """The paper's words, shortened, or what its figure shows."""
    kind: str
    """A word of the vocabulary: see `KINDS`."""
    metric: str
    printed: str
    """The paper's number as printed, or "-"."""
    says: str = ""
    """What is judged, in our words; the quote when empty."""
    source: str = "text"
    """Where the claim comes from: see `SOURCES`."""
    scenario: str = ""
    """The results it is judged on; those of the figure when empty."""
    system: str = ""
    versus: str = ""
    systems: Sequence[str] = ()
    at: Mapping[str, Any] = field(default_factory=dict)
    """Swept values by key; a list asks for all of them, each judged alone; `"all"` for every value there is."""
    over: str = ""
    per: str = ""
    than: str = ""
    within: Sequence[float | str] = ()
    at_least: float | str | None = None
    more_than: float | str | None = None
    """As `at_least`, but the bound itself does not meet the claim."""
    at_most: float | str | None = None
    rule: str = ""
    """Why these bounds were chosen."""
    min_seeds: int = 3
    explanation: str = ""
    """Why the claim is not met, for readers of the table."""

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Claim:
        """A claim from its table in `claims.toml`. Raises `ValueError` for keys and kinds that do not exist."""
        known = {f.name for f in fields(cls)}
        name = table.get("id", "?")
        unknown = sorted(set(table) - known)
        if unknown:
            raise ValueError(f"claim `{name}` has an unknown key `{unknown[0]}`\nhint: known are {', '.join(sorted(known))}")
        missing = sorted({"id", "figure", "quote", "kind", "metric", "printed"} - set(table))
        if missing:
            raise ValueError(f"claim `{name}` lacks `{missing[0]}`")
        claim = cls(**table)
        if claim.kind not in KINDS and claim.kind not in COMPUTED:
            raise ValueError(
                f"claim `{name}`: `{claim.kind}` is not a kind of claim\nhint: one of {', '.join([*KINDS, *COMPUTED])}"
            )
        if claim.source not in SOURCES:
            raise ValueError(f"claim `{name}`: `{claim.source}` is not a source of claims\nhint: one of {', '.join(SOURCES)}")
        if claim.bounds == (-math.inf, math.inf):
            raise ValueError(f"claim `{name}` has no bounds\nhint: give `within`, `at_least`, `more_than` or `at_most`")
        return claim

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and largest value with which the claim is met."""
        low, high = -math.inf, math.inf
        if self.within:
            low, high = (float(Fraction(str(b))) for b in self.within)
        for least in (self.at_least, self.more_than):
            if least is not None:
                low = float(Fraction(str(least)))
        if self.at_most is not None:
            high = float(Fraction(str(self.at_most)))
        return low, high


@dataclass(frozen=True)
class Part:
    """A claim at one set of swept values."""

    where: str
    estimate: Estimate | None
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and the numbers that were found."""

    claim: Claim
    verdict: str
    parts: Sequence[Part]

    @property
    def worst(self) -> Part:
        """The part that decides: the first that is not met, else the first undecided, else the one closest to its bound."""

        def order(part: Part) -> tuple[int, float]:
            low, high = self.claim.bounds
            e = part.estimate
            margin = math.inf if e is None else min(e.mean - low, high - e.mean)
            return (NOT_MET, UNDECIDED, MET).index(part.verdict), margin

        return min(self.parts, key=order)

    @property
    def reason(self) -> str:
        """Why the claim is undecided, or at which swept values it fails."""
        return self.worst.reason


# The numbers of the vocabulary: each gives one number per seed at one set of swept values.

Sample = dict[int, float]
"""One number per seed."""


class Numbers:
    """The metrics of results by system, swept values, metric and seed."""

    def __init__(self, results: Data) -> None:
        self.results = results
        self._rows: dict[tuple[str, tuple[Value, ...], str], Sample] = {}
        self.units: dict[str, str] = {}
        for row in results.per_seed().to_pylist():
            place = tuple(plain(row[key]) for key in results.keys)
            self.units[str(row["metric"])] = str(row["unit"])
            if row["value"] is not None:
                self._rows.setdefault((str(row["system"]), place, str(row["metric"])), {})[int(row["seed"])] = float(row["value"])

    def sample(self, system: str, metric: str, at: Mapping[str, Value]) -> Sample:
        """The metric of a system by seed, where the swept keys have the given values."""
        found: Sample = {}
        for (name, place, what), values in self._rows.items():
            here = dict(zip(self.results.keys, place, strict=True))
            if (name, what) == (system, metric) and all(
                any(matches(key, wanted) and here[key] == value for key in here) for wanted, value in at.items()
            ):
                if found:
                    raise ValueError(f"more than one point of `{system}` fits {dict(at)}\nhint: name more keys in `at`")
                found = values
        return found

    def values(self, key: str) -> list[Value]:
        """The values of a swept key, sorted."""
        full = [k for k in self.results.keys if matches(k, key)]
        found = {run.keys[k] for run in self.results.runs for k in full} - {None}
        return sorted(found, key=lambda v: (words.literals([v])[0] or [math.inf], str(v)))

    def places(self, at: Mapping[str, Any]) -> list[dict[str, Value]]:
        """All combinations of the values asked for that were run."""
        combined: list[dict[str, Value]] = [{}]
        for key, wanted in at.items():
            have = self.values(key)
            asked = have if wanted == "all" else [plain(v) for v in (wanted if isinstance(wanted, list) else [wanted])]
            # A key that is not swept has one value everywhere and need not be named.
            if not have:
                continue
            combined = [place | {key: value} for place in combined for value in asked if value in have]
        return combined


def both(a: Sample, b: Sample, combine: Callable[[float, float], float]) -> Sample:
    """Combines two samples seed by seed; a division by zero leaves its seed out."""
    found: Sample = {}
    for seed in sorted(a.keys() & b.keys()):
        try:
            found[seed] = combine(a[seed], b[seed])
        except ZeroDivisionError:
            continue
    return found


def of(claim: Claim, numbers: Numbers, system: str, at: Mapping[str, Value]) -> Sample:
    """The claim's metric of a system, divided by the metric `per` if there is one."""
    sample = numbers.sample(system, claim.metric, at)
    if claim.per:
        sample = both(sample, numbers.sample(system, claim.per, at), lambda x, n: x / n)
    return sample


def value(claim: Claim, numbers: Numbers, at: Mapping[str, Value]) -> Sample:
    """The metric itself."""
    return of(claim, numbers, claim.system, at)


def ratio(claim: Claim, numbers: Numbers, at: Mapping[str, Value]) -> Sample:
    """System over `versus`."""
    return both(of(claim, numbers, claim.system, at), of(claim, numbers, claim.versus, at), lambda a, b: a / b)


def reduction(claim: Claim, numbers: Numbers, at: Mapping[str, Value]) -> Sample:
    """How much smaller the system's number is than that of `versus`, as a share of the latter."""
    return {seed: 1 - r for seed, r in ratio(claim, numbers, at).items()}


def increase(claim: Claim, numbers: Numbers, at: Mapping[str, Value]) -> Sample:
    """How much larger the system's number is than that of `versus`, as a share of the latter."""
    return {seed: r - 1 for seed, r in ratio(claim, numbers, at).items()}


def difference(claim: Claim, numbers: Numbers, at: Mapping[str, Value]) -> Sample:
    """System minus `versus`."""
    return both(of(claim, numbers, claim.system, at), of(claim, numbers, claim.versus, at), lambda a, b: a - b)


def spread(claim: Claim, numbers: Numbers, at: Mapping[str, Value]) -> Sample:
    """By how much the largest of several systems exceeds the smallest, as a share of the latter."""
    samples = [of(claim, numbers, system, at) for system in claim.systems]
    seeds = set.intersection(*(set(sample) for sample in samples)) if samples else set()
    return {
        seed: max(s[seed] for s in samples) / min(s[seed] for s in samples) - 1
        for seed in sorted(seeds)
        if min(s[seed] for s in samples) > 0
    }


def growth(claim: Claim, numbers: Numbers, at: Mapping[str, Value]) -> Sample:
    """How a gap between two systems grows along the key `over`: the slope of a straight line through the gaps."""
    gap = {"reduction": reduction, "increase": increase, "difference": difference}[claim.than or "reduction"]
    points = [(v, gap(claim, numbers, {**at, claim.over: v})) for v in numbers.values(claim.over)]
    seeds = set.intersection(*(set(sample) for _, sample in points)) if points else set()
    places = words.literals([v for v, _ in points])[0]
    if places is None or len(places) < 2:
        return {}
    return {seed: statistics.linear_regression(places, [sample[seed] for _, sample in points]).slope for seed in sorted(seeds)}


KINDS: dict[str, Callable[[Claim, Numbers, Mapping[str, Value]], Sample]] = {
    "value": value,
    "ratio": ratio,
    "reduction": reduction,
    "increase": increase,
    "difference": difference,
    "spread": spread,
    "growth": growth,
    # Filled in by `judge`: they need more than one set of results or more than one pair of systems.
    "contrast": reduction,
    "order": ratio,
}
"""The vocabulary.

`value`: a system's metric. `ratio`, `reduction`, `increase`, `difference`: a system against `versus`. `spread`: among `systems`.
`order`: each of `systems` against the one before it, as a ratio. `growth`: the slope of a gap (`than` names it) along `over`.
`contrast`: the reduction in these results minus that in the results of the figure named by `than`.
"""

COMPUTED = ("exact", "measured")
"""Numbers that the paper's `figures.py` works out. `exact`: one without chance, such as the example on one link. `measured`: one
per seed, read off time series or packets."""


def judge_estimate(claim: Claim, estimate: Estimate) -> tuple[str, str]:
    """The verdict on one number, and why it is undecided."""
    low, high = claim.bounds
    if 0 < estimate.seeds < claim.min_seeds:
        return UNDECIDED, f"{estimate.seeds} seed{'s' if estimate.seeds > 1 else ''}, {claim.min_seeds} needed"
    if claim.min_seeds == 1 and estimate.seeds == 1:
        estimate = Estimate.exact(estimate.mean)  # nothing in it is drawn
    touches = claim.more_than is not None
    if (low < estimate.low or (low == estimate.low and not touches)) and estimate.high <= high:
        return MET, ""
    if estimate.high < low or estimate.low > high or (touches and estimate.high == low):
        return NOT_MET, ""
    return UNDECIDED, "the interval straddles the bound"


def combined(verdicts: Iterable[str]) -> str:
    """The verdict on a claim from the verdicts on its parts: `met` if all are, `not met` if one is not met, else `undecided`."""
    found = list(verdicts)
    if NOT_MET in found:
        return NOT_MET
    return MET if found and all(v == MET for v in found) else UNDECIDED


def judge(claim: Claim, figures: Mapping[str, Data], computed: Mapping[str, float | Sample] | None = None) -> Judged:
    """Judges a claim on the results of the figures that were run. `computed` holds numbers of `COMPUTED` claims by `metric`."""
    if claim.kind in COMPUTED:
        known = (computed or {}).get(claim.metric)
        if known is None:
            return only(claim, None, "not computed")
        return only(claim, Estimate.of(list(known.values())) if isinstance(known, dict) else Estimate.exact(known), "")
    results = figures.get(claim.scenario or claim.figure)
    if results is None:
        return only(claim, None, "not run")
    numbers = Numbers(results)
    parts = []
    for where, at, sample in samples(claim, numbers, figures):
        name = ", ".join(filter(None, [where, *(f"{words.key(k)} {words.number(v)}" for k, v in at.items())]))
        if not sample:
            parts.append(Part(name, None, UNDECIDED, "no value"))
            continue
        estimate = Estimate.of(list(sample.values()))
        verdict, reason = judge_estimate(claim, estimate)
        parts.append(Part(name, estimate, verdict, reason))
    if not parts:
        return only(claim, None, "not run at these values")
    return Judged(claim, combined(part.verdict for part in parts), parts)


def only(claim: Claim, estimate: Estimate | None, reason: str) -> Judged:
    """A claim of a single number, or of none yet."""
    if estimate is None:
        return Judged(claim, UNDECIDED, [Part("", None, UNDECIDED, reason)])
    verdict, why = judge_estimate(claim, estimate)
    return Judged(claim, verdict, [Part("", estimate, verdict, why)])


def samples(claim: Claim, numbers: Numbers, figures: Mapping[str, Data]) -> Iterable[tuple[str, Mapping[str, Value], Sample]]:
    """The numbers of a claim: where, at which swept values, and one number per seed."""
    for at in numbers.places(claim.at):
        if claim.kind == "order":
            for smaller, larger in zip(claim.systems, claim.systems[1:], strict=False):
                pair = both(of(claim, numbers, larger, at), of(claim, numbers, smaller, at), lambda a, b: a / b)
                yield f"{larger} / {smaller}", at, pair
        elif claim.kind == "contrast":
            other = figures.get(claim.than)
            there = {} if other is None else reduction(claim, Numbers(other), at)
            yield "", at, both(reduction(claim, numbers, at), there, lambda a, b: a - b)
        elif claim.kind == "value" and claim.systems:
            for system in claim.systems:
                yield system, at, of(claim, numbers, system, at)
        else:
            yield "", at, KINDS[claim.kind](claim, numbers, at)


# Words


_SHARES = ("reduction", "increase", "spread", "contrast")


def unit(claim: Claim, sizes: Sequence[float]) -> tuple[float, str]:
    """The unit of a claim's numbers, and what follows them."""
    if claim.kind in _SHARES:
        return 0.01, " %"
    if claim.kind == "growth" and claim.than != "difference":
        return 0.01, f" % per unit of {claim.over}"
    if claim.metric.endswith("_s") and claim.kind in ("value", "difference") and not claim.per:
        factor, name = words.scale("s", sizes)
        return factor, f" {name}"
    return 1.0, ""


def text(claim: Claim, estimate: Estimate | None) -> str:
    """A number with its interval, in the claim's unit: `46.1 % [41.0, 51.2]`."""
    if estimate is None:
        return "-"
    factor, name = unit(claim, [estimate.mean])
    mean, low, high = estimate.mean / factor, estimate.low / factor, estimate.high / factor
    if not math.isfinite(low) or low == high:
        alone = " (one seed)" if not math.isfinite(low) and claim.min_seeds > 1 else ""
        return f"{mean:.{words.decimals([mean])}f}{name}{alone}"
    places = min(words.decimals([mean]), words.decimals([high - low], 2))
    return f"{mean:.{places}f}{name} [{low:.{places}f}, {high:.{places}f}]"


def bound_text(claim: Claim) -> str:
    """The claim's bounds in its unit."""
    low, high = claim.bounds
    factor, name = unit(claim, [b for b in (low, high) if math.isfinite(b)])

    def one(bound: float) -> str:
        return f"{bound / factor:.4g}"

    if low == high:
        return f"= {one(low)}{name}"
    if math.isinf(high):
        return f"{'>' if claim.more_than is not None else '≥'} {one(low)}{name}"
    return f"≤ {one(high)}{name}" if math.isinf(low) else f"{one(low)} to {one(high)}{name}"
