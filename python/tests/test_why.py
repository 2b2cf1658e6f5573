"""Where the time of flows went, from Python."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import flowloom
import pyarrow.parquet as pq
import pytest
from flowloom import __main__ as command
from flowloom.why.parts import Flow, Part, Why
from matplotlib.patches import Rectangle

INCAST: dict[str, Any] = {
    "topology": {"kind": "star", "hosts": 9},
    "workload": {"burst": {"kind": "incast", "senders": 8, "size": "30KB", "jitter": "0s"}},
    "system": [{"label": "TCP", "transport": {"kind": "newreno", "min_rto": "10ms", "init_rto": "10ms"}}],
}


@pytest.fixture(scope="module")
def incast(tmp_path_factory: pytest.TempPathFactory) -> flowloom.Results:
    return flowloom.run(INCAST, out=tmp_path_factory.mktemp("incast") / "out")


def test_the_parts_of_a_flow_are_its_completion_time(incast: flowloom.Results) -> None:
    fct = dict(zip(*(incast.flows()[name].to_pylist() for name in ("flow_id", "fct_ps")), strict=True))
    found = incast.why([2, 7])
    assert [flow.flow_id for flow in found.flows] == [2, 7]
    assert all(sum(flow.parts.values()) == flow.fct_ps == fct[flow.flow_id] for flow in found.flows)
    lost = Part("retransmission", "s0->h0", "s->host", "min_rto of 10 ms")
    assert any(flow.parts.get(lost, 0) > 9 * 10**9 for flow in incast.why(slowest=8).flows)
    assert any(part == Part("queue", "s0->h0", "s->host") and ps > 0 for flow in found.flows for part, ps in flow.parts.items())


def test_without_a_flow_the_slowest_are_shown(incast: flowloom.Results) -> None:
    found = incast.why()
    assert len(found.flows) == 5 and found.flows[0].slowdown == max(
        value or 0.0 for value in incast.flows()["slowdown"].to_pylist()
    )
    table = str(found)
    assert "times the" in table and "handshake" in table and "queue" in table and "s0->h0" in table and " %" in table
    shares = [float(row[4].removesuffix(" %")) for row in found.table().rows if row[0] == str(found.flows[0].flow_id)]
    assert abs(sum(shares) - 100) < 0.5 and shares == sorted(shares, reverse=True)


def test_results_in_memory_are_explained_too() -> None:
    found = flowloom.run(INCAST).why(3)
    assert [flow.flow_id for flow in found.flows] == [3]


def test_the_picture_has_a_bar_for_each_flow_and_a_piece_for_each_part(incast: flowloom.Results) -> None:
    found = incast.why([0, 1, 2])
    (ax,) = found.plot().axes
    pieces = [bar for bar in ax.patches if isinstance(bar, Rectangle) and bar.get_width() > 0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["flow 0", "flow 1", "flow 2"]
    assert len(pieces) == sum(1 for flow in found.flows for ps in flow.parts.values() if ps)
    ends = [0.0, 0.0, 0.0]
    for bar in pieces:
        row = round(bar.get_y() + bar.get_height() / 2)
        ends[row] = max(ends[row], bar.get_x() + bar.get_width())
    unit = found.flows[0].fct_ps / ends[0]
    assert all(end * unit == pytest.approx(flow.fct_ps) for end, flow in zip(ends, found.flows, strict=True))


def test_many_queues_are_drawn_as_one() -> None:
    parts: dict[Part, int] = {Part("queue", f"s{i}->s{i + 1}", "s->s"): 100 - i for i in range(9)}
    flow = Flow(0, "h0", "h1", 1, sum(parts.values()), 1, 2.0, parts)
    labels = Why("p", "S", 1, [flow])._drawn()
    assert list(labels) == ["queue s0->s1", "queue s1->s2", "queue s2->s3", "other queues"]
    assert sum(times[0] for times in labels.values()) == flow.fct_ps


def test_the_command_prints_and_draws(incast: flowloom.Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["why", str(incast.path), "--flow", "4"]) == 0
    printed = capsys.readouterr().out
    assert "flow 4: 30 kB from h5 to h0 in " in printed and "figures/why.png" in printed
    assert (Path(str(incast.path)) / "figures" / "why.svg").is_file()
    assert command.main(["why", str(incast.path), "--flow", "99"]) == 2
    assert "flow 99 does not exist in `tcp-seed1`" in capsys.readouterr().err


LEAVES: dict[str, Any] = {
    "topology": {"kind": "leaf_spine", "leaves": 2, "spines": 2, "hosts_per_leaf": 4},
    "workload": {
        "web": {"kind": "poisson", "flows": 150, "load": [0.4, 0.8], "size": "pareto", "mean": "60KB", "shape": 1.5},
        "burst": {"kind": "incast", "senders": 6, "size": "30KB", "repeat": 7, "interval": "300us"},
    },
    "system": [
        {"label": "TCP", "transport": {"kind": "newreno", "min_rto": "2ms"}, "qdisc": {"kind": "droptail", "limit": "15pkt"}},
        {"label": "NDP", "transport": "ndp", "qdisc": "trim"},
        {"label": "pFabric", "transport": "pfabric", "qdisc": "pfabric"},
    ],
}


@pytest.fixture(scope="module")
def leaves(tmp_path_factory: pytest.TempPathFactory) -> flowloom.Results:
    """Two simulated systems whose flows have one path each, and one whose packets take several."""
    return flowloom.run(LEAVES, out=tmp_path_factory.mktemp("leaves") / "out")


def chosen(results: flowloom.Results, point: str, most: int | None = None) -> list[dict[str, Any]]:
    """The flows of a point that count and finished, of at most a size."""
    flows: list[dict[str, Any]] = results.flows(None, {"point": point}).to_pylist()
    return [
        row for row in flows if row["measured"] and row["fct_ps"] is not None and row["size_bytes"] <= (most or row["size_bytes"])
    ]


def test_the_mean_parts_of_a_class_are_its_mean_completion_time(leaves: flowloom.Results) -> None:
    found = leaves.where("workload == 'web' and size_bytes <= 60KB").why_class({"load": 0.8}, limit=10**6)
    assert [one.why.system for one in found.systems] == ["TCP", "pFabric"]
    assert found.about == "flows where workload == 'web' and size_bytes <= 60KB, load 0.8"
    for one in found.systems:
        rows = [row for row in chosen(leaves, one.why.point, 60_000) if row["workload"] == "web"]
        assert (one.size, sorted(flow.flow_id for flow in one.why.flows)) == (len(rows), [row["flow_id"] for row in rows])
        assert sum(one.means().values()) == Fraction(sum(row["fct_ps"] for row in rows), len(rows))
        assert sum(one.of_ideal().values()) == pytest.approx(sum(row["slowdown"] for row in rows) / len(rows), rel=1e-12)
        assert {"queue leaf->host", "queue leaf->spine", "transmission"} <= set(one.means())
    (note,) = found.notes
    assert note.startswith("NDP: left out: ") and "several paths at once" in note


def test_a_tail_is_that_of_each_system_and_few_of_its_flows_are_spread_over_it(leaves: flowloom.Results) -> None:
    found = leaves.why_class({"load": 0.8}, tail=0.7, limit=9)
    for one in found.systems:
        rows = sorted(chosen(leaves, one.why.point), key=lambda row: (row["slowdown"], row["flow_id"]))
        tail = rows[math.ceil(0.7 * len(rows)) - 1 :]
        assert one.size == len(tail) and len(one.why.flows) == 9
        places = [[row["flow_id"] for row in tail].index(flow.flow_id) for flow in one.why.flows]
        assert places == sorted(places) and max(b - a for a, b in pairwise(places)) <= len(tail) / 9 + 1
    text = str(found)
    assert "9 of them explained, spread evenly over the class" in text and "with a slowdown from the 70th percentile on" in text
    tcp = found.systems[0]
    label = "retransmission after min_rto of 2 ms, lost at leaf->host"
    assert tcp.means()[label] > 10**8 and tcp.most_at(label).startswith("leaf")
    assert label in text and tcp.most_at(label) in text


def test_the_picture_of_a_class_has_a_bar_for_each_system(leaves: flowloom.Results) -> None:
    found = leaves.why_class({"load": 0.4}, tail=0.9)
    time, ratio = found.plot().axes
    assert [label.get_text() for label in time.get_yticklabels()] == ["TCP", "pFabric"]
    for ax, wanted in (
        (time, [float(sum(one.means().values())) for one in found.systems]),
        (ratio, [sum(one.of_ideal().values()) for one in found.systems]),
    ):
        ends = [0.0, 0.0]
        for bar in (bar for bar in ax.patches if isinstance(bar, Rectangle)):
            row = round(bar.get_y() + bar.get_height() / 2)
            ends[row] = max(ends[row], bar.get_x() + bar.get_width())
        assert ends[0] / ends[1] == pytest.approx(wanted[0] / wanted[1])
    assert time.get_xlabel() == "mean completion time (ms)" and ratio.get_xlabel() == "mean slowdown"


def test_the_flow_that_a_group_waited_for_is_explained(leaves: flowloom.Results) -> None:
    point = next(run.point for run in leaves.select({"load": 0.8, "system": "TCP"}))
    found = leaves.why_groups(point=point)
    ends: dict[int, tuple[int, int]] = {}
    spans: dict[int, int] = {}
    rows = [row for row in leaves.flows(None, {"point": point}).to_pylist() if row["group_id"] is not None]
    for row in rows:
        ends[row["group_id"]] = max(ends.get(row["group_id"], (0, 0)), (row["finish_ps"], row["flow_id"]))
    for group, (end, _) in ends.items():
        spans[group] = end - min(row["start_ps"] for row in rows if row["group_id"] == group)
    slowest = sorted(spans, key=lambda group: (-spans[group], group))[:5]
    assert len(spans) == 7 and [found.groups[flow.flow_id] for flow in found.flows] == slowest
    assert [flow.flow_id for flow in found.flows] == [ends[group][1] for group in slowest]
    assert f"last of group {slowest[0]}, flow {ends[slowest[0]][1]}: 30 kB" in str(found)
    labels = [label.get_text() for label in found.plot().axes[0].get_yticklabels()]
    assert labels[0] == f"group {slowest[0]}: flow {ends[slowest[0]][1]}"
    last = slowest[-1]
    assert [flow.flow_id for flow in leaves.why_groups([last], point).flows] == [ends[last][1]]
    # The first step takes the slowest group of all points.
    assert leaves.why_groups().system == "TCP"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--where", "workload == web"], 'write "web"'),
        (["--where", "size_bytes < 1B"], "there are no flows where size_bytes < 1B that finished and count"),
        (["--at", "load=0.5"], "no point has `load` = `0.5`"),
        (["--tail", "1"], "it must be at least 0 and less than 1"),
        (["--group", "a"], "`--group a` is neither `slowest` nor a list of group numbers"),
        (["--group", "3"], "the run has 6 points, so group 3 is ambiguous"),
        (["--group", "99", "--point", "tcp-load0.8-seed1"], "no group 99 has finished in `tcp-load0.8-seed1`"),
        (["--flow", "1", "--slowest", "3"], "cannot be used with"),
    ],
)
def test_what_cannot_be_explained_is_an_error(
    leaves: flowloom.Results, options: list[str], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    before = sorted(Path(str(leaves.path)).rglob("*"))
    assert command.main(["why", str(leaves.path), *options]) == 2
    assert message in capfd.readouterr().err
    assert sorted(Path(str(leaves.path)).rglob("*")) == before


def test_a_trace_is_written_beside_the_picture(
    leaves: flowloom.Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "slow.png"
    point = "tcp-load0.8-seed1"
    assert command.main(["why", str(leaves.path), "--slowest", "2", "--point", point, "--trace", "--out", str(out)]) == 0
    assert "slow.packets.parquet" in capsys.readouterr().out
    packets = pq.read_table(tmp_path / "slow.packets.parquet")
    flows = [flow.flow_id for flow in leaves.why(point=point, slowest=2).flows]
    assert packets.equals(leaves.around(flows, point)) and packets.schema.names[0] == "time_ps"
    seen = set(packets["flow_id"].to_pylist())
    assert set(flows) < seen and (packets.schema.field("time_ps").metadata or {})[b"unit"] == b"ps"


def test_the_command_explains_classes_and_groups(
    leaves: flowloom.Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = [
        "--at",
        "load=0.8",
        "--where",
        "size_bytes <= 60KB",
        "--tail",
        "0.9",
        "--limit",
        "5",
        "--out",
        str(tmp_path / "class.svg"),
    ]
    assert command.main(["why", str(leaves.path), *options]) == 0
    printed = capsys.readouterr().out
    about = "flows where size_bytes <= 60KB with a slowdown from the 90th percentile on, load 0.8"
    assert about in printed and "mean time / ideal" in printed
    assert (tmp_path / "class.svg").is_file()
    assert command.main(["why", str(leaves.path), "--group", "slowest", "--out", str(tmp_path / "group.png")]) == 0
    assert "last of group " in capsys.readouterr().out
