"""Results in other programs' formats: one module per format, and one line in `FORMATS`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from flowloom.runs.data import Data, Run

Write = Callable[[Data, Run, Path], None]
"""Writes a point to a file."""

FORMATS: Mapping[str, str] = {"hpcc": "txt", "htsim": "cm", "pcapng": "pcapng", "perfetto": "pftrace"}
"""By the name of the module, the suffix of the files."""


def write(results: Data, form: str, point: str | None = None, out: Path | None = None) -> Path:
    """Writes a point of results in a format; `point` names it where there are several. Returns the file.

    Raises `ValueError` for a format or point that there is not, and for what the format cannot hold, `ImportError` where a library
    is missing.
    """
    if form not in FORMATS:
        near = difflib.get_close_matches(form, FORMATS, 1)
        did = f"; did you mean `{near[0]}`?" if near else ""
        raise ValueError(f"there is no format `{form}`{did}\nhint: one of {', '.join(FORMATS)}")
    run = chosen(results, point)
    writer: Write = import_module(f"flowloom.exports.{form}").write
    path = out or (results.path or Path()) / f"{run.point}.{FORMATS[form]}"
    writer(results, run, path)
    return path


def chosen(results: Data, point: str | None) -> Run:
    """The point of this name, or the only one."""
    runs = [run for run in results.runs if run.state == "done" and not run.ideal]
    if point is None and len(runs) == 1:
        return runs[0]
    found = next((run for run in runs if run.point == point), None)
    if found is None:
        what = "the results have several points" if point is None else f"there is no point `{point}`"
        names = ", ".join(run.point for run in runs[:5]) + (" …" if runs[5:] else "")
        raise ValueError(f"{what}\nhint: name one with `--point`: {names}")
    return found
