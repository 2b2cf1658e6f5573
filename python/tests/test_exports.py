"""Other programs' formats, read again by other libraries."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from flowloom import exports
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario

TEXT = """
seed = 1
[topology]
kind = "dumbbell"
left = 2
right = 2
rate = "1Gbps"
delay = "10us"
[workload.two]
kind = "table"
path = "flows.csv"
[[system]]
label = "TCP"
transport = "newreno"
[[system]]
label = "MERP"
transport = "merp"
agent = "merp"
qdisc = { kind = "strict", classes = 4, evict = "worst_class" }
[sample]
interval = "100us"
ports = true
flows = true
packets = true
"""
FLOWS = "src,dst,size_bytes,start\nh0,h2,30000,0us\nh1,h3,14600,50us\n"


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("traced")
    (folder / "flows.csv").write_text(FLOWS)
    (folder / "traced.toml").write_text(TEXT)
    return Scenario.from_file(folder / "traced.toml").run(out=folder / "out")


def points(results: Results) -> list[str]:
    return [run.point for run in results.runs]


def test_a_trace_of_perfetto_has_every_flow_link_and_series(traced: Results, tmp_path: Path) -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    point = points(traced)[0]
    path = exports.write(traced, "perfetto", point, tmp_path / "t.pftrace")
    trace = protos.Trace.FromString(path.read_bytes())
    tracks = {p.track_descriptor.uuid: p.track_descriptor for p in trace.packet if p.HasField("track_descriptor")}
    events = [p for p in trace.packet if p.HasField("track_event")]
    names = {one.name for one in tracks.values()}
    assert {"flows", "links", "port.queue_bytes", "flow.cwnd_bytes"} <= names
    assert any(name.startswith("flow 0: h0 -> h2") for name in names) and any("->" in name for name in names)
    kind = protos.TracePacket().track_event
    begun = [p for p in events if p.track_event.type == kind.TYPE_SLICE_BEGIN]
    ended = [p for p in events if p.track_event.type == kind.TYPE_SLICE_END]
    counted = [p for p in events if p.track_event.type == kind.TYPE_COUNTER]
    at = {"point": point}
    packets = traced.packets(None, at).to_pylist()
    sent = sum(not row["dropped"] for row in packets)
    assert len(begun) == len(ended) == sent + traced.flows(None, at).num_rows
    assert len(counted) == traced.samples(None, at).num_rows
    flow = traced.flows(["start_ps", "finish_ps", "size_bytes"], at).to_pylist()[0]
    own = next(uuid for uuid, one in tracks.items() if one.name.startswith("flow 0:"))
    first, last = (p for p in events if p.track_event.track_uuid == own)
    assert (first.timestamp, last.timestamp) == (flow["start_ps"] // 1000, flow["finish_ps"] // 1000)
    facts = {fact.name: fact.int_value for fact in first.track_event.debug_annotations}
    assert facts["size_bytes"] == flow["size_bytes"]


def frames(path: Path) -> list[tuple[float, bytes]]:
    dpkt = pytest.importorskip("dpkt")
    with path.open("rb") as file:
        return list(dpkt.pcapng.Reader(file))


def test_a_capture_has_every_packet_that_was_sent(traced: Results, tmp_path: Path) -> None:
    dpkt = pytest.importorskip("dpkt")
    point = next(point for point in points(traced) if point.startswith("tcp"))
    path = exports.write(traced, "pcapng", point, tmp_path / "c.pcapng")
    rows = [row for row in traced.packets(None, {"point": point}).to_pylist() if not row["dropped"]]
    rows.sort(key=lambda row: (row["time_ps"], row["port_id"]))
    found = frames(path)
    assert len(found) == len(rows)
    hosts = {0: (0, 2), 1: (1, 3)}
    for (time_s, content), row in zip(found, rows, strict=True):
        assert time_s == pytest.approx(row["time_ps"] * 1e-12, abs=2e-9)
        ip = dpkt.ethernet.Ethernet(content).data
        forward = row["kind"] in ("data", "syn", "fin")
        src, dst = hosts[row["flow_id"]] if forward else hosts[row["flow_id"]][::-1]
        assert (ip.src[-1], ip.dst[-1], ip.len) == (src + 1, dst + 1, row["size_bytes"])
        tcp = ip.data
        assert isinstance(tcp, dpkt.tcp.TCP)
        assert (tcp.seq if forward else tcp.ack) == row["offset"] + 1
        assert dpkt.in_cksum(content[14:34]) == 0, "the checksum of the IP header"


@pytest.mark.skipif(shutil.which("tshark") is None, reason="no tshark: `apt install tshark`")
def test_tshark_opens_a_capture_and_finds_nothing_wrong(traced: Results, tmp_path: Path) -> None:
    point = next(point for point in points(traced) if point.startswith("tcp"))
    path = exports.write(traced, "pcapng", point, tmp_path / "c.pcapng")
    asked = ["-e", "ip.src", "-e", "tcp.len", "-e", "frame.interface_name", "-e", "_ws.malformed"]
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "separator=,", *asked]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rows = [line.split(",") for line in done.stdout.splitlines()]
    sent = [row for row in traced.packets(None, {"point": point}).to_pylist() if not row["dropped"]]
    assert len(rows) == len(sent) and all(row[3] == "" for row in rows)
    assert rows[0][:3] == ["10.0.0.1", "0", "h0->s0"], "the SYN of the first flow"
    lengths = sorted(int(row[1]) for row in rows)
    assert lengths == sorted(row["size_bytes"] - 40 for row in sent)


def test_interfaces_are_named_by_their_links(traced: Results, tmp_path: Path) -> None:
    pcapng = pytest.importorskip("pcapng")
    path = exports.write(traced, "pcapng", points(traced)[0], tmp_path / "c.pcapng")
    with path.open("rb") as file:
        blocks = list(pcapng.FileScanner(file))
    named: list[Any] = [block.options["if_name"] for block in blocks if type(block).__name__ == "InterfaceDescription"]
    assert "h0->s0" in named or any(name.startswith("h0->") for name in named)
    whole = [block for block in blocks if type(block).__name__ == "EnhancedPacket"]
    assert all(block.packet_len >= block.captured_len >= 34 for block in whole)


def test_packets_that_are_not_of_tcp_are_of_the_experimental_protocol(traced: Results, tmp_path: Path) -> None:
    dpkt = pytest.importorskip("dpkt")
    point = next(point for point in points(traced) if point.startswith("merp"))
    kinds = {row["kind"] for row in traced.packets(["kind"], {"point": point}).to_pylist()}
    found = frames(exports.write(traced, "pcapng", point, tmp_path / "m.pcapng"))
    protocols = {dpkt.ethernet.Ethernet(content).data.p for _, content in found}
    assert protocols == ({6, 253} if "det" in kinds else {6})


def test_what_cannot_be_written_is_told(traced: Results, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert traced.path is not None
    folder = str(traced.path)
    assert main(["export", folder, "--format", "pcap"]) == 2
    assert "did you mean `pcapng`?" in capfd.readouterr().err
    assert main(["export", folder, "--format", "perfetto"]) == 2
    assert "2 simulated points" in capfd.readouterr().err
    assert main(["export", folder, "--format", "perfetto", "--point", "x"]) == 2
    assert "no point has `point` = `x`" in capfd.readouterr().err
    point = points(traced)[0]
    assert main(["export", folder, "--format", "perfetto", "--point", point]) == 0
    assert capfd.readouterr().out.strip() == str(traced.path / f"{point}.pftrace")
    plain = Scenario.from_toml(
        TEXT.split("[sample]")[0]
        .replace('kind = "table"', 'kind = "long"')
        .replace('path = "flows.csv"', 'pairs = "h0->h2"\nsize = "20KB"')
    )
    without = plain.run(out=tmp_path / "plain")
    with pytest.raises(ValueError, match="has no packet trace"):
        exports.write(without, "pcapng", points(without)[0], tmp_path / "none.pcapng")
    assert not (tmp_path / "none.pcapng").exists()


@pytest.mark.parametrize("form", ["hpcc", "htsim"])
def test_flows_that_are_written_are_read_again(form: str, traced: Results, tmp_path: Path) -> None:
    point = points(traced)[0]
    path = exports.write(traced, form, point, tmp_path / "flows.txt")
    text = TEXT.replace('kind = "table"', f'kind = "{form}"').replace("flows.csv", path.name)
    (tmp_path / "again.toml").write_text(text)
    columns = ["src", "dst", "size_bytes", "start_ps", "finish_ps"]
    again = Scenario.from_file(tmp_path / "again.toml").run(out=tmp_path / "out")
    at = {"point": point}
    assert again.flows(columns, at).to_pylist() == traced.flows(columns, at).to_pylist()


def test_flows_have_the_shape_of_each_program(traced: Results, tmp_path: Path) -> None:
    def text(form: str) -> str:
        return exports.write(traced, form, points(traced)[0], tmp_path / form).read_text()

    assert text("hpcc") == "2\n0 2 3 100 30000 0.000000000000\n1 3 3 100 14600 0.000050000000\n"
    assert text("htsim") == "Nodes 4\nConnections 2\n0->2 id 1 start 0 size 30000\n1->3 id 2 start 50000000 size 14600\n"


@pytest.mark.parametrize(("form", "size"), [("hpcc", 2**32), ("htsim", 2**31)])
def test_sizes_beyond_what_a_format_holds_are_refused(form: str, size: int, tmp_path: Path) -> None:
    (tmp_path / "flows.csv").write_text(f"src,dst,size_bytes,start\nh0,h2,{size},0us\n")
    (tmp_path / "large.toml").write_text('end = "1ms"\n' + TEXT.split('[[system]]\nlabel = "MERP"')[0])
    results = Scenario.from_file(tmp_path / "large.toml").run(out=tmp_path / "out")
    with pytest.raises(ValueError, match=f"has {size} bytes; .* reads at most {size - 1}"):
        exports.write(results, form)


def test_hosts_whose_names_are_numbers_keep_them_in_files_of_hpcc_and_are_counted_for_htsim(tmp_path: Path) -> None:
    (tmp_path / "net.txt").write_text("3 1 2\n0\n1 0 1Gbps 1us 0\n2 0 1Gbps 1us 0\n")
    (tmp_path / "flows.txt").write_text("1\n2 1 3 100 5000 2\n")
    scenario = {
        "topology": {"kind": "hpcc", "path": str(tmp_path / "net.txt")},
        "workload": {"w": {"kind": "hpcc", "path": str(tmp_path / "flows.txt")}},
        "system": [{"transport": "newreno"}],
        "seed": 1,
    }
    results = Scenario.from_dict(scenario).run(out=tmp_path / "out")
    assert exports.write(results, "hpcc").read_text() == "1\n2 1 3 100 5000 2.000000000000\n"
    assert exports.write(results, "htsim").read_text() == "Nodes 2\nConnections 1\n1->0 id 1 start 2000000000000 size 5000\n"
