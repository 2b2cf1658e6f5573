"""Where the time of flows went, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import flowloom
import pytest
from flowloom import __main__ as command
from flowloom import why
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
    assert any(part == ("queue", "s0->h0") and ps > 0 for flow in found.flows for part, ps in flow.parts.items())


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
    parts: dict[why.Part, int] = {("queue", f"s{i}->s{i + 1}"): 100 - i for i in range(9)}
    flow = why.Flow(0, "h0", "h1", 1, sum(parts.values()), 1, 2.0, parts)
    labels = why.Why("p", "S", 1, [flow])._drawn()
    assert list(labels) == ["queue s0->s1", "queue s1->s2", "queue s2->s3", "other queues"]
    assert sum(times[0] for times in labels.values()) == flow.fct_ps


def test_the_command_prints_and_draws(incast: flowloom.Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["why", str(incast.path), "--flow", "4"]) == 0
    printed = capsys.readouterr().out
    assert "flow 4: 30 kB from h5 to h0 in " in printed and "figures/why.png" in printed
    assert (Path(str(incast.path)) / "figures" / "why.svg").is_file()
    assert command.main(["why", str(incast.path), "--flow", "99"]) == 2
    assert "flow 99 is not there" in capsys.readouterr().err
