"""Labels, names and paths are text: every figure, table, page and line of a terminal shows what they say."""

from __future__ import annotations

import base64
import gzip
import html
import io
import json
import re
import unicodedata
import warnings
from pathlib import Path
from urllib.parse import quote, unquote, urljoin, urlsplit

import flowloom
import pytest
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario, ScenarioWarning
from flowloom.base import meter, words
from flowloom.cli import console
from flowloom.figures import drawing, plots, style
from flowloom.figures.kinds import KINDS
from flowloom.pages import explore, playback, report
from flowloom.runs import tables

LABELS = {
    "_base": "_base",
    "$\\frac{x$ of 100$": "$\\frac{x$ of 100$",
    "abc\u202edef\u200b": "abc\\u{202e}def\\u{200b}",
    "</b>&_1^2": "</b>&_1^2",
}
"""Labels, and how they are shown."""

NODES = {"_h$0$": "_h$0$", "h\u20661": "h\\u{2066}1", "h_$2": "h_$2", "_s\ufeff$": "_s\\u{feff}$"}

TEXT = """
seed = 1
[topology]
kind = "file"
path = "net.csv"
[workload."w$1$\\u202E"]
kind = "incast"
senders = 2
size = "30KB"
receiver = "_h$0$"
start = ["1us", "2us"]
[sample]
interval = "100us"
ports = true
flows = true
packets = true
"""


def hidden(text: str) -> str:
    """The characters of a text that a reader does not see."""
    return "".join(c for c in text if c not in "\n\t" and unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp"))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results whose systems, nodes, workload and folder have odd names."""
    folder = tmp_path_factory.mktemp("odd")
    *hosts, switch = NODES
    (folder / "net.csv").write_text("a,b,rate,delay\n" + "".join(f"{host},{switch},1Gbps,1us\n" for host in hosts))
    systems = "".join(f'[[system]]\nlabel = {json.dumps(label)}\ntransport = "newreno"\n' for label in LABELS)
    (folder / "s.toml").write_text(TEXT + systems)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScenarioWarning)
        return Scenario.from_file(folder / "s.toml").run(out=folder / "r\u202e #?%41")


def test_results_keep_labels_as_they_are(odd: Results) -> None:
    assert odd.systems == list(LABELS) and len(odd.runs) == 2 * len(LABELS)
    assert {run.system for run in odd.select({"system": "abc\u202edef\u200b"})} == {"abc\u202edef\u200b"}


def texts_of(svg: str) -> set[str]:
    """The texts that a figure shows."""
    return {html.unescape(text) for text in re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL)}


@pytest.mark.parametrize("kind", KINDS)
def test_figures_show_labels_as_they_are(odd: Results, kind: str) -> None:
    try:
        svg = style.inline_svg(plots.draw(odd, kind, at=None if kind == "metrics" else {"start": "1us"}), kind)
    except drawing.NoDataError:
        return
    texts = texts_of(svg)
    assert not hidden(svg)
    for label in LABELS.values():
        assert label in texts, texts
    known = set(NODES.values())
    drawn = {end for text in texts if "->" in text for end in text.split("->")} | ({*texts} & known)
    assert drawn <= known and (kind not in ("topology", "gantt", "queue", "heatmap", "utilisation") or drawn)


def test_schedules_show_names_as_they_are() -> None:
    from flowloom.figures import schedules

    names = ["_a", "$b$", "c\u202e"]
    for draw in (schedules.shares, schedules.bars):
        with style.look():
            fig = style.figure()
            (ax,) = style.panels(fig, 1, 1)
            draw(ax, [(0, 0.0, 1.0, 1.0), (1, 1.0, 2.0, 1.0), (2, 2.0, 3.0, 1.0)], names)
            style.legend(fig, [ax])
        assert [text.get_text() for text in fig.legends[0].texts] == ["_a", "$b$", "c\\u{202e}"]
        assert not hidden(style.inline_svg(fig, "x"))


def test_powers_of_ten_need_no_mathtext() -> None:
    with style.look():
        fig = style.figure()
        (ax,) = style.panels(fig, 1, 1)
        ax.plot([1e-7, 1e7], [1e5, 1e15])
        style.log_axis(ax, "x")
        style.log_axis(ax, "y")
    texts = texts_of(style.inline_svg(fig, "x"))
    assert {"10⁻⁷", "10⁻³", "10⁵", "10¹⁵"} <= texts and not any("$" in text for text in texts)


def test_tables_escape_what_is_hidden_and_align_what_is_shown(odd: Results) -> None:
    table = odd.table()
    assert odd.path is not None
    why = odd.why(0, odd.runs[4].point, odd.path.parent)
    assert "\u2066" in why.flows[0].src and not hidden(style.inline_svg(why.plot(), "x"))
    for text in (str(table), table.markdown(), table.html(), repr(odd), odd._repr_html_(), str(why)):
        assert not hidden(text)
    rows = str(table).splitlines()
    assert len({row.index(" 1us") for row in rows if " 1us" in row}) == 1
    assert all(any(row.startswith(label) for row in rows) for label in LABELS.values())
    links = tables.links(odd, {"system": "_base", "start": "1us"})
    assert {end for row in links.rows for end in row[0].split("->")} == set(NODES.values())
    # A mark on the letter before takes no cell, an emoji takes two.
    wide = str(tables.Table(["a", "b"], [["e\u0301", "1"], ["🦀", "1"], ["abc", "1"]], 1)).splitlines()
    assert wide[2:] == ["e\u0301    1", "🦀   1", "abc  1"]


def packed_texts(page: str) -> list[str]:
    """What a page holds compressed, but for the library of charts."""
    return [gzip.decompress(base64.b64decode(text)).decode() for text in re.findall(r'"(H4sI[\w+/=]*)"\);', page)]


def strings(value: object) -> set[str]:
    """All texts in a part of JSON."""
    if isinstance(value, dict):
        return set(value) | strings(list(value.values()))
    if isinstance(value, list):
        return set().union(*map(strings, value))
    return {value} if isinstance(value, str) else set()


def test_pages_show_labels_as_they_are(odd: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Figures have a test of their own, and the library is not ours.
    monkeypatch.setattr(report, "figures", lambda results: [])
    monkeypatch.setattr("vl_convert.javascript_bundle", lambda _: "")
    first = report.build(odd, tmp_path)
    assert all(html.escape(label) in first for label in LABELS.values())
    for page in (first, playback.write(odd, None, tmp_path / "p.html").read_text(encoding="utf-8")):
        assert not hidden(page)
        (data,) = packed_texts(page)
        texts = strings(json.loads(data))
        assert set(LABELS.values()) <= texts and not hidden("".join(texts))


def test_a_chart_switches_each_system_off(odd: Results) -> None:
    spec = explore.metrics(odd, explore.metric_rows(odd))
    systems = {row["system"] for row in spec["data"]["values"]}
    filters = spec["transform"][0]["filter"]
    assert systems == set(LABELS.values()) and all(f"datum.system != {json.dumps(system)}" in filters for system in systems)


def test_terminals_get_no_hidden_characters(capsys: pytest.CaptureFixture[str]) -> None:
    console.say("a\u202eb\x1b[31m\tc\nd")
    console.complain("error: `\u2066`")
    shown = meter.Meter("r\u200b", io.StringIO(), lambda: 0.0)
    shown({"points_done": 0, "points_total": 1})
    assert tuple(capsys.readouterr()) == ("a\\u{202e}b\\u{1b}[31m\tc\nd\n", "error: `\\u{2066}`\n")
    assert isinstance(shown.stream, io.StringIO) and shown.stream.getvalue().startswith("r\\u{200b}: ")


def test_both_parts_of_the_program_escape_alike() -> None:
    """Every hidden character of this Python's Unicode, in a name that the compiled part repeats."""
    every = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c not in "\n\t"]
    assert len(every) > 200
    for start in range(0, len(every), 25):
        key = "x".join(every[start : start + 25])
        with pytest.raises(flowloom.ScenarioError) as raised:
            Scenario.from_dict({key: 1})
        messages = [found["message"] for found in raised.value.diagnostics]
        assert any(f"`{words.escaped(key)}`" in message for message in messages), messages
        assert not hidden(str(raised.value))


def incast() -> Scenario:
    workload = {"w": {"kind": "incast", "senders": 3, "size": "10KB"}}
    return Scenario.from_dict({"topology": "star", "workload": workload, "system": [{"transport": "newreno"}]})


@pytest.mark.parametrize(
    "name", ["a#b/r", "a?b=c/r", "%41/r", "a b/r", "javascript:alert(1)/r", "http:/r", 'q"<&/r', "ü\u202e/r", "..r"]
)
def test_links_of_the_report_lead_to_its_files(tmp_path: Path, name: str) -> None:
    results = incast().run(out=tmp_path / name)
    for folder in (tmp_path, tmp_path / name, tmp_path / "pages"):
        (links, _) = report.data(results, folder)
        found = [html.unescape(link) for link in re.findall(r'href="([^"]*)"', links)]
        assert len(found) == 3
        for link in found:
            assert link.startswith("./") and not urlsplit(link).scheme
            there = urlsplit(urljoin(f"file://{quote(str(folder))}/", link))
            assert (there.scheme, there.query, there.fragment) == ("file", "", "") and Path(unquote(there.path)).is_file()


@pytest.mark.parametrize("name", ["alpha:0.9", "s3:web", "http:", "file:r"])
def test_a_relative_folder_is_a_path_and_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    incast().run(out=name)
    results = flowloom.open(name)
    assert str(results.path) == name and results.flows(["fct_ps"]).num_rows == 3
    assert results.sampled_metrics(results.runs[0]) == []
