"""The engines of clusters that the command line knows: Dask and Slurm."""

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
    """The executor that `--on` names, and what ends it. Raises `ImportError`, `ValueError` or `OSError` where there is none."""
    if on == "slurm":
        return slurm(workers, out)
    return dask(on, workers)


DEATHS = 10
"""How many workers may die of one point before it is set aside."""

PATIENCE = "10s"
"""How long a scheduler may take to answer."""


def dask(on: str, workers: int | None) -> tuple[Executor, Callable[[], None]]:
    """The workers of a Dask scheduler, or of a cluster of its own on this machine."""
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
    """Closes a client or a cluster. Ctrl-C is delayed: after an interrupted close, the next one waits for 10 s."""
    with without_ctrl_c(), suppress(Exception):
        opened.close()


def local_cluster(workers: int | None, opened: ExitStack) -> Any:
    """Starts workers on this machine. `opened` closes them. They log nothing, and Ctrl-C reaches this process only."""
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
    """Delays Ctrl-C. Threads and processes that are started inside inherit the mask and never receive it.

    Windows has no masks: there Ctrl-C is not delayed.
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

    A client of Dask waits without a limit for the handshake of a port that accepts connections.
    """
    import asyncio

    from dask.utils import parse_timedelta
    from distributed.core import rpc

    async def identity() -> None:
        async with rpc(address) as there:
            await there.identity()

    asyncio.run(asyncio.wait_for(identity(), parse_timedelta(PATIENCE)))


def slurm(workers: int | None, out: Path, cluster: str = "slurm") -> tuple[Executor, Callable[[], None]]:
    """Jobs of Slurm, one per point, at most `workers` at a time. `SBATCH_*` variables set partition, time and account.

    What the jobs print goes to a folder beside the results, with `-slurm` behind its name.
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
    """Jobs of submitit as futures."""

    LOOK_S = 0.5
    """Between two looks at the jobs."""

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
        """Looks for jobs that have ended, until the executor ends."""
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
        """Ends it: jobs that have not ended are cancelled."""
        self.ended.set()
        with self.lock:
            for job in self.open:
                with suppress(Exception):
                    job.cancel()
