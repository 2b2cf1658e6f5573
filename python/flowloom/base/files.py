"""Files, written at once or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from flowloom import _core


def carried(folder: str) -> Path:
    """A folder of the repository that the package carries: the one of this checkout, or else the installed one."""
    package = Path(__file__).resolve().parents[1]
    checkout = package.parents[1] / folder
    return checkout if checkout.is_dir() else package / f"{checkout.name}_data"


def cache() -> Path:
    """The folder for what can be made again: `flowloom` in `XDG_CACHE_HOME`, or in `~/.cache`."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "flowloom"


def refuse_others(path: Path) -> None:
    """Raises `OSError` for a path that no command may write.

    These are devices, pipes and folders, and what belongs to results.
    """
    if path.exists() and not path.is_file():
        what = "folder" if path.is_dir() else "device or a pipe"
        raise OSError(f"`{path}` is a {what}, not a regular file\nhint: give `--out` the name of a new file")
    _core.may_write(str(path))


def write_whole(path: Path, content: bytes | str) -> None:
    """Writes a file of a command, as `put` does. Raises `OSError` where `refuse_others` does."""
    refuse_others(path)
    put(path, content)


def put(path: Path, content: bytes | str) -> None:
    """Writes a file so that under its name there is never half of it, whatever happens; makes its folder where it is missing.

    A link is followed.
    """
    data = content.encode() if isinstance(content, str) else content
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Short, since the name itself may be as long as the system allows.
    draft = path.with_name(f".{path.name[:40]}.{os.getpid()}.tmp")
    try:
        draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
