"""Searches over settings that a scenario or a paper leaves open: where claims hold, and where a
system is worst.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

from flowloom.base.files import put, write_whole
from flowloom.base.meter import Meter
from flowloom.seek import study as studies
from flowloom.seek import worst
from flowloom.seek.answer import Answer
from flowloom.seek.runs import Runs
from flowloom.seek.search import Search, design
from flowloom.seek.study import Study
from flowloom.seek.worst import Finding

__all__ = ["Answer", "Finding", "checked", "seek"]


def checked(file: str | Path) -> Study:
    """Reads a file with `[seek]`, and builds its scenarios at all places of the design. Raises
    `ScenarioError` for mistakes in the file, and `InputError` if it has no table `[seek]`.
    """
    study = studies.read(Path(file))
    usual = study.usual()
    study.check([*design(study), *([usual] if usual else [])])
    return study


def seek(
    file: str | Path,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    on: Executor | None = None,
    meter: Callable[[str], Meter] | None = Meter,
) -> tuple[Answer | Finding, list[Path]]:
    """Runs the search that the table `[seek]` of a file describes.

    Parameters
    ----------
    file : str or Path
        The scenario file, or a file that names several scenarios.
    out : str or Path, optional
        The folder for points and answer; by default `results/NAME`. Each point is run once: after
        an interruption, the same call continues the search.
    jobs : int, optional
        The number of points to run at the same time. By default, one per core.
    on : concurrent.futures.Executor, optional
        An executor whose workers run the points.
    meter : callable, optional
        Makes the display of progress for a label; `None` shows no progress.

    Returns
    -------
    answer : Answer or Finding
        Where the claims hold, or, for a search for a ratio, where it is largest or smallest. `str`
        is its text. The answer depends neither on `jobs` nor on `on`.
    files : list of Path
        The files that were written.

    Raises
    ------
    ScenarioError
        If the file has mistakes, or if a scenario is not valid at a place of the search. Nothing is
        written for mistakes in the file.
    ValueError
        If the file has no table `[seek]`.
    StorageError
        If a point is missing or damaged after the search has run it.
    ImportError
        If SciPy is not installed.
    """
    study = checked(file)
    root = Path(out) if out is not None else Path("results") / study.name
    runs = Runs(root, on, jobs, meter)
    if study.options["objective"] == "ratio":
        found = worst.seek(study, runs)
        write_whole(root / "worst.toml", found.smaller)
        return found, [root / "worst.toml"]
    search = Search(study, runs)
    search.fill()
    search.refine()
    search.confirm()
    answer = Answer(study, search.visits, search.note)
    return answer, _written(answer, root)


def _written(answer: Answer, root: Path) -> list[Path]:
    """Writes an answer: its places as CSV and JSON, its tables as Markdown, and its figure. Returns
    the files.
    """
    from flowloom.figures import style
    from flowloom.seek import picture

    rows = answer.rows()
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    files = [root / "places.csv", root / "seek.json", root / "seek.md"]
    for path, content in zip(files, (text.getvalue(), answer.to_json(), answer.markdown()), strict=True):
        put(path, content)
    return [*files, *style.save(picture.draw(answer), root / "seek")]
