"""Figures of what happens over time: who holds which link, how long queues are, how fast flows go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.compute as pc

from flowloom import style, words
from flowloom.drawing import Array, At, NoDataError, kind, named_ports, numbers, one_per_system, titled
from flowloom.results import Results, Run, column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Span = tuple[float, float]

LONG = 0.2
"""An idle stretch longer than this share of all the time drawn is cut short."""
SHORT = 0.08
"""How wide it is drawn, as a share of the time that is not idle."""


def idle(busy: Iterable[Span]) -> list[Span]:
    """The long stretches in which nothing happens."""
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
    """Draws the time from 0 to `end` with the gaps cut short, each with its length, so that a wait for a timer hides nothing."""
    ax.set_xlim(0, end)
    if not gaps:
        return
    from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

    width = SHORT * (end - sum(stop - start for start, stop in gaps))
    real, drawn = [0.0], [0.0]
    for start, stop in gaps:
        # Just inside the gap, so that real times stay strictly rising.
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
        look: dict[str, Any] = {"rotation": 90, "ha": "center", "va": "center", "fontsize": 7.5}
        ax.text(middle, 0.5, text, transform=ax.get_xaxis_transform(), **look)


@dataclass(frozen=True)
class Bar:
    """A stretch of time in which one flow held a link without a break."""

    port: int
    flow: int
    start: float
    end: float


def bars(packets: Mapping[str, Sequence[Any]], kinds: Sequence[str] = ("data",)) -> list[Bar]:
    """Merges transmissions into bars: packets of one flow that follow each other on a port, no other flow's data between them,
    and no gap longer than one packet."""
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
    """What to call a flow."""
    return (names or {}).get(flow, f"flow {flow}")


def gantt_panel(
    ax: Axes,
    rows: Sequence[tuple[str, Sequence[tuple[int, float, float]]]],
    names: Mapping[int, str] | None = None,
    unit: str = "ms",
) -> None:
    """One panel: per row (a link) the stretches (flow, start, end) in which flows hold it. Flows differ by colour and hatch."""
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
            label=flow_name(flow, names),
        )
        label = flow_name(flow, names).removeprefix("flow ")
        for y, start, end in held:
            if (end - start) > 0.02 * shown * (len(label) + 1):
                box = {"facecolor": color, "edgecolor": "none", "pad": 1.0}
                ax.text((start + end) / 2, y, label, ha="center", va="center", color="white", fontsize=8.5, bbox=box)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    cut_idle(ax, gaps, whole + 0.02 * shown, unit)
    ax.set_xlabel(words.axis("time", unit))
    ax.grid(axis="y", visible=False)


@kind("packets")
def gantt(
    results: Results,
    at: At = None,
    ports: Sequence[str] | None = None,
    names: Mapping[int, str] | None = None,
    most: int = 12,
) -> Figure:
    """Which flow holds which link when: data packets in sequence, those that follow each other merged into a bar."""
    drawn = []
    for _, run in one_per_system(results, at):
        trace = results.packets(None, {"point": run.point})
        if not trace.num_rows:
            continue
        spans: dict[int, list[tuple[int, float, float]]] = {}
        for bar in bars({name: column(trace, name) for name in trace.column_names}):
            spans.setdefault(bar.port, []).append((bar.flow, bar.start * 1e-9, bar.end * 1e-9))
        known = named_ports(results, run)
        rows = [(known.get(port, str(port)), spans[port]) for port in sorted(spans)]
        if ports is not None:
            rows = [row for row in rows if row[0] in ports]
        elif len(rows) > most:
            busy = sorted(rows, key=lambda row: -sum(end - start for _, start, end in row[1]))[:most]
            rows = [row for row in rows if row in busy]
        drawn.append((titled(results, run, at), rows))
    if not any(rows for _, rows in drawn):
        raise NoDataError("the results hold no packet trace\nhint: set `packets = true` in the scenario's `[sample]` table")
    height = max(len(rows) for _, rows in drawn) * 0.32 + 1.0
    fig = style.figure(1, len(drawn), width=7.5, height=height)
    axes = style.panels(fig, len(drawn), 1)
    for ax, (system, rows) in zip(axes, drawn, strict=True):
        gantt_panel(ax, rows, names)
        ax.set_title(system)
    flows = {flow for _, rows in drawn for _, spans_ in rows for flow, _, _ in spans_}
    if len(flows) <= 10:
        style.legend(fig, axes)
    return fig


@dataclass(frozen=True)
class Series:
    """A sampled quantity of a point: times in ms, and values by entity (a port or a flow)."""

    times: Array
    values: Mapping[int, Array]


def sampled(results: Results, run: Run, metric: str) -> Series | None:
    """What was sampled of a metric at a point; NaN where an entity was not there. `None`: nothing was."""
    table = results.samples(None, {"point": run.point})
    if table.num_rows:
        table = table.filter(pc.field("metric") == metric)
    if not table.num_rows:
        return None
    times, column_ = np.unique(numbers(table, "time_ps") * 1e-9, return_inverse=True)
    entities, row = np.unique(numbers(table, "entity"), return_inverse=True)
    grid = np.full((len(entities), len(times)), np.nan)
    grid[row, column_] = numbers(table, "value")
    return Series(times, {int(entity): grid[i] for i, entity in enumerate(entities)})


def missing(metric: str) -> NoDataError:
    """Nothing was sampled of a metric."""
    key = "ports" if metric.startswith("port") else "flows"
    return NoDataError(f"the results hold no samples of `{metric}`\nhint: set `{key} = true` in the scenario's `[sample]` table")


def series(
    results: Results, metric: str, quantity: str, unit: str, at: At, most: int, name_of: Callable[[Run], Mapping[int, str]]
) -> Figure:
    """One panel per system: a sampled quantity over time, of the entities in which it is largest on average over all systems."""
    chosen = [(run, sampled(results, run, metric)) for _, run in one_per_system(results, at)]
    drawn = [(run, found) for run, found in chosen if found is not None]
    if not drawn:
        raise missing(metric)
    total: dict[int, float] = {}
    for _, found in drawn:
        for entity, values in found.values.items():
            total[entity] = total.get(entity, 0.0) + float(np.nanmean(values))
    # Largest first: in every panel the same entity has the same look, and the one that matters most the plainest.
    largest = sorted(total, key=lambda entity: (-total[entity], entity))[:most]
    top = max(float(np.nanmax(found.values[e])) for _, found in drawn for e in largest if e in found.values)
    factor, scaled = words.scale(unit, [top])
    fig = style.figure(1, len(drawn), width=7.5, height=2.5)
    axes = style.panels(fig, len(drawn), 1)
    for ax, (run, found) in zip(axes, drawn, strict=True):
        names = name_of(run)
        step = float(found.times[0] if len(found.times) == 1 else np.diff(found.times).min())
        busy = [(t - step, t) for t, *values in zip(found.times, *found.values.values(), strict=True) if np.nanmax(values) > 0]
        for i, entity in enumerate(largest):
            if entity in found.values:
                label = names.get(entity, flow_name(entity, None))
                # A rate is the mean of the interval that ends at its sample.
                drawstyle = "steps-pre" if unit == "bps" else "default"
                look = style.dashes(i) | {"linewidth": 1.2, "drawstyle": drawstyle}
                ax.plot(found.times, found.values[entity] / factor, **look, label=label)
        ax.set(xlabel="time (ms)", ylabel=words.axis(quantity, scaled), title=titled(results, run, at))
        cut_idle(ax, idle([(0.0, 0.0), *busy]), float(found.times[-1]))
        ax.set_ylim(bottom=0)
    style.legend(fig, axes)
    return fig


@kind("samples")
def queue(results: Results, at: At = None, most: int = 4) -> Figure:
    """Queue length over time, of the ports whose queues are longest."""
    return series(results, "port.queue_bytes", "queue", "bytes", at, most, lambda run: named_ports(results, run))


@kind("samples")
def rate(results: Results, at: At = None, most: int = 6) -> Figure:
    """Rate over time, of the flows that send most."""
    return series(results, "flow.rate_bps", "rate", "bps", at, most, lambda run: {})
