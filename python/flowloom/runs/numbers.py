"""Numbers of a paper's results: the kinds of numbers that claims are judged on, with one value per seed."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, Self

from flowloom import _core
from flowloom.base import words
from flowloom.base.errors import InputError, KeyRefusedError
from flowloom.runs.data import Data, Run, Value, matches, mean, plain


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its 95 % confidence interval; unbounded for a single seed."""

    mean: float
    low: float
    high: float
    seeds: int

    @classmethod
    def of(cls, sample: Sequence[float]) -> Estimate:
        """Returns the estimate for one value per seed."""
        mean, interval = _core.estimate(sample)
        if mean is None:
            raise InputError("an estimate needs at least one value")
        low, high = interval or (-math.inf, math.inf)
        return cls(mean, low, high, len(sample))

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """Returns the estimate of a number that does not depend on seeds."""
        return cls(value, value, value, 0)


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number of a paper's results. Explanations can quote it by its id."""

    id: str
    figure: str
    kind: str
    """One of `KINDS`."""
    metric: str
    scenario: str = ""
    """The figure whose results it is taken from, if other than `figure`."""
    system: str = ""
    versus: str = ""
    systems: Sequence[str] = ()
    at: Mapping[str, Any] = field(default_factory=dict)
    """Swept values by key. With a list, the number is found at each of its values; with `"all"`, at
    every value that was run, unless one of them is called `all`.
    """
    over: str = ""
    per: str = ""
    than: str = ""
    needs: Sequence[str] = ()
    """Other figures whose results a measured number needs."""
    take: str = ""
    """`"largest"` or `"smallest"`: takes only this value of all that `at` asks for, as for "up to 31 %"."""

    @property
    def asks(self) -> str:
        """A short hash of the number's definition: it changes when a number with the same id is defined anew."""
        asked = [getattr(self, f.name) for f in fields(Number) if f.name != "id"]
        return _core.content_hash(json.dumps(asked, sort_keys=True).encode())[:8]

    @property
    def figures(self) -> list[str]:
        """The figures whose results it is taken from."""
        return [self.scenario or self.figure, *self.needs, *([self.than] if self.kind == "contrast" else [])]

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Reads a number or claim from its table in `claims.toml`. Raises `KeyRefusedError` for unknown
        keys and kinds, and for keys that the kind lacks or that have no effect on it.
        """
        known = {f.name for f in fields(cls)}
        needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
        name = f"{cls.__name__.lower()} `{table.get('id', '?')}`"
        for key in sorted(set(table) - known):
            raise KeyRefusedError.unknown(key, name, "key", key, sorted(known))
        for key in sorted(needed - set(table)):
            raise KeyRefusedError(key, f"{name} lacks `{key}`", f"needs `{key}`", f"add `{key}`")
        for f in fields(cls):
            kinds, what = TYPES.get(str(f.type), (object, ""))
            if f.name in table and not isinstance(table[f.name], kinds):
                raise KeyRefusedError(f.name, f"{name}: `{f.name}` is not {what}", f"must be {what}", f"write {what}")
        found = cls(**table)
        if found.kind not in KINDS:
            raise KeyRefusedError.unknown("kind", name, "kind of claim", found.kind, list(KINDS))
        KINDS[found.kind].refuse(found.kind, name, table)
        if found.take not in ("", *TAKEN):
            raise KeyRefusedError.unknown("take", name, "value of `take`", found.take, list(TAKEN))
        return found


TYPES: dict[str, tuple[Any, str]] = {
    "str": (str, "a text in quotes"),
    "Sequence[str]": ((list, tuple), "a list of texts"),
    "Mapping[str, Any]": (Mapping, "a table"),
    "bool": (bool, "`true` or `false`"),
    "int": (int, "a whole number"),
}
"""The values of keys by the types of their fields, with their names in messages."""

TAKEN: dict[str, Callable[[Iterable[float]], float]] = {"largest": max, "smallest": min}
"""How `take` picks one of several values of a number."""

BEYOND = 100
"""The number of flows, over all seeds, that must lie beyond a 99.9th percentile for a verdict."""


# The kinds of numbers: each returns one value per seed at one set of swept values.

Sample = dict[int, float]
"""One number per seed."""

Measure = Callable[[Data, Run], float]
"""Returns a number of one point, in its base unit; NaN if the point has none."""

Curves = Mapping[str, Mapping[float, Sample]]
"""Numbers by seed, by curve (mostly a system) and by place on the axis."""


class Points:
    """The points of results, with their numbers by seed. The results of several scenarios make one
    sweep.

    Keys are named by their last words. `fixed` holds the values of keys for results that do not
    sweep them.
    """

    def __init__(self, *results: Data, **fixed: Value) -> None:
        self.results = results
        self.fixed = fixed
        self.systems = list(dict.fromkeys(system for one in results for system in one.systems))

    def values(self, key: str) -> list[Value]:
        """Returns the values of a swept key, sorted."""
        found = {value for one in self.results for run in one.runs for value in self._values(run, key)} - {None}
        return sorted(found, key=words.sorting)

    def numbers(self, key: str) -> list[float]:
        """Returns the values of a swept key that are numbers."""
        return [value for value in self.values(key) if isinstance(value, float)]

    def places(self, at: Mapping[str, Any]) -> list[dict[str, Value]]:
        """Returns all combinations of the values asked for that were run."""
        found: list[dict[str, Value]] = [{}]
        for key, wanted in at.items():
            have = self.values(key)
            everything = wanted == "all" and "all" not in have
            asked = have if everything else [plain(v) for v in (wanted if isinstance(wanted, list) else [wanted])]
            # A key that is not swept has the same value at all points and is left out.
            if not have:
                continue
            found = [place | {key: value} for place in found for value in asked if value in have]
        return found

    def runs(self, system: str, /, **at: object) -> list[tuple[Data, Run]]:
        """Returns the points of a system where keys have given values. Results that do not sweep a
        key are not restricted by it.
        """

        def fits(run: Run) -> bool:
            here = {key: self._values(run, key) for key in at}
            return all(not here[key] or plain(value) in here[key] for key, value in at.items())

        return [(one, run) for one in self.results for run in one.runs if run.system == system and fits(run)]

    def _values(self, run: Run, key: str) -> list[Value]:
        """Returns the values of the keys that `key` names at a point; none if the results have no such key."""
        swept = [value for name, value in run.keys.items() if matches(name, key)]
        return swept or ([self.fixed[key]] if key in self.fixed else [])

    def sample(self, system: str, what: str | Measure, /, **at: object) -> Sample:
        """Returns a metric of a system, or another number of its points, by seed, where keys have
        given values.
        """
        found: Sample = {}
        for one, run in self.runs(system, **at):
            number = one.metric(run, what) if isinstance(what, str) else what(one, run)
            if number is None or math.isnan(number):
                continue
            if run.seed in found:
                raise InputError(f"more than one point of `{system}` fits {at}\nhint: name more keys in `at`")
            found[run.seed] = float(number)
        return found

    def curves(self, what: str | Measure, along: str, systems: Sequence[str] = (), /, **at: object) -> Curves:
        """Returns the numbers that `sample` returns by system and by value of the key `along`,
        where the system was run.
        """
        found: dict[str, dict[float, Sample]] = {system: {} for system in systems or self.systems}
        for system, points in found.items():
            for x in self.numbers(along):
                here = {**at, along: x}
                if self.runs(system, **here):
                    points[x] = self.sample(system, what, **here)
        return found


def combined(samples: Sequence[Sample], combine: Callable[[Sequence[float]], float]) -> Sample:
    """Combines samples seed by seed. Leaves out a seed that a sample lacks, or for which `combine`
    divides by zero.
    """
    found: Sample = {}
    for seed in sorted(set.intersection(*(set(sample) for sample in samples))) if samples else ():
        try:
            found[seed] = combine([sample[seed] for sample in samples])
        except ZeroDivisionError:
            continue
    return found


def quotient(a: Sample, b: Sample) -> Sample:
    """Divides a sample by another one, seed by seed."""
    return combined([a, b], lambda pair: pair[0] / pair[1])


def minus(a: Sample, b: Sample) -> Sample:
    """Subtracts a sample from another one, seed by seed."""
    return combined([a, b], lambda pair: pair[0] - pair[1])


def relative(curves: Curves, base: str) -> Curves:
    """Divides all other curves by the curve `base`, seed by seed."""
    return {
        name: {x: quotient(sample, curves[base].get(x, {})) for x, sample in points.items()}
        for name, points in curves.items()
        if name != base
    }


def average(sample: Sample) -> float:
    """Returns the mean over seeds; NaN without seeds."""
    return mean(list(sample.values())) if sample else math.nan


def of(number: Number, points: Points, system: str, at: Mapping[str, Value]) -> Sample:
    """Returns the number's metric of a system, divided by the metric `per` if it is given."""
    sample = points.sample(system, number.metric, **at)
    return quotient(sample, points.sample(system, number.per, **at)) if number.per else sample


def value(number: Number, points: Points, at: Mapping[str, Value]) -> Sample:
    """Returns the metric of the number's system."""
    return of(number, points, number.system, at)


def ratio(number: Number, points: Points, at: Mapping[str, Value]) -> Sample:
    """Divides the system's metric by that of `versus`."""
    return quotient(of(number, points, number.system, at), of(number, points, number.versus, at))


def reduction(number: Number, points: Points, at: Mapping[str, Value]) -> Sample:
    """Returns by how much the system's metric is smaller than that of `versus`, as a share of the latter."""
    return {seed: 1 - r for seed, r in ratio(number, points, at).items()}


def increase(number: Number, points: Points, at: Mapping[str, Value]) -> Sample:
    """Returns by how much the system's metric is larger than that of `versus`, as a share of the latter."""
    return {seed: r - 1 for seed, r in ratio(number, points, at).items()}


def difference(number: Number, points: Points, at: Mapping[str, Value]) -> Sample:
    """Subtracts the metric of `versus` from that of the system."""
    return minus(of(number, points, number.system, at), of(number, points, number.versus, at))


def spread(number: Number, points: Points, at: Mapping[str, Value]) -> Sample:
    """Returns by how much the largest of several systems exceeds the smallest, as a share of the smallest."""
    samples = [of(number, points, system, at) for system in number.systems]
    return combined(samples, lambda sizes: max(sizes) / min(sizes) - 1)


def growth(number: Number, points: Points, at: Mapping[str, Value]) -> Sample:
    """Returns how a gap between two systems grows along the key `over`: the slope of a straight
    line through the gaps.
    """
    gap = {"reduction": reduction, "increase": increase, "difference": difference}[number.than or "reduction"]
    values = points.values(number.over)
    places = words.literals(values)[0]
    if places is None or len(places) < 2:
        return {}
    gaps = [gap(number, points, {**at, number.over: v}) for v in values]
    return combined(gaps, lambda sizes: statistics.linear_regression(places, sizes).slope)


SELECTING = ("system", "versus", "systems", "over", "than", "needs", "at", "per", "take")
"""The keys that select what a number is computed from. Each has an effect only on some kinds."""


@dataclass(frozen=True)
class Kind:
    """A kind of numbers."""

    measure: Callable[[Number, Points, Mapping[str, Value]], Sample] | None
    """Computes the number from metrics; `None` if the paper's `figures.py` does."""
    needs: Sequence[Sequence[str]]
    """The keys that it needs. Each list names alternatives: exactly one of them must be given."""
    takes: Sequence[str] = ("at", "per", "take")
    """Other keys that have an effect on it."""

    def refuse(self, kind: str, name: str, table: Mapping[str, Any]) -> None:
        """Raises `KeyRefusedError` if a number with these keys lacks a key, or has one without effect."""
        for alternatives in self.needs:
            given = [key for key in alternatives if table.get(key)]
            if len(given) != 1:
                wanted = " or ".join(f"`{key}`" for key in alternatives)
                why = f"{name} needs {wanted}{', not both' if given else ''}: its kind is `{kind}`"
                raise KeyRefusedError(alternatives[0], why, f"needs {wanted}", f"write {wanted}, or another `kind`")
        known = {*(key for alternatives in self.needs for key in alternatives), *self.takes}
        for key in SELECTING:
            if key in table and key not in known:
                why = f"{name}: `{key}` has no effect on a number of kind `{kind}`"
                raise KeyRefusedError(key, why, "not used", f"remove `{key}`, or write another `kind`")


_PAIR = (("system",), ("versus",))
_SEVERAL = (("systems",),)

KINDS: dict[str, Kind] = {
    "value": Kind(value, [("system", "systems")]),
    "ratio": Kind(ratio, _PAIR),
    "reduction": Kind(reduction, _PAIR),
    "increase": Kind(increase, _PAIR),
    "difference": Kind(difference, _PAIR),
    "spread": Kind(spread, _SEVERAL),
    "growth": Kind(growth, [*_PAIR, ("over",)], ("than", "at", "per", "take")),
    # Computed by `samples`: they need more than one set of results or more than one pair of systems.
    "contrast": Kind(reduction, [*_PAIR, ("than",)]),
    "order": Kind(ratio, _SEVERAL),
    "exact": Kind(None, [], ()),
    "measured": Kind(None, [], ("needs",)),
}
"""The kinds of numbers.

`value`: a system's metric. `ratio`, `reduction`, `increase`, `difference`: a system against
`versus`. `spread`: among `systems`. `order`: each of `systems` against the one before it, as a
ratio. `growth`: the slope of a gap (`than` names it) along `over`. `contrast`: the reduction in
these results minus the reduction in the results of the figure that `than` names.

The paper's `figures.py` computes two kinds. `exact`: one number without chance, such as the example
on one link. `measured`: one number per seed, taken from time series or packets.
"""

COMPUTED = tuple(name for name, kind in KINDS.items() if kind.measure is None)
"""The kinds of numbers that the paper's `figures.py` computes."""


@dataclass(frozen=True)
class Found:
    """A number at one set of swept values."""

    where: str
    estimate: Estimate | None
    reason: str = ""
    """Why there is no estimate, or why the estimate does not allow a verdict."""


NOT_RUN = "not run"
"""The reason of a number whose results are missing."""


def find(number: Number, figures: Mapping[str, Data], computed: Mapping[str, float | Sample] | None = None) -> list[Found]:
    """Finds a number in the results of the figures that were run. `computed` holds the numbers of
    `COMPUTED` kinds by `metric`.
    """
    if number.kind in COMPUTED:
        known = (computed or {}).get(number.metric)
        if known is None:
            return [Found("", None, "not computed" if number.kind == "exact" or number.figures[0] in figures else NOT_RUN)]
        return [Found("", Estimate.of(list(known.values())) if isinstance(known, dict) else Estimate.exact(known))]
    results = figures.get(number.scenario or number.figure)
    if results is None:
        return [Found("", None, NOT_RUN)]
    points = Points(results)
    found = []
    for where, at, sample in samples(number, points, figures):
        name = ", ".join(filter(None, [where, *(f"{words.key(k)} {words.number(v)}" for k, v in at.items())]))
        estimate = Estimate.of(list(sample.values())) if sample else None
        found.append(Found(name, estimate, thin(number, points, at) if sample else "no value"))
    means = {one.estimate.mean: one for one in found if one.estimate is not None}
    if number.take and means:
        return [means[TAKEN[number.take](means)]]
    return found or [Found("", None, "not run at these values")]


def thin(number: Number, points: Points, at: Mapping[str, Value]) -> str:
    """Returns why a 99.9th percentile rests on too few flows; empty if it does not, or if the
    metric is none.
    """
    if not number.metric.startswith("p999_"):
        return ""
    flows: dict[tuple[str, tuple[Value, ...]], float] = {}
    for system in number.systems or [name for name in (number.system, number.versus) if name]:
        for one, run in points.runs(system, **at):
            place = (system, tuple(run.keys.values()))
            flows[place] = flows.get(place, 0.0) + (one.metric(run, "flows") or 0.0)
    beyond = min((int(one) // 1000 for one in flows.values()), default=0)
    if beyond >= BEYOND:
        return ""
    return f"{words.counted(beyond, 'flow')} beyond the percentile over all seeds, {BEYOND} needed"


def samples(number: Number, points: Points, figures: Mapping[str, Data]) -> Iterable[tuple[str, Mapping[str, Value], Sample]]:
    """Yields the samples of a number: a description, the swept values, and one value per seed."""
    for at in points.places(number.at):
        if number.kind == "order":
            for smaller, larger in zip(number.systems, number.systems[1:], strict=False):
                pair = quotient(of(number, points, larger, at), of(number, points, smaller, at))
                yield f"{larger} / {smaller}", at, pair
        elif number.kind == "contrast":
            other = figures.get(number.than)
            there = {} if other is None else reduction(number, Points(other), at)
            yield "", at, minus(reduction(number, points, at), there)
        elif number.kind == "value" and number.systems:
            for system in number.systems:
                yield system, at, of(number, points, system, at)
        else:
            measure = KINDS[number.kind].measure
            assert measure is not None, f"`{number.kind}` is not computed from metrics"
            yield "", at, measure(number, points, at)


# Words


_SHARES = ("reduction", "increase", "spread", "contrast")


def unit(number: Number, sizes: Sequence[float]) -> tuple[float, str]:
    """Returns the unit of a number: its size, and the text after the number."""
    if number.kind in _SHARES:
        return 0.01, " %"
    if number.kind == "growth" and number.than != "difference":
        return 0.01, f" % per unit of {number.over}"
    base = number.metric.rpartition("_")[2]
    if base in ("s", "bps", "bytes") and number.kind in ("value", "difference") and not number.per:
        factor, name = words.scale(base, sizes)
        return factor, f" {name}"
    return 1.0, ""


def places(mean: float, low: float, high: float) -> int:
    """Returns the decimals of a mean: no more than its interval supports."""
    own = words.decimals([mean])
    return min(own, words.decimals([high - low], 2)) if math.isfinite(low) and low < high else own


def mean_text(number: Number, estimate: Estimate | None) -> str:
    """Returns the mean of a number in its unit: `46 %`."""
    if estimate is None:
        return "-"
    factor, name = unit(number, [estimate.mean])
    mean, low, high = estimate.mean / factor, estimate.low / factor, estimate.high / factor
    return f"{mean:.{places(mean, low, high)}f}{name}"
