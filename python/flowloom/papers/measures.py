"""Numbers of one point that are no metrics, from its flows and ports."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from flowloom import _core
from flowloom.api.results import Results
from flowloom.figures.drawing import Array, numbers
from flowloom.runs.data import Data, Run


def flows(results: Data, run: Run, *names: str) -> list[Array]:
    """Columns of the flows of a point that count, each with one value per flow; NaN for what is missing."""
    table = results.counted(names, {"point": run.point})
    return [numbers(table, name) for name in names]


def ports(results: Data, run: Run, *names: str) -> list[Array]:
    """Columns of the ports of a point, each with one value per port; NaN for what is missing."""
    table = results.ports(names, {"point": run.point})
    return [numbers(table, name) for name in names]


def totals(columns: Sequence[Array]) -> list[float]:
    """The sum of each column."""
    return [float(np.nansum(one)) for one in columns]


def share(part: float, whole: float) -> float:
    """A share; NaN of nothing."""
    return part / whole if whole else np.nan


def statistic(values: Array, per_mille: int | None = None) -> float:
    """The mean of the values that are not missing, or their quantile in thousandths; NaN of none."""
    known = values[~np.isnan(values)]
    if not len(known):
        return np.nan
    found = float(known.mean()) if per_mille is None else _core.quantile(np.sort(known).tolist(), per_mille)
    return np.nan if found is None else found


def transport(results: Data, run: Run) -> str:
    """The transport of a point, by which the columns of what it counts begin."""
    return str(next(system["transport"]["kind"] for system in results.config["system"] if system["label"] == run.system))


def wasted_credits(results: Data, run: Run) -> float:
    """The share of credits that find nothing to send, of a transport whose receivers pace credits."""
    kind = transport(results, run)
    return share(*totals(flows(results, run, f"{kind}.wasted", f"{kind}.credits")))


def beside(results: Data, scenario: str) -> Results | None:
    """The results of another scenario of the paper, where their folder lies beside that of these."""
    folder = None if results.path is None else results.path.parent / scenario
    return Results.open(folder) if folder is not None and (folder / "points.parquet").is_file() else None
