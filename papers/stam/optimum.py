"""The best schedules of a few flows on one link, found by a search through all schedules.

A schedule is best if it meets all deadlines and, among those that do, has the least mean completion time of the flows
without a deadline (section 2). The link serves one unit of one flow per slot and never idles while a flow is present;
arrivals, sizes and deadlines are whole slots. The search knows flows before they arrive, as no scheduler does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Optimum:
    """What the search finds."""

    schedules: int
    """Number of schedules that meet all deadlines."""
    total: int
    """Sum of the completion times of the flows without a deadline, in slots, in each of the best schedules."""
    best: list[list[int]]
    """The best schedules: the flow that each slot serves, without idle slots."""


def optimum(arrivals: Sequence[int], sizes: Sequence[int], deadlines: Sequence[int | None]) -> Optimum | None:
    """Returns the best schedules of these flows, or `None` if every schedule misses a deadline."""

    def steps(now: int, left: tuple[int, ...]) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """The flows that the slot at `now` may serve, with what is then left of each flow, and the completion time to count."""
        for flow, (arrival, units, deadline) in enumerate(zip(arrivals, left, deadlines, strict=True)):
            if units == 0 or arrival > now or (units == 1 and deadline is not None and now + 1 > deadline):
                continue
            cost = now + 1 - arrival if units == 1 and deadline is None else 0
            yield flow, (*left[:flow], units - 1, *left[flow + 1 :]), cost

    @cache
    def search(now: int, left: tuple[int, ...]) -> Optimum | None:
        if not any(left):
            return Optimum(1, 0, [[]])
        now = max(now, min(arrival for arrival, units in zip(arrivals, left, strict=True) if units))
        schedules, total = 0, 0
        best: list[list[int]] = []
        for flow, rest, cost in steps(now, left):
            if (found := search(now + 1, rest)) is None:
                continue
            if not schedules or found.total + cost < total:
                total, best = found.total + cost, []
            if found.total + cost == total:
                best += [[flow, *later] for later in found.best]
            schedules += found.schedules
        return Optimum(schedules, total, best) if schedules else None

    return search(0, tuple(sizes))
