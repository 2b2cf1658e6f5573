"""The messages that delayed the last rank of a collective."""

from __future__ import annotations

import shlex
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc

from flowloom.base import words
from flowloom.base.errors import InputError, UnknownNameError, did_you_mean
from flowloom.runs import tables
from flowloom.runs.data import Data, Run
from flowloom.runs.programs import ProgramTask, parts_of, tasks_of
from flowloom.why.parts import duration

MOST_MESSAGES = 20
"""The maximum number of messages of a chain with a row of their own: those that lost most time."""
SLOWEST = "slowest"
"""Chooses the collective that took longest."""


@dataclass(frozen=True)
class Message:
    """A message of a chain, with the time between the end of the message before and its start."""

    flow_id: int
    src: int
    dst: int
    size_bytes: int
    start_ps: int
    finish_ps: int
    ideal_fct_ps: int
    slowdown: float
    timeouts: int
    lost: int
    """Packets of the message that were lost, in queues, to failures and at random."""
    waited_ps: int

    @property
    def time_ps(self) -> int:
        """The completion time."""
        return self.finish_ps - self.start_ps

    @property
    def lost_ps(self) -> int:
        """The completion time beyond that in an unloaded network."""
        return self.time_ps - self.ideal_fct_ps


@dataclass(frozen=True)
class Chain:
    """The messages that delayed the rank that ended a collective last: each of them was the last of those for which the
    next one waited, which reached its sender or went between the same two ranks before it.
    """

    point: str
    task: ProgramTask
    messages: Sequence[Message]
    """The messages, the oldest first."""
    begun_ps: int
    """The time when the rank that sent the oldest message began its part."""
    ranks: Mapping[int, Sequence[int]]
    """The ranks of each host that take part."""
    down: Sequence[str] = ()
    """The links that failed, as `a--b`, with the time that they were down."""
    path: Path | None = None
    """The folder of the results."""

    @property
    def ended_ps(self) -> int:
        """The time when the last rank ended its part."""
        assert self.task.finish_ps is not None, "only collectives that ended have a chain"
        return self.task.finish_ps

    def named(self, host: int) -> str:
        """Returns the name of a host as shown, with its ranks."""
        own = self.ranks.get(host, ())
        return f"h{host}" if not own else f"rank {', '.join(map(str, own))} (h{host})"

    def table(self) -> tables.Table:
        """Returns a table with a row for each message, the oldest first. If there are more than
        `MOST_MESSAGES`, messages that lost little time share a row with their neighbours.
        """
        losses = sorted(range(len(self.messages)), key=lambda i: (-self.messages[i].lost_ps, i))
        kept = set(losses[: MOST_MESSAGES if len(losses) > MOST_MESSAGES else len(losses)])
        rows: list[list[str]] = []
        rest: list[Message] = []
        for i, message in enumerate(self.messages):
            if i not in kept:
                rest.append(message)
            if rest and (i in kept or i + 1 == len(self.messages)):
                rows.append(self.cells(rest, f"{words.counted(len(rest), 'message')}", "", ""))
                rest = []
            if i in kept:
                rows.append(self.cells([message], self.named(message.src), self.named(message.dst), str(message.flow_id)))
        heads = ["from", "to", "flow", "size", "start", "waited", "time", "unloaded", "slowdown"]
        return tables.Table(heads + (["lost", "timeouts"] if self.has_losses else []), rows, 2)

    @property
    def has_losses(self) -> bool:
        """Whether a message lost packets or waited for a timeout."""
        return any(one.timeouts or one.lost for one in self.messages)

    def cells(self, messages: Sequence[Message], *names: str) -> list[str]:
        """Returns the row of one message, or of several messages that follow each other."""
        time, ideal = sum(one.time_ps for one in messages), sum(one.ideal_fct_ps for one in messages)
        begun = self.task.start_ps or 0
        return [
            *names,
            sized(messages[0].size_bytes) if len({one.size_bytes for one in messages}) == 1 else "",
            duration(messages[0].start_ps - begun),
            duration(sum(one.waited_ps for one in messages)),
            duration(time),
            duration(ideal),
            f"{messages[0].slowdown if len(messages) == 1 else time / ideal:.3g}",
            *([str(sum(one.lost for one in messages)), str(sum(one.timeouts for one in messages))] if self.has_losses else []),
        ]

    def __str__(self) -> str:
        """Describes the collective and where its time went, and adds the table."""
        task, took = self.task, self.ended_ps - (self.task.start_ps or 0)
        of = "" if task.size_bytes is None else f" of {sized(task.size_bytes)}"
        host = next((host for host, ranks in self.ranks.items() if task.last_rank in ranks), None)
        last = f"rank {task.last_rank}" if host is None else self.named(host)
        spread = self.ended_ps - (task.first_finish_ps or 0)
        lines = [
            f"{self.point}: {task.name}, {task.operation}{of} between {task.parts} ranks, iteration {task.iteration}, "
            f"group {task.group_id}, took {duration(took)}",
            f"{last} ended last, {duration(spread)} after the first rank",
        ]
        if not self.messages:
            return "\n".join(map(words.escaped, [*lines, "it has no messages that ended before"]))
        moved, ideal = sum(one.time_ps for one in self.messages), sum(one.ideal_fct_ps for one in self.messages)
        late, after = self.begun_ps - (task.start_ps or 0), self.ended_ps - self.messages[-1].finish_ps
        waited = sum(one.waited_ps for one in self.messages)
        lines += [
            f"the last {words.counted(len(self.messages), 'message')} before this end: {duration(moved)} under way, "
            f"{moved / ideal:.3g} times the {duration(ideal)} in an unloaded network",
            f"before them: {duration(late)} until the first sender began; between them: {duration(waited)}; "
            f"after them: {duration(after)} until the rank ended",
        ]
        late_ones = [one for one in self.messages if one.timeouts]
        if late_ones:
            lines.append(
                f"{words.counted(len(late_ones), 'message')} of them waited for a retransmission timeout, after losses of "
                f"{words.counted(sum(one.lost for one in late_ones), 'packet')}: {duration(sum(one.lost_ps for one in late_ones))} "
                "beyond the time in an unloaded network"
            )
        if self.down:
            lines.append(f"links that were down: {', '.join(self.down)}")
        worst = max(self.messages, key=lambda one: (one.lost_ps, -one.flow_id))
        run = "RUN" if self.path is None else shlex.quote(str(self.path))
        command = f"flowloom why {run} --point {shlex.quote(self.point)} --flow {worst.flow_id}"
        hint = f"hint: `{command}` explains the message that lost most time"
        notes = "times start with the collective; waited: from the end of the message before to the start"
        return "\n".join([*map(words.escaped, lines), "", str(self.table()), words.escaped(notes), words.escaped(hint)])


def sized(size: int) -> str:
    """Returns a size as text.

    >>> sized(1_500_000)
    '1.5 MB'
    """
    factor, unit = words.scale("bytes", [size])
    return f"{size / factor:.4g} {unit}"


def chain(results: Data, collective: str = SLOWEST, point: str | None = None) -> Chain:
    """Returns the messages that delayed the last rank of a collective: of the slowest with a name, with a
    `group_id`, or of all. Without `point`, the collectives of all points are considered.

    Raises `ValueError` if no collective has ended, and `KeyError` for an unknown one.
    """
    runs = [run for run in results.select(None if point is None else {"point": point}) if not run.ideal]
    ended = [(run, task) for run in runs for task in tasks_of(results, run) if task.collective and task.time_ps is not None]
    if not ended:
        hint = "only workloads that are programs of ranks have collectives; `--flow` explains single flows"
        raise InputError(f"no collective has ended\nhint: {hint}")
    # A name comes before the words and numbers of ours that it may look like.
    chosen = [(run, task) for run, task in ended if task.name == collective]
    if not chosen and collective == SLOWEST:
        chosen = ended
    if not chosen and collective.isdecimal():
        chosen = [(run, task) for run, task in ended if task.group_id == int(collective)]
    if not chosen:
        names = list(dict.fromkeys(task.name for _, task in ended))
        listed = ", ".join(names[:20]) + (f" and {len(names) - 20} more" if names[20:] else "")
        did = did_you_mean(collective, names)
        raise UnknownNameError(
            f"no collective `{collective}` has ended{did}\nhint: the collectives are {listed}; or give a `group_id`"
        )
    run, task = max(chosen, key=lambda one: (one[1].time_ps or 0, -runs.index(one[0]), -one[1].group_id))
    return walked(results, run, task)


def walked(results: Data, run: Run, task: ProgramTask) -> Chain:
    """Walks back from the end of the last rank of a collective, message by message."""
    parts = [own[0] for own in parts_of(results, run, [task]).values()]
    ranks: dict[int, list[int]] = {}
    for part in parts:
        ranks.setdefault(part.host, []).append(part.rank)
    begun = {host: min(part.start_ps for part in parts if part.host == host) for host in ranks}
    fields = ["flow_id", "src", "dst", "size_bytes", "start_ps", "finish_ps", "ideal_fct_ps", "slowdown", "timeouts"]
    also = ["group_id", "drops", "lost_link"]
    # All flows: a filter must not interrupt the chain.
    table = results._table("flows", [*fields, *also], {"point": run.point})
    table = table.filter((pc.field("group_id") == task.group_id) & pc.field("finish_ps").is_valid())
    rows = table.select([*fields, *also]).to_pylist()
    arrivals: dict[int, Flows] = {}
    # A message also waits for the message a window before it, from its rank to the same rank.
    between: dict[tuple[int, int], Flows] = {}
    for row in ordered(rows):
        arrivals.setdefault(row["dst"], []).append(row)
        between.setdefault((row["src"], row["dst"]), []).append(row)
    last = next(part.host for part in parts if part.rank == task.last_rank)
    # The last rank also waits for the arrival of its own messages.
    at_end = ordered(row for row in rows if last in (row["src"], row["dst"]))
    found, latest = [], latest_before(at_end, task.finish_ps or 0)
    while latest is not None:
        src, start = latest["src"], latest["start_ps"]
        known = [latest_before(flows, start) for flows in (between[src, latest["dst"]], arrivals.get(src, []))]
        before = max(filter(None, known), key=lambda row: row["finish_ps"], default=None)
        since = begun.get(src, start) if before is None else before["finish_ps"]
        of_row = {name: latest[name] for name in fields}
        found.append(Message(**of_row, lost=latest["drops"] + latest["lost_link"], waited_ps=start - since))
        latest = before
    first = found[-1] if found else None
    start = (task.start_ps or 0) if first is None else first.start_ps - first.waited_ps
    return Chain(run.point, task, found[::-1], start, ranks, links_down(results, run), results.path)


def links_down(results: Data, run: Run) -> list[str]:
    """Returns the links of a point that were down, with the time."""
    ports = results._table("ports", ["name", "down_ps"], {"point": run.point})
    found: dict[str, int] = {}
    for row in ports.filter(pc.field("down_ps") > 0).select(["name", "down_ps"]).to_pylist():
        a, b = sorted(row["name"].split("->"))
        found[f"{a}--{b}"] = max(found.get(f"{a}--{b}", 0), row["down_ps"])
    return [f"{link} ({duration(ps)})" for link, ps in sorted(found.items())]


Flows = list[dict[str, int]]


def ordered(rows: Iterable[dict[str, int]]) -> Flows:
    """Sorts flows by their ends."""
    return sorted(rows, key=lambda row: (row["finish_ps"], row["flow_id"]))


def latest_before(rows: Flows, time: int) -> dict[str, int] | None:
    """Returns the last of the flows that ended by a time."""
    place = bisect_right(rows, time, key=lambda row: row["finish_ps"])
    return rows[place - 1] if place else None
