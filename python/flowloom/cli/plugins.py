"""New plug-ins: projects whose source, a copy of a transport, users change."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from flowloom.base import files
from flowloom.cli import console
from flowloom.cli.console import say

SUFFIX = ".dylib" if sys.platform == "darwin" else ".so"
"""The end of the names of libraries that `cargo` builds."""


@dataclass(frozen=True)
class Project:
    """The files of a plug-in, and the commands that build and test it."""

    files: dict[str, str]
    """Texts by path."""
    build: list[str]
    """The command that builds it; empty if there is nothing to build."""
    test: str
    """The command that tests it."""


def project(name: str, lang: str) -> Project:
    """Returns a plug-in called `name`. Raises `ValueError` for a name that is not allowed."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name in RESERVED:
        raise ValueError(f"`{name}` is not a name of a plug-in\nhint: use lower case letters, digits and `_`, like `mine`")
    crate = files.carried("crates/plugin")
    new = crate / "new"

    def renamed(path: Path) -> str:
        text = path.read_text(encoding="utf-8")
        return re.sub(r"(?<![a-z])mine(?![a-z])", name, re.sub(r"\bMine\b", name.title().replace("_", ""), text))

    scenario = renamed(new / "mine.toml")
    if lang == "c":
        found = {
            f"{name}.c": renamed(new / "c/mine.c"),
            "flowloom.h": (crate / "include/flowloom.h").read_text(encoding="utf-8"),
            f"test_{name}.c": renamed(new / "c/test_mine.c"),
            f"{name}.toml": scenario,
        }
        build = ["cc", "-std=c11", "-O2", "-fPIC", "-shared", "-o", f"{name}.so", f"{name}.c"]
        return Project(found, build, f"cc -o test_{name} test_{name}.c && ./test_{name}")
    if lang == "rust":
        example = (crate / "src/example.rs").read_text(encoding="utf-8").replace("crate::", "flowloom_plugin::")
        above, tests = example.replace('c"example"', f'c"{name}"').split("\n#[cfg(test)]")
        source = f"{above}\nflowloom_plugin::export!(congestion, Example);\n\n#[cfg(test)]{tests}"
        found = {
            f"{name}.rs": source,
            "Cargo.toml": renamed(new / "rust/Cargo.toml"),
            f"{name}.toml": scenario.replace(f"{name}.so", f"target/release/lib{name}{SUFFIX}"),
            "flowloom-plugin/Cargo.toml": (crate / "Cargo.toml").read_text(encoding="utf-8"),
        }
        for path in sorted((crate / "src").rglob("*.rs")):
            found[f"flowloom-plugin/{path.relative_to(crate).as_posix()}"] = path.read_text(encoding="utf-8")
        return Project(found, ["cargo", "build", "--release", "--offline", "--quiet"], "cargo test --offline")
    found = {
        f"{name}.py": renamed(new / "python/mine.py"),
        f"test_{name}.py": renamed(new / "python/test_mine.py"),
        f"{name}.toml": scenario.replace(f"{name}.so", f"{name}.py"),
    }
    return Project(found, [], f"python test_{name}.py")


RESERVED = frozenset({"core", "example", "false", "flowloom", "self", "std", "super", "test", "true"})
"""Names that are words of a language or of flowloom."""


def write(made: Project, out: Path, overwrite: bool = False) -> list[Path]:
    """Writes a plug-in into a folder. Returns its files.

    Raises `ValueError`, without `overwrite`, if a file exists and differs: then nothing is written.
    """
    contents = {out / path: text.encode() for path, text in made.files.items()}
    for path, content in contents.items():
        if path.exists() and not overwrite and not (path.is_file() and path.read_bytes() == content):
            raise ValueError(
                f"`{path}` exists already and differs\nhint: name another folder with `--out`, or replace it with `--overwrite`"
            )
        files.refuse_others(path)
    for path, content in contents.items():
        files.put(path, content)
    return list(contents)


def build(made: Project, out: Path) -> None:
    """Builds a plug-in. Raises `ValueError` if the compiler is missing or fails."""
    if not made.build:
        return
    command = " ".join(made.build)
    try:
        done = subprocess.run(made.build, cwd=out, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise ValueError(f"there is no `{made.build[0]}`\nhint: install it, then run `{command}`") from error
    if done.returncode:
        raise ValueError(f"`{command}` failed:\n{done.stderr.strip()}")


def new(name: str, lang: str, out: Path, overwrite: bool) -> int:
    """Writes and builds a plug-in, and prints the next commands."""
    made = project(name, lang)
    for path in write(made, out, overwrite):
        say(path)
    build(made, out)
    if made.build:
        console.complain(f"built by `{' '.join(made.build)}`")
    console.complain(f"next: `flowloom run {out / name}.toml`; test: `{made.test}`")
    return 0
