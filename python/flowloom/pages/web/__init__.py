"""Styles and scripts of HTML pages."""

from __future__ import annotations

from pathlib import Path


def web(name: str) -> str:
    """Returns a style or script."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
