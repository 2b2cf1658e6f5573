"""The points of a run: systems, seeds and swept values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flowloom import _core

Value = float | str | None
"""A swept value: a number, a literal such as `10Gbps`, or `None` where the system does not have the key."""


@dataclass(frozen=True)
class Run:
    """One point of a run: a system, a seed and one value for each swept key."""

    point: str
    """The name of the point, which is that of its folder."""
    system: str
    """The label of the system."""
    seed: int
    """The seed of the random numbers."""
    keys: Mapping[str, Value]
    """The value of each swept key, by the dotted key; `None` where the system does not have the key."""
    state: str = "done"
    """`done`, or `interrupted` if the run was stopped."""
    end_ps: int | None = None
    """The simulated time at the end of the run, in ps."""
    ideal: bool = False
    """Whether the point is an ideal schedule of the same flows as a fluid instead of a simulated system."""
    engine: str = "packet"
    """The engine that ran the point: `packet`, `flow` (fluids with max-min fair rates) or `ideal`."""

    not_measured: int = 0
    """The number of flows that no metric counts: under way at the start, after the last counted
    flow, or outside the window.
    """

    window_ps: tuple[int, int] | None = None
    """The start and end of the measurement window, in ps.

    `None` for ideal schedules, and if the run ended before the window began.
    """

    def utilisation(self, busy_ps: int | None) -> float:
        """Returns the share of the measurement window in which a port was busy.

        Parameters
        ----------
        busy_ps : int or None
            The time that the port was busy in the window, in ps: `window_busy_ps` of `Results.ports`.

        Returns
        -------
        float
            The share, from 0 to 1; 0 if the point has no window.
        """
        start, end = self.window_ps or (0, 0)
        return _core.utilisation(busy_ps or 0, end - start) or 0.0


_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.ASCII | re.IGNORECASE)


def plain(value: object) -> Value:
    """Returns a swept value as a number if it is written as one. Words that Python reads as numbers,
    such as `nan` and `1_000`, are names.

    >>> plain("0.5"), plain("1e3"), plain("nan"), plain("1_000")
    (0.5, 1000.0, 'nan', '1_000')
    """
    if value is None or isinstance(value, float):
        return value
    text = str(value)
    return float(text) if _NUMBER.fullmatch(text) else text


def window_of(row: Mapping[str, Any]) -> tuple[int, int] | None:
    """Returns the measurement window of a row of the table of points."""
    ends = row.get("window_from_ps"), row.get("window_until_ps")
    return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])


def engine_note(engines: Iterable[str]) -> str:
    """Returns a note on the engines that made some numbers; empty if the packet engine made all of
    them.

    >>> engine_note(["flow", "flow"])
    'flow engine: fluids with max-min fair rates, no packets'
    """
    found = set(engines)
    if "flow" not in found:
        return ""
    if found == {"flow"}:
        return "flow engine: fluids with max-min fair rates, no packets"
    return "partly flow engine (fluids with max-min fair rates, no packets), partly packet engine"


def windows(runs: Iterable[Run]) -> list[tuple[int, int]]:
    """Returns the measurement windows of points."""
    return [run.window_ps for run in runs if run.window_ps is not None]


def matches(key: str, wanted: str) -> bool:
    """Whether `wanted` names the dotted key `key`: in full, or by its last words. As in a scenario,
    the name of a part denotes its `kind`.

    >>> matches("workload.web.load", "load"), matches("engine.kind", "engine")
    (True, True)
    """
    return any(name == wanted or name.endswith("." + wanted) for name in (key, key.removesuffix(".kind")))


def mean(values: Sequence[float]) -> float:
    """Returns the mean over seeds."""
    found, _ = _core.estimate(values)
    assert found is not None, "a mean of nothing"
    return found
