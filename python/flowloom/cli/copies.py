"""Files that the package carries for users to copy: examples and the exercises of the lab."""

from __future__ import annotations

import ast
import json
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from flowloom import _core
from flowloom.base import files


@dataclass(frozen=True)
class Copy:
    """An example or an exercise."""

    name: str
    about: str
    """A line on it."""
    folder: Path
    files: Sequence[str]
    """Its file, then the files that it reads, relative to the folder."""


def examples() -> list[Copy]:
    """The examples: scenarios by their names, then scripts by those of their files."""
    folder = files.carried("examples")
    scenarios = [Copy(file.stem, comment(file), folder, [file.name, *read(file)]) for file in sorted(folder.glob("*.toml"))]
    return scenarios + [Copy(file.name, docstring(file), folder, [file.name]) for file in sorted(folder.glob("*.py"))]


def lab() -> list[Copy]:
    """The exercises of the lab, in the order in which they are meant to be done: their titles are numbered."""
    folder = files.carried("docs/lab")
    found = [Copy(file.stem, title(file), folder, [file.name]) for file in folder.glob("*.ipynb")]
    return sorted(found, key=lambda one: one.about)


def comment(file: Path) -> str:
    """The first sentence of the comment at the top of a scenario."""
    lines: list[str] = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("# "):
            break
        lines.append(line[2:])
    return sentence(" ".join(lines))


def docstring(file: Path) -> str:
    """The first sentence of a script's docstring."""
    return sentence(ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "")


def sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    ends = [at for mark in (". ", "? ", "\n") if (at := text.find(mark)) >= 0]
    first = text[: min(ends) + 1] if ends else text
    return first.strip().removesuffix(".")


def title(file: Path) -> str:
    """The title of a notebook: the first line of its first cell."""
    cell = json.loads(file.read_text(encoding="utf-8"))["cells"][0]
    return "".join(cell["source"]).splitlines()[0].removeprefix("# ")


def read(file: Path) -> list[str]:
    """The files that a scenario reads: paths among its texts, relative to its folder."""

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

    Raises `ValueError` for a name that is unknown and, without `overwrite`, if a file is there already: then nothing is copied.
    """
    contents: dict[Path, bytes] = {}
    for name in names:
        chosen = find(known, name)
        for part in chosen.files:
            contents[out / part] = (chosen.folder / part).read_bytes()
    for path, content in contents.items():
        if path.exists() and not overwrite and not (path.is_file() and path.read_bytes() == content):
            raise ValueError(
                f"`{path}` is there already, and differs\nhint: copy to another folder with `--out`, or replace with `--overwrite`"
            )
        files.refuse_others(path)
    for path, content in contents.items():
        files.put(path, content)
    return list(contents)


def find(known: Sequence[Copy], name: str) -> Copy:
    """The example or exercise of a name, which may be that of its file. Raises `ValueError` if there is none."""
    for one in known:
        if name in (one.name, one.files[0]):
            return one
    near = _core.nearest(name, [one.name for one in known])
    did = f"; did you mean `{near}`?" if near else ""
    raise ValueError(f"nothing here is called `{name}`{did}\nhint: one of {', '.join(one.name for one in known)}")
