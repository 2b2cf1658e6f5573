"""Writes the pages of the papers again from their `claims.json` and the papers' folders, without a run: `make pages`."""

from __future__ import annotations

from pathlib import Path

from flowloom.base.files import write_whole
from flowloom.papers import pages, shelf
from flowloom.papers.reproduction import write_page


def main() -> None:
    """Writes the page of each paper that has one, and that of all papers."""
    home = Path(__file__).parent / "papers"
    every = []
    for found in sorted(home.glob("*/claims.json")):
        paper = shelf.load(found.parent.name)
        written = pages.Findings.from_json(paper, found.read_text(encoding="utf-8"))
        write_page(written, found.parent, {})
        every.append(written)
    write_whole(home / "README.md", pages.overview(every))


if __name__ == "__main__":
    main()
