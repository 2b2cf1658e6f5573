"""What tests share: results of small runs, which they only read."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import programs
import pytest
import small
from flowloom.api.results import Results

SIX = ("MERP", "pFabric", "TCP, RTO 200 ms", "a transport with a long name", "DCTCP", "TCP_SACK 100%")
EVERYTHING: dict[str, Any] = {
    "web": {"deadline": {"kind": "uniform", "min": "200us", "max": "1ms", "share": 0.5}},
    "workload": {"burst": {"kind": "incast", "senders": 3, "size": "20KB", "repeat": 3}},
}
"""Deadlines and groups, so that every kind of figure can be drawn."""


def pytest_configure() -> None:
    """Started in the background, a shell has SIGINT ignored, and all that is started from here would ignore it too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Writes the skipped tests, each with the reason, to the file that `make test` and CI read."""
    if file := os.environ.get("FLOWLOOM_SKIPPED"):
        reports = terminalreporter.getreports("skipped")
        reasons = (report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr) for report in reports)
        rows = sorted(f"{report.nodeid}\t{why.removeprefix('Skipped: ')}\n" for report, why in zip(reports, reasons, strict=True))
        Path(file).write_text("".join(rows))


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Three systems, four loads, three seeds, no traces."""
    return small.run(tmp_path_factory.mktemp("sweep"), ("MERP", "pFabric", "TCP"), (0.2, 0.4, 0.6, 0.8), (1, 2, 3), 400)


@pytest.fixture(scope="session")
def with_ideals(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two systems and two ideal references at two loads."""
    return small.run(tmp_path_factory.mktemp("ideals"), ("MERP", "TCP"), (0.4, 0.8), (1, 2), 100, ideal=["srpt", "ps"])


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Two systems at one load, with time series and packets."""
    return small.run(tmp_path_factory.mktemp("traced"), ("MERP", "TCP"), sample=small.TRACES)


@pytest.fixture(scope="session")
def six(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Six systems at four loads, with deadlines and groups."""
    return small.run(tmp_path_factory.mktemp("six"), SIX, (0.2, 0.4, 0.6, 0.8), (1, 2, 3), 100, **EVERYTHING)


@pytest.fixture(scope="session")
def six_trained(six: Results) -> Results:
    """The results of `six` with tasks of programs, so that all kinds of figures without traces can be drawn."""
    return programs.everywhere(six)


@pytest.fixture(scope="session")
def six_traced(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Six systems at one load, with time series and packets."""
    return small.run(tmp_path_factory.mktemp("traced6"), SIX, seeds=(1, 2), flows=20, sample=small.TRACES)
