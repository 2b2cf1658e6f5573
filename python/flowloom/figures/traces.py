"""Panels over time: transmissions on links, queue lengths, sending rates and throughput."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from flowloom import _core
from flowloom.base import words
from flowloom.figures import style
from flowloom.figures.drawing import Array, At, NoDataError, mark_changes, numbers, one_per_system, record, swept, titled
from flowloom.runs.data import Data, Run, column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Span = tuple[float, float]

LONG = 0.2
"""The share of the whole time axis above which an idle period is shortened."""
SHORT = 0.08
"""The width of a shortened idle period, as a share of the time that is not idle."""


def idle(busy: Iterable[Span]) -> list[Span]:
    """Returns the long idle periods: those longer than the share `LONG` of all the time."""
    spans = sorted(busy)
    found: list[Span] = []
    until = spans[0][0] if spans else 0.0
    for start, end in spans:
        if start > until:
            found.append((until, start))
        until = max(until, end)
    whole = until - (spans[0][0] if spans else 0.0)
    return [(start, end) for start, end in found if end - start > LONG * whole]


def cut_idle(ax: Axes, gaps: Sequence[Span], end: float, unit: str = "ms") -> None:
    """Sets the time axis from 0 to `end` and shortens idle periods on it, each labelled with its length."""
    ax.set_xlim(0, end)
    if not gaps:
        return
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

    width = SHORT * (end - sum(stop - start for start, stop in gaps))
    real, drawn = [0.0], [0.0]
    for start, stop in gaps:
        # Ends just inside the gap, so that real times rise strictly.
        drawn += [drawn[-1] + start - real[-1], drawn[-1] + start - real[-1] + width]
        real += [start, stop]
    drawn.append(drawn[-1] + max(end - real[-1], 1e-9 * end))
    real.append(max(end, real[-1] * (1 + 1e-9)))
    ax.set_xscale("function", functions=(lambda x: np.interp(x, real, drawn), lambda x: np.interp(x, drawn, real)))
    ax.set_xlim(0, end)
    ticks: list[float] = []
    for left, right, from_, to in zip(real[::2], real[1::2], drawn[::2], drawn[1::2], strict=True):
        share = max(round(8 * (to - from_) / drawn[-1]), 1)
        ticks += [t for t in MaxNLocator(share).tick_values(left, right) if left <= t <= right]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    for start, stop in gaps:
        ax.axvspan(start, stop, facecolor=style.GREY, alpha=0.18, linewidth=0, zorder=0)
        middle = np.interp((np.interp(start, real, drawn) + np.interp(stop, real, drawn)) / 2, drawn, real)
        text = f"{words.number(float(f'{stop - start:.3g}'))} {unit} idle"
        look: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "center", "fontsize": style.points(7.5)}
        ax.text(middle, 0.5, text, transform=ax.get_xaxis_transform(), **look)


@dataclass(frozen=True)
class Bar:
    """A period in which one flow transmitted on a link without interruption."""

    port: int
    flow: int
    start: float
    end: float


def bars(packets: Mapping[str, Sequence[Any]], kinds: Sequence[str] = ("data",)) -> list[Bar]:
    """Merges transmissions into bars.

    A bar holds consecutive packets of one flow on a port, without data of another flow between them
    and without a gap longer than one packet.
    """
    rows = sorted(
        (port, start, end, flow)
        for port, start, end, flow, kind, dropped in zip(
            packets["port_id"],
            packets["time_ps"],
            packets["end_ps"],
            packets["flow_id"],
            packets["kind"],
            packets["dropped"],
            strict=True,
        )
        if kind in kinds and not dropped
    )
    longest: dict[int, float] = {}
    for port, start, end, _ in rows:
        longest[port] = max(longest.get(port, 0.0), end - start)
    merged: list[Bar] = []
    for port, start, end, flow in rows:
        last = merged[-1] if merged else None
        if last and (last.port, last.flow) == (port, flow) and start - last.end <= longest[port]:
            merged[-1] = Bar(port, flow, last.start, end)
        else:
            merged.append(Bar(port, flow, start, end))
    return merged


def flow_name(flow: int, names: Mapping[int, str] | None) -> str:
    """Returns the name of a flow as shown."""
    return words.escaped((names or {}).get(flow, f"flow {flow}"))


def gantt_panel(
    ax: Axes,
    rows: Sequence[tuple[str, Sequence[tuple[int, float, float]]]],
    names: Mapping[int, str] | None = None,
    unit: str = "ms",
) -> None:
    """Draws one panel: for each row (a link), the periods (flow, start, end) of transmission. Flows
    differ by colour and hatch.
    """
    flows = {flow for _, spans in rows for flow, _, _ in spans}
    busy = [(start, end) for _, spans in rows for _, start, end in spans]
    whole = max((end for _, end in busy), default=1.0)
    gaps = idle([(0.0, 0.0), *busy])
    shown = whole - sum(end - start for start, end in gaps)
    for i, flow in enumerate(sorted(flows, key=lambda flow: ((names or {}).get(flow, ""), flow))):
        color = style.COLORS[i % len(style.COLORS)]
        held = [(y, start, end) for y, (_, spans) in enumerate(rows) for f, start, end in spans if f == flow]
        ax.barh(
            [y for y, _, _ in held],
            [end - start for _, start, end in held],
            left=[start for _, start, _ in held],
            height=0.66,
            color=color,
            hatch=style.HATCHES[(i + i // len(style.COLORS)) % len(style.HATCHES)],
            edgecolor="white",
            linewidth=0,
            label=style.label(flow_name(flow, names)),
        )
        label = flow_name(flow, names).removeprefix("flow ")
        for y, start, end in held:
            if (end - start) > 0.02 * shown * (len(label) + 1):
                box = {"facecolor": color, "edgecolor": "none", "pad": 1.0}
                ax.text((start + end) / 2, y, label, ha="center", va="center", color="white", fontsize=style.points(8.5), bbox=box)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    cut_idle(ax, gaps, whole + 0.02 * shown, unit)
    ax.set_xlabel(words.axis("time", unit))
    ax.grid(axis="y", visible=False)


@dataclass(frozen=True)
class Series:
    """A sampled quantity of a point: times in ms, and values by entity (a port or a flow)."""

    times: Array
    values: Mapping[int, Array]


def sampled(results: Data, run: Run, metric: str) -> Series | None:
    """Returns the samples of a metric at a point, with NaN for missing values; `None` if the metric
    was not sampled.
    """
    table = results.sampled(run, metric)
    if not table.num_rows:
        return None
    times, column_ = ranked(table["time_ps"].to_numpy())
    entities, row = ranked(table["entity"].to_numpy())
    grid = np.full((len(entities), len(times)), np.nan)
    grid[row, column_] = numbers(table, "value")
    return Series(times * 1e-9, {int(entity): grid[i] for i, entity in enumerate(entities)})


def ranked(values: Any) -> tuple[Any, Any]:
    """Returns the distinct whole numbers in order, and for each of `values` its rank among them.

    There may be a hundred million values. To save time, values that are in order already (times)
    and small numbers (ports) are not sorted.
    """
    rises = values[1:] > values[:-1]
    if not (values[1:] < values[:-1]).any():
        return values[np.append(True, rises)], np.append(0, np.cumsum(rises, dtype=np.int32))
    if values.max() > len(values):
        return np.unique(values, return_inverse=True)
    seen = np.zeros(values.max() + 1, dtype=bool)
    seen[values] = True
    return np.flatnonzero(seen), (np.cumsum(seen, dtype=np.int32) - 1)[values]


def missing(metric: str) -> NoDataError:
    """Returns the error for a metric that was not sampled."""
    key = "ports" if metric.startswith("port") else "flows"
    return NoDataError(f"the results have no samples of `{metric}`\nhint: set `{key} = true` in the scenario's `[sample]` table")


def bounds(results: Data, run: Run) -> dict[str, float]:
    """Returns the limits and thresholds of a point's queues in bytes, by parameter.

    A length that differs between ports is left out.
    """
    config = results.config
    system: dict[str, Any] = next((s for s in config.get("system", []) if s["label"] == run.system), {})
    mtu = str(config.get("mtu", "1500B"))
    found: dict[str, float] = {}
    for room, part in system.items():
        # `nic.kind` names a kind of host, not an entry.
        if not isinstance(part, dict) or "kind" not in part or room == "nic":
            continue
        for name in queue_lengths(room, part["kind"]):
            written = part.get(name)
            if isinstance(written, list):  # swept: the value of this point
                written = next((v for key, v in run.keys.items() if key.endswith(f"{room}.{name}") and v is not None), None)
            value = None if written is None else _core.queue_length(words.number(written), mtu)
            if written == "auto":
                value = common_length(results, run, "limit_bytes" if name == "limit" else "mark_bytes")
            if value is not None:
                found[name] = value
    return found


def common_length(results: Data, run: Run, column: str) -> int | None:
    """Returns a length that a rule has set for each port, if it is the same at all ports of switches."""
    ports = results.ports(at={"point": run.point}).to_pylist()
    found = {port[column] for port in ports if port["tier"] > 0}
    return found.pop() if len(found) == 1 else None


def queue_lengths(room: str, kind: str) -> Sequence[str]:
    """Returns the parameters of an entry that are lengths of a switch's queue."""
    names: Sequence[str] = next((entry["queue_lengths"] for entry in _core.entries(room) if entry["name"] == kind), ())
    return names


def draw_bounds(ax: Axes, found: Mapping[str, float], factor: float, top: float) -> None:
    """Draws `bounds` as labelled lines; bounds far above `top`, the highest value drawn, are left out."""
    at: dict[float, list[str]] = {}
    for name, value in found.items():
        if value <= 1.3 * top:
            at.setdefault(value, []).append(name)
    for value, names in at.items():
        ax.axhline(value / factor, color=style.INK, linewidth=style.thick(0.8), linestyle=(0, (1, 2)), alpha=0.7)
        ax.annotate(
            ", ".join(names), (1, value / factor), (-2, 1.5), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", va="bottom", fontsize=style.points(7.5), bbox=style.HALO,
        )  # fmt: skip


def series(
    results: Data,
    metric: str,
    quantity: str,
    unit: str,
    at: At,
    most: int,
    name_of: Callable[[Run], Mapping[int, str]],
    bounds_of: Callable[[Run], Mapping[str, float]] = lambda run: {},
) -> Figure:
    """Draws one panel per system: a sampled quantity over time, of the entities with the largest
    averages over all systems.
    """
    chosen = [(run, sampled(results, run, metric)) for _, run in one_per_system(results, at)]
    drawn = [(run, found) for run, found in chosen if found is not None]
    if not drawn:
        raise missing(metric)
    total: dict[int, float] = {}
    for _, found in drawn:
        for entity, values in found.values.items():
            total[entity] = total.get(entity, 0.0) + float(np.nanmean(values))
    # An entity has the same look in every panel; the largest has the plainest look.
    largest = sorted(total, key=lambda entity: (-total[entity], entity))[:most]
    top = max(float(np.nanmax(found.values[e])) for _, found in drawn for e in largest if e in found.values)
    factor, scaled = words.scale(unit, [top])
    fig, axes = style.grid(len(drawn), 1, width=7.5, height=2.5)
    for ax, (run, found) in zip(axes, drawn, strict=True):
        names = name_of(run)
        step = float(found.times[0] if len(found.times) == 1 else np.diff(found.times).min())
        busy = [(t - step, t) for t, *values in zip(found.times, *found.values.values(), strict=True) if np.nanmax(values) > 0]
        for i, entity in enumerate(largest):
            if entity in found.values:
                label = names.get(entity, flow_name(entity, None))
                # A rate is the mean of the interval that ends at its sample.
                drawstyle = "steps-pre" if unit == "bps" else "default"
                look = style.dashes(i) | {"linewidth": style.thick(1.2), "drawstyle": drawstyle}
                ax.plot(found.times, found.values[entity] / factor, **look, label=style.label(label))
                of = "port" if metric.startswith("port") else "flow"
                points = {"time (ms)": found.times, words.axis(quantity, scaled): found.values[entity] / factor}
                record(ax, {"system": run.system, **swept(results, run), of: names.get(entity, entity)}, points)
        ax.set(xlabel="time (ms)", ylabel=words.axis(quantity, scaled), title=titled(results, run, at))
        cut_idle(ax, idle([(0.0, 0.0), *busy]), float(found.times[-1]))
        mark_changes(ax, results, run)
        draw_bounds(ax, bounds_of(run), factor, max(float(np.nanmax(found.values[e])) for e in largest if e in found.values))
        ax.set_ylim(bottom=0)
    style.legend(fig, axes)
    return fig


def classes(results: Data, run: Run, most: int = 6) -> dict[str, list[int]]:
    """Returns the flows of a point by size, the largest first: a class for each size, or for each
    power of ten if there are many sizes.
    """
    table = results.flows(["flow_id", "size_bytes"], {"point": run.point})
    sizes = dict(zip(column(table, "flow_id"), column(table, "size_bytes"), strict=True))

    def words_of(size: float) -> str:
        factor, unit = words.scale("bytes", [size])
        return f"{words.number(size / factor)} {unit}"

    found: dict[float, list[int]] = {}
    few = len(set(sizes.values())) <= most
    for flow, size in sizes.items():
        found.setdefault(size if few else 10.0 ** np.floor(np.log10(size)), []).append(flow)

    def named(size: float) -> str:
        return f"of {words_of(size)}" if few else f"from {words_of(size)} to {words_of(10 * size)}"

    return {
        f"{len(flows)} flow{'s' * (len(flows) > 1)} {named(size)}": flows for size, flows in sorted(found.items(), reverse=True)
    }


def binned(found: Series, flows: Sequence[int], edges: Array) -> Array:
    """Returns the sum of the samples of some flows, averaged over the samples in each bin."""
    total = np.zeros(len(found.times))
    for flow in flows:
        if flow in found.values:
            total += np.nan_to_num(found.values[flow])
    place = np.digitize(found.times, edges, right=True) - 1
    inside = (place >= 0) & (place < len(edges) - 1)
    counts = np.bincount(place[inside], minlength=len(edges) - 1)
    return np.asarray(np.bincount(place[inside], total[inside], len(edges) - 1) / np.maximum(counts, 1), dtype=np.float64)


def throughput_panel(ax: Axes, results: Data, run: Run, found: Series, span: Span | None = None, bins: int = 150) -> None:
    """Draws one panel: the throughput of the flows of each size, stacked, in Gbit/s."""
    start, end = span or (0.0, float(found.times[-1]))
    edges = np.linspace(start, end, min(bins, int(((found.times > start) & (found.times <= end)).sum())) + 1)
    below = np.zeros(len(edges) - 1)
    for i, (name, flows) in enumerate(classes(results, run).items()):
        top = below + binned(found, flows, edges) / 1e9
        look: dict[str, Any] = {"facecolor": style.COLORS[i % len(style.COLORS)], "hatch": style.HATCHES[i % len(style.HATCHES)]}
        ax.stairs(top, edges, baseline=below, fill=True, edgecolor="white", linewidth=0, label=name, **look)
        shown = {"from (ms)": edges[:-1], "until (ms)": edges[1:], "throughput (Gbit/s)": top - below}
        record(ax, {"system": run.system, **swept(results, run), "flows": name}, shown)
        below = top
    ax.set(xlim=(start, end), ylim=(0, None), xlabel=words.axis("time", "ms"), ylabel=words.axis("throughput", "Gbit/s"))
