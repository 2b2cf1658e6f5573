"""The report."""

from __future__ import annotations

import base64
import gzip
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import flowloom
import numpy as np
import pytest
import small
from flowloom.api.results import Results
from flowloom.pages import explore, report
from flowloom.runs import tables


class Page(HTMLParser):
    """Collects what a page refers to and whether its tags close."""

    VOID = ("meta", "link", "br", "img", "path", "use", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.refs: list[str] = []
        self.ids: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.refs.append(value or "")
            if name == "id":
                self.ids.append(value or "")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    return page


def test_one_file_holds_everything(results: Results, tmp_path: Path) -> None:
    path = report.write(results, tmp_path / "r.html")
    text = path.read_text(encoding="utf-8")
    page = parsed(text)
    assert page.open == []
    refs = [ref for ref in page.refs if not ref.startswith("data:image/png;base64,")]
    inside = {ref[1:] for ref in refs if ref.startswith("#")}
    assert inside <= set(page.ids) and {"summary", "explore", "figures", "links", "data"} <= inside
    data = [ref for ref in refs if not ref.startswith("#")]
    assert data and all((path.parent / ref).is_file() for ref in data), data
    assert len(page.ids) == len(set(page.ids))
    assert "@import" not in text and not re.search(r"url\(\s*['\"]?(?!#)", text)
    for part in ("seeds 1, 2, 3", "mean FCT (ms)", "tor0->root", "MERP, pFabric, TCP", "prefers-color-scheme"):
        assert part in page.text + text, part


def test_settings_are_shown_and_escaped(results: Results) -> None:
    text = report.settings(results)
    assert "&quot;" in text and '"' not in text.partition("<pre>")[2]


def test_traces_bring_their_figures(traced: Results) -> None:
    text = report.build(traced)
    for name in ("gantt", "queue", "rate", "heatmap", "topology", "fct_cdf"):
        assert f'id="fig-{name}-' in text, name
    assert "one seed only" in text


def test_nothing_is_warned_of_without_reason(results: Results) -> None:
    assert report.warnings(results) == []


def test_unfinished_flows_are_counted(tmp_path: Path) -> None:
    results = small.run(tmp_path, ("MERP",), (0.2, 0.9), (1, 2), end="7ms")
    missing = {run.point: results.flows(["fct_ps"], {"point": run.point})["fct_ps"].null_count for run in results.runs}
    points = [point for point, flows in missing.items() if flows]
    assert 0 < len(points) < 4
    found = report.warnings(results)
    assert f"{sum(missing.values())} flows in {len(points)} points did not finish" in found[0]
    assert f"(most in {max(missing, key=lambda point: missing[point])}: {max(missing.values())})" in found[0]


def test_interrupted_points_are_named(tmp_path: Path) -> None:
    def stop(tick: dict[str, Any]) -> None:
        if tick["points_done"] == 1:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        small.scenario(("TCP",), web={"size": "fixed", "mean": ["1KB", "100GB"]}).run(out=tmp_path / "r", jobs=2, progress=stop)
    results = flowloom.open(tmp_path / "r")
    found = report.warnings(results)
    assert "1 of 2 points were interrupted" in found[0] and found[0].endswith(results.select({"mean": "100GB"})[0].point)
    said = "1 of 2 points is missing, because the run was stopped: the same `flowloom run` adds them"
    assert said in report.header(results)[-1] and said in results.table().note


def test_the_largest_figures_of_a_large_page_are_packed(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def pictures(page: str) -> list[str]:
        return re.findall(r'<svg role="img".*?</svg>', page, re.DOTALL)

    whole = report.build(results)
    limit = len(whole.encode()) - 200_000
    monkeypatch.setattr(report, "LIMIT", limit)
    page = report.build(results)
    packed = [gzip.decompress(base64.b64decode(text)).decode() for text in re.findall(r'data-packed="([^"]+)"', page)]
    assert len(page.encode()) <= limit and "data-packed" not in whole
    assert packed and sorted(packed + pictures(page)) == sorted(pictures(whole))
    assert min(map(len, packed)) >= max(map(len, pictures(page)))


def test_without_the_library_the_report_says_what_charts_need(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert "pip install &#x27;flowloom[report]&#x27;" in "".join(report.charts(results))


def test_charts_hold_every_metric_with_its_unit_and_interval(results: Results) -> None:
    rows = explore.metric_rows(results)
    place = {"metric": "mean slowdown", "system": "TCP", "key0": 0.8}
    (row,) = [row for row in rows if place.items() <= row.items()]
    expected = tables.places(results)["TCP", (0.8,)]["mean_slowdown"]
    assert expected.low is not None and expected.high is not None
    assert [row["low"], row["high"]] == pytest.approx([expected.low, expected.high], rel=1e-4)
    assert "mean FCT (ms)" in {row["metric"] for row in rows}


def test_time_series_are_thinned_to_means() -> None:
    times = np.arange(1000.0)
    found = list(explore.thinned(times, times * 2, 10))
    assert len(found) == 10 and found[0] == (49.5, 99.0) and found[-1] == (949.5, 1899.0)
    gaps = list(explore.thinned(times[:3], np.array([1.0, np.nan, 3.0]), 10))
    assert gaps == [(0.0, 1.0), (2.0, 3.0)]


def test_the_library_of_charts_is_kept_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vl_convert")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = explore.library()
    (kept,) = (tmp_path / "flowloom").iterdir()
    assert kept.read_text(encoding="ascii") == made and b"vegaEmbed" in gzip.decompress(base64.b64decode(made))
    kept.write_text("kept", encoding="ascii")
    assert explore.library() == "kept"
    # Without a place to keep it, it is made each time.
    monkeypatch.setenv("XDG_CACHE_HOME", str(kept))
    assert explore.library() == made


PAUSED = """
end = "40ms"
[topology]
kind = "star"
hosts = 5
[workload.burst]
kind = "incast"
senders = 4
size = "1MB"
jitter = "0s"
[[system]]
label = "PFC"
transport = { kind = "dctcp", init_window = 1000, max_cwnd = 1000, handshake = false }
qdisc = { kind = "droptail", limit = "unlimited" }
buffer = { kind = "pfc", total = "4MB", xoff = "30KB" }
"""


def test_links_of_runs_with_pauses_say_how_long_they_were_paused(tmp_path: Path) -> None:
    results = flowloom.Scenario.from_toml(PAUSED).run(out=tmp_path / "paused")
    table = tables.links(results, {"system": "PFC"})
    assert list(table.head[-2:]) == ["pauses", "paused (%)"]
    flows = results.flows(["start_ps", "finish_ps"])
    span = int(flows["finish_ps"].to_numpy().max() - flows["start_ps"].to_numpy().min())
    ports = {port["name"]: port for port in results.ports().to_pylist()}
    for row in table.rows:
        port = ports[row[0]]
        assert row[-2:] == [f"{port['pfc.pauses']:.0f}", f"{100 * port['pfc.paused_ps'] / span:.2g}"]
    worst = max(ports, key=lambda name: ports[name]["pfc.paused_ps"])
    assert f"paused longest: {worst}, {100 * ports[worst]['pfc.paused_ps'] / span:.2g} % of this time" in table.note
    assert float(ports[worst]["pfc.paused_ps"]) > 0 and "paused (%)" in report.build(results)


def test_systems_without_pauses_have_no_columns_for_them(results: Results) -> None:
    assert "pauses" not in tables.links(results, {"system": "TCP", "load": 0.8}).head


FAILING = """
end = "40ms"
[topology]
kind = "star"
hosts = 3
rate = "1Gbps"
delay = "10us"
[workload.all]
kind = "long"
size = "15KB"
pairs = "h0->h1"
[[system]]
transport = { kind = "newreno", handshake = false, init_window = 10, min_rto = "200ms", init_rto = "1s" }
[failure]
unreachable = "run"
[[event]]
at = "50us"
"""


def test_the_report_counts_packets_without_a_next_hop_and_names_failures_of_no_consequence(tmp_path: Path) -> None:
    lost = flowloom.Scenario.from_toml(FAILING + 'node = "h0"\n').run(out=tmp_path / "lost")
    own = lost.per_seed().to_pylist()
    at_switches = next(row["value"] for row in own if row["metric"] == "lost_at_switches")
    of_ports, of_flows = (int(table["lost_link"].to_numpy().sum()) for table in (lost.ports(), lost.flows()))
    assert at_switches > 0 and of_flows == of_ports + at_switches
    assert f"s0: {at_switches:.0f}" in tables.links(lost, {"system": "newreno"}).note
    assert not any("touched no traffic" in text for text in report.warnings(lost))
    idle = flowloom.Scenario.from_toml(FAILING + 'node = "h2"\n').run(out=tmp_path / "idle")
    (text,) = [text for text in report.warnings(idle) if "touched no traffic" in text]
    assert "h2, down from 50us to the end" in text
