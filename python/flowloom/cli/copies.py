"""Examples and exercises of the lab, which the package contains for users to copy."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flowloom.base import files
from flowloom.base.errors import InputError, did_you_mean
from flowloom.cli import console
from flowloom.cli.console import say


@dataclass(frozen=True)
class Copy:
    """An example or an exercise."""

    name: str
    about: str
    """A description in one line."""
    folder: Path
    files: Sequence[str]
    """The file of the example or exercise, then the files that it reads, relative to `folder`."""


def examples() -> list[Copy]:
    """Returns the examples: scenarios by their names, then scripts by the names of their files."""
    folder = files.carried("examples")
    scenarios = [Copy(file.stem, comment(file), folder, [file.name, *read(file)]) for file in sorted(folder.glob("*.toml"))]
    return scenarios + [Copy(file.name, docstring(file), folder, [file.name]) for file in sorted(folder.glob("*.py"))]


def lab() -> list[Copy]:
    """Returns the exercises of the lab in their order, which is in their titles."""
    folder = files.carried("docs/lab")
    found = [Copy(file.stem, title(file), folder, [file.name]) for file in folder.glob("*.ipynb")]
    return sorted(found, key=lambda one: one.about)


def comment(file: Path) -> str:
    """Returns the first sentence of the comment at the top of a scenario."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:])
    return sentence(" ".join(lines))


def docstring(file: Path) -> str:
    """Returns the first sentence of a script's docstring."""
    return sentence(ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "")


def sentence(text: str) -> str:
    """Returns the first sentence of a text, without its full stop."""
    ends = [at for mark in (". ", "? ", "\n") if (at := text.find(mark)) >= 0]
    first = text[: min(ends) + 1] if ends else text
    return first.strip().removesuffix(".")


def title(file: Path) -> str:
    """Returns the title of a notebook: the first line of its first cell."""
    cell = json.loads(file.read_text(encoding="utf-8"))["cells"][0]
    return "".join(cell["source"]).splitlines()[0].removeprefix("# ")


def read(file: Path) -> list[str]:
    """Returns the files that a scenario reads: paths among its texts, relative to its folder."""

    def texts(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            for part in value.values() if isinstance(value, dict) else value:
                yield from texts(part)

    named = texts(tomllib.loads(file.read_text(encoding="utf-8")))
    return sorted({name for name in named if "/" in name and (file.parent / name).is_file()})


def write(known: Sequence[Copy], names: Sequence[str], out: Path, overwrite: bool = False) -> list[Path]:
    """Copies the named examples or exercises into a folder. Returns the copies.

    Raises `ValueError` for an unknown name and, without `overwrite`, if a file exists and differs:
    then nothing is copied.
    """
    contents: dict[Path, bytes] = {}
    for name in names:
        chosen = find(known, name)
        for part in chosen.files:
            contents[out / part] = (chosen.folder / part).read_bytes()
    for path, content in contents.items():
        if path.exists() and not overwrite and not (path.is_file() and path.read_bytes() == content):
            raise InputError(
                f"`{path}` exists already and differs\nhint: name another folder with `--out`, or replace it with `--overwrite`"
            )
        files.refuse_others(path)
    for path, content in contents.items():
        files.put(path, content)
    return list(contents)


def find(known: Sequence[Copy], name: str) -> Copy:
    """Returns the example or exercise with this name or file name. Raises `ValueError` if there is none."""
    for one in known:
        if name in (one.name, one.files[0]):
            return one
    did = did_you_mean(name, [one.name for one in known])
    raise InputError(f"there is no `{name}`{did}\nhint: one of {', '.join(one.name for one in known)}")


def carry_out(options: Mapping[str, Any], known: Sequence[Copy], example: str) -> int:
    """Lists what can be copied, or copies it and prints the next command."""
    names = options.get("names") or []
    if not names:
        wide = max(len(one.name) for one in known)
        for one in known:
            say(f"{one.name:<{wide}}  {one.about}")
        console.complain(f"\n`{example}` copies `{example.split()[-1]}` to the current folder")
        return 0
    out = Path(console.path(options.get("out") or "."))
    for path in write(known, names, out, bool(options.get("overwrite"))):
        say(path)
    first = find(known, names[0]).files[0]
    console.complain(f"next: `{OPENED[Path(first).suffix]} {out / first}`")
    return 0


OPENED = {".toml": "flowloom run", ".py": "python", ".ipynb": "jupyter lab"}
"""The command that opens a copied file, by suffix."""
