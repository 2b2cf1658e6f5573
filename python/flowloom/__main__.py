"""The command line. The compiled part parses it all; what draws or judges comes back here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flowloom import _core

Options = Mapping[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code.

    0 done, 1 a check failed, 2 wrong input, 5 a file could not be read or written, 130 stopped.
    """
    try:
        done = _core.main(list(sys.argv[1:] if argv is None else argv))
        if isinstance(done, int):
            return done
        return COMMANDS[done["command"]](done)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        return complain(error, 5)
    except (ValueError, KeyError, ImportError) as error:
        return complain(error, 2)


def complain(error: Exception, code: int) -> int:
    """Prints the error without a traceback, and returns the exit code."""
    text: object = error.args[0] if isinstance(error, KeyError) and error.args else error
    if type(error) is not _core.StorageError and isinstance(error, OSError) and error.filename and error.strerror:
        text = f"cannot use `{error.filename}`: {error.strerror.lower()}"
    print(f"error: {text}", file=sys.stderr)
    return code


def folders(options: Options) -> list[Path]:
    """The results folders of a command."""
    found = [Path(folder) for folder in options.get("dirs") or []]
    if not found:
        raise ValueError("no results folder was given\nhint: `flowloom run FILE` writes one")
    for folder in found:
        if not (folder / "points.parquet").is_file():
            raise ValueError(f"`{folder}` is not a results folder: it has no `points.parquet`")
    return found


def place(options: Options) -> dict[str, str] | None:
    """The swept values asked for, `--at load=0.8`."""
    found: dict[str, str] = {}
    for item in options.get("at") or []:
        key, sign, value = item.partition("=") if isinstance(item, str) else (item[0], "=", item[1])
        if not sign:
            raise ValueError(f"`{item}` does not give a swept value\nhint: write the key and the value, like `--at load=0.8`")
        found[key] = value
    return found or None


def plot(options: Options) -> int:
    """Draws figures of results folders, as PNG and SVG."""
    from flowloom import plots, style
    from flowloom.results import Results

    kinds = list(options.get("kind") or [])
    formats = list(options.get("format") or style.FORMATS)
    found = folders(options)
    for folder in found:
        results = Results.open(folder)
        out = Path(options["out"]) if options.get("out") else folder / "figures"
        if options.get("out") and len(found) > 1:
            out = out / folder.name
        drawn = 0
        for name in kinds or [kind.name for kind in plots.shown(results)]:
            try:
                figure = plots.draw(results, name, at=place(options))
            except plots.NoDataError:
                if kinds:
                    raise
                continue
            single = len(kinds) == 1 and out.suffix
            for path in style.save(figure, out if single else out / name, formats):
                print(path)
            drawn += 1
        if not drawn:
            raise ValueError(f"there is nothing to draw in `{folder}`")
    return 0


def report(options: Options) -> int:
    """Prints the summary of results folders and writes their reports."""
    from flowloom import report as reports
    from flowloom.results import Results

    found = folders(options)
    if options.get("out") and len(found) > 1:
        raise ValueError("`--out` is for one results folder at a time")
    for folder in found:
        results = Results.open(folder)
        print(results.table())
        for warning in reports.warnings(results):
            print(f"warning: {warning}", file=sys.stderr)
        print(f"\nreport: {reports.write(results, options.get('out'))}")
    return 0


def summary(options: Options) -> int:
    """Prints the summary of results folders, as at the end of a run."""
    from flowloom.results import Results

    for folder in folders(options):
        print(Results.open(folder).table())
    return int(options.get("exit") or 0)


def compare(options: Options) -> int:
    """Compares systems flow by flow."""
    from flowloom import data, tables, words

    table = data.read(_core.compare([str(folder) for folder in folders(options)]))

    def cell(value: object) -> str:
        return f"{value:.4g}" if isinstance(value, float) else words.number(value)

    left = [name for name in table.column_names if name.startswith("system")]
    # Columns without any value are left out: deadlines and intervals are not always known.
    known = [name for name in table.column_names if table[name].null_count < table.num_rows]
    names = left + [name for name in known if name not in left]
    rows = [[cell(row[name]) for name in names] for row in table.to_pylist()]
    print(tables.Table([words.key(name, names) for name in names], rows, len(left)))
    return 0


def why(options: Options) -> int:
    """Prints where the time of flows went, and draws it."""
    from flowloom import style
    from flowloom.results import Results

    (folder,) = folders(options)
    found = Results.open(folder).why(options.get("flow") or (), options.get("point"), options.get("files") or ".")
    print(found)
    print()
    for path in style.save(found.plot(), Path(options["out"]) if options.get("out") else folder / "figures" / "why"):
        print(path)
    return 0


def papers(options: Options) -> int:
    """Runs a paper's figures, judges its claims and draws; without a name, lists the papers."""
    from flowloom import claims
    from flowloom import papers as shelf

    name = options.get("name")
    if not name:
        for known in shelf.names():
            paper = shelf.load(known)
            print(f"{known}: {paper.title}. {paper.source}")
            for figure in paper.figures:
                print(f"  {figure.id:<14} {figure.title}")
        return 0
    done = shelf.reproduce(
        name,
        options.get("figure"),
        options.get("profile") or "paper",
        int(options.get("jobs") or 0),
        options.get("out") or "results/papers",
    )
    print(shelf.console(done))
    print()
    for path in done.files:
        print(path)
    failed = any(j.verdict == claims.NOT_MET for j in done.judged)
    return 1 if options.get("strict") and failed else 0


COMMANDS: dict[str, Callable[[Options], int]] = {
    "plot": plot,
    "report": report,
    "run": summary,
    "compare": compare,
    "why": why,
    "papers": papers,
}


if __name__ == "__main__":
    sys.exit(main())
