"""How the package's files depend on each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import flowloom

PACKAGE = Path(flowloom.__file__).parent


def imported(file: Path, modules: set[str]) -> set[str]:
    """The modules of the package that a file imports, at its head or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "flowloom":
            _, _, inside = node.module.partition(".")
            # What is no module is defined in the package itself.
            found |= {inside} if inside else {name.name if name.name in modules else "__init__" for name in node.names}
    return found


def test_no_files_import_each_other_in_a_circle() -> None:
    modules = {file.stem for file in PACKAGE.glob("*.py")} | {"_core"}
    needs = {name: imported(PACKAGE / f"{name}.py", modules) for name in modules - {"_core"}}
    assert needs["results"] >= {"data", "tables", "plots", "report"}
    # A circle raises `CycleError`, which names its files.
    order = list(TopologicalSorter(needs).static_order())
    assert set(order) == modules


def test_figures_alone_import_matplotlib() -> None:
    code = "import sys, flowloom, flowloom.__main__, flowloom.tables; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
