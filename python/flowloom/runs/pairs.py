"""Comparisons of systems as text tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from flowloom.base import words
from flowloom.runs.tables import Table

RATIOS = (
    ("FCT b / a", "mean_fct_ratio", "ci95"),
    ("mean FCT b / a", "ratio_of_means", "of_means_ci95"),
    ("p99 slowdown b / a", "p99_slowdown_ratio", "p99_ci95"),
)
"""The ratios of `pairs`: head, column of the ratio, and first words of the columns of its interval."""


def pairs(compared: pa.Table, note: str = "") -> Table:
    """Returns the table of a comparison of systems, with what its ratios are."""
    known = [name for name in compared.column_names if compared[name].null_count < compared.num_rows]
    rows = compared.select(known).to_pylist()
    systems = ["system_a", "system_b"]
    swept = known[: known.index(systems[0])]
    counts = ["seeds", "flows", *(name for name in ("only_a", "only_b") if any(row[name] for row in rows)), "b_faster"]
    rates = [name for name in ("miss_rate_a", "miss_rate_b") if name in known]

    def cell(row: Mapping[str, Any], name: str) -> str:
        value = row[name]
        return f"{value:.3g}" if isinstance(value, float) else words.number(value)

    def ratio(row: Mapping[str, Any], name: str, interval: str) -> str:
        value, low, high = (row.get(column) for column in (name, f"{interval}_low", f"{interval}_high"))

        def digits(number: float) -> str:
            return f"{number:.3f}" if number >= 0.1 else f"{number:#.2g}"

        if value is None:
            return "-"
        return digits(value) + (f" [{digits(low)}, {digits(high)}]" if low is not None and high is not None else "")

    def chance(row: Mapping[str, Any]) -> str:
        p = row["p_holm"]
        return "-" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}"

    ratios = [(head, name, interval) for head, name, interval in RATIOS if name in known]
    has_p, has_more = "p_holm" in known, "more_seeds" in known

    def more(row: Mapping[str, Any]) -> str:
        seeds = row["more_seeds"]
        return "-" if seeds is None else f"≥ {seeds}" if seeds >= 1000 else str(seeds)

    head = [words.key(name, known) for name in [*systems, *swept, *counts]]
    for title, name, interval in ratios:
        head += [title + (" [95 %]" if f"{interval}_low" in known else "")]
        head += ["p"] if name == "mean_fct_ratio" and has_p else []
        head += ["more seeds"] if name == "mean_fct_ratio" and has_more else []
    head += [words.key(name, known) for name in rates]
    cells = []
    for row in rows:
        line = [cell(row, name) for name in [*systems, *swept, *counts]]
        for _, name, interval in ratios:
            line += [ratio(row, name, interval)] + ([chance(row)] if name == "mean_fct_ratio" and has_p else [])
            line += [more(row)] if name == "mean_fct_ratio" and has_more else []
        cells.append(line + [cell(row, name) for name in rates])
    tested = sum(row["p_holm"] is not None for row in rows) if has_p else 0
    notes = [
        "b / a: above 1, flows take longer in system b. FCT: geometric mean over pairs of flows; mean FCT: ratio of the means.",
    ]
    if tested:
        corrected = f", corrected for {tested} comparisons (Holm)" if tested > 1 else ""
        notes.append(f"p: chance of a ratio of FCTs at least as far from 1 if the systems were equal, over seeds{corrected}.")
    else:
        notes.append("No intervals: they need at least two seeds.")
    if has_more:
        notes.append("more seeds: would separate FCTs from equal ones (95 %), if their mean and spread stay.")
    if any(row.get("p99_ci95_low") is None for row in rows):
        notes.append("A ratio of p99 without interval: too few flows; a seed has fewer than 200 pairs.")
    return Table(head, cells, len(systems), "\n".join(filter(None, [*notes, note])))
