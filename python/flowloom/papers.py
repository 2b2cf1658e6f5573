"""Reproductions: runs the scenarios of a paper's figures, judges its claims and draws its figures.

A paper is a folder: `paper.toml` lists its figures and their scenarios, `claims.toml` its claims, and `figures.py` draws figures
in the paper's layout, and may compute numbers that claims are judged on (`exact`, `measured`).
"""

from __future__ import annotations

import difflib
import html
import importlib.util
import json
import math
import sys
import time
import tomllib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from flowloom import claims, report, style, tables
from flowloom.claims import Claim, Judged
from flowloom.files import write_whole
from flowloom.results import Results
from flowloom.scenario import Scenario, ScenarioWarning

PAPER = "paper"
"""The profile that changes nothing: the scenarios as they are."""


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper."""

    id: str
    title: str
    scenario: str
    """Its scenario file, without the suffix. Figures that show the same runs share one."""
    extra: bool = False
    """Not in the paper: shows how much a choice of ours matters."""


@dataclass(frozen=True)
class Paper:
    """A paper with what is needed to reproduce it."""

    name: str
    folder: Path
    title: str
    source: str
    figures: Sequence[Figure]
    claims: Sequence[Claim]

    def drawings(self) -> ModuleType:
        """The paper's `figures.py`."""
        spec = importlib.util.spec_from_file_location(f"flowloom_papers_{self.name}", self.folder / "figures.py")
        assert spec is not None and spec.loader is not None, f"{self.folder} has no figures.py"
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module


def home() -> Path:
    """The folder of papers: that of the checkout this package runs from, or else the one installed with it."""
    here = Path(__file__).resolve().parent
    checkout = here.parents[1] / "papers"
    return checkout if checkout.is_dir() else here / "papers_data"


def profiles(paper: Paper) -> list[str]:
    """The profiles that its scenarios have."""
    files = (paper.folder / f"{figure.scenario}.toml" for figure in paper.figures)
    return sorted({name for file in files for name in tomllib.loads(file.read_text()).get("profile", {})})


def names() -> list[str]:
    """The papers there are."""
    return sorted(folder.parent.name for folder in home().glob("*/paper.toml"))


def load(name: str) -> Paper:
    """Reads a paper's folder."""
    folder = home() / name
    if not (folder / "paper.toml").is_file():
        raise ValueError(f"there is no paper `{name}`\nhint: one of {', '.join(names())}")
    head = tomllib.loads((folder / "paper.toml").read_text(encoding="utf-8"))
    listed = tomllib.loads((folder / "claims.toml").read_text(encoding="utf-8"))
    paper = Paper(
        name,
        folder,
        head["title"],
        head["source"],
        [Figure(**figure) for figure in head["figure"]],
        [Claim.read(claim) for claim in listed["claim"]],
    )
    known = {figure.id for figure in paper.figures}
    for claim in paper.claims:
        for figure in filter(None, (claim.figure, claim.scenario, claim.than if claim.kind == "contrast" else "")):
            if figure not in known:
                raise ValueError(f"claim `{claim.id}` names `{figure}`, which is not a figure of `{name}`")
    doubled = {claim.id for claim in paper.claims if [c.id for c in paper.claims].count(claim.id) > 1}
    if doubled:
        raise ValueError(f"two claims have the id `{min(doubled)}`")
    return paper


class Meter:
    """Shows the progress of a run and the time that is left: on a terminal one line, elsewhere a line per tenth."""

    def __init__(self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.label = label
        self.stream = stream if stream is not None else sys.stderr
        self.clock = clock
        self.began = clock()
        self.skipped: float | None = None
        self.tenth = -1

    def __call__(self, progress: Mapping[str, Any]) -> None:
        """Takes what a run reports."""
        total = float(progress.get("points_total") or 1)
        inside = float(progress.get("flows_done") or 0) / float(progress.get("flows_total") or 1)
        share = min((float(progress.get("points_done") or 0) + min(inside, 0.99)) / total, 1.0)
        if self.skipped is None:  # points of an earlier run say nothing about the pace of this one
            self.skipped = float(progress.get("points_skipped") or 0) / total
        spent = self.clock() - self.began
        pace = share - self.skipped
        wait = progress.get("remaining_s")
        if wait is None and pace > 0:
            wait = spent * (1 - share) / pace
        left = f", {span(float(wait))} left" if wait is not None and share < 1 else ""
        done = f"{int(progress.get('points_done') or 0)} of {int(total)} points, {span(spent)}{left}"
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{self.label}: {done}")
        elif int(10 * share) > self.tenth:
            self.tenth = int(10 * share)
            self.stream.write(f"{self.label}: {done}\n")
        self.stream.flush()

    def close(self) -> None:
        """Ends the line."""
        if self.stream.isatty():
            self.stream.write("\n")


def span(seconds: float) -> str:
    """A time to wait: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"


@dataclass(frozen=True)
class Reproduction:
    """What `reproduce` found and wrote."""

    paper: Paper
    profile: str
    folder: Path
    results: Mapping[str, Results]
    """By figure."""
    judged: Sequence[Judged]
    files: Sequence[Path]


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
    `overwrite`.
    """
    paper = load(name)
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
    folder = Path(out) / "-".join([name, *chosen])
    ready: dict[str, Results] = {}
    for scenario in dict.fromkeys(f.scenario for f in wanted):
        show = meter(scenario) if meter else None
        plan = Scenario.from_file(paper.folder / f"{scenario}.toml", profile=over)
        with warnings.catch_warnings():
            # What a paper compares, and how, is the paper's.
            warnings.simplefilter("ignore", ScenarioWarning)
            ready[scenario] = plan.run(jobs=jobs, out=folder / scenario, progress=show, overwrite=overwrite)
        if show is not None:
            show.close()
    for other in {f.scenario for f in paper.figures} - ready.keys():
        if (folder / other / "points.parquet").is_file():
            ready[other] = Results.open(folder / other)
    results = {f.id: ready[f.scenario] for f in paper.figures if f.scenario in ready}
    return write(paper, profile, folder, results, [f.id for f in wanted])


def write(paper: Paper, profile: str, folder: Path, results: Mapping[str, Results], drawn: Sequence[str]) -> Reproduction:
    """Judges, draws the figures named in `drawn`, and writes claims, figures and report into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    module = paper.drawings()
    computed: dict[str, float | claims.Sample] = dict(module.exact()) if hasattr(module, "exact") else {}
    if hasattr(module, "measured"):
        computed |= module.measured(results)
    judged = [claims.judge(claim, results, computed) for claim in paper.claims]
    files, parts = [], []
    for figure in paper.figures:
        if figure.id not in results or not hasattr(module, figure.id):
            continue
        with style.look():
            picture = getattr(module, figure.id)(results[figure.id])
        if figure.id in drawn:
            files += style.save(picture, folder / figure.id)
        parts.append(report.drawing(picture, figure.id, f"{figure.title}."))
    for suffix, content in (
        ("claims.md", page(paper, profile, judged, results)),
        ("claims.json", json.dumps(as_json(paper, profile, judged), indent=2, ensure_ascii=False) + "\n"),
        ("report.html", html_page(paper, profile, judged, results, parts)),
    ):
        path = folder / suffix
        write_whole(path, content)
        files.append(path)
    return Reproduction(paper, profile, folder, results, judged, files)


def counts(judged: Sequence[Judged]) -> str:
    """How many of the paper's own claims are met, then how many others: `12 met, 1 not met; calibrated or ours: 3 met`."""

    def count(those: Sequence[Judged]) -> str:
        verdicts = [j.verdict for j in those]
        return ", ".join(f"{verdicts.count(v)} {v}" for v in (claims.MET, claims.NOT_MET, claims.UNDECIDED) if v in verdicts)

    own = [j for j in judged if j.claim.source in claims.PAPER_SOURCES]
    others = count([j for j in judged if j not in own])
    return "; ".join(filter(None, [count(own), f"calibrated or ours: {others}" if others else ""]))


def found_text(j: Judged) -> str:
    """Our number with its interval, and at which swept values if there are several."""
    where = f" at {j.worst.where}" if len(j.parts) > 1 and j.worst.where else ""
    return claims.text(j.claim, j.worst.estimate) + where


def claims_table(judged: Sequence[Judged]) -> tables.Table:
    """The claims: what is claimed, the paper's number, ours with its 95 % interval, the bounds, the verdict."""
    heads = ["claim", "from", "in words", "paper", "ours [95 %]", "met if", "verdict"]
    rows = [
        [
            j.claim.id,
            j.claim.source,
            j.claim.says or j.claim.quote,
            j.claim.printed,
            found_text(j),
            claims.bound_text(j.claim),
            j.verdict + (f" ({j.reason})" if j.reason else ""),
        ]
        for j in judged
    ]
    return tables.Table(heads, rows, len(heads))


def console(reproduction: Reproduction) -> str:
    """The claims for a terminal: one line each, then the words on what is not met."""
    judged = [j for j in reproduction.judged if j.claim.figure in reproduction.results or j.claim.kind == "exact"]
    rows = [
        [j.claim.id, shortened(j.claim.says or j.claim.quote, 56), shortened(j.claim.printed, 18), found_text(j), j.verdict]
        for j in judged
    ]
    lines = [str(tables.Table(["claim", "in words", "paper", "ours [95 %]", "verdict"], rows, 5)), "", counts(judged)]
    for j in judged:
        if j.verdict == claims.NOT_MET and j.claim.explanation:
            lines.append(f"{j.claim.id}: {j.claim.explanation}")
    return "\n".join(lines)


def shortened(text: str, most: int) -> str:
    """A text cut at a word."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def seeds_text(results: Mapping[str, Results]) -> str:
    """The seeds of all results."""
    found = sorted({seed for r in results.values() for seed in r.seeds})
    return ", ".join(map(str, found))


def page(paper: Paper, profile: str, judged: Sequence[Judged], results: Mapping[str, Results]) -> str:
    """The claims as a Markdown page beside the figures: pictures, tables, then a word on each claim that is not met or open."""
    lines = [
        f"# {paper.title}",
        "",
        paper.source,
        "",
        f"Written by `flowloom papers {paper.name} --profile {profile}`; seeds {seeds_text(results)}. "
        f"Settings, choices and deviations: papers/{paper.name}/README.md.",
        "",
        f"Result: {counts(judged)}.",
        "",
    ]
    for figure in paper.figures:
        here = [j for j in judged if j.claim.figure == figure.id]
        if here or figure.id in results:
            lines += [f"## {figure.title}", ""]
        if figure.id in results:
            lines += [f"![{figure.title}]({figure.id}.png)", ""]
        if here:
            lines += [claims_table(here).markdown(), ""]
    open_ones = [j for j in judged if j.verdict != claims.MET]
    if open_ones:
        lines += ["## What is not met, or open", ""]
        for j in open_ones:
            why = j.claim.explanation or j.reason or "no explanation yet"
            lines += [f"- **{j.claim.id}** ({j.verdict}): {why}"]
        lines.append("")
    lines += ["## How claims are judged", ""]
    for j in judged:
        if j.claim.rule:
            lines.append(f"- {j.claim.id}: {j.claim.rule}")
    lines += ["", " ".join(claims.RULES.split()), ""]
    return "\n".join(lines)


def number(value: float) -> float | None:
    """A number that JSON has."""
    return value if math.isfinite(value) else None


def as_json(paper: Paper, profile: str, judged: Sequence[Judged]) -> dict[str, Any]:
    """The claims for programs."""

    def part(p: claims.Part) -> dict[str, Any]:
        e = p.estimate
        found: dict[str, Any] = {"where": p.where, "verdict": p.verdict, "reason": p.reason}
        if e is not None:
            found |= {"mean": number(e.mean), "ci95": [number(e.low), number(e.high)], "seeds": e.seeds}
        return found

    return {
        "paper": paper.name,
        "profile": profile,
        "claims": [
            {
                "id": j.claim.id,
                "figure": j.claim.figure,
                "quote": j.claim.quote,
                "source": j.claim.source,
                "kind": j.claim.kind,
                "metric": j.claim.metric,
                "printed": j.claim.printed,
                "bounds": [number(b) for b in j.claim.bounds],
                "verdict": j.verdict,
                "parts": [part(p) for p in j.parts],
                "explanation": j.claim.explanation,
            }
            for j in judged
        ],
    }


def html_page(paper: Paper, profile: str, judged: Sequence[Judged], results: Mapping[str, Results], parts: Sequence[str]) -> str:
    """The report: claims, figures, the summaries of all runs with their warnings and settings."""
    table = claims_table(judged).html().replace("<table>", "<table class=claims>", 1)
    body = [
        f"<h1>{html.escape(paper.title)}</h1>",
        f"<p class=note>{html.escape(paper.source)} · profile {profile} · seeds {seeds_text(results)} · {counts(judged)}</p>",
        report.section("Claims", table),
        report.section("Figures", *parts),
    ]
    for scenario in dict.fromkeys(f.scenario for f in paper.figures):
        found = next((results[f.id] for f in paper.figures if f.scenario == scenario and f.id in results), None)
        if found is None:
            continue
        warned = "".join(f"<li>{html.escape(w)}</li>" for w in report.warnings(found))
        listed = f"<ul class=warn>{warned}</ul>" if warned else ""
        body.append(report.section(f"Runs of {scenario}", listed, tables.summary(found).html(), report.settings(found)))
    return report.page(f"{paper.title}: reproduction", body)
