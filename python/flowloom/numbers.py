"""Numbers of a paper's results: a small vocabulary of what is taken from the results of several seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self

from flowloom import _core, words
from flowloom.data import Data, Value, matches, plain


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


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number of a paper's results, which explanations can quote by its id."""

    id: str
    figure: str
    kind: str
    """A word of the vocabulary: see `KINDS`."""
    metric: str
    scenario: str = ""
    """The results it is taken from; those of the figure when empty."""
    system: str = ""
    versus: str = ""
    systems: Sequence[str] = ()
    at: Mapping[str, Any] = field(default_factory=dict)
    """Swept values by key; a list asks for all of them, each for itself; `"all"` for every value there is."""
    over: str = ""
    per: str = ""
    than: str = ""

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """A number or claim from its table in `claims.toml`. Raises `ValueError` for keys and kinds that do not exist."""
        known = {f.name for f in fields(cls)}
        needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
        name = f"{cls.__name__.lower()} `{table.get('id', '?')}`"
        unknown = sorted(set(table) - known)
        if unknown:
            raise ValueError(f"{name} has an unknown key `{unknown[0]}`\nhint: known are {', '.join(sorted(known))}")
        missing = sorted(needed - set(table))
        if missing:
            raise ValueError(f"{name} lacks `{missing[0]}`")
        found = cls(**table)
        if found.kind not in KINDS and found.kind not in COMPUTED:
            raise ValueError(f"{name}: `{found.kind}` is not a kind of claim\nhint: one of {', '.join([*KINDS, *COMPUTED])}")
        return found


# The numbers of the vocabulary: each gives one number per seed at one set of swept values.

Sample = dict[int, float]
"""One number per seed."""


class Rows:
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


def of(number: Number, rows: Rows, system: str, at: Mapping[str, Value]) -> Sample:
    """The number's metric of a system, divided by the metric `per` if there is one."""
    sample = rows.sample(system, number.metric, at)
    if number.per:
        sample = both(sample, rows.sample(system, number.per, at), lambda x, n: x / n)
    return sample


def value(number: Number, rows: Rows, at: Mapping[str, Value]) -> Sample:
    """The metric itself."""
    return of(number, rows, number.system, at)


def ratio(number: Number, rows: Rows, at: Mapping[str, Value]) -> Sample:
    """System over `versus`."""
    return both(of(number, rows, number.system, at), of(number, rows, number.versus, at), lambda a, b: a / b)


def reduction(number: Number, rows: Rows, at: Mapping[str, Value]) -> Sample:
    """How much smaller the system's number is than that of `versus`, as a share of the latter."""
    return {seed: 1 - r for seed, r in ratio(number, rows, at).items()}


def increase(number: Number, rows: Rows, at: Mapping[str, Value]) -> Sample:
    """How much larger the system's number is than that of `versus`, as a share of the latter."""
    return {seed: r - 1 for seed, r in ratio(number, rows, at).items()}


def difference(number: Number, rows: Rows, at: Mapping[str, Value]) -> Sample:
    """System minus `versus`."""
    return both(of(number, rows, number.system, at), of(number, rows, number.versus, at), lambda a, b: a - b)


def spread(number: Number, rows: Rows, at: Mapping[str, Value]) -> Sample:
    """By how much the largest of several systems exceeds the smallest, as a share of the latter."""
    samples = [of(number, rows, system, at) for system in number.systems]
    seeds = set.intersection(*(set(sample) for sample in samples)) if samples else set()
    return {
        seed: max(s[seed] for s in samples) / min(s[seed] for s in samples) - 1
        for seed in sorted(seeds)
        if min(s[seed] for s in samples) > 0
    }


def growth(number: Number, rows: Rows, at: Mapping[str, Value]) -> Sample:
    """How a gap between two systems grows along the key `over`: the slope of a straight line through the gaps."""
    gap = {"reduction": reduction, "increase": increase, "difference": difference}[number.than or "reduction"]
    points = [(v, gap(number, rows, {**at, number.over: v})) for v in rows.values(number.over)]
    seeds = set.intersection(*(set(sample) for _, sample in points)) if points else set()
    places = words.literals([v for v, _ in points])[0]
    if places is None or len(places) < 2:
        return {}
    return {seed: statistics.linear_regression(places, [sample[seed] for _, sample in points]).slope for seed in sorted(seeds)}


KINDS: dict[str, Callable[[Number, Rows, Mapping[str, Value]], Sample]] = {
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
"""Rows that the paper's `figures.py` works out. `exact`: one without chance, such as the example on one link. `measured`: one
per seed, read off time series or packets."""


@dataclass(frozen=True)
class Found:
    """A number at one set of swept values."""

    where: str
    estimate: Estimate | None
    reason: str = ""
    """Why there is no estimate."""


def find(number: Number, figures: Mapping[str, Data], computed: Mapping[str, float | Sample] | None = None) -> list[Found]:
    """A number in the results of the figures that were run. `computed` holds numbers of `COMPUTED` kinds by `metric`."""
    if number.kind in COMPUTED:
        known = (computed or {}).get(number.metric)
        if known is None:
            return [Found("", None, "not computed")]
        return [Found("", Estimate.of(list(known.values())) if isinstance(known, dict) else Estimate.exact(known))]
    results = figures.get(number.scenario or number.figure)
    if results is None:
        return [Found("", None, "not run")]
    found = []
    for where, at, sample in samples(number, Rows(results), figures):
        name = ", ".join(filter(None, [where, *(f"{words.key(k)} {words.number(v)}" for k, v in at.items())]))
        estimate = Estimate.of(list(sample.values())) if sample else None
        found.append(Found(name, estimate, "" if sample else "no value"))
    return found or [Found("", None, "not run at these values")]


def samples(number: Number, rows: Rows, figures: Mapping[str, Data]) -> Iterable[tuple[str, Mapping[str, Value], Sample]]:
    """The values of a number: where, at which swept values, and one number per seed."""
    for at in rows.places(number.at):
        if number.kind == "order":
            for smaller, larger in zip(number.systems, number.systems[1:], strict=False):
                pair = both(of(number, rows, larger, at), of(number, rows, smaller, at), lambda a, b: a / b)
                yield f"{larger} / {smaller}", at, pair
        elif number.kind == "contrast":
            other = figures.get(number.than)
            there = {} if other is None else reduction(number, Rows(other), at)
            yield "", at, both(reduction(number, rows, at), there, lambda a, b: a - b)
        elif number.kind == "value" and number.systems:
            for system in number.systems:
                yield system, at, of(number, rows, system, at)
        else:
            yield "", at, KINDS[number.kind](number, rows, at)


# Words


_SHARES = ("reduction", "increase", "spread", "contrast")


def unit(number: Number, sizes: Sequence[float]) -> tuple[float, str]:
    """The unit of a number: a factor, and what follows the number in a text."""
    if number.kind in _SHARES:
        return 0.01, " %"
    if number.kind == "growth" and number.than != "difference":
        return 0.01, f" % per unit of {number.over}"
    if number.metric.endswith("_s") and number.kind in ("value", "difference") and not number.per:
        factor, name = words.scale("s", sizes)
        return factor, f" {name}"
    return 1.0, ""


def places(mean: float, low: float, high: float) -> int:
    """The decimals of a mean: no more than its interval supports."""
    own = words.decimals([mean])
    return min(own, words.decimals([high - low], 2)) if math.isfinite(low) and low < high else own


def mean_text(number: Number, estimate: Estimate | None) -> str:
    """The mean of a number in its unit: `46 %`."""
    if estimate is None:
        return "-"
    factor, name = unit(number, [estimate.mean])
    mean, low, high = estimate.mean / factor, estimate.low / factor, estimate.high / factor
    return f"{mean:.{places(mean, low, high)}f}{name}"
