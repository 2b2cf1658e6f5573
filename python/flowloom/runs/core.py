"""The interface of the compiled part that results use."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Stream(Protocol):
    """An object that can be read as an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Returns the table as an Arrow stream."""


class Core(Protocol):
    """The results of the compiled part, as `Data` uses them."""

    @property
    def path(self) -> str | None:
        """The folder, if there is one."""

    @property
    def complete(self) -> bool:
        """Whether every point ran to its end."""

    @property
    def config(self) -> str:
        """The resolved scenario as TOML."""

    @property
    def manifest(self) -> str:
        """The manifest of the run as JSON."""

    def file(self, point: str, table: str) -> Path | None:
        """Returns the file of a point's table after a comparison with its hash; `None` if the point
        has no such table.
        """

    def whole(self) -> list[Path]:
        """Returns the paths of all files after a comparison with their hashes."""

    def flows(self) -> Stream:
        """Returns one row per flow."""

    def ports(self) -> Stream:
        """Returns one row per port."""

    def tasks(self) -> Stream:
        """Returns one row per task of a program."""

    def parts(self) -> Stream:
        """Returns one row per task and rank that takes part."""

    def rank_times(self) -> Stream:
        """Returns one row per rank for a job and for each iteration."""

    def samples(self) -> Stream:
        """Returns the time series."""

    def agents(self) -> Stream:
        """Returns the tables of agents."""

    def packets(self) -> Stream:
        """Returns one row per transmission of a packet."""

    def points(self) -> Stream:
        """Returns one row per point."""

    def summary(self, filter: str | None = None, workloads: bool = False) -> Stream:
        """Returns the metrics, averaged over seeds."""

    def by_size(self, filter: str | None = None) -> Stream:
        """Returns slowdown and completion time by flow size."""

    def series(self) -> Stream:
        """Returns statistics of the time series."""

    def groups(self, filter: str | None = None) -> Stream:
        """Returns the groups of flows."""

    def per_seed(self, filter: str | None = None, workloads: bool = False) -> Stream:
        """Returns the metrics of every point."""

    def refuse_absent(self, filter: str) -> None:
        """Raises `ValueError` if a filter is wrong, or expects a workload, host, group or flow that no
        point has.
        """

    def chosen(self, point: str, filter: str | None = None) -> list[int]:
        """Returns the ids of the flows of a point that count in metrics, or that a filter chooses."""
