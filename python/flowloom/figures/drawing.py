"""Helpers for all kinds of figures: the choice of points to draw, and texts on figures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flowloom.base import words
from flowloom.base.errors import InputError
from flowloom.figures import style
from flowloom.runs import tables
from flowloom.runs.choice import engine_note_of
from flowloom.runs.data import Data, Run, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = npt.NDArray[np.float64]
At = Mapping[str, object] | None

MOST_PANELS = 4
"""The maximum number of sets of swept values in a figure."""
MOST_SYSTEMS = 8
"""The maximum number of systems in a figure with a panel for each system."""


class NoDataError(InputError):
    """Raised if the results do not have the data that a figure needs."""


def signed(figure: Figure, results: Data, at: At = None) -> Figure:
    """Adds the note of the flow engine to a figure, if the flow engine made some of the numbers."""
    style.note(figure, engine_note_of(results, at))
    return figure


def record(ax: Axes, same: Mapping[str, object], columns: Mapping[str, Any]) -> None:
    """Keeps the data of a panel as rows of its figure. The columns are named by the labels of axes."""
    figure = ax.figure
    if isinstance(figure, style.Drawing):
        named = [{words.column(key): value for key, value in part.items()} for part in (same, columns)]
        figure.rows.add(*named)


COLUMNS = (
    "flow", "flows", "group", "link", "mean", "metric", "operation", "port", "rank", "statistic", "system", "task", "workload",
)  # fmt: skip
"""The names of columns that figures record next to those of swept keys."""


def column_of(results: Data, key: str) -> str:
    """Returns the name of the column of a swept key, which differs from those of all other columns."""
    return words.key(key, [*results.keys, *COLUMNS])


def swept(results: Data, run: Run) -> dict[str, Value]:
    """Returns the swept values of a point by the names of their columns, for `record`."""
    return {column_of(results, key): value for key, value in run.keys.items()}


def interval_note(figure: Figure, results: Data, at: At) -> None:
    """Adds a note to a figure that says what its intervals are."""
    seeds = tables.seeds_of(results.select(at))
    if seeds:
        style.note(figure, f"intervals: 95 % (Student's t) over {seeds}")


def array(values: Iterable[float | None]) -> Array:
    """Returns numbers as an array, with NaN for missing values."""
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def whiskers(mean: Array, low: Array, high: Array) -> Array:
    """Returns how far intervals reach below and above their means, for error bars. Where the axis cuts an interval above its
    mean, nothing is drawn below the mean: Matplotlib refuses negative lengths.
    """
    return np.maximum([mean - low, high - mean], 0.0)


def numbers(table: pa.Table, name: str) -> Array:
    """Returns a column of numbers as an array, with NaN for missing values."""
    return np.asarray(table[name].to_numpy(), dtype=np.float64)


def looks(ideal: Sequence[bool]) -> list[dict[str, Any]]:
    """Returns how to draw curves in this order: systems in colour, ideal schedules in grey."""
    return [style.reference(sum(ideal[:i])) if is_ideal else style.line(i - sum(ideal[:i])) for i, is_ideal in enumerate(ideal)]


def varies(results: Data, key: str, at: At) -> bool:
    """Whether a swept key has more than one value among the chosen points."""
    return len({run.keys[key] for run in results.select(at) if run.keys[key] is not None}) > 1


def groups(
    results: Data, at: At, most: int = MOST_PANELS, ideals: bool = True, together: Collection[str] = ()
) -> list[tuple[str, dict[str, list[Run]]]]:
    """Returns the points by swept values, then by system: at most `most` groups, spread over the
    sweep. Values of the keys `together` share a group.

    Systems that do not have a swept key are in every group.
    """
    chosen = [run for run in results.select(at) if ideals or not run.ideal]
    keys = [key for key in results.keys if key not in together and varies(results, key, at)]
    shared = [key for key in keys if not key.startswith("system.")]
    found: dict[tuple[Value, ...], tuple[str, dict[str, list[Run]]]] = {}
    labels: dict[tuple[str, tuple[Value, ...]], str] = {}
    for run in chosen:
        name = ", ".join(f"{words.key(key, results.keys)} {words.number(run.keys[key])}" for key in shared)
        own = [key for key in keys if key not in shared and run.keys[key] is not None]
        label = ", ".join([words.escaped(run.system), *(f"{words.key(k, results.keys)} {words.number(run.keys[k])}" for k in own)])
        # The label of a system may look like that of another system with its swept values.
        curve = run.system, tuple(run.keys[key] for key in own)
        while curve not in labels and label in labels.values():
            label += " *"
        labels.setdefault(curve, label)
        _, systems = found.setdefault(tuple(run.keys[key] for key in shared), (name, {}))
        systems.setdefault(labels[curve], []).append(run)
    rows = list(found.values())
    if len(rows) > most:
        rows = [rows[round(i * (len(rows) - 1) / (most - 1))] for i in range(most)] if most > 1 else rows[-1:]
    return rows


def drawn_of(results: Data, at: At, shown: Sequence[str], together: Collection[str] = ()) -> str:
    """Returns a note on the swept values that a figure shows; empty if it shows all of them."""
    everything = [name for name, _ in groups(results, at, most=10**9, together=together)]
    return "" if len(shown) == len(everything) else f"drawn: {'; '.join(shown)}, of {len(everything)} swept values"


def one_per_system(results: Data, at: At, most: int = MOST_SYSTEMS) -> list[tuple[str, Run]]:
    """Returns one point of each simulated system, by its name as shown: the last swept values and
    the first seed among those chosen.
    """
    found: dict[str, Run] = {}
    for run in results.select(at):
        known = found.get(run.system)
        if not run.ideal and (known is None or known.keys != run.keys):
            found[run.system] = run
    return [(words.escaped(system), run) for system, run in found.items()][:most]


def changes(results: Data, run: Run) -> list[tuple[float, bool]]:
    """Returns when links fail or recover in a point, from the events of its scenario: the time in
    ms, and whether the link recovers.
    """
    found: set[tuple[float, bool]] = set()
    for name, event in results.config.get("event", {}).items():
        for key, up in (("at", event.get("state") == "up"), ("until", True)):
            written = run.keys.get(f"event.{name}.{key}") if isinstance(event.get(key), list) else event.get(key)
            time = words.milliseconds(written)
            if time is not None:
                found.add((time, up))
    return sorted(found)


def mark_changes(ax: Axes, results: Data, run: Run, unit_ms: float = 1.0) -> None:
    """Marks on a time axis in units of `unit_ms` ms when links fail and recover."""
    limits = ax.get_xlim()
    named: set[str] = set()
    for time, up in ((ms / unit_ms, up) for ms, up in changes(results, run)):
        if limits[0] <= time <= limits[1]:
            look: dict[str, Any] = {"color": style.GREY if up else style.INK, "linestyle": (0, (6, 2)) if up else "-"}
            label = "repair" if up else "failure"
            ax.axvline(time, linewidth=style.thick(1.0), zorder=2.5, **look, label=None if label in named else label)
            named.add(label)
    ax.set_xlim(limits)


def titled(results: Data, run: Run, at: At) -> str:
    """Returns the title of a point: its system, and the values of the keys that vary among the
    chosen points.
    """
    swept = [key for key in results.keys if run.keys[key] is not None and varies(results, key, at)]
    return ", ".join(
        [words.escaped(run.system), *(f"{words.key(key, results.keys)} {words.number(run.keys[key])}" for key in swept)]
    )
