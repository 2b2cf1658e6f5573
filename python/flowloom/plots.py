"""Figures of results. Each kind is a small function with a line in `KINDS`; metrics come from the results, never from here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowloom import style, tables, words
from flowloom.results import Results, Run, Value, column

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
At = Mapping[str, object] | None

METRICS = ("deadline_miss_rate", "mean_fct_s", "p99_fct_s", "p999_fct_s", "p99_er", "max_er", "drops")
MOST_PANELS = 4


class NoDataError(ValueError):
    """The results do not hold what a figure needs."""


@dataclass(frozen=True)
class Kind:
    """A kind of figure."""

    name: str
    about: str
    needs: str
    """What it is drawn from: `summary`, `flows`, `ports`, `samples` or `packets`."""
    draw: Callable[..., Figure]


KINDS: dict[str, Kind] = {}
"""All kinds of figures by name."""


def kind(needs: str) -> Callable[[Callable[..., Figure]], Callable[..., Figure]]:
    """Registers a figure under its function's name, described by its first line."""

    def register(draw: Callable[..., Figure]) -> Callable[..., Figure]:
        about = (draw.__doc__ or "").strip().splitlines()[0].rstrip(".")
        KINDS[draw.__name__] = Kind(draw.__name__, about, needs, draw)
        return draw

    return register


def draw(results: Results, name: str = "metrics", **options: Any) -> Figure:
    """Draws one kind of figure. Raises `NoDataError` when the results do not hold what it needs."""
    if name not in KINDS:
        raise ValueError(f"`{name}` is not a kind of figure\nhint: one of {', '.join(KINDS)}")
    with style.look():
        return KINDS[name].draw(results, **options)


# Curves of metrics


@dataclass(frozen=True)
class Curve:
    """A metric of one system along the swept key, with its 95 % interval."""

    label: str
    x: list[Value]
    mean: Array
    low: Array
    high: Array


def curves(results: Results, metric: str, x: str | None, at: At = None) -> tuple[str, list[Curve]]:
    """The metric's unit, and one curve per system and per value of the swept keys other than `x`."""
    chosen = {(run.system, tuple(run.keys.values())) for run in results.select(at)}
    unit, found = "", dict[tuple[int, str], dict[Value, tables.Row]]()
    for place, row in tables.places(results).items():
        if place not in chosen or metric not in row:
            continue
        rest = [
            f"{words.key(key, results.keys)} {words.number(value)}"
            for key, value in zip(results.keys, place[1], strict=True)
            if key != x and value is not None and varies(results, key, at)
        ]
        here = place[1][results.keys.index(x)] if x else None
        unit = row[metric].unit
        found.setdefault((results.systems.index(place[0]), ", ".join([place[0], *rest])), {})[here] = row[metric]
    drawn = []
    for (_, label), points in sorted(found.items(), key=lambda item: item[0][0]):
        order = sorted(points, key=lambda v: (words.literals([v])[0] or [0.0], str(v)))
        rows = [points[value] for value in order]
        drawn.append(
            Curve(
                label,
                order,
                array(row.mean for row in rows),
                array(row.mean if row.low is None else row.low for row in rows),
                array(row.mean if row.high is None else row.high for row in rows),
            )
        )
    return unit, drawn


def array(values: Iterable[float | None]) -> Array:
    """Numbers, with NaN for what is missing."""
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def varies(results: Results, key: str, at: At) -> bool:
    """Whether a swept key has more than one value among the points chosen."""
    return len({run.keys[key] for run in results.select(at) if run.keys[key] is not None}) > 1


def swept_axis(results: Results, at: At = None) -> str | None:
    """The swept key to put on the x axis: the one with the most values, numbers before names."""

    def weight(key: str) -> tuple[bool, int]:
        values = {run.keys[key] for run in results.select(at)} - {None}
        return words.literals(sorted(values, key=str))[0] is not None, len(values)

    keys = [key for key in results.keys if varies(results, key, at)]
    return max(keys, key=weight, default=None)


def metric_panel(ax: Axes, results: Results, metric: str, x: str | None = None, at: At = None) -> float:
    """One panel: a metric against the swept key `x` with 95 % bands, or, without a key, the systems one below the other.

    Returns how many of the metric's base unit the axis counts in.
    """
    unit, drawn = curves(results, metric, x, at)
    if not drawn:
        raise NoDataError(f"the results hold no metric `{metric}`")
    factor, name = words.scale(unit, np.concatenate([curve.mean for curve in drawn]))
    quantity = words.axis(words.title(metric), name)
    top = float(np.nanmax(np.concatenate([curve.high for curve in drawn]))) / factor
    limits = (0.0, 1.06 * top if top > 0 else 1.0)
    if x is None:
        for i, curve in enumerate(drawn):
            mean, low, high = (float(v[0]) / factor for v in (curve.mean, curve.low, curve.high))
            look = style.line(i) | {"linestyle": "none"}
            ax.errorbar(mean, i, xerr=[[mean - low], [high - mean]], **look, capsize=3, label=curve.label)
        ax.set_yticks(range(len(drawn)), [curve.label for curve in drawn])
        ax.set(xlabel=quantity, xlim=limits, ylim=(len(drawn) - 0.5, -0.5))
        return factor
    names = sorted({v for c in drawn for v in c.x if v is not None}, key=str)
    numeric, x_unit = words.literals(names)
    for i, curve in enumerate(drawn):
        look = style.line(i)
        if curve.x == [None]:  # a system that does not have the key
            ax.axhline(curve.mean[0] / factor, color=look["color"], linestyle=look["linestyle"], label=curve.label)
            continue
        if numeric is None:
            place = array(names.index(v) if v is not None else None for v in curve.x)
        else:
            place = array((words.literals([v])[0] or [np.nan])[0] for v in curve.x)
        means, lows, highs = curve.mean / factor, curve.low / factor, curve.high / factor
        if len(place) > 1 and numeric is not None:
            ax.plot(place, means, **look, label=curve.label)
            ax.fill_between(place, lows, highs, color=look["color"], alpha=0.18, linewidth=0)
        else:
            error = np.array([means - lows, highs - means])
            ax.errorbar(place, means, error, **(look | {"linestyle": "none"}), capsize=3, label=curve.label)
    if numeric is None:
        ax.set_xticks(range(len(names)), [words.number(v) for v in names])
    ax.set(xlabel=words.axis(words.key(x, results.keys), x_unit), ylabel=quantity, ylim=limits)
    return factor


@kind("summary")
def metrics(results: Results, metrics: Sequence[str] | None = None, x: str | None = None, at: At = None) -> Figure:
    """Metrics against the swept key, one panel each, with 95 % confidence bands over seeds."""
    have = set(column(results.summary(), "metric"))
    chosen = [m for m in (metrics or METRICS) if m in have]
    if metrics is None:
        values = tables.places(results).values()
        chosen = [m for m in chosen if tables.speaks(m, values)]
    if not chosen:
        raise NoDataError(f"none of the metrics asked for is in the results: they hold {', '.join(sorted(have))}")
    if x is None:
        x = swept_axis(results, at)
    elif x not in results.keys:
        x = next((key for key in results.keys if key.endswith("." + x)), x)
    columns = min(len(chosen), 3)
    rows = -(-len(chosen) // columns)
    height = 3.1 if x is not None else 1.1 + 0.26 * len(curves(results, chosen[0], None, at)[1])
    fig = style.figure(columns, rows, height=height)
    axes = style.panels(fig, rows, columns)
    for ax, metric in zip(axes, chosen, strict=False):
        metric_panel(ax, results, metric, x, at)
    for ax in axes[len(chosen) :]:
        ax.remove()
    if x is not None:
        style.legend(fig, axes[: len(chosen)])
    return fig


# Distributions over flows


def groups(results: Results, at: At, most: int = MOST_PANELS) -> list[tuple[str, dict[str, list[Run]]]]:
    """The points by swept values, then by system: at most `most` groups, spread over the sweep.

    Systems that do not have a swept key join every group.
    """
    chosen = results.select(at)
    keys = [key for key in results.keys if varies(results, key, at)]
    shared = [key for key in keys if not key.startswith("system.")]
    found: dict[str, dict[str, list[Run]]] = {}
    for run in chosen:
        name = ", ".join(f"{words.key(key, results.keys)} {words.number(run.keys[key])}" for key in shared)
        own = [key for key in keys if key not in shared and run.keys[key] is not None]
        label = ", ".join([run.system, *(f"{words.key(k, results.keys)} {words.number(run.keys[k])}" for k in own)])
        found.setdefault(name, {}).setdefault(label, []).append(run)
    names = list(found)
    if len(names) > most:
        names = [names[round(i * (len(names) - 1) / (most - 1))] for i in range(most)] if most > 1 else names[-1:]
    return [(name, found[name]) for name in names]


def numbers(table: pa.Table, name: str) -> Array:
    """A column of numbers, with NaN for what is missing."""
    return np.asarray(table[name].to_numpy(), dtype=np.float64)


def values(results: Results, runs: Sequence[Run], name: str) -> Array:
    """A column of the flows of some points, all seeds together, without what is missing."""
    parts = [numbers(results.flows([name], {"point": run.point}), name) for run in runs]
    joined = np.concatenate(parts) if parts else np.empty(0)
    return joined[~np.isnan(joined)]


def staircase(sample: Array, most: int = 400) -> tuple[Array, Array]:
    """A sample, sorted, and the share of it that is above each value: a subset of the points, dense towards the tail."""
    x = np.sort(sample)
    n = len(x)
    if n > most:
        body = np.linspace(0, n - 1, most // 2)
        tail = n - np.geomspace(1, n, most // 2)
        keep = np.unique(np.concatenate([body, tail]).astype(np.int64))
    else:
        keep = np.arange(n)
    return x[keep], (n - 1 - keep) / n


def distribution(results: Results, name: str, factor: float, quantity: str, unit: str, at: At) -> Figure:
    """One row per swept value: the distribution on the left, its tail on logarithmic axes on the right."""
    rows = groups(results, at, 3)
    fig = style.figure(2, len(rows))
    axes = style.panels(fig, len(rows), 2)
    for row, (title, systems) in enumerate(rows):
        body, tail = axes[2 * row], axes[2 * row + 1]
        for i, (label, runs) in enumerate(systems.items()):
            x, above = staircase(values(results, runs, name) * factor)
            if not len(x):
                continue
            body.plot(x, 1 - above, drawstyle="steps-post", **style.dashes(i), label=label)
            tail.plot(x[above > 0], above[above > 0], drawstyle="steps-post", **style.dashes(i), label=label)
        body.set(xscale="log", xlabel=words.axis(quantity, unit), ylabel="share of flows at or below", ylim=(0, 1))
        tail.set(xscale="log", yscale="log", xlabel=words.axis(quantity, unit), ylabel="share of flows above")
        for ax in (body, tail):
            ax.set_title(title)
    style.legend(fig, axes)
    return fig


@kind("flows")
def fct_cdf(results: Results, at: At = None) -> Figure:
    """Distribution of flow completion times, with the tail on logarithmic axes; all seeds together."""
    first = results.select(at)[:1]
    sample = values(results, first, "fct_ps")
    factor, unit = words.scale("s", [float(np.median(sample)) * 1e-12] if len(sample) else [])
    return distribution(results, "fct_ps", 1e-12 / factor, "FCT", unit, at)


@kind("flows")
def er_cdf(results: Results, at: At = None) -> Figure:
    """Distribution of expansion ratios, with the tail on logarithmic axes; all seeds together."""
    return distribution(results, "expansion_ratio", 1.0, "expansion ratio", "", at)


@kind("flows")
def fct_size(results: Results, at: At = None, bins: int = 12) -> Figure:
    """Flow completion time against flow size: median and 99th percentile in bins of equal width on a log axis."""
    rows = groups(results, at, 3)
    fig = style.figure(len(rows), 1, width=4.6, height=3.4)
    axes = style.panels(fig, 1, len(rows))
    for ax, (name, systems) in zip(axes, rows, strict=True):
        for i, (label, runs) in enumerate(systems.items()):
            parts = [results.flows(["size_bytes", "fct_ps"], {"point": run.point}) for run in runs]
            size = np.concatenate([numbers(part, "size_bytes") for part in parts])
            fct = np.concatenate([numbers(part, "fct_ps") for part in parts]) * 1e-9
            done = ~np.isnan(fct)
            size, fct = size[done], fct[done]
            if not len(size):
                continue
            edges = np.geomspace(size.min(), size.max() * 1.0001, bins + 1) if size.max() > size.min() else size[:1]
            which = np.digitize(size, edges) - 1
            here = [b for b in range(max(len(edges) - 1, 1)) if (which == b).any()]
            middle = array(np.exp(np.log(size[which == b]).mean()) / 1e3 for b in here)
            for share, fill, suffix in ((0.5, None, "median"), (0.99, "none", "p99")):
                y = array(np.quantile(fct[which == b], share, method="inverted_cdf") for b in here)
                look = style.line(i) | {"markerfacecolor": fill or style.line(i)["color"], "linewidth": 0.9 if fill else 1.6}
                ax.plot(middle, y, **look, label=f"{label}, {suffix}")
        ax.set(xscale="log", yscale="log", xlabel="flow size (kB)", ylabel="FCT (ms)", title=name)
    style.legend(fig, axes)
    return fig


# What happens on links over time


def named_ports(results: Results, run: Run) -> dict[int, str]:
    """Names of the ports of a point: `tor0->root`."""
    table = results.ports(["port_id", "name"], {"point": run.point})
    return dict(zip(column(table, "port_id"), column(table, "name"), strict=True))


def one_per_system(results: Results, at: At, most: int = MOST_PANELS) -> list[tuple[str, Run]]:
    """The first point of each system among those chosen, first seed and first swept values."""
    found: dict[str, Run] = {}
    for run in results.select(at):
        found.setdefault(run.system, run)
    return list(found.items())[:most]


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
    flows = sorted({flow for _, spans in rows for flow, _, _ in spans})
    whole = max((end for _, spans in rows for _, _, end in spans), default=1.0)
    for i, flow in enumerate(flows):
        held = [(y, start, end) for y, (_, spans) in enumerate(rows) for f, start, end in spans if f == flow]
        ax.barh(
            [y for y, _, _ in held],
            [end - start for _, start, end in held],
            left=[start for _, start, _ in held],
            height=0.66,
            color=style.COLORS[i % len(style.COLORS)],
            hatch=style.HATCHES[(i // len(style.COLORS)) % len(style.HATCHES)],
            edgecolor="white",
            linewidth=0,
            label=flow_name(flow, names),
        )
        label = flow_name(flow, names).removeprefix("flow ")
        for y, start, end in held:
            if (end - start) > 0.035 * whole * max(len(label), 1):
                ax.text((start + end) / 2, y, label, ha="center", va="center", color="white", fontsize=8.5)
    ax.set_yticks(range(len(rows)), [name for name, _ in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, whole * 1.02)
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
    for system, run in one_per_system(results, at):
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
        drawn.append((system, rows))
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
    end = max(ax.get_xlim()[1] for ax in axes)
    for ax in axes:
        ax.set_xlim(0, end)
    return fig


def series(
    results: Results, metric: str, quantity: str, unit: str, at: At, most: int, name_of: Callable[[Run], Mapping[int, str]]
) -> Figure:
    """One panel per system: a sampled quantity over time, of the entities in which it is largest on average."""
    drawn = []
    for system, run in one_per_system(results, at):
        table = results.samples(None, {"point": run.point})
        found: dict[int, list[tuple[float, float]]] = {}
        if table.num_rows:
            for time, entity, name, value in zip(
                *(column(table, c) for c in ("time_ps", "entity", "metric", "value")), strict=True
            ):
                if name == metric:
                    found.setdefault(entity, []).append((time * 1e-9, value))
        if found:
            drawn.append((system, run, found))
    if not drawn:
        key = "ports" if metric.startswith("port") else "flows"
        raise NoDataError(f"the results hold no samples of `{metric}`\nhint: set `{key} = true` in the scenario's `[sample]` table")
    everything = [value for _, _, found in drawn for points in found.values() for _, value in points]
    factor, scaled = words.scale(unit, everything)
    fig = style.figure(1, len(drawn), width=7.5, height=2.6)
    axes = style.panels(fig, len(drawn), 1)
    for ax, (system, run, found) in zip(axes, drawn, strict=True):
        names = name_of(run)
        largest = sorted(found, key=lambda e: -sum(value for _, value in found[e]) / len(found[e]))[:most]
        for i, entity in enumerate(sorted(largest)):
            points = np.array(sorted(found[entity]))
            step = "steps-post" if unit == "bps" else "default"
            label = names.get(entity, flow_name(entity, None))
            ax.plot(points[:, 0], points[:, 1] / factor, drawstyle=step, **style.dashes(i), linewidth=1.1, label=label)
        ax.set(xlabel="time (ms)", ylabel=words.axis(quantity, scaled), title=system)
        ax.set_ylim(bottom=0)
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return fig


@kind("samples")
def queue(results: Results, at: At = None, most: int = 4) -> Figure:
    """Queue length over time, of the ports whose queues are longest."""
    return series(results, "port.queue_bytes", "queue", "bytes", at, most, lambda run: named_ports(results, run))


@kind("samples")
def rate(results: Results, at: At = None, most: int = 6) -> Figure:
    """Rate over time, of the flows that send most."""
    return series(results, "flow.rate_bps", "rate", "bps", at, most, lambda run: {})


@kind("ports")
def utilisation(results: Results, at: At = None, most: int = 20) -> Figure:
    """Share of time in which links are busy, of the busiest links, averaged over seeds; at the highest swept value."""
    shown = groups(results, at, 1)
    if not shown:
        raise NoDataError("no point is left to draw")
    name, systems = shown[-1]
    load: dict[str, dict[str, list[float]]] = {}
    for label, runs in systems.items():
        for run in runs:
            table = results.ports(["name", "busy_ps"], {"point": run.point})
            for port, busy in zip(column(table, "name"), column(table, "busy_ps"), strict=True):
                load.setdefault(port, {}).setdefault(label, []).append(100 * busy / run.end_ps if run.end_ps else 0.0)
    mean = {port: {label: float(np.mean(v)) for label, v in by.items()} for port, by in load.items()}
    busiest = sorted(mean, key=lambda port: -max(mean[port].values()))[:most]
    fig = style.figure(1, 1, width=max(5.0, 0.3 * len(busiest) * max(len(systems), 2)), height=3.4)
    (ax,) = style.panels(fig, 1, 1)
    width = 0.8 / len(systems)
    for i, label in enumerate(systems):
        place = np.arange(len(busiest)) + (i - (len(systems) - 1) / 2) * width
        heights = [mean[port].get(label, 0.0) for port in busiest]
        ax.bar(
            place,
            heights,
            width * 0.92,
            color=style.COLORS[i % len(style.COLORS)],
            hatch=style.HATCHES[i % len(style.HATCHES)],
            edgecolor="white",
            linewidth=0,
            label=label,
        )
    ax.set_xticks(range(len(busiest)), busiest, rotation=55, ha="right")
    ax.set(ylabel="busy (% of the time)", title=name, ylim=(0, 100), xlabel="link")
    ax.grid(axis="x", visible=False)
    style.legend(fig, [ax])
    return fig
