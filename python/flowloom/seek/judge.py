"""Judges claims at a place: their numbers, whether they hold, and by how much they are missed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flowloom.api.results import Results
from flowloom.papers.claims import Claim
from flowloom.runs import numbers
from flowloom.runs.data import Data
from flowloom.runs.numbers import Sample
from flowloom.seek.settings import Place
from flowloom.seek.study import Judgement, Study

FAR = 3.0
"""The number of tolerances beyond which the distance of a number from its bounds no longer matters."""


@dataclass(frozen=True)
class Seen:
    """A claim at a place."""

    number: float
    """The mean over seeds at the swept values at which the claim is missed most; NaN if the claim
    has no number.
    """
    holds: bool
    margin: float
    """The number of tolerances by which the number is inside the nearest bound; negative outside."""

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return math.isfinite(self.number)

    @property
    def misfit(self) -> float:
        """The number of tolerances by which the claim is missed; 0 if it holds."""
        return min(max(-self.margin, 0.0), FAR)


@dataclass(frozen=True)
class Visit:
    """A place with the claims that were judged there."""

    place: Place
    stage: str
    """`design`: one of the places that fill the space evenly; `usual`: the usual values; `refine`:
    a place of the optimiser.
    """
    seen: Mapping[str, Seen]
    """The claims by name, without those whose scenario was not run."""

    def knows(self, judgement: Judgement) -> bool:
        """Returns whether a claim has a number."""
        return judgement.id in self.seen and self.seen[judgement.id].known

    def held(self, judgements: Sequence[Judgement]) -> int:
        """Returns how many of the claims hold."""
        return sum(1 for one in judgements if one.id in self.seen and self.seen[one.id].holds)

    def misfit(self, judgements: Sequence[Judgement]) -> float:
        """Returns by how many tolerances the claims are missed, in total."""
        return sum(self.seen[one.id].misfit for one in judgements if one.id in self.seen)

    def margin(self, judgements: Sequence[Judgement]) -> float:
        """Returns how many tolerances the claims are inside their nearest bound, at least."""
        return min((self.seen[one.id].margin for one in judgements if one.id in self.seen), default=-FAR)


def scale(claim: Claim) -> float:
    """Returns one tolerance of a claim: half the distance between its bounds, or the size of its
    single bound.
    """
    low, high = claim.bounds
    if math.isfinite(low) and math.isfinite(high):
        return (high - low) / 2 or abs(high) or 1.0
    return abs(low if math.isfinite(low) else high) or 1.0


NOTHING = Seen(math.nan, False, -FAR)
"""A claim without a number."""


def seen(claim: Claim, found: Sequence[float | None]) -> Seen:
    """Judges a claim by its numbers at all its swept values: the number that misses the claim most
    decides. A claim that is not missed has no number if it has none at one of its swept values.
    """
    low, high = claim.bounds
    judged = []
    for number in found:
        if number is None or not math.isfinite(number):
            judged.append(NOTHING)
            continue
        margin = min(number - low, high - number) / scale(claim)
        judged.append(Seen(number, margin >= 0 and not (claim.more_than is not None and number == low), margin))
    known = [one for one in judged if one.known]
    worst = min(known, key=lambda one: (one.margin, one.holds), default=NOTHING)
    return NOTHING if worst.holds and len(known) < len(judged) else worst


def judge(study: Study, judgements: Sequence[Judgement], results: Mapping[str, Results]) -> dict[str, Seen]:
    """Judges claims on the results of a place, by scenario."""
    data: dict[str, Data] = {**results}
    data |= {figure: results[scenario] for figure, scenario in study.figures.items() if scenario in results}
    computed: dict[str, float | Sample] = {}
    if study.paper and any(one.claim.kind in numbers.COMPUTED for one in judgements):
        module = study.paper.drawings()
        if hasattr(module, "measured"):
            computed = module.measured(data)
    return {
        one.id: seen(one.claim, [f.estimate.mean if f.estimate else None for f in numbers.find(one.claim, data, computed)])
        for one in judgements
        if one.scenarios <= set(results)
    }
