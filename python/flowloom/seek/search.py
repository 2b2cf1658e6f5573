"""The search: places that fill the space evenly, then places near the claims, then the claims that
were kept out.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from flowloom import _core
from flowloom.api.results import Results
from flowloom.seek.judge import Visit, judge
from flowloom.seek.runs import Runs, Wanted
from flowloom.seek.settings import Place
from flowloom.seek.study import Refused, Study

Asked = Generator[list[Place], Sequence[float], None]
"""Yields places, and receives the losses at these places."""

BATCH = 4
"""The number of places of a batch. It is a constant, so that the search does not depend on the
number of cores.
"""


def design(study: Study) -> list[Place]:
    """Returns places that fill the space evenly: a scrambled Sobol sequence (Owen, "Scrambling
    Sobol' and Niederreiter-Xing points", 1998).

    Raises `ImportError` without SciPy.
    """
    try:
        from scipy.stats import qmc
    except ImportError:
        raise ImportError("`flowloom seek` needs SciPy\nhint: pip install 'flowloom[seek]'") from None
    sobol = qmc.Sobol(len(study.settings), rng=np.random.default_rng(study.number("draw")))
    found = sobol.random_base2(max(math.ceil(math.log2(study.number("points"))), 1))
    return [study.place([float(u) for u in row]) for row in found]


@dataclass
class Search:
    """A search that runs its points into a folder."""

    study: Study
    runs: Runs
    visits: list[Visit] = field(default_factory=list)
    note: str = ""
    """Why the search did less than was asked for; empty if it did everything."""

    def visit(self, label: str, places: Sequence[Place], score: Callable[[Place, dict[str, Results]], Visit]) -> list[Visit]:
        """Runs the searched scenarios at places. Returns the visits."""
        names = self.study.searched
        found = self.runs.run(label, [self.wanted(name, place) for place in places for name in names])
        by_place = [dict(zip(names, found[i : i + len(names)], strict=True)) for i in range(0, len(found), len(names))]
        return [score(place, results) for place, results in zip(places, by_place, strict=True)]

    def wanted(self, scenario: str, place: Place) -> Wanted:
        """Returns a scenario at a place, with the folder for its results."""
        core = self.study.at(scenario, place)
        if isinstance(core, Refused):
            raise self.study.not_valid([core], 1)
        # A changed scenario gets another folder, into which the points that it shares with the old
        # scenario are linked. So does another version of the program, since its results cannot be in
        # the same folder.
        name = f"{scenario}-{_core.content_hash(f'{_core.version} {core.resolved()}'.encode())[:6]}"
        return Wanted(core, self.study.scenarios[scenario].parent, self.runs.root / place.name(self.study.settings) / name)

    def judged(self, stage: str) -> Callable[[Place, dict[str, Results]], Visit]:
        """Returns a function that judges the claims at a place."""
        return lambda place, results: Visit(place, stage, judge(self.study, self.study.judgements, results))

    def fill(self) -> None:
        """Visits the places of the design, and that of the usual values."""
        usual = self.study.usual()
        self.visits += self.visit("design", design(self.study), self.judged("design"))
        if usual is not None:
            self.visits += self.visit("usual", [usual], self.judged("usual"))

    def refine(self) -> None:
        """Visits places that an optimiser expects to be near the claims."""
        wanted = self.study.number("refine")
        if not wanted:
            return
        asked = ask(self.study, wanted, [(v.place, self.loss(v)) for v in self.visits if v.stage == "design"])
        if asked is None:
            self.note = f"not refined by {wanted} more places, since Optuna is not installed: pip install 'flowloom[seek]'"
            return
        losses: Sequence[float] = ()
        while True:
            try:
                places = asked.send(losses) if losses else next(asked)
            except StopIteration:
                return
            done = sum(v.stage == "refine" for v in self.visits)
            visits = self.visit(f"refine {done} of {wanted}", places, self.judged("refine"))
            self.visits += visits
            losses = [self.loss(visit) for visit in visits]

    def loss(self, visit: Visit) -> float:
        """Returns the value that the optimiser minimises."""
        return visit.misfit(self.study.fitted)

    def best(self) -> list[Visit]:
        """Returns the visits sorted: the most fitted claims first, then the smallest misfit, then
        the largest margin.
        """
        fitted = self.study.fitted
        return sorted(self.visits, key=lambda v: (-v.held(fitted), v.misfit(fitted), -v.margin(fitted), v.place.values))

    def confirm(self) -> None:
        """Runs the scenarios of claims that were kept out, at the usual place and at the best places."""
        late = [one for one in self.study.judgements if one.scenarios & set(self.study.confirming)]
        # A claim may need a scenario that has run there already, whose points are not run again.
        names = [name for name in self.study.scenarios if any(name in one.scenarios for one in late)]
        chosen = self.best()[: self.study.number("confirm")] + [v for v in self.visits if v.stage == "usual"]
        places = list({visit.place.values: visit for visit in chosen}.values())
        if not names or not places:
            return
        found = self.runs.run("kept out", [self.wanted(name, visit.place) for visit in places for name in names])
        for i, visit in enumerate(places):
            results = dict(zip(names, found[i * len(names) : (i + 1) * len(names)], strict=True))
            more = judge(self.study, late, results)
            self.visits = [
                Visit(v.place, v.stage, {**v.seen, **more}) if v.place.values == visit.place.values else v for v in self.visits
            ]


def ask(study: Study, wanted: int, known: Sequence[tuple[Place, float]]) -> Asked | None:
    """Asks an optimiser for places, batch by batch, and sends it the losses there. `None` without
    Optuna.

    Tree-structured Parzen estimators (Bergstra et al., "Algorithms for Hyper-Parameter
    Optimization", NeurIPS 2011).
    """
    try:
        import optuna
    except ImportError:
        return None
    return batches(optuna, study, wanted, known)


def batches(optuna: Any, study: Study, wanted: int, known: Sequence[tuple[Place, float]]) -> Asked:
    """Yields the places for `ask`."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    kinds = {
        f"{i}": optuna.distributions.CategoricalDistribution(list(range(setting.levels)))
        if setting.levels
        else optuna.distributions.FloatDistribution(0.0, 1.0)
        for i, setting in enumerate(study.settings)
    }

    def params_of(place: Place) -> dict[str, Any]:
        pairs = zip(study.settings, place.coordinates, strict=True)
        return {f"{i}": min(int(u * s.levels), s.levels - 1) if s.levels else u for i, (s, u) in enumerate(pairs)}

    def place(params: dict[str, Any]) -> Place:
        values = [params[f"{i}"] for i in range(len(study.settings))]
        return study.place([(v + 0.5) / s.levels if s.levels else v for s, v in zip(study.settings, values, strict=True)])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns that some of its functions are experimental
        sampler = optuna.samplers.TPESampler(seed=study.number("draw"), n_startup_trials=1, multivariate=True, constant_liar=True)
        trials = optuna.create_study(sampler=sampler)
        for one, loss in known:
            trials.add_trial(optuna.trial.create_trial(params=params_of(one), distributions=kinds, value=loss))
    while wanted > 0:
        asked = [trials.ask(kinds) for _ in range(min(BATCH, wanted))]
        losses = yield [place(trial.params) for trial in asked]
        for trial, loss in zip(asked, losses, strict=True):
            trials.tell(trial, loss)
        wanted -= len(asked)
