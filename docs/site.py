"""What `make site` does to pages.

The README is the first page. The notebooks run in a folder of their own, since they write files next to themselves. The API of Rust
lies at `rust/`. Links to files outside this folder become links to that API, or paths.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from mkdocs.utils import get_relative_url

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
NOTEBOOKS = sorted(path.relative_to(HERE).as_posix() for path in HERE.rglob("*.ipynb"))
RUSTDOC = ROOT / "target/doc"
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#\s]+)(#[^)\s]*)?\)")

JUPYTER = {
    # Without it the kernel warns that other users of the machine may listen.
    "KernelManager": {"transport_encryption": "auto"},
    # After the run, what a command printed becomes one output again. Without that, a table breaks where the pipe did.
    "Exporter": {
        "default_preprocessors": [
            f"nbconvert.preprocessors.{name}Preprocessor" for name in ("Execute", "CoalesceStreams", "HighlightMagics")
        ]
    },
    "CoalesceStreamsPreprocessor": {"enabled": True},
}

folder: tempfile.TemporaryDirectory[str] | None = None
"""Where the notebooks run."""


def on_startup(command: str, dirty: bool) -> None:
    """Makes the folder for the notebooks. Their kernels find the commands of this environment, and no settings of the user."""
    global folder
    folder = tempfile.TemporaryDirectory(prefix="flowloom-")
    settings = Path(folder.name) / "settings"
    settings.mkdir()
    (settings / "jupyter_nbconvert_config.json").write_text(json.dumps(JUPYTER), encoding="utf-8")
    os.environ |= dict.fromkeys(("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"), str(settings))
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def on_shutdown() -> None:
    """Removes what the notebooks wrote."""
    if folder is not None:
        folder.cleanup()


# Before the plugin for notebooks, which takes the file that it finds.
@event_priority(100)
def on_files(files: Any, config: Any) -> Any:
    """Adds the README as `index.md`; puts a copy of each notebook, with links of the site, in its place."""
    assert folder is not None
    files.append(File.generated(config, "index.md", content=(ROOT / "README.md").read_text(encoding="utf-8")))
    for name in NOTEBOOKS:
        original = files.get_file_from_path(name)
        notebook = json.loads((HERE / name).read_text(encoding="utf-8"))
        for cell in notebook["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = linked("".join(cell["source"]), name, files, original.url)
        copy = Path(folder.name) / name
        copy.parent.mkdir(exist_ok=True)
        copy.write_text(json.dumps(notebook), encoding="utf-8")
        files.remove(original)
        files.append(File(name, folder.name, config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links from where the text was written to pages of the site, or to paths."""
    return linked(markdown, page.file.src_uri, files)


def on_post_build(config: Any) -> None:
    """Adds the API of Rust, where `cargo doc` has written it."""
    if RUSTDOC.is_dir():
        shutil.copytree(RUSTDOC, Path(config.site_dir) / "rust", dirs_exist_ok=True)


def linked(markdown: str, name: str, files: Any, url: str | None = None) -> str:
    """The text of a page with links that work on the site. With `url`, the page's own, they lead to URLs, else to source files."""
    home = ROOT if name == "index.md" else (HERE / name).parent
    back = "../" * name.count("/")

    def link(found: re.Match[str]) -> str:
        image, text, target, anchor = found.groups()
        if "://" in target:
            return found[0]
        file = (home / target).resolve()
        page = files.get_file_from_path(file.relative_to(HERE).as_posix()) if HERE in file.parents else None
        if page is not None:
            place = f"{back}{page.src_uri}" if url is None else get_relative_url(page.url, url)
            return f"{image}[{text}]({place}{anchor or ''})"
        path = file.relative_to(ROOT)
        if path.match("crates/*/src/lib.rs"):
            crate = {"py": "_core"}.get(path.parts[1], path.parts[1])
            if (RUSTDOC / crate / "index.html").is_file():
                # In HTML, since MkDocs refuses links in Markdown to what is no page of its own.
                return f'<a href="{back}rust/{crate}/index.html">{text}</a>'
        return text if text in (target, str(path)) else f"{text} (`{path}`)"

    return LINK.sub(link, markdown)
