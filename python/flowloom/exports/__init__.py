"""Exports of results in formats of other programs: one module per format with `META` and `write`,
and one line in the list.
"""

from __future__ import annotations

from pathlib import Path

from flowloom.base.rooms import refuse_unknown, room
from flowloom.runs.choice import one_point
from flowloom.runs.data import Data, Run

FORMATS = room(
    __name__,
    [
        "hpcc",
        "htsim",
        "pcapng",
        "perfetto",
    ],
)
"""All formats by name."""


def write(results: Data, form: str, point: str | None = None, out: Path | None = None) -> Path:
    """Writes a point of results in a format. Returns the file.

    `point` names the point; it is needed if there are several. Raises `ValueError` for an unknown
    format or point and for results that the format cannot hold, and `ImportError` if a library is
    missing.
    """
    refuse_unknown("format", form, FORMATS)
    run = chosen(results, point)
    path = out or (results.path or Path()) / f"{run.point}.{FORMATS[form].meta.suffix}"
    FORMATS[form].module.write(results, run, path)
    return path


def chosen(results: Data, point: str | None) -> Run:
    """Returns the point with this name, or the only point."""
    return one_point(results, point, "simulated", [run for run in results.runs if run.state == "done" and not run.ideal])
