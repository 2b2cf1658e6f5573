"""Playback: which hop follows which, what arrives, and the archive of a run."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from flowloom import __main__ as command
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario
from flowloom.cli import pack
from flowloom.pages import playback

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


CLASSES: dict[str, Any] = {
    "topology": {"kind": "star", "hosts": 5, "rate": "10Gbps", "delay": "1us"},
    "workload": {
        "answers": {"kind": "incast", "senders": 4, "size": "60KB"},
        "web": {"kind": "poisson", "flows": 40, "load": 0.5, "size": "pareto", "mean": "20KB", "shape": 1.5},
    },
    "system": [
        {"label": "Homa", "transport": "homa", "qdisc": "strict"},
        {
            "label": "PIAS",
            "transport": "dctcp",
            "policy": {"kind": "pias", "thresholds": "10000B, 40000B"},
            "qdisc": {"kind": "strict", "classes": 3},
        },
        {"label": "TCP", "transport": "newreno"},
    ],
    "sample": {"interval": "100us", "packets": True},
}
"""Homa and PIAS set priority classes, and TCP does not."""


def test_a_page_has_the_class_of_every_transmission(tmp_path: Path) -> None:
    results = Scenario.from_dict(CLASSES).run(out=tmp_path / "classes")
    homa, pias, _ = results.runs
    shown: dict[str, Any] = {run.system: playback.show(results, run.system, run) for run in results.runs}
    rows = results.packets(["time_ps", "class"], {"point": homa.point}).sort_by("time_ps")
    assert sorted(zip(shown["Homa"]["start"], shown["Homa"]["class"], strict=True)) == sorted(
        (row["time_ps"] / 1e3, row["class"]) for row in rows.to_pylist()
    )
    assert len(set(shown["Homa"]["class"])) > 3
    assert set(shown["PIAS"]["class"]) == {0, 1, 2} and set(shown["TCP"]["class"]) == {0}
    one = shown["PIAS"]
    offsets = results.packets(["time_ps", "offset"], {"point": pias.point})
    offset = offsets["offset"].to_numpy()[np.argsort(offsets["time_ps"].to_numpy(), kind="stable")]
    data = np.array(one["kind"]) == one["kinds"].index("data")
    assert (np.array(one["class"])[data] == np.searchsorted([10_000, 40_000], offset[data])).all()
    flows = results.flows(["flow_id", "size_bytes"], {"point": pias.point}).to_pylist()
    flow = next(row["flow_id"] for row in flows if row["size_bytes"] > 50_000)
    around = results.around(flow, pias.point)
    assert set(around.filter(pc.field("flow_id") == flow)["class"].to_pylist()) == {0, 1, 2}


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


def test_what_is_around_a_flow_is_played_without_a_trace_of_the_run(link: Results, tmp_path: Path) -> None:
    """All packets of the flow, and the queues that it shares as a trace of the whole run has them."""
    scenario = {
        "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
        "workload": {"web": {"kind": "poisson", "flows": 150, "load": 0.7, "size": "pareto", "mean": "50KB", "shape": 1.5}},
        "system": [{"label": "TCP", "transport": "dctcp"}, {"label": "NDP", "transport": "ndp", "qdisc": "trim"}],
    }
    plain = Scenario.from_dict(scenario).run(out=tmp_path / "plain")
    traced = Scenario.from_dict({**scenario, "sample": {"ports": False, "packets": True}}).run(out=tmp_path / "traced")
    for run in plain.runs:
        rows = [row for row in plain.flows(None, {"point": run.point}).to_pylist() if row["finish_ps"] is not None]
        row = max(rows, key=lambda row: row["slowdown"])
        flow, life = row["flow_id"], (row["start_ps"] / 1e3, row["finish_ps"] / 1e3)
        packets = plain.around(flow, run.point)
        whole = traced.packets(packets.schema.names, {"point": run.point}).select(packets.schema.names)
        own = packets.filter(pc.field("flow_id") == flow)
        assert own.to_pylist() == whole.filter(pc.field("flow_id") == flow).to_pylist()
        one: Any = playback.show(plain, run.system, run, packets, [flow])
        every: Any = playback.show(traced, run.system, run)
        (shown,) = [known for known in one["flows"] if not known["passing"]]
        assert shown["id"] == flow and shown["got"][-1][1] == row["size_wire_bytes"]
        assert len(one["flows"]) > 1 and all(known["got"] == [] for known in one["flows"] if known["passing"])
        assert one["whole"] and every["whole"] and len(one["start"]) < len(every["start"])
        ports = {every["port"][i] for i in range(len(every["port"])) if every["flow"][i] == flow}

        def waits(show: Any, port: int, time: float) -> dict[tuple[float, int], float]:
            """When each packet joined that waits at a port, by its start and its flow."""
            here = zip(show["port"], show["joined"], show["start"], show["flow"], strict=True)
            return {(start, owner): joined for where, joined, start, owner in here if where == port and joined <= time < start}

        longest = 0
        for time in np.linspace(*life, 50):
            for port in ports:
                queue, wanted = waits(one, port, time), waits(every, port, time)
                # The delay of a link is the shortest time between ports, and of few packets none may have found the port idle.
                apart = [
                    joined for own, other in ((queue, wanted), (wanted, queue)) for key, joined in own.items() if key not in other
                ]
                assert all(time - joined < 100 for joined in apart), (run.system, port, time)
                longest = max(longest, len(queue))
        assert longest > 3, "packets wait on its path"
    path = playback.write(plain, around=[flow])
    assert path.name == f"playback-around-{flow}.html"
    text = path.read_text(encoding="utf-8")
    assert f"packets around flow {flow}: all packets that passed the ports of its path while it was open" in text
    assert playback.write(plain, {"system": "TCP"}, tmp_path / "one.html", [flow]).is_file()


def test_a_page_around_a_flow_that_is_not_there_is_an_error(link: Results, capfd: pytest.CaptureFixture[str]) -> None:
    before = sorted(Path(str(link.path)).rglob("*"))
    for options, message in (
        (["--around", "9"], "flow 9 does not exist in `tcp-seed1`"),
        (["--around", "1", "--point", "tcp-seed2"], "no point has `point` = `tcp-seed2`"),
        (["--files", "."], "required arguments were not provided"),
    ):
        assert command.main(["play", str(link.path), *options]) == 2
        assert message in capfd.readouterr().err
    assert sorted(Path(str(link.path)).rglob("*")) == before


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
    with pytest.raises(ValueError, match=r"reads `flows.csv`\nhint: name the scenario file with `--scenario`"):
        pack.write(results)
    with zipfile.ZipFile(pack.write(results, tmp_path / "x.toml")) as archive:
        assert archive.read("x/flows.csv") == (tmp_path / "flows.csv").read_bytes()
    (tmp_path / "flows.csv").unlink()
    with pytest.raises(ValueError, match=r"there is no `.*flows.csv`, which the scenario reads"):
        pack.write(results, tmp_path / "x.toml")
