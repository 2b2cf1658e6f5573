"""The settings under which a system is worst, or best, against another, and the smallest scenario in which that is still so."""

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
from flowloom.seek.study import Place, Study

NO_VALUE = 10.0
"""What the optimiser is told of a place without a ratio: a logarithm that no ratio comes near."""

TRIES = 80
"""Smaller scenarios that are tried at most."""

AMOUNTS = ("workload", "topology")
"""The tables whose whole numbers are made smaller."""


def ratio(study: Study, results: Data) -> float:
    """The metric of one system over that of the other, averaged over seeds; NaN where one has none."""
    points = Points(results)
    metric, system, versus = (study.options[key] for key in ("metric", "system", "versus"))
    return average(quotient(points.sample(system, metric), points.sample(versus, metric)))


@dataclass
class Worst(Search):
    """A search for an extreme ratio."""

    def judged(self, stage: str) -> Any:
        """Takes the ratio at a place."""

        def score(place: Place, results: dict[str, Results]) -> Visit:
            number = ratio(self.study, next(iter(results.values())))
            return Visit(place, stage, {RATIO: Seen(number, math.isfinite(number), math.log(number) if number > 0 else -math.inf)})

        return score

    def loss(self, visit: Visit) -> float:
        """Small where the ratio is as wanted."""
        found = self.log(visit.seen[RATIO].number)
        return -found if math.isfinite(found) else NO_VALUE

    def log(self, number: float) -> float:
        """The logarithm of a ratio, large where it is as wanted."""
        if not math.isfinite(number) or number <= 0:
            return -math.inf
        return math.log(number) * (1 if self.study.options["want"] == "largest" else -1)

    def extreme(self) -> Visit:
        """The visit with the ratio that is most as wanted."""
        return min(self.visits, key=lambda visit: (self.loss(visit), visit.place.values))


RATIO = "ratio"


@dataclass(frozen=True)
class Smaller:
    """A scenario that is made smaller: what is set in it, and the seed."""

    pairs: Mapping[str, str]
    seed: int | None = None


@dataclass
class Shrink:
    """Makes the scenario of a finding smaller while the finding lasts."""

    search: Worst
    found: Visit
    tries: int = 0
    log: list[str] = field(default_factory=list)

    def scenario(self, one: Smaller) -> _core.Scenario:
        """The scenario."""
        seeds = None if one.seed is None else [one.seed]
        return self.search.study.with_values(next(iter(self.search.study.scenarios)), one.pairs, seeds)

    def value(self, one: Smaller) -> float:
        """Its ratio, as a logarithm that is large where it is as wanted; minus infinity for a scenario that cannot be."""
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
        """The smallest scenario found."""
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
        """Scenarios that are a step smaller, the largest steps first."""
        core = self.scenario(now)
        seeds = sorted({point["seed"] for point in core.points})
        if now.seed is None and len(seeds) > 1:
            for seed in seeds:
                yield f"seed {seed} alone", replace(now, seed=seed)
        for setting in self.search.study.settings:
            kept = {key: value for key, value in now.pairs.items() if key not in setting.keys}
            if len(kept) < len(now.pairs):
                yield f"{setting.name} as the scenario has it", replace(now, pairs=kept)
        for key, amount in amounts(tomllib.loads(core.resolved())):
            for part in (8, 2):
                if amount // part >= 1 and amount // part < amount:
                    yield f"{key} {amount // part}", replace(now, pairs={**now.pairs, key: str(amount // part)})


def amounts(resolved: Mapping[str, Any], prefix: str = "") -> list[tuple[str, int]]:
    """The whole numbers above 1 of workloads and topology, by key."""
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
    """What was found."""

    study: Study
    visits: Sequence[Visit]
    extreme: Visit
    smaller: str
    """The smallest scenario found, as TOML."""
    value: float
    """Its ratio."""
    steps: Sequence[str]
    note: str = ""

    def __str__(self) -> str:
        """The finding for a terminal."""
        ordered = sorted(self.visits, key=lambda visit: visit.seen[RATIO].number, reverse=self.study.options["want"] == "largest")
        rows = [
            [*(s.shown(v) for s, v in zip(self.study.settings, visit.place.values, strict=True)), f"{visit.seen[RATIO].number:.4g}"]
            for visit in ordered[:10]
        ]
        names = [setting.name for setting in self.study.settings]
        metric, system, versus = (self.study.options[key] for key in ("metric", "system", "versus"))
        head = f"{words.title(metric)}: {system} over {versus}"
        which = f"the {len(rows)} {self.study.options['want']} of {words.counted(len(self.visits), 'place')}"
        steps = "; ".join(self.steps) or "nothing could be left out"
        note = f"\n{self.note}" if self.note else ""
        return f"{head}, {which}\n{Table([*names, 'ratio'], rows, 0)}\n\nsmaller: {steps}: ratio {self.value:.4g}{note}"


def seek(study: Study, runs: Runs) -> Finding:
    """Searches, and makes what was found smaller."""
    search = Worst(study, runs)
    if len(study.scenarios) != 1:
        raise ValueError(f"`{study.file}`: a ratio is looked for in one scenario\nhint: leave `scenarios` out, or name one")
    search.fill()
    search.refine()
    extreme = search.extreme()
    if search.loss(extreme) == NO_VALUE:
        raise ValueError(f"`{study.file}`: `{study.options['metric']}` has no value in any place")
    shrink = Shrink(search, extreme)
    least = shrink.shrink()
    value = shrink.value(least)
    want = 1 if study.options["want"] == "largest" else -1
    return Finding(study, search.visits, extreme, text_of(shrink, least), math.exp(value * want), shrink.log, search.note)


def text_of(shrink: Shrink, least: Smaller) -> str:
    """The scenario as TOML, with the two systems alone."""
    study = shrink.search.study
    resolved = tomllib.loads(shrink.scenario(least).resolved())
    both = {study.options["system"], study.options["versus"]}
    resolved["system"] = [one for one in resolved["system"] if one.get("label") in both]
    resolved["name"] = f"{study.name}-worst"
    folder = next(iter(study.scenarios.values())).parent
    return _core.Scenario.from_dict(resolved, "worst.toml", str(folder)).resolved()
