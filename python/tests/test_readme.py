"""README.md says what runs say today."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from flowloom import _core

ROOT = Path(__file__).parents[2]


def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", ROOT / "docs/readme.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_tables_and_the_figure_are_those_of_todays_results() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    written, _ = module().parts(readme)
    assert module().filled(readme, written) == readme, "README.md is stale: run `make docs`"


def test_a_part_is_replaced_as_a_whole() -> None:
    text = "<!-- a: x -->\n<!-- end -->\n<!-- b: x -->\nold\nolder\n<!-- end -->\n"
    assert module().filled(text, {"b": "new", "a": "1"}) == "<!-- a: x -->\n1\n<!-- end -->\n<!-- b: x -->\nnew\n<!-- end -->\n"


def test_the_first_scenario_is_without_warnings() -> None:
    text = module().scenario((ROOT / "README.md").read_text(encoding="utf-8"))
    assert _core.Scenario.from_toml(text).warnings == []
