"""The compiled part of flowloom: scenarios, the simulator, result tables and the command line.

Times are in picoseconds, sizes in bytes and rates in bit/s wherever a name does not say otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

__all__ = [
    "ArrowTable",
    "Results",
    "RunError",
    "Scenario",
    "ScenarioError",
    "StorageError",
    "compare",
    "content_hash",
    "entries",
    "estimate",
    "fluid",
    "main",
    "may_write",
    "nearest",
    "optimum",
    "quantile",
    "queue_length",
    "rooms",
    "seek",
    "utilisation",
    "version",
]

version: str
"""Version of the program, as `flowloom --version` prints it."""

class ScenarioError(ValueError):
    """A scenario has mistakes. `diagnostics` holds one dict per mistake: `file`, `line`, `col`, `message`, `label`, `hint`."""

    diagnostics: list[dict[str, Any]]

class RunError(RuntimeError):
    """A run could not start, or broke an invariant, which is a bug: then `broken` is true."""

    broken: bool

class StorageError(OSError):
    """A results folder or a file in it cannot be read or written."""

def main(argv: Sequence[str]) -> int | dict[str, Any]:
    """Run the command line with `argv` (without the program's name).

    Returns an exit code, or, for the commands that Python carries out (`plot`, `report`, `papers`, `compare`),
    a dict with the key `command` and the parsed options.
    From the first call on, memory that cannot be allocated ends the process with exit code 5.
    """

def compare(dirs: Sequence[str], filter: str | None = None) -> ArrowTable:
    """Compare the systems found in one or more result folders, flow by flow.

    Flows are paired by flow id, seed and swept keys. One row per pair of systems and swept keys: see `compare()` in docs/data.md.

    With `filter`, the flows that it chooses in both systems.
    """

def may_write(path: str) -> None:
    """Fail if a file or folder at `path` must not be written, since it belongs to results.

    In the folder of a run, new files and folders are allowed, and files that commands have made.
    """

def content_hash(content: bytes) -> str:
    """The hash by which manifests know content: XXH3 with 64 bits, as 16 hexadecimal digits."""

def nearest(wrong: str, names: Sequence[str]) -> str | None:
    """The name among `names` that is nearest to `wrong`, if one is near enough to be meant."""

def rooms() -> list[str]:
    """The names of the rooms that `entries` accepts: those of the parts of a scenario, and `metrics`."""

def entries(room: str) -> list[dict[str, Any]]:
    """The entries of a room, one dict per entry: `name`, `summary` and the rest of its description.

    Raises `ValueError` for a room that is not in `rooms()`.
    """

def seek(text: str, name: str) -> dict[str, Any] | None:
    """The table `[seek]` of a scenario file, or `None`: its parameters by name, `scenarios`, `settings` and `claims`.

    Parameters are texts as a scenario file has them, and `None` where they are not given. A setting also has `keys`, `choices` and,
    for numbers, `range`: smallest and largest value, unit, and whether only whole numbers are meant. Raises `ScenarioError`.
    """

def fluid(
    policy: str,
    capacity: float,
    arrivals: Sequence[float],
    sizes: Sequence[float],
    deadlines: Sequence[float | None] | None = None,
) -> dict[str, Any]:
    """Schedule flows on one link as a fluid: no packets, no delay, no headers.

    `policy` is one of `srpt`, `ps`, `fcfs`, `edf`, `sjf`, `edf_sjf`, `stam`, `merp`. Flows without a deadline come after those with
    one in `edf`, shortest first in `edf_sjf`; in `stam` they come first while all others can wait. Times, sizes and the capacity
    are in any consistent units. Up to 200 flows are scheduled in exact fractions. The dict has `finish`, one time per flow, and
    `segments`, a list of `(flow, start, end, rate)` in order of time.
    """

def optimum(arrivals: Sequence[int], sizes: Sequence[int], deadlines: Sequence[int | None]) -> dict[str, Any] | None:
    """Search all schedules of a few flows on one link for the best one that misses no deadline.

    The link serves one unit of one flow per slot; arrivals, sizes and deadlines are whole slots. The best schedules are those with
    the least mean completion time of the flows without a deadline. The dict has `schedules`, the number of schedules that miss no
    deadline; `mean`, the least mean, or `None` if every flow has a deadline; `best`, the number of schedules with that mean; and
    `shown`, the first hundred of these, each a dict as `fluid` returns it. `None`: every schedule misses a deadline. Raises
    `ValueError` where there are too many schedules to search.
    """

def estimate(values: Sequence[float]) -> tuple[float | None, tuple[float, float] | None]:
    """The mean of values and the ends of its 95 % confidence interval (Student's t).

    The mean is `None` without values, the interval with fewer than two.
    """

def quantile(values: Sequence[float], per_mille: int) -> float | None:
    """The quantile of values by nearest rank: the smallest value such that at least `per_mille` / 1000 of all are no larger.

    `None` without values.
    """

def utilisation(busy_ps: int, end_ps: int) -> float | None:
    """The share of a run, or of its measurement window, that a port spends transmitting; `None` for one without duration."""

def queue_length(written: str, mtu: str) -> int | None:
    """The length of a queue in bytes from its literal: `20pkt`, `30KB` or a bare number of packets of `mtu` (`1500B`).

    `None` for `unlimited`, and for text that is not a length.
    """

@final
class ArrowTable:
    """A table that any Arrow reader reads without a copy: `pyarrow.table(t)`, `polars.DataFrame(t)`."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream (Arrow PyCapsule interface)."""
    def __arrow_c_schema__(self) -> object:
        """The table's schema (Arrow PyCapsule interface)."""

@final
class Scenario:
    """A checked scenario: every default filled in, every sweep expanded into points."""

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

        `memory`, such as `8GB`, is what its points may take together; without it they may take what is free.
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
        """The whole plan as TOML, with a comment on every value that the file did not set."""
    @property
    def memory(self) -> str | None:
        """The limit of memory that was given, such as `8000000000B`."""
    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What can run and may mislead, one dict per warning: `file`, `line`, `col`, `message`, `label`, `hint`."""
    @property
    def points(self) -> list[dict[str, Any]]:
        """The points to run: `point`, `system`, `seed` and one entry per swept key."""
    def config_hashes(self) -> dict[str, str]:
        """By point, the hash of all that its result depends on, which its manifest has as `config_hash`."""
    def run(
        self,
        jobs: int = 0,
        threads: int = 0,
        out: str | None = None,
        progress: Callable[[dict[str, Any]], object] | None = None,
        overwrite: bool = False,
        points: Sequence[str] | None = None,
    ) -> Results:
        """Run all points, or those that `points` names, and write them to the folder `out` unless it is `None`.

        `jobs` run at a time (0: one per core) on `threads` threads each (0: cores that are free, where they gain).

        Points that the same scenario and version has finished in `out` are not run again. `progress` is called with
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
        """The folder, or `None` when the results are only in memory."""
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
        """The file of a point's table, such as `flows`. Its content has been compared with its hash.

        `None` if the point has no such table.
        """
    def whole(self) -> list[Path]:
        """The paths of all files of the results. The content of each has been compared with its hash."""
    def flows(self) -> ArrowTable:
        """One row per flow."""
    def ports(self) -> ArrowTable:
        """One row per egress port."""
    def samples(self) -> ArrowTable:
        """Time series; empty unless the scenario asks for them."""
    def agents(self) -> ArrowTable:
        """What agents of ports know of each flow over time; empty unless the scenario asks for it."""
    def packets(self) -> ArrowTable:
        """One row per transmission of a packet; empty unless the scenario asks for them."""
    def points(self) -> ArrowTable:
        """One row per point: its system, seed, swept keys and state."""
    def why(
        self, point: str | None = None, flows: Sequence[int] = ..., files: str = ..., trace: bool = ..., slowest: int = ...
    ) -> dict[str, Any]:
        """Where the time of flows of a point went, by running the point again: a dict with `point`, `system`, `seed`, `flows` and
        `packets`.

        Without `flows`, the `slowest` flows with the largest slowdown. Without `point`, the only point, or the one with the
        largest slowdown. `files` is the folder of the scenario, for the files that it reads. Each flow is a dict with
        `flow_id`, `src`, `dst`, `size_bytes`, `fct_ps`, `ideal_fct_ps`, `slowdown` and `parts`: dicts with `part`, `port`,
        `tier`, `timer`, `timer_ps` and `time_ps`, whose times sum to `fct_ps`. With `trace` the point is run once more for
        `packets`: the packets around the flows.
        """
    def around(self, point: str, flows: Sequence[int], files: str = ...) -> ArrowTable:
        """The packets around flows of a point, by running the point again: those that passed the ports of the flows' paths while
        these were open.
        """
    def summary(self, filter: str | None = None, workloads: bool = False) -> ArrowTable:
        """One row per system, swept keys and metric: mean over seeds with its 95 % confidence interval.

        With `filter`, the metrics of the flows that it chooses. With `workloads`, rows for each workload too, in a column of that
        name.
        """
    def by_size(self, filter: str | None = None) -> ArrowTable:
        """Slowdown and completion time by flow size, by bin: one row per system, swept keys, bin, quantity and statistic."""
    def series(self) -> ArrowTable:
        """Time series summed up: one row per point, metric and entity, over the samples in the measurement window."""
    def groups(self, filter: str | None = None) -> ArrowTable:
        """Groups of flows: one row per point and group that began."""
    def per_seed(self, filter: str | None = None, workloads: bool = False) -> ArrowTable:
        """One row per point and metric; see `summary`."""
    def chosen(self, point: str, filter: str | None = None) -> list[int]:
        """The flows of a point that count, or those that a filter chooses, by their `flow_id`."""
