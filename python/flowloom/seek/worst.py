"""Searches the settings under which a system is worst, or best, against another system, and the
smallest scenario for which this holds.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from flowloom import _core
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.runs.data import Data
from flowloom.runs.numbers import Points, average, quotient
from flowloom.runs.tables import Table
from flowloom.seek.judge import Seen, Visit
from flowloom.seek.runs import Runs, Wanted
from flowloom.seek.search import Search
from flowloom.seek.settings import Place
from flowloom.seek.study import Study, refused

NO_VALUE = 10.0
"""The loss of a place without a ratio: larger than the logarithm of any ratio."""

TRIES = 80
"""The maximum number of smaller scenarios that are tried."""

AMOUNTS = ("workload", "topology")
"""The tables of a scenario whose whole numbers are made smaller."""


def ratio(study: Study, results: Data) -> float:
    """Divides the metric of one system by that of the other, averaged over seeds; NaN if a metric
    has no value.
    """
    points = Points(results)
    metric, system, versus = (study.options[key] for key in ("metric", "system", "versus"))
    return average(quotient(points.sample(system, metric), points.sample(versus, metric)))


@dataclass
class Worst(Search):
    """A search for an extreme ratio."""

    def judged(self, stage: str) -> Any:
        """Returns a function that takes the ratio at a place."""

        def score(place: Place, results: dict[str, Results]) -> Visit:
            number = ratio(self.study, next(iter(results.values())))
            return Visit(place, stage, {RATIO: Seen(number, math.isfinite(number), math.log(number) if number > 0 else -math.inf)})

        return score

    def loss(self, visit: Visit) -> float:
        """Returns the value that the optimiser minimises: the logarithm of the ratio, negated if a
        large ratio is wanted.
        """
        found = self.log(visit.seen[RATIO].number)
        return -found if math.isfinite(found) else NO_VALUE

    def log(self, number: float) -> float:
        """Returns the logarithm of a ratio, negated if a small ratio is wanted."""
        if not math.isfinite(number) or number <= 0:
            return -math.inf
        return math.log(number) * (1 if self.study.options["want"] == "largest" else -1)

    def extreme(self) -> Visit:
        """Returns the visit with the most extreme ratio."""
        return min(self.visits, key=lambda visit: (self.loss(visit), visit.place.values))


RATIO = "ratio"


@dataclass(frozen=True)
class Smaller:
    """A scenario that is made smaller: the values that are set in it, and the seed."""

    pairs: Mapping[str, str]
    seed: int | None = None


@dataclass
class Shrink:
    """Makes the scenario of a finding smaller as long as the finding holds."""

    search: Worst
    found: Visit
    tries: int = 0
    log: list[str] = field(default_factory=list)

    def scenario(self, one: Smaller) -> _core.Scenario:
        """Returns the scenario."""
        seeds = None if one.seed is None else [one.seed]
        return self.search.study.with_values(next(iter(self.search.study.scenarios)), one.pairs, seeds)

    def value(self, one: Smaller) -> float:
        """Returns the logarithm of the scenario's ratio as `Worst.log` does; minus infinity for a
        scenario that is not valid.
        """
        try:
            core = self.scenario(one)
        except _core.ScenarioError:
            return -math.inf
        self.tries += 1
        study = self.search.study
        text = f"{_core.version} {core.resolved()}"
        folder = self.search.runs.root / "smaller" / _core.content_hash(text.encode())[:12]
        both = {study.options["system"], study.options["versus"]}
        points = [point["point"] for point in core.points if point["system"] in both]
        wanted = Wanted(core, next(iter(study.scenarios.values())).parent, folder, points)
        try:
            (results,) = self.search.runs.run(f"smaller {self.tries}", [wanted])
        except _core.RunError:
            return -math.inf
        return self.search.log(ratio(study, results))

    def shrink(self) -> Smaller:
        """Returns the smallest scenario found."""
        study = self.search.study
        now = Smaller(self.found.place.assignments(study.settings))
        most = self.search.log(self.found.seen[RATIO].number)
        least = most * float(study.options["keep"]) if most > 0 else most
        changed = True
        while changed and self.tries < TRIES:
            changed = False
            for what, smaller in self.candidates(now):
                if self.tries >= TRIES:
                    break
                if smaller != now and self.value(smaller) >= least:
                    now, changed = smaller, True
                    self.log.append(what)
                    break
        return now

    def candidates(self, now: Smaller) -> Iterator[tuple[str, Smaller]]:
        """Yields scenarios that are one step smaller, the largest steps first."""
        core = self.scenario(now)
        seeds = sorted({point["seed"] for point in core.points})
        if now.seed is None and len(seeds) > 1:
            for seed in seeds:
                yield f"only seed {seed}", replace(now, seed=seed)
        for setting in self.search.study.settings:
            kept = {key: value for key, value in now.pairs.items() if key not in setting.keys}
            if len(kept) < len(now.pairs):
                yield f"{setting.name} as in the scenario", replace(now, pairs=kept)
        for key, amount in amounts(tomllib.loads(core.resolved())):
            for part in (8, 2):
                if amount // part >= 1 and amount // part < amount:
                    yield f"{key} {amount // part}", replace(now, pairs={**now.pairs, key: str(amount // part)})


def amounts(resolved: Mapping[str, Any], prefix: str = "") -> list[tuple[str, int]]:
    """Returns the whole numbers above 1 of workloads and topology, by key."""
    found: list[tuple[str, int]] = []
    for key, value in resolved.items():
        path = f"{prefix}{key}"
        if not prefix and key not in AMOUNTS:
            continue
        if isinstance(value, Mapping):
            found += amounts(value, f"{path}.")
        elif isinstance(value, int) and not isinstance(value, bool) and value > 1:
            found.append((path, value))
    return found


@dataclass(frozen=True)
class Finding:
    """The result of the search."""

    study: Study
    visits: Sequence[Visit]
    extreme: Visit
    smaller: str
    """The smallest scenario found, as TOML."""
    value: float
    """The ratio of the smallest scenario."""
    steps: Sequence[str]
    note: str = ""

    def __str__(self) -> str:
        """Returns the finding for a terminal."""
        known = [visit for visit in self.visits if visit.seen[RATIO].known]
        ordered = sorted(known, key=lambda visit: visit.seen[RATIO].number, reverse=self.study.options["want"] == "largest")
        rows = [
            [*(s.shown(v) for s, v in zip(self.study.settings, visit.place.values, strict=True)), f"{visit.seen[RATIO].number:.4g}"]
            for visit in ordered[:10]
        ]
        names = [setting.name for setting in self.study.settings]
        metric, system, versus = (self.study.options[key] for key in ("metric", "system", "versus"))
        head = f"{words.title(metric)}: {system} over {versus}"
        which = f"the {len(rows)} {self.study.options['want']} of {words.counted(len(self.visits), 'place')}"
        which += f", {len(self.visits) - len(known)} of them without a ratio" if len(known) < len(self.visits) else ""
        steps = "; ".join(self.steps) or "nothing could be left out"
        note = f"\n{self.note}" if self.note else ""
        return f"{head}, {which}\n{Table([*names, 'ratio'], rows, 0)}\n\nsmaller: {steps}: ratio {self.value:.4g}{note}"


def seek(study: Study, runs: Runs) -> Finding:
    """Searches, and makes the scenario of the finding smaller."""
    search = Worst(study, runs)
    search.fill()
    search.refine()
    extreme = search.extreme()
    if search.loss(extreme) == NO_VALUE:
        what = f"`{study.options['metric']}` has no value of both systems, or is 0, at all places"
        raise refused(study.file, [("seek.metric", what, "no ratio", "choose another metric, or other ranges")])
    shrink = Shrink(search, extreme)
    least = shrink.shrink()
    value = shrink.value(least)
    want = 1 if study.options["want"] == "largest" else -1
    return Finding(study, search.visits, extreme, text_of(shrink, least), math.exp(value * want), shrink.log, search.note)


def text_of(shrink: Shrink, least: Smaller) -> str:
    """Returns the scenario as TOML, with only the two systems."""
    study = shrink.search.study
    resolved = tomllib.loads(shrink.scenario(least).resolved())
    both = {study.options["system"], study.options["versus"]}
    resolved["system"] = [one for one in resolved["system"] if one.get("label") in both]
    resolved["name"] = f"{study.name}-worst"
    folder = next(iter(study.scenarios.values())).parent
    return _core.Scenario.from_dict(resolved, "worst.toml", str(folder)).resolved()
