"""Points that run again, to record the packets around flows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa

from flowloom import _core
from flowloom.runs.data import Data, read


def runnable(results: Data) -> _core.Results:
    """Returns the compiled part of results, which can run points again."""
    return cast(_core.Results, results._core)


def around(results: Data, flow: int | Sequence[int], point: str | None = None, files: str | Path = ".") -> pa.Table:
    """Runs a point again and returns the packets around flows, for `Results.around`."""
    flows = [flow] if isinstance(flow, int) else list(flow)
    if point is None and len(results.runs) > 1:
        raise ValueError(f"the run has {len(results.runs)} points\nhint: name one with `point`")
    return read(runnable(results).around(point or results.runs[0].point, flows, str(files)))
