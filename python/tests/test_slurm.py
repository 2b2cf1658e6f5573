"""Points as jobs of Slurm: with commands of Slurm that this file replaces and, in `make slow`, with a real Slurm."""

from __future__ import annotations

import operator
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import one_machine_slurm
import pytest
import small
from flowloom.__main__ import main
from flowloom.api.results import Results
from flowloom.api.scenario import Scenario
from flowloom.clusters import points, slurm

pytestmark = pytest.mark.filterwarnings("ignore:.*0 are above")

COMMANDS = {
    "sbatch": """
if [ -f refusal ] && ls running.* >/dev/null 2>&1 || [ -f closed ]; then
    printf 'sbatch: error: invalid partition specified: x\\nsbatch: error: Batch job submission failed\\n' >&2; exit 1
fi
for given; do case $given in --output=*) log=$(echo "${given#--output=}" | sed s/%%/%/g);; esac; done
id=$(ls *.sh 2>/dev/null | wc -l)
cat > $id.sh
touch running.$id
(sh $id.sh >"$log" 2>&1; [ ! -f refusal ] || sleep 0.3; rm running.$id) >/dev/null 2>&1 </dev/null &
echo "$id;cluster"
""",
    "squeue": """
[ ! -f silent ] || exit 1
for job in running.*; do echo "${job#running.} RUNNING"; done
""",
    "scancel": 'echo "$@" > cancelled',
    "scontrol": "cat scontrol.txt",
    "sacct": "cat sacct.txt",
}
"""Commands that run jobs on this machine. Files in their folder change what they do."""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the commands, which are found instead of those of Slurm."""
    folder = tmp_path / "machine"
    folder.mkdir()
    for name, lines in COMMANDS.items():
        (folder / name).write_text(f'#!/bin/sh\ncd "{folder}"\n{lines}\n')
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(slurm.Jobs, "LOOK_S", 0.05)
    monkeypatch.setattr(slurm.Jobs, "ASK_S", 0.2)
    return folder


@pytest.fixture
def jobs(machine: Path, tmp_path: Path) -> Iterator[slurm.Jobs]:
    executor = slurm.Jobs(tmp_path / "100%j-slurm", None)
    yield executor
    executor.shutdown()


def test_results_are_the_same_bytes_and_nothing_else_is_left(
    machine: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    here, out = tmp_path / "here", tmp_path / "out"
    small.scenario(["TCP"], seeds=(1, 2)).run(out=here)
    executor = slurm.Jobs(tmp_path / "out-slurm", 2)
    assert small.scenario(["TCP"], seeds=(1, 2)).run(on=executor, out=out).complete
    executor.shutdown()
    assert tables(out) == tables(here)
    assert not (tmp_path / "out-slurm").exists() and capfd.readouterr() == ("", "")


def tables(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.parquet")}


def test_no_more_jobs_than_workers_run_at_a_time(machine: Path, tmp_path: Path) -> None:
    executor = slurm.Jobs(tmp_path / "slurm", 1)
    futures = [executor.submit(time.sleep, 0.3) for _ in range(3)]
    most = 0
    while not all(future.done() for future in futures):
        most = max(most, len(executor.jobs))
        time.sleep(0.02)
    executor.shutdown()
    assert most == 1 and len(list(machine.glob("*.sh"))) == 3


def test_a_job_that_slurm_refuses_while_others_run_is_submitted_later(
    machine: Path, jobs: slurm.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the others have returned their results and are about to leave the queue."""
    monkeypatch.setattr(slurm.Jobs, "ASK_S", 1)
    (machine / "refusal").touch()
    futures = [jobs.submit(time.sleep, 0.2) for _ in range(3)]
    assert not wait(futures, timeout=60).not_done
    assert [future.exception() for future in futures] == [None] * 3


def test_the_words_of_slurm_when_it_refuses_every_job(
    machine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (machine / "closed").touch()
    (tmp_path / "mixed.toml").write_text(small.SHORT_AND_LONG)
    assert main(["run", "mixed.toml", "--on", "slurm", "--out", "out"]) == 5
    err = capfd.readouterr().err
    assert "4 of 4 points set aside, such as `" in err
    assert "`: `sbatch` failed: invalid partition specified: x; Batch job submission failed\n" in err
    assert not (tmp_path / "out-slurm").exists()


def test_errors_in_a_job_are_those_of_the_function(jobs: slurm.Jobs) -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        jobs.submit(operator.truediv, 1, 0).result(60)
    assert raised.type is ZeroDivisionError
    assert jobs.submit(int, "7f", base=16).result(60) == 127


def test_a_job_that_left_the_queue_without_a_result_is_dead(machine: Path, jobs: slurm.Jobs) -> None:
    """Neither `scontrol` nor `sacct` answers."""
    with pytest.raises(points.WorkerDiedError, match=r"^left the queue without a result$"):
        jobs.submit(os._exit, 3).result(60)


def test_jobs_of_another_cluster_are_looked_for_there(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (machine / "squeue").write_text('#!/bin/sh\necho "$SLURM_CLUSTERS $SQUEUE_PARTITION"\n')
    monkeypatch.setenv("SBATCH_CLUSTERS", "east")
    monkeypatch.setenv("SQUEUE_PARTITION", "mine")
    assert slurm.slurm("squeue") == "east \n"


def test_a_job_is_not_dead_because_slurm_does_not_answer(machine: Path, jobs: slurm.Jobs) -> None:
    (machine / "silent").touch()
    future = jobs.submit(os._exit, 3)
    time.sleep(5 * jobs.ASK_S)
    assert not future.done()
    (machine / "silent").unlink()
    assert isinstance(future.exception(60), points.WorkerDiedError)


def test_an_executor_that_cannot_write_its_files_says_why(machine: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    executor = slurm.Jobs(tmp_path / "file" / "slurm", None)
    assert str(tmp_path / "file") in str(executor.submit(int).exception(60))
    executor.shutdown()


def test_an_executor_that_cannot_go_on_completes_every_future(
    machine: Path, jobs: slurm.Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: slurm.Jobs) -> None:
        raise OSError("the folder is gone")

    future = jobs.submit(time.sleep, 1)
    until(lambda: jobs.jobs)
    monkeypatch.setattr(slurm.Jobs, "take", broken)
    assert str(future.exception(60)) == "the folder is gone"
    jobs.watcher.join()
    assert str(jobs.submit(int).exception(60)) == "the folder is gone", "also those of calls that come later"


def test_shutdown_cancels_jobs(machine: Path, tmp_path: Path) -> None:
    executor = slurm.Jobs(tmp_path / "slurm", 2)
    for _ in range(3):
        executor.submit(time.sleep, 3)
    until(lambda: len(list(machine.glob("*.sh"))) == 2)
    executor.shutdown()
    assert (machine / "cancelled").read_text() == "0 1\n"
    assert not (tmp_path / "slurm").exists()


def until(holds: Callable[[], Any], limit: float = 60) -> float:
    """Waits until something holds. Returns how long that took, in s."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() < began + limit, "too late"
        time.sleep(0.05)
    return time.monotonic() - began


KILLED = "JobId=5 JobState=FAILED Reason=JobLaunchFailure ExitCode=0:9 TimeLimit=01:00:00 MinMemoryNode=1G MinTmpDiskNode=0"
"""From the output of Slurm 22.05, as those below."""


@pytest.mark.parametrize(
    ("scontrol", "sacct", "said"),
    [
        (KILLED, None, "was killed by signal 9, most likely for want of memory (1.0 GiB requested)"),
        (
            KILLED,
            "RUNNING|0:0|01:00:00|1G|\nCANCELLED|0:9|||921600K\n",
            "was killed by signal 9, most likely for want of memory (1.0 GiB requested, 900 MiB used)",
        ),
        (
            None,
            "FAILED|0:9|01:00:00|500Mc|\nCANCELLED|0:9|||13384K\n",
            "was killed by signal 9, most likely for want of memory (500 MiB requested, 13 MiB used)",
        ),
        (
            "JobState=OUT_OF_MEMORY ExitCode=0:125 TimeLimit=01:00:00 MinMemoryCPU=500M",
            None,
            "ran out of memory (500 MiB requested)",
        ),
        ("JobState=FAILED ExitCode=0:11 MinMemoryCPU=0", None, "was killed by signal 11"),
        (
            "JobState=FAILED ExitCode=0:53",
            None,
            "was killed by signal 53, most likely because its machine cannot write to `{folder}`",
        ),
        ("JobState=FAILED ExitCode=1:0", None, "ended with exit code 1: No module named flowloom"),
        ("JobState=CANCELLED Reason=None ExitCode=0:15", "CANCELLED by 0|0:0|Partition_Limit|500M|\n", "was cancelled"),
        (None, "CANCELLED by 0|0:0|Partition_Limit|500M|\n", "was cancelled"),
        (
            "JobState=TIMEOUT ExitCode=0:0 TimeLimit=00:01:00",
            None,
            "reached its time limit of 00:01:00, which SBATCH_TIMELIMIT sets",
        ),
        ("JobState=NODE_FAIL ExitCode=0:0", None, "ended in state NODE_FAIL"),
        ("JobState=COMPLETED ExitCode=0:0", None, "left the queue without a result: No module named flowloom"),
    ],
)
def test_what_is_said_of_a_job_that_died(machine: Path, scontrol: str | None, sacct: str | None, said: str) -> None:
    for name, text in (("scontrol", scontrol), ("sacct", sacct)):
        if text is not None:
            (machine / f"{name}.txt").write_text(text)
    log = machine / "log"
    log.write_text("Traceback:\nNo module named flowloom\n\n")
    assert slurm.cause("5", log) == said.format(folder=machine)


def test_slurm_where_there_is_none(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "mixed.toml").write_text(small.SHORT_AND_LONG)
    assert main(["run", "mixed.toml", "--on", "slurm"]) == 5
    assert "hint: run the command where `sbatch` works" in capfd.readouterr().err


# A real Slurm.


WITHOUT = pytest.param(False, id="no accounting")
EACH = pytest.mark.parametrize("real", [WITHOUT, pytest.param(True, id="accounting")], indirect=True, scope="module")
WITHOUT_ACCOUNTING = pytest.mark.parametrize("real", [WITHOUT], indirect=True, scope="module")


@pytest.fixture(scope="module")
def real(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The environment variables of a Slurm, without and with accounting."""
    if missing := one_machine_slurm.missing(request.param):
        pytest.skip(missing)
    with one_machine_slurm.started(request.param) as env:
        yield env


@pytest.fixture
def run(real: dict[str, str], tmp_path: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Starts a run of two points that end at once and two that take hours, as `out` in the folder of the test."""
    (tmp_path / "mixed.toml").write_text(small.SHORT_AND_LONG)
    command = [sys.executable, "-m", "flowloom", "run", "mixed.toml", "--on", "slurm", "--out", "out"]

    with ExitStack() as opened:

        def start() -> subprocess.Popen[str]:
            process = subprocess.Popen(
                command,
                cwd=tmp_path,
                env=os.environ | real,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            opened.callback(small.end, process)
            assert process.stderr is not None
            assert any("2 of 4" in line for line in process.stderr)
            return process

        yield start
        one_machine_slurm.empty(real)


def kept(folder: Path) -> int:
    return sum(run.state == "done" for run in Results.open(folder).runs)


def workers(tmp_path: Path) -> set[int]:
    """The processes of workers of the run of a test. A worker whose call is gone is about to exit."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if slurm.__name__ in command[:3] and Path(command[3]).is_relative_to(tmp_path) and Path(command[3]).exists():
            found.add(int(folder.name))
    return found


def queue(real: dict[str, str]) -> list[str]:
    return one_machine_slurm.ask(real, "squeue", "--noheader", "--format=%A").split()


@EACH
@pytest.mark.slow
def test_a_real_slurm_gives_the_same_bytes(
    real: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in real.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "short.toml").write_text(small.SHORT_AND_LONG.replace("100GB", "30KB"))
    assert main(["run", "short.toml", "--on", "slurm", "--jobs", "2", "--out", "out"]) == 0
    assert "error" not in capfd.readouterr().err
    Scenario.from_file(tmp_path / "short.toml").run(out=tmp_path / "here")
    assert tables(tmp_path / "out") == tables(tmp_path / "here") and len(tables(tmp_path / "here")) > 4
    assert not (tmp_path / "out-slurm").exists()


@EACH
@pytest.mark.slow
def test_ctrl_c_cancels_the_jobs_of_a_real_slurm(
    real: dict[str, str], run: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = run()
    until(lambda: len(workers(tmp_path)) == 2)
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("results: out\nstopped; run the same command again to continue\n") and "Traceback" not in err
    until(lambda: not queue(real) and not workers(tmp_path))
    assert kept(tmp_path / "out") == 2 and not (tmp_path / "out-slurm").exists()


@EACH
@pytest.mark.slow
def test_workers_of_a_real_slurm_that_are_killed(
    real: dict[str, str], run: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = run()
    killed: set[int] = set()
    for _ in range(2):
        until(lambda: len(workers(tmp_path) - killed) == 2)
        time.sleep(2)  # Slurm looks at the memory once a second
        for pid in workers(tmp_path) - killed:
            killed.add(pid)
            os.kill(pid, signal.SIGKILL)
    _, err = process.communicate(timeout=90)
    assert process.returncode == 5
    assert "2 of 4 points set aside, such as " in err
    assert (
        "2 workers died while running it; the last was killed by signal 9, most likely for want of memory (500 MiB requested" in err
    )
    assert (" MiB used)\n" in err) == ("MYSQL_UNIX_PORT" in real)
    assert "Traceback" not in err and ".pkl" not in err
    assert kept(tmp_path / "out") == 2


@WITHOUT_ACCOUNTING
@pytest.mark.slow
def test_jobs_of_a_real_slurm_that_are_cancelled(
    real: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each point is tried once more. The run ends within a minute."""
    (tmp_path / "short.toml").write_text(small.SHORT_AND_LONG.replace("100GB", "30KB"))
    down, up = (["scontrol", "update", "PartitionName=all", f"State={state}"] for state in ("DOWN", "UP"))
    one_machine_slurm.ask(real, *down)
    command = [sys.executable, "-m", "flowloom", "run", "short.toml", "--on", "slurm", "--out", "out"]
    with subprocess.Popen(command, cwd=tmp_path, env=os.environ | real, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: len(queue(real)) == 4)
            one_machine_slurm.ask(real, "scancel", *queue(real)[:2])
            one_machine_slurm.ask(real, *up)
            assert process.stderr is not None
            began = time.monotonic()
            err = process.stderr.read()
            assert process.wait(60) == 0 and time.monotonic() < began + 60, err
        finally:
            process.kill()
    assert Results.open(tmp_path / "out").complete


@WITHOUT_ACCOUNTING
@pytest.mark.slow
def test_a_running_job_of_a_real_slurm_that_is_cancelled_twice(
    real: dict[str, str], run: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = run()
    until(lambda: len(workers(tmp_path)) == 2)
    first = queue(real)
    one_machine_slurm.ask(real, "scancel", *first)
    until(lambda: len(workers(tmp_path)) == 2 and len(queue(real)) == 2 and set(queue(real)).isdisjoint(first))
    one_machine_slurm.ask(real, "scancel", *queue(real))
    _, err = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "2 of 4 points set aside, such as " in err
    assert "`: 2 workers died while running it; the last was cancelled\n" in err
    assert kept(tmp_path / "out") == 2
