"""The clusters that the command line supports: Dask and Slurm."""

from __future__ import annotations

import logging
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from flowloom import _core
from flowloom.clusters.points import VersionError, version, versions


def engine(on: str, workers: int | None, out: Path) -> tuple[Executor, Callable[[], None]]:
    """Returns the executor that `--on` names, and a function that closes it.

    Raises `ImportError`, `ValueError` or `OSError` if there is none.
    """
    if on == "slurm":
        return slurm(workers, out)
    return dask(on, workers)


DEATHS = 10
"""The number of workers that may die while running a point before the point is set aside."""

PATIENCE = "10s"
"""The time that a scheduler may take to answer."""


def dask(on: str, workers: int | None) -> tuple[Executor, Callable[[], None]]:
    """Connects to the workers of a Dask scheduler, or starts workers on this machine."""
    try:
        import dask as library
        from distributed import Client
    except ImportError:
        raise ImportError("`--on dask` needs Dask\nhint: pip install 'flowloom[dask]'") from None
    library.config.set({"distributed.scheduler.allowed-failures": DEATHS, "distributed.comm.timeouts.connect": PATIENCE})
    with ExitStack() as opened:
        address = local_cluster(workers, opened) if on == "dask" else on.replace("dask://", "tcp://")
        try:
            if on != "dask":
                greet(address)
            client = Client(address, timeout=PATIENCE)
        except OSError as error:
            why = str(error).splitlines()[0] if str(error) else type(error).__name__
            hint = "`dask scheduler` prints its address when it starts"
            raise OSError(f"no scheduler answers at `{on}` within {PATIENCE}: {why}\nhint: {hint}") from None
        opened.callback(close, client)
        found = client.run(version)
        other = {worker: there for worker, there in found.items() if there != _core.version}
        if other:
            raise VersionError(versions(other, _core.version))
        if not found:
            raise OSError(f"the scheduler at `{on}` has no workers\nhint: start some with `dask worker {address}`")
        return client.get_executor(pure=False), opened.pop_all().close


def close(opened: Any) -> None:
    """Closes a client or a cluster. Ctrl-C is delayed: after an interrupted close, the next close
    waits for 10 s.
    """
    with without_ctrl_c(), suppress(Exception):
        opened.close()


def local_cluster(workers: int | None, opened: ExitStack) -> Any:
    """Starts workers on this machine, which `opened` closes. They log nothing, and Ctrl-C reaches
    only this process.
    """
    from multiprocessing import resource_tracker

    from dask import config
    from distributed import LocalCluster

    config.set({"distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical"})
    # The resource tracker unblocks SIGINT in the thread that starts it. That must not be a thread that starts workers.
    resource_tracker.ensure_running()
    with without_ctrl_c():
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
        )
        opened.callback(close, cluster)
    return cluster


@contextmanager
def without_ctrl_c() -> Iterator[None]:
    """Delays Ctrl-C. Threads and processes that are started inside inherit the signal mask and
    never receive it.

    Windows has no signal masks: there Ctrl-C is not delayed.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def greet(address: str) -> None:
    """Checks that a Dask scheduler answers. Raises `TimeoutError` after `PATIENCE`.

    A client of Dask waits without a limit for the handshake with a port that accepts connections.
    """
    import asyncio

    from dask.utils import parse_timedelta
    from distributed.core import rpc

    async def identity() -> None:
        async with rpc(address) as there:
            await there.identity()

    asyncio.run(asyncio.wait_for(identity(), parse_timedelta(PATIENCE)))


def slurm(workers: int | None, out: Path, cluster: str = "slurm") -> tuple[Executor, Callable[[], None]]:
    """Runs each point as a job of Slurm, at most `workers` at a time. `SBATCH_*` variables set the
    partition, the time limit and the account.

    The output of the jobs goes to a folder next to the results, whose name ends with `-slurm`.
    """
    try:
        import submitit
    except ImportError:
        raise ImportError("`--on slurm` needs submitit\nhint: pip install 'flowloom[slurm]'") from None
    try:
        jobs = submitit.AutoExecutor(folder=str(out.with_name(f"{out.name}-slurm")), cluster=cluster)
    except RuntimeError as error:
        raise OSError(f"Slurm cannot be used: {error}\nhint: run the command where `sbatch` works") from None
    jobs.update_parameters(name="flowloom", cpus_per_task=1)
    if workers is not None and cluster == "slurm":
        jobs.update_parameters(slurm_array_parallelism=workers)
    executor = Jobs(jobs)
    return executor, executor.shutdown


class Jobs(Executor):
    """Presents jobs of submitit as futures."""

    LOOK_S = 0.5
    """The time between two checks of the jobs, in s."""

    def __init__(self, jobs: Any) -> None:
        import threading

        self.jobs = jobs
        self.open: dict[Any, Future[Any]] = {}
        self.lock = threading.Lock()
        self.ended = threading.Event()
        self.watcher = threading.Thread(target=self.watch, daemon=True)
        self.watcher.start()

    def submit(self, work: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        """Submits a job."""
        future: Future[Any] = Future()
        job = self.jobs.submit(work, *args, **named)
        with self.lock:
            self.open[job] = future
        return future

    def watch(self) -> None:
        """Completes the futures of jobs that have ended, until the executor is shut down."""
        while not self.ended.wait(self.LOOK_S):
            with self.lock:
                done = [job for job in self.open if job.done()]
                ended = [(job, self.open.pop(job)) for job in done]
            for job, future in ended:
                if not future.set_running_or_notify_cancel():
                    continue
                try:
                    future.set_result(job.result())
                except BaseException as error:
                    future.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Shuts the executor down and cancels jobs that have not ended."""
        self.ended.set()
        with self.lock:
            for job in self.open:
                with suppress(Exception):
                    job.cancel()
