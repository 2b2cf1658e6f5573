"""Writes files completely or not at all, and finds folders."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from flowloom import _core
from flowloom.base.errors import InputError


def carried(folder: str) -> Path:
    """Returns a folder of the repository that the package contains: in this checkout, or else in
    the installed package.
    """
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1] / folder
    return checkout if checkout.is_dir() else package / f"{checkout.name}_data"


def text(path: Path) -> str:
    """Returns the text of a file. Raises `InputError` with its name if it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"`{path}` is not UTF-8 text: byte {error.start}\nhint: flowloom reads TOML files, which are UTF-8"
        ) from None


def toml(path: Path) -> dict[str, Any]:
    """Reads a TOML file. Raises `InputError` with its name if it is not one."""
    try:
        return tomllib.loads(text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"`{path}` is not TOML: {error}\nhint: write each value as `key = value`") from None


def cache() -> Path:
    """Returns the folder for files that can be made again: `flowloom` in `XDG_CACHE_HOME`, or in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "flowloom"


def refuse_others(path: Path) -> None:
    """Checks that a command may write a path.

    Raises `OSError` for devices, pipes and folders, and for files of results.
    """
    if path.exists() and not path.is_file():
        what = "folder" if path.is_dir() else "device or a pipe"
        raise OSError(f"`{path}` is a {what}, not a regular file\nhint: give `--out` the name of a new file")
    _core.may_write(str(path))


def write_whole(path: Path, content: bytes | str) -> None:
    """Writes a file for a command. Raises `OSError` for a path that a command must not write."""
    refuse_others(path)
    put(path, content)


def put(path: Path, content: bytes | str) -> None:
    """Writes a file completely or not at all, and creates its folder if it is missing. Follows links."""
    data = content.encode() if isinstance(content, str) else content
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Shortened: the name may be as long as the file system allows.
    draft = path.with_name(f".{path.name[:40]}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
