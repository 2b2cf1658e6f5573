"""The public names of flowloom: types, documentation, and options of figures."""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import flowloom
import pytest
import typed_example
from flowloom import Results, Run, Scenario
from flowloom.figures import plots
from flowloom.figures.kinds import KINDS

EXAMPLE = Path(typed_example.__file__)


def test_the_typed_example_runs(tmp_path: Path) -> None:
    typed_example.main(tmp_path / "run")


def test_the_typed_example_passes_the_strict_type_checker(tmp_path: Path) -> None:
    """As in the program of a user: the package is found where it is installed, and is typed since it has `py.typed`."""
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "wrong.py").write_text("import flowloom\n\nflowloom.open('r').plot('metrics', widht=3)\n")
    package = Path(flowloom.__file__).parents[1]
    environment = {key: value for key, value in os.environ.items() if key != "MYPYPATH"} | {"PYTHONPATH": str(package)}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--python-executable", sys.executable]
    command += [EXAMPLE.name, "wrong.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    wrong, *_, total = done.stdout.splitlines()
    assert wrong.startswith("wrong.py:3: ") and 'Unexpected keyword argument "widht"' in wrong, done.stdout + done.stderr
    assert total == "Found 1 error in 1 file (checked 2 source files)"


def public() -> Iterator[tuple[str, Callable[..., object]]]:
    """The functions and methods of the package that are written in Python, by name."""
    for name in ("run", "open", "compare", "plot"):
        yield name, getattr(flowloom, name)
    for owner in (Results, Run, Scenario):
        for name, member in inspect.getmembers(owner, callable):
            if not name.startswith("_"):
                yield f"{owner.__name__}.{name}", member


FUNCTIONS = dict(public())


def sections(text: str) -> dict[str, list[str]]:
    """The sections of a docstring in the style of numpydoc, by their titles."""
    found = re.split(r"^(\w[\w ]+)\n-{4,}\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return {title: body.splitlines() for title, body in zip(found[1::2], found[2::2], strict=True)}


def documented(lines: list[str]) -> list[str]:
    """The parameters that a section has, in their order."""
    heads = [line.partition(" : ")[0] for line in lines if re.match(r"[*\w, ]+ : ", line)]
    return [name.strip().lstrip("*") for head in heads for name in head.split(",")]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_parameter_and_result_is_documented(name: str) -> None:
    found, parameters = sections(FUNCTIONS[name].__doc__ or ""), inspect.signature(FUNCTIONS[name]).parameters
    assert documented(found.get("Parameters", [])) == [one for one in parameters if one != "self"]
    assert "Returns" in found and all(one.kind is not one.VAR_KEYWORD for one in parameters.values())


@pytest.mark.parametrize("owner", [Results, Run, Scenario])
def test_every_property_is_documented(owner: type) -> None:
    for name, member in inspect.getmembers(owner):
        if not name.startswith("_") and not callable(member) and name not in ("filter", *vars(Run)):
            assert inspect.getdoc(member), name


def test_figures_take_the_options_of_all_kinds_by_name() -> None:
    own = {option for name in KINDS for option in plots.own_options(name)}
    expected = own | {"systems", *plots.LOOK}
    assert set(inspect.signature(Results.plot).parameters) - {"self", "kind"} == expected
    assert set(inspect.signature(flowloom.plot).parameters) - {"results", "kind", "out"} == expected


def test_the_help_of_the_package_is_one_screen_and_lists_every_name() -> None:
    text = inspect.getdoc(flowloom) or ""
    assert len(text.splitlines()) <= 40
    for name in (*flowloom.__all__, "open"):
        assert name.startswith("__") or re.search(rf"^    {name} ", text, re.MULTILINE), name
    assert {name for name in dir(flowloom) if not name.startswith("__")} == {
        *(name for name in flowloom.__all__ if not name.startswith("__")),
        "open",
        "Progress",
        "Seeds",
    }
