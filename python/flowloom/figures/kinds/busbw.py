"""The figure `busbw`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.ticker import NullLocator

from flowloom import _core
from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, NoDataError, array, drawn_of, groups, interval_note, record, swept, varies, whiskers
from flowloom.runs.data import Data, Run, mean
from flowloom.runs.programs import ProgramTask, tasks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

META = Meta(
    "Bus bandwidth of collectives against their size, by system, with the rate of a host's links",
    needs="tasks",
)

MOST_LABELS = 9
"""The maximum number of sizes that are labelled each; with more, the axis has powers of ten."""

Measured = dict[tuple[str, int], float]
"""The mean bus bandwidth in bit/s of the collectives of a point, by operation and size."""


def measured(tasks: Iterable[ProgramTask]) -> Measured:
    """Returns the bus bandwidths of a point."""
    found: dict[tuple[str, int], list[float]] = {}
    for task in tasks:
        if task.size_bytes is not None and task.bus_bandwidth_bps is not None:
            found.setdefault((task.operation, task.size_bytes), []).append(task.bus_bandwidth_bps)
    return {place: mean(values) for place, values in found.items()}


def size_keys(results: Data, at: At, known: Mapping[str, Measured]) -> list[str]:
    """Returns the swept keys that set the size of collectives: no two of their values have a size in common."""
    found = []
    for key in (key for key in results.keys if varies(results, key, at)):
        sizes: dict[object, set[tuple[str, int]]] = {}
        for run in results.select(at):
            sizes.setdefault(run.keys[key], set()).update(known.get(run.point, {}))
        if sum(map(len, sizes.values())) == len(set().union(*sizes.values())) > 0:
            found.append(key)
    return found


def host_rate(results: Data, runs: Sequence[Run]) -> tuple[float, int] | None:
    """Returns the rate of the links of a host in bit/s and their number, if both are the same for all hosts."""
    found: set[tuple[float, int]] = set()
    for run in runs:
        rates: dict[str, list[int]] = {}
        for row in results.ports(["node", "tier", "rate_bps"], {"point": run.point}).to_pylist():
            if row["tier"] == 0:
                rates.setdefault(row["node"], []).append(row["rate_bps"])
        found |= {(float(sum(own)), len(own)) for own in rates.values()}
    return found.pop() if len(found) == 1 else None


def hosts_of_server(results: Data, workloads: Iterable[str]) -> int:
    """Returns the number of hosts of a server; 1 if it differs between workloads or points."""
    settings = results.config.get("workload", {})
    found = {str(settings.get(name, {}).get("per_server", 1)) for name in workloads}
    one = found.pop() if len(found) == 1 else "1"
    return int(one) if one.isdecimal() else 1


def size_text(size: int) -> str:
    """Returns a size as text, in binary units if it is a multiple of 1024 bytes.

    >>> size_text(8 << 20), size_text(1_500_000)
    ('8 MiB', '1.5 MB')
    """
    if size % 1024 == 0:
        power = min((size.bit_length() - 1) // 10, 3)
        return f"{size / 1024**power:.4g} {('B', 'KiB', 'MiB', 'GiB')[power]}"
    factor, unit = words.scale("bytes", [size])
    return f"{size / factor:.4g} {unit}"


def panel(
    ax: Axes, results: Data, operation: str, systems: Mapping[str, Sequence[Run]], known: Mapping[str, Measured], factor: float
) -> set[int]:
    """Draws the curves of one operation, with sizes in units of `factor` bytes. Returns the sizes."""
    unit, sizes = words.scale("bytes", [factor])[1], set[int]()
    for i, (label, runs) in enumerate(systems.items()):
        values: dict[int, list[float]] = {}
        for run in runs:
            for (op, size), bandwidth in known.get(run.point, {}).items():
                if op == operation:
                    values.setdefault(size, []).append(bandwidth / 1e9)
        if not values:
            continue
        here = sorted(values)
        sizes |= set(here)
        estimates = [_core.estimate(values[size]) for size in here]
        middle = array(found for found, _ in estimates)
        low, high = (array(m if ends is None else ends[end] for m, ends in estimates) for end in (0, 1))
        look, x = style.line(i), np.array(here) / factor
        ax.errorbar(x, middle, whiskers(middle, np.maximum(low, 0.0), high), **look, capsize=3, label=style.label(label))
        columns = {words.axis("size", unit): x, "bus bandwidth (Gbit/s)": middle, "ci95 low": low, "ci95 high": high}
        record(ax, {"system": runs[0].system, **swept(results, runs[0]), "operation": operation}, columns)
    return sizes


def draw(results: Data, at: At = None, workload: str | None = None) -> Figure:
    """Draws the figure: a panel for each operation, and for each value of the swept keys that do not set the size."""
    tasks = {run.point: tasks_of(results, run, workload) for run in results.select(at) if not run.ideal}
    known = {point: measured(own) for point, own in tasks.items()}
    every = list(dict.fromkeys(place for found in known.values() for place in found))
    if not every:
        raise NoDataError("no collective of a program has ended\nhint: only workloads that are programs of ranks have collectives")
    hosts = hosts_of_server(results, {task.workload for own in tasks.values() for task in own})
    apart = size_keys(results, at, known)
    rows = groups(results, at, ideals=False, together=apart)
    operations = list(dict.fromkeys(operation for operation, _ in every))
    panels = [
        (operation, name, systems)
        for name, systems in rows
        for operation in operations
        if any(op == operation for runs in systems.values() for run in runs for op, _ in known.get(run.point, ()))
    ]
    factor, unit = words.scale("bytes", [float(np.median([size for _, size in every]))])
    fig, axes = style.grid(len(panels), len(operations) if len(operations) > 1 else min(len(panels), 2), width=4.6)
    for ax, (operation, name, systems) in zip(axes, panels, strict=True):
        sizes = sorted(panel(ax, results, operation, systems, known, factor))
        runs = [run for some in systems.values() for run in some]
        links = host_rate(results, runs)
        if links is not None:
            rate, count = links
            limits = {"rate of a host's link" if count == 1 else f"rate of a host's {count} links": rate / 1e9}
            if hosts > 1:
                limits[f"rate of the links of a server's {hosts} hosts"] = hosts * rate / 1e9
            for i, (label, limit) in enumerate(limits.items()):
                ax.axhline(limit, **style.reference(i), label=label)
                place = {"system": label, **swept(results, runs[0]), "operation": operation}
                record(ax, place, {"bus bandwidth (Gbit/s)": [limit]})
        style.log_axis(ax, "x")
        few = len(sizes) <= MOST_LABELS
        if few:
            ax.set_xticks([size / factor for size in sizes], [size_text(size) for size in sizes])
            ax.xaxis.set_minor_locator(NullLocator())
        if len(sizes) == 1:
            ax.set_xlim(sizes[0] / factor / 4, sizes[0] / factor * 4)
        ax.set(xlabel="size of the collective" if few else words.axis("size of the collective", unit))
        ax.set(ylabel="bus bandwidth (Gbit/s)", ylim=(0, None), title=", ".join(filter(None, [operation, name])))
    style.legend(fig, axes)
    style.align(fig)
    style.note(fig, drawn_of(results, at, [name for name, _ in rows], apart))
    interval_note(fig, results, at)
    return fig
