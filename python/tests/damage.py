"""Ways to damage results, for tests of what finds it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flowloom import _core


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def cut(path: Path) -> None:
    """Leaves the first 100 bytes of a file."""
    path.write_bytes(path.read_bytes()[:100])


def flip(path: Path) -> None:
    """Changes a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def edited(path: Path, old: str, new: str) -> None:
    """Edits a manifest by hand."""
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def forged(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Changes a manifest, and gives it the hash that fits."""
    manifest = json.loads(path.read_text())
    change(manifest)
    manifest.pop("manifest_hash")
    body = json.dumps(manifest, indent=2, ensure_ascii=False).removesuffix("\n}")
    path.write_text(f'{body},\n  "manifest_hash": "{_core.content_hash(body.encode())}"\n}}\n')
