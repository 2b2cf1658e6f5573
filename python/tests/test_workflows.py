"""The workflows that build wheels agree with the project and with what docs/install.md says of platforms."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def workflow(name: str) -> dict[str, Any]:
    yaml: Any = pytest.importorskip("yaml")
    found: dict[str, Any] = yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8"))
    return found


def test_the_wheel_is_built_and_tested_by_the_makefile() -> None:
    (job,) = workflow("wheel")["jobs"].values()
    assert "make wheel" in [step.get("run") for step in job["steps"]]
    assert re.search(r"^wheel:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)


def test_every_platform_of_a_release_is_in_the_docs() -> None:
    platforms = [one["platform"] for one in workflow("release")["jobs"]["wheels"]["strategy"]["matrix"]["include"]]
    rows = re.findall(r"^\| ((?:Linux|macOS|Windows).*?) \|", (ROOT / "docs/install.md").read_text(encoding="utf-8"), re.M)
    written = [name.lower().replace(" ", "-") for row in rows for name in row.split(", ")]
    assert written == platforms and len(platforms) == 5


def test_the_oldest_rust_and_python_are_those_of_the_project() -> None:
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]["rust-version"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = project["project"]["requires-python"].removeprefix(">=")
    wheels = project["tool"]["cibuildwheel"]
    assert wheels["build"] == f"cp{oldest.replace('.', '')}-*"
    texts = [(ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8") for name in ("wheel", "release")]
    for text in [*texts, wheels["linux"]["before-all"]]:
        assert set(re.findall(r"1\.\d\d\.\d", text)) == {f"{rust}.0"}
    for text in texts:
        assert set(re.findall(r'python-version: "(.*)"', text)) == {oldest}
