"""The results that a command reads, and its choice of points and systems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowloom.base.errors import InputError
from flowloom.cli import console

if TYPE_CHECKING:
    from flowloom.api.results import Results
    from flowloom.runs.data import Data

Options = Mapping[str, Any]

# Arrow takes long to import: each function imports it when it is called.


def folders(options: Options) -> list[Path]:
    """Returns the results folders of a command. Raises `ValueError` for a folder without results."""
    found = [Path(console.path(folder)) for folder in options.get("dirs") or []]
    if not found:
        raise InputError("no results folder was given\nhint: `flowloom run FILE` writes one")
    for folder in found:
        if not (folder / "points.parquet").is_file():
            hint = "give the folder that `flowloom run` printed, such as `results/demo`"
            raise InputError(f"`{folder}` is not a results folder: it has no `points.parquet`\nhint: {hint}")
    return found


def opened(options: Options) -> list[Results]:
    """Opens the results folders of a command, with the flows that `--where` chooses."""
    from flowloom.api.results import Results

    return [Results.open(folder).where(options.get("where")) for folder in folders(options)]


def warn_missing(results: Results) -> None:
    """Warns of points that are missing, if the command prints no table that says it."""
    from flowloom.runs.missing import missing

    absent = missing(results)
    if absent:
        console.complain(f"warning: {absent}")


def place(options: Options, results: Data) -> dict[str, list[str]] | None:
    """Returns the values that `--at` gives, by key: `--at load=0.8`, or several as `--at load=0.4,0.8`."""
    from flowloom.runs.choice import has_value

    found: dict[str, list[str]] = {}
    for item in options.get("at") or []:
        key, sign, value = item.partition("=") if isinstance(item, str) else (item[0], "=", item[1])
        if not sign:
            raise InputError(f"`{item}` is not a key and a value\nhint: write both, such as `--at load=0.8`")
        # A value may contain commas.
        values = [value] if has_value(results, key, value) else value.split(",")
        found.setdefault(key, []).extend(values)
    return found or None


def chosen_systems(options: Options, results: Data) -> list[str] | None:
    """Returns the systems that `--systems` gives: `--systems A,B`, or the option once for each label."""
    found: list[str] = []
    for item in options.get("systems") or []:
        # A label may contain commas.
        found += [item] if item in results.systems else [name.strip() for name in item.split(",")]
    return found or None
