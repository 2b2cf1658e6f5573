"""What `make site` does to pages: the README is the first page, and links to files outside this folder become their paths."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Adds the README as `index.md`."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, "index.md", content=(HERE.parent / "README.md").read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links from where the text was written to pages of the site, or to paths."""
    name = page.file.src_uri
    folder = HERE.parent if name == "index.md" else (HERE / name).parent

    def link(found: re.Match[str]) -> str:
        image, text, target, anchor = found.groups()
        if "://" in target:
            return found[0]
        file = (folder / target).resolve()
        if HERE in file.parents and files.get_file_from_path(file.relative_to(HERE).as_posix()) is not None:
            back = "../" * name.count("/")
            return f"{image}[{text}]({back}{file.relative_to(HERE).as_posix()}{anchor or ''})"
        return text if text == target else f"{text} (`{file.relative_to(HERE.parent)}`)"

    return LINK.sub(link, markdown)
