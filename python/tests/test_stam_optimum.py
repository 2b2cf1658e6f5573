"""The search of STAM's best schedules: by hand, against all orders, and against the ideals."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import flowloom
import pytest
from flowloom.papers import shelf

Flow = tuple[int, int, int | None]


@pytest.fixture(scope="module")
def optimum() -> Any:
    return shelf.load("stam").drawings().optimum


def letters(slots: Sequence[int]) -> str:
    return "".join("ABCD"[flow] for flow in slots)


def test_table_1(optimum: Any) -> None:
    found = optimum([2, 3, 0, 1], [1, 2, 5, 6], [8, None, 6, None])
    assert (found.schedules, found.total) == (364, 17)
    assert [letters(slots) for slots in found.best] == ["CCCBCCBADDDDDD", "CCCCBCBADDDDDD", "CCCCCBBADDDDDD"]


def test_no_schedule_and_flows_that_all_have_deadlines(optimum: Any) -> None:
    assert optimum([0], [2], [1]) is None
    found = optimum([3], [2], [5])
    assert (found.schedules, found.total, found.best) == (1, 0, [[0, 0]])


def test_against_every_order_of_slots(optimum: Any) -> None:
    draw = random.Random(2)

    def all_sums(flows: Sequence[Flow], now: int, left: tuple[int, ...], total: int) -> Iterator[int]:
        """The sum of completion times of every schedule that meets all deadlines."""
        if not any(left):
            yield total
            return
        present = [flow for flow, (arrival, *_) in enumerate(flows) if arrival <= now and left[flow]]
        if not present:
            yield from all_sums(flows, now + 1, left, total)
        for flow in present:
            arrival, _, deadline = flows[flow]
            ends = left[flow] == 1
            if not (ends and deadline is not None and now + 1 > deadline):
                cost = now + 1 - arrival if ends and deadline is None else 0
                yield from all_sums(flows, now + 1, (*left[:flow], left[flow] - 1, *left[flow + 1 :]), total + cost)

    infeasible = 0
    for _ in range(60):
        flows = random_flows(draw, 3)
        arrivals, sizes, deadlines = zip(*flows, strict=True)
        sums = list(all_sums(flows, 0, sizes, 0))
        found = optimum(arrivals, sizes, deadlines)
        infeasible += found is None
        if found is None:
            assert not sums, flows
        else:
            assert (found.schedules, found.total, len(found.best)) == (len(sums), min(sums), sums.count(min(sums))), flows
    assert 0 < infeasible < 40


def random_flows(draw: random.Random, count: int) -> list[Flow]:
    flows = [(draw.randrange(9), draw.randint(1, 5)) for _ in range(count)]
    return [(arrival, size, draw.choice([None, arrival + size + draw.randrange(8)])) for arrival, size in flows]


def test_no_ideal_is_better(optimum: Any) -> None:
    draw = random.Random(1)
    met = {"edf_sjf": 0, "stam": 0}
    for _ in range(100):
        flows = random_flows(draw, 4)
        best = optimum(*zip(*flows, strict=True))
        for ideal in met:
            finish = flowloom.fluid(ideal, 1.0, *zip(*flows, strict=True))["finish"]
            late = any(deadline is not None and end > deadline for end, (_, _, deadline) in zip(finish, flows, strict=True))
            if ideal == "edf_sjf":
                assert late == (best is None), flows  # EDF meets all deadlines if any schedule does.
            if not late:
                met[ideal] += 1
                total = sum(end - arrival for end, (arrival, _, deadline) in zip(finish, flows, strict=True) if deadline is None)
                assert best.total <= total, flows
    assert min(met.values()) > 20
