"""Searches over settings that a scenario or a paper leaves open: where do claims hold, and where is a system worst?"""

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
from flowloom.seek.search import Search
from flowloom.seek.worst import Finding

__all__ = ["Answer", "Finding", "seek"]


def seek(
    file: str | Path,
    *,
    out: str | Path | None = None,
    jobs: int | None = None,
    on: Executor | None = None,
    meter: Callable[[str], Meter] | None = Meter,
) -> tuple[Answer | Finding, list[Path]]:
    """Run the search that the table `[seek]` of a file describes. Returns the answer, and the files that were written.

    Points go to folders in `out` (`results/NAME`), as those of any run, and are run once: an interrupted search goes on from
    there. `jobs` run at a time (`None`: one per core), or on the workers of `on`, an executor of `concurrent.futures`. Neither
    changes a result.

    Raises `ScenarioError` and `ValueError` for what is wrong in the file, and `ImportError` without SciPy.
    """
    study = studies.read(Path(file))
    study.refuse_unknown()
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
    return answer, written(answer, root)


def written(answer: Answer, root: Path) -> list[Path]:
    """Writes an answer: its visits as CSV and JSON, its tables as Markdown, its figure."""
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
