"""The report in a browser: what its tables and charts do, and that nothing complains. Skipped where there is no Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from flowloom import playback, report
from flowloom.results import Results
from flowloom.scenario import Scenario

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")

LISTEN = """<script>
const complaints = [];
for (const kind of ['error', 'warn']) console[kind] = (...what) => complaints.push(what.join(' '));
addEventListener('error', event => complaints.push(event.message));
addEventListener('unhandledrejection', event => complaints.push(String(event.reason)));
</script>"""

ACT = """<script type="module">
const pause = ms => new Promise(done => setTimeout(done, ms));
const seen = {};
const ready = () => document.body.dataset.charts ?? document.body.dataset.player;
for (let i = 0; i < 200 && !ready(); i++) await pause(50);
try { await act(seen); } catch (error) { complaints.push(String(error)); }
document.title = JSON.stringify({seen, complaints});
async function act(seen) { %s }
</script>"""


def after(page: str, script: str, folder: Path) -> dict[str, Any]:
    """What a script saw in a page that is open in the browser."""
    file = folder / "page.html"
    file.write_text(page.replace("<head>", f"<head>{LISTEN}").replace("</body>", f"{ACT % script}</body>"), encoding="utf-8")
    assert BROWSER is not None
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--virtual-time-budget=20000", "--window-size=1000,900", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.DOTALL)
    assert title is not None, done.stdout[:500]
    found: dict[str, Any] = json.loads(html.unescape(title[1]))
    assert found["complaints"] == []
    seen: dict[str, Any] = found["seen"]
    return seen


@pytest.fixture
def page(results: Results, tmp_path: Path) -> str:
    return report.write(results, tmp_path / "r.html").read_text(encoding="utf-8")


def test_tables_sort_and_filter(page: str, tmp_path: Path) -> None:
    script = """
    const table = document.querySelector('.wide > table'), head = [...table.tHead.rows[0].cells];
    const column = head.findIndex(cell => cell.textContent.startsWith('mean slowdown'));
    const read = () => [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[column].textContent);
    head[column].click(); seen.up = read(); seen.sort = head[column].getAttribute('aria-sort');
    head[column].click(); seen.down = read();
    const filter = document.querySelector('input.filter');
    filter.value = 'tcp'; filter.dispatchEvent(new Event('input'));
    seen.systems = [...table.tBodies[0].rows].filter(row => !row.hidden).map(row => row.cells[0].textContent);
    """
    seen = after(page, script, tmp_path)
    up = [float(cell.split("±")[0]) for cell in seen["up"]]
    assert len(set(up)) > 3 and up == sorted(up) and seen["sort"] == "ascending"
    assert [float(cell.split("±")[0]) for cell in seen["down"]] == up[::-1]
    assert set(seen["systems"]) == {"TCP"}


def test_charts_select_and_switch_systems_off(page: str, tmp_path: Path) -> None:
    script = """
    const chart = document.querySelector('#explore-metrics');
    const dots = () => chart.querySelectorAll('.mark-symbol.role-mark path').length;
    const title = () => chart.querySelector('.role-title-text text').textContent;
    seen.before = [title(), dots()];
    const [box] = chart.querySelectorAll('input[type=checkbox]');
    box.click(); await pause(200); seen.off = [title(), dots()];
    box.click(); await pause(200); seen.on = [title(), dots()];
    const select = chart.querySelector('select');
    select.value = [...select.options].find(option => option.text.startsWith('99th-percentile FCT')).value;
    select.dispatchEvent(new Event('change')); await pause(200); seen.other = [title(), dots()];
    """
    seen = after(page, script, tmp_path)
    name, dots = seen["before"]
    assert name == "mean slowdown" and dots > 0
    assert seen["off"][0] == name and 0 < seen["off"][1] < dots
    assert seen["on"] == seen["before"]
    assert seen["other"][0].startswith("99th-percentile FCT")


def test_a_point_of_a_chart_shows_its_value_and_interval(page: str, tmp_path: Path) -> None:
    script = """
    const dot = document.querySelector('#explore-metrics .mark-symbol.role-mark path'), box = dot.getBoundingClientRect();
    const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true};
    for (const kind of ['pointerover', 'mouseover', 'pointermove', 'mousemove']) dot.dispatchEvent(new PointerEvent(kind, at));
    await pause(300);
    seen.tip = document.querySelector('#vg-tooltip-element').textContent;
    """
    tip = after(page, script, tmp_path)["tip"]
    assert re.fullmatch(r"systemMERPload0\.2mean1\.\d+95 % from1\.\d+to1\.\d+", tip), tip


def test_packed_figures_are_drawn(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = len(re.findall(r'<svg role="img"', report.build(results)))
    monkeypatch.setattr(report, "LIMIT", 0)
    page = report.build(results)
    assert '<svg role="img"' not in page
    script = """
    for (let i = 0; i < 100 && !document.body.dataset.figures; i++) await pause(50);
    const drawn = [...document.querySelectorAll('figure > svg[role=img]')];
    seen.drawn = drawn.map(svg => svg.getBoundingClientRect().width > 100 && svg.getAttribute('aria-label').length > 0);
    """
    assert after(page, script, tmp_path)["drawn"] == [True] * figures


def test_time_series_zoom(traced: Results, tmp_path: Path) -> None:
    script = """
    const chart = document.querySelector('#explore-series'), svg = chart.querySelector('svg');
    const ticks = () => [...chart.querySelectorAll('.role-axis-label text')].map(text => text.textContent).join(' ');
    seen.before = ticks();
    const box = svg.getBoundingClientRect();
    const at = {clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, bubbles: true, cancelable: true};
    chart.querySelector('.role-frame .background').dispatchEvent(new WheelEvent('wheel', {deltaY: -400, ...at})); await pause(300);
    seen.zoomed = ticks();
    """
    seen = after(report.build(traced), script, tmp_path)
    assert seen["before"] and seen["zoomed"] != seen["before"]


def test_playback_steps_and_shows_two_systems(tmp_path: Path) -> None:
    link: dict[str, Any] = {
        "topology": {"kind": "dumbbell", "left": 2, "right": 2, "rate": "1Gbps", "delay": "10us"},
        "workload": {"transfers": {"kind": "long", "pairs": "h0->h2, h1->h3", "size": "50KB"}},
        "system": [
            {"label": "TCP", "transport": "newreno"},
            {"label": "PDQ", "transport": "pdq", "agent": "pdq", "qdisc": {"kind": "droptail", "limit": "100pkt"}},
        ],
        "sample": {"interval": "100us", "packets": True, "flows": True, "agents": True},
    }
    results = Scenario.from_dict(link).run(out=tmp_path / "link")
    script = """
    const $ = id => document.getElementById(id);
    seen.systems = [...document.querySelectorAll('.pane h2')].map(head => head.textContent);
    const times = [];
    for (let i = 0; i < 3; i++) { $('forward').click(); times.push($('now').value); }
    $('back').click(); times.push($('now').value); seen.times = times;
    $('time').value = 5000; $('time').dispatchEvent(new Event('input'));
    const [canvas] = document.querySelectorAll('canvas');
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
    seen.painted = pixels.some(value => value > 0);
    seen.rows = document.querySelectorAll('.pane tbody')[0].rows.length;
    const agents = [...document.querySelectorAll('.agent')];
    seen.agents = agents.map(agent => !agent.hidden);
    seen.table = [...agents[1].querySelectorAll('th, td')].map(cell => cell.textContent);
    $('right').value = ''; $('right').dispatchEvent(new Event('change')); seen.panes = document.querySelectorAll('.pane').length;
    $('time').value = 10000; $('time').dispatchEvent(new Event('input'));
    seen.end = [...document.querySelectorAll('.pane tbody td')].map(cell => cell.textContent);
    """
    seen = after(playback.write(results).read_text(encoding="utf-8"), script, tmp_path)
    assert seen["systems"] == ["TCP", "PDQ"] and seen["painted"] and seen["rows"] == 2 and seen["panes"] == 1
    assert seen["agents"] == [False, True] and seen["table"][:5] == ["flow", "rank", "rate", "expected", "paused"]
    assert [seen["table"][i] for i in (6, 11)] == ["1", "2"] and seen["table"][9] == "no"
    assert len(set(seen["times"][:3])) == 3 and seen["times"][3] == seen["times"][1]
    assert sum(cell.startswith("done after") for cell in seen["end"]) == 2
