"""Pictures of the network: what is drawn of its links and nodes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import small
from flowloom.api.results import Results
from flowloom.figures import network, plots
from flowloom.figures.network import Link
from flowloom.runs.data import Run
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.figure import Figure


def fat_tree() -> list[Link]:
    """The links of a fat-tree of 4-port switches, both directions, busy by their number."""
    cables = []
    for pod in range(4):
        for edge in range(2):
            for host in range(2):
                cables.append((f"h{4 * pod + 2 * edge + host}", f"edge{pod}_{edge}", 0))
            cables += [(f"edge{pod}_{edge}", f"agg{pod}_{agg}", 1) for agg in range(2)]
        cables += [(f"agg{pod}_{i // 2}", f"core{i}", 2) for i in range(4)]
    found: list[Link] = []
    for low, high, tier in cables:
        found.append(Link(len(found), f"{low}->{high}", (tier, tier + 1), len(found) / 100))
        found.append(Link(len(found), f"{high}->{low}", (tier + 1, tier), len(found) / 100))
    return sorted(found, key=lambda link: (link.stage, link.port))


def test_links_are_in_the_order_in_which_packets_pass() -> None:
    stages = list(dict.fromkeys((link.tiers) for link in fat_tree()))
    assert stages == [(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 0)]


def test_nodes_stand_in_tiers_above_what_hangs_below_them() -> None:
    places = network.layout(fat_tree())
    assert {y for _, y in places.values()} == {0, 1, 2, 3} and len(places) == 16 + 8 + 8 + 4
    for tier in range(4):
        xs = sorted(x for x, y in places.values() if y == tier)
        assert np.diff(xs) == pytest.approx(np.full(len(xs) - 1, 1 / len(xs))), "evenly over the width"
    order = sorted((f"h{i}" for i in range(16)), key=lambda name: places[name][0])
    assert order == [f"h{i}" for i in range(16)]
    assert places["edge1_0"][0] == pytest.approx((places["h4"][0] + places["h5"][0]) / 2)


def test_a_map_shows_each_cable_once_and_crosses_out_the_dead() -> None:
    found = fat_tree()
    ax = Figure().add_subplot()
    lines = network.topology_panel(ax, found, {frozenset(("core0", "agg0_0")), frozenset(("h3", "edge0_1")), frozenset(("x", "y"))})
    assert isinstance(lines, LineCollection) and len(lines.get_segments()) == 48 - 2
    shown = np.asarray(lines.get_array())
    busier = sorted(max(a.busy, b.busy) for a in found for b in found if a.ends == b.ends[::-1] and a.tiers[0] < a.tiers[1])
    dead = [max(link.busy for link in found if set(link.ends) == set(pair)) for pair in (("core0", "agg0_0"), ("h3", "edge0_1"))]
    assert shown == pytest.approx([busy for busy in busier if busy not in dead]), "the busiest on top"
    crosses = [line for line in ax.lines if line.get_marker() == "X"]
    places = network.layout(found)
    middles = {tuple(np.mean([places[a], places[b]], axis=0)) for a, b in (("core0", "agg0_0"), ("h3", "edge0_1"))}
    assert {tuple(np.column_stack(line.get_data())[0].tolist()) for line in crosses} == middles
    assert ax.get_legend_handles_labels()[1] == ["failed link"]


def test_large_networks_are_drawn_without_their_hosts() -> None:
    found = [Link(2 * i, f"h{i}->tor{i // 50}", (0, 1), 0.5) for i in range(100)]
    found += [Link(1000 + i, f"tor{i}->root", (1, 2), 0.5) for i in range(2)]
    lines = network.topology_panel(Figure().add_subplot(), found)
    assert len(lines.get_segments()) == 2


def test_dead_links_are_those_that_were_down(tmp_path: Path) -> None:
    events = [{"at": "1ms", "until": "2ms", "link": link} for link in (["h1", "tor0"], ["tor0", "root"])]
    results = small.run(tmp_path, ("TCP",), seeds=(1, 2), event=events)
    dead = {frozenset(("h1", "tor0")), frozenset(("tor0", "root"))}
    assert network.dead_cables(results, results.runs) == dead
    ax = plots.draw(results, "topology").axes[0]
    assert len([line for line in ax.lines if line.get_marker() == "X"]) == 2
    ax = plots.draw(results, "topology", dead=[("h2", "tor1")]).axes[0]
    assert len([line for line in ax.lines if line.get_marker() == "X"]) == 1


def test_the_heat_map_holds_the_samples_up_to_the_quiet_end(traced: Results) -> None:
    ax = plots.draw(traced, "heatmap").axes[0]
    (mesh,) = [found for found in ax.collections if isinstance(found, QuadMesh)]
    grid = np.asarray(mesh.get_array())
    up = ["h0->tor0", "h1->tor0", "h2->tor1", "h3->tor1", "tor0->root", "tor1->root"]
    names = [*up, *("->".join(reversed(name.split("->"))) for name in (*up[4:], *up[:4]))]
    assert [text.get_text() for text in ax.get_yticklabels()] == names
    ports = traced.ports(["port_id", "name"], {"system": "MERP"}).to_pylist()
    port = {row["name"]: row["port_id"] for row in ports}
    rows = [row for row in traced.samples(None, {"system": "MERP"}).to_pylist() if row["metric"] == "port.utilisation"]
    used = np.array([[row["value"] for row in rows if row["entity"] == port[name]] for name in names])
    shown = grid.shape[1]
    assert grid == pytest.approx(used[:, :shown])
    assert used[:, : shown - 1].sum() < 0.98 * used.sum() <= grid.sum() < used.sum(), "two hundredths are cut off, and no more"
    assert mesh.get_clim() == (0, 1)
    times = np.asarray(mesh.get_coordinates())[0, :, 0]
    assert times == pytest.approx(0.1 * np.arange(shown + 1)), "a sample is about the interval before it"


def test_many_samples_are_averaged() -> None:
    found = [Link(0, "h0->s0", (0, 1), 0.5), Link(1, "s0->h0", (1, 0), 0.5)]
    times = np.arange(1.0, 1001.0)
    values = {0: np.tile([0.0, 1.0], 500), 1: np.ones(1000)}
    seen = network.activity(found, times, values)
    grid, edges = seen.grid, seen.edges
    assert grid.shape == (2, network.COLUMNS) and len(edges) == network.COLUMNS + 1 and not seen.gaps
    assert grid[1] == pytest.approx(1.0) and grid[0].mean() == pytest.approx(0.5, abs=0.02)
    assert edges[0] == 0 and edges[-1] == pytest.approx(980, rel=0.01) and (np.diff(edges) > 0).all()


def test_a_long_wait_is_one_empty_interval() -> None:
    times = np.arange(1.0, 1001.0)
    busy = np.where((times <= 100) | (times > 900), 1.0, 0.0)
    seen = network.activity([Link(0, "h0->s0", (0, 1), 0.2)], times, {0: busy})
    assert list(seen.gaps) == [(100, 900)]
    # 100 and, without the quiet end, 97 samples as they are.
    assert seen.edges == pytest.approx(np.concatenate([np.arange(0, 101), np.arange(900, seen.edges[-1] + 1)]))
    assert np.isnan(seen.grid[0, 100]) and np.nansum(seen.grid) == pytest.approx(len(seen.grid[0]) - 1)


def test_links_that_were_not_sampled_are_not_drawn_as_idle(traced: Results) -> None:
    run = traced.runs[0]
    (port,) = (row["port_id"] for row in traced.ports(at={"point": run.point}).to_pylist() if row["name"] == "tor0->root")

    class One(Results):
        def sampled(self, run: Run, metric: str) -> pa.Table:
            return super().sampled(run, metric).filter(pc.field("entity") == port)

    ax = plots.draw(One(traced._core), "heatmap", at={"system": run.system}).axes[0]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["tor0->root"]


def test_a_large_map_is_an_image_of_small_nodes() -> None:
    found = [Link(i, f"edge{i // 8}->agg{i % 128}", (1, 2), 0.5) for i in range(1024)]
    ax = Figure(figsize=(5, 3)).add_subplot()
    lines = network.topology_panel(ax, found)
    assert lines.get_rasterized()
    sizes = [line.get_markersize() for line in ax.lines if line.get_marker() == "s"]
    assert len(sizes) == 2 and max(sizes) * 128 < 72 * 5


def test_a_line_of_a_very_large_map_is_the_mean_of_many_cables() -> None:
    found = [Link(i, f"edge{i // 64}->agg{i % 64}", (1, 2), (i % 4) / 10) for i in range(4096)]
    ax = Figure(figsize=(5, 3)).add_subplot()
    lines = network.topology_panel(ax, found, {frozenset(("edge0", "agg0"))})
    shown = np.asarray(lines.get_array())
    assert shown == pytest.approx(np.full(16 * 16 - 1, 0.15)), "sixteen cables each, a quarter at each level"
    assert [np.size(line.get_xdata()) for line in ax.lines if line.get_marker() == "s"] == [16, 16]
    assert ax.get_title(loc="right") == "each line: mean of up to 16 cables" and not ax.texts
    assert ax.get_legend_handles_labels()[1] == ["failed link"]


def test_heat_maps_of_large_networks_stand_side_by_side(traced: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    def columns() -> int:
        spec = plots.draw(traced, "heatmap").axes[0].get_subplotspec()
        assert spec is not None
        return spec.get_gridspec().ncols

    assert columns() == 1
    monkeypatch.setattr(network, "ROWS_WITH_NAMES", 1)
    assert columns() == 2
