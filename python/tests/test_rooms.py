"""Rooms of the package: what each entry says of itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from pathlib import Path

import flowloom
import pytest
from flowloom import _core, exports
from flowloom.base.rooms import Entry, refuse_unknown, room
from flowloom.figures.kinds import KINDS
from flowloom.runs.core import Core

PACKAGE = Path(flowloom.__file__).parent
HELPERS = {"exports": {"started"}}
"""Files in the folder of a room that are no entries: what entries share."""
ROOMS = {"figures/kinds": (KINDS, "draw"), "exports": (exports.FORMATS, "write")}


@pytest.mark.parametrize("folder", ROOMS)
def test_every_file_of_a_room_is_an_entry(folder: str) -> None:
    known, _ = ROOMS[folder]
    files = {path.stem for path in (PACKAGE / folder).glob("*.py")} - {"__init__"} - HELPERS.get(folder, set())
    assert files == known.keys()


@pytest.mark.parametrize(("known", "does"), ROOMS.values(), ids=ROOMS)
def test_entries_describe_themselves(known: Mapping[str, Entry], does: str) -> None:
    tables = {name for name in vars(Core) if not name.startswith("_")}
    metrics = {metric["name"] for metric in _core.entries("metrics")}
    for name, entry in known.items():
        meta = entry.meta
        assert entry.name == name and meta.needs in tables and meta.metric in metrics | {""}, name
        assert len(meta.summary) > 20 and meta.summary[0].isupper() and "\n" not in meta.summary and meta.summary[-1] != ".", name
        assert next(iter(inspect.signature(getattr(entry.module, does)).parameters)) == "results", name


def test_figures_can_be_drawn_of_chosen_points_and_formats_have_a_source_and_a_suffix() -> None:
    assert all("at" in inspect.signature(kind.module.draw).parameters for kind in KINDS.values())
    assert all(form.meta.source and re.fullmatch("[a-z]+", form.meta.suffix) for form in exports.FORMATS.values())


def test_a_room_is_its_list_and_refuses_other_names() -> None:
    assert list(room("flowloom.exports", ["htsim", "hpcc"])) == ["htsim", "hpcc"]
    with pytest.raises(ModuleNotFoundError):
        room("flowloom.exports", ["none"])
    with pytest.raises(ValueError, match=r"^`htsin` is not a format; did you mean `htsim`\?\nhint: one of hpcc, htsim$"):
        refuse_unknown("format", "htsin", ["hpcc", "htsim"])
