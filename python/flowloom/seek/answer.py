"""The answer of a search: the share of the space in which claims hold, where they hold together,
and which settings decide.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from flowloom.base import words
from flowloom.papers import claims
from flowloom.runs import numbers
from flowloom.runs.tables import Table
from flowloom.seek.judge import Visit
from flowloom.seek.study import Judgement, Study

Array = npt.NDArray[np.float64]

TRUSTED = 0.5
"""The share of the variance at unseen places that a surrogate must explain for its indices to be used."""

SMOOTHING = (0.0, 1e-3, 1e-2, 1e-1, 1.0)
"""The smoothings of the surrogate that are tried."""

CELLS = 4
"""The number of parts of each setting; pairs of settings must have places in all combinations of their parts."""

DRAWN = 2048
"""The number of places at which a surrogate is evaluated for indices."""


@dataclass(frozen=True)
class Share:
    """A share of the space, estimated from the places of the design."""

    held: int
    of: int

    @property
    def mean(self) -> float:
        """The share."""
        return self.held / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share (Wilson)."""
        if not self.of:
            return math.nan, math.nan
        z, n, p = 1.959964, self.of, self.mean
        middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return max((middle - half) / (1 + z * z / n), 0.0), min((middle + half) / (1 + z * z / n), 1.0)

    def __str__(self) -> str:
        """Returns the share with its interval: `41 % [29, 53]`; `under 6 %` if it is none of the places."""
        if not self.of:
            return "-"
        low, high = self.interval
        if not self.held:
            return f"under {100 * high:.0f} %"
        return f"{100 * self.mean:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"


@dataclass(frozen=True)
class Answer:
    """The answer of a search."""

    study: Study
    visits: Sequence[Visit]
    note: str = ""

    @cached_property
    def design(self) -> list[Visit]:
        """The visits that fill the space evenly."""
        return [visit for visit in self.visits if visit.stage == "design"]

    @cached_property
    def searched(self) -> list[Visit]:
        """All visits except that of the usual values."""
        return [visit for visit in self.visits if visit.stage != "usual"]

    @property
    def usual(self) -> Visit | None:
        """The visit of the usual values."""
        return next((visit for visit in self.visits if visit.stage == "usual"), None)

    @cached_property
    def fitted(self) -> list[Judgement]:
        """The claims that are searched for and have a number at some place."""
        return [one for one in self.study.fitted if any(visit.knows(one) for visit in self.searched)]

    @cached_property
    def most(self) -> int:
        """The largest number of fitted claims that hold together."""
        return max((visit.held(self.fitted) for visit in self.searched), default=0)

    @cached_property
    def region(self) -> list[Visit]:
        """The visits at which `most` fitted claims hold."""
        return [visit for visit in self.searched if visit.held(self.fitted) == self.most]

    def at_all(self, judgement: Judgement) -> bool:
        """Returns whether a claim is judged at all places, and not only at the best ones."""
        return judgement.scenarios <= set(self.study.searched)

    def share(self, judgement: Judgement) -> Share:
        """Returns the share of the space in which a claim holds, among the places at which it has a
        number; of no places for a claim that is judged only at the best places.
        """
        there = [visit for visit in self.design if self.at_all(judgement) and visit.knows(judgement)]
        return Share(sum(visit.seen[judgement.id].holds for visit in there), len(there))

    def without(self, judgement: Judgement) -> int:
        """Returns at how many places of the design a claim has no number, of those at which it was judged."""
        return sum(judgement.id in visit.seen and not visit.knows(judgement) for visit in self.design)

    def together(self) -> Share:
        """Returns the share of the space in which the largest number of fitted claims hold together,
        among the places at which all of them have a number.
        """
        there = [visit for visit in self.design if all(visit.knows(one) for one in self.fitted)]
        return Share(sum(visit.held(self.fitted) == self.most for visit in there), len(there))

    def there(self, judgement: Judgement) -> Share:
        """Returns at how many places of the region a claim holds, of those at which it has a number."""
        judged = [visit for visit in self.region if visit.knows(judgement)]
        return Share(sum(visit.seen[judgement.id].holds for visit in judged), len(judged))

    def best(self) -> Visit:
        """Returns the visit of the region that is nearest to all claims, and among equals the one
        furthest inside their bounds.
        """
        fitted = self.fitted
        return min(self.region, key=lambda visit: (visit.misfit(fitted), -visit.margin(fitted), visit.place.values))

    @cached_property
    def indices(self) -> dict[str, list[float] | None]:
        """By claim, the share of the variance of its number that each setting explains by itself;
        `None` if unknown.
        """
        return {one.id: self.first_order(one) for one in self.study.judgements}

    def first_order(self, judgement: Judgement) -> list[float] | None:
        """Returns first-order indices (Sobol, 2001) of a surrogate of the claim's number; `None` if
        the surrogate is not accurate enough.
        """
        known = [visit for visit in self.searched if visit.knows(judgement)]
        x = np.array([encoded(self.study, visit.place.coordinates) for visit in known])
        y = np.array([visit.seen[judgement.id].number for visit in known])
        if len(known) < 3 * len(self.study.settings) or not np.ptp(y) > 0:
            return None
        low, high = np.quantile(y, [0.02, 0.98])
        model = surrogate(x, np.clip(y, low, high))
        if model is None:
            return None
        if len(self.study.settings) == 1:
            return [1.0]
        from scipy.stats import sobol_indices, uniform

        def at(coordinates: Array) -> Array:
            return np.asarray(model(np.array([encoded(self.study, row) for row in coordinates.T])))

        settings = len(self.study.settings)
        rng = np.random.default_rng(self.study.number("draw"))
        found = sobol_indices(func=at, n=DRAWN, dists=[uniform()] * settings, rng=rng)
        return [float(min(max(index, 0.0), 1.0)) for index in np.atleast_1d(found.first_order)]

    def decides(self, judgement: Judgement) -> str:
        """Returns the settings that explain most of a claim's number: `burst 0.71, buffer 0.12`."""
        found = self.indices[judgement.id]
        if found is None:
            return "-"
        order = sorted(zip(found, self.study.settings, strict=True), key=lambda pair: -pair[0])
        return ", ".join(f"{setting.name} {index:.2f}" for index, setting in order[:2] if index >= 0.05) or "no single setting"

    def claims_table(self) -> Table:
        """Returns the table with a row for each claim."""
        usual = self.usual
        missing = any(self.without(one) for one in self.study.judgements)
        rows = []
        for one in [*self.study.fitted, *self.study.kept_out]:
            here = None if usual is None else usual.seen.get(one.id)
            there = self.there(one)
            row = [one.id, "yes" if one.fit else "kept out", one.claim.printed, claims.bound_text(one.claim), str(self.share(one))]
            row += [str(self.without(one))] if missing else []
            row += [f"{there.held} of {there.of}" if there.of else "-"]
            best = self.best().seen.get(one.id)
            row += [number_text(one, best.number if best else math.nan)]
            row += [number_text(one, here.number if here else math.nan)] if usual else []
            rows.append([*row, self.decides(one)])
        head = ["claim", "searched for", "printed", "holds if", "share of the space [95 %]"]
        head += ["places without a number"] if missing else []
        head += ["holds in the region", "best place"]
        return Table([*head, *(["usual values"] if usual else []), "decided by"], rows, 2)

    def settings_table(self) -> Table:
        """Returns the table with a row for each setting."""
        best = self.best()
        rows = []
        for i, setting in enumerate(self.study.settings):
            if setting.choices:
                found = [choice for choice in setting.choices if any(v.place.values[i] == choice for v in self.region)]
                region = ", ".join(found)
            else:
                ordered = sorted(self.region, key=lambda visit: visit.place.coordinates[i])
                region = " to ".join(dict.fromkeys(setting.shown(v.place.values[i]) for v in (ordered[0], ordered[-1])))
            usual = setting.shown(setting.usual) if setting.usual is not None else "-"
            rows.append([setting.name, setting.whole, region, setting.shown(best.place.values[i]), usual, setting.source])
        return Table(["setting", "searched", "region", "best place", "usual", "source of the range"], rows, 6)

    def sentence(self) -> str:
        """Returns the answer in one or two sentences."""
        fitted = len(self.fitted)
        if not fitted:
            return f"No claim has a number at any of {words.counted(len(self.searched), 'place')}."
        unknown = [f"`{one.id}`" for one in self.study.fitted if one not in self.fitted]
        no_number = f" {words.joined(unknown)} {'has' if len(unknown) == 1 else 'have'} no number at any place." if unknown else ""
        if not self.most:
            return f"No claim holds at any of {words.counted(len(self.searched), 'place')}.{no_number}"
        which = {1: "the claim holds", 2: "both claims hold together"}.get(fitted, f"all {fitted} claims hold together")
        if self.most < fitted:
            which = f"at most {self.most} of {fitted} claims hold together"
        together, design = self.together(), len(self.design)
        text = f"{which} in {together} of the space"
        if together.of < design:
            text += f" (of {words.counted(together.of, 'place')} with a number for {'it' if fitted == 1 else 'all of them'})"
        if not together.held:
            text += f" (none of the {design} places of the design; {words.counted(len(self.region), 'place')} found by refinement)"
        if self.study.kept_out:
            judged = [one for one in self.study.kept_out if self.there(one).of]
            held = sum(self.there(one).mean > 0.5 for one in judged)
            text += f"; of {words.counted(len(judged), 'claim')} kept out {held} hold in most of that region"
        return text[0].upper() + text[1:] + "." + no_number

    def uncrossed(self) -> list[tuple[str, str]]:
        """Returns pairs of settings for which the design lacks some combination of their parts,
        although it has enough places.

        The first points of a Sobol sequence leave parts of some planes empty: there the effects of
        two settings cannot be separated.
        """
        settings, x = self.study.settings, np.array([visit.place.coordinates for visit in self.design])
        found = []
        for j, second in enumerate(settings):
            for i, first in enumerate(settings[:j]):
                parts = [min(s.levels or CELLS, CELLS) for s in (first, second)]
                counts = np.histogram2d(x[:, i], x[:, j], bins=parts, range=[[0, 1], [0, 1]])[0]
                if len(x) >= 2 * parts[0] * parts[1] and not counts.all():
                    found.append((first.name, second.name))
        return found

    def counted(self) -> str:
        """Returns how many places were visited, and which effects they cannot separate."""
        near = sum(visit.stage == "refine" for visit in self.visits)
        text = f"{words.counted(len(self.design), 'place')} of the design, {near} near the claims."
        unusual = [setting.name for setting in self.study.settings if setting.usual is None]
        if 0 < len(unusual) < len(self.study.settings):
            text += f" The usual values are no place: {words.joined(unusual)} {'has' if len(unusual) == 1 else 'have'} none."
        pairs = "; ".join(f"{first} with {second}" for first, second in self.uncrossed())
        return f"{text} Too few to cross {pairs}: the effects of these two settings cannot be separated." if pairs else text

    def __str__(self) -> str:
        """Returns the answer for a terminal."""
        note = f"\n{self.note}" if self.note else ""
        return f"{self.claims_table()}\n\n{self.settings_table()}\n\n{self.sentence()}\n{self.counted()}{note}"

    def markdown(self) -> str:
        """Returns the answer as a page with its figure."""
        title = f"# {self.study.paper.name.upper()}: open settings" if self.study.paper else f"# {self.study.name}"
        written = f"Written by `flowloom seek {self.study.file}`. {self.counted()}"
        parts = [title, self.sentence(), "![The places of the search](seek.png)", self.claims_table().markdown()]
        parts += [self.settings_table().markdown(), " ".join(filter(None, [written, self.note]))]
        return "\n\n".join(parts) + "\n"

    def rows(self) -> list[dict[str, Any]]:
        """Returns one row per visit for files: its folder, its settings, and each claim's number
        and whether the claim holds.
        """
        found = []
        for visit in self.visits:
            row: dict[str, Any] = {"place": visit.place.name(self.study.settings), "stage": visit.stage}
            row |= {setting.name: value for setting, value in zip(self.study.settings, visit.place.values, strict=True)}
            for one in self.study.judgements:
                here = visit.seen.get(one.id)
                row[one.id] = here.number if here and here.known else None
                row[f"{one.id} holds"] = here.holds if here and here.known else None
            found.append(row)
        return found

    def to_json(self) -> str:
        """Returns the visits as JSON: coordinates, values, and for each claim its number, whether
        it holds, and its margin; all three are `null` without a number.
        """
        visits = [
            {
                "coordinates": list(visit.place.coordinates),
                "values": list(visit.place.values),
                "stage": visit.stage,
                "seen": {name: [s.number, s.holds, s.margin] if s.known else [None] * 3 for name, s in visit.seen.items()},
            }
            for visit in self.visits
        ]
        return json.dumps({"study": self.study.name, "note": self.note, "visits": visits}, indent=1, ensure_ascii=False) + "\n"


def number_text(judgement: Judgement, number: float) -> str:
    """Returns a number in the unit of its claim."""
    return numbers.mean_text(judgement.claim, numbers.Estimate.exact(number)) if math.isfinite(number) else "-"


def encoded(study: Study, coordinates: Sequence[float] | Array) -> list[float]:
    """Returns coordinates for a surrogate: a setting with listed values becomes one coordinate per value."""
    found: list[float] = []
    for setting, u in zip(study.settings, coordinates, strict=True):
        if setting.levels:
            at = min(int(u * setting.levels), setting.levels - 1)
            found += [0.7 * (at == level) for level in range(setting.levels)]
        else:
            found.append(float(u))
    return found


def surrogate(x: Array, y: Array) -> Any:
    """Returns a function through the numbers of a claim, or near them; `None` if it predicts unseen
    numbers badly.

    Linear radial basis functions, with the smoothing that predicts best when each place in turn is
    left out.
    """
    from scipy.interpolate import RBFInterpolator

    spread = y.std()
    scaled = (y - y.mean()) / spread
    best = (-math.inf, 0.0)
    for smoothing in SMOOTHING:
        left = []
        for i in range(len(y)):
            keep = np.arange(len(y)) != i
            try:
                left.append(
                    float(RBFInterpolator(x[keep], scaled[keep], kernel="linear", smoothing=smoothing, degree=0)(x[i : i + 1])[0])
                )
            except np.linalg.LinAlgError:
                break
        if len(left) == len(y):
            explained = 1 - float(np.mean((np.array(left) - scaled) ** 2))
            best = max(best, (explained, smoothing))
    if best[0] < TRUSTED:
        return None
    model = RBFInterpolator(x, scaled, kernel="linear", smoothing=best[1], degree=0)
    return lambda at: model(at) * spread + y.mean()
