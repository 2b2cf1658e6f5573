"""The clusters that the command line supports: Dask, and Slurm with slurm.py."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from flowloom import _core
from flowloom.clusters.points import VersionError, version, versions
from flowloom.clusters.slurm import Jobs


def engine(on: str, workers: int | None, out: Path) -> tuple[Executor, Callable[[], None]]:
    """Returns the executor that `--on` names, and a function that closes it.

    Raises `ImportError`, `ValueError` or `OSError` if there is none.
    """
    if on == "slurm":
        with without_ctrl_c():
            jobs = Jobs(out.with_name(f"{out.name}-slurm"), workers)
        return jobs, partial(close, jobs.shutdown)
    return dask(on, workers)


ALLOWED_FAILURES = 10
"""Dask gives up a point when one worker more than this has died while running it."""

PATIENCE = "10s"
"""The time that a scheduler may take to answer."""


def dask(on: str, workers: int | None) -> tuple[Executor, Callable[[], None]]:
    """Connects to the workers of a Dask scheduler, or starts workers on this machine."""
    try:
        import dask as library
        from distributed import Client
    except ImportError:
        raise ImportError("`--on dask` needs Dask\nhint: pip install 'flowloom[dask]'") from None
    # A client logs the loss of its scheduler with a traceback; the run reports it.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    library.config.set({"distributed.scheduler.allowed-failures": ALLOWED_FAILURES, "distributed.comm.timeouts.connect": PATIENCE})
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
        opened.callback(close, client.close)
        found = client.run(version)
        other = {worker: there for worker, there in found.items() if there != _core.version}
        if other:
            raise VersionError(versions(other, _core.version))
        if not found:
            raise OSError(f"the scheduler at `{on}` has no workers\nhint: start some with `dask worker {address}`")
        return client.get_executor(pure=False), opened.pop_all().close


def close(closes: Callable[[], object]) -> None:
    """Closes a client, a cluster or an executor. Ctrl-C is delayed: jobs would be left, and after an
    interrupted close of Dask, the next close waits for 10 s.
    """
    with without_ctrl_c(), suppress(Exception):
        closes()


def local_cluster(workers: int | None, opened: ExitStack) -> Any:
    """Starts workers on this machine, which `opened` closes. They log nothing, and Ctrl-C reaches
    only this process.
    """
    from multiprocessing import resource_tracker

    from dask import config
    from distributed import LocalCluster

    # Dask sets the variables of its workers in this process too, where they would silence clusters that others start.
    quiet = "DASK_LOGGING__DISTRIBUTED"
    config.set({f"distributed.nanny.pre-spawn-environ.{quiet}": "critical"})
    if quiet not in os.environ:
        opened.callback(os.environ.pop, quiet, None)
    # The resource tracker unblocks SIGINT in the thread that starts it. That must not be a thread that starts workers.
    resource_tracker.ensure_running()
    with without_ctrl_c():
        cluster = LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=logging.CRITICAL
        )
        opened.callback(close, cluster.close)
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
