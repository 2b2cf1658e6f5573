"""The figure `timeline`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from flowloom.base import words
from flowloom.base.rooms import Meta
from flowloom.figures import style
from flowloom.figures.drawing import At, NoDataError, mark_changes, one_per_system, record, swept, titled
from flowloom.figures.traces import Span, cut_idle, idle
from flowloom.runs.data import Data, Run
from flowloom.runs.programs import COMPUTE, ProgramTask, Rank, RankPart, parts_of, placed, ranks_of, tasks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

META = Meta(
    "Computations and collectives of ranks over time, with iterations and the last ranks of long collectives",
    needs="parts",
)

MOST_RANKS = 64
"""The maximum number of ranks in a figure; at least `FEWEST_RANKS` of each system are drawn."""
FEWEST_RANKS = 16
MOST_MARKS = 16
"""The maximum number of collectives of a panel whose last rank is marked."""
MOST_LANES = 4
"""The maximum number of overlapping parts of a rank that are drawn below each other."""
MOST_ITERATIONS = 6
"""The number of iterations up to which all of a workload are drawn, and each has a label."""
FIRST_ITERATIONS = 4
"""The number of iterations that are drawn of workloads with more of them, unless a span is given."""
MOST_NAMED = 10
"""The number of ranks up to which tasks have their names."""
VECTORS = 4000
"""The number of parts from which on they are drawn as an image, without hatches."""
COMPUTING = "#c3c4cf"
"""The colour of computations: lighter than those of all collectives."""


def long_collectives(tasks: Sequence[ProgramTask], span: tuple[float, float]) -> list[ProgramTask]:
    """Returns the collectives that end in a span of ps, take at least half as long as the longest of
    them, and whose ranks end at different times.
    """
    lengths = {
        task.group_id: task.time_ps
        for task in tasks
        if task.collective and task.time_ps is not None and task.finish_ps is not None and span[0] <= task.finish_ps <= span[1]
    }
    least = max(lengths.values(), default=0) / 2
    found = [task for task in tasks if lengths.get(task.group_id, -1) >= least and task.finish_ps != task.first_finish_ps]
    return sorted(found, key=lambda task: (-lengths[task.group_id], task.group_id))[:MOST_MARKS]


def chosen_ranks(ranks: Sequence[Rank], last: Sequence[Rank], most: int) -> list[Rank]:
    """Returns at most `most` ranks: the ranks that ended long collectives last, and others spread
    evenly over all ranks.
    """
    if len(ranks) <= most:
        return list(ranks)
    kept = list(dict.fromkeys(last))[: most // 2]
    others = [rank for rank in ranks if rank not in kept]
    spread = np.linspace(0, len(others) - 1, most - len(kept)).round().astype(int)
    chosen = {*kept, *(others[i] for i in spread)}
    return [rank for rank in ranks if rank in chosen]


def first_iterations(tasks: Sequence[ProgramTask], end: float) -> tuple[float, int]:
    """Returns the time in ps when the iterations to draw have ended, and the number of iterations that
    are not drawn. Tasks without an end last until `end`.
    """
    ends: dict[str, dict[int, float]] = {}
    for task in tasks:
        own = ends.setdefault(task.workload, {})
        own[task.iteration] = max(own.get(task.iteration, 0.0), end if task.finish_ps is None else task.finish_ps)
    drawn = {w: [time for i, time in own.items() if len(own) <= MOST_ITERATIONS or i < FIRST_ITERATIONS] for w, own in ends.items()}
    return max(max(own, default=end) for own in drawn.values()), sum(len(ends[w]) - len(own) for w, own in drawn.items())


def looks(tasks: Sequence[ProgramTask]) -> dict[str, dict[str, Any]]:
    """Returns the look of each operation: computations are light grey."""
    operations = [one for one in dict.fromkeys(task.operation for task in tasks) if one != COMPUTE]
    found: dict[str, dict[str, Any]] = {COMPUTE: {"facecolor": COMPUTING, "hatch": ""}}
    for i, operation in enumerate(operations):
        hatch = style.HATCHES[(i + i // len(style.COLORS)) % len(style.HATCHES)]
        found[operation] = {"facecolor": style.COLORS[i % len(style.COLORS)], "hatch": hatch}
    return found


def strip_height() -> float:
    """Returns the height in inches of the strip for the iterations of a workload."""
    return 0.022 * style.points(9)


class Panel:
    """Draws the time line of one point. Times are in units of `unit` ps; a rank has a row of `row` inches."""

    def __init__(
        self, ax: Axes, ranks: Sequence[Rank], parts: Mapping[Rank, Sequence[RankPart]], unit: float, end: float, row: float
    ) -> None:
        self.ax, self.ranks, self.parts, self.unit, self.end = ax, ranks, parts, unit, end
        self.row, self.strip = row, strip_height() / row
        self.workloads = list(dict.fromkeys(workload for workload, _ in ranks))
        self.rows: dict[Rank, float] = {}
        """The vertical place of each rank. Above the ranks of a workload is a strip for its iterations."""
        for i, rank in enumerate(ranks):
            self.rows[rank] = i + self.strip * (1 + self.workloads.index(rank[0]))
        lanes = {rank: np.array(placed(parts.get(rank, ()), end), dtype=int) for rank in ranks}
        self.overlap = 1 + max((int(own.max(initial=0)) for own in lanes.values()), default=0)
        """The maximum number of parts of a rank at a time."""
        self.lanes = {rank: np.minimum(own, MOST_LANES - 1) for rank, own in lanes.items()}
        self.height = 0.8 / min(self.overlap, MOST_LANES)

    def top(self, rank: Rank, lane: float) -> float:
        """Returns the upper end of a bar."""
        return self.rows[rank] - 0.4 + self.height * lane

    def bars(self, looks: Mapping[str, Mapping[str, Any]], results: Data, run: Run, name: str) -> None:
        """Draws a bar for each part."""
        from matplotlib.collections import PolyCollection

        corners: dict[tuple[str, bool], list[list[tuple[float, float]]]] = {}
        for rank in self.ranks:
            own = self.parts.get(rank, ())
            for part, lane in zip(own, self.lanes[rank], strict=True):
                top = self.top(rank, float(lane))
                left, right = part.start_ps / self.unit, (self.end if part.finish_ps is None else part.finish_ps) / self.unit
                corner = [(left, top), (right, top), (right, top + self.height), (left, top + self.height)]
                corners.setdefault((part.task.operation, part.finish_ps is None), []).append(corner)
            times = {
                "task": [part.task.name for part in own],
                "operation": [part.task.operation for part in own],
                "iteration": [part.task.iteration for part in own],
                words.axis("from", name): [part.start_ps / self.unit for part in own],
                words.axis("until", name): [np.nan if part.finish_ps is None else part.finish_ps / self.unit for part in own],
            }
            record(self.ax, {"system": run.system, **swept(results, run), "workload": rank[0], "rank": rank[1]}, times)
        image = sum(map(len, corners.values())) > VECTORS
        order = list(looks)
        for operation, unfinished in sorted(corners, key=lambda one: (one[1], order.index(one[0]))):
            look: dict[str, Any] = {**looks[operation], "edgecolor": "white", "linewidth": style.thick(0.4)}
            if image:
                look |= {"hatch": "", "linewidth": 0.0}
            if unfinished:
                look |= {"alpha": 0.5, "edgecolor": style.INK, "linestyle": ":", "linewidth": style.thick(0.8)}
            label = f"{operation}, did not end" if unfinished else operation
            drawn = PolyCollection(corners[operation, unfinished], **look, rasterized=image, label=style.label(label))
            self.ax.add_collection(drawn, autolim=False)

    def iterations(self, tasks: Sequence[ProgramTask]) -> None:
        """Marks where iterations begin, with their numbers."""
        low, high = self.ax.get_xlim()
        for workload in self.workloads:
            starts: dict[int, int] = {}
            for task in tasks:
                if task.workload == workload and task.start_ps is not None:
                    starts[task.iteration] = min(starts.get(task.iteration, task.start_ps), task.start_ps)
            shown = [(i, ps / self.unit) for i, ps in sorted(starts.items()) if low <= ps / self.unit < high]
            rows = [y for rank, y in self.rows.items() if rank[0] == workload]
            top, bottom = min(rows) - 0.5, max(rows) + 0.5
            look: dict[str, Any] = {"color": style.INK, "linewidth": style.thick(0.9), "linestyle": (0, (4, 2))}
            if not shown:
                continue
            self.ax.vlines([x for _, x in shown], top - self.strip, bottom, **look, label="start of an iteration")
            every = -(-len(shown) // MOST_ITERATIONS)
            words_of: dict[str, Any] = {"fontsize": style.points(7.5), "va": "center", "clip_on": True}
            for i, x in shown[::every]:
                text = f"iteration {i}" if every == 1 else str(i)
                self.ax.annotate(text, (x, top - self.strip / 2), (3, 0), textcoords="offset points", **words_of)

    def names(self) -> None:
        """Writes the names of tasks on the bars of the first rank of each workload, if most of them fit."""
        size = min(style.points(7), 72 * self.row * self.height)
        low, high = self.ax.get_xlim()
        wide = 0.9 * 72 * float(self.ax.figure.bbox.width) / self.ax.figure.dpi / (high - low)
        for rank in [next(one for one in self.ranks if one[0] == workload) for workload in self.workloads]:
            fitting, shown = [], 0
            for part, lane in zip(self.parts.get(rank, ()), self.lanes[rank], strict=True):
                left, right = (float(np.clip(ps / self.unit, low, high)) for ps in (part.start_ps, part.finish_ps or self.end))
                shown += right > left
                if style.width_of(words.escaped(part.task.name), size) + size < wide * (right - left):
                    fitting.append((part.task, (left + right) / 2, self.top(rank, lane + 0.5)))
            for task, x, y in fitting if 2 * len(fitting) > shown else ():
                look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size}
                self.ax.text(x, y, words.escaped(task.name), color="white" if task.collective else style.INK, **look)

    def last_ranks(self, collectives: Sequence[ProgramTask]) -> None:
        """Marks the ranks that ended collectives last."""
        groups, places = {task.group_id for task in collectives}, []
        for rank in self.ranks:
            for part, lane in zip(self.parts.get(rank, ()), self.lanes[rank], strict=True):
                if part.task.group_id in groups and rank[1] == part.task.last_rank and part.finish_ps is not None:
                    places.append((part.finish_ps / self.unit, self.top(rank, float(lane) + 0.5)))
        if places:
            look: dict[str, Any] = {"markersize": 6, "markeredgecolor": style.PAPER, "markeredgewidth": 0.6, "zorder": 4}
            look |= {"color": style.INK, "linestyle": "none", "label": "last rank of a long collective"}
            self.ax.plot(*zip(*places, strict=True), "<", **look)


def draw(results: Data, at: At = None, workload: str | None = None, span: Span | None = None, most: int = MOST_RANKS) -> Figure:
    """Draws the figure: a panel for each system, a row for each rank."""
    chosen = [(run, tasks_of(results, run, workload)) for _, run in one_per_system(results, at)]
    chosen = [(run, [task for task in tasks if task.start_ps is not None]) for run, tasks in chosen]
    chosen = [(run, tasks) for run, tasks in chosen if tasks]
    if not chosen:
        of = "the results have" if workload is None else f"the workload `{workload}` has"
        raise NoDataError(f"{of} no tasks\nhint: only workloads that are programs of ranks have tasks")
    look = looks([task for _, tasks in chosen for task in tasks])
    first = [first_iterations(tasks, run.end_ps or 0) for run, tasks in chosen]
    # All panels have the same time axis, so that systems can be compared.
    shown = (0.0, max(end for end, _ in first)) if span is None else (span[0] * 1e9, span[1] * 1e9)
    factor, name = words.scale("s", [shown[1] * 1e-12])
    unit, drawn, counts = factor * 1e12, [], dict[tuple[int, int], None]()
    room = max(most // len(chosen), min(FEWEST_RANKS, most))
    for run, tasks in chosen:
        marked = long_collectives(tasks, shown)
        ranks = ranks_of(results, run, tasks)
        rows = chosen_ranks(ranks, [(task.workload, task.last_rank) for task in marked], room)
        parts = parts_of(results, run, tasks, rows)
        inside = {
            rank: [one for one in own if one.start_ps <= shown[1] and (one.finish_ps is None or one.finish_ps >= shown[0])]
            for rank, own in parts.items()
        }
        drawn.append((run, tasks, rows, inside, marked))
        counts[len(rows), len(ranks)] = None
    most_rows, strips = max(len(rows) for _, _, rows, *_ in drawn), max(len({one for one, _ in rows}) for _, _, rows, *_ in drawn)
    row = min(0.3 if most_rows <= 10 else 0.2 if most_rows <= 34 else 0.125, style.row(0.3))
    fig, axes = style.grid(len(drawn), 1, width=7.5, height=0.9 + most_rows * row + strips * strip_height(), rigid=True)
    overlap = 0
    whole = span is None and not any(left_out for _, left_out in first)
    for ax, (run, tasks, rows, parts, marked) in zip(axes, drawn, strict=True):
        panel = Panel(ax, rows, parts, unit, run.end_ps or shown[1], row)
        panel.bars(look, results, run, name)
        overlap = max(overlap, panel.overlap)
        if whole:
            busy = [(one.start_ps / unit, (one.finish_ps or shown[1]) / unit) for own in parts.values() for one in own]
            cut_idle(ax, idle([(0.0, 0.0), *busy]), 1.02 * shown[1] / unit, name)
        else:
            ax.set_xlim(shown[0] / unit, shown[1] / unit)
        ax.set_ylim(max(panel.rows.values()) + 0.6, -0.5)
        if len(rows) <= MOST_NAMED:
            panel.names()
        panel.iterations(tasks)
        panel.last_ranks(marked)
        mark_changes(ax, results, run, factor * 1e3)
        several = len(panel.workloads) > 1
        labels = [f"{words.escaped(one)} {number}" if several else str(number) for one, number in rows]
        ax.set_yticks([panel.rows[rank] for rank in rows], labels, fontsize=style.points(8 if len(rows) <= 34 else 6.5))
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", visible=False)
        ax.set(xlabel=words.axis("time", name), ylabel="rank", title=titled(results, run, at))
    style.legend(fig, axes)
    if span is None and not whole:
        style.note(fig, f"the first {FIRST_ITERATIONS} iterations; `span` draws other times")
    if overlap > MOST_LANES:
        style.note(fig, f"up to {overlap} parts of a rank overlap: some are drawn on others")
    cut = [f"{few} of {all_}" for few, all_ in counts if few < all_]
    if cut:
        style.note(fig, f"{words.joined(cut)} ranks are drawn, spread evenly, and the last ranks of long collectives")
    if any(marked for *_, marked in drawn):
        style.note(fig, "long: at least half as long as the longest collective that ends in the panel")
    return fig
