"""What results in Python need of the compiled part."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Stream(Protocol):
    """What can be read as an Arrow table."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as an Arrow stream."""


class Core(Protocol):
    """What `Data` needs of the compiled part."""

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
        """The file of a point's table, compared with its hash; `None` if the point has no such table."""

    def whole(self) -> list[Path]:
        """The paths of all files, compared with their hashes."""

    def flows(self) -> Stream:
        """One row per flow."""

    def ports(self) -> Stream:
        """One row per port."""

    def samples(self) -> Stream:
        """Time series."""

    def agents(self) -> Stream:
        """Tables of agents."""

    def packets(self) -> Stream:
        """Transmissions of packets."""

    def points(self) -> Stream:
        """One row per point."""

    def summary(self, filter: str | None = None, workloads: bool = False) -> Stream:
        """Metrics over seeds."""

    def by_size(self, filter: str | None = None) -> Stream:
        """Slowdown and completion time by flow size."""

    def series(self) -> Stream:
        """Time series summed up."""

    def groups(self, filter: str | None = None) -> Stream:
        """Groups of flows."""

    def per_seed(self, filter: str | None = None, workloads: bool = False) -> Stream:
        """Metrics by point."""

    def chosen(self, point: str, filter: str | None = None) -> list[int]:
        """The flows of a point that count, or those that a filter chooses."""
