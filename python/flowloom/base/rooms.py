"""Rooms of the package: folders with one module per entry and a list of these modules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType

from flowloom import _core


@dataclass(frozen=True)
class Meta:
    """What an entry says of itself: `META` of its module."""

    summary: str
    """What it is, in one line without a full stop."""
    needs: str
    """The table of results that it is made from."""
    source: str = ""
    """Where its format is defined, if another program defines it."""
    suffix: str = ""
    """The suffix of the files that it writes, if it always writes the same."""
    metric: str = ""
    """A metric of its quantity, if not all results have that: it is shown by itself only with this metric."""


@dataclass(frozen=True)
class Entry:
    """An entry of a room."""

    name: str
    meta: Meta
    module: ModuleType


def room(package: str, names: Sequence[str]) -> dict[str, Entry]:
    """The entries of a room by name, in this order. `package` is its folder, `names` are modules in it."""
    modules = [import_module(f"{package}.{name}") for name in names]
    return {name: Entry(name, module.META, module) for name, module in zip(names, modules, strict=True)}


def refuse_unknown(what: str, name: str, known: Iterable[str]) -> None:
    """Raises `ValueError` for the name of what is no `what`."""
    names = list(known)
    if name not in names:
        near = _core.nearest(name, names)
        did = f"; did you mean `{near}`?" if near else ""
        raise ValueError(f"`{name}` is not a {what}{did}\nhint: one of {', '.join(names)}")
