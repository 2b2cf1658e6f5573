"""Playback: which hop follows which, what arrives, and the archive of a run."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flowloom import pack, playback
from flowloom.results import Results
from flowloom.scenario import Scenario

LINK: dict[str, Any] = {
    "seed": 1,
    "topology": {"kind": "dumbbell", "left": 2, "right": 2, "rate": "1Gbps", "delay": "10us"},
    "workload": {"transfers": {"kind": "long", "pairs": "h0->h2, h1->h3", "size": "100KB"}},
    "system": [
        {"label": "TCP", "transport": "newreno", "qdisc": {"kind": "droptail", "limit": "10pkt"}},
        {"label": "pFabric", "transport": "pfabric", "qdisc": {"kind": "pfabric", "limit": "10pkt"}},
    ],
    "sample": {"interval": "100us", "packets": True, "flows": True},
}


@pytest.fixture(scope="module")
def link(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two systems, two flows over one link, with drops."""
    return Scenario.from_dict(LINK).run(out=tmp_path_factory.mktemp("link") / "link")


def test_a_packet_joins_a_queue_when_it_arrives() -> None:
    # Nodes 0 -> 1 -> 2: the second packet waits at node 1 until the first has left, and a third one is dropped there.
    ends = {0: (0, 1), 1: (1, 2)}
    port, dropped = np.array([0, 0, 1, 0, 1, 1]), np.array([0, 0, 0, 0, 0, 1])
    start, end = np.array([0.0, 10.0, 15.0, 20.0, 27.0, 35.0]), np.array([10.0, 20.0, 25.0, 30.0, 37.0, 35.0])
    offset = np.array([0.0, 1.0, 0.0, 2.0, 1.0, 2.0])
    hops = playback.Hops(ends, port, start, end, np.zeros(6), offset, ["data"] * 6, dropped)
    assert hops.before.tolist() == [-1, -1, 0, -1, 1, 3]
    assert hops.delays.tolist() == [5.0, 5.0]
    assert hops.joined.tolist() == [0.0, 10.0, 15.0, 20.0, 25.0, 35.0]
    assert hops.delivered(0, np.full(6, 100.0)) == [[30.0, 100.0], [42.0, 200.0]]


def test_a_trimmed_packet_arrived_as_data() -> None:
    ends = {0: (0, 1), 1: (1, 2)}
    start, end = np.array([0.0, 15.0]), np.array([10.0, 16.0])
    kinds = ["data", "trimmed"]
    hops = playback.Hops(ends, np.array([0, 1]), start, end, np.zeros(2), np.zeros(2), kinds, np.zeros(2))
    assert hops.before.tolist() == [-1, 0] and hops.delivered(0, np.full(2, 100.0)) == []


def test_every_byte_of_a_flow_arrives_once(link: Results) -> None:
    for system, run in ((run.system, run) for run in link.runs):
        one: Any = playback.show(link, system, run)
        for flow, row in zip(one["flows"], link.flows(None, {"point": run.point}).to_pylist(), strict=True):
            times, bytes_ = zip(*flow["got"], strict=True)
            assert bytes_[-1] == row["size_wire_bytes"] and list(times) == sorted(times)
            assert flow["start"] < times[0] and times[-1] <= flow["finish"] + 1.0
            assert flow["window"]
        # No packet leaves a port before it joined it.
        assert all(joined <= start + 1e-6 for joined, start in zip(one["joined"], one["start"], strict=True))


def test_queues_are_those_that_were_sampled(tmp_path: Path) -> None:
    """Packets that a port evicts have waited before."""
    scenario = {
        "topology": {"kind": "star", "hosts": 9, "rate": "1Gbps", "delay": "10us"},
        "workload": {"answers": {"kind": "incast", "senders": 8, "size": "64KB"}},
        "system": [{"transport": "pfabric", "qdisc": {"kind": "pfabric", "limit": "20pkt"}}],
        "sample": {"interval": "7us", "port": "s0->h0", "packets": True},
    }
    results = Scenario.from_dict(scenario).run(out=tmp_path / "star")
    (run,) = results.runs
    one: Any = playback.show(results, run.system, run)
    table = results.packets(["time_ps", "size_bytes"])
    size = table["size_bytes"].to_numpy()[np.argsort(table["time_ps"].to_numpy(), kind="stable")]
    joined, start, dropped = (np.array(one[name]) for name in ("joined", "start", "dropped"))
    ends = [tuple(one["nodes"][node][0] for node in link) for link in one["links"]]
    here = np.array([ends[port] == ("s0", "h0") for port in one["port"]])
    assert ((start - joined > 1.0) & (dropped == 1) & here).sum() > 10, "packets are evicted"
    seen = [row for row in results.samples().to_pylist() if row["metric"] == "port.queue_bytes"]
    assert max(row["value"] for row in seen) == 30_000
    for row in seen:
        time = row["time_ps"] / 1e3
        # A sample comes before all that happens at its instant.
        waits = here & (joined < time - 1e-6) & (start > time - 1e-6)
        assert size[waits].sum() == row["value"], time


def test_a_trace_that_is_cut_has_the_whole_queues(link: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    run = link.runs[0]
    all_of_it: Any = playback.show(link, run.system, run)
    monkeypatch.setattr(playback, "MOST", 300)
    cut: Any = playback.show(link, run.system, run)
    assert all_of_it["whole"] and all_of_it["until"] is None and not cut["whole"]
    assert cut["until"] == sorted(all_of_it["start"])[299]

    def waits(one: Any, time: float) -> list[int]:
        port, joined, start = (np.array(one[name]) for name in ("port", "joined", "start"))
        counts = np.bincount(port[(joined <= time) & (start > time)], minlength=len(one["links"]))
        return [int(count) for count in counts]

    times = np.linspace(0, cut["until"], 40)
    queues = [waits(cut, time) for time in times]
    assert queues == [waits(all_of_it, time) for time in times] and max(queues[-1]) > 3
    # Shares of flows are of all their bytes.
    assert [flow["wire"] for flow in cut["flows"]] == [flow["got"][-1][1] for flow in all_of_it["flows"]]


def test_without_packets_there_is_nothing_to_play(results: Results) -> None:
    with pytest.raises(ValueError, match="hint: set `packets = true`"):
        playback.write(results)


def test_an_archive_holds_what_remakes_the_run(link: Results, tmp_path: Path) -> None:
    path = pack.write(link, out=tmp_path / "link.zip")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "link"
    for line in (folder / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest
    assert "flowloom run scenario.toml --out again" in (folder / "README.txt").read_text()
    Scenario.from_file(folder / "scenario.toml").run(out=folder / "again")
    kept = sorted(path.relative_to(folder / "results") for path in (folder / "results").rglob("*.parquet"))
    assert len(kept) > 6
    for inside in kept:
        assert (folder / "again" / inside).read_bytes() == (folder / "results" / inside).read_bytes(), inside
    assert pack.write(link, out=tmp_path / "twice.zip").read_bytes() == path.read_bytes()


def test_an_archive_needs_the_files_that_its_scenario_reads(tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text("src,dst,size_bytes,start\nh0,h2,10000,0us\n")
    text = """
topology = { kind = "dumbbell", left = 2, right = 2 }
[workload.w]
kind = "table"
path = "flows.csv"
[[system]]
transport = "newreno"
"""
    (tmp_path / "x.toml").write_text(text)
    results = Scenario.from_file(tmp_path / "x.toml").run(out=tmp_path / "x")
    with pytest.raises(ValueError, match=r"reads `flows.csv`\nhint: name the scenario's file with `--scenario`"):
        pack.write(results)
    with zipfile.ZipFile(pack.write(results, tmp_path / "x.toml")) as archive:
        assert archive.read("x/flows.csv") == (tmp_path / "flows.csv").read_bytes()
    (tmp_path / "flows.csv").unlink()
    with pytest.raises(ValueError, match=r"there is no `.*flows.csv`, which the scenario reads"):
        pack.write(results, tmp_path / "x.toml")
