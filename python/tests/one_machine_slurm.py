"""A Slurm of one machine that the tests start and stop. It has its own ports, sockets and folder, so
it does not disturb a Slurm or a munged of the system.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
"""Where the daemons are: Debian installs them where only root looks for commands."""

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch")
ACCOUNTING = ("slurmdbd", "mariadbd", "mariadb-install-db")

CONF = """
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=500
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
KillWait=2
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 Port={node} CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=60 State=UP
"""

WITH_ACCOUNTING = """
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={database}
AccountingStoragePass={folder}/munge
"""

DATABASE_CONF = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={database}
SlurmUser={user}
PidFile={folder}/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser={user}
StorageLoc=accounting
"""


def missing(accounting: bool) -> str:
    """What has to be installed for a Slurm; empty: nothing."""
    names = NEEDED + (ACCOUNTING if accounting else ())
    absent = [name for name in names if shutil.which(name, path=PATH) is None]
    packages = "slurmctld slurmd slurm-client munge" + (" slurmdbd mariadb-server" if accounting else "")
    return f"there is no {', '.join(absent)}: apt install {packages}" if absent else ""


@contextmanager
def started(accounting: bool) -> Iterator[dict[str, str]]:
    """Starts a Slurm. Yields the environment variables with which its commands find it. Stops it at the end."""
    with ExitStack() as opened:
        # Paths of sockets have at most 107 bytes: folders of pytest are too deep.
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="slurm-", ignore_cleanup_errors=True)))
        user = pwd.getpwuid(os.getuid()).pw_name
        controller, node, database = free_ports(3)
        given = {"folder": folder, "user": user, "host": socket.gethostname().split(".")[0]}
        given |= {"controller": controller, "node": node, "database": database}
        for name in ("state", "spool", "mariadb"):
            (folder / name).mkdir()
        env = {"PATH": PATH, "SLURM_CONF": str(folder / "slurm.conf")}
        write(folder / "slurm.conf", (CONF + (WITH_ACCOUNTING if accounting else "")).format_map(given))
        write(folder / "munge.key", secrets.token_hex(64))

        def daemon(*command: str, ready: Callable[[], bool]) -> None:
            start(opened, folder, env, command, ready)

        munged = [f"--{name}-file={folder}/munged.{name}" for name in ("pid", "log", "seed")]
        munged += [f"--key-file={folder}/munge.key", f"--socket={folder}/munge", "--foreground", "--force"]
        daemon("munged", *munged, ready=(folder / "munge").exists)
        if accounting:
            data, sock = folder / "mariadb", folder / "mariadb.sock"
            where = ["--no-defaults", f"--datadir={data}", f"--user={user}"]
            install = ["mariadb-install-db", *where, "--auth-root-authentication-method=socket", f"--auth-root-socket-user={user}"]
            subprocess.run([*install, "--skip-test-db"], env=os.environ | env, check=True, capture_output=True)
            # StorageHost=localhost is a socket, whose path the library of MariaDB takes from this variable.
            env["MYSQL_UNIX_PORT"] = str(sock)
            daemon("mariadbd", *where, f"--socket={sock}", "--skip-networking", ready=sock.exists)
            write(folder / "slurmdbd.conf", DATABASE_CONF.format_map(given))
            daemon("slurmdbd", "-D", ready=lambda: listens(database))
            # Without the cluster in the database, slurmctld refuses to start.
            subprocess.run(["sacctmgr", "-i", "add", "cluster", "tests"], env=os.environ | env, check=True, capture_output=True)
        daemon("slurmctld", "-D", "-c", ready=lambda: listens(controller))
        daemon("slurmd", "-D", "-N", str(given["host"]), ready=lambda: "idle" in ask(env, "sinfo", "-h", "-o", "%t"))
        opened.callback(empty, env)
        yield env


def write(path: Path, content: str) -> None:
    """Writes a file that only its owner may read, as munged and slurmdbd demand."""
    path.write_text(content)
    path.chmod(0o600)


def start(opened: ExitStack, folder: Path, env: dict[str, str], command: Sequence[str], ready: Callable[[], bool]) -> None:
    """Starts a daemon and waits until it is ready. It is stopped when `opened` is closed."""
    log = folder / f"{command[0]}.out"
    with log.open("wb") as out:
        # In a session of its own, Ctrl-C in a terminal reaches only the tests, which then stop it.
        process = subprocess.Popen(
            command, env=os.environ | env, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
        )
    opened.callback(stop, process)
    end = time.monotonic() + 60
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"{command[0]} does not start: {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.1)


def empty(env: dict[str, str]) -> None:
    """Cancels all jobs: their processes would outlive the daemons."""
    ask(env, "scancel", f"--user={os.getuid()}")
    end = time.monotonic() + 30
    while ask(env, "squeue", "--noheader").strip() and time.monotonic() < end:
        time.sleep(0.2)


def stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ask(env: dict[str, str], *command: str) -> str:
    """What a command of Slurm prints."""
    return subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=False).stdout


def free_ports(number: int) -> list[int]:
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0
