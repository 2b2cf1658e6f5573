"""Studies: the open settings, the claims that are searched for, and the scenarios on which they are judged."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from flowloom import _core
from flowloom.base import words
from flowloom.papers import shelf
from flowloom.papers.claims import Claim
from flowloom.papers.shelf import Paper
from flowloom.runs.numbers import COMPUTED

DIGITS = 3
"""The significant digits of a value, few enough for scenarios and tables to be readable."""


PROFILE = "profile"
"""The key of a setting whose values are names of profiles, which may set any keys."""

BASES = {"ns": ("s", 1e-9), "B": ("bytes", 1.0), "bps": ("bps", 1.0)}
"""The base units of settings as units that figures scale, with their sizes."""


@dataclass(frozen=True)
class Setting:
    """An open setting: numbers in a range, or listed values. A place has a coordinate from 0 to 1
    for each setting.
    """

    name: str
    keys: Sequence[str]
    source: str
    choices: Sequence[str] = ()
    low: float = 0.0
    high: float = 1.0
    unit: str = ""
    whole: bool = False
    log: bool = False
    usual: str | None = None

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Reads a setting from the table that the compiled part returns."""
        made = cls(table["name"], table["keys"], table["source"], table["choices"], usual=table["usual"])
        if table["range"] is None:
            return made
        low, high, unit, whole = table["range"]
        return replace(made, low=low, high=high, unit=unit, whole=whole, log=table["log"] == "true")

    @property
    def levels(self) -> int:
        """The number of listed values; 0 for a range."""
        return len(self.choices)

    def value(self, coordinate: float) -> str:
        """Returns the value at a coordinate, as it is written after `--set KEY=`."""
        if self.choices:
            return self.choices[min(int(coordinate * self.levels), self.levels - 1)]
        number = self.low * (self.high / self.low) ** coordinate if self.log else self.low + (self.high - self.low) * coordinate
        rounded = min(max(float(f"{number:.{DIGITS}g}"), self.low), self.high)
        return f"{round(rounded) if self.whole else f'{rounded:.{DIGITS}g}'}{self.unit}"

    def coordinate(self, value: str) -> float | None:
        """Returns the coordinate of a value; `None` for a value that is out of the range or not listed."""
        if self.choices:
            return (self.choices.index(value) + 0.5) / self.levels if value in self.choices else None
        number = self.number(value)
        if number is None or not self.low <= number <= self.high:
            return None
        if self.log:
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / (self.high - self.low)

    def number(self, value: str) -> float | None:
        """Returns a value as a number of the setting's unit; `None` if it is not one."""
        both, unit = words.literals([value, f"1{self.unit}"])
        return both[0] / both[1] if both is not None and unit else None if self.unit else plain(value)

    def shown(self, value: str) -> str:
        """Returns a value for people: `34.6 kB`, `tail`."""
        number = None if self.choices else self.number(value)
        if number is None:
            return value
        factor, name = self.scale([number])
        return f"{number * factor:.{DIGITS}g}{f' {name}' if name else ''}"

    def scale(self, numbers: Sequence[float]) -> tuple[float, str]:
        """Returns the factor and the unit with which numbers of the setting are easiest to read."""
        if self.unit not in BASES:
            return 1.0, self.unit
        base, size = BASES[self.unit]
        factor, name = words.scale(base, [number * size for number in numbers])
        return size / factor, name


def plain(value: str) -> float | None:
    """Returns a value as a number without a unit; `None` if it is not one."""
    try:
        return float(value)
    except ValueError:
        return None


@dataclass(frozen=True)
class Place:
    """A place in the space of settings: a value for each setting."""

    coordinates: Sequence[float]
    values: Sequence[str]

    def assignments(self, settings: Sequence[Setting]) -> dict[str, str]:
        """Returns the keys of the scenarios with their values; the values of several profiles
        become one list.
        """
        found: dict[str, str] = {}
        for setting, value in zip(settings, self.values, strict=True):
            for key in setting.keys:
                found[key] = f"{found[key]},{value}" if key.rpartition(":")[2] == PROFILE and key in found else value
        return found

    def name(self, settings: Sequence[Setting]) -> str:
        """Returns the name of the folder of the place, which depends only on the values that the place sets."""
        text = "\n".join(f"{key}={value}" for key, value in sorted(self.assignments(settings).items()))
        return _core.content_hash(text.encode())[:12]


@dataclass(frozen=True)
class Judgement:
    """A claim of a study."""

    claim: Claim
    scenario: str
    fit: bool

    @property
    def id(self) -> str:
        """The id of the claim."""
        return self.claim.id


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
        found = [setting.coordinate(setting.usual) if setting.usual is not None else None for setting in self.settings]
        if None in found:
            return None
        return Place(tuple(u for u in found if u is not None), tuple(s.usual or "" for s in self.settings))

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
        return [name for name in self.scenarios if not self.fitted or name in {one.scenario for one in self.fitted}]

    @cached_property
    def confirming(self) -> list[str]:
        """The scenarios that run only at the best places and at the usual place."""
        return [name for name in self.scenarios if name not in self.searched]

    def refuse_unknown(self) -> None:
        """Raises `ValueError` for unknown systems and metrics, and `ScenarioError` for settings
        that a scenario does not have.
        """
        middle = self.place([0.5] * len(self.settings))
        systems = {
            name: list(dict.fromkeys(point["system"] for point in self.scenario(name, middle).points)) for name in self.scenarios
        }
        metrics = [entry["name"] for entry in _core.entries("metrics")]
        asked = [
            (one.claim.metric, [one.claim.system, one.claim.versus, *one.claim.systems], one.scenario) for one in self.judgements
        ]
        if self.options["objective"] == "ratio":
            asked.append((self.options["metric"], [self.options["system"], self.options["versus"]], next(iter(self.scenarios))))
        computed = {one.claim.metric for one in self.judgements if one.claim.kind in COMPUTED}
        for metric, labels, scenario in asked:
            if metric not in computed:
                refuse(self.file, "metric", metric, metrics, "`flowloom list metrics` prints all names")
            for label in filter(None, labels):
                refuse(self.file, "system", label, systems[scenario], f"there are {', '.join(systems[scenario])}")

    def scenario(self, name: str, place: Place) -> _core.Scenario:
        """Returns a scenario at a place. Raises `ScenarioError` for settings that it does not have."""
        return self.with_values(name, place.assignments(self.settings))

    def with_values(self, name: str, values: Mapping[str, str], seeds: Sequence[int] | None = None) -> _core.Scenario:
        """Returns a scenario with values for some of its keys, and with other seeds if they are
        given.

        A key `NAME:KEY` is set only in the scenario NAME.
        """
        path = self.scenarios[name]
        text = path.read_text(encoding="utf-8")
        own: dict[str, str] = {}
        profiles = [self.profile] if self.profile else []
        for key, value in values.items():
            scenario, _, rest = key.rpartition(":")
            if scenario in self.scenarios and scenario != name:
                continue
            plain_key = rest if scenario in self.scenarios else key
            if plain_key == PROFILE:
                profiles.append(value)
            else:
                own[plain_key] = value
        return _core.Scenario.from_toml(
            text, str(path), str(path.parent), list(own.items()), seeds, ",".join(profiles) or None, None
        )


def refuse(file: Path, what: str, name: str, known: Sequence[str], hint: str) -> None:
    """Raises `ValueError` for a name that is not known."""
    if name not in known:
        near = _core.nearest(name, list(known))
        did = f"; did you mean `{near}`?" if near else ""
        raise ValueError(f"`{file}`: there is no {what} `{name}`{did}\nhint: {hint}")


def read(file: Path) -> Study:
    """Reads a file with `[seek]`. Raises `ScenarioError` or `ValueError` for mistakes in it."""
    text = file.read_text(encoding="utf-8")
    table = _core.seek(text, str(file))
    if table is None:
        raise ValueError(f"`{file}` has no table `[seek]`\nhint: the table names the open settings; see `flowloom explain seek`")
    paper = paper_of(file)
    scenarios = {Path(name).stem: file.parent / name for name in table["scenarios"]} or {file.stem: file}
    for path in scenarios.values():
        if not path.is_file():
            raise ValueError(f"`{file}`: there is no scenario `{path}`\nhint: `scenarios` lists files of the same folder")
    figures = {f.id: f.scenario for f in paper.figures if f.scenario in scenarios} if paper else {}
    judgements = [judgement(claim, paper, figures, scenarios, file) for claim in table["claims"]]
    head = tomllib.loads(text)
    default = f"{file.resolve().parent.name}-seek" if file.stem == "seek" else f"{file.stem}-seek"
    settings = [Setting.read(setting) for setting in table["settings"]]
    name = str(head["name"]) if table["scenarios"] and "name" in head else default
    return Study(file, name, settings, judgements, scenarios, table, paper, figures)


def paper_of(file: Path) -> Paper | None:
    """Returns the paper in whose folder the file is; `None` if there is none."""
    folder = file.resolve().parent
    return shelf.read(folder) if (folder / "paper.toml").is_file() and (folder / "claims.toml").is_file() else None


def judgement(
    given: Mapping[str, Any], paper: Paper | None, figures: Mapping[str, str], scenarios: Mapping[str, Path], file: Path
) -> Judgement:
    """Returns a claim of `[[seek.claim]]`: a claim of the paper, with other bounds if they are
    given, or a claim of the study.
    """
    name, first = given["id"], next(iter(scenarios))
    bounds = {key: given[key] for key in ("at_least", "at_most") if given[key] is not None}
    if given["metric"] is None:
        known = {claim.id: claim for claim in paper.claims} if paper else {}
        if name not in known:
            near = _core.nearest(name, list(known))
            did = f"; did you mean `{near}`?" if near else ""
            hint = "for a claim that is not in the `claims.toml` of the folder, give `metric`, `kind`, `system` and bounds"
            raise ValueError(f"`{file}`: there is no claim `{name}`{did}\nhint: {hint}")
        claim = known[name]
        scenario = given["scenario"] or figures.get(claim.scenario or claim.figure, "")
        if bounds:
            claim = replace(claim, within=(), more_than=None, at_least=None, at_most=None)
    else:
        table = {key: given[key] for key in ("id", "kind", "metric", "system", "versus", "printed") if given[key] is not None}
        scenario = given["scenario"] or first
        claim = Claim.read({"kind": "value", "figure": scenario, "quote": "", **table, **bounds})
    if given["scenario"]:
        claim = replace(claim, figure=scenario, scenario=scenario)
    if scenario not in scenarios:
        wanted = f"scenario `{scenario}`" if scenario else f"scenario of figure `{claim.figure}`"
        hint = f"list it in `scenarios`; there {'is' if len(scenarios) == 1 else 'are'} {', '.join(scenarios)}"
        raise ValueError(f"`{file}`: claim `{name}` is judged on the {wanted}, which the search does not run\nhint: {hint}")
    return Judgement(replace(claim, min_seeds=1, **bounds), scenario, given["fit"] == "true")
