"""What tests share: made-up results, for what only reads results."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fake
from flowloom.api.results import Results


def pytest_configure() -> None:
    """Started in the background, a shell has SIGINT ignored, and all that is started from here would ignore it too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Made-up results: three systems, four loads, three seeds, no traces."""
    return Results(fake.Results(str(fake.write(tmp_path_factory.mktemp("sweep")))))


@pytest.fixture(scope="session")
def with_ideals(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Made-up results of two systems and two ideal references."""
    folder = fake.write(tmp_path_factory.mktemp("ideals"), ("MERP", "TCP"), (0.4, 0.8), ideals=tuple(fake.IDEALS))
    return Results(fake.Results(str(folder)))


@pytest.fixture(scope="session")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Made-up results of one load with time series and packets."""
    folder = fake.write(tmp_path_factory.mktemp("traced"), ("MERP", "pFabric"), (0.5,), (1,), traces=True, key=None)
    return Results(fake.Results(str(folder)))
