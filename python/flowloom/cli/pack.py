"""Archives of runs: the scenario, the results, and the command that reproduces them."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath, PureWindowsPath

from flowloom import _core
from flowloom.base.errors import InputError
from flowloom.base.files import write_whole
from flowloom.runs.data import Data
from flowloom.runs.missing import missing

README = """{name}

{scenario:<15} the scenario, with every default{inputs}
{results:<15} tables of the run: points.parquet, summary.parquet, a folder for each point; see docs/data.md of flowloom
{sums:<15} digests of all files: sha256sum --check {sums}

The results were made by flowloom {program}. In this folder, this command makes the same bytes again:

    flowloom run {scenario} --out again
"""

DATE = (1980, 1, 1, 0, 0, 0)
"""The date of every file in an archive, so that the same results make the same archive."""

MARK = b"\xef\xbb\xbf"
"""A byte order mark, which is not part of the content that is hashed."""


def write(results: Data, scenario: Path | None = None, out: Path | None = None) -> Path:
    """Writes the archive of a run. Returns the archive.

    `scenario` is the scenario file. The files that the scenario reads are found relative to it.
    Every file is compared with its hash in the manifests. Raises `ValueError` for incomplete
    results, and for input files that are missing or have changed since the run.
    """
    folder = results.path
    if folder is None or not results.complete:
        raise InputError(f"the run is incomplete\nhint: {missing(results) or 'run it with a folder'}")
    if scenario is not None and not scenario.is_file():
        raise InputError(f"there is no scenario `{scenario}`")
    wanted = {plain(one["path"]): source(one["path"], one["hash"], scenario) for one in results.manifest["inputs"]}
    names = own_names(wanted)
    made = {f"{names['results']}/{path.relative_to(folder).as_posix()}": unlinked(folder, path) for path in results._core.whole()}
    files = {names["scenario.toml"]: results.config_text.encode()} | wanted | dict(sorted(made.items()))
    listed = "".join(f"\n{name:<15} read by the scenario" for name in wanted)
    text = README.format(
        name=results.name,
        inputs=listed,
        program=results.manifest["program"],
        scenario=names["scenario.toml"],
        results=f"{names['results']}/",
        sums=names["SHA256SUMS"],
    )
    files = {names["README.txt"]: text.encode()} | files
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    called = folder if folder.name not in ("", "..") else folder.resolve()
    name = called.name or "results"
    path = out or called.parent / f"{name}.zip"
    write_whole(path, zipped(f"{name}/", files | {names["SHA256SUMS"]: sums.encode()}))
    return path


def own_names(inputs: Iterable[str]) -> dict[str, str]:
    """Returns the names of the archive's own files and folder, chosen to differ from the names of
    the inputs.
    """
    taken = {name.split("/")[0].casefold() for name in inputs}
    found = {}
    for name in ("README.txt", "scenario.toml", "results", "SHA256SUMS"):
        free = name
        while free.casefold() in taken:
            free = f"flowloom-{free}"
        found[name] = free
    return found


def plain(name: str) -> str:
    """Returns the path of an input in the archive. Raises `ValueError` if it leads out of the archive."""
    windows = PureWindowsPath(name)
    if windows.anchor or ".." in windows.parts or PurePosixPath(name).is_absolute():
        raise InputError(
            f"the scenario reads `{name}`, which is outside its folder\nhint: move it there and run the scenario again"
        )
    return PurePosixPath(name).as_posix()


def source(name: str, wanted: str, scenario: Path | None) -> bytes:
    """Returns the content of a file that the scenario reads. Raises `ValueError` unless it has the
    hash `wanted`.
    """
    if scenario is None:
        raise InputError(
            f"the scenario reads `{name}`\nhint: name the scenario file with `--scenario`; `{name}` is found relative to it"
        )
    path = scenario.parent / name
    if not path.is_file():
        raise InputError(f"there is no `{path}`, which the scenario reads\nhint: give `--scenario` the file that was run")
    content = unlinked(scenario.parent, path)
    if hashed(content, wanted) != wanted:
        raise InputError(f"`{path}` has changed since the run\nhint: restore the file, or run the scenario again")
    return content


def hashed(content: bytes, wanted: str) -> str:
    """Returns the hash of an input file, by the algorithm of `wanted`."""
    if wanted.startswith(SHA256):
        return SHA256 + hashlib.sha256(content).hexdigest()
    return _core.content_hash(content.removeprefix(MARK))


SHA256 = "sha256:"
"""The start of the hashes of plug-ins; other hashes are 64-bit XXH3."""


def unlinked(folder: Path, path: Path) -> bytes:
    """Returns the content of a file in a folder. Raises `ValueError` if the path contains a link."""
    inside = os.path.normpath(path.relative_to(folder))
    if path.resolve() != folder.resolve() / inside:
        raise InputError(f"`{path}` is a link or is in a linked folder\nhint: replace the link by the file")
    return path.read_bytes()


def zipped(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Packs files into a ZIP archive, inside a folder."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(folder + name, DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return buffer.getvalue()
