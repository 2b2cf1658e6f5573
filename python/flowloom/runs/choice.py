"""Chooses points and systems, and refuses those that the results do not have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import TypeVar

from flowloom import _core
from flowloom.base.errors import UnknownNameError
from flowloom.runs.data import Data
from flowloom.runs.points import engine_note, plain

D = TypeVar("D", bound=Data)


def has_value(results: Data, name: str, value: object) -> bool:
    """Whether a point has a value of a key. Raises `KeyError` for a key that is not swept."""
    return plain(value) in results._values(name)


def refuse_absent(results: Data, at: Mapping[str, object] | None) -> None:
    """Raises `KeyError` for a key that is not swept, and for values that no point has."""
    for name, wanted in (at or {}).items():
        for value in wanted if isinstance(wanted, list | tuple) else [wanted]:
            if not has_value(results, name, value):
                known = results._values(name)
                listed = ", ".join(map(str, known[:20])) + (f" and {len(known) - 20} more" if known[20:] else "")
                raise UnknownNameError(f"no point has `{name}` = `{value}`\nhint: `{name}` is one of {listed}")
    if at and not results.select(at):
        asked = " and ".join(f"`{name}` = `{value}`" for name, value in at.items())
        raise UnknownNameError(f"no point has {asked} together\nhint: leave out one of these keys")


def with_systems(results: D, systems: Sequence[str]) -> D:
    """Returns the results of these systems only, in this order. Raises `KeyError` for a system that
    was not run.
    """
    for name in [name for name in systems if name not in results.systems]:
        near = _core.nearest(name, results.systems)
        did = f"; did you mean `{near}`?" if near else ""
        raise UnknownNameError(f"there is no system `{name}`{did}\nhint: the systems are {', '.join(results.systems)}")
    chosen = copy(results)
    chosen.__dict__["runs"] = [run for name in dict.fromkeys(systems) for run in results.runs if run.system == name]
    return chosen


def engine_note_of(results: Data, at: Mapping[str, object] | None = None) -> str:
    """Returns the note for numbers of these points if the flow engine made some of them; otherwise
    an empty text.
    """
    return engine_note(run.engine for run in results.select(at) if not run.ideal)
