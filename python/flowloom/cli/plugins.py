"""New plug-ins: projects whose source, a protocol that flowloom contains or tests, users change.

The template of a part of a system in a language is the folder `crates/plugin/new/PART/LANG`, and its scenario is
`crates/plugin/new/PART/mine.toml`. Without such a folder, the template in Rust is the example of the crate `flowloom-plugin`.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from flowloom.base import files
from flowloom.base.errors import InputError
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


def project(part: str, name: str, lang: str) -> Project:
    """Returns a plug-in called `name`. Raises `ValueError` for a name that is not allowed, and without a template."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,39}", name) or name in RESERVED:
        raise InputError(f"`{name}` is not a name of a plug-in\nhint: use lower case letters, digits and `_`, like `mine`")
    crate = files.carried("crates/plugin")
    template = crate / "new" / part
    if lang == "python" and not (template / lang).exists():
        raise InputError(
            f"a plug-in for `{part}` is written in C or Rust: plug-ins in Python are for congestion control only\n"
            f"hint: use `--lang c` or `--lang rust`; in Python, `flowloom new transport {name} --lang python` works"
        )

    def renamed(path: Path) -> str:
        text = path.read_text(encoding="utf-8")
        return re.sub(r"(?<![a-z])mine(?![a-z])", name, re.sub(r"\bMine\b", name.title().replace("_", ""), text))

    found = {path.name.replace("mine", name): renamed(path) for path in sorted((template / lang).glob("*mine.*"))}
    if lang == "c":
        library, test = f"{name}.so", f"cc -o test_{name} test_{name}.c && ./test_{name}"
        found["flowloom.h"] = (crate / "include/flowloom.h").read_text(encoding="utf-8")
        build = ["cc", "-std=c11", "-O2", "-fPIC", "-shared", "-o", library, f"{name}.c"]
    elif lang == "rust":
        library, test = f"target/release/lib{name}{SUFFIX}", "cargo test --offline"
        if not found:
            found[f"{name}.rs"] = example(crate, "congestion" if part == "transport" else part, name)
        found["Cargo.toml"] = renamed(template.parent / "Cargo.toml")
        for path in [crate / "Cargo.toml", *sorted((crate / "src").rglob("*.rs"))]:
            found[f"flowloom-plugin/{path.relative_to(crate).as_posix()}"] = path.read_text(encoding="utf-8")
        build = ["cargo", "build", "--release", "--offline", "--quiet"]
    else:
        library, test, build = f"{name}.py", f"python test_{name}.py", []
    found[f"{name}.toml"] = renamed(template / "mine.toml").replace(f"{name}.so", library)
    return Project(found, build, test)


def example(crate: Path, room: str, name: str) -> str:
    """Returns the example of a room in the crate for authors as the text of a plug-in called `name`."""
    text = (crate / f"src/{room}/example.rs").read_text(encoding="utf-8").replace("crate::", "flowloom_plugin::")
    above, tests = re.sub(r'c"example\w*"', f'c"{name}"', text).split("\n#[cfg(test)]")
    return f"{above}\nflowloom_plugin::export!({room}, Example);\n\n#[cfg(test)]{tests}"


RESERVED = frozenset({"core", "example", "false", "flowloom", "self", "std", "super", "test", "true"})
"""Names that are words of a language or of flowloom."""


def write(made: Project, out: Path, overwrite: bool = False) -> list[Path]:
    """Writes a plug-in into a folder. Returns its files.

    Raises `ValueError`, without `overwrite`, if a file exists and differs: then nothing is written.
    """
    contents = {out / path: text.encode() for path, text in made.files.items()}
    for path, content in contents.items():
        if path.exists() and not overwrite and not (path.is_file() and path.read_bytes() == content):
            raise InputError(
                f"`{path}` exists already and differs\nhint: name another folder with `--out`, or replace it with `--overwrite`"
            )
        files.refuse_others(path)
    for path, content in contents.items():
        # A compiler builds what is newer than its results.
        if not (path.is_file() and path.read_bytes() == content):
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
        raise InputError(f"there is no `{made.build[0]}`\nhint: install it, then run `{command}`") from error
    if done.returncode:
        raise InputError(f"`{command}` failed:\n{done.stderr.strip()}")


def new(part: str, name: str, lang: str, out: Path, overwrite: bool) -> int:
    """Writes and builds a plug-in, and prints the next commands."""
    made = project(part, name, lang)
    for path in write(made, out, overwrite):
        say(path)
    build(made, out)
    there = "" if out == Path() else f"cd {shlex.quote(str(out))} && "
    if made.build:
        console.complain(f"built by `{there}{' '.join(made.build)}`")
    console.complain(f"next: `flowloom run {out / name}.toml`; test: `{there}{made.test}`")
    return 0
