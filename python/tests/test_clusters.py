"""Points on the workers of a cluster: the same bytes, whatever happens to the workers."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import small
from flowloom import _core
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario
from flowloom.clusters import engines, points

pytestmark = pytest.mark.filterwarnings("ignore:.*0 are above")

TEXT = """
name = "small"
seed = [1, 2]
ideal = ["srpt"]
[topology]
kind = "star"
hosts = 4
[workload.web]
kind = "poisson"
flows = 30
load = [0.2, 0.6]
size = "fixed"
mean = "15KB"
[[system]]
label = "TCP"
transport = "newreno"
"""
POINTS = 8


@pytest.fixture
def scenario() -> Scenario:
    return Scenario.from_toml(TEXT)


@pytest.fixture
def here(scenario: Scenario, tmp_path: Path) -> Path:
    scenario.run(out=tmp_path / "here")
    return tmp_path / "here"


def files(folder: Path) -> dict[str, bytes]:
    """All that is the same in equal runs: everything but manifests, which have times."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


class Direct(Executor):
    """Runs work at once, in this process; `does` may do something else in its place."""

    def __init__(self, does: Callable[[points.Task], Any] = points.work) -> None:
        self.does = does
        self.seen: list[str] = []

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        self.seen.append(args[0].point)
        try:
            future.set_result(self.does(args[0]))
        except BaseException as error:
            future.set_exception(error)
        return future


def test_results_are_the_same_bytes(scenario: Scenario, here: Path, tmp_path: Path) -> None:
    reported: list[dict[str, Any]] = []
    with ProcessPoolExecutor(2) as pool:
        results = scenario.run(on=pool, out=tmp_path / "there", progress=reported.append)
    assert results.complete and len(results.runs) == POINTS
    assert files(tmp_path / "there") == files(here) and len(files(here)) > 2 * POINTS
    assert [one["points_done"] for one in reported] == list(range(POINTS + 1)) and reported[-1]["remaining_s"] == 0


def test_a_run_goes_on_wherever_it_was_begun(scenario: Scenario, here: Path, tmp_path: Path) -> None:
    out = tmp_path / "mixed"
    names = [point["point"] for point in scenario.points]
    assert not scenario.run(points=names[:3], out=out).complete
    executor = Direct()
    scenario.run(on=executor, points=names[:5], out=out)
    assert sorted(executor.seen) == sorted(names[3:5]), "what is there is not run again"
    assert scenario.run(out=out).complete
    assert files(out) == files(here)
    untouched = Direct()
    scenario.run(on=untouched, out=out)
    assert untouched.seen == []


def test_a_run_that_is_stopped_keeps_what_came_back(scenario: Scenario, here: Path, tmp_path: Path) -> None:
    out = tmp_path / "stopped"

    def stop(progress: dict[str, Any]) -> None:
        if progress["points_done"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        scenario.run(on=Direct(), out=out, progress=stop)
    kept = Results.open(out)
    assert not kept.complete and sum(run.state == "done" for run in kept.runs) == 3
    assert scenario.run(on=Direct(), out=out).complete and files(out) == files(here)


def test_points_that_are_removed_during_a_run_are_missed(scenario: Scenario, tmp_path: Path) -> None:
    out = tmp_path / "gone"
    first = scenario.points[0]["point"]

    def remove(progress: dict[str, Any]) -> None:
        if progress["points_done"] == POINTS:
            shutil.rmtree(out / first)

    with pytest.raises(_core.StorageError, match=f"lost points during the run: {first}\nhint: "):
        scenario.run(on=Direct(), out=out, progress=remove)
    assert not Results.open(out).complete
    assert scenario.run(on=Direct(), out=out).complete


def test_a_worker_of_another_version_is_named(scenario: Scenario, tmp_path: Path) -> None:
    def other(task: points.Task) -> dict[str, bytes]:
        return points.work(points.Task(task.plan, task.folder, task.point, "9.9.9+0"))

    with pytest.raises(points.VersionError, match=r"this machine has 9\.9\.9\+0") as raised:
        scenario.run(on=Direct(other), out=tmp_path / "v")
    assert _core.version in str(raised.value) and "hint: install the same version" in str(raised.value)


def test_trouble_with_files_is_tried_again_and_then_set_aside(scenario: Scenario, here: Path, tmp_path: Path) -> None:
    bad = scenario.points[2]["point"]
    left = {"failures": 2}

    def full(task: points.Task) -> dict[str, bytes]:
        if task.point == bad and left["failures"]:
            left["failures"] -= 1
            raise OSError(errno.ENOSPC, "No space left on device")
        return points.work(task)

    executor = Direct(full)
    assert scenario.run(on=executor, out=tmp_path / "again").complete
    assert executor.seen.count(bad) == points.TRIES and files(tmp_path / "again") == files(here)
    left["failures"] = 99
    with pytest.raises(points.SetAsideError, match=f"1 of {POINTS} points set aside: `{bad}`: .*No space left") as raised:
        scenario.run(on=Direct(full), out=tmp_path / "aside")
    assert "hint: the same command runs the missing points" in str(raised.value)
    left["failures"] = 0
    kept = Results.open(tmp_path / "aside")
    assert not kept.complete and sum(run.state == "done" for run in kept.runs) == POINTS - 1
    assert scenario.run(out=tmp_path / "aside").complete and files(tmp_path / "aside") == files(here)


def dying(scenario: Scenario, error: Exception, deaths: int) -> Direct:
    """An executor whose workers die of the first point so many times."""
    left = [error] * deaths

    def dies(task: points.Task) -> dict[str, bytes]:
        if task.point == scenario.points[0]["point"] and left:
            raise left.pop()
        return points.work(task)

    return Direct(dies)


def test_a_point_whose_worker_dies_is_tried_once_more(scenario: Scenario, here: Path, tmp_path: Path) -> None:
    bad = scenario.points[0]["point"]
    error = points.WorkerDiedError("was killed by signal 9")
    once = dying(scenario, error, 1)
    assert scenario.run(on=once, out=tmp_path / "once").complete and files(tmp_path / "once") == files(here)
    assert once.seen.count(bad) == 2
    always = dying(scenario, error, 99)
    message = f"1 of {POINTS} points set aside: `{bad}`: 2 workers died while running it; the last was killed by signal 9\nhint: "
    with pytest.raises(points.SetAsideError, match=message):
        scenario.run(on=always, out=tmp_path / "always")
    assert always.seen.count(bad) == 2
    assert sum(run.state == "done" for run in Results.open(tmp_path / "always").runs) == POINTS - 1


def test_a_point_that_workers_of_dask_die_of_is_not_tried_again(scenario: Scenario, tmp_path: Path) -> None:
    class KilledWorker(Exception):  # noqa: N818 - its name in Dask
        allowed_failures = 10
        last_worker = SimpleNamespace(address="tcp://10.0.0.3:4242")

    bad = scenario.points[0]["point"]
    executor = dying(scenario, KilledWorker(), 99)
    message = f"`{bad}`: 11 workers died while running it; the last was tcp://10.0.0.3:4242\nhint: "
    with pytest.raises(points.SetAsideError, match=message):
        scenario.run(on=executor, out=tmp_path / "d")
    assert executor.seen.count(bad) == 1, "Dask has tried it already"


def test_points_that_are_not_run_are_counted(scenario: Scenario, tmp_path: Path) -> None:
    lost = [point["point"] for point in scenario.points][:3]

    def cancels(task: points.Task) -> dict[str, bytes]:
        if task.point in lost:
            raise CancelledError
        return points.work(task)

    with pytest.raises(points.SetAsideError, match=f"3 of {POINTS} points set aside, such as `.*`: the scheduler is gone\nhint: "):
        scenario.run(on=Direct(cancels), out=tmp_path / "c")
    assert sum(run.state == "done" for run in Results.open(tmp_path / "c").runs) == POINTS - 3


def killed(task: points.Task) -> dict[str, bytes]:
    """A worker that is killed, as for want of memory."""
    os._exit(9)


def test_a_pool_whose_worker_dies_says_so_and_keeps_what_is_there(scenario: Scenario, tmp_path: Path) -> None:
    class Deadly(ProcessPoolExecutor):
        def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
            return super().submit(killed, *args, **named)

    with Deadly(1) as pool, pytest.raises(OSError, match="a worker died, and the executor stopped all others"):
        scenario.run(on=pool, out=tmp_path / "k")
    assert not Results.open(tmp_path / "k").complete
    assert scenario.run(out=tmp_path / "k").complete


def test_mistakes_are_raised_as_here(tmp_path: Path) -> None:
    scenario = Scenario.from_toml(TEXT)
    with pytest.raises(ValueError, match="needs `out`"):
        scenario.run(on=Direct())
    with pytest.raises(_core.ScenarioError, match="there is no point `x`"):
        scenario.run(points=["x"], out=tmp_path / "p")
    with pytest.raises(ValueError, match="there is no point `x`"):
        scenario.run(on=Direct(), points=["x"], out=tmp_path / "p")
    auto = Scenario.from_toml(TEXT.replace("seed = [1, 2]", 'seed = "auto"\nmax_seeds = 4'))
    with pytest.raises(_core.ScenarioError, match="cannot run in shards"):
        auto.run(on=Direct(), out=tmp_path / "a")
    scenario.run(out=tmp_path / "other")
    changed = Scenario.from_toml(TEXT.replace("15KB", "16KB"))
    with pytest.raises(_core.StorageError, match="results of another run"):
        changed.run(on=Direct(), out=tmp_path / "other")
    assert changed.run(on=Direct(), out=tmp_path / "other", overwrite=True).complete


# The engines of `--on`. They are extras: without them these tests are skipped.


@pytest.fixture
def quick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A scenario file, in a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(TEXT)
    yield tmp_path


def test_a_dask_cluster_gives_the_same_bytes_also_when_a_worker_is_killed(scenario: Scenario, here: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    executor, close = engines.engine("dask", 2, tmp_path / "dask")
    killed_one = False

    def kill(progress: dict[str, Any]) -> None:
        nonlocal killed_one
        if progress["points_done"] == 2 and not killed_one:
            killed_one = True
            cluster = executor._client.cluster  # type: ignore[attr-defined]
            next(iter(cluster.workers.values())).process.process._process.kill()

    try:
        results = scenario.run(on=executor, out=tmp_path / "dask", progress=kill)
    finally:
        close()
    assert killed_one and results.complete and files(tmp_path / "dask") == files(here)
    assert "DASK_LOGGING__DISTRIBUTED" not in os.environ


def test_dask_from_the_command_line(quick: Path, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    assert main(["run", "small.toml", "--on", "dask", "--jobs", "1", "--out", "out"]) == 0
    assert "TCP" in capfd.readouterr().out
    assert files(quick / "out") == files(here)


@pytest.mark.parametrize("listens", [False, True], ids=["nobody listens", "nobody answers"])
def test_a_scheduler_that_is_not_there(
    quick: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, listens: bool
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(engines, "PATIENCE", "1s")
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        if listens:
            held.listen()
        address = f"dask://127.0.0.1:{held.getsockname()[1]}"
        assert main(["run", "small.toml", "--on", address]) == 5
    err = capfd.readouterr().err
    assert f"no scheduler answers at `{address}`" in err and "hint: `dask scheduler`" in err and "Traceback" not in err
    assert not (quick / "results").exists(), "nothing is written"


def test_ctrl_c_ends_a_dask_cluster_without_a_word_of_it(quick: Path) -> None:
    pytest.importorskip("distributed")
    (quick / "long.toml").write_text(TEXT.replace("15KB", "100GB"))
    command = [sys.executable, "-m", "flowloom", "run", "long.toml", "--on", "dask", "--jobs", "2"]
    # A terminal sends Ctrl-C to the whole group of processes, workers included.
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        assert next(line for line in process.stderr if "0 of" in line)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=600)
    assert (process.returncode, out) == (130, "")
    assert err == "results: results/small\nstopped; run the same command again to continue\n"


def test_an_engine_that_is_not_installed(quick: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["run", "small.toml", "--on", "dask"]) == 2
    assert "hint: pip install 'flowloom[dask]'" in capfd.readouterr().err


@pytest.mark.slow
def test_a_dask_scheduler_that_is_killed_is_named_and_finished_points_are_kept(quick: Path) -> None:
    pytest.importorskip("distributed")
    (quick / "mixed.toml").write_text(small.SHORT_AND_LONG)
    python = [sys.executable, "-m"]
    with socket.socket() as free, ExitStack() as opened:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()

        def start(*command: str) -> subprocess.Popen[str]:
            process = subprocess.Popen([*python, *command], stderr=subprocess.PIPE, text=True, start_new_session=True)
            opened.callback(small.end, process)
            return process

        scheduler = start("distributed.cli.dask_scheduler", f"--host=tcp://{address}", "--no-dashboard")
        assert scheduler.stderr is not None
        assert any("Scheduler at" in line for line in scheduler.stderr)
        worker = start("distributed.cli.dask_worker", f"tcp://{address}", "--nworkers=4", "--no-dashboard", "--death-timeout=5")
        assert worker.stderr is not None
        assert any("Registered to" in line for line in worker.stderr)
        run = start("flowloom", "run", "mixed.toml", "--on", f"dask://{address}", "--out", "out")
        assert run.stderr is not None
        assert any("2 of 4" in line for line in run.stderr)
        scheduler.kill()
        err = run.stderr.read()
        assert run.wait(60) == 5
    assert "2 of 4 points set aside, such as `" in err and "`: the scheduler is gone\n" in err and "Traceback" not in err
    assert sum(run.state == "done" for run in Results.open(quick / "out").runs) == 2


# Shares.


def test_shares_of_machines_without_a_cluster(quick: Path, here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for number in (1, 2, 3):
        assert main(["run", "small.toml", "--shard", f"{number}/3"]) == 0
        assert f"shard {number} of 3" in capfd.readouterr().err
    folders = [f"results/small-shard{number}of3" for number in (1, 2, 3)]
    assert all((quick / folder / "points.parquet").is_file() for folder in folders)
    assert main(["merge", *folders[:2], "--out", "results/part", "--strict"]) == 1
    assert "incomplete: 2 points are missing from all folders" in capfd.readouterr().err
    assert main(["merge", *folders, "--out", "results/small"]) == 0
    assert files(quick / "results/small") == files(here)
    assert main(["run", "small.toml", "--out", "results/small"]) == 0
    assert "8 kept from an earlier run" in capfd.readouterr().err
    assert main(["report", folders[0]]) == 0
    assert "points are missing, because only one shard of the run was run" in capfd.readouterr().out


def test_shares_that_do_not_belong_together(quick: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "small.toml", "--shard", "1/2"]) == 0
    assert main(["run", "small.toml", "--set", "mtu=9000B", "--shard", "2/2", "--out", "results/b"]) == 0
    assert main(["merge", "results/small-shard1of2", "results/b", "--out", "results/m"]) == 5
    err = capfd.readouterr().err
    assert "are not shards of one run: their scenarios differ" in err and not (quick / "results/m").exists()
    for wrong in (["--shard", "3/2"], ["--on", "dusk"], ["--shard", "1/2", "--on", "dask"]):
        assert main(["run", "small.toml", *wrong]) == 2
    assert main(["run", "small.toml", "--set", "seed=auto", "--shard", "1/2"]) == 2
    assert "cannot run in shards" in capfd.readouterr().err


def test_without_masks_of_signals_ctrl_c_is_not_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask")
    with pytest.raises(KeyboardInterrupt), engines.without_ctrl_c():
        signal.raise_signal(signal.SIGINT)


def test_a_system_may_wait_for_one_that_counts_other_things(tmp_path: Path) -> None:
    text = TEXT + '[[system]]\nlabel = "Homa"\ntransport = "homa"\n[[system]]\nlabel = "NDP"\ntransport = "ndp"\nqdisc = "trim"\n'
    scenario = Scenario.from_toml(text)
    names = [point["point"] for point in scenario.points if point["system"] == "Homa"]
    part = scenario.run(points=names, out=tmp_path / "there")
    flows = part.flows()
    kinds = {name.split(".")[0] for name in flows.column_names}
    assert flows.num_rows > 0 and "homa" in kinds and "ndp" not in kinds
    scenario.run(on=Direct(), out=tmp_path / "there")
    scenario.run(out=tmp_path / "here")
    assert files(tmp_path / "there") == files(tmp_path / "here")
