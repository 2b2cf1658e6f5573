"""The report: one HTML file with the tables and figures of a run, which opens without a network."""

from __future__ import annotations

import html
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from flowloom.base import words
from flowloom.base.errors import InputError
from flowloom.base.files import write_whole
from flowloom.figures import plots, style
from flowloom.figures.drawing import NoDataError, groups, one_per_system, titled
from flowloom.pages import explore
from flowloom.pages.web import web
from flowloom.runs import failures, programs, steadiness, tables
from flowloom.runs.choice import engine_note_of
from flowloom.runs.data import Data
from flowloom.runs.missing import missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = web("report.css")

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head>
<body>
{body}
<script>{script}</script>
</body></html>
"""

SCRIPT = web("tables.js")
"""Sorts tables by a click on a header, and filters their rows."""


LIMIT = 2_000_000
"""The maximum size of a page in bytes. Beyond it, figures are compressed, largest first."""

PACKED = """<div data-packed="{picture}"><noscript>The page is large: this figure needs JavaScript.</noscript></div>"""
UNPACK = f"""<script type="module">{web("unpack.js")}{web("figures.js")}</script>"""


def page(title: str, parts: Sequence[str]) -> str:
    """Returns an HTML page with these parts of HTML. Hidden characters are escaped."""
    title, body = words.escaped(title), words.escaped("\n".join(parts))
    body = fitted(body, LIMIT - len((PAGE + title + STYLE + SCRIPT + UNPACK).encode()))
    return PAGE.format(title=html.escape(title), style=STYLE, body=body, script=SCRIPT)


def fitted(body: str, limit: int) -> str:
    """Returns the body of a page, with figures compressed as far as the limit demands."""
    size = len(body.encode())
    if size <= limit:
        return body
    for picture in sorted(re.findall(r'<svg role="img".*?</svg>', body, re.DOTALL), key=len, reverse=True):
        if size <= limit:
            break
        packed = PACKED.format(picture=explore.packed(picture))
        body = body.replace(picture, packed)
        size += len(packed) - len(picture.encode())
    return body + UNPACK


def drawing(fig: Figure, name: str, caption: str, command: str = "") -> str:
    """Returns a figure as inline SVG with its caption and the command that draws it. `name` must be
    unique within the page.
    """
    picture = style.inline_svg(fig, name).replace("<svg ", f'<svg role="img" aria-label="{html.escape(caption)}" ', 1)
    made = f" <code>{html.escape(command)}</code>" if command else ""
    return f'<figure id="{name}">{picture}<figcaption>{html.escape(caption)}{made}</figcaption></figure>'


def anchor(title: str) -> str:
    """Returns the id of a section."""
    return title.lower().replace(" ", "-")


def section(title: str, *parts: str) -> str:
    """Returns a section with its heading."""
    return "\n".join([f'<h2 id="{anchor(title)}">{html.escape(title)}</h2>', *parts])


def contents(titles: Sequence[str]) -> str:
    """Returns links to the sections of a page."""
    links = "".join(f'<a href="#{anchor(title)}">{html.escape(title)}</a>' for title in titles)
    return f'<nav aria-label="contents">{links}</nav>'


def folded(title: str, text: str) -> str:
    """Returns a text that opens on a click."""
    return f"<details><summary>{html.escape(title)}</summary><pre>{html.escape(text)}</pre></details>"


def warnings(results: Data) -> list[str]:
    """Returns what a reader must know before using the numbers. The table says which points are missing."""
    found = []
    cut = [run.point for run in results.runs if run.state != "done"]
    if cut:
        named = ", ".join(cut[:5]) + (" …" if cut[5:] else "")
        found.append(f"{len(cut)} of {len(results.runs)} points were interrupted and do not count: {named}")
    rows = results.per_seed().to_pylist()
    unfinished = {row["point"]: row["value"] for row in rows if row["metric"] == "unfinished" and row["value"]}
    if unfinished:
        worst = max(unfinished, key=lambda point: unfinished[point])
        found.append(
            f"{sum(unfinished.values()):.0f} flows in {len(unfinished)} points did not finish (most in {worst}: "
            f"{unfinished[worst]:.0f}); completion times count only finished flows, and are too low"
        )
    never = sum(row["value"] or 0 for row in rows if row["metric"] == "not_started")
    if never:
        found.append(f"{never:.0f} flows never began, since flows that they wait for did not finish; no metric counts them")
    found += steadiness.unsteady(results)
    found += [f"deadlock in {row['point']}: {row['deadlock']}" for row in results.points().to_pylist() if row.get("deadlock")]
    found += failures.untouched(results)
    if len(results.seeds) == 1:
        found.append("one seed only: there are no confidence intervals, and differences may be due to chance")
    return found


def header(results: Data) -> list[str]:
    """Returns the title, the facts about the run, and the warnings."""
    manifest = results.manifest
    systems = [system for system in results.systems if system not in results.ideals]
    facts = [
        f"{len(systems)} systems: {', '.join(systems)}",
        f"{len(results.runs)} points",
        f"seeds {', '.join(map(str, results.seeds))}",
    ]
    facts += filter(None, [engine_note_of(results)])
    for key in results.keys:
        values = list(dict.fromkeys(run.keys[key] for run in results.runs if run.keys[key] is not None))
        facts.append(f"{key} = {', '.join(words.number(value) for value in values)}")
    if manifest.get("profile"):
        facts.append(f"profile {manifest['profile']}")
    if manifest.get("program"):
        facts.append(f"flowloom {manifest['program']}")
    parts = [f"<h1>{html.escape(results.name)}</h1>", f"<p class=note>{html.escape(' · '.join(facts))}</p>"]
    found = [*filter(None, [missing(results)]), *warnings(results)]
    if found:
        parts.append("<ul class=warn>" + "".join(f"<li>{html.escape(w)}</li>" for w in found) + "</ul>")
    return parts


def settings(results: Data) -> str:
    """Returns the section with the resolved scenario."""
    config = results.manifest.get("config")
    if not config:
        return ""
    return section("Settings", folded("The resolved scenario, with every default", str(config)))


def figures(results: Data) -> list[str]:
    """Returns all figures for which the results have data."""
    parts = []
    for kind in plots.shown(results):
        try:
            fig = plots.draw(results, kind.name)
        except NoDataError:
            continue
        seeds = tables.seeds_of(results.runs) if kind.meta.bands else ""
        caption = kind.meta.summary + (f", with 95 % bands over {seeds}." if seeds else ".")
        parts.append(drawing(fig, f"fig-{kind.name}", caption, command("plot", results, f"--kind {kind.name}")))
    return parts


def command(verb: str, results: Data, rest: str = "") -> str:
    """Returns a command for these results; empty for results without a folder."""
    return "" if results.path is None else " ".join(filter(None, ["flowloom", verb, shlex.quote(str(results.path)), rest]))


def charts(results: Data) -> list[str]:
    """Returns the interactive charts, or a note on how to install what they need."""
    if not explore.installed():
        return [f"<p class=note>{html.escape(explore.MISSING)}</p>"]
    found = explore.charts(results)
    return [explore.html(found)] if found else []


def link(file: Path, folder: Path) -> str:
    """Returns the address of a file for a page in `folder`: relative, and never read as a scheme, a
    query or a fragment.
    """
    return "./" + quote(os.fsencode(os.path.relpath(file, folder)))


def data(results: Data, folder: Path | None) -> list[str]:
    """Returns links to the files of the results, for a page in `folder`."""
    if results.path is None or folder is None:
        return []
    files = sorted(path for path in results.path.iterdir() if path.suffix in (".parquet", ".toml", ".json"))
    links = " ".join(f'<a href="{link(file, folder)}">{html.escape(file.name)}</a>' for file in files)
    about = "Each point has a folder next to these files, with its flows and ports. docs/data.md describes the columns."
    return [f"<p>{links}</p>", f"<p class=note>{about}</p>"]


def link_tables(results: Data) -> list[str]:
    """Returns the tables of links of each system, at the last swept values."""
    parts = []
    for name, systems in groups(results, None, 1, ideals=False):
        for label, runs in systems.items():
            at: dict[str, object] = {"system": runs[0].system} | {
                key: value for key, value in runs[0].keys.items() if value is not None
            }
            parts.append(f"<h3>{html.escape(', '.join(filter(None, [label, name])))}</h3>")
            parts.append(tables.links(results, at).html())
    return parts


def task_tables(results: Data) -> list[str]:
    """Returns the tables of the longest tasks of each system, at the last swept values and the first seed."""
    parts = []
    for _, run in one_per_system(results, None):
        table = programs.longest(results, run)
        if table is not None:
            parts += [f"<h3>{html.escape(titled(results, run, None))}</h3>", table.html()]
    return parts


def build(results: Data, folder: Path | None = None) -> str:
    """Returns the report as a text, for a page in `folder`."""
    sections = {
        "Summary": [tables.summary(results).html()],
        "Explore": charts(results),
        "Figures": figures(results),
        "Tasks": task_tables(results),
        "Links": link_tables(results),
        "Data": data(results, folder),
    }
    shown = {title: parts for title, parts in sections.items() if parts}
    parts = [
        *header(results),
        contents(list(shown)),
        *(section(title, *parts) for title, parts in shown.items()),
        settings(results),
    ]
    return page(results.name, parts)


def write(results: Data, out: str | Path | None = None) -> Path:
    """Writes the report, by default as `report.html` in the results folder. Returns its path."""
    if out is None:
        if results.path is None:
            raise InputError("the results are not in a folder\nhint: give the file to write with `out`")
        out = results.path / "report.html"
    path = Path(out)
    if path.is_dir():
        path = path / "report.html"
    write_whole(path, build(results, path.parent))
    return path
