"""Reproductions: run the scenarios of a paper's figures, judge its claims, draw its figures and
write its pages.
"""

from __future__ import annotations

import json
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from flowloom import _core
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario, ScenarioWarning
from flowloom.base.errors import InputError, did_you_mean
from flowloom.base.files import write_whole
from flowloom.base.meter import Meter
from flowloom.figures import drawing, style
from flowloom.pages import report
from flowloom.papers import pages
from flowloom.papers.pages import Findings
from flowloom.papers.shelf import Figure, Paper, Stale, load, profiles
from flowloom.runs.numbers import Found, Sample, find

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

PAPER = "paper"
"""The profile that changes nothing."""

SMOKE = "smoke"
"""The profile that every paper has: all scenarios at a small size."""


@dataclass(frozen=True)
class Reproduction:
    """The findings and the files of `reproduce` or `update`."""

    findings: Findings
    folder: Path
    results: Mapping[str, Results]
    """The results by figure id."""
    files: Sequence[Path]


class Runs:
    """Runs scenarios of a paper into folders next to each other."""

    def __init__(self, paper: Paper, over: str | None, folder: Path, jobs: int | None, overwrite: bool) -> None:
        self.paper = paper
        self.over = over
        self.folder = folder
        self.jobs = jobs
        self.overwrite = overwrite

    def run(self, scenario: str, meter: Meter | None) -> Results:
        """Runs a scenario; points that are finished already are kept."""
        plan = Scenario.from_file(self.paper.folder / f"{scenario}.toml", profile=self.over)
        with warnings.catch_warnings():
            # The comparisons are those of the paper.
            warnings.simplefilter("ignore", ScenarioWarning)
            done = plan.run(jobs=self.jobs, out=self.folder / scenario, progress=meter, overwrite=self.overwrite)
        if meter is not None:
            meter.close()
        return done


def reproduce(
    name: str,
    figure: str | None = None,
    profile: str = PAPER,
    jobs: int | None = None,
    out: str | Path = "results/papers",
    meter: Callable[[str], Meter] | None = Meter,
    overwrite: bool = False,
) -> Reproduction:
    """Runs a paper's scenarios, judges its claims, draws its figures and writes all of it. Points
    that are finished already are kept.

    `profile` names profiles of the scenarios, applied in order: `"literal,smoke"`. With `figure`,
    only this figure is run, and the claims are judged on the results that exist. Results of other
    settings or another version are replaced only with `overwrite`.
    """
    # The results of this run are up to date.
    paper = replace(load(name), stale=None)
    known = [PAPER, *profiles(paper)]
    chosen = profile.split(",")
    for unknown in (p for p in chosen if p not in known):
        raise InputError(f"there is no profile `{unknown}`{did_you_mean(unknown, known)}\nhint: one of {', '.join(known)}")
    over = ",".join(p for p in chosen if p != PAPER) or None
    wanted = figures_of(paper, figure)
    runs = Runs(paper, over, Path(out) / "-".join([name, *chosen]), jobs, overwrite)
    ready: dict[str, Results] = {}
    for scenario in dict.fromkeys(f.scenario for f in wanted if f.scenario):
        ready[scenario] = runs.run(scenario, meter(scenario) if meter else None)
    for other in [one for one in paper.scenarios if one not in ready]:
        if (runs.folder / other / "points.parquet").is_file():
            ready[other] = Results.open(runs.folder / other)
    results = {f.id: ready[f.scenario] for f in paper.figures if f.scenario in ready}
    return write(found(paper, profile, results), runs.folder, results, [f.id for f in wanted])


def figures_of(paper: Paper, figure: str | None) -> list[Figure]:
    """Returns all figures of a paper, or the named one."""
    wanted = [f for f in paper.figures if figure in (None, f.id)]
    if not wanted:
        known = [known.id for known in paper.figures]
        raise InputError(f"`{paper.name}` has no figure `{figure}`{did_you_mean(figure, known)}\nhint: one of {', '.join(known)}")
    return wanted


def update(
    name: str,
    page: str | Path,
    figure: str | None = None,
    jobs: int | None = None,
    out: str | Path = "results/papers",
    meter: Callable[[str], Meter] | None = Meter,
) -> Reproduction:
    """Brings the page of a paper up to date: a folder with `README.md`, `claims.json` and figures,
    created if it is missing.

    Only these scenarios run at full size: those whose plan has changed, those whose results at
    profile `smoke` have changed, those of claims whose numbers the page lacks, and, with `figure`,
    that of this figure. All other numbers of the page stay. The page takes each scenario as it
    finishes: an interrupted update continues there, even if its results were removed.
    """
    paper = replace(load(name), stale=None)
    folder = Path(page)
    file = folder / "claims.json"
    text = file.read_text(encoding="utf-8") if file.is_file() else pages.NOTHING
    was = Findings.from_json(paper, text)
    today = hashes(paper, Path(out), jobs, meter)
    asked = {one.scenario for one in figures_of(paper, figure)} - {""} if figure else set()
    due = outdated(was, today, asked)
    runs = Runs(paper, None, Path(out) / f"{name}-{PAPER}", jobs, True)
    unfinished = Stale(date.today(), f"`flowloom papers {name} --update` was interrupted; the same command continues.")
    every: dict[str, Results] = {}
    while due:
        # Scenarios that are compared with each other are replaced together.
        group = closed(paper, {next(one for one in paper.scenarios if one in due)}) & due
        due -= group
        ready = {one: runs.run(one, meter(one) if meter else None) for one in paper.scenarios if one in group}
        results = {one.id: ready[one.scenario] for one in paper.figures if one.scenario in ready}
        was = was.with_new(found(paper, PAPER, results), group, today)
        every |= results
        if due:
            write_page(replace(was, paper=replace(paper, stale=unfinished)), folder, results)
    return write_page(was, folder, every)


def outdated(was: Findings, today: Mapping[str, Mapping[str, str]], asked: Collection[str] = ()) -> set[str]:
    """Returns the scenarios whose results a page needs: those asked for, those that have changed,
    and those that a missing number needs.

    A number that compares several scenarios needs all of them if it needs one.
    """
    paper = was.paper
    found = {one for one in paper.scenarios if was.scenarios.get(one) != today.get(one)} | set(asked)
    needed = [paper.taken_from(number) for number in paper.every()]
    missing = [taken for number, taken in zip(paper.every(), needed, strict=True) if was.lacks(number)]
    return closed(paper, found.union(*missing))


def closed(paper: Paper, scenarios: Collection[str]) -> set[str]:
    """Returns these scenarios, and those that numbers compare with them."""
    known = set(scenarios)
    needed = [paper.taken_from(number) for number in paper.every()]
    while more := {one for taken in needed if taken & known for one in taken} - known:
        known |= more
    return known


def hashes(
    paper: Paper,
    out: Path,
    jobs: int | None = None,
    meter: Callable[[str], Meter] | None = None,
) -> dict[str, dict[str, str]]:
    """Returns, by scenario, hashes of its plan and of its results at profile `smoke`, on which its
    results at full size depend.

    The results are written to a folder in `out`. If their hash differs from the one on a page, the
    page may be out of date.
    """
    runs = Runs(paper, SMOKE, out / f"{paper.name}-{SMOKE}", jobs, True)
    known = {}
    for scenario in paper.scenarios:
        plan = tomllib.loads((paper.folder / f"{scenario}.toml").read_text(encoding="utf-8"))
        plan.pop("profile", None)
        done = runs.run(scenario, meter(f"{scenario} ({SMOKE})") if meter else None)
        lines = [f"{row['point']} {row['digest']}" for row in done.points().to_pylist()]
        whole = json.dumps(plan, sort_keys=True, default=str), "\n".join(lines)
        known[scenario] = {key: _core.content_hash(text.encode())[:8] for key, text in zip(("plan", "smoke"), whole, strict=True)}
    return known


def found(paper: Paper, profile: str, results: Mapping[str, Results]) -> Findings:
    """Computes the numbers of claims and explanations from results."""
    module = paper.drawings()
    exact: dict[str, float | Sample] = dict(module.exact()) if hasattr(module, "exact") else {}
    measured: dict[frozenset[str], Mapping[str, float | Sample]] = {}
    numbers: dict[str, Sequence[Found]] = {}
    for number in paper.every():
        computed = exact
        if number.kind == "measured" and hasattr(module, "measured"):
            # The function gets only the results that the number declares.
            taken = frozenset(paper.taken_from(number))
            if taken not in measured:
                measured[taken] = module.measured(
                    {f.id: results[f.id] for f in paper.figures if f.scenario in taken and f.id in results}
                )
            computed = {**measured[taken]}
        numbers[number.id] = find(number, results, computed)
    ran = [figure.id for figure in paper.figures if figure.id in results]
    seeds = {figure: sorted(results[figure].seeds) for figure in ran}
    return Findings(paper, profile, seeds, ran, numbers)


def write(findings: Findings, folder: Path, results: Mapping[str, Results], drawn: Sequence[str]) -> Reproduction:
    """Draws the figures in `drawn`, and writes claims, figures and report into `folder`."""
    files, parts = [], []
    for figure, picture in pictures(findings, results):
        if figure.id in drawn:
            files += style.save(picture, folder / figure.id)
        parts.append(report.drawing(picture, figure.id, f"{figure.title}."))
    for suffix, content in (
        ("claims.md", pages.page(findings)),
        ("claims.json", findings.to_json()),
        ("report.html", pages.html_page(findings, results, parts)),
    ):
        write_whole(folder / suffix, content)
        files.append(folder / suffix)
    return Reproduction(findings, folder, results, files)


def write_page(findings: Findings, folder: Path, results: Mapping[str, Results]) -> Reproduction:
    """Writes the page of a paper, and those of its figures that have new results. Removes figures
    that the paper no longer has.
    """
    files = []
    for figure, picture in pictures(findings, results):
        files += style.save(picture, folder / f"{figure.id}.png")
    shown = {figure.id for figure in findings.shown}
    for left in folder.glob("*.png"):
        if left.stem not in shown:
            left.unlink()
    for name, content in (("claims.json", findings.to_json()), ("README.md", pages.page(findings, folder))):
        write_whole(folder / name, content)
        files.append(folder / name)
    return Reproduction(findings, folder, results, files)


def pictures(findings: Findings, results: Mapping[str, Results]) -> Iterator[tuple[Figure, Drawn]]:
    """Draws the figures that have results, and those that show the numbers of claims."""
    module = findings.paper.drawings()
    for figure in findings.paper.figures:
        draw = getattr(module, figure.id, None)
        if draw is None or figure not in findings.shown or (figure.scenario and figure.id not in results):
            continue
        with style.look():
            if figure.scenario:
                yield figure, drawing.signed(draw(results[figure.id]), results[figure.id])
            else:
                yield figure, draw(findings)
