"""Reproductions: runs the scenarios of a paper's figures, judges its claims, draws its figures and writes its pages."""

from __future__ import annotations

import difflib
import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from flowloom import drawing, pages, report, style
from flowloom.files import write_whole
from flowloom.meter import Meter
from flowloom.numbers import Sample, find
from flowloom.pages import Findings
from flowloom.results import Results
from flowloom.scenario import Scenario, ScenarioWarning
from flowloom.shelf import Paper, load, profiles

PAPER = "paper"
"""The profile that changes nothing: the scenarios as they are."""

SMOKE = "smoke"
"""The profile that every paper has: all scenarios at a small size."""


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` found and wrote."""

    findings: Findings
    folder: Path
    results: Mapping[str, Results]
    """By figure."""
    files: Sequence[Path]


class Runs:
    """Runs scenarios of a paper into folders side by side."""

    def __init__(self, paper: Paper, over: str | None, folder: Path, jobs: int | None, overwrite: bool) -> None:
        self.paper = paper
        self.over = over
        self.folder = folder
        self.jobs = jobs
        self.overwrite = overwrite

    def run(self, scenario: str, meter: Meter | None) -> Results:
        """Runs one; points finished earlier are kept."""
        plan = Scenario.from_file(self.paper.folder / f"{scenario}.toml", profile=self.over)
        with warnings.catch_warnings():
            # What a paper compares, and how, is the paper's.
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
    """Runs a paper's scenarios (points finished earlier are kept), judges its claims, draws its figures and writes all of it.

    `profile` names profiles of the scenarios, laid over them in order: `"literal,smoke"`. With `figure`, only that figure is run,
    and the claims are judged on the results that exist by then. Results of other settings or another version are replaced only with
    `overwrite`. The page of a whole paper at full size also has the digest of the results at profile `smoke`.
    """
    # Results of this run are not stale.
    paper = replace(load(name), stale=None)
    known = [PAPER, *profiles(paper)]
    chosen = profile.split(",")
    for unknown in (p for p in chosen if p not in known):
        near = difflib.get_close_matches(unknown, known, 1)
        did = f"; did you mean `{near[0]}`?" if near else ""
        raise ValueError(f"there is no profile `{unknown}`{did}\nhint: one of {', '.join(known)}")
    over = ",".join(p for p in chosen if p != PAPER) or None
    wanted = [f for f in paper.figures if figure in (None, f.id)]
    if not wanted:
        raise ValueError(f"`{name}` has no figure `{figure}`\nhint: one of {', '.join(f.id for f in paper.figures)}")
    runs = Runs(paper, over, Path(out) / "-".join([name, *chosen]), jobs, overwrite)
    ready: dict[str, Results] = {}
    for scenario in dict.fromkeys(f.scenario for f in wanted if f.scenario):
        ready[scenario] = runs.run(scenario, meter(scenario) if meter else None)
    for other in [one for one in paper.scenarios if one not in ready]:
        if (runs.folder / other / "points.parquet").is_file():
            ready[other] = Results.open(runs.folder / other)
    results = {f.id: ready[f.scenario] for f in paper.figures if f.scenario in ready}
    smoke = smoke_digest(paper, Path(out), jobs, meter, overwrite) if figure is None and over is None else ""
    return write(found(paper, profile, results, smoke), runs.folder, results, [f.id for f in wanted])


def smoke_digest(
    paper: Paper,
    out: Path,
    jobs: int | None = None,
    meter: Callable[[str], Meter] | None = None,
    overwrite: bool = False,
) -> str:
    """A digest of the results of all scenarios at profile `smoke`, which are run into a folder of `out`.

    A page of results at full size carries it: if it is another one today, so may the results be.
    """
    runs = Runs(paper, SMOKE, out / f"{paper.name}-{SMOKE}", jobs, overwrite)
    lines = []
    for scenario in sorted(paper.scenarios):
        done = runs.run(scenario, meter(f"{scenario} ({SMOKE})") if meter else None)
        lines += [f"{scenario} {row['point']} {row['digest']}" for row in done.points().to_pylist()]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def found(paper: Paper, profile: str, results: Mapping[str, Results], smoke: str = "") -> Findings:
    """Takes the numbers of claims and explanations from results."""
    module = paper.drawings()
    computed: dict[str, float | Sample] = dict(module.exact()) if hasattr(module, "exact") else {}
    if hasattr(module, "measured"):
        computed |= module.measured(results)
    numbers = {number.id: find(number, results, computed) for number in paper.every()}
    ran = [figure.id for figure in paper.figures if figure.id in results]
    seeds = {figure: sorted(results[figure].seeds) for figure in ran}
    return Findings(paper, profile, seeds, ran, numbers, smoke)


def write(findings: Findings, folder: Path, results: Mapping[str, Results], drawn: Sequence[str]) -> Reproduction:
    """Draws the figures named in `drawn`, and writes claims, figures and report into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    module = findings.paper.drawings()
    files, parts = [], []
    for figure in findings.paper.figures:
        if (figure.scenario and figure.id not in results) or not hasattr(module, figure.id):
            continue
        with style.look():
            if figure.scenario:
                picture = drawing.signed(getattr(module, figure.id)(results[figure.id]), results[figure.id])
            else:
                picture = getattr(module, figure.id)(findings)
        if figure.id in drawn:
            files += style.save(picture, folder / figure.id)
        parts.append(report.drawing(picture, figure.id, f"{figure.title}."))
    for suffix, content in (
        ("claims.md", pages.page(findings)),
        ("claims.json", findings.to_json()),
        ("report.html", pages.html_page(findings, results, parts)),
    ):
        path = folder / suffix
        write_whole(path, content)
        files.append(path)
    return Reproduction(findings, folder, results, files)
