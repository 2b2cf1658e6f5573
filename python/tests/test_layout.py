"""How the package's files depend on each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Set
from graphlib import TopologicalSorter
from pathlib import Path

import flowloom

PACKAGE = Path(flowloom.__file__).parent


def imported(file: Path, modules: Set[str]) -> set[str]:
    """The modules of the package that a file imports, at its head or inside a function."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "flowloom":
            _, _, inside = node.module.partition(".")
            # What is no module is defined in the package itself.
            names = {f"{inside}.{name.name}".strip(".") for name in node.names}
            found |= {name if name in modules else inside or "__init__" for name in names}
    return found


def module(file: Path) -> str:
    """The name of a file as a module of the package: `seek.study`, and `seek` for the head of a folder."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts)


def test_no_files_import_each_other_in_a_circle() -> None:
    files = {module(file): file for pattern in ("*.py", "seek/*.py") for file in PACKAGE.glob(pattern)}
    modules = files.keys() | {"_core"}
    needs = {name: imported(file, modules) for name, file in files.items()}
    assert needs["results"] >= {"data", "tables", "plots", "report"} and needs["seek"] >= {"seek.study", "seek.worst"}
    # A circle raises `CycleError`, which names its files.
    order = list(TopologicalSorter(needs).static_order())
    assert set(order) == modules


def test_figures_alone_import_matplotlib() -> None:
    code = "import sys, flowloom, flowloom.__main__, flowloom.tables; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
