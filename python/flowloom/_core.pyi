"""The compiled part of flowloom: scenarios, the simulator, result tables and the command line.

Times are in picoseconds, sizes in bytes and rates in bit/s unless a name has another unit.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

__all__ = [
    "ArrowTable",
    "InputError",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "StorageError",
    "check_point",
    "compare",
    "content_hash",
    "entries",
    "estimate",
    "fluid",
    "located",
    "main",
    "may_write",
    "nearest",
    "quantile",
    "queue_length",
    "rooms",
    "seek",
    "utilisation",
    "version",
]

version: str
"""Version of the program, as `flowloom --version` prints it."""

class InputError(ValueError):
    """What the user has given is wrong: an argument, a scenario or a name.

    The command line prints its text as an error of the user. Any other `ValueError` is a bug of flowloom.
    """

class ScenarioError(InputError):
    """A scenario has errors.

    Attributes
    ----------
    diagnostics : list of dict
        One dict per error: `file`, `line`, `col`, `message`, `label`, `hint`.
    """

    diagnostics: list[dict[str, Any]]

class RunError(RuntimeError):
    """A run could not start, or broke an invariant.

    Attributes
    ----------
    broken : bool
        Whether an invariant was broken. This is a bug of flowloom.
    """

    broken: bool

class StorageError(OSError):
    """A results folder or a file in it cannot be read or written."""

def main(argv: Sequence[str]) -> int | dict[str, Any]:
    """Run the command line with `argv` (without the program's name).

    Returns an exit code or, for commands that Python carries out (such as `plot`, `report`, `papers`, `compare`), a dict with the
    key `command` and the parsed options. After the first call, a failed memory allocation ends the process with exit code 5.
    """

def compare(dirs: Sequence[str], filter: str | None = None) -> ArrowTable:
    """Compare the systems found in one or more result folders, flow by flow.

    Flows are paired by flow id, seed and swept keys. The table has one row per pair of systems and swept keys: see `compare()` in
    docs/data.md.

    With `filter`, only flows that it chooses in both systems are compared.
    """

def may_write(path: str) -> None:
    """Fail if a file or folder at `path` must not be written because it belongs to results.

    In the folder of a run, new files and folders may be written, and files with the suffixes that commands write may be replaced.
    """

def content_hash(content: bytes) -> str:
    """The hash of a content as manifests store it: 64-bit XXH3, as 16 hexadecimal digits."""

def nearest(wrong: str, names: Sequence[str]) -> str | None:
    """The name in `names` that is most similar to `wrong`, or `None` if no name is similar enough."""

def rooms() -> list[str]:
    """The names of the rooms that `entries` accepts: the rooms of the parts of a scenario, and `metrics`."""

def entries(room: str) -> list[dict[str, Any]]:
    """The entries of a room: the parts from which a scenario chooses, or the metrics.

    Parameters
    ----------
    room : str
        A name such as "transport", "qdisc", "topology" or "metrics"; `_core.rooms()` has all of them.

    Returns
    -------
    list of dict
        One dict per entry with `name` and `summary`. A part of a scenario also has `source`, `head`
        (the description that `flowloom explain` prints) and `parameters`: a list of dicts with
        `name`, `default`, `allowed`, `range`, `source` and `about`. A metric also has `unit`.

    Raises
    ------
    ValueError
        There is no such room.
    """

def seek(text: str, name: str) -> dict[str, Any] | None:
    """The table `[seek]` of a scenario file, or `None`: its parameters by name, `given`, `scenarios`, `settings` and `claims`.

    Parameters are texts as written in the file, or `None` if they are not given; bounds of claims are numbers. `given` lists
    the parameters that the file gives. A setting also has `keys` (the scenario or `None`, the key, and the names in
    it), `choices` and, for numbers, `range`: smallest and largest value as exact decimals, unit, and the maximum number of
    decimals of a value. Raises `ScenarioError`.
    """

def located(text: str, name: str, problems: Sequence[tuple[str, str, str, str]]) -> ScenarioError:
    """Returns the `ScenarioError` of problems in a TOML file: key, message, label and hint of each.

    Tables of a list have numbers in keys: `seek.claim.0.metric`.
    """

def check_point(folder: str | Path) -> tuple[str, str]:
    """Returns the configuration hash and the name of the point in a folder.

    Raises `StorageError` unless the point is done and all files that its manifest lists have their contents.
    """

def fluid(
    policy: str,
    capacity: float,
    arrivals: Sequence[float],
    sizes: Sequence[float],
    deadlines: Sequence[float | None] | None = None,
) -> dict[str, Any]:
    """Schedule flows on one link as fluids: without packets, delays and headers.

    Times, sizes and the capacity may have any consistent units.

    Parameters
    ----------
    policy : {"srpt", "ps", "fcfs", "edf", "sjf", "edf_sjf", "stam", "merp"}
        The order of service. In `edf` and `edf_sjf`, flows without a deadline are served after flows
        with a deadline, in `edf_sjf` the shortest first. In `stam` they are served first as long as
        all flows with a deadline can wait.
    capacity : float
        The capacity of the link, in units of size per unit of time.
    arrivals : sequence of float, shape (flows,)
        The time at which each flow arrives.
    sizes : sequence of float, shape (flows,)
        The size of each flow.
    deadlines : sequence of (float or None), shape (flows,), optional
        The time by which each flow should end, on the same clock as `arrivals`. None: no deadline.

    Returns
    -------
    dict
        `finish`, a list with the time at which each flow ends, and `segments`, a list of tuples
        `(flow, start, end, rate)` ordered by time. Up to 200 flows are scheduled in exact fractions
        before they become floats.

    Raises
    ------
    ValueError
        The policy is unknown, the lengths differ, or a number is not finite.
    """

def estimate(values: Sequence[float]) -> tuple[float | None, tuple[float, float] | None]:
    """The mean of values and the ends of its 95 % confidence interval (Student's t).

    The mean is `None` without values, and the interval is `None` with fewer than two values.
    """

def quantile(values: Sequence[float], per_mille: int) -> float | None:
    """The quantile of values by nearest rank: the smallest value such that at least `per_mille` / 1000 of all values are no larger.

    `None` without values.
    """

def utilisation(busy_ps: int, end_ps: int) -> float | None:
    """The share of a run, or of its measurement window, that a port spends transmitting; `None` if the duration is zero."""

def queue_length(written: str, mtu: str) -> int | None:
    """The length of a queue in bytes from its text: `20pkt`, `30KB`, or a number of packets of `mtu` (`1500B`).

    `None` for `unlimited` and for text that is not a length.
    """

@final
class ArrowTable:
    """A table that Arrow libraries read without a copy: `pyarrow.table(t)`, `polars.DataFrame(t)`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream (Arrow PyCapsule interface)."""
    def __arrow_c_schema__(self) -> object:
        """The table's schema (Arrow PyCapsule interface)."""

@final
class Scenario:
    """A checked scenario with every default filled in and every sweep expanded into points."""

    @staticmethod
    def from_toml(
        text: str,
        name: str = "scenario",
        dir: str = ...,
        set: Sequence[tuple[str, str]] = ...,
        seeds: Sequence[int] | None = None,
        profile: str | None = None,
        memory: str | None = None,
    ) -> Scenario:
        """Read the text of a scenario file. Relative paths in it start at `dir`; all errors are reported at once.

        `memory`, such as `8GB`, is the limit for all running points together; without it the limit is the free memory.
        """
    @staticmethod
    def from_dict(
        scenario: Mapping[str, Any],
        name: str = "scenario",
        dir: str = ...,
        set: Sequence[tuple[str, str]] = ...,
        seeds: Sequence[int] | None = None,
        profile: str | None = None,
        memory: str | None = None,
    ) -> Scenario:
        """Read a scenario from a nested dict with the keys of a scenario file."""
    def resolved(self) -> str:
        """The whole plan as TOML, with a comment on every value that the file does not set."""
    @property
    def memory(self) -> str | None:
        """The memory limit that was given, such as `8000000000B`; `None` if none was given."""
    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Warnings about settings that may mislead, one dict each: `file`, `line`, `col`, `message`, `label`, `hint`."""
    @property
    def points(self) -> list[dict[str, Any]]:
        """The points to run: `point`, `system`, `seed` and one entry per swept key."""
    def config_hashes(self) -> dict[str, str]:
        """For each point, the hash of everything that its result depends on: `config_hash` in its manifest."""
    def run(
        self,
        jobs: int = 0,
        threads: int = 0,
        out: str | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
        overwrite: bool = False,
        points: Sequence[str] | None = None,
        engine: str = "auto",
    ) -> Results:
        """Run all points, or those that `points` names, and write them to the folder `out` unless it is `None`.

        `jobs` points run at a time (0: one per core) on `threads` threads each (0: idle cores, where this is faster),
        with the order of events `engine`: `auto`, `tree` or `windows`.

        Points that are already finished in `out`, with the same scenario and version, are kept. `progress` is called with
        `points_done`, `points_total`, `point`, `flows_done`, `flows_total`, `events` and `elapsed_s`. Results of another run in
        `out` are replaced only with `overwrite`.
        """

@final
class Results:
    """The results of a run, in memory or in a folder."""

    @staticmethod
    def open(dir: str) -> Results:
        """Open a results folder."""
    @property
    def path(self) -> str | None:
        """The folder, or `None` if the results are only in memory."""
    @property
    def complete(self) -> bool:
        """Whether every point ran to its end."""
    @property
    def config(self) -> str:
        """The resolved scenario as TOML."""
    @property
    def manifest(self) -> str:
        """The manifest of the run as JSON, with its hash checked."""
    def file(self, point: str, table: str) -> Path | None:
        """The file of a point's table, such as `flows`. Fails if its content does not match its hash.

        `None` if the point does not have the table.
        """
    def whole(self) -> list[Path]:
        """The paths of all files of the results. Fails if the content of a file does not match its hash."""
    def flows(self) -> ArrowTable:
        """One row per flow."""
    def ports(self) -> ArrowTable:
        """One row per egress port."""
    def tasks(self) -> ArrowTable:
        """One row per task of a program; empty unless a workload has tasks."""
    def parts(self) -> ArrowTable:
        """One row per task and rank that takes part; empty unless a workload has tasks."""
    def rank_times(self) -> ArrowTable:
        """One row per rank for a job and for each iteration; empty unless ranks of a workload compute."""
    def samples(self) -> ArrowTable:
        """Time series; empty unless the scenario records them."""
    def agents(self) -> ArrowTable:
        """The state that agents at ports keep for each flow over time; empty unless the scenario records it."""
    def packets(self) -> ArrowTable:
        """One row per transmission of a packet; empty unless the scenario records packets."""
    def points(self) -> ArrowTable:
        """One row per point: its system, seed, swept keys and state."""
    def why(
        self, point: str | None = None, flows: Sequence[int] = ..., files: str = ..., trace: bool = ..., slowest: int = ...
    ) -> dict[str, Any]:
        """Rerun a point and return where its flows spent their time: a dict with `point`, `system`, `seed`, `flows` and `packets`.

        Without `flows`, takes the `slowest` flows with the largest slowdown. Without `point`, takes the only point, or the point
        with the largest slowdown. `files` is the folder of the scenario, for the files that it reads. Each flow is a dict with
        `flow_id`, `src`, `dst`, `size_bytes`, `fct_ps`, `ideal_fct_ps`, `slowdown` and `parts`: dicts with `part`, `port`,
        `tier`, `timer`, `timer_ps` and `time_ps`. The `time_ps` of all parts sum to `fct_ps`. With `trace`, reruns the point once
        more for `packets`, the packets around the flows.
        """
    def around(self, point: str, flows: Sequence[int], files: str = ...) -> ArrowTable:
        """Rerun a point and return the packets around flows: all packets that crossed the ports of the flows' paths while the flows
        were open.
        """
    def summary(self, filter: str | None = None, workloads: bool = False) -> ArrowTable:
        """One row per system, swept keys and metric: mean over seeds with its 95 % confidence interval.

        With `filter`, the metrics are those of the flows that it chooses. With `workloads`, there are also rows for each workload,
        which is named in the column `workload`.
        """
    def by_size(self, filter: str | None = None) -> ArrowTable:
        """Slowdown and completion time by bin of flow sizes: one row per system, swept keys, bin, quantity and statistic."""
    def series(self) -> ArrowTable:
        """Statistics of time series over the samples in the measurement window: one row per point, metric and entity."""
    def groups(self, filter: str | None = None) -> ArrowTable:
        """Groups of flows: one row per point and group that began."""
    def per_seed(self, filter: str | None = None, workloads: bool = False) -> ArrowTable:
        """One row per point and metric; see `summary`."""
    def refuse_absent(self, filter: str) -> None:
        """Fail if a filter is wrong, or expects a workload, host, group or flow that no point has."""
    def chosen(self, point: str, filter: str | None = None) -> list[int]:
        """The `flow_id` of the flows of a point that count, or that a filter chooses."""
