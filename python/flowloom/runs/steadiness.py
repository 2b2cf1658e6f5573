"""Warnings for runs that are too short for their means."""

from __future__ import annotations

from collections.abc import Mapping

from flowloom.base import words
from flowloom.runs.data import Data, plain

DRIFT = 0.2
"""The change of the mean slowdown over a run, as a share of the mean, above which there is a warning."""

LOAD = 0.03
"""The deviation of the load of the drawn flows from that of the scenario above which there is a warning."""


def unsteady(results: Data) -> list[str]:
    """Returns a warning for means that still change over the run, and one for flows whose load
    differs from that of the scenario.
    """
    found = []
    rows = [row for row in results.summary().to_pylist() if row["mean"] is not None and row["system"] in results.systems]
    places = {key: [row for row in rows if row["metric"] == key] for key in ("slowdown_drift", "load_error")}

    def place(row: Mapping[str, object]) -> str:
        keys = "".join(
            f", {words.key(key, results.keys)} {words.number(plain(row[key]))}" for key in results.keys if row[key] is not None
        )
        return f"{row['system']}{keys}"

    # The means of tenths differ by chance: a drift counts only if its interval over seeds excludes zero.
    known = [row for row in places["slowdown_drift"] if row["ci95_low"] is not None]
    drifting = [row for row in known if row["ci95_low"] * row["ci95_high"] > 0 and abs(row["mean"]) > DRIFT]
    if drifting:
        worst = max(drifting, key=lambda row: abs(row["mean"]))
        found.append(
            f"the mean slowdown still changes over the run at {len(drifting)} of {len(known)} places, so it depends on the number "
            f"of flows: most in {place(worst)}, by {100 * worst['mean']:+.0f} % of the mean from the first tenth of the flows to "
            "the last; set more `flows`"
        )
    missed = [row for row in places["load_error"] if abs(row["mean"]) > LOAD]
    if missed:
        worst = max(missed, key=lambda row: abs(row["mean"]))
        found.append(
            "the flows offer another load than the scenario asks for: "
            f"{100 * worst['mean']:+.1f} % in {place(worst)}, mean over seeds; "
            "use more `flows` or seeds, or set `normalize_load = true`"
        )
    return found
