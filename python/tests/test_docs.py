"""Examples in docstrings and pages run, and the stubs say what the compiled part has."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from flowloom import _core

ROOT = Path(__file__).parents[2]
MODULES = ("flowloom", "flowloom.results", "flowloom.scenario")


@pytest.mark.parametrize("name", ["flowloom.words"])
def test_examples_that_simulate_nothing(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


@pytest.mark.parametrize("page", ["README.md", "docs/model.md"])
def test_python_examples_in_pages(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL):
        exec(compile(block, page, "exec"), {})


def test_the_tutorial_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its blocks, in their order: files are written, commands run, Python goes on with what was found before."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
    known: dict[str, object] = {}
    for language, block in re.findall(r"```(\w+)\n(.*?)```", text, re.DOTALL):
        if language == "toml":
            Path(block.splitlines()[0].removeprefix("# ")).write_text(block)
        elif language == "python":
            exec(compile(block, "docs/tutorial.md", "exec"), known)
        else:
            for line in block.splitlines():
                done = subprocess.run([sys.executable, "-m", *line.split()], capture_output=True, text=True, check=False)
                assert done.returncode == 0, f"{line}\n{done.stderr}"
    for name in ("timeout.png", "results/timeout/report.html", "results/timeout/figures/fct_cdf.png", "results/timeout.zip"):
        assert Path(name).is_file(), name


def test_the_site_has_every_page() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages | {"index.md"} == set(re.findall(r": (\S+\.md)$", listed, re.MULTILINE))


def test_scenarios_in_pages_and_examples() -> None:
    from flowloom import Scenario

    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        assert Scenario.from_toml(block).points
    files = sorted((ROOT / "examples").glob("*.toml"))
    assert files
    for file in files:
        assert Scenario.from_file(file).points


def test_the_example_script_runs(tmp_path: Path) -> None:
    for script in sorted((ROOT / "examples").glob("*.py")):
        done = subprocess.run([sys.executable, str(script), "60"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "first_steps/report.html").is_file() and (tmp_path / "first_steps/figures/metrics.png").is_file()


def test_stubs_are_those_of_the_compiled_part() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "flowloom._core", "--ignore-disjoint-bases"]
    done = subprocess.run(command, cwd=ROOT / "python", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_document_what_the_compiled_part_does() -> None:
    """The two texts of a function or class are one: what an editor shows is what `help` shows."""
    stub = ast.parse((ROOT / "python/flowloom/_core.pyi").read_text(encoding="utf-8"))

    def texts(body: list[ast.stmt], owner: object, name: str) -> Iterator[tuple[str, str, str]]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found, here = getattr(owner, node.name), f"{name}.{node.name}"
                yield here, ast.get_docstring(node) or "", found.__doc__ or ""
                yield from texts(node.body if isinstance(node, ast.ClassDef) else [], found, here)

    pairs = [("_core", ast.get_docstring(stub) or "", _core.__doc__ or ""), *texts(stub.body, _core, "_core")]
    assert len(pairs) > 30
    for name, written, said in pairs:
        assert written.split() and written.split() == said.split(), name


def test_links_between_pages_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "papers").glob("*/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not target.startswith("http") and target not in GENERATED:
                assert (page.parent / target).exists(), f"{page}: {target}"


GENERATED = ("docs/img/demo.png", "docs/data.md", "data.md")
"""Written by `make`, not by hand."""
