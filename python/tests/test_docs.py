"""Examples in docstrings and pages run, the tutorial runs and says what came out, and the stubs say what the compiled part has."""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import nbformat
import pytest
from flowloom import _core
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
MODULES = ("flowloom", "flowloom.api.results", "flowloom.api.scenario")
TUTORIAL = ROOT / "docs/tutorial.ipynb"
LAB = sorted((ROOT / "docs/lab").glob("*.ipynb"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
"""Pages written by hand, or in parts. Those of papers are written by `make papers`."""

RUN = ("sh", "python", "toml", "json")
"""Languages whose blocks run. Those in `text` are output and diagrams."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    section: str
    line: int
    language: str
    reason: str
    """Why it does not run, if it does not."""
    before: str
    """The text in front of it, up to an empty line."""
    code: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.language in RUN and not self.reason

    @property
    def file(self) -> str | None:
        """The name that a scenario gives itself in its first line: `# web.toml`."""
        named = re.match(r"# (\S+\.toml)\n", self.code)
        return named[1] if named and self.language == "toml" else None


def blocks(page: str, text: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    lines = text.splitlines()
    section, end = "", -1
    for at, line in enumerate(lines):
        if at <= end:
            continue
        if heading := re.match(r"##? (.+)", line):
            section = heading[1]
        if fence := re.match(r"( *)(```+|~~~+) *(\S*)", line):
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == fence[2]), len(lines))
            reason = re.fullmatch(r" *<!-- not run: (\S.*) -->", lines[at - 1]) if at else None
            before = next((lines[i] for i in range(at - 1, -1, -1) if lines[i]), "")
            code = "".join(f"{inner.removeprefix(fence[1])}\n" for inner in lines[at + 1 : end])
            yield Block(page, section, at + 1, fence[3], reason[1] if reason else "", before, code)


BLOCKS = [block for page in PAGES for block in blocks(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))]
SECTIONS = list(dict.fromkeys((block.page, block.section) for block in BLOCKS if block.runs))


def tried(block: Block) -> str | None:
    """What is wrong with a block that says how it is tried."""
    if not block.language:
        return "has no language: `text` is that of output and diagrams"
    if block.language in (*RUN, "text") or block.reason:
        return None
    # What crates/sim/tests/adding.rs adds to a copy of the tree.
    if (block.page, block.language) == ("docs/adding.md", "rust") and block.before.startswith("File `crates/"):
        return None
    return f"in `{block.language}` does not run: the line in front of it says `<!-- not run: why -->`"


@pytest.mark.parametrize("name", ["flowloom.base.words"])
def test_examples_that_simulate_nothing(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed


def test_every_block_runs_or_says_why_not() -> None:
    assert {block.language for block in BLOCKS if block.runs} >= {"sh", "python", "toml"}
    wrong = [f"{block.place}: the block {why}" for block in BLOCKS if (why := tried(block))]
    assert not wrong, "\n".join(wrong)


def test_a_block_that_says_nothing_is_found() -> None:
    text = "# A\n\n<!-- not run: far -->\n```sh\nfly\n```\n## B\n  ```text\n  out\n    in\n  ```\n\n"
    text += "```\n# no heading\n```\n```rust\n```\n"
    found = list(blocks("docs/x.md", text))
    assert [(block.section, block.line, block.language, block.reason) for block in found] == [
        ("A", 4, "sh", "far"),
        ("B", 8, "text", ""),
        ("B", 13, "", ""),
        ("B", 16, "rust", ""),
    ]
    assert found[1].code == "out\n  in\n" and not any(block.runs for block in found)
    assert [tried(block) is None for block in found] == [True, True, False, False]
    assert tried(next(blocks("docs/adding.md", "File `crates/x.rs`; in it.\n\n```rust\n```\n"))) is None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in. Commands are those of this environment; kernels see no settings of the user."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / "settings"))
    return tmp_path


@pytest.mark.parametrize(("page", "section"), SECTIONS, ids=[f"{page}: {section}" for page, section in SECTIONS])
def test_code_of_pages_runs(page: str, section: str, folder: Path) -> None:
    """The blocks of a section, in their order, beside the scenarios of the page that have a name and the examples."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    here = [block for block in BLOCKS if block.page == page and block.runs]
    for block in here:
        if block.file:
            Path(block.file).write_text(small(block.code), encoding="utf-8")
    known: dict[str, object] = {}
    for block in here:
        if block.section == section:
            run(block, known)


def small(scenario: str) -> str:
    """A scenario with a tenth of the flows, on a small network: commands must work, and what they print does not matter."""
    scenario = re.sub(r"(?m)^flows = (\d+)0$", r"flows = \1", scenario)
    network = "topology = { kind = 'leaf_spine', leaves = 2, spines = 2, hosts_per_leaf = 8 }"
    if "[measure]" not in scenario:
        # Without the flows that fill the network first, which take most of the time.
        network += "\nmeasure = { flows = 'all' }"
    return re.sub(r"(?m)^topology = .leaf_spine.$", network, scenario)


def run(block: Block, known: dict[str, object]) -> None:
    """Runs a block; `known` are the names that blocks of Python have in common."""
    if block.language == "python":
        # With as many lines in front as in the page, a traceback names the line of the page.
        exec(compile("\n" * block.line + block.code, block.page, "exec"), known)
    elif block.language == "json":
        json.loads(block.code)
    else:
        script = small(block.code)
        if block.language == "toml":
            file = Path(block.file or "block.toml")
            file.write_text(small(block.code), encoding="utf-8")
            script = f"flowloom check {file}"
        command = ["bash", "-euxo", "pipefail", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, f"{block.place} ends with {done.returncode}\n{done.stdout}{done.stderr}"


@pytest.mark.parametrize("path", [TUTORIAL, *LAB], ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    hint = f"clear the outputs with `.venv/bin/jupyter nbconvert --clear-output --inplace {path.relative_to(ROOT)}`"
    for cell in notebook.cells:
        assert re.fullmatch("[a-z]+(-[a-z]+)*", cell.id), f"the cell `{cell.id}` has no name that a reader of changes knows"
        assert cell.cell_type == "markdown" or (not cell.outputs and cell.execution_count is None), hint
    assert notebook.metadata.language_info == {"name": "python"}, "the version of Python differs between writers"
    assert path.read_text(encoding="utf-8") == f"{nbformat.writes(notebook)}\n", hint


SAID = """
def intervals(results, metric, **at):
    rows = [row for row in results.summary().to_pylist() if row["metric"] == metric]
    return {
        (row["system"], *(row[key] for key in results.keys)): (row["ci95_low"], row["ci95_high"], row["mean"])
        for row in rows
        if row["ci95_low"] is not None
    }

drops, timeouts = (sum(flows[name].to_pylist()) for name in ("drops", "timeouts"))
assert timeouts // drops == 14, (timeouts, drops)

few, many = intervals(results, "mean_slowdown"), intervals(ten, "mean_slowdown")
old, new = ("as published", 0.8), ("long timeout", 0.8)
assert few[new][1] > few[old][0], "the intervals of three seeds overlap"
assert many[new][1] < many[old][0], "those of ten do not"
assert high < 1 and load == 0.8, "flow by flow, three seeds show it"

for flow in why.flows:
    share = sum(ps for part, ps in flow.parts.items() if part.name == "retransmission") / flow.fct_ps
    assert share > 0.45, (flow.flow_id, share)

for metric, near in (("mean_slowdown", 1.03), ("p99_slowdown", 1.05)):
    found = intervals(sweep, metric)
    ideal = next(values[2] for key, values in found.items() if key[0] == "ideal SRPT")
    swept = {key[1]: values for key, values in found.items() if key[0] == "long timeout"}
    means = [swept[rto][2] for rto in ("375us", "750us", "1.5ms", "3ms")]
    assert means == sorted(means, reverse=True) and means[-1] < near * ideal, (means, ideal)
    assert swept["12ms"][0] < swept["6ms"][1], "the intervals of 6 ms and 12 ms overlap"
"""
"""What the tutorial says of its results."""


def test_the_tutorial_runs_and_says_what_came_out(folder: Path) -> None:
    notebook = nbformat.read(TUTORIAL, 4)
    notebook.cells.append(nbformat.v4.new_code_cell(SAID))
    execute(notebook, folder)

    outputs = {cell.id: cell.outputs for cell in notebook.cells if cell.cell_type == "code"}
    text = {name: "".join(map(text_of, found)) for name, found in outputs.items()}
    for name in ("table", "ten-seeds"):
        assert re.search(r"as published +0\.8 +\d\.\d\d ± ", text[name]) and "ideal SRPT" in text[name], text[name]
    for name in ("figure", "why-figure", "sweep"):
        assert any("image/png" in output.get("data", {}) for output in outputs[name]), name
    for name in ("timeout.pdf", "results/ten_seeds/report.html", "results/ten_seeds/figures/fct_cdf.pdf", "results/ten_seeds.zip"):
        assert (folder / name).is_file(), name
    printed = re.sub(" +", " ", "".join(text.values()))
    said = re.findall(r"\d+\.\d+ ± \d+\.\d+", "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown"))
    assert len(said) == 4 and all(number in printed for number in said), said


@pytest.mark.parametrize("path", LAB, ids=lambda path: path.stem)
def test_exercises_have_all_parts_and_their_answers_hold(path: Path, folder: Path) -> None:
    """The answers are asserted in the notebook itself."""
    notebook = nbformat.read(path, 4)
    execute(notebook, folder)
    headings = re.findall(r"^#+ (.*)$", "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown"), re.M)
    assert re.match(r"\d\. \w", headings[0]) and headings[1:] == ["The scenario", "Questions", "What to change next", "Answers"]
    cells = {cell.id: cell for cell in notebook.cells}
    assert any("image/png" in output.get("data", {}) for output in cells["figure"].outputs)
    answers = [cell.source for cell in notebook.cells[list(cells).index("answers") :] if cell.cell_type == "code"]
    assert len(answers) >= 2 and all("assert" in answer for answer in answers)
    # Each question has an answer.
    numbered = re.compile(r"^(\d)\. ", re.M)
    asked = numbered.findall(cells["questions"].source)
    found = [n for cell in notebook.cells if cell.id.startswith("answer") for n in numbered.findall(cell.source)]
    assert len(asked) >= 4 and found == asked


def execute(notebook: nbformat.NotebookNode, folder: Path) -> None:
    """Runs a notebook in a folder. A cell that fails raises."""
    place = {"metadata": {"path": str(folder)}}
    NotebookClient(notebook, timeout=600, kernel_name="python3", coalesce_streams=True, resources=place).execute()


def text_of(output: Mapping[str, Any]) -> str:
    """What a cell printed, or the value of its last line."""
    found: str = output.get("text") or output.get("data", {}).get("text/plain", "")
    return found


def test_the_site_has_every_page() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    notebooks = {path.relative_to(ROOT / "docs").as_posix() for path in (TUTORIAL, *LAB)}
    assert pages | {"index.md"} | notebooks == set(re.findall(r": (\S+\.(?:md|ipynb))$", listed, re.MULTILINE))


def test_links_on_the_site_lead_to_its_pages_and_to_the_api_of_rust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocs")
    site = module("docs/site.py")
    monkeypatch.setattr(site, "RUSTDOC", tmp_path)
    (tmp_path / "sim").mkdir()
    (tmp_path / "sim/index.html").touch()
    pages = {"model.md": SimpleNamespace(src_uri="model.md", url="model.html")}
    files = SimpleNamespace(get_file_from_path=pages.get)
    for written, page, url, shown in [
        ("[model](model.md#routing)", "api.md", None, "[model](model.md#routing)"),
        ("[model](docs/model.md)", "index.md", None, "[model](model.md)"),
        ("[model](../../model.md)", "papers/merp/README.md", None, "[model](../../model.md)"),
        ("[model](model.md)", "tutorial.ipynb", "tutorial.html", "[model](model.html)"),
        ("[`sim`](../crates/sim/src/lib.rs)", "api.md", None, '<a href="rust/sim/index.html">`sim`</a>'),
        ("[`cli`](../crates/cli/src/lib.rs)", "api.md", None, "`cli` (`crates/cli/src/lib.rs`)"),
        ("[CITATION.cff](../CITATION.cff)", "tutorial.ipynb", "tutorial.html", "CITATION.cff"),
        ("[a](https://flowloom.test)", "api.md", None, "[a](https://flowloom.test)"),
    ]:
        assert site.linked(written, page, files, url) == shown


def module(path: str) -> ModuleType:
    """A script that is no part of the package."""
    spec = importlib.util.spec_from_file_location(Path(path).stem + "_script", ROOT / path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_scenarios_of_examples() -> None:
    from flowloom import Scenario

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
    pages = [*PAGES, TUTORIAL, *(ROOT / "papers").glob("*/*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if not target.startswith("http") and target not in GENERATED:
                assert (page.parent / target).exists(), f"{page}: {target}"


GENERATED = ("docs/img/demo.png", "docs/data.md", "data.md")
"""Written by `make`, not by hand."""
