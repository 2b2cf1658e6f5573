"""Rooms of the package: folders with one module per entry, and a list of these modules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from flowloom.base.errors import InputError, did_you_mean


@dataclass(frozen=True)
class Meta:
    """The description of an entry: `META` of its module."""

    summary: str
    """A description in one line, without a full stop."""
    needs: str
    """The table of results that the entry reads."""
    source: str = ""
    """The definition of the format, if another program defines it."""
    suffix: str = ""
    """The suffix of the files that the entry writes, if all of them have the same."""
    bands: bool = False
    """Whether the figure has 95 % bands where there are several seeds."""
    metric: str = ""
    """A metric that results must have for the figure to be drawn by default; empty if it is always drawn."""


@dataclass(frozen=True)
class Entry:
    """An entry of a room."""

    name: str
    meta: Meta
    module: ModuleType


def room(package: str, names: Sequence[str]) -> dict[str, Entry]:
    """Returns the entries of a room by name, in the given order. `package` is the folder of the
    room, `names` are its modules.
    """
    modules = [import_module(f"{package}.{name}") for name in names]
    return {name: Entry(name, module.META, module) for name, module in zip(names, modules, strict=True)}


def refuse_unknown(what: str, name: str, known: Iterable[str]) -> None:
    """Raises `ValueError` for a name that is not in `known`. `what` is the noun for the names."""
    names = list(known)
    if name not in names:
        did = did_you_mean(name, names)
        raise InputError(f"`{name}` is not a {what}{did}\nhint: one of {', '.join(names)}")
