"""Points that run again, to record the packets around flows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pyarrow as pa

from flowloom import _core
from flowloom.base.errors import InputError
from flowloom.runs.choice import one_point
from flowloom.runs.data import Data, read


def runnable(results: Data) -> _core.Results:
    """Returns the compiled part of results, which can run points again."""
    return cast(_core.Results, results._core)


def around(results: Data, flow: int | Sequence[int], point: str | None = None, files: str | Path = ".") -> pa.Table:
    """Runs a point again and returns the packets around flows, for `Results.around`."""
    flows = [flow] if isinstance(flow, int) else list(flow)
    if not flows:
        raise InputError("no flow is named\nhint: give the `flow_id` of one flow or several")
    run = one_point(results, point, "finished", [run for run in results.runs if run.state == "done"])
    return read(runnable(results).around(run.point, flows, str(files)))
