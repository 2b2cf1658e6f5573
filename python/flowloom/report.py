"""The report: one HTML file with the tables and figures of a run that opens without a network."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flowloom import plots, style, tables, words
from flowloom.data import Data
from flowloom.files import write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1f; --page: #ffffff; --soft: #6b6b76;
  --line: #d9d9e0; --box: #f5f5f8; --warn: #8a4b00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e9e9ee; --page: #17171b; --soft: #a3a3b0; --line: #3a3a44; --box: #202027; --warn: #ffb86b; }
}
body { margin: 2rem auto; max-width: 76rem; padding: 0 1.2rem; background: var(--page); color: var(--ink);
       font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .3rem; }
p.note, figcaption { color: var(--soft); font-size: .88rem; margin: .3rem 0 .8rem; }
ul.warn { color: var(--warn); border-left: 3px solid var(--warn); padding: .2rem 0 .2rem 1.6rem; margin: 1rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .87rem; font-variant-numeric: tabular-nums; }
th, td { padding: .22rem .7rem; border-bottom: 1px solid var(--line); text-align: left; white-space: pre; }
th { font-weight: 600; border-bottom: 2px solid var(--line); } td.n, th.n { text-align: right; }
table.claims td { white-space: normal; vertical-align: top; }
figure { margin: 1rem 0 1.6rem; } figure svg { max-width: 100%; height: auto; color: var(--ink); }
pre { background: var(--box); padding: .8rem 1rem; overflow-x: auto; font-size: .82rem; line-height: 1.4; }
summary { cursor: pointer; }
"""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>
{body}
</body></html>
"""


INCOMPLETE = {
    "running": " or has not ended yet",
    "stopped": " because it was stopped",
    "failed": " because a point failed",
    "share": " because only a share of its points was run",
}
"""Why points may be missing, by what the manifest says."""


def page(title: str, parts: Sequence[str]) -> str:
    """An HTML page of ready parts."""
    return PAGE.format(title=html.escape(title), style=STYLE, body="\n".join(parts))


def drawing(fig: Figure, name: str, caption: str) -> str:
    """A figure with its caption, as inline SVG. `name` must be unique within the page."""
    return f"<figure>{style.inline_svg(fig, name)}<figcaption>{html.escape(caption)}</figcaption></figure>"


def section(title: str, *parts: str) -> str:
    """A headed section."""
    return "\n".join([f"<h2>{html.escape(title)}</h2>", *parts])


def folded(title: str, text: str) -> str:
    """A text that opens on a click."""
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def warnings(results: Data) -> list[str]:
    """What a reader must know before using the numbers."""
    found = []
    if not results.complete:
        why = INCOMPLETE.get(str(results.manifest.get("stop_reason")), "")
        found.append(f"the run is incomplete{why}: points are missing, which the same `flowloom run` adds")
    cut = [run.point for run in results.runs if run.state != "done"]
    if cut:
        named = ", ".join(cut[:5]) + (" …" if cut[5:] else "")
        found.append(f"{len(cut)} of {len(results.runs)} points were interrupted and are not counted: {named}")
    rows = results.per_seed().to_pylist()
    unfinished = {row["point"]: row["value"] for row in rows if row["metric"] == "unfinished" and row["value"]}
    if unfinished:
        worst = max(unfinished, key=lambda point: unfinished[point])
        found.append(
            f"{sum(unfinished.values()):.0f} flows in {len(unfinished)} points did not finish (most in {worst}: "
            f"{unfinished[worst]:.0f}); completion times count finished flows only, and so are too low"
        )
    never = sum(row["value"] or 0 for row in rows if row["metric"] == "not_started")
    if never:
        found.append(f"{never:.0f} flows never began, since flows that they wait for did not end; no metric counts them")
    if len(results.seeds) == 1:
        found.append("one seed only: there are no confidence intervals, and differences may be due to chance")
    return found


def header(results: Data) -> list[str]:
    """What was run, and the warnings."""
    manifest = results.manifest
    systems = [system for system in results.systems if system not in results.ideals]
    facts = [
        f"{len(systems)} systems: {', '.join(systems)}",
        f"{len(results.runs)} points",
        f"seeds {', '.join(map(str, results.seeds))}",
    ]
    facts += filter(None, [results.engine_note()])
    for key in results.keys:
        values = list(dict.fromkeys(run.keys[key] for run in results.runs if run.keys[key] is not None))
        facts.append(f"{key} = {', '.join(words.number(value) for value in values)}")
    if manifest.get("profile"):
        facts.append(f"profile {manifest['profile']}")
    if manifest.get("program"):
        facts.append(f"flowloom {manifest['program']}")
    parts = [f"<h1>{html.escape(results.name)}</h1>", f"<p class=note>{html.escape(' · '.join(facts))}</p>"]
    found = warnings(results)
    if found:
        parts.append("<ul class=warn>" + "".join(f"<li>{html.escape(w)}</li>" for w in found) + "</ul>")
    return parts


def settings(results: Data) -> str:
    """The resolved scenario."""
    config = results.manifest.get("config")
    if not config:
        return ""
    return section("Settings", folded("the resolved scenario, every default included", str(config)))


def figures(results: Data) -> list[str]:
    """All figures for which the results hold data."""
    parts = []
    for kind in plots.shown(results):
        try:
            fig = plots.draw(results, kind.name)
        except plots.NoDataError:
            continue
        parts.append(drawing(fig, f"fig-{kind.name}", kind.about + "."))
    return parts


def link_tables(results: Data) -> list[str]:
    """The links of each system, at the last swept values."""
    parts = []
    for name, systems in plots.groups(results, None, 1, ideals=False):
        for label, runs in systems.items():
            at: dict[str, object] = {"system": runs[0].system} | {
                key: value for key, value in runs[0].keys.items() if value is not None
            }
            parts.append(f"<h3>{html.escape(', '.join(filter(None, [label, name])))}</h3>")
            parts.append(tables.links(results, at).html())
    return parts


def build(results: Data) -> str:
    """The report as a text."""
    parts = header(results)
    parts.append(section("Summary", tables.summary(results).html()))
    parts.append(section("Figures", *figures(results)))
    parts.append(section("Links", *link_tables(results)))
    parts.append(settings(results))
    return page(results.name, parts)


def write(results: Data, out: str | Path | None = None) -> Path:
    """Write the report, by default as `report.html` into the results folder. Returns its path."""
    if out is None:
        if results.path is None:
            raise ValueError("the results are not in a folder\nhint: give the file to write with `out`")
        out = results.path / "report.html"
    path = Path(out)
    if path.is_dir():
        path = path / "report.html"
    write_whole(path, build(results))
    return path
