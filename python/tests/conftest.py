"""Tests run with the compiled part where it is built; what only reads results runs without it too, on made-up ones."""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import fake

try:
    HAVE_CORE = bool(importlib.import_module("flowloom._core"))
except ImportError:
    HAVE_CORE = False
    sys.modules["flowloom._core"] = fake

from flowloom.results import Results


def pytest_addoption(parser: pytest.Parser) -> None:
    """Without the compiled part only on request: tests that are left out unseen prove nothing."""
    parser.addoption("--without-core", action="store_true", help="leave out what needs the compiled part")


def pytest_configure(config: pytest.Config) -> None:
    """Announces the mark of tests that simulate; refuses to leave them out unasked."""
    if not HAVE_CORE and not config.getoption("--without-core"):
        raise pytest.UsageError("the compiled part is not built: `make build`, or `pytest --without-core`")
    config.addinivalue_line("markers", "core: needs the compiled part")
    # Started in the background, a shell has SIGINT ignored, and all that is started from here would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips what simulates when there is nothing to simulate with."""
    if not HAVE_CORE:
        for item in items:
            if item.get_closest_marker("core"):
                item.add_marker(pytest.mark.skip(reason="--without-core: asked for"))  # without the option pytest does not start


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
