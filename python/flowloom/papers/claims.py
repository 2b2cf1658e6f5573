"""The claims of a paper, judged on the numbers of its results."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

from flowloom.base import words
from flowloom.base.errors import InputError, KeyRefusedError
from flowloom.runs import numbers
from flowloom.runs.data import Data
from flowloom.runs.numbers import Estimate, Found, Number, Sample

RULES = """\
A claim names a metric, one or more systems, the swept values for which it holds, and the bounds of a number.
Numbers that compare systems are computed per seed, since all systems of a scenario serve the same flows, and then averaged;
the 95 % interval of the average is Student's t over the seeds. A claim is met if the whole interval is within the bounds,
and not met if the whole interval is outside. Otherwise it is undecided. It is also undecided if there are fewer seeds than
the claim requires, and if it is on a 99.9th percentile beyond which fewer than 100 flows lie, over all seeds.
"""
"""The rules for verdicts, for the pages of the papers."""

MET, NOT_MET, UNDECIDED = "met", "not met", "undecided"

PAPER_SOURCES = ("text", "figure")
"""The sources of claims of the paper: its text, or a figure or the range of an axis."""

SOURCES = (*PAPER_SOURCES, "calibrated", "ours")
"""All sources of claims. A claim is `calibrated` if its settings or bounds were chosen after its
outcome was known, and `ours` if the paper does not make it or does not have its experiment.
"""


@dataclass(frozen=True, kw_only=True)
class Claim(Number):
    """A claim of a paper."""

    quote: str
    """The paper's words, shortened, or a description of its figure."""
    printed: str
    """The paper's number as printed, or "-"."""
    says: str = ""
    """The claim in our words; if empty, the quote."""
    source: str = "text"
    """The source of the claim, one of `SOURCES`."""
    within: Sequence[float | str] = ()
    at_least: float | str | None = None
    more_than: float | str | None = None
    """Like `at_least`, but the bound itself does not meet the claim."""
    at_most: float | str | None = None
    rule: str = ""
    """Why these bounds were chosen."""
    seen: str = ""
    """The results that were known when the bounds or settings were chosen; empty: none."""
    changed: str = ""
    """What has changed since a result was known, a rule or a setting, and the number before; empty: nothing."""
    min_seeds: int = 3
    headline: bool = False
    """Whether the claim is one of the paper's main claims."""
    trivial: str = ""
    """Why the claim cannot fail, or follows from arithmetic; then it is shown but not counted.
    Empty: it can fail.
    """
    explanation: str = ""
    """Why the claim is not met, for readers of the page. `{id}` is a number of the results; see `filled`."""

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Reads a claim from its table in `claims.toml`. Raises `KeyRefusedError` as `Number.read`
        does, and for unknown sources and wrong bounds.
        """
        claim = super().read(table)
        name = f"claim `{claim.id}`"
        if claim.source not in SOURCES:
            raise KeyRefusedError.unknown("source", name, "source of claims", claim.source, SOURCES)
        given = [key for key in BOUNDS if key in table]
        for key in given:
            pair = key == "within"
            value = table[key]
            if pair and not (isinstance(value, list) and len(value) == 2):
                raise KeyRefusedError(
                    key, f"{name}: `{value}` is not a list of two numbers", "must be two numbers", "write `within = [0.4, 0.6]`"
                )
            for one in value if pair else [value]:
                try:
                    number_of(one)
                except (ValueError, TypeError):
                    raise KeyRefusedError(
                        key, f"{name}: `{one}` is not a number", "must be a number", 'write a number, like `0.8` or `"1/3"`'
                    ) from None
        if ("within" in given and len(given) > 1) or {"at_least", "more_than"} <= set(given):
            hint = "give `within`, or a lower bound, an upper bound, or both"
            raise KeyRefusedError(given[1], f"{name}: `{given[1]}` cannot be combined with `{given[0]}`", "not used", hint)
        low, high = claim.bounds
        if low > high:
            raise KeyRefusedError(
                given[-1], f"{name}: no number is within its bounds, {low:g} and {high:g}", "empty", "write the smaller bound first"
            )
        if not given:
            hint = "give `within`, `at_least`, `more_than` or `at_most`"
            raise KeyRefusedError("at_least", f"{name} has no bounds", "needs bounds", hint)
        return claim

    @property
    def counts(self) -> bool:
        """Whether the claim counts as one of the paper's numbers."""
        return self.source in PAPER_SOURCES and not self.trivial

    @property
    def bounds(self) -> tuple[float, float]:
        """The smallest and the largest value that meet the claim."""
        low, high = -math.inf, math.inf
        if self.within:
            low, high = map(number_of, self.within)
        for least in (self.at_least, self.more_than):
            if least is not None:
                low = number_of(least)
        if self.at_most is not None:
            high = number_of(self.at_most)
        return low, high


BOUNDS = ("within", "at_least", "more_than", "at_most")
"""The keys of the bounds of a claim."""


def number_of(bound: float | str) -> float:
    """Returns a bound as a number: `0.8`, `"1/3"`. Raises `InputError` for other values."""
    try:
        found = float(bound) if isinstance(bound, float) else float(Fraction(str(bound)))
    except (ZeroDivisionError, OverflowError):
        found = math.nan
    if isinstance(bound, bool) or not math.isfinite(found):
        raise InputError(f"`{bound}` is not a number")
    return found


@dataclass(frozen=True)
class Part:
    """A claim at one set of swept values."""

    found: Found
    verdict: str
    reason: str = ""
    """Why the part is undecided."""


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and its numbers."""

    claim: Claim
    verdict: str
    parts: Sequence[Part]

    @property
    def worst(self) -> Part:
        """The part that decides: the first that is not met, else the first undecided, else the part closest to its bound."""

        def order(part: Part) -> tuple[int, float]:
            low, high = self.claim.bounds
            e = part.found.estimate
            margin = math.inf if e is None else min(e.mean - low, high - e.mean)
            return (NOT_MET, UNDECIDED, MET).index(part.verdict), margin

        return min(self.parts, key=order)

    @property
    def reason(self) -> str:
        """Why the claim is undecided."""
        return self.worst.reason


def judge_estimate(claim: Claim, estimate: Estimate) -> tuple[str, str]:
    """Returns the verdict on one number, and the reason if it is undecided."""
    low, high = claim.bounds
    if 0 < estimate.seeds < claim.min_seeds:
        return UNDECIDED, f"{words.counted(estimate.seeds, 'seed')}, {claim.min_seeds} needed"
    if claim.min_seeds == 1 and estimate.seeds == 1:
        estimate = Estimate.exact(estimate.mean)  # the scenario has no random numbers
    touches = claim.more_than is not None
    if (low < estimate.low or (low == estimate.low and not touches)) and estimate.high <= high:
        return MET, ""
    if estimate.high < low or estimate.low > high or (touches and estimate.high == low):
        return NOT_MET, ""
    return UNDECIDED, "the bound is inside the interval"


def combined(verdicts: Iterable[str]) -> str:
    """Returns the verdict on a claim from those on its parts: `met` if all are, `not met` if one is
    not met, otherwise `undecided`.
    """
    found = list(verdicts)
    if NOT_MET in found:
        return NOT_MET
    return MET if found and all(v == MET for v in found) else UNDECIDED


IN_PART = "in part"
"""The verdict on a sentence if some of its numbers are met and some are not."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a paper with the claims on its numbers."""

    quote: str
    judged: Sequence[Judged]

    @property
    def headline(self) -> bool:
        """Whether a claim of the sentence is one of the paper's main claims."""
        return any(j.claim.headline for j in self.judged)

    @property
    def counted(self) -> list[Judged]:
        """The claims that can fail; all claims if none can fail."""
        return [j for j in self.judged if not j.claim.trivial] or list(self.judged)

    @property
    def counts(self) -> bool:
        """Whether the sentence is from the paper and can fail."""
        return any(j.claim.counts for j in self.judged)

    @property
    def whose(self) -> str:
        """The prefix of the verdict of a sentence that is not from the paper: `calibrated` or
        `ours`; otherwise empty.
        """
        source = self.judged[0].claim.source
        return "" if source in PAPER_SOURCES else source

    @property
    def verdict(self) -> str:
        """The verdict on the sentence.

        `met`, `not met` or `undecided` if it is that of all numbers that count; `in part` if some
        are met and some not. Otherwise `undecided` if some are met, and `not met` if none is.
        """
        verdicts = {j.verdict for j in self.counted}
        if len(verdicts) == 1:
            return verdicts.pop()
        return IN_PART if MET in verdicts and NOT_MET in verdicts else UNDECIDED if MET in verdicts else NOT_MET


def sentences(judged: Iterable[Judged]) -> list[Sentence]:
    """Groups claims by the sentence of the paper that they judge: headlines first, otherwise in the
    given order.

    Claims of the paper, calibrated claims and our own claims are never in the same group.
    """
    found: dict[tuple[str, str], list[Judged]] = {}
    for j in judged:
        whose = "paper" if j.claim.source in PAPER_SOURCES else j.claim.source
        found.setdefault((j.claim.quote, whose), []).append(j)
    return sorted((Sentence(quote, those) for (quote, _), those in found.items()), key=lambda one: not one.headline)


def judge(claim: Claim, figures: Mapping[str, Data], computed: Mapping[str, float | Sample] | None = None) -> Judged:
    """Judges a claim on the results of the figures that were run. `computed` holds the numbers of
    computed claims by `metric`.
    """
    return verdict(claim, numbers.find(claim, figures, computed))


def verdict(claim: Claim, found: Sequence[Found]) -> Judged:
    """Judges a claim on its numbers."""
    parts = []
    for one in found:
        word, reason = (UNDECIDED, one.reason) if one.estimate is None or one.reason else judge_estimate(claim, one.estimate)
        parts.append(Part(one, word, reason))
    return Judged(claim, combined(part.verdict for part in parts), parts)


QUOTED = re.compile(r"\{(?P<id>[a-z0-9-]+)(?: at (?P<where>[^{}]+))?\}")
"""Matches a number in an explanation: `{id}`, or `{id at load 0.3}` if it has several values."""


def filled(explanation: str, known: Mapping[str, tuple[Number, Sequence[Found]]]) -> str:
    """Fills the numbers into an explanation, each in its unit and without its interval; "-" for a
    missing number.

    Raises `ValueError` for a number that is not in `known`, and for a number with several values if
    none of them is named.
    """

    def one(quoted: re.Match[str]) -> str:
        if quoted["id"] not in known:
            raise InputError(f"there is no number `{quoted['id']}` for `{quoted[0]}`")
        number, found = known[quoted["id"]]
        there = [f for f in found if quoted["where"] in (None, f.where)]
        if len(there) > 1:
            places = ", ".join(f"`{f.where}`" for f in found)
            raise InputError(f"`{quoted[0]}` has several values\nhint: name one of {places}")
        return numbers.mean_text(number, there[0].estimate if there else None)

    return QUOTED.sub(one, explanation)


# Words


def text(claim: Claim, estimate: Estimate | None) -> str:
    """Returns a number with its interval, in the claim's unit: `46.1 % [41.0, 51.2]`."""
    mean = numbers.mean_text(claim, estimate)
    if estimate is None or estimate.low == estimate.high:
        return mean
    if not math.isfinite(estimate.low):
        return mean + (" (one seed)" if claim.min_seeds > 1 else "")
    factor, _ = numbers.unit(claim, [estimate.mean])
    low, high = estimate.low / factor, estimate.high / factor
    places = numbers.places(estimate.mean / factor, low, high)
    return f"{mean} [{low:.{places}f}, {high:.{places}f}]"


def bound_text(claim: Claim) -> str:
    """Returns the claim's bounds in its unit."""
    low, high = claim.bounds
    factor, name = numbers.unit(claim, [b for b in (low, high) if math.isfinite(b)])

    def one(bound: float) -> str:
        return f"{bound / factor:.4g}"

    if low == high:
        return f"= {one(low)}{name}"
    if math.isinf(high):
        return f"{'>' if claim.more_than is not None else '≥'} {one(low)}{name}"
    return f"≤ {one(high)}{name}" if math.isinf(low) else f"{one(low)} to {one(high)}{name}"
