"""Reads the folders of papers.

A paper is a folder. `paper.toml` lists its figures and their scenarios. `claims.toml` lists its
claims, and other numbers that explanations quote; `[default.FIGURE]` holds keys that the claims of
a figure share. `figures.py` draws figures in the paper's layout, and may compute numbers that
claims are judged on (`exact`, `measured`).
"""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from types import ModuleType
from typing import Any, Self, TypeVar

from flowloom import _core
from flowloom.base import files
from flowloom.base.errors import InputError, KeyRefusedError, did_you_mean
from flowloom.papers import claims
from flowloom.papers.claims import Claim
from flowloom.runs.numbers import Number


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper."""

    id: str
    title: str
    scenario: str = ""
    """The name of the scenario file without its suffix; figures may share a scenario. Empty: drawn
    from the numbers of claims.
    """
    extra: bool = False
    """Whether the figure is not in the paper, but shows how much a choice of ours matters."""


@dataclass(frozen=True)
class Stale:
    """A note that the results on a paper's page are older than the program."""

    since: date
    why: str
    """The reason, in one or two sentences for the readers of the page."""

    @classmethod
    def read(cls, table: Mapping[str, Any]) -> Self:
        """Reads `stale` of a `paper.toml`. Raises `ValueError` unless it has a date and a reason,
        and nothing else.
        """
        try:
            day, why = date.fromisoformat(str(table["since"])), " ".join(table["why"].split())
        except (KeyError, ValueError, AttributeError):
            day, why = date.min, ""
        if not why or len(table) != 2:
            hint = 'stale = { since = "2026-11-24", why = "TCP has limited transmit." }'
            raise InputError(f"`stale` in `paper.toml` is not a date and a reason\nhint: {hint}")
        return cls(day, why)


@dataclass(frozen=True)
class Overview:
    """The row of a paper in the table of all papers. Its texts quote numbers in the same way as
    explanations.
    """

    promise: str
    verdict: str
    region: str
    """The settings, loads and workloads for which the promise holds."""
    price: str

    @property
    def texts(self) -> list[str]:
        """The cells of the row, in order."""
        return [self.promise, self.verdict, self.region, self.price]


@dataclass(frozen=True)
class Paper:
    """A paper with everything that its reproduction needs."""

    name: str
    folder: Path
    title: str
    source: str
    figures: Sequence[Figure]
    claims: Sequence[Claim]
    numbers: Sequence[Number]
    """Numbers that explanations quote in addition to those of the claims."""
    summary: str = ""
    """The first paragraph of the page. It quotes numbers in the same way as explanations."""
    first: str = ""
    """The id of the figure that illustrates the summary."""
    overview: Overview | None = None
    stale: Stale | None = None
    """The note while the page's results are older than the program."""

    @property
    def texts(self) -> list[str]:
        """All texts that quote numbers."""
        return [self.summary, *(self.overview.texts if self.overview else []), *(claim.explanation for claim in self.claims)]

    @property
    def scenarios(self) -> list[str]:
        """The scenarios of its figures, each once."""
        return list(dict.fromkeys(figure.scenario for figure in self.figures if figure.scenario))

    def every(self) -> list[Number]:
        """Returns the numbers of the claims, then the other numbers."""
        return [*self.claims, *self.numbers]

    def taken_from(self, number: Number) -> set[str]:
        """Returns the scenarios whose results a number is taken from."""
        if number.kind == "exact":
            return set()
        of = {figure.id: figure.scenario for figure in self.figures}
        return {of[figure] for figure in number.figures}

    def drawings(self) -> ModuleType:
        """Imports the paper's `figures.py`, which may import files of the same folder (`from
        .routes import fig10`).
        """
        folders = [str(self.folder)]
        spec = importlib.util.spec_from_file_location(
            f"flowloom_papers_{self.name}", self.folder / "figures.py", submodule_search_locations=folders
        )
        assert spec is not None and spec.loader is not None, f"{self.folder} has no figures.py"
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look up their module there
        spec.loader.exec_module(module)
        return module


def home() -> Path:
    """Returns the folder of papers."""
    return files.carried("papers")


def profiles(paper: Paper) -> list[str]:
    """Returns the profiles of the paper's scenarios."""
    files = (paper.folder / f"{scenario}.toml" for scenario in paper.scenarios)
    return sorted({name for file in files for name in tomllib.loads(file.read_text()).get("profile", {})})


def names() -> list[str]:
    """Returns the names of all papers."""
    return sorted(folder.parent.name for folder in home().glob("*/paper.toml"))


def load(name: str) -> Paper:
    """Reads a paper by its name. Raises `ValueError` if there is none."""
    folder = home() / name
    if not (folder / "paper.toml").is_file():
        did = did_you_mean(name, names())
        raise InputError(f"there is no paper `{name}`{did}\nhint: one of {', '.join(names())}")
    return read(folder)


AnyNumber = TypeVar("AnyNumber", bound=Number)


def read_all(what: type[AnyNumber], tables: Sequence[Mapping[str, Any]], file: Path) -> list[AnyNumber]:
    """Reads claims or numbers from their tables in a file. Raises `ScenarioError` with all mistakes
    and their places.
    """
    found, problems = [], []
    for index, table in enumerate(tables):
        try:
            found.append(what.read(table))
        except KeyRefusedError as refused:
            key = f"{what.__name__.lower()}.{index}.{refused.key}"
            problems.append((key, refused.message, refused.label, refused.hint))
    if problems:
        raise _core.located(files.text(file), str(file), problems)
    return found


def read(folder: Path) -> Paper:
    """Reads a folder as that of a paper. Raises `ValueError` or `ScenarioError` for mistakes in its files."""
    name = folder.name
    claims_file = folder / "claims.toml"
    head, listed = files.toml(folder / "paper.toml"), files.toml(claims_file)
    defaults = listed.get("default", {})
    paper = Paper(
        name,
        folder,
        head["title"],
        head["source"],
        [Figure(**figure) for figure in head["figure"]],
        read_all(Claim, [defaults.get(one.get("figure", ""), {}) | one for one in listed["claim"]], claims_file),
        read_all(Number, listed.get("number", []), claims_file),
        " ".join(head.get("summary", "").split()),
        head.get("first", ""),
        Overview(**head["overview"]) if "overview" in head else None,
        Stale.read(head["stale"]) if "stale" in head else None,
    )
    known = {figure.id for figure in paper.figures}
    for figure in defaults:
        if figure not in known:
            raise InputError(f"`default.{figure}` in `claims.toml` names no figure of `{name}`")
    if paper.first and paper.first not in known:
        raise InputError(f"`first` of `{name}` names `{paper.first}`, which is not a figure of the paper")
    every = paper.every()
    for number in every:
        for figure in [number.figure, *number.figures]:
            if figure not in known:
                raise InputError(f"`{number.id}` names `{figure}`, which is not a figure of `{name}`")
    doubled = [number.id for number in every if [n.id for n in every].count(number.id) > 1]
    if doubled:
        raise InputError(f"two claims or numbers have the id `{min(doubled)}`")
    for text in paper.texts:
        claims.filled(text, {number.id: (number, ()) for number in every})
    return paper
