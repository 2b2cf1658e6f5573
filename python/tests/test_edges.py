"""The edges of the command line: nothing is lost, nothing is stuck, and every message is ours."""

from __future__ import annotations

import os
import pickle
import pty
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flowloom
import pytest
from damage import contents, cut, forged
from flowloom import __main__ as command_line

TEXT = """
seed = [1, 2]
[topology]
kind = "star"
hosts = 4
[workload.web]
kind = "poisson"
flows = 20
load = [0.2, 0.5]
[[system]]
label = "TCP"
transport = "newreno"
"""
LONG = TEXT.replace("load = [0.2, 0.5]", 'load = 0.5\nsize = "fixed"\nmean = "100GB"')
FEW = """
seed = 1
topology = "star"
[workload.web]
kind = "poisson"
flows = 5
load = 0.5
[[system]]
transport = "newreno"
"""

STARTED: list[subprocess.Popen[str]] = []
"""The command lines that a test has started."""

SCREEN = 24 * 80
"""The characters of a screen: no message may be longer."""

LIBRARIES = re.compile(
    r"Traceback|Errno|os error|Number of rows|does not exist in schema|expected struct|missing field|ArrowInvalid|\.py:\d"
    r"|codec can't"
)
"""What only libraries write."""


def flowloom_at(folder: Path, *argv: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.Popen[str]:
    """Starts the command line."""
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    whole = {key: value for key, value in os.environ.items() if not key.startswith(("LC_", "PYTHONIO"))} | dict(env or {})
    command = [sys.executable, "-m", "flowloom", *argv]
    STARTED.append(subprocess.Popen(command, cwd=folder, env=whole, text=True, errors="replace", **streams))
    return STARTED[-1]


@pytest.fixture(autouse=True)
def nothing_is_left_running() -> Iterator[None]:
    """A test that fails does not leave a long run behind."""
    yield
    for process in STARTED:
        if process.poll() is None:
            process.kill()
            process.wait()
    STARTED.clear()


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=600)
    return process.returncode, out or "", err or ""


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with scenarios and the results of one of them."""
    folder = tmp_path_factory.mktemp("edges")
    (folder / "s.toml").write_text(TEXT)
    (folder / "few.toml").write_text(FEW)
    code, _, err = finish(flowloom_at(folder, "run", "s.toml", "--out", "r"))
    assert code == 0, err
    return folder


@pytest.fixture
def here(ready: Path, tmp_path: Path) -> Path:
    """A copy of that folder, to break."""
    return shutil.copytree(ready, tmp_path / "here")


def point(folder: Path, number: int = 0) -> Path:
    """The folder of a point."""
    return sorted(path.parent for path in (folder / "r").glob("*/flows.parquet"))[number]


@dataclass(frozen=True)
class Case:
    """A command, what it ends with, and what it says."""

    name: str
    argv: Sequence[str]
    code: int
    says: Sequence[str] = ()
    prints: Sequence[str] = ()
    breaks: Callable[[Path], object] = lambda folder: None
    keeps: bool = True
    """Whether the results of the folder stay as they are."""
    env: Mapping[str, str] = field(default_factory=dict)


def damaged_setting(folder: Path) -> None:
    (folder / "s.toml").write_text(TEXT.replace("hosts = 4", "hosts = 5"))


def other_version(folder: Path) -> None:
    forged(point(folder) / "manifest.json", lambda manifest: manifest.update(program="0.0.1+0123"))


def nothing_finished(folder: Path) -> None:
    (folder / "few.toml").write_text('end = "1ns"\n' + FEW)
    assert finish(flowloom_at(folder, "run", "few.toml", "--out", "none"))[0] == 0


def scenario(*changes: tuple[str, str]) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        text = TEXT
        for old, new in changes:
            assert old in text
            text = text.replace(old, new)
        (folder / "s.toml").write_text(text)

    return write


OVERWRITE = "choose another folder with `--out DIR`, or replace the results with `--overwrite`"
LOST = [
    Case(
        "another setting",
        ["run", "s.toml", "--out", "r"],
        5,
        ["4 points, such as", "other settings", OVERWRITE],
        breaks=damaged_setting,
    ),
    Case("another scenario", ["run", "few.toml", "--out", "r"], 5, ["not a point of this scenario", OVERWRITE]),
    Case("fewer seeds", ["run", "s.toml", "--seed", "1", "--out", "r"], 5, ["2 points, such as", "not a point of this scenario"]),
    Case("another version", ["run", "s.toml", "--out", "r"], 5, ["1 point, such as", "another version"], breaks=other_version),
    Case("more seeds", ["run", "s.toml", "--seed", "1,2,3", "--out", "r"], 0, ["2 points run", "4 kept"], keeps=False),
    Case("overwrite", ["run", "few.toml", "--out", "r", "--overwrite"], 0, ["1 point run"], keeps=False),
    Case(
        "cut flows",
        ["run", "s.toml", "--out", "r"],
        0,
        ["1 point is rerun", "it has 100 bytes", "3 kept"],
        breaks=lambda folder: cut(point(folder) / "flows.parquet"),
        keeps=False,
    ),
    Case(
        "no ports",
        ["run", "s.toml", "--out", "r"],
        0,
        ["1 point is rerun", "it is gone"],
        breaks=lambda folder: (point(folder) / "ports.parquet").unlink(),
        keeps=False,
    ),
    Case(
        "a point is gone",
        ["run", "s.toml", "--out", "r"],
        0,
        ["1 point is rerun", "its folder is gone"],
        breaks=lambda folder: shutil.rmtree(point(folder)),
        keeps=False,
    ),
    Case(
        "cut manifest of a point",
        ["run", "s.toml", "--out", "r"],
        0,
        ["1 point is rerun", "cut off"],
        breaks=lambda folder: cut(point(folder) / "manifest.json"),
        keeps=False,
    ),
    Case(
        "cut manifest of the run",
        ["run", "s.toml", "--out", "r"],
        0,
        ["0 points run", "4 kept"],
        breaks=lambda folder: cut(folder / "r/manifest.json"),
        keeps=False,
    ),
    Case(
        "report of cut flows",
        ["report", "r"],
        5,
        ["it has 100 bytes", "hint: repeat the `flowloom run`"],
        breaks=lambda folder: cut(point(folder) / "flows.parquet"),
    ),
    Case(
        "plot without flows",
        ["plot", "r"],
        5,
        ["flows.parquet", "it is gone", "hint: repeat the `flowloom run`"],
        breaks=lambda folder: (point(folder) / "flows.parquet").unlink(),
    ),
    Case(
        "report of a cut manifest",
        ["report", "r"],
        5,
        ["r/manifest.json", "cut off", "hint: repeat the `flowloom run`"],
        breaks=lambda folder: cut(folder / "r/manifest.json"),
    ),
    Case(
        "report of an empty manifest",
        ["report", "r"],
        5,
        ["is empty", "hint: repeat"],
        breaks=lambda folder: (folder / "r/manifest.json").write_text(""),
    ),
    Case(
        "report of another manifest",
        ["report", "r"],
        5,
        ["not a manifest"],
        breaks=lambda folder: (folder / "r/manifest.json").write_text('{"a": 1}'),
    ),
    Case("report to a device", ["report", "r", "--out", "/dev/null"], 5, ["`/dev/null` is a device or a pipe", "hint: "]),
    Case(
        "report to a pipe", ["report", "r", "--out", "pipe"], 5, ["is a device or a pipe"], breaks=lambda f: os.mkfifo(f / "pipe")
    ),
    Case(
        "plot to a pipe",
        ["plot", "r", "--kind", "metrics", "--out", "p.png"],
        5,
        ["is a device or a pipe"],
        breaks=lambda f: os.mkfifo(f / "p.png"),
    ),
]

MESSAGES = [
    Case("value not swept", ["plot", "r", "--at", "load=0.7"], 2, ["no point has `load` = `0.7`", "one of 0.2, 0.5"]),
    Case(
        "key not swept", ["plot", "r", "--at", "laod=0.2"], 2, ["`laod` is not swept", "did you mean `load`?", "workload.web.load"]
    ),
    Case("nobody together", ["plot", "r", "--at", "point=tcp-load0.2-seed1", "--at", "seed=2"], 2, ["together"]),
    Case("no system", ["plot", "r", "--at", "system=UDP"], 2, ["no point has `system` = `UDP`", "one of TCP"]),
    Case("at without a value", ["plot", "r", "--at", "load"], 2, ["it must be a key and a value"]),
    Case("kind", ["plot", "r", "--kind", "fct_cfd"], 2, ["did you mean `fct_cdf`?", "one of slowdown, "]),
    Case("no samples", ["plot", "r", "--kind", "queue"], 2, ["hint: set `ports = true`"]),
    Case(
        "suffix against format",
        ["plot", "r", "--kind", "metrics", "--out", "x.pdf", "--format", "png"],
        2,
        ["`--out x.pdf` is a pdf file, and `--format` asks for png"],
    ),
    Case(
        "one file for two folders",
        ["plot", "r", "r", "--kind", "metrics", "--out", "x.pdf"],
        2,
        ["names one figure, and 2 results"],
    ),
    Case("no jobs", ["run", "s.toml", "--jobs", "0"], 2, ["'0'", "a whole number of at least 1"]),
    Case("jobs of a paper", ["papers", "merp", "--jobs", "-1"], 2, ["a whole number of at least 1"]),
    Case("too few flows", ["check", "s.toml", "--set", "workload.web.flows=-3"], 2, ["`flows` goes from 1 to 100000000"]),
    Case("range", ["explain", "poisson"], 0, prints=["from 1 to 100000000"]),
    Case(
        "swept key", ["check", "s.toml"], 2, ["unknown key `laod`", "did you mean `load`?"], breaks=scenario(("load =", "laod ="))
    ),
    Case("metric", ["explain", "mean_fct"], 2, ["did you mean `mean_fct_s`?"]),
    Case("nothing has finished", ["plot", "none", "--kind", "fct_cdf"], 2, ["no flow has finished"], breaks=nothing_finished),
    Case("no results folder", ["report", "nothing"], 2, ["`nothing` is not a results folder", "hint: "]),
    Case("compare of one system", ["compare", "r"], 5, ["nothing to compare", "hint: "]),
]

PLACES = [
    Case("no docstrings", ["report", "r"], 0, prints=["mean FCT"], env={"PYTHONOPTIMIZE": "2"}),
    Case(
        "no docstrings in a figure",
        ["plot", "r", "--kind", "metrics"],
        0,
        prints=["metrics.png"],
        env={"PYTHONOPTIMIZE": "2"},
        keeps=False,
    ),
    Case("ASCII", ["run", "s.toml", "--out", "r"], 0, prints=["mean FCT", "+-"], env={"PYTHONIOENCODING": "ascii"}, keeps=False),
    Case(
        "no locale",
        ["run", "s.toml", "--out", "r"],
        0,
        prints=["mean FCT"],
        env={"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        keeps=False,
    ),
    Case("Latin 1", ["run", "s.toml", "--out", "r"], 0, prints=["mean FCT"], env={"PYTHONIOENCODING": "latin-1"}, keeps=False),
    Case("40 columns", ["run", "s.toml", "--out", "r"], 0, prints=["mean FCT"], env={"COLUMNS": "40"}, keeps=False),
    Case(
        "emoji",
        ["run", "s.toml", "--out", "emoji"],
        0,
        prints=["🦀 crab"],
        breaks=scenario(('"TCP"', '"🦀 crab"')),
    ),
    Case(
        "a very long label",
        ["run", "s.toml", "--out", "long"],
        0,
        prints=["x" * 100],
        breaks=scenario(('"TCP"', f'"{"x" * 100}"')),
    ),
]


@pytest.mark.parametrize("case", [*LOST, *MESSAGES, *PLACES], ids=lambda case: case.name)
def test_edge(here: Path, case: Case) -> None:
    case.breaks(here)
    before = contents(here / "r")
    code, out, err = finish(flowloom_at(here, *case.argv, env=case.env))
    assert code == case.code, (out, err)
    for part in case.says:
        assert part in err, err
    for part in case.prints:
        assert part in out, out
    assert not LIBRARIES.search(out + err), err
    if code:
        assert err.count("error: ") == 1 and len(err) < SCREEN and out == "", err
        assert not [name for name in contents(here) if name.endswith("tmp")]
    if case.keeps:
        after = contents(here / "r")
        assert {name: after.get(name) for name in before} == before
    for path in (here / "pipe", here / "p.png"):
        assert not path.exists() or path.is_fifo(), "a pipe is never replaced"


def test_what_was_damaged_comes_back(here: Path) -> None:
    whole = contents(here / "r")
    cut(point(here) / "flows.parquet")
    (point(here, 1) / "ports.parquet").write_bytes(bytes((point(here, 1) / "ports.parquet").stat().st_size))
    (point(here, 2) / "manifest.json").unlink()
    code, _, err = finish(flowloom_at(here, "run", "s.toml", "--out", "r"))
    assert code == 0 and "note: 3 points are rerun" in err and "and 2 more" in err
    again = contents(here / "r")
    assert again.keys() == whole.keys()
    assert [name for name in whole if name.endswith(".parquet") and again[name] != whole[name]] == []


def test_overwriting_leaves_no_orphans(here: Path) -> None:
    assert finish(flowloom_at(here, "run", "few.toml", "--out", "r", "--overwrite"))[0] == 0
    assert [path.name for path in (here / "r").iterdir() if path.is_dir()] == ["newreno-seed1"]
    assert flowloom.open(here / "r").complete


def test_file_names_never_collide(tmp_path: Path) -> None:
    names = ["a b", "a-b", "a:b", "🦀", "🐌", "x" * 180, "x" * 181, ".hidden"]
    found = set()
    for name in names:
        (tmp_path / f"{name}.toml").write_text(FEW)
        code, _, err = finish(flowloom_at(tmp_path, "run", f"./{name}.toml"))
        assert code == 0, err
        found.add(re.search(r"^results: (.*)$", err, re.MULTILINE)[1])  # type: ignore[index]
    assert len(found) == len(names) and all((tmp_path / folder).is_dir() for folder in found)
    # Figures of two folders of the same name.
    (tmp_path / "a").mkdir()
    shutil.move(tmp_path / sorted(found)[0], tmp_path / "a/r")
    shutil.copytree(tmp_path / "a/r", tmp_path / "b/r")
    code, out, _ = finish(flowloom_at(tmp_path, "plot", "a/r", "b/r", "--kind", "metrics", "--format", "svg", "--out", "f"))
    assert code == 0 and len(set(out.split())) == 2 and all((tmp_path / path).is_file() for path in out.split())


def test_values_may_be_listed_and_repeated(here: Path) -> None:
    for at in (["--at", "load=0.2,0.5"], ["--at", "load=0.2", "--at", "load=0.5"]):
        code, _, err = finish(flowloom_at(here, "plot", "r", "--kind", "metrics", "--format", "svg", "--out", "f", *at))
        assert code == 0, err
        both = (here / "f/metrics.svg").read_bytes()
        assert finish(flowloom_at(here, "plot", "r", "--kind", "metrics", "--format", "svg", "--out", "f"))[0] == 0
        assert both == (here / "f/metrics.svg").read_bytes()


def test_a_link_to_a_report_is_followed(here: Path) -> None:
    (here / "there").mkdir()
    (here / "link.html").symlink_to(here / "there/report.html")
    assert finish(flowloom_at(here, "report", "r", "--out", "link.html"))[0] == 0
    assert (here / "link.html").is_symlink() and (here / "there/report.html").is_file()


# Output that nobody reads, or that cannot be written


def test_a_reader_that_leaves_loses_nothing(here: Path) -> None:
    for argv, made in (
        (["run", "few.toml"], "results/few/points.parquet"),
        (["plot", "r", "--kind", "metrics", "--format", "svg", "--out", "f"], "f/metrics.svg"),
        (["list"], "s.toml"),
        (["explain", "merp"], "s.toml"),
    ):
        process = flowloom_at(here, *argv)
        assert process.stdout is not None
        process.stdout.close()
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0 and "error" not in err, (argv, err)
        assert (here / made).is_file()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no full disk")
def test_a_full_output_is_told(here: Path) -> None:
    for argv in (
        ["run", "few.toml"],
        ["report", "r"],
        ["list"],
        ["explain", "merp"],
        ["check", "s.toml"],
        ["--help"],
    ):
        with open("/dev/full", "w") as full:
            process = flowloom_at(here, *argv, stdout=full)
        code, _, err = finish(process)
        assert code == 5 and "cannot write to the standard output" in err and not LIBRARIES.search(err), (argv, code, err)
    assert (here / "results/few/points.parquet").is_file() and (here / "r/report.html").is_file()


def test_closed_outputs_lose_nothing(here: Path) -> None:
    for closed in (">&-", "2>&-", "<&- >&- 2>&-"):
        shutil.rmtree(here / "results", ignore_errors=True)
        done = subprocess.run(
            f"{sys.executable} -m flowloom run few.toml {closed}", shell=True, cwd=here, capture_output=True, check=False
        )
        assert done.returncode == 0, (closed, done)
        whole = contents(here / "results/few")
        assert flowloom.open(here / "results/few").complete
        assert all(name.endswith(".lock") or content[:4] in (b"PAR1", b"{\n  ") for name, content in whole.items()), (
            "nothing was printed there"
        )


# Signals


def started(process: subprocess.Popen[str], there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not there():
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="the system does not list threads: Linux does")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("argv", [["check", "big.toml"], ["run", "big.toml"]], ids=lambda argv: argv[0])
def test_planning_ends_at_a_signal(tmp_path: Path, argv: list[str], sent: signal.Signals, code: int) -> None:
    # Twenty million flows are drawn before the run.
    (tmp_path / "big.toml").write_text(FEW.replace("flows = 5", "flows = 20000000"))
    process = flowloom_at(tmp_path, *argv)
    # Planning is the second thread.
    started(process, lambda: len(os.listdir(f"/proc/{process.pid}/task")) > 1)
    process.send_signal(sent)
    exit_code, out, err = finish(process)
    assert (exit_code, out) == (code, "") and "Traceback" not in err
    assert [path.name for path in tmp_path.iterdir()] == ["big.toml"]


AT_IMPORT = """
import os, runpy, signal, sys
awaited = sys.argv.pop(1)
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == awaited:
            sys.meta_path.remove(self)
            os.write(1, b"sent\\n")
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
runpy.run_module("flowloom", run_name="__main__", alter_sys=True)
"""
"""Sends Ctrl-C when the module of the first argument is imported, and passes the other arguments to flowloom."""


# Modules that a report imports after the hook for errors is set.
@pytest.mark.parametrize(
    "module", ["gc", "flowloom.cli.console", "flowloom._core", "flowloom.pages.report", "numpy", "pyarrow", "matplotlib"]
)
def test_a_signal_at_the_start_is_no_crash(here: Path, module: str) -> None:
    command = [sys.executable, "-c", AT_IMPORT, module, "report", "r"]
    done = subprocess.run(command, cwd=here, capture_output=True, text=True, check=False, timeout=600)
    assert done.stdout == "sent\n" and done.returncode in (130, -signal.SIGINT), done
    assert "Traceback" not in done.stderr and "flowloom/" not in done.stderr, done.stderr


# NumPy raises the first one, Python the second one while it creates a class.
@pytest.mark.parametrize("error", [ImportError("PLEASE READ THIS"), RuntimeError("Error calling __set_name__ on 'property'")])
def test_ctrl_c_during_an_import_is_no_wrong_input(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def library_does_so(_argv: object) -> int:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        raise error

    monkeypatch.setattr("flowloom._core.main", library_does_so)
    assert command_line.main(["--version"]) == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Progress


def test_the_first_line_comes_before_a_point_ends_and_begins_with_the_time_to_go(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    process = flowloom_at(tmp_path, "run", "long.toml")
    assert process.stderr is not None
    # Warnings come before. A point takes minutes.
    line = next(line for line in process.stderr if "of 2 points" in line)
    assert "0 of 2 points" in line and "to go" in line.split(", ")[0], line
    process.send_signal(signal.SIGINT)
    assert finish(process)[0] == 130


def test_forty_columns_show_the_time_to_go(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(LONG)
    ours, theirs = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    process = flowloom_at(tmp_path, "run", "long.toml", stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 65536):
            shown += chunk
            if shown.count(b"to go") == 3:
                process.send_signal(signal.SIGINT)
    except OSError:
        pass  # the process has ended
    process.communicate(timeout=600)
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", shown.decode())]
    drawn = [line for line in lines if line.startswith("[")]
    assert drawn and all("to go" in line for line in drawn) and all(len(line) <= 40 for line in drawn), lines


# From Python


def test_errors_of_the_package_are_in_the_package(tmp_path: Path) -> None:
    for error in ("ScenarioError", "RunError", "StorageError"):
        kind = getattr(flowloom, error)
        assert error in flowloom.__all__ and kind.__module__ == "flowloom"
        assert type(pickle.loads(pickle.dumps(kind("x")))) is kind
    with pytest.raises(flowloom.StorageError, match="not a run folder"):
        flowloom.open(tmp_path)
    assert "open" not in flowloom.__all__, "`from flowloom import *` must not hide Python's own"


def test_unknown_names_are_errors(ready: Path) -> None:
    results = flowloom.open(ready / "r")
    for call in (lambda: results.table(["mean_fct"]), lambda: results.plot("metrics", metrics=["mean_fct"])):
        with pytest.raises(ValueError, match=r"there is no metric `mean_fct`; did you mean `mean_fct_s`\?"):
            call()
    with pytest.raises(KeyError, match=r"no column `fct_p`.*did you mean `fct_ps`"):
        results.flows(["fct_p"])
    with pytest.raises(KeyError, match=r"one of 0.2, 0.5"):
        results.plot("metrics", at={"load": 0.9})
    assert "not started" in str(results.table(["not_started"])), "a column without values"
    for jobs in (0, -1):
        with pytest.raises(ValueError, match="at least 1"):
            flowloom.Scenario.from_toml(FEW).run(jobs=jobs)


def test_what_no_scenario_can_hold_is_named() -> None:
    import numpy as np

    base: dict[str, Any] = {"topology": "star", "workload": {"web": {"kind": "poisson", "flows": np.int64(3), "load": 0.5}}}
    assert len(flowloom.Scenario.from_dict(base | {"system": [{"transport": "newreno"}]}).points) == 1
    for value, named in (({1, 2}, "type `set`"), (object(), "object"), (1 << 80, "too large"), (float("nan"), "nan")):
        with pytest.raises(flowloom.ScenarioError, match=f"(?s)workload.web.load.*{named}"):
            flowloom.Scenario.from_dict(base | {"workload": {"web": {"kind": "poisson", "load": value}}})
    endless: dict[str, Any] = {}
    endless["a"] = endless
    with pytest.raises(flowloom.ScenarioError, match="nested"):
        flowloom.Scenario.from_dict(endless)


def test_results_of_another_run_are_kept_in_python_too(here: Path) -> None:
    before = contents(here / "r")
    with pytest.raises(flowloom.StorageError, match="--overwrite"):
        flowloom.run(here / "few.toml", out=here / "r")
    assert contents(here / "r") == before
    cut(point(here) / "flows.parquet")
    with pytest.warns(UserWarning, match="1 point is rerun"):
        flowloom.run(here / "s.toml", out=here / "r")
    assert flowloom.run(here / "few.toml", out=here / "r", overwrite=True).complete


# Very much of something


def cpu_of_children() -> float:
    """The time, in s, that processes started here and ended have had on processors."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_very_many_mistakes_are_counted(tmp_path: Path) -> None:
    (tmp_path / "many.toml").write_text("".join(f"key{i} = 1\n" for i in range(100_000)) + FEW)
    began = cpu_of_children()
    code, _, err = finish(flowloom_at(tmp_path, "check", "many.toml"))
    assert cpu_of_children() - began < 10, "a second, and some for a machine whose cores are shared"
    assert code == 2 and err.count("error: unknown key") == 20 and "99980 more" in err and len(err) < 20 * SCREEN


def test_no_message_is_longer_than_a_screen(tmp_path: Path) -> None:
    long = "y" * 200_000
    for text in (
        "a = " + "[" * 100_000,
        f"{long} = 1\n" + FEW,
        f'topology = "{long}"\n',
        f'x = {{ y = "{long}" }} z',
        f'name = "{long}"' + FEW,
    ):
        (tmp_path / "long.toml").write_text(text)
        code, _, err = finish(flowloom_at(tmp_path, "check", "long.toml"))
        assert code == 2 and all(len(part) < SCREEN for part in err.split("\n\n")), len(err)


def test_a_chain_of_thousands_of_switches_is_planned(tmp_path: Path) -> None:
    import resource

    n = 20_000
    (tmp_path / "net.csv").write_text("a,b,rate,delay\n" + "".join(f"n{i},n{i + 1},10Gbps,1us\n" for i in range(n + 1)))
    (tmp_path / "chain.toml").write_text(FEW.replace('topology = "star"', '[topology]\nkind = "file"\npath = "net.csv"'))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    code, _, err = finish(flowloom_at(tmp_path, "check", "chain.toml", preexec_fn=limited))
    assert code == 0 and "is valid" in err, err


# What is imported, and how often a figure is laid out


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def limited(megabytes: int) -> Callable[[], None]:
    """What limits the address space of a process before it starts."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))


# The routes of 4000 switches take 160 MB.
CHAIN = """
[topology]
kind = "chain"
switches = 4000
hosts_per_switch = 1
[workload.one]
kind = "long"
size = "10KB"
pairs = "h0->h1"
[[system]]
transport = "newreno"
"""


def test_what_does_not_fit_into_memory_is_refused_before_it_runs(tmp_path: Path) -> None:
    (tmp_path / "chain.toml").write_text(CHAIN)
    samples = '[sample]\ninterval = "1ns"\nflows = true\n'
    (tmp_path / "long.toml").write_text('end = "1000s"\n' + CHAIN.replace("4000", "4").replace('size = "10KB"', "") + samples)
    before = contents(tmp_path)
    for command in ("check", "run"):
        code, _, err = finish(flowloom_at(tmp_path, command, "chain.toml", preexec_fn=limited(150)))
        assert code == 2 and "would need 0.2 GB of memory" in err and "GB are free: use fewer nodes" in err, err
        code, _, err = finish(flowloom_at(tmp_path, command, "long.toml"))
        assert code == 2 and "needs about" in err and "hold time series\nhint: set a longer `interval`" in err, err
    assert contents(tmp_path) == before


@pytest.mark.parametrize("command", ["check", "run"])
def test_an_allocation_that_fails_ends_with_5_and_one_line(tmp_path: Path, command: str) -> None:
    (tmp_path / "chain.toml").write_text(CHAIN)
    argv = [command, "chain.toml", "--memory", "1TB"]
    code, _, err = finish(flowloom_at(tmp_path, *argv, preexec_fn=limited(150)))
    # A slow machine reports its progress first.
    lines = [line for line in err.splitlines() if not line.endswith("to go, planning")]
    assert (code, len(lines)) == (5, 1) and lines[0].startswith("error: no memory is left: "), err


def test_python_has_the_limit_too() -> None:
    assert len(flowloom.Scenario.from_toml(FEW, memory="1GB").points) == 1
    sampled = LONG + '[sample]\ninterval = "1ns"\nflows = true\n'
    small = flowloom.Scenario.from_toml(sampled, memory="1GB")
    with pytest.warns(flowloom.ScenarioWarning), pytest.raises(flowloom.ScenarioError, match=r"needs about .* by `--memory`"):
        small.run()
    with pytest.raises(flowloom.ScenarioError, match="allowed by `--memory`"):
        flowloom.Scenario.from_toml(FEW, memory="10kB")
    with pytest.raises(flowloom.ScenarioError, match=r"`memory`: `7` has no unit"):
        flowloom.Scenario.from_toml(FEW, memory="7")


def test_little_is_imported_for_little() -> None:
    heavy = {"numpy", "pyarrow", "matplotlib"}
    assert not heavy & modules_after("import flowloom")
    assert not heavy & modules_after("from flowloom.__main__ import main; main(['--version'])")
    assert not heavy & modules_after("from flowloom.__main__ import main; main(['list'])")
    assert not heavy - {"numpy", "pyarrow"} & modules_after("import flowloom; flowloom.Results")


def test_a_figure_is_laid_out_once(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from flowloom.figures import style
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    laid_out = 0
    execute = ConstrainedLayoutEngine.execute

    def counted(self: ConstrainedLayoutEngine, fig: Any) -> object:
        nonlocal laid_out
        laid_out += 1
        return execute(self, fig)

    monkeypatch.setattr(ConstrainedLayoutEngine, "execute", counted)
    figure = flowloom.open(ready / "r").plot("fct_cdf")
    style.save(figure, tmp_path / "f", ["png", "svg", "pdf"])
    style.inline_svg(figure, "x")
    assert laid_out == 1


DAMAGE = """
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from flowloom import Scenario, ScenarioError

columns = {"src": ["0", "1"], "dst": ["3", "4"], "size_bytes": ["9", "8"], "start": ["5us", "6us"]}
pq.write_table(pa.table(columns), "t.parquet", compression="none")
good = Path("t.parquet").read_bytes()
footer = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
for at in range(footer, len(good) - 8):
    Path("t.parquet").write_bytes(good[:at] + b"\\1" + good[at + 1 :])
    try:
        Scenario.from_file("s.toml")
    except ScenarioError as error:
        print(error)
"""


def test_damaged_parquet_files_are_errors_and_no_panics(tmp_path: Path) -> None:
    workload = 'workload.w = { kind = "table", path = "t.parquet" }'
    (tmp_path / "s.toml").write_text(
        f'topology = {{ kind = "star", hosts = 8 }}\n{workload}\nsystem = [{{ transport = "dctcp" }}]\n'
    )
    done = subprocess.run([sys.executable, "-c", DAMAGE], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    # The library itself panics on some of them.
    assert "this Parquet file is damaged" in done.stdout and "this is not a valid Parquet file" in done.stdout
