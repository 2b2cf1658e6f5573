"""Rooms of the package: what each entry says of itself, and that no other code names entries."""

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


ORDINARY = {
    "file": "a file",
    "table": "a table",
    "long": "not short",
    "fixed": "does not change",
    "plugin": "a file that is loaded",
    "strict": "an argument of `zip`, and `--strict`",
    "complete": "a run with all its points",
    "slack": "room that is left",
    "uniform": "a distribution, also of SciPy",
    "ps": "picoseconds",
    "incast": "a kind of traffic, and an exercise of the lab",
    "requests": "a kind of traffic",
    "shuffle": "a kind of traffic",
    "collective": "what ranks do together, and a workload",
    "chain": "messages that wait for each other, and a topology",
    "rail": "a group of links, and a topology",
}
"""Names of entries that are words or arguments too, with what they mean where they are used."""


def named(text: str, names: set[str]) -> set[str]:
    """The names that a text contains, in small or capital letters. Examples in docstrings are scenarios, which name entries."""
    lines = [line for line in text.splitlines() if not line.strip().startswith((">>> ", "... "))]
    found = re.findall(rf"(?<!\w)(?:{'|'.join(names)})(?!\w)", "\n".join(lines), re.IGNORECASE)
    return {name.lower() for name in found}


def entries() -> set[str]:
    """The names of the entries of all rooms of the compiled part."""
    return {entry["name"] for room in _core.rooms() if room != "metrics" for entry in _core.entries(room)}


def test_no_generic_code_names_an_entry() -> None:
    used, wrong = set[str](), []
    for path in sorted(path for path in PACKAGE.rglob("*") if path.suffix in (".py", ".js", ".css", ".html")):
        inside = path.relative_to(PACKAGE)
        if inside.parts[0].endswith("_data"):
            continue
        here = named(path.read_text(encoding="utf-8"), entries())
        used |= here
        # The file of an entry of a Python room, and its line in the list.
        own = {path.stem} if path.stem != "__init__" else {other.stem for other in path.parent.glob("*.py")}
        wrong += [f"{inside} names `{name}`" for name in sorted(here - own - ORDINARY.keys())]
    assert not wrong, "\n".join(wrong)
    assert ORDINARY.keys() <= used & entries(), "an exception is not needed"


def test_a_name_is_found_in_any_spelling_but_not_in_other_words() -> None:
    names = {"merp", "pdq", "edf_sjf"}
    assert named('takes_part(results, "merp")  # of PDQ\n', names) == {"merp", "pdq"}
    assert named("mperp merps my_merp edf_sjf2\n    >>> run('merp')\n", names) == set()


def test_metrics_that_a_paper_defines_belong_to_its_entry() -> None:
    from flowloom.runs.tables import DEFINERS

    assert set(DEFINERS) == {"mean_er", "p50_er", "p99_er", "p999_er", "max_er"}
    assert set(DEFINERS.values()) == {"merp"} <= entries()
