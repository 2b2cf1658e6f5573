"""Numbers of one point that are not metrics, computed from its flows and ports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowloom import _core
from flowloom.api.results import Results
from flowloom.figures.drawing import Array, numbers
from flowloom.runs.data import Data, Run


def flows(results: Data, run: Run, *names: str) -> list[Array]:
    """Returns columns of the counted flows of a point, each with one value per flow; NaN for missing values."""
    table = results.counted(names, {"point": run.point})
    return [numbers(table, name) for name in names]


def ports(results: Data, run: Run, *names: str) -> list[Array]:
    """Returns columns of the ports of a point, each with one value per port; NaN for missing values."""
    table = results.ports(names, {"point": run.point})
    return [numbers(table, name) for name in names]


def totals(columns: Sequence[Array]) -> list[float]:
    """Returns the sum of each column."""
    return [float(np.nansum(one)) for one in columns]


def share(part: float, whole: float) -> float:
    """Divides a part by the whole; NaN if the whole is zero."""
    return part / whole if whole else np.nan


def statistic(values: Array, per_mille: int | None = None) -> float:
    """Returns the mean of the values without NaN, or a quantile in thousandths; NaN without values."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.nan
    found = float(known.mean()) if per_mille is None else _core.quantile(np.sort(known).tolist(), per_mille)
    return np.nan if found is None else found


def transport(results: Data, run: Run) -> str:
    """Returns the transport of a point. The names of its counters' columns begin with it."""
    return str(next(system["transport"]["kind"] for system in results.config["system"] if system["label"] == run.system))


def wasted_credits(results: Data, run: Run) -> float:
    """Returns the share of credits for which the sender had nothing to send, for a transport whose
    receivers pace credits.
    """
    kind = transport(results, run)
    return share(*totals(flows(results, run, f"{kind}.wasted", f"{kind}.credits")))


def results_of(results: Data, scenario: str) -> Results | None:
    """Returns the results of another scenario of the paper, if their folder is next to that of
    these results.
    """
    folder = None if results.path is None else results.path.parent / scenario
    return Results.open(folder) if folder is not None and (folder / "points.parquet").is_file() else None
