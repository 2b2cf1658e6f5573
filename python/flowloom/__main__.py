"""The command line. The compiled part parses it; commands that draw, judge or print run here."""

from __future__ import annotations

import sys


def quiet(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Prints no traceback for Ctrl-C, however early it comes."""
    if not issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)


sys.excepthook = quiet

import gc  # noqa: E402
import os  # noqa: E402
import traceback  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import TYPE_CHECKING  # noqa: E402

from flowloom.base.errors import InputError, UnknownNameError  # noqa: E402
from flowloom.cli import console  # noqa: E402
from flowloom.cli.console import say  # noqa: E402
from flowloom.cli.given import Options, chosen_systems, folders, opened, place, warn_missing  # noqa: E402

if TYPE_CHECKING:
    from types import TracebackType

    from flowloom.api.results import Results
    from flowloom.why.parts import ClassWhy, Why

# Each command imports its libraries itself: `flowloom --version` needs none.


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code.

    0 done, 1 a check failed, 2 wrong input, 5 a file could not be read or written or no memory was
    left, 70 a bug, 130 and 143 stopped by a signal.
    """
    # Figures and tables are many objects that live until the end: garbage collection takes a tenth of the time.
    gc.set_threshold(200_000)
    # No command has matrices that are large enough for threads, and starting threads takes time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with console.ready():
            return command(list(sys.argv[1:] if argv is None else argv))
    except console.LostError as lost:
        return complain(lost, 5)
    except KeyboardInterrupt:
        return 130
    except Exception:
        # A library that is being imported may turn Ctrl-C into an error of any kind.
        if console.interrupted():
            return 130
        raise


def command(argv: list[str]) -> int:
    """Runs a command and prints its errors."""
    from flowloom import _core

    try:
        done = _core.main(console.arguments(argv))
        return done if isinstance(done, int) else COMMANDS[done["command"]](done)
    except OSError as error:
        return complain(error, 5)
    except MemoryError as error:
        why = f": {error}" if str(error) else ""
        return complain(MemoryError(f"no memory is left{why}\nhint: use a smaller run, or a machine with more memory"), 5)
    except _core.RunError as error:
        return complain(error, 70 if getattr(error, "broken", False) else 2)
    except (InputError, UnknownNameError, ImportError) as error:
        if console.interrupted():
            raise
        return complain(error, 2)
    except BaseException as error:
        # The text of an error of a library means nothing to a user: it is a bug of flowloom, whatever its class. A panic of
        # the compiled part is no `Exception`.
        panic = type(error).__name__ == "PanicException"
        if console.interrupted() or not (isinstance(error, Exception) or panic):
            raise
        console.complain(traceback.format_exc().rstrip())
        return complain(RuntimeError("this is a bug of flowloom\nhint: report it with the lines above and this command"), 70)


def complain(error: Exception, code: int) -> int:
    """Prints the error without a traceback, and returns the exit code."""
    text: object = error
    if isinstance(error, OSError) and error.filename and error.strerror:
        text = f"cannot use `{error.filename}`: {error.strerror.lower()}"
    console.complain(f"error: {text}")
    return code


def targets(options: Options, found: Sequence[Path]) -> list[Path]:
    """Returns where the figures of each results folder go, never twice to the same place."""
    if not options.get("out"):
        return [folder / "figures" for folder in found]
    out = Path(console.path(options["out"]))
    if len(found) == 1:
        return [out]
    if out.suffix.lower().lstrip(".") in SUFFIXES:
        raise InputError(f"`--out {out}` names one figure, and {len(found)} results folders were given\nhint: give a folder")
    names = [folder.resolve().name for folder in found]
    if len(set(names)) == len(names):
        return [out / name for name in names]
    return [out / f"{number}-{name}" for number, name in enumerate(names, 1)]


SUFFIXES = ("png", "svg", "pdf", "csv")


def file_of(options: Options, kinds: Sequence[str]) -> bool:
    """Whether `--out` names the file of a single figure. Raises `ValueError` if `--format` differs."""
    suffix = Path(options.get("out") or "").suffix.lower().lstrip(".")
    if suffix not in SUFFIXES or len(kinds) != 1:
        return False
    other = [form for form in options.get("format") or [] if form != suffix]
    if other:
        raise InputError(
            f"`--out {options['out']}` is a {suffix} file, and `--format` asks for {', '.join(other)}\n"
            f"hint: leave `--format` out, or give `--out` a folder"
        )
    return True


def plot(options: Options) -> int:
    """Draws figures of results folders, by default as PNG and SVG."""
    from flowloom.figures import plots, style
    from flowloom.figures.drawing import NoDataError

    kinds = list(dict.fromkeys(options.get("kind") or []))
    formats = list(options.get("format") or style.FORMATS)
    found = opened(options)
    own = plots.read_options(options)
    # Without `--kind`, an option chooses the kinds that take it.
    kinds = kinds or (plots.takers(own) if own else [])
    single = file_of(options, kinds)
    for name in kinds:
        plots.refuse_options(name, own)
    look = {name: options[name] for name in plots.LOOK if options.get(name)}
    for results, out in zip(found, targets(options, folders(options)), strict=True):
        warn_missing(results)
        at, systems = place(options, results), chosen_systems(options, results)
        drawn = 0
        for name in kinds or [kind.name for kind in plots.shown(results)]:
            try:
                figure = plots.draw(results, name, at=at, systems=systems, **look, **own)
            except NoDataError:
                if kinds:
                    raise
                continue
            for path in style.save(figure, out if single else out / name, formats):
                say(path)
            drawn += 1
        if not drawn:
            raise InputError(f"there is nothing to draw in `{results.path}`")
    return 0


def report(options: Options) -> int:
    """Prints the summary of results folders and writes their reports."""
    from flowloom.base import files
    from flowloom.pages import report as reports

    found = opened(options)
    if options.get("out") and len(found) > 1:
        raise InputError("`--out` takes a single results folder\nhint: without `--out`, each folder gets its own report")
    if options.get("out"):
        target = Path(console.path(options["out"]))
        files.refuse_others(target / "report.html" if target.is_dir() else target)
    for results in found:
        say(results.table())
        for warning in reports.warnings(results):
            console.complain(f"warning: {warning}")
        out = options.get("out")
        say(f"\nreport: {reports.write(results, out and console.path(out))}")
    return 0


def table(options: Options) -> int:
    """Prints or writes the summary of a results folder in a format for tables."""
    from flowloom.base import files

    (results,) = opened(options)
    out = new_file(options)
    found = results.table(options.get("metrics") or None, at=place(options, results))
    form = options.get("format") or "text"
    if form in ("csv", "markdown"):  # without notes
        warn_missing(results)
    text = str(found) if form == "text" else str(getattr(found, form)())
    if out is None:
        say(text.removesuffix("\n"))
    else:
        files.write_whole(out, text if text.endswith("\n") else text + "\n")
        say(out)
    return 0


def summary(options: Options) -> int:
    """Prints the summary of results folders, as at the end of a run."""
    from flowloom.runs import failures, steadiness

    for results in opened(options):
        say(results.table())
        for warning in [*steadiness.unsteady(results), *failures.untouched(results)]:
            console.complain(f"warning: {warning}")
    return int(options.get("exit") or 0)


def run_on(options: Options) -> int:
    """Runs a scenario on the workers of a cluster, and prints the summary."""
    from flowloom import _core
    from flowloom.api.results import Results
    from flowloom.base.meter import Meter
    from flowloom.clusters import engines, points

    file, out = (Path(console.path(options[key])) for key in ("file", "out"))
    pairs = [(key, value) for key, value in options["set"]]
    text = file.read_text(encoding="utf-8")
    profile, memory = options["profile"] or None, options["memory"]
    core = _core.Scenario.from_toml(text, str(file), str(file.parent), pairs, options["seed"], profile, memory)
    executor, close = engines.engine(options["on"], options.get("jobs"), out)
    meter = Meter(out.name)
    try:
        results = Results(points.run(core, file.parent.absolute(), executor, out, meter, options["overwrite"]))
    except KeyboardInterrupt:
        console.complain(f"results: {out}\nstopped; run the same command again to continue")
        raise
    finally:
        meter.close()
        close()
    console.complain(f"results: {out}")
    say(results.table())
    unfinished = sum(row["value"] or 0 for row in results.per_seed().to_pylist() if row["metric"] == "unfinished")
    if options["strict"] and unfinished:
        console.complain(
            f"error: {unfinished:.0f} flows did not finish\nhint: set a later `end` in the scenario to give them more time"
        )
        return 1
    return 0


def new_file(options: Options) -> Path | None:
    """Returns the file that `--out` names. Raises `OSError` for a path that must not be written."""
    if not options.get("out"):
        return None
    from flowloom.base import files

    out = Path(console.path(options["out"]))
    files.refuse_others(out)
    return out


def export(options: Options) -> int:
    """Writes a point in a format of another program."""
    from flowloom import exports

    (results,) = opened(options)
    warn_missing(results)
    say(exports.write(results, options["format"], options.get("point"), new_file(options)))
    return 0


def play(options: Options) -> int:
    """Writes a page that plays the packets of a run."""
    from flowloom.pages import playback

    (results,) = opened(options)
    out = new_file(options)
    warn_missing(results)
    at = {"point": options["point"]} if options.get("point") else place(options, results)
    say(playback.write(results, at, out, options.get("around") or (), options.get("files") or "."))
    return 0


def pack(options: Options) -> int:
    """Writes the archive of a run."""
    from flowloom.cli import pack

    (results,) = opened(options)
    scenario = Path(console.path(options["scenario"])) if options.get("scenario") else None
    say(pack.write(results, scenario, new_file(options)))
    return 0


def compare(options: Options) -> int:
    """Compares systems flow by flow."""
    from flowloom import _core
    from flowloom.runs import data
    from flowloom.runs.missing import missing
    from flowloom.runs.pairs import pairs

    found = [data.Data.open(folder) for folder in folders(options)]
    absent = [(results, missing(results)) for results in found]
    notes = [f"{results.path}: {text}" if len(found) > 1 else text for results, text in absent if text]
    try:
        table = data.read(_core.compare([str(folder) for folder in folders(options)], options.get("where")))
    except _core.StorageError:
        for text in notes:
            console.complain(f"warning: {text}")
        raise
    note = data.engine_note(run.engine for results in found for run in results.runs if not run.ideal)
    say(pairs(table, "\n".join(filter(None, [*notes, note]))))
    return 0


def why(options: Options) -> int:
    """Prints and draws where the time of flows went."""
    from flowloom.base import files
    from flowloom.figures import style

    (results,) = opened(options)
    warn_missing(results)
    if options.get("collective"):
        say(results.why_collective(options["collective"], options.get("point")))
        return 0
    out = Path(console.path(options["out"])) if options.get("out") else (results.path or Path()) / "figures" / "why"
    table = out.with_suffix("") if out.suffix.lower().lstrip(".") in SUFFIXES else out
    table = table.with_name(f"{table.name}.packets.parquet")
    if options.get("trace"):
        files.refuse_others(table)
    found = explained(options, results)
    say(found)
    say()
    for path in style.save(found.plot(), out):
        say(path)
    packets = getattr(found, "packets", None)
    if packets is not None:
        import pyarrow.parquet as pq

        pq.write_table(packets, table, compression="zstd")
        say(table)
    return 0


def explained(options: Options, results: Results) -> Why | ClassWhy:
    """Explains flows, the last flows of groups, or a class of flows by system."""
    read, trace, point = options.get("files") or ".", bool(options.get("trace")), options.get("point")
    at, tail = place(options, results), options.get("tail")
    if at or results.filter or tail is not None:
        return results.why_class(at, tail=tail or 0.0, limit=options.get("limit") or 200, files=read)
    if options.get("group"):
        return results.why_groups(groups(options["group"]), point, read, trace=trace)
    return results.why(options.get("flow") or (), point, read, slowest=options.get("slowest") or 5, trace=trace)


def groups(text: str) -> list[int] | None:
    """Returns the groups that `--group` names; `None` for the groups that took longest."""
    if text == "slowest":
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise InputError(
            f"`--group {text}` is neither `slowest` nor a list of group numbers\nhint: write `--group slowest` or `--group 3,7`"
        )
    return [int(part) for part in parts]


def examples(options: Options) -> int:
    """Copies examples; without a name, lists them."""
    from flowloom.cli import copies

    return copies.carry_out(options, copies.examples(), "flowloom examples demo")


def lab(options: Options) -> int:
    """Copies exercises of the lab; without a name, lists them."""
    from flowloom.cli import copies

    return copies.carry_out(options, copies.lab(), "flowloom lab incast")


def new(options: Options) -> int:
    """Writes and builds a plug-in."""
    from flowloom.cli import plugins

    out = Path(console.path(options.get("out") or "."))
    return plugins.new(options["part"], options["name"], options["lang"], out, bool(options.get("overwrite")))


def papers(options: Options) -> int:
    """Runs a paper's figures, judges its claims and draws; without a name, lists the papers."""
    from flowloom.papers import claims, pages, shelf
    from flowloom.papers.reproduction import reproduce, update

    name = options.get("name")
    if not name:
        for known in shelf.names():
            paper = shelf.load(known)
            say(f"{known}: {paper.title}. {paper.source}")
            for one in paper.figures:
                say(f"  {one.id:<14} {one.title}")
        return 0
    figure, jobs, out = options.get("figure"), options.get("jobs") or None, console.path(options.get("out") or "results/papers")
    if options.get("update"):
        done = update(name, console.path(options["update"]), figure, jobs, out)
    else:
        done = reproduce(name, figure, options.get("profile") or "paper", jobs, out, overwrite=bool(options.get("overwrite")))
    say(pages.console(done.findings))
    say()
    for path in done.files:
        say(path)
    failed = any(j.verdict == claims.NOT_MET for j in done.findings.judged)
    return 1 if options.get("strict") and failed else 0


def seek(options: Options) -> int:
    """Searches open settings, and prints the answer."""
    from flowloom.clusters import engines
    from flowloom.seek import checked, seek

    file = Path(console.path(options["file"]))
    out = Path(console.path(options["out"])) if options.get("out") else None
    executor, close = None, None
    if options["on"] != "local":
        checked(file)  # before a cluster starts
        executor, close = engines.engine(options["on"], options.get("jobs"), out or Path("results") / file.stem)
    try:
        found, files = seek(file, out=out, jobs=options.get("jobs"), on=executor)
    except KeyboardInterrupt:
        console.complain("stopped; run the same command again to continue")
        raise
    finally:
        if close is not None:
            close()
    say(found)
    say()
    for path in files:
        say(path)
    return 0


COMMANDS: dict[str, Callable[[Options], int]] = {
    "plot": plot,
    "report": report,
    "run": summary,
    "table": table,
    "run_on": run_on,
    "compare": compare,
    "export": export,
    "pack": pack,
    "play": play,
    "why": why,
    "examples": examples,
    "lab": lab,
    "new": new,
    "papers": papers,
    "seek": seek,
}


if __name__ == "__main__":
    sys.exit(main())
