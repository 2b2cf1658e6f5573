"""The findings on a paper, and their pages and tables: Markdown, JSON, HTML, and lines for a terminal."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from flowloom import _core
from flowloom.api.results import Results
from flowloom.base import words
from flowloom.pages import report
from flowloom.papers import claims
from flowloom.papers.claims import Claim, Judged, Sentence
from flowloom.papers.shelf import Figure, Paper
from flowloom.runs import tables
from flowloom.runs.numbers import NOT_RUN, Estimate, Found, Number


@dataclass(frozen=True)
class Findings:
    """The numbers of a paper's results, by the ids of claims and numbers."""

    paper: Paper
    profile: str
    seeds: Mapping[str, Sequence[int]]
    """The seeds, by figure id."""
    figures: Sequence[str]
    """The ids of the figures whose scenarios were run."""
    found: Mapping[str, Sequence[Found]]
    scenarios: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By scenario that was run at full size: hashes of its `plan`, and of its results at profile
    `smoke` with the same program.
    """

    @cached_property
    def judged(self) -> list[Judged]:
        """The claims with their verdicts."""
        return [claims.verdict(claim, self.found[claim.id]) for claim in self.paper.claims]

    @property
    def shown(self) -> list[Figure]:
        """The figures of the page: those whose scenarios were run, and those that are drawn from
        the numbers of claims.

        The latter are left out while the paper is stale, since some of their numbers may be missing.
        """
        drawn = self.paper.stale is None
        return [figure for figure in self.paper.figures if figure.id in self.figures or (drawn and not figure.scenario)]

    def lacks(self, number: Number) -> bool:
        """Whether a number was not taken from any results yet."""
        return [one.reason for one in self.found[number.id]] == [NOT_RUN]

    def with_new(self, new: Findings, scenarios: Collection[str], hashes: Mapping[str, Mapping[str, str]]) -> Findings:
        """Returns these findings with the new ones for `scenarios`, whose results have `hashes`."""
        paper = new.paper
        ran = {figure.id for figure in paper.figures if figure.scenario in scenarios}
        kept = {figure.id for figure in paper.figures if figure.id in self.figures and figure.scenario not in scenarios}
        figures = [figure.id for figure in paper.figures if figure.id in ran | kept]
        anew = {n.id for n in paper.every() if n.kind == "exact" or paper.taken_from(n) & set(scenarios)}
        known = {**self.scenarios, **{one: hashes[one] for one in scenarios}}
        return Findings(
            paper,
            new.profile,
            {figure: (new if figure in ran else self).seeds[figure] for figure in figures},
            figures,
            {n.id: (new if n.id in anew else self).found[n.id] for n in paper.every()},
            {one: known[one] for one in paper.scenarios if one in known},
        )

    def filled(self, text: str) -> str:
        """Fills the current numbers into a text of the paper's folder.

        While the paper is stale, a text with missing numbers is replaced by a note.
        """
        known: dict[str, tuple[Number, Sequence[Found]]] = {n.id: (n, self.found[n.id]) for n in self.paper.every()}
        quoted = [(found["where"], known[found["id"]][1]) for found in claims.QUOTED.finditer(text)]
        there = all(any(one.estimate for one in found if where in (None, one.where)) for where, found in quoted)
        return claims.filled(text, known) if there or self.paper.stale is None else WAITS

    def explanation(self, claim: Claim) -> str:
        """Returns why a claim is not met, with the current numbers."""
        return self.filled(claim.explanation)

    def to_json(self) -> str:
        """Returns the findings as JSON, for programs."""
        content = {
            "paper": self.paper.name,
            "profile": self.profile,
            "seeds": {figure: list(seeds) for figure, seeds in self.seeds.items()},
            "figures": list(self.figures),
            "scenarios": {name: dict(hashes) for name, hashes in self.scenarios.items()},
            "claims": [claim_json(j) | {"explanation": self.explanation(j.claim)} for j in self.judged],
            "numbers": [
                {"id": n.id, "asks": n.asks, "parts": [found_json(f) for f in self.found[n.id]]} for n in self.paper.numbers
            ],
        }
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, paper: Paper, text: str) -> Findings:
        """Reads what `to_json` wrote. Verdicts are computed anew; a number that is missing, or was
        defined differently, counts as not run.
        """
        content = json.loads(text)
        there = {(one["id"], one["asks"]): one["parts"] for one in content["claims"] + content["numbers"]}
        nothing = [{"where": "", "reason": NOT_RUN}]
        found = {number.id: [found_of(part) for part in there.get((number.id, number.asks), nothing)] for number in paper.every()}
        return cls(paper, content["profile"], content["seeds"], content["figures"], found, content["scenarios"])

    @property
    def digest(self) -> str:
        """One hash of the results of all scenarios at profile `smoke`."""
        lines = [f"{name} {hashes['smoke']}" for name, hashes in sorted(self.scenarios.items())]
        return _core.content_hash("\n".join(lines).encode())[:16] if lines else ""


WAITS = "(This text needs numbers of the next run.)"

NOTHING = '{"profile": "paper", "seeds": {}, "figures": [], "scenarios": {}, "claims": [], "numbers": []}'
"""What `Findings.to_json` writes if nothing was run."""


def number(value: float) -> float | None:
    """Returns a number for JSON; `None` if it is not finite."""
    return value if math.isfinite(value) else None


def found_json(found: Found) -> dict[str, Any]:
    """Returns a number at one set of swept values for JSON."""
    content: dict[str, Any] = {"where": found.where, "reason": found.reason}
    e = found.estimate
    if e is None:
        return content
    thin = {"thin": found.reason} if found.reason else {}
    return content | {"mean": e.mean, "ci95": [number(e.low), number(e.high)], "seeds": e.seeds} | thin


def found_of(content: Mapping[str, Any]) -> Found:
    """Reads what `found_json` returned."""
    if "mean" not in content:
        return Found(content["where"], None, content["reason"])
    low, high = content["ci95"]
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    return Found(content["where"], Estimate(content["mean"], low, high, content["seeds"]), content.get("thin", ""))


def claim_json(j: Judged) -> dict[str, Any]:
    """Returns a claim with its verdict for JSON."""
    return {
        "id": j.claim.id,
        "asks": j.claim.asks,
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
    """Returns how many sentences of the paper hold, and how many of their numbers.

    `4 sentences of the paper: 2 met, 1 in part, 1 not met (7 numbers: 5 met, 2 not met); calibrated
    or ours: 3 met`.
    """

    def count(verdicts: Sequence[str]) -> str:
        order = (claims.MET, claims.IN_PART, claims.NOT_MET, claims.UNDECIDED)
        return ", ".join(f"{verdicts.count(v)} {v}" for v in order if v in verdicts)

    own = [one for one in claims.sentences(judged) if one.counts]
    numbers = [j.verdict for one in own for j in one.counted]
    others = count([j.verdict for j in judged if j.claim.source not in claims.PAPER_SOURCES and not j.claim.trivial])
    text = f"{words.counted(len(own), 'sentence')} of the paper: {count([one.verdict for one in own])}" if own else ""
    text += f" ({words.counted(len(numbers), 'number')}: {count(numbers)})" if own else ""
    return "; ".join(filter(None, [text, f"calibrated or ours: {others}" if others else ""]))


def found_text(j: Judged) -> str:
    """Returns our number with its interval, and its swept values if there are several."""
    where = f" at {j.worst.found.where}" if len(j.parts) > 1 and j.worst.found.where else ""
    return claims.text(j.claim, j.worst.found.estimate) + where


def claims_table(judged: Sequence[Judged]) -> tables.Table:
    """Returns the table of claims: the claim, the paper's number, ours with its 95 % interval, the
    bounds, the verdict.
    """
    heads = ["claim", "from", "in words", "paper", "ours [95 %]", "met if", "verdict"]
    rows = [
        [
            j.claim.id,
            j.claim.source,
            j.claim.says or j.claim.quote,
            j.claim.printed,
            found_text(j),
            claims.bound_text(j.claim)
            + (", chosen after the result" if j.claim.seen else "")
            + (", with other settings than before" if j.claim.changed else ""),
            j.verdict + (f" ({j.reason})" if j.reason else ""),
        ]
        for j in judged
    ]
    return tables.Table(heads, rows, len(heads))


def console(findings: Findings) -> str:
    """Returns the claims for a terminal: one line each, then the explanations of claims that are not met."""
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
    """Cuts a text at a word."""
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def seeds_text(seeds: Sequence[int]) -> str:
    """Returns seeds as text: `seed 1`, `seeds 1 to 5`, `seeds 1, 4`."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def note(paper: Paper) -> str:
    """Returns the note for a page whose results are older than the program."""
    assert paper.stale is not None, "a page has the note only if its paper is marked"
    return (
        f"> **Stale since {paper.stale.since}.** {paper.stale.why} "
        "Numbers, verdicts and figures below that depend on this are those of the version before; "
        f"`flowloom papers {paper.name} --update` recomputes them. "
        "Claims that were added since are listed as not run."
    )


def page(findings: Findings, folder: Path | None = None) -> str:
    """Returns a paper's page in Markdown. Its figures are in the same folder.

    The page has the findings in sentences and one figure, the map of settings if there is one in
    `folder`, the claims by sentence, the other figures, and how claims are judged. All but the
    first screen is folded.
    """
    paper, sentences = findings.paper, claims.sentences(findings.judged)
    titles = {figure.id: figure.title for figure in findings.shown}
    lines = [f"# {paper.title}", "", paper.source, ""]
    if paper.stale:
        lines += [note(paper), ""]
    if paper.summary:
        lines += [findings.filled(paper.summary), ""]
    if paper.first in titles:
        lines += [picture(paper.first, titles[paper.first]), ""]
    if folder is not None and (folder / SETTINGS).is_file():
        lines += ["## Under which settings the numbers come out", "", *settings(folder / SETTINGS), ""]
    lines += ["## The claims, by sentence of the paper", "", f"{upper(counts(findings.judged))}.", ""]
    own = [one for one in sentences if one.counts or one.headline]
    lines += [part for one in own for part in (*sentence(findings, one), "")]
    if others := [one for one in sentences if one not in own]:
        lines += ["## Calibrated, ours, or unable to fail", ""]
        lines += [NOT_COUNTED, ""]
        lines += [part for one in others for part in (*sentence(findings, one), "")]
    lines += ["## Figures", ""]
    for figure in findings.shown:
        if figure.id == paper.first:
            continue
        ran = f"Scenario `{figure.scenario}.toml`, {seeds_text(findings.seeds[figure.id])}." if figure.scenario else ""
        lines += [*folded(html.escape(figure.title), picture(figure.id, figure.title), *filter(None, [ran])), ""]
    lines += ["## How claims are judged", "", " ".join(claims.RULES.split()), "", *written_by(findings), ""]
    return "\n".join(lines)


def overview(pages: Sequence[Findings]) -> str:
    """Returns the page of all papers, which is in the folder above theirs: promise, verdict, region
    and price of each paper.
    """
    rows = []
    for one in pages:
        paper, row = one.paper, one.paper.overview
        if row is None:
            continue
        titles = {figure.id: figure.title for figure in one.shown}
        there = paper.first in titles
        figure = (
            f'<img src="{paper.name}/{paper.first}.png" alt="{html.escape(titles[paper.first])}" width="320">' if there else "-"
        )
        cells = [one.filled(text) for text in row.texts]
        stale = " (stale)" if paper.stale else ""
        rows.append([f"[{paper.title.partition(':')[0]}]({paper.name}/README.md){stale}", *cells, figure])
    heads = ["paper", "promise", "does it hold?", "where", "price", "figure"]
    return "\n\n".join([OVERVIEW, tables.Table(heads, rows, len(heads)).markdown()]) + "\n"


OVERVIEW = """\
# The papers, judged

Each row is a page: the paper's own experiments, run again, and its claims judged sentence by sentence. `flowloom papers` lists
them, and `make pages` writes this table."""

NOT_COUNTED = """\
These do not count: a setting was chosen after the number was known, the paper does not make the
claim, or the claim cannot fail."""

SETTINGS = "settings/README.md"
"""The path, from a paper's page, of the answer of a search over open settings, as `flowloom seek` writes it."""


def settings(answer: Path) -> list[str]:
    """Returns the answer of a search: its sentence and its figure, then its tables, folded."""
    _, summary, shown, *tables, searched = answer.read_text(encoding="utf-8").strip().split("\n\n")
    return [summary, "", shown.replace("](", "](settings/"), "", *folded("Each claim, and each setting", *tables, searched)]


def written_by(findings: Findings) -> list[str]:
    """Returns the line that says which command wrote the page."""
    name = findings.paper.name
    digest = f" Digest of the results at profile `smoke`: `{findings.digest}`." if findings.digest else ""
    return [f"Written by `flowloom papers {name}`. Settings, choices and deviations: papers/{name}/README.md.{digest}"]


def folded(head: str, *parts: str) -> list[str]:
    """Returns lines that open under a heading, in Markdown: GitHub needs the empty lines, the site
    the attribute.
    """
    return [
        '<details markdown="1">',
        f"<summary>{head}</summary>",
        "",
        *[line for part in parts for line in (part, "")],
        "</details>",
    ]


def picture(figure: str, title: str) -> str:
    """Returns the Markdown of a figure in the same folder."""
    return f"![{title}]({figure}.png)"


def upper(text: str) -> str:
    """Returns a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def ids_text(ids: Sequence[str], every: Sequence[str]) -> str:
    """Returns ids of claims as text. Five or more that follow each other in `every` are a range."""
    start = every.index(ids[0])
    if len(ids) >= 5 and list(every[start : start + len(ids)]) == list(ids):
        return f"{ids[0]} to {ids[-1]} ({len(ids)} claims)"
    return ", ".join(ids)


def sentence(findings: Findings, one: Sentence) -> list[str]:
    """Returns a sentence of the paper in Markdown: a line with the verdict and the quote, which
    opens to the claims and the reasons for claims that are not met.
    """
    verdicts = [j.verdict for j in one.counted]
    share = f", {verdicts.count(claims.MET)} of {len(verdicts)} numbers" if len(verdicts) > 1 else ""
    why = []
    for j in one.judged:
        if j.verdict != claims.MET:
            why.append(f"- **{j.claim.id}** ({j.verdict}): {findings.explanation(j.claim) or j.reason or 'no explanation yet'}")
    notes: dict[str, list[str]] = {}
    for j in one.judged:
        after = f"chosen after the result was seen: {j.claim.seen}" if j.claim.seen else ""
        changed = f"changed after the result was seen: {j.claim.changed}" if j.claim.changed else ""
        not_counted = f"not counted: {j.claim.trivial}" if j.claim.trivial else ""
        if note := "; ".join(filter(None, [j.claim.rule, after, changed, not_counted])):
            notes.setdefault(note, []).append(j.claim.id)
    how = [f"- {ids_text(ids, [j.claim.id for j in one.judged])}: {note}" for note, ids in notes.items()]
    parts = [claims_table(one.judged).markdown(), "\n".join(why), f"How it is judged:\n\n{chr(10).join(how)}" if how else ""]
    verdict = ", ".join(filter(None, [one.whose, one.verdict]))
    return folded(f"<b>{verdict}</b>{share}: {html.escape(one.quote)}", *filter(None, parts))


def html_page(findings: Findings, results: Mapping[str, Results], parts: Sequence[str]) -> str:
    """Returns the report: claims, figures, and the summaries of all runs with their warnings and settings."""
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
