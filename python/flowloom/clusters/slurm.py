"""Runs functions as jobs of Slurm. Needs nothing but the commands of Slurm.

A job is `python -m flowloom.clusters.slurm CALL RESULT`: it reads a call from a file and writes its
result to another. The files are in a folder that all machines share.
"""

from __future__ import annotations

import os
import pickle
import re
import shlex
import shutil
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from flowloom.base.files import put
from flowloom.clusters.points import NotRunError, WorkerDiedError

SCRIPT = """#!/bin/sh
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
exec {command}
"""
"""The script of a job. `SBATCH_*` variables override its `#SBATCH` lines. `exec` makes the signal
that kills the worker the signal that Slurm reports.
"""

ENDED = {
    *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
    *("OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "TIMEOUT"),
}
"""The states of jobs that do not run again."""


@dataclass
class Call:
    """A call that is a job, or that waits for its submission."""

    future: Future[Any]
    what: Any
    """The function and its arguments."""
    name: str
    """The name of its files, without the ending."""
    missed: int = 0
    """The number of times, one after another, that the job was not in the queue."""


class Jobs(Executor):
    """Runs each call as a job, at most `workers` at a time."""

    LOOK_S = 0.5
    """The time between two looks for results, in s."""
    ASK_S = 10.0
    """The time between two questions to Slurm, in s."""
    MISSES = 2
    """A job is dead if it is not in the queue so many times, one after another, and has no result.

    Once is not enough: on a shared file system a result may appear some seconds after the job's end.
    """

    def __init__(self, folder: Path, workers: int | None) -> None:
        if shutil.which("sbatch") is None:
            raise OSError("Slurm cannot be used: there is no `sbatch`\nhint: run the command where `sbatch` works")
        self.folder, self.workers = folder.absolute(), workers
        self.most = workers
        """The most jobs at a time: `workers`, or as many as Slurm accepted when it refused one more."""
        self.accepted = False
        """Whether a refusal may be due to own jobs that have a result but are still in the queue."""
        self.waiting: deque[Call] = deque()
        self.jobs: dict[str, Call] = {}
        """The jobs that have not ended, by id."""
        self.asked = time.monotonic()
        self.closed = threading.Event()
        self.broken: Exception | None = None
        """The error that ended `watch`."""
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Adds a call to those that wait for their submission."""
        future: Future[Any] = Future()
        # Nobody can cancel a future that runs: `shutdown` is the only way to cancel jobs.
        future.set_running_or_notify_cancel()
        self.waiting.append(Call(future, (work, args, named), uuid4().hex))
        if self.broken:
            self.fail(self.broken)
        return future

    def watch(self) -> None:
        """Submits jobs and completes their futures, until the executor is closed."""
        try:
            while not self.closed.wait(self.LOOK_S):
                self.fill()
                self.take()
                if time.monotonic() > self.asked + self.ASK_S:
                    self.bury()
                    self.asked, self.most = time.monotonic(), self.workers
        except Exception as error:
            # Without this thread no future is ever completed.
            self.broken = NotRunError(str(error)) if isinstance(error, OSError) else error
            for call in self.jobs.values():
                call.future.set_exception(self.broken)
            self.fail(self.broken)

    def fail(self, error: Exception) -> None:
        """Completes the futures of all calls that wait with an error."""
        with suppress(IndexError):
            while call := self.waiting.popleft():
                self.clean(call)
                call.future.set_exception(error)

    def fill(self) -> None:
        """Submits calls that wait. If Slurm refuses a job while others are in the queue, as beyond a
        limit of jobs per user, the job is submitted again later.
        """
        while self.waiting and not self.closed.is_set() and (self.most is None or len(self.jobs) < self.most):
            call = self.waiting[0]
            try:
                job = self.sbatch(call)
            except OSError as error:
                if not self.jobs and not self.accepted:
                    self.fail(NotRunError(str(error)))
                elif not self.jobs:
                    self.accepted, self.asked = False, time.monotonic()
                self.most = len(self.jobs)
                return
            self.accepted = True
            self.waiting.popleft()
            self.jobs[job] = call

    def sbatch(self, call: Call) -> str:
        """Submits a call. Returns the id of its job."""
        paths = [self.path(call, ending) for ending in ("call", "result")]
        put(paths[0], pickle.dumps(call.what))
        script = SCRIPT.format(command=shlex.join([sys.executable, "-m", __name__, *map(str, paths)]))
        log = str(self.path(call, "log")).replace("%", "%%")
        printed = slurm("sbatch", "--parsable", "--job-name=flowloom", f"--output={log}", script=script)
        # The id, or the id, a semicolon and the name of the cluster.
        return printed.split()[-1].partition(";")[0]

    def path(self, call: Call, ending: str) -> Path:
        """Returns the path of a file of a call."""
        return self.folder / f"{call.name}.{ending}"

    def clean(self, call: Call, keep: str = "") -> None:
        """Removes the files of a call."""
        for ending in {"call", "result", "log"} - {keep}:
            with suppress(OSError):
                self.path(call, ending).unlink()

    def take(self) -> None:
        """Completes the futures whose results are there."""
        # Unlike a look at each file, reading the folder makes NFS ask its server.
        there = set(os.listdir(self.folder)) if self.jobs else ()
        for job, call in list(self.jobs.items()):
            result = self.path(call, "result")
            if result.name not in there:
                continue
            returned, value = pickle.loads(result.read_bytes())
            del self.jobs[job]
            if returned:
                call.future.set_result(value)
            else:
                call.future.set_exception(value)
            self.clean(call)

    def bury(self) -> None:
        """Completes the futures of jobs that have left the queue without a result."""
        if not self.jobs:
            return
        try:
            queue = slurm("squeue", "--noheader", f"--user={os.getuid()}", "--states=all", "--format=%A %T")
        except OSError:
            return  # a controller that starts again knows its jobs
        states = dict(line.split()[:2] for line in queue.splitlines())
        for job, call in list(self.jobs.items()):
            call.missed = call.missed + 1 if states.get(job, "COMPLETED") in ENDED else 0
            if call.missed >= self.MISSES:
                why = cause(job, self.path(call, "log"))
                del self.jobs[job]
                self.clean(call, keep="log")
                call.future.set_exception(WorkerDiedError(why))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Cancels all jobs that have not ended. Only the output of jobs that died stays in the folder."""
        self.closed.set()
        self.watcher.join()
        if self.jobs:
            with suppress(OSError):
                slurm("scancel", *self.jobs)
        for call in (*self.jobs.values(), *self.waiting):
            self.clean(call)
        with suppress(OSError):
            self.folder.rmdir()


def slurm(*command: str, script: str = "") -> str:
    """Returns what a command of Slurm prints. Raises `OSError` with its message if it fails."""
    # Variables such as SQUEUE_PARTITION and SQUEUE_FORMAT2 hide jobs or change what is printed.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SQUEUE_", "SACCT_"))}
    if "SBATCH_CLUSTERS" in env:
        env["SLURM_CLUSTERS"] = env["SBATCH_CLUSTERS"]  # the other commands ask where `sbatch` submits
    try:
        done = subprocess.run(command, input=script, capture_output=True, text=True, errors="replace", timeout=60, env=env)
    except subprocess.TimeoutExpired:
        raise OSError(f"`{command[0]}` does not answer") from None
    if done.returncode:
        lines = [line.partition("error: ")[2] or line for line in done.stderr.splitlines()]
        raise OSError(f"`{command[0]}` failed: {'; '.join(lines) or f'exit code {done.returncode}'}")
    return done.stdout


def cause(job: str, log: Path) -> str:
    """Returns what is known of the end of a job, as the predicate of a sentence."""
    facts = known(job)
    state = facts.get("State", "").partition(" ")[0]  # `CANCELLED by 1000`
    code, _, signal = facts.get("ExitCode", "").partition(":")
    memory = ", ".join(
        f"{size} {what}" for what, key in (("requested", "ReqMem"), ("used", "MaxRSS")) if (size := mebibytes(facts.get(key, "")))
    )
    memory = f" ({memory})" if memory else ""
    if state == "OUT_OF_MEMORY":
        return f"ran out of memory{memory}"
    if state == "TIMEOUT":
        return f"reached its time limit of {facts.get('Timelimit', 'unknown length')}, which SBATCH_TIMELIMIT sets"
    if state == "CANCELLED":
        return "was cancelled"
    if state == "FAILED" and signal not in ("", "0"):
        # Slurm reports signal 53 if it cannot open the files of a job.
        likely = {"9": f"for want of memory{memory}", "53": f"because its machine cannot write to `{log.parent}`"}.get(signal)
        return f"was killed by signal {signal}" + (f", most likely {likely}" if likely else "")
    if state == "FAILED":
        return f"ended with exit code {code}{last_line(log)}"
    if state in ENDED - {"COMPLETED"}:
        return f"ended in state {state}"
    return f"left the queue without a result{last_line(log)}"


def known(job: str) -> dict[str, str]:
    """Returns facts of a job that has ended, as `sacct` names them.

    `scontrol` knows them for some minutes. `sacct` remembers them and knows the memory that was used,
    but needs accounting, and may be late.
    """
    facts: dict[str, str] = {}
    with suppress(OSError):
        shown = dict(re.findall(r"(\S+?)=(\S+)", slurm("scontrol", "show", "job", job)))
        names = {"State": "JobState", "ExitCode": "ExitCode", "Timelimit": "TimeLimit"}
        names["ReqMem"] = "MinMemoryNode" if "MinMemoryNode" in shown else "MinMemoryCPU"
        facts |= {name: shown[there] for name, there in names.items() if there in shown}
    with suppress(OSError):
        columns = ("State", "ExitCode", "Timelimit", "ReqMem", "MaxRSS")
        rows = slurm("sacct", "--noheader", "--parsable2", f"--jobs={job}", f"--format={','.join(columns)}").splitlines()
        # The first row is the job, which has no memory used; the others are its steps.
        for row in rows:
            facts = {name: value for name, value in zip(columns, row.split("|"), strict=False) if value} | facts
    return facts


def mebibytes(size: str) -> str:
    """Returns a size of Slurm, such as `500M`, `1Gn` (per node) or `13384K`, as text; empty if there is none."""
    found = re.fullmatch(r"([\d.]+)([KMGTP]?)[cn]?", size)
    if found is None or float(found[1]) == 0:
        return ""
    mebi = float(found[1]) * 1024.0 ** ("KMGTP".index(found[2] or "M") - 1)
    return f"{mebi:.0f} MiB" if mebi < 1024 else f"{mebi / 1024:.1f} GiB"


def last_line(log: Path) -> str:
    """Returns the last line of the output of a job, after a colon; empty if there is none."""
    with suppress(OSError):
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
        return next((f": {line.strip()}" for line in reversed(lines) if line.strip()), "")
    return ""


def main(call: Path, result: Path) -> None:
    """Runs a call. Runs in a job."""
    work, args, named = pickle.loads(call.read_bytes())
    outcome: tuple[bool, Any]
    try:
        outcome = True, work(*args, **named)
    except Exception as error:
        traceback.print_exc()
        outcome = False, error
    put(result, pickle.dumps(outcome))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
