"""Chooses points and systems, and refuses those that the results do not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TypeVar

from flowloom.base.errors import InputError, UnknownNameError, did_you_mean
from flowloom.runs.data import Data, Run
from flowloom.runs.points import engine_note

D = TypeVar("D", bound=Data)


def has_value(results: Data, name: str, value: object) -> bool:
    """Whether a point has a value of a key. Raises `KeyError` for a key that is not swept."""
    return results._read(name, value) in results._values(name)


def one_point(results: Data, point: str | None, kind: str, runs: Sequence[Run]) -> Run:
    """Returns the point with this name, or the only one of `runs`: the points of a `kind`, which the message names."""
    if point is not None:
        results.select({"point": point})
    found = [run for run in runs if point in (None, run.point)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(run.point for run in runs[:5]) + (" …" if runs[5:] else "")
    if not runs:
        raise InputError(f"the results have no {kind} point\nhint: repeat the `flowloom run` that wrote the folder")
    what = f"the results have {len(runs)} {kind} points" if point is None else f"`{point}` is not a {kind} point"
    raise InputError(f"{what}\nhint: name one with `--point`: {names}")


def with_systems(results: D, systems: Sequence[str]) -> D:
    """Returns the results of these systems only, in this order. Raises `KeyError` for a system that
    was not run.
    """
    for name in [name for name in systems if name not in results.systems]:
        did = did_you_mean(name, results.systems)
        raise UnknownNameError(f"there is no system `{name}`{did}\nhint: the systems are {', '.join(results.systems)}")
    chosen = copy(results)
    chosen.__dict__["runs"] = [run for name in dict.fromkeys(systems) for run in results.runs if run.system == name]
    return chosen


def engine_note_of(results: Data, at: Mapping[str, object] | None = None) -> str:
    """Returns the note for numbers of these points if the flow engine made some of them; otherwise
    an empty text.
    """
    return engine_note(run.engine for run in results.select(at) if not run.ideal)
