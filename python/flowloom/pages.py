"""What was found for a paper, and the pages and tables that tell it: Markdown, JSON, HTML, and lines for a terminal."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flowloom import claims, report, tables
from flowloom.claims import Claim, Judged
from flowloom.numbers import Estimate, Found, Number
from flowloom.results import Results
from flowloom.shelf import Paper


@dataclass(frozen=True)
class Findings:
    """The numbers of a paper's results, by the ids of claims and numbers."""

    paper: Paper
    profile: str
    seeds: Mapping[str, Sequence[int]]
    """By figure, by id."""
    figures: Sequence[str]
    """The figures whose scenarios were run, by id."""
    found: Mapping[str, Sequence[Found]]
    smoke: str = ""
    """A digest of the results of all scenarios at profile `smoke`, by the program that found the numbers."""

    @cached_property
    def judged(self) -> list[Judged]:
        """The claims with their verdicts."""
        return [claims.verdict(claim, self.found[claim.id]) for claim in self.paper.claims]

    def filled(self, text: str) -> str:
        """A text of the paper's folder with today's numbers in the places of their ids."""
        known: dict[str, tuple[Number, Sequence[Found]]] = {n.id: (n, self.found[n.id]) for n in self.paper.every()}
        return claims.filled(text, known)

    def explanation(self, claim: Claim) -> str:
        """Why a claim is not met, with today's numbers."""
        return self.filled(claim.explanation)

    def to_json(self) -> str:
        """All of it for programs, as text."""
        told = {
            "paper": self.paper.name,
            "profile": self.profile,
            "seeds": {figure: list(seeds) for figure, seeds in self.seeds.items()},
            "figures": list(self.figures),
            "smoke": self.smoke,
            "claims": [claim_json(j) | {"explanation": self.explanation(j.claim)} for j in self.judged],
            "numbers": [{"id": n.id, "parts": [found_json(f) for f in self.found[n.id]]} for n in self.paper.numbers],
        }
        return json.dumps(told, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, paper: Paper, text: str) -> Findings:
        """What [`to_json`] wrote. Verdicts are formed anew; a claim that is not in the text was not run."""
        told = json.loads(text)
        there = {one["id"]: [found_of(part) for part in one["parts"]] for one in told["claims"] + told["numbers"]}
        found = {number.id: there.get(number.id, [Found("", None, "not run")]) for number in paper.every()}
        return cls(paper, told["profile"], told["seeds"], told["figures"], found, told["smoke"])


def number(value: float) -> float | None:
    """A number that JSON has."""
    return value if math.isfinite(value) else None


def found_json(found: Found) -> dict[str, Any]:
    """A number at one set of swept values; without an interval where there is none."""
    told: dict[str, Any] = {"where": found.where, "reason": found.reason}
    e = found.estimate
    if e is None:
        return told
    thin = {"thin": found.reason} if found.reason else {}
    return told | {"mean": e.mean, "ci95": [number(e.low), number(e.high)], "seeds": e.seeds} | thin


def found_of(told: Mapping[str, Any]) -> Found:
    """What `found_json` told."""
    if "mean" not in told:
        return Found(told["where"], None, told["reason"])
    low, high = told["ci95"]
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return Found(told["where"], Estimate(told["mean"], low, high, told["seeds"]), told.get("thin", ""))


def claim_json(j: Judged) -> dict[str, Any]:
    """A claim with its verdict."""
    return {
        "id": j.claim.id,
        "figure": j.claim.figure,
        "quote": j.claim.quote,
        "source": j.claim.source,
        "kind": j.claim.kind,
        "metric": j.claim.metric,
        "printed": j.claim.printed,
        "bounds": [number(b) for b in j.claim.bounds],
        "verdict": j.verdict,
        "parts": [found_json(p.found) | {"verdict": p.verdict, "reason": p.reason} for p in j.parts],
    }


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
    where = f" at {j.worst.found.where}" if len(j.parts) > 1 and j.worst.found.where else ""
    return claims.text(j.claim, j.worst.found.estimate) + where


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
            claims.bound_text(j.claim) + (", chosen after the result" if j.claim.seen else ""),
            j.verdict + (f" ({j.reason})" if j.reason else ""),
        ]
        for j in judged
    ]
    return tables.Table(heads, rows, len(heads))


def console(findings: Findings) -> str:
    """The claims for a terminal: one line each, then the words on what is not met."""
    judged = [j for j in findings.judged if j.claim.figure in findings.figures or j.claim.kind == "exact"]
    rows = [
        [j.claim.id, shortened(j.claim.says or j.claim.quote, 56), shortened(j.claim.printed, 18), found_text(j), j.verdict]
        for j in judged
    ]
    lines = [str(tables.Table(["claim", "in words", "paper", "ours [95 %]", "verdict"], rows, 5)), "", counts(judged)]
    for j in judged:
        if j.verdict == claims.NOT_MET and j.claim.explanation:
            lines.append(f"{j.claim.id}: {findings.explanation(j.claim)}")
    return "\n".join(lines)


def shortened(text: str, most: int) -> str:
    """A text cut at a word."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds in words: `seed 1`, `seeds 1 to 5`, `seeds 1, 4`."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def note(paper: Paper) -> str:
    """Returns the paragraph for a page whose results are older than the program."""
    assert paper.stale is not None, "a page has the note only if its paper is marked"
    return (
        f"> **Stale since {paper.stale.since}.** {paper.stale.why} "
        f"The numbers, verdicts and figures below are those of the version before; `flowloom papers {paper.name}` recomputes them."
    )


def page(findings: Findings) -> str:
    """The claims as a Markdown page beside the figures: pictures, tables, then a word on each claim that is not met or open."""
    paper, judged = findings.paper, findings.judged
    written = f"Written by `flowloom papers {paper.name} --profile {findings.profile}`."
    smoke = f" Digest of the results at profile `smoke`: `{findings.smoke}`." if findings.smoke else ""
    lines = [
        f"# {paper.title}",
        "",
        paper.source,
        "",
        *([note(paper), ""] if paper.stale else []),
        f"{written} Settings, choices and deviations: papers/{paper.name}/README.md.{smoke}",
        "",
        f"Result: {counts(judged)}.",
        "",
        *([findings.filled(paper.summary), ""] if paper.summary else []),
    ]
    for figure in paper.figures:
        here = [j for j in judged if j.claim.figure == figure.id]
        if here or figure.id in findings.figures:
            lines += [f"## {figure.title}", ""]
        if figure.id in findings.figures:
            ran = f"Scenario `{figure.scenario}.toml`, {seeds_text(findings.seeds[figure.id])}."
            lines += [f"![{figure.title}]({figure.id}.png)", "", ran, ""]
        if here:
            lines += [claims_table(here).markdown(), ""]
    open_ones = [j for j in judged if j.verdict != claims.MET]
    if open_ones:
        lines += ["## What is not met, or open", ""]
        for j in open_ones:
            why = findings.explanation(j.claim) or j.reason or "no explanation yet"
            lines += [f"- **{j.claim.id}** ({j.verdict}): {why}"]
        lines.append("")
    lines += ["## How claims are judged", ""]
    for j in judged:
        if j.claim.rule or j.claim.seen:
            after = f"chosen after the result was seen: {j.claim.seen}" if j.claim.seen else ""
            lines.append(f"- {j.claim.id}: {'; '.join(filter(None, [j.claim.rule, after]))}")
    lines += ["", " ".join(claims.RULES.split()), ""]
    return "\n".join(lines)


def html_page(findings: Findings, results: Mapping[str, Results], parts: Sequence[str]) -> str:
    """The report: claims, figures, the summaries of all runs with their warnings and settings."""
    paper, judged = findings.paper, findings.judged
    seeds = seeds_text(sorted(set().union(*findings.seeds.values())))
    table = claims_table(judged).html().replace("<table>", "<table class=claims>", 1)
    source = html.escape(paper.source)
    body = [
        f"<h1>{html.escape(paper.title)}</h1>",
        f"<p class=note>{source} · profile {findings.profile} · {seeds} · {counts(judged)}</p>",
        *([f"<p>{html.escape(findings.filled(paper.summary))}</p>"] if paper.summary else []),
        report.section("Claims", table),
        report.section("Figures", *parts),
    ]
    for scenario in paper.scenarios:
        found = next((results[f.id] for f in paper.figures if f.scenario == scenario and f.id in results), None)
        if found is None:
            continue
        warned = "".join(f"<li>{html.escape(w)}</li>" for w in report.warnings(found))
        listed = f"<ul class=warn>{warned}</ul>" if warned else ""
        body.append(report.section(f"Runs of {scenario}", listed, tables.summary(found).html(), report.settings(found)))
    return report.page(f"{paper.title}: reproduction", body)
