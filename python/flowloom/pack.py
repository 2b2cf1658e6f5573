"""An archive of a run: scenario, results, and the one command that remakes them."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from flowloom.files import write_whole
from flowloom.results import Results

README = """{name}

scenario.toml   the scenario, with every default{inputs}
results/        tables of the run: points.parquet, summary.parquet, a folder for each point; see docs/data.md of flowloom
SHA256SUMS      digests of all files: sha256sum --check SHA256SUMS

The results were made by flowloom {program}. In this folder, this command makes the same bytes again:

    flowloom run scenario.toml --out again
"""

DATE = (1980, 1, 1, 0, 0, 0)
"""Of every file in an archive, so that the same results make the same archive."""


def write(results: Results, scenario: Path | None = None, out: Path | None = None) -> Path:
    """Writes the archive of a run. `scenario` is its file, beside which the files lie that it reads. Returns the archive.

    Raises `ValueError` for results that are incomplete, and for files that are missing.
    """
    folder = results.path
    if folder is None or not results.complete:
        raise ValueError("the run is incomplete\nhint: the same `flowloom run` completes it")
    wanted = {name: source(name, scenario) for name in sorted(set(inputs(results.config)))}
    files = {"scenario.toml": results.config_text.encode()} | {name: path.read_bytes() for name, path in wanted.items()}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.is_file() and (path.suffix == ".parquet" or path.name == "manifest.json"):
            files[f"results/{inside.as_posix()}"] = path.read_bytes()
    listed = "".join(f"\n{name:<15} read by the scenario" for name in wanted)
    text = README.format(name=results.name, inputs=listed, program=results.manifest["program"])
    files = {"README.txt": text.encode()} | files
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    path = out or folder.with_name(f"{folder.name}.zip")
    write_whole(path, zipped(f"{folder.name}/", files | {"SHA256SUMS": sums.encode()}))
    return path


def inputs(part: object) -> Iterator[str]:
    """The files that a resolved scenario reads."""
    if isinstance(part, Mapping):
        for key, value in part.items():
            if key == "path" and isinstance(value, str):
                yield value
            elif key == "path" and isinstance(value, list):
                yield from (one for one in value if isinstance(one, str))
            else:
                yield from inputs(value)
    elif isinstance(part, list):
        for one in part:
            yield from inputs(one)


def source(name: str, scenario: Path | None) -> Path:
    """A file that the scenario reads."""
    if scenario is None:
        raise ValueError(
            f"the scenario reads `{name}`\nhint: name the scenario's file with `--scenario`, which `{name}` lies beside"
        )
    path = scenario.parent / name
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise ValueError(
            f"the scenario reads `{name}`, which does not lie beside it\nhint: move it there and run the scenario again"
        )
    if not path.is_file():
        raise ValueError(f"there is no `{path}`, which the scenario reads\nhint: `--scenario` names the file that was run")
    return path


def zipped(folder: str, files: Mapping[str, bytes]) -> bytes:
    """Files in a folder as an archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(folder + name, DATE)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return buffer.getvalue()
