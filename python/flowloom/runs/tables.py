"""Text tables: aligned columns, numbers on the right, one unit per column."""

from __future__ import annotations

import csv
import html
import io
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unicodedata import category, east_asian_width

from flowloom import _core
from flowloom.base import words
from flowloom.base.errors import InputError, did_you_mean
from flowloom.runs.choice import engine_note_of
from flowloom.runs.data import Data, Run, Value, mean, plain, windows
from flowloom.runs.missing import missing

METRICS = (
    "flows",
    "unfinished",
    "not_started",
    "mean_iteration_s",
    "exposed_communication",
    "bubble_share",
    "mean_bus_bandwidth_bps",
    "deadline_miss_rate",
    "mean_slowdown",
    "p99_slowdown",
    "mean_slowdown_short",
    "p99_slowdown_short",
    "mean_slowdown_long",
    "mean_fct_s",
    "p99_fct_s",
    "mean_fct_without_deadline_s",
    "mean_fct_without_deadline_short_s",
    "drop_rate_with_deadline",
    "mean_group_fct_s",
    "groups_in_time",
    "group_jain_index",
    "p99_er",
    "data_drops",
    "trimmed",
    "timeouts",
    "paused_share",
    "max_paused_share",
)
"""The metrics of the summary table, in this order; metrics that the results do not have are left out."""

ALWAYS = ("flows", "deadline_miss_rate", "groups_in_time")
"""Metrics that are shown even if all values are zero. Results without deadlines have no miss rate."""


WINDOWED = frozenset(str(entry["name"]) for entry in _core.entries("metrics") if entry["window"])
"""The metrics that are taken over the measurement window."""


def cells_of(text: str) -> int:
    """Returns the width of a text in cells of a terminal: emoji and CJK characters take two,
    combining marks none.
    """
    return sum(0 if category(c) in ("Mn", "Me") else 2 if east_asian_width(c) in "WF" else 1 for c in text)


def texts(cells: Iterable[str]) -> list[str]:
    """Escapes the hidden characters of cells."""
    return [words.escaped(cell) for cell in cells]


NOTEBOOK = "<style>.flowloom th { text-align: left !important } .flowloom .n { text-align: right !important }</style>"
"""The alignment of tables in a report, which the styles of notebooks and sites would override."""


@dataclass(frozen=True, repr=False)
class Table:
    """A table of texts. The first `left` columns are aligned to the left; the other columns hold numbers."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int
    note: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", texts(self.head))
        object.__setattr__(self, "rows", [texts(row) for row in self.rows])
        object.__setattr__(self, "note", words.escaped(self.note))

    def __str__(self) -> str:
        """Returns the table for a terminal."""
        grid = [list(self.head), *map(list, self.rows)]
        widths = [max(cells_of(row[i]) for row in grid) for i in range(len(self.head))]
        lines = []
        for row in grid:
            blanks = [" " * (width - cells_of(cell)) for cell, width in zip(row, widths, strict=True)]
            cells = [
                cell + blank if i < self.left else blank + cell for i, (cell, blank) in enumerate(zip(row, blanks, strict=True))
            ]
            lines.append("  ".join(cells).rstrip())
        lines.insert(1, "  ".join("─" * width for width in widths))
        return "\n".join(lines) + (f"\n{self.note}" if self.note else "")

    __repr__ = __str__

    def markdown(self) -> str:
        """Returns the table for a Markdown page."""

        def line(cells: Sequence[str]) -> str:
            return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

        rule = [":--" if i < self.left else "--:" for i in range(len(self.head))]
        return "\n".join([line(self.head), line(rule), *(line(row) for row in self.rows)])

    def latex(self) -> str:
        """Returns the table for LaTeX with the package `booktabs`. The note becomes a comment, for
        the caption.
        """

        def cell(text: str) -> str:
            # Typeset a dash and a minus sign instead of hyphens.
            return "--" if text == "-" else re.sub(r"^-(?=[\d.])", "$-$", words.latex(" ".join(text.split())))

        lines = [" & ".join(map(cell, row)) + r" \\" for row in (self.head, *self.rows)]
        columns = "".join("l" if i < self.left else "r" for i in range(len(self.head)))
        notes = [f"% {line}" for line in self.note.splitlines()]
        begin, end = f"\\begin{{tabular}}{{{columns}}}", r"\end{tabular}"
        return "\n".join([*notes, begin, r"\toprule", lines[0], r"\midrule", *lines[1:], r"\bottomrule", end])

    def csv(self) -> str:
        """Returns the table as CSV, with the digits that are shown. Means and half intervals have
        columns of their own, and so have the ends of ranges of the seeds.

        The names of columns are single words that end with the unit; the name for half an interval
        is `..._half_ci95`, those of a range are `..._lowest` and `..._highest`.
        """
        names: list[str] = []
        columns: list[list[str]] = []
        for i, head in enumerate(self.head):
            cells = [row[i].strip() for row in self.rows]
            ranges = [RANGE.fullmatch(cell) if i >= self.left else None for cell in cells]
            cells = [cell if found is None else found[1] for cell, found in zip(cells, ranges, strict=True)]
            pairs = [("" if i >= self.left and cell == "-" else cell).partition("±") for cell in cells]
            names.append(words.column(head))
            columns.append([mean.strip() for mean, _, _ in pairs] if i >= self.left else cells)
            if i >= self.left and any(sign for _, sign, _ in pairs):
                names.append(f"{names[-1]}_half_ci95")
                columns.append([half.strip() for _, _, half in pairs])
            if any(ranges):
                for end, name in ((2, "lowest"), (3, "highest")):
                    names.append(f"{words.column(head)}_{name}")
                    columns.append(["" if found is None else found[end] for found in ranges])
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([names, *zip(*columns, strict=True)])
        return text.getvalue()

    def html(self) -> str:
        """Returns the table for an HTML page."""

        def line(cells: Sequence[str], tag: str) -> str:
            marked = (f"<{tag}{'' if i < self.left else ' class=n'}>{html.escape(cell)}</{tag}>" for i, cell in enumerate(cells))
            return f"<tr>{''.join(marked)}</tr>"

        body = "\n".join(line(row, "td") for row in self.rows)
        notes = "<br>".join(map(html.escape, self.note.splitlines()))
        note = f"<p class=note>{notes}</p>" if notes else ""
        return f"<div class=wide><table><thead>{line(self.head, 'th')}</thead>\n<tbody>{body}</tbody></table></div>{note}"

    def _repr_html_(self) -> str:
        """Returns the table for a notebook."""
        return f"<div class=flowloom>{NOTEBOOK}{self.html()}</div>"


@dataclass(frozen=True)
class Row:
    """One metric of one system at one set of swept values, from the summary."""

    unit: str
    mean: float | None
    low: float | None
    high: float | None
    lowest: float | None = None
    """The smallest value of the seeds."""
    highest: float | None = None
    """The largest value of the seeds."""

    @property
    def half(self) -> float | None:
        """Half the width of the confidence interval; `None` with one seed."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


Place = tuple[str, tuple[Value, ...]]
"""A system and the values of the swept keys."""

ALL_FLOWS = "all flows"
"""The name of rows for all flows, unless a workload has it."""


def all_flows(results: Data) -> str:
    """Returns the name of the rows for all flows, which differs from those of all workloads."""
    name = ALL_FLOWS
    while name in results.workloads:
        name = f"({name})"
    return name


def places(results: Data) -> dict[Place, dict[str, Row]]:
    """Returns the summary by system and swept values, then by metric."""
    return {place: row for (place, _), row in by_workload(results, False).items()}


def by_workload(results: Data, workloads: bool) -> dict[tuple[Place, str | None], dict[str, Row]]:
    """Returns the summary by system, swept values and workload, then by metric; the workload `None`
    holds all flows.
    """
    found: dict[tuple[Place, str | None], dict[str, Row]] = {}
    systems = set(results.systems)
    for row in results.summary(workloads).to_pylist() if workloads else results.summary().to_pylist():
        place = (str(row["system"]), tuple(plain(row[key]) for key in results.keys))
        if place[0] in systems:
            metrics = found.setdefault((place, row.get("workload")), {})
            ends = (row[name] for name in ("ci95_low", "ci95_high", "lowest", "highest"))
            metrics[str(row["metric"])] = Row(str(row["unit"]), row["mean"], *ends)
    return found


def smallest(quantity: str, means: Iterable[float]) -> float:
    """Returns the smallest possible value of a metric: 1 for slowdowns and expansion ratios, 0 for others; no bound for
    changes, and for means below the bound, such as slowdowns over several paths.
    """
    bound = 1.0 if "slowdown" in quantity or quantity.endswith("_er") else 0.0
    return -math.inf if quantity.endswith("_drift") or any(mean < bound for mean in means) else bound


RANGE = re.compile(r"(\S+) +in (\S+)–(\S+)")
"""Matches a cell with the range of the seeds: `507 in 0–1520`."""


def column(rows: Sequence[Row | None], least: float = -math.inf) -> tuple[str, list[str]]:
    """Returns the column of a metric: its unit and its cells, `mean ± half the 95 % interval`, with
    the same decimals. An interval that passes `least`, the smallest possible value, is replaced by the range of the seeds:
    `mean in lowest–highest`.
    """
    known = [row for row in rows if row is not None and row.mean is not None]
    unit = known[0].unit if known else ""
    factor, name = words.scale(unit, [row.mean for row in known if row.mean is not None])
    places = words.decimals([row.mean / factor for row in known if row.mean is not None])
    halves = [f"{row.half / factor:.{places}f}" if row and row.half is not None else "" for row in rows]
    if all(float(half or 0) == 0 for half in halves):
        halves = [""] * len(rows)  # all seeds have the same value
    width = max(map(len, halves), default=0)
    cells: list[tuple[str, str]] = []
    for row, half in zip(rows, halves, strict=True):
        if row is None or row.mean is None:
            cells.append(("-", ""))
            continue
        if half and row.low is not None and row.low < least and row.lowest is not None and row.highest is not None:
            tail = f" in {row.lowest / factor:.{places}f}–{row.highest / factor:.{places}f}"
        else:
            tail = f" ± {half.rjust(width)}" if half else ""
        cells.append((f"{row.mean / factor:.{places}f}", tail))
    # The means are below each other.
    longest = max((len(tail) for _, tail in cells), default=0)
    return name, [mean + tail.rjust(longest) if mean != "-" else mean for mean, tail in cells]


def speaks(metric: str, rows: Iterable[dict[str, Row]]) -> bool:
    """Whether a metric is worth a column or a panel: one that is zero everywhere is not, except for
    those of `ALWAYS`.
    """
    means = [row[metric].mean for row in rows if metric in row]
    return any(mean is not None if metric in ALWAYS else mean for mean in means)


CITED = re.compile(r"(.+) \((\w+), Eq\. \d+\)")
"""Matches the description of a metric whose quantity is defined by the paper of an entry: `quantity
(ENTRY, Eq. 2), mean`.
"""


def definers() -> dict[str, str]:
    """Returns the entry whose paper defines a metric's quantity, by metric."""
    described = {str(metric["name"]): str(metric["summary"]) for metric in _core.entries("metrics")}
    cited = [found.groups() for text in described.values() if (found := CITED.match(text))]
    return {name: entry.lower() for name, text in described.items() for quantity, entry in cited if text.startswith(quantity)}


DEFINERS = definers()


def takes_part(results: Data, entry: str) -> bool:
    """Whether an entry fills a slot of a system of the scenario, or is the name of an ideal schedule."""
    systems = results.config.get("system", [])
    kinds = {part.get("kind") for system in systems for part in system.values() if isinstance(part, dict)}
    return entry in kinds or entry in results.config.get("ideal", [])


def defined(results: Data, metrics: Sequence[str]) -> list[str]:
    """Leaves out the metrics that the paper of an entry defines, if this entry takes no part in the results."""
    return [metric for metric in metrics if metric not in DEFINERS or takes_part(results, DEFINERS[metric])]


def refuse_unknown(metrics: Iterable[str]) -> None:
    """Raises `ValueError` for an unknown metric."""
    known = [entry["name"] for entry in _core.entries("metrics")]
    for unknown in (metric for metric in metrics if metric not in known):
        did = did_you_mean(unknown, known)
        raise InputError(f"there is no metric `{unknown}`{did}\nhint: `flowloom list metrics` prints all names")


def summary(results: Data, metrics: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> Table:
    """Returns the summary of results: one row per system and swept values, one column per metric
    with its 95 % interval.

    If there are several workloads, each has a row, and so have all flows together.
    """
    if metrics is not None and not metrics:
        raise InputError("`metrics` is empty\nhint: leave it out for the metrics that matter")
    metrics = [metrics] if isinstance(metrics, str) else metrics
    several = len(results.workloads) > 1 and results.filter is None
    wanted = {(run.system, tuple(run.keys.values())) for run in results.select(at)}
    found = {row: values for row, values in by_workload(results, several).items() if row[0] in wanted}
    refuse_unknown(metrics or ())
    have = {metric for row in found.values() for metric in row}
    # A metric that was asked for has a column even if the results do not have it.
    chosen = [metric for metric in (metrics or METRICS) if metrics or metric in have]
    if metrics is None:
        chosen = [m for m in defined(results, chosen) if speaks(m, found.values())]
        classes = [m for m in chosen if m.endswith(("_short", "_long"))]
        # If all flows are of one class, its metrics repeat those of all flows.
        if len({m.rsplit("_", 1)[1] for m in classes}) == 1:
            chosen = [m for m in chosen if m not in classes]
    # Rows to compare are next to each other: the systems of a workload.
    order = sorted(found, key=lambda row: (rank(results, row[0])[:-1], workload_rank(results, row[1]), rank(results, row[0])))
    # A swept key whose last word is the name of another column is shown in full.
    taken = [*results.keys, "system", "workload", *chosen]
    heads = ["system", *(["workload"] if several else []), *(words.key(key, taken) for key in results.keys)]
    columns = [[place[0] for place, _ in order]]
    if several:
        together = all_flows(results)
        columns.append([together if workload is None else workload for _, workload in order])
    columns += [[words.number(place[1][i]) for place, _ in order] for i in range(len(results.keys))]
    for metric in chosen:
        of_metric = [found[row].get(metric) for row in order]
        unit, cells = column(of_metric, smallest(metric, (row.mean for row in of_metric if row and row.mean is not None)))
        heads.append(words.axis(words.short(metric), unit))
        columns.append(cells)
    measured = [words.short(metric) for metric in chosen if metric in WINDOWED]
    ranges = any(RANGE.fullmatch(cell.strip()) for cells in columns for cell in cells)
    note = f"{intervals(results)}{RANGES if ranges else ''}; {over(results)}"
    if measured:
        note += f", but {words.joined(measured)} {words.window(windows(results.runs))}"
    absent = missing(results)
    if absent:
        note += f"\n{absent}"
    if results.ideals:
        note += f"\n{words.joined(results.ideals)}: ideal schedule of the same flows as a fluid, without packets, for comparison"
    left = 1 + several + len(results.keys)
    return Table(heads, list(zip(*columns, strict=True)), left, with_engine(note, results))


RANGES = ", in a–b: the smallest and the largest seed where that interval would pass the smallest possible value"
"""The note on cells with the range of the seeds."""


def over(results: Data) -> str:
    """Returns the text that says which flows the metrics of flows count, and from which start."""
    which = f"over flows where {results.filter}" if results.filter else "over all flows that count"
    steady = [run.not_measured for run in results.runs if run.not_measured]
    if steady:
        least, most = min(steady), max(steady)
        others = f"{least}" if least == most else f"{least} to {most}"
        return f"{which}; {others} flows do not count: under way at the start, after the last counted flow, or outside the window"
    return f"{which}, from an empty network"


def workload_rank(results: Data, workload: str | None) -> int:
    """Returns the rank of a workload: in the order of the scenario, then all flows together."""
    return len(results.workloads) if workload is None else results.workloads.index(workload)


def intervals(results: Data) -> str:
    """Returns the text that says what the intervals of a summary are, and over how many seeds."""
    seeds = seeds_of(results.runs)
    return f"mean ± half the 95 % confidence interval over {seeds}" if seeds else "one seed, no intervals"


def seeds_of(runs: Iterable[Run]) -> str:
    """Returns the number of seeds of points as text: `3 seeds`, or `1 to 3 seeds` if some have
    fewer; empty for single seeds.
    """
    counts = Counter((run.system, tuple(run.keys.values())) for run in runs if run.state == "done").values()
    least, most = min(counts, default=0), max(counts, default=0)
    return "" if most < 2 else f"{most} seeds" if least == most else f"{least} to {most} seeds"


def with_engine(note: str, results: Data, at: Mapping[str, object] | None = None) -> str:
    """Adds the note of the flow engine to a note, if the flow engine made some of the numbers."""
    return "\n".join(filter(None, [note, engine_note_of(results, at)]))


def rank(results: Data, place: Place) -> tuple[object, ...]:
    """Returns the sort key of a row: by swept values, then by the order of the systems in the scenario."""
    return (*(words.sorting(value) for value in place[1]), results.systems.index(place[0]))


MOST_LINKS = 50
"""The maximum number of rows of a table of links."""


def links(results: Data, at: dict[str, object], most: int = MOST_LINKS) -> Table:
    """Returns the busiest links of points, averaged over seeds: use and mean queue in the window,
    longest queue, drops of data, and pauses if neighbours can pause ports. The flow engine has no queues: `-`.
    """
    runs = results.select(at)
    longest = {
        str(row["point"]): float(row["value"] or 0) for row in results.per_seed().to_pylist() if row["metric"] == "max_paused_share"
    }
    rows: dict[str, list[dict[str, float]]] = {}
    for run in runs:
        ports = results.ports(at={"point": run.point}).to_pylist()
        most_paused = max((pauses(port)[1] for port in ports), default=0.0)
        for port in ports:
            used = run.utilisation(port["window_busy_ps"])
            count, paused_ps = pauses(port)
            # The metric is the share of the port that was paused longest.
            share = longest.get(run.point, 0.0) * paused_ps / most_paused if most_paused else 0.0
            own = {"utilisation": used, "pauses": count, "paused_share": share}
            rows.setdefault(str(port["name"]), []).append({**numbers(port), **own})

    def over_seeds(name: str, field: str) -> float:
        return mean([row[field] for row in rows[name]])

    def queues(name: str) -> list[str]:
        if not all("window_mean_queue_bytes" in row for row in rows[name]):
            return ["-", "-"]
        largest = max(row["max_queue_bytes"] for row in rows[name])
        return [f"{over_seeds(name, 'window_mean_queue_bytes') / 1e3:.1f}", f"{largest / 1e3:.1f}"]

    pausing = any(run.point in longest for run in runs)
    busiest = sorted(rows, key=lambda name: -over_seeds(name, "utilisation"))
    cells = [
        [
            name,
            f"{over_seeds(name, 'rate_bps') / 1e9:g}",
            f"{100 * over_seeds(name, 'utilisation'):.1f}",
            *queues(name),
            f"{over_seeds(name, 'data_drops'):.0f}",
            f"{over_seeds(name, 'marks'):.0f}",
            *([f"{over_seeds(name, 'pauses'):.0f}", f"{100 * over_seeds(name, 'paused_share'):.2g}"] if pausing else []),
        ]
        for name in busiest[:most]
    ]
    heads = ["link", "rate (Gbit/s)", "busy (%)", "mean queue (kB)", "max queue (kB)", "data drops", "marks"]
    heads += ["pauses", "paused (%)"] if pausing else []
    note = f"busy and mean queue {words.window(windows(runs))}; all other columns over the whole run"
    if pausing:
        note += "; paused: of the time from the first start of a flow to the last finish, its classes added up"
        worst = max(rows, key=lambda name: over_seeds(name, "paused_share"))
        if over_seeds(worst, "paused_share") > 0:
            note += f"\npaused longest: {worst}, {100 * over_seeds(worst, 'paused_share'):.2g} % of this time"
        else:
            note += "\nno link was paused"
    # Packets that no next hop can take are lost at switches, and no link counts them.
    chosen = {run.point for run in runs}
    for row in results.points().to_pylist():
        if row["point"] in chosen and row["no_next_hop"]:
            note += (
                f"\npackets lost at switches that had no next hop, which no link counts (seed {row['seed']}): {row['no_next_hop']}"
            )
    if len(busiest) > most:
        note += f"\nthe {most} busiest of {len(busiest)} links; `ports.parquet` has all of them"
    return Table(heads, cells, 1, with_engine(note, results, at))


BUFFERS = [str(entry["name"]) for entry in _core.entries("buffer")]
"""The buffers, which alone pause ports. Plug-ins may have counters of the same names."""


def pauses(port: Mapping[str, Any]) -> tuple[float, float]:
    """Returns how often a port was paused, and for how long in ps, its classes added up."""

    def over_buffers(counter: str) -> float:
        return sum(float(port.get(f"{buffer}.{counter}") or 0) for buffer in BUFFERS)

    return over_buffers("pauses"), over_buffers("paused_ps")


def numbers(row: dict[str, object]) -> dict[str, float]:
    """Returns the numeric fields of a row."""
    return {key: float(value) for key, value in row.items() if isinstance(value, int | float)}
