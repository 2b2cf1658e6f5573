"""The report in a browser: what its tables and charts do, and that nothing complains. Skipped without Chromium."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario
from flowloom.pages import playback, report
from test_playback import CLASSES

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium: `apt install chromium`")

LISTEN = """<script>
const complaints = [];
for (const kind of ['error', 'warn']) console[kind] = (...what) => complaints.push(what.join(' '));
addEventListener('error', event => complaints.push(event.message));
addEventListener('unhandledrejection', event => complaints.push(String(event.reason)));
</script>"""

ACT = """<script type="module">
const pause = ms => new Promise(done => setTimeout(done, ms));
const seen = {};
const pixels = canvas => [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data].join();
// The pixels of each canvas that is shown, by the system and the name of the canvas.
const canvases = () => Object.fromEntries([...document.querySelectorAll('.pane canvas')].filter(canvas => !canvas.hidden)
  .map(canvas => [`${canvas.closest('.pane').querySelector('h2').textContent}: ${canvas.className}`, pixels(canvas)]));
const ready = () => document.body.dataset.charts ?? document.body.dataset.player;
for (let i = 0; i < 200 && !ready(); i++) await pause(50);
try { await act(seen); } catch (error) { complaints.push(String(error)); }
document.title = JSON.stringify({seen, complaints});
async function act(seen) { %s }
</script>"""


def after(page: str, script: str, folder: Path, width: int = 1000) -> dict[str, Any]:
    """What a script saw in a page that is open in the browser."""
    file = folder / "page.html"
    file.write_text(page.replace("<head>", f"<head>{LISTEN}").replace("</body>", f"{ACT % script}</body>"), encoding="utf-8")
    assert BROWSER is not None
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    command += ["--virtual-time-budget=20000", f"--window-size={width},900", "--dump-dom", file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
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
    up = [float(cell.split()[0]) for cell in seen["up"]]
    assert len(set(up)) > 3 and up == sorted(up) and seen["sort"] == "ascending"
    assert [float(cell.split()[0]) for cell in seen["down"]] == up[::-1]
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
    seen.painted = Object.entries(canvases()).filter(([, pixels]) => /[1-9]/.test(pixels)).map(([name]) => name);
    const pane = system => [...document.querySelectorAll('.pane')].find(pane => pane.querySelector('h2').textContent === system);
    seen.rows = pane('TCP').querySelector('table.flows').tBodies[0].rows.length;
    seen.agents = seen.systems.filter(system => !pane(system).querySelector('.agent').hidden);
    const table = pane('PDQ').querySelector('.agent table'), texts = row => [...row.cells].map(cell => cell.textContent);
    const heads = texts(table.tHead.rows[0]), named = row => Object.fromEntries(texts(row).map((text, i) => [heads[i], text]));
    seen.table = [...table.tBodies[0].rows].map(named);
    $('right').value = ''; $('right').dispatchEvent(new Event('change')); seen.panes = document.querySelectorAll('.pane').length;
    $('time').value = 10000; $('time').dispatchEvent(new Event('input'));
    seen.end = [...pane('TCP').querySelectorAll('table.flows tbody td')].map(cell => cell.textContent);
    """
    seen = after(playback.write(results).read_text(encoding="utf-8"), script, tmp_path)
    assert seen["systems"] == ["TCP", "PDQ"] and seen["rows"] == 2 and seen["panes"] == 1
    assert sorted(seen["painted"]) == ["PDQ: network", "PDQ: strip", "TCP: network", "TCP: strip"]
    assert seen["agents"] == ["PDQ"] and set(seen["table"][0]) >= {"flow", "rank", "rate", "expected", "paused"}
    assert [row["rank"] for row in seen["table"]] == ["1", "2"] and seen["table"][0]["paused"] == "no"
    assert len(set(seen["times"][:3])) == 3 and seen["times"][3] == seen["times"][1]
    assert sum(cell.startswith("done after") for cell in seen["end"]) == 2


def test_playback_colours_by_priority_class(tmp_path: Path) -> None:
    results = Scenario.from_dict(CLASSES).run(out=tmp_path / "classes")
    shows: list[Any] = [playback.show(results, run.system, run) for run in results.runs]
    script = """
    const {state, pieces, look} = player, $ = id => document.getElementById(id);
    seen.choices = [...$('colours').options].map(option => [option.value, option.text]);
    $('time').value = 400; $('time').dispatchEvent(new Event('input'));
    const before = canvases();
    $('colours').value = 'class'; $('colours').dispatchEvent(new Event('change'));
    const now = canvases();
    seen.recoloured = Object.keys(before).filter(name => now[name] !== before[name]);
    const set = state.sets.class;
    seen.legend = [...document.querySelectorAll('#legend li')].map(item => item.textContent);
    seen.looks = new Set(set.names.map((_, group) => JSON.stringify(look(set, group)))).size;
    // By show: the class of each transmission as drawn, and the queue of the port with the longest one by class.
    seen.drawn = state.shows.map(show => show.group.class.map(group => Number.parseInt(set.names[group])));
    seen.queued = state.shows.map(show => {
      const port = show.queue.findIndex(queue => queue.peak === Math.max(...show.queue.map(queue => queue.peak)));
      return [port, state.now, pieces(show, port, 'class', set, state.now)];
    });
    """
    seen = after(player(results), script, tmp_path)
    occur = sorted({number for show in shows for number in show["class"]})
    assert seen["choices"] == [["flow", "by flow"], ["kind", "by kind of packet"], ["class", "by priority class"]]
    assert seen["legend"] == ["class 0, the highest", *(f"class {number}" for number in occur[1:])]
    assert seen["looks"] == len(occur) > 3
    # The page opens with the first two systems. These have no ranks of programs to show.
    panes = [show["system"] for show in shows[:2]]
    assert sorted(seen["recoloured"]) == sorted(f"{system}: {what}" for system in panes for what in ("network", "strip"))
    assert seen["drawn"] == [show["class"] for show in shows]
    for show, (port, now, pieces) in zip(shows, seen["queued"], strict=True):
        here = (np.array(show["port"]) == port) & (np.array(show["joined"]) <= now) & (np.array(show["start"]) > now)
        # A packet that the port drops on arrival does not wait.
        here &= np.array(show["start"]) - np.array(show["joined"]) > 1e-3
        assert pieces == [int((np.array(show["class"])[here] == number).sum()) for number in occur]
    assert len([count for count in seen["queued"][0][2] if count]) > 1, "packets of several classes wait"


def test_playback_shows_what_ranks_do(tmp_path: Path) -> None:
    ring: dict[str, Any] = {
        "topology": {"kind": "star", "hosts": 4, "rate": "10Gbps", "delay": "1us"},
        "workload": {"sum": {"kind": "collective", "op": "all_reduce", "bytes": "200KB"}},
        "system": [{"label": "TCP", "transport": "newreno"}],
        "sample": {"interval": "100us", "packets": True},
    }
    results = Scenario.from_dict(ring).run(out=tmp_path / "ring")
    script = """
    seen.painted = Object.entries(canvases()).filter(([, pixels]) => /[1-9]/.test(pixels)).map(([name]) => name);
    const {state} = player, ranks = document.querySelector('canvas.ranks'), box = ranks.getBoundingClientRect();
    ranks.dispatchEvent(new MouseEvent('click', {clientX: box.x + box.width / 2, clientY: box.y + 30, bubbles: true}));
    seen.middle = (state.now - state.first) / (state.end - state.first);
    """
    seen = after(player(results), script, tmp_path)
    assert sorted(seen["painted"]) == ["TCP: network", "TCP: ranks", "TCP: strip"] and abs(seen["middle"] - 0.5) < 0.01


def test_playback_ends_where_the_first_trace_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = Scenario.from_dict(STAR).run(out=tmp_path / "star")
    monkeypatch.setattr(playback, "MOST", 1000)
    shows: list[Any] = [playback.show(results, run.system, run) for run in results.runs]
    seen = after(player(results), "seen.ends = [player.state.end, player.state.shows.map(show => show.until)]", tmp_path)
    ends = [show["until"] for show in shows]
    assert seen["ends"] == [min(ends), ends] and len(set(ends)) > 1


STAR: dict[str, Any] = {
    "topology": {"kind": "star", "hosts": 25, "rate": "1Gbps", "delay": "10us"},
    "workload": {"answers": {"kind": "incast", "senders": 24, "size": "30KB"}},
    "system": [
        {"label": "TCP", "transport": "newreno", "qdisc": {"kind": "droptail", "limit": "200pkt"}},
        {"label": "DCTCP", "transport": "dctcp", "qdisc": {"kind": "ecn_threshold", "limit": "50pkt", "mark": "20pkt"}},
        {"label": "pFabric", "transport": "pfabric", "qdisc": {"kind": "pfabric", "limit": "30pkt"}},
    ],
    "sample": {"interval": "1ms", "packets": True},
}


def player(results: Results) -> str:
    """The page with what the player defines in reach of a test."""
    page = playback.write(results).read_text(encoding="utf-8")
    return page.replace('\nstart("', '\nglobalThis.player = {state, places, pieces, look, waiting};\nstart("')


@pytest.mark.parametrize("width", [400, 1400])
def test_queues_have_one_scale_and_stay_clear_of_labels(tmp_path: Path, width: int) -> None:
    results = Scenario.from_dict(STAR).run(out=tmp_path / "star")
    script = """
    const {state, places, pieces, look, waiting} = player, $ = id => document.getElementById(id);
    seen.wide = document.documentElement.scrollWidth <= innerWidth;
    seen.peaks = state.shows.map(show => Math.max(...show.queue.map(queue => queue.peak)));
    seen.most = state.most; seen.port = $('port').value; seen.opens = [state.first, state.now, state.end];
    // Whether a bar of any port touches a label or leaves the canvas.
    seen.clear = true;
    const reach = Math.min(...state.panes.map(({show, canvas}) => places(show, canvas.clientWidth, canvas.clientHeight).reach));
    for (const {show, canvas} of state.panes) {
      const [w, h] = [canvas.clientWidth, canvas.clientHeight], {cables, labels} = places(show, w, h);
      seen.labels = labels.length;
      cables.forEach(({bar: [x, y], way: [dx, dy]}, port) => {
        if (!show.queue[port].peak) return;
        for (let far = 0; far <= reach; far++) {
          const px = x + dx * far, py = y + dy * far;
          if (px < 4 || px > w - 4 || py < 4 || py > h - 4) seen.clear = false;
          if (labels.some(({box: [l, t, r, b]}) => px > l && px < r && py > t && py < b)) seen.clear = false;
        }
      });
    }
    // Of each kind of group: how many there are, how many looks, and what the last one is called.
    seen.groups = Object.values(state.sets).map(set => {
      const looks = set.names.map((_, group) => JSON.stringify(look(set, group)));
      return [set.names.length, new Set(looks).size, set.names.at(-1)];
    });
    seen.legend = document.querySelectorAll('#legend li').length;
    // The queue's pieces at a time add up to what the text says.
    $('time').value = 400; $('time').dispatchEvent(new Event('input'));
    seen.queued = state.panes.map(({show, pane}) => {
      const port = show.queue.findIndex(queue => queue.peak === Math.max(...show.queue.map(queue => queue.peak)));
      const sum = found => found.reduce((a, b) => a + b, 0);
      const {flow, kind} = state.sets, text = pane.querySelector('.queues').textContent;
      return [sum(pieces(show, port, 'flow', flow, state.now)), sum(pieces(show, port, 'kind', kind, state.now)), text];
    });
    // How long a packet is in the bar that each pane shows: the bar of h0 has nothing else on its side of the network.
    seen.unit = state.panes.map(({show, canvas}) => {
      const port = show.links.findIndex(([a, b]) => show.nodes[a][0] === 's0' && show.nodes[b][0] === 'h0');
      const {cables} = places(show, canvas.clientWidth, canvas.clientHeight), {bar: [x, y], way: [dx, dy]} = cables[port];
      const c = canvas.getContext('2d'), painted = far => c.getImageData(x + dx * far, y + dy * far, 1, 1).data[3] > 0;
      let far = 0;
      while (painted(far + 1)) far++;
      return far / waiting(show.queue[port], state.now);
    });
    const crowded = state.shows.find(show => show.system === 'pFabric').queue.find(queue => queue.peak === 30);
    seen.evicting = TIMES.map(time => waiting(crowded, time));
    const strip = state.panes[0].over, before = pixels(strip);
    $('colours').value = 'kind'; $('colours').dispatchEvent(new Event('change'));
    seen.recoloured = pixels(strip) !== before;
    seen.kinds = [...document.querySelectorAll('#legend li')].map(item => item.textContent);
    const box = strip.getBoundingClientRect();
    strip.dispatchEvent(new MouseEvent('click', {clientX: box.x + box.width / 2, clientY: box.y + 40, bubbles: true}));
    seen.middle = (state.now - state.first) / (state.end - state.first);
    const key = name => document.querySelector('#forward').dispatchEvent(new KeyboardEvent('keydown', {key: name, bubbles: true}));
    $('forward').focus(); const now = state.now; key('ArrowRight'); seen.stepped = state.now > now;
    """
    packets: Any = playback.show(results, "pFabric", results.runs[2])
    joined, start, port = (np.array(packets[name]) for name in ("joined", "start", "port"))
    here = port == [[packets["nodes"][node][0] for node in link] for link in packets["links"]].index(["s0", "h0"])
    times = np.linspace(0, 2e6, 50)
    expected = [int((here & (joined <= time) & (start > time)).sum()) for time in times]
    seen = after(player(results), script.replace("TIMES", str(times.tolist())), tmp_path, width)
    # Three full buffers, on one scale. What pFabric evicts has waited before.
    assert seen["peaks"] == [200, 50, 30] and seen["most"] == 200 and seen["evicting"] == expected
    assert seen["wide"] and seen["clear"] and seen["labels"] > 8 and seen["port"] == "s0->h0"
    first, now, end = seen["opens"]
    assert first < now < first + 12_000 < end
    assert seen["groups"][0] == [21, 21, "4 others"] and seen["groups"][1][0] == seen["groups"][1][1] == 5
    assert seen["legend"] == 21 and set(seen["kinds"]) == {"data", "ack", "syn", "synack", "probe"}
    for by_flow, by_kind, text in seen["queued"]:
        assert by_flow == by_kind > 5 and f"s0->h0: {by_flow}" in text
    left, right = seen["unit"]
    assert 0 < left == pytest.approx(right, rel=0.1)
    assert seen["recoloured"] and abs(seen["middle"] - 0.5) < 0.02 and seen["stepped"]
