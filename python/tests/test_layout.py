"""How the package's files and folders depend on each other."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Mapping, Set
from graphlib import TopologicalSorter
from pathlib import Path

import flowloom

PACKAGE = Path(flowloom.__file__).parent

ORDER = ("base", "runs", "exports", "figures", "why", "pages", "clusters", "api", "papers", "seek", "cli", "")
"""The folders from the lowest to the highest: a file imports from its own folder and those before it; the last is the package."""

FILES = {
    path: path.relative_to(PACKAGE).with_suffix("").parts
    for path in sorted(PACKAGE.rglob("*.py"))
    if not path.relative_to(PACKAGE).parts[0].endswith("_data")
}
"""The files of the package with their paths as modules. Folders that end with `_data` hold files to copy."""


def module(parts: tuple[str, ...]) -> str:
    """The name of a file as a module of the package: `seek.study`, and `seek` for the head of a folder."""
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def imported(code: str, modules: Set[str]) -> set[str]:
    """The modules of the package that a file imports, at its head or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "flowloom":
            _, _, inside = node.module.partition(".")
            # What is no module is defined in the package itself.
            names = {f"{inside}.{name.name}".strip(".") for name in node.names}
            found |= {name if name in modules else inside or "__init__" for name in names}
        elif isinstance(node, ast.Import):
            found |= {name.name.partition(".")[2] or "__init__" for name in node.names if name.name.split(".")[0] == "flowloom"}
        # An import by a relative name would be missed.
        assert not isinstance(node, ast.ImportFrom) or not node.level
    return found


def needs() -> dict[str, set[str]]:
    """By module, the modules that it imports; the compiled part is left out."""
    texts = {module(parts): path.read_text(encoding="utf-8") for path, parts in FILES.items()}
    return {name: imported(text, texts.keys() | {"_core"}) - {"_core"} for name, text in texts.items()}


def folder(name: str, folders: Set[str]) -> str:
    """The folder of a module; that of the package's own files is empty."""
    head = name.split(".")[0]
    return head if head in folders else ""


def arrows_up(found: Mapping[str, Set[str]], order: tuple[str, ...]) -> list[str]:
    """The imports of a file from a folder above its own."""
    place = {name: i for i, name in enumerate(order)}
    return [
        f"{name} imports {other}"
        for name, others in sorted(found.items())
        for other in sorted(others)
        if place[folder(other, place.keys())] > place[folder(name, place.keys())]
    ]


def test_no_files_import_each_other_in_a_circle() -> None:
    found = needs()
    assert found["api.results"] >= {"runs.data", "runs.tables", "figures.plots", "pages.report"}
    assert found["seek"] >= {"seek.study", "seek.worst"}
    # A circle raises `CycleError`, which names its files.
    assert set(TopologicalSorter(found).static_order()) == found.keys()


def test_no_folder_imports_one_above_it() -> None:
    assert {path.parts[0] if len(path.parts) > 1 else "" for path in (file.relative_to(PACKAGE) for file in FILES)} == set(ORDER)
    assert not arrows_up(needs(), ORDER)


def test_an_arrow_up_is_found_wherever_it_is() -> None:
    modules = {"runs.data", "api.results", "base.words", "__init__"}
    inside = "def late():\n    from flowloom.api.results import Results\n"
    for code in ("from flowloom.api import results", "import flowloom.api.results", inside):
        assert arrows_up({"runs.data": imported(code, modules)}, ORDER) == ["runs.data imports api.results"], code
    assert arrows_up({"runs.data": imported("from flowloom import open", modules)}, ORDER) == ["runs.data imports __init__"]
    assert not arrows_up({"api.results": imported("from flowloom.base import words", modules)}, ORDER)


def test_the_page_on_architecture_lists_the_folders_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs/architecture.md").read_text(encoding="utf-8")
    _, _, rest = page.partition("\npython/flowloom/")
    listed = re.findall(r"^  (\w+)/ ", rest.partition("\npython/tests/")[0], re.MULTILINE)
    assert tuple(listed) == ORDER[:-1]


def test_figures_alone_import_matplotlib() -> None:
    code = "import sys, flowloom, flowloom.__main__, flowloom.runs.tables; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
