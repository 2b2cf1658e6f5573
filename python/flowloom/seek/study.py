"""Studies: the open settings, the claims that are searched for, and the scenarios on which they are judged."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from flowloom import _core
from flowloom.base import files
from flowloom.base.errors import InputError, KeyRefusedError
from flowloom.papers import shelf
from flowloom.papers.claims import Claim
from flowloom.papers.shelf import Paper
from flowloom.runs.numbers import COMPUTED
from flowloom.seek.settings import PROFILE, Place, Setting


@dataclass(frozen=True)
class Judgement:
    """A claim of a study."""

    claim: Claim
    scenario: str
    """The scenario on which the claim is judged."""
    fit: bool
    others: Sequence[str] = ()
    """Other scenarios whose results the claim needs."""
    key: str = ""
    """The key of the claim in the file: `seek.claim.0`."""
    own: bool = True
    """Whether the file defines the claim, and not a `claims.toml`."""

    @property
    def id(self) -> str:
        """The id of the claim."""
        return self.claim.id

    @property
    def scenarios(self) -> set[str]:
        """The scenarios whose results the claim needs."""
        return {self.scenario, *self.others}

    @property
    def systems(self) -> dict[str, str]:
        """The systems that the claim names, with the keys of the file that name them."""
        claim = self.claim
        keys = {**dict.fromkeys(claim.systems, "systems"), claim.versus: "versus", claim.system: "system"}
        return {label: f"{self.key}.{key if self.own else 'id'}" for label, key in keys.items() if label}


Problem = tuple[str, str, str, str]
"""A problem of a file: the key that it is about, what is wrong, a label for its place, and what to do."""


def refused(file: Path, problems: Sequence[Problem]) -> Exception:
    """Returns the error for problems of a file, with the places of their keys."""
    return _core.located(files.text(file), str(file), list(problems))


def unknown(key: str, what: str, name: str, known: Sequence[str], hint: str) -> Problem:
    """Returns the problem of a name that is not known."""
    near = _core.nearest(name, list(known))
    return key, f"there is no {what} `{name}`", f"did you mean `{near}`?" if near else "unknown", hint


@dataclass(frozen=True)
class Refused:
    """A scenario that is not valid at a place."""

    name: str
    place: Place
    error: _core.ScenarioError


@dataclass(frozen=True)
class Study:
    """A file with a table `[seek]`."""

    file: Path
    name: str
    settings: Sequence[Setting]
    judgements: Sequence[Judgement]
    scenarios: Mapping[str, Path]
    """The scenario files by name, in their order."""
    options: Mapping[str, Any]
    """The parameters of `[seek]`."""
    paper: Paper | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    """The scenarios of the paper's figures, by figure id, as far as the study runs them."""

    @property
    def profile(self) -> str | None:
        """The profiles that are applied to the scenarios."""
        found: str | None = self.options["profile"]
        return found

    def number(self, option: str) -> int:
        """Returns an option that is a whole number."""
        return int(self.options[option])

    def place(self, coordinates: Sequence[float]) -> Place:
        """Returns the place at coordinates."""
        return Place(tuple(coordinates), tuple(s.value(u) for s, u in zip(self.settings, coordinates, strict=True)))

    def usual(self) -> Place | None:
        """Returns the place of the usual values, if every setting has a usual value."""
        values = [setting.usual for setting in self.settings if setting.usual is not None]
        if len(values) < len(self.settings):
            return None
        return Place(tuple(s.coordinate(v) for s, v in zip(self.settings, values, strict=True)), tuple(values))

    @cached_property
    def fitted(self) -> list[Judgement]:
        """The claims that are searched for."""
        return [one for one in self.judgements if one.fit]

    @cached_property
    def kept_out(self) -> list[Judgement]:
        """The claims that the search does not use."""
        return [one for one in self.judgements if not one.fit]

    @cached_property
    def searched(self) -> list[str]:
        """The scenarios that run at every place: those of the fitted claims."""
        needed = {name for one in self.fitted for name in one.scenarios}
        return [name for name in self.scenarios if not self.fitted or name in needed]

    @cached_property
    def confirming(self) -> list[str]:
        """The scenarios that run only at the best places and at the usual place."""
        return [name for name in self.scenarios if name not in self.searched]

    def check(self, places: Sequence[Place]) -> None:
        """Raises `ScenarioError` for unknown systems and metrics, for keys, claims and settings without
        effect, and for places at which a scenario is not valid.
        """
        problems = [*self.useless()]
        cores: dict[str, _core.Scenario] = {}
        for name in self.scenarios:
            found = [(place, self.at(name, place)) for place in places]
            wrong = [one for _, one in found if isinstance(one, Refused)]
            if wrong:
                raise self.not_valid(wrong, len(places))
            cores[name] = next(core for _, core in found if not isinstance(core, Refused))
        problems += self.set_twice()
        problems += self.unknown_names({name: labels(core) for name, core in cores.items()})
        if not problems:
            idle = [i for i in range(len(self.settings)) if not any(self.moves(i, place) for place in places)]
            hint = "name a key on which they depend, or remove the setting"
            what = "changes no result on which a claim depends" if self.judgements else "changes no result of the two systems"
            problems += [(f"seek.setting.{i}.keys", f"`{self.settings[i].name}` {what}", "no effect", hint) for i in idle]
        if problems:
            raise refused(self.file, problems)

    def useless(self) -> Iterator[Problem]:
        """Yields the parts of the table that have no effect on the search."""
        needed = {name for one in self.judgements for name in one.scenarios}
        for name in self.scenarios:
            if self.judgements and name not in needed:
                yield "seek.scenarios", f"no claim needs the scenario `{name}`", "no effect", "remove it, or add a claim about it"
        if "confirm" in self.options["given"] and self.judgements and not self.confirming:
            what = "has no effect: all claims with `fit = false` are about scenarios that run at every place"
            yield "seek.confirm", what, "not used", "remove `confirm`"

    def set_twice(self) -> Iterator[Problem]:
        """Yields the keys of profiles that another setting sets too."""
        for name, file in self.scenarios.items():
            profiles = files.toml(file).get("profile", {})
            here = [(i, path) for i, s in enumerate(self.settings) for scenario, path in s.paths if scenario in (None, name)]
            plain = [(i, path) for i, path in here if path != [PROFILE]]
            chosen = [
                (i, profile.strip())
                for i, path in here
                if path == [PROFILE]
                for c in self.settings[i].choices
                for profile in c.split(",")
            ]
            inside = [(i, profile, leaf) for i, profile in chosen for leaf in leaves(profiles[profile])]
            every = [*plain, *((i, leaf) for i, _, leaf in inside)]
            for i, profile, leaf in inside:
                other = next((j for j, path in every if j != i and leaf[: len(path)] == path), None)
                if other is not None:
                    what = f"the profile `{profile}` sets `{'.'.join(leaf)}`, which `{self.settings[other].name}` sets too"
                    yield (
                        f"seek.setting.{i}.choices",
                        what,
                        "set twice",
                        "all settings have a value at every place: set each key in one of them",
                    )

    def unknown_names(self, systems: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
        """Yields the metrics and systems that do not exist. `systems` holds the labels by scenario."""
        metrics = [entry["name"] for entry in _core.entries("metrics")]
        asked = [
            (f"{one.key}.{'metric' if one.own else 'id'}", one.claim.metric, one.systems, one.scenario)
            for one in self.judgements
            if one.claim.kind not in COMPUTED
        ]
        if self.options["objective"] == "ratio":
            both = {self.options[key]: f"seek.{key}" for key in ("system", "versus")}
            asked.append(("seek.metric", self.options["metric"], both, next(iter(self.scenarios))))
        for key, metric, labelled, scenario in asked:
            if metric not in metrics:
                yield unknown(key, "metric", metric, metrics, "`flowloom list metrics` prints all names")
            for label, where in labelled.items():
                if label not in systems[scenario]:
                    yield unknown(where, "system", label, systems[scenario], f"there are {', '.join(systems[scenario])}")

    def moves(self, index: int, place: Place) -> bool:
        """Returns whether a result of the search depends on a setting, if all others have their values
        at a place.
        """
        setting = self.settings[index]
        values = setting.choices or [setting.value(0.0), setting.value(1.0)]
        for name in self.scenarios:
            found: set[Any] = set()
            for value in values:
                core = self.at(name, replace(place, values=(*place.values[:index], value, *place.values[index + 1 :])))
                # A value with which the scenario is not valid has an effect.
                found.add(None if isinstance(core, Refused) else frozenset(self.asked(name, core).items()))
            if len(found) > 1:
                return True
        return False

    def asked(self, name: str, core: _core.Scenario) -> dict[str, str]:
        """Returns the hashes of the points of a scenario on which a claim depends."""
        systems = {label for one in self.judgements if name in one.scenarios for label in one.systems}
        if self.options["objective"] == "ratio":
            systems = {self.options["system"], self.options["versus"]}
        # A computed number may depend on every system.
        whole = any(one.claim.kind in COMPUTED and name in one.scenarios for one in self.judgements)
        points = {point["point"] for point in core.points if whole or point["system"] in systems}
        return {point: found for point, found in core.config_hashes().items() if point in points}

    def at(self, name: str, place: Place) -> _core.Scenario | Refused:
        """Returns a scenario at a place."""
        try:
            return self.with_values(name, place.assignments(self.settings))
        except _core.ScenarioError as error:
            return Refused(name, place, error)

    def not_valid(self, wrong: Sequence[Refused], tried: int) -> Exception:
        """Returns the error for places at which a scenario is not valid: that of the scenario, if it is
        not valid without the settings either.
        """
        name, place, error = wrong[0].name, wrong[0].place, wrong[0].error
        try:
            self.with_values(name, {})
        except _core.ScenarioError as own:
            chosen = [found for found in own.diagnostics if found["file"] == COMMAND_LINE]
            if not chosen:
                return own
            return refused(
                self.file, [("seek.profile", f"{found['message']} in `{name}`", found["label"], found["hint"]) for found in chosen]
            )
        found = next(iter(error.diagnostics), {"message": str(error), "label": "not valid", "hint": "see the message"})
        where = "at the place" if tried == 1 else f"at {len(wrong)} of {tried} places, such as"
        what = f"`{name}` is not valid {where} {place.text(self.settings)}: {found['message']}"
        hint = f"{found['hint']}; or narrow the ranges, so that every combination of values is valid"
        # The first setting with which the scenario is not valid either, if all others are as in the file.
        alone = (i for i, setting in enumerate(self.settings) if not self.valid_with(name, setting, place.values[i]))
        key = next((f"seek.setting.{i}.keys" for i in alone), "seek")
        return refused(self.file, [(key, what, found["label"], hint)])

    def valid_with(self, name: str, setting: Setting, value: str) -> bool:
        """Returns whether a scenario is valid with the value of a single setting."""
        try:
            self.with_values(name, Place((0.5,), (value,)).assignments([setting]))
        except _core.ScenarioError:
            return False
        return True

    def with_values(self, name: str, values: Mapping[str, str], seeds: Sequence[int] | None = None) -> _core.Scenario:
        """Returns a scenario with values for some of its keys, and with other seeds if they are
        given. Raises `ScenarioError` if it is not valid.

        A key `NAME:KEY` is set only in the scenario NAME.
        """
        path = self.scenarios[name]
        text = files.text(path)
        own: dict[str, str] = {}
        profiles = [self.profile] if self.profile else []
        for key, value in values.items():
            scenario, plain_key = split(key, self.scenarios)
            if scenario not in ("", name):
                continue
            if plain_key == PROFILE:
                profiles.append(value)
            else:
                own[plain_key] = value
        return _core.Scenario.from_toml(
            text, str(path), str(path.parent), list(own.items()), seeds, ",".join(profiles) or None, None
        )


COMMAND_LINE = "command line"
"""The file in problems about profiles and settings that the file of the scenario does not have."""


def split(key: str, scenarios: Container[str]) -> tuple[str, str]:
    """Splits `NAME:KEY` into the name of a scenario and a key; the name is empty if there is none."""
    name, _, rest = key.partition(":")
    return (name, rest) if rest and name in scenarios else ("", key)


def leaves(table: object, path: Sequence[str] = ()) -> Iterator[list[str]]:
    """Yields the keys of a table and of the tables in it that have values, as the names in them."""
    if not isinstance(table, Mapping):
        yield list(path)
        return
    for key, value in table.items():
        yield from leaves(value, [*path, key])


def labels(core: _core.Scenario) -> list[str]:
    """Returns the labels of the systems of a scenario."""
    return list(dict.fromkeys(point["system"] for point in core.points))


def read(file: Path) -> Study:
    """Reads a file with `[seek]`. Raises `ScenarioError` for mistakes in it, and `ValueError` if it
    has no such table.
    """
    text = files.text(file)
    table = _core.seek(text, str(file))
    if table is None:
        raise InputError(f"`{file}` has no table `[seek]`\nhint: the table names the open settings; see `flowloom explain seek`")
    paper = paper_of(file)
    scenarios = {Path(name).stem: file.parent / name for name in table["scenarios"]} or {file.stem: file}
    missing = [path for path in scenarios.values() if not path.is_file()]
    if missing:
        near = [path.name for path in file.parent.glob("*.toml")]
        hint = "`scenarios` lists files, relative to the folder of this file"
        raise refused(file, [unknown("seek.scenarios", "scenario", path.name, near, hint) for path in missing])
    figures = {f.id: f.scenario for f in paper.figures if f.scenario in scenarios} if paper else {}
    problems: list[Problem] = []
    judgements = []
    for index, given in enumerate(table["claims"]):
        try:
            judgements.append(judgement(given, f"seek.claim.{index}", paper, figures, scenarios))
        except KeyRefusedError as error:
            problems.append((error.key, error.message, error.label, error.hint))
    if problems:
        raise refused(file, problems)
    head = files.toml(file)
    default = f"{file.resolve().parent.name}-seek" if file.stem == "seek" else f"{file.stem}-seek"
    settings = [Setting.read(setting, int(table["points"])) for setting in table["settings"]]
    name = head.get("name", default) if table["scenarios"] else default
    return Study(file, name, settings, judgements, scenarios, table, paper, figures)


def paper_of(file: Path) -> Paper | None:
    """Returns the paper in whose folder the file is; `None` if there is none."""
    folder = file.resolve().parent
    return shelf.read(folder) if (folder / "paper.toml").is_file() and (folder / "claims.toml").is_file() else None


def judgement(
    given: Mapping[str, Any], key: str, paper: Paper | None, figures: Mapping[str, str], scenarios: Mapping[str, Path]
) -> Judgement:
    """Returns a claim of `[[seek.claim]]`: a claim of the paper, with other bounds if they are
    given, or a claim of the study. Raises `KeyRefusedError` for a claim that the search cannot judge.
    """
    name, own = given["id"], given["metric"] is not None
    bounds = {bound: given[bound] for bound in ("at_least", "at_most") if given[bound] is not None}
    if own:
        table = {k: given[k] for k in ("id", "kind", "metric", "system", "versus", "printed") if given[k] is not None}
        scenario = given["scenario"] or next(iter(scenarios))
        claim = Claim.read({"kind": "value", "figure": scenario, "quote": "", **table, **bounds})
    else:
        known = {claim.id: claim for claim in paper.claims} if paper else {}
        if name not in known:
            hint = "for a claim that is not in the `claims.toml` of the folder, give `metric`, `kind`, `system` and bounds"
            raise KeyRefusedError(*unknown(f"{key}.id", "claim", name, list(known), hint))
        claim = known[name]
        scenario = given["scenario"] or figures.get(claim.scenario or claim.figure, "")
        if bounds:
            claim = replace(claim, within=(), more_than=None, at_least=None, at_most=None)
    if claim.kind == "exact":
        raise KeyRefusedError(
            f"{key}.id", f"the claim `{name}` does not depend on settings", "nothing to search", "remove the claim"
        )
    if claim.kind == "measured" and not (paper and hasattr(paper.drawings(), "measured")):
        hint = "write another `kind`, or move the file to the folder of a paper whose `figures.py` has a function `measured`"
        raise KeyRefusedError(f"{key}.kind", "no `figures.py` in this folder computes numbers", "cannot be measured", hint)
    if given["scenario"]:
        claim = replace(claim, figure=scenario, scenario=scenario)
    others = {figure: figures.get(figure, "") for figure in claim.figures[1:]}
    for figure, needed in {claim.figures[0]: scenario, **others}.items():
        if needed not in scenarios:
            hint = f"list it in `scenarios`; the search has {', '.join(scenarios)}"
            what = f"the claim `{name}` needs the scenario of figure `{figure}`, which the search does not run"
            raise KeyRefusedError(f"{key}.id", what, "not run", hint)
    made = replace(claim, min_seeds=1, **bounds)
    return Judgement(made, scenario, given["fit"], list(others.values()), key, own)
