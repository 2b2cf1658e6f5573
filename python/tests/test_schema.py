"""The schema of scenarios, which editors check against, and the lists of names."""

from __future__ import annotations

import importlib.resources
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from flowloom import exports
from flowloom.base.rooms import Entry
from flowloom.figures.kinds import KINDS

ROOT = Path(__file__).parents[2]
SMALL = """
[topology]
kind = "star"
hosts = 4
[workload.web]
kind = "poisson"
flows = 10
load = [0.4, 0.8]
[[system]]
transport = "newreno"
qdisc = { kind = "droptail", limit = "20pkt" }
"""


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    printed = subprocess.run([sys.executable, "-m", "flowloom", "schema"], capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(printed)
    jsonschema.Draft7Validator.check_schema(found)
    return found


def test_the_package_holds_the_schema(schema: dict[str, Any]) -> None:
    file = importlib.resources.files("flowloom") / "scenario.schema.json"
    assert json.loads(file.read_text(encoding="utf-8")) == schema


def scenarios() -> Iterator[Path]:
    """Every scenario file of the project."""
    for folder in ("examples", "papers", "bench"):
        for path in sorted((ROOT / folder).rglob("*.toml")):
            if "system" in tomllib.loads(path.read_text(encoding="utf-8")):
                yield path


def test_every_scenario_of_the_project_fits(schema: dict[str, Any]) -> None:
    validator = jsonschema.Draft7Validator(schema)
    paths = list(scenarios())
    assert len(paths) > 60
    for path in paths:
        wrong = [
            f"{'.'.join(map(str, e.path))}: {e.message[:200]}"
            for e in validator.iter_errors(tomllib.loads(path.read_text("utf-8")))
        ]
        assert not wrong, (path, wrong)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('kind = "star"', 'kind = "stars"'),
        ("hosts = 4", "hosts = 4\nhost = 5"),
        ("hosts = 4", "hosts = true"),
        ("hosts = 4", "hosts = 0"),
        ("flows = 10", "flows = []"),
        ('transport = "newreno"', 'transport = "reno"'),
        ('transport = "newreno"', 'transport = { kind = "newreno", max_cwnd = 20, window = 3 }'),
        ('transport = "newreno"', "label = 3"),
        ('kind = "droptail"', 'kind = "droptail", alpha = 1'),
        ("[topology]", "sed = 1\n[topology]"),
        ("[topology]", 'seed = "many"\n[topology]'),
        ("[topology]", 'ideal = "best"\n[topology]'),
        ("[topology]", "[sample]\nport = 3\n[topology]"),
    ],
)
def test_mistakes_are_found(schema: dict[str, Any], old: str, new: str) -> None:
    validator = jsonschema.Draft7Validator(schema)
    assert validator.is_valid(tomllib.loads(SMALL))
    assert not validator.is_valid(tomllib.loads(SMALL.replace(old, new, 1)))


def test_parameters_are_described(schema: dict[str, Any]) -> None:
    forms = {
        form["properties"]["kind"]["const"]: form for form in schema["definitions"]["transport"]["anyOf"] if "properties" in form
    }
    theta = forms["merp"]["properties"]["theta"]["description"]
    assert theta.startswith("Detecting-rate threshold") and "Default: 0.8 (section 6.1" in theta


@pytest.mark.parametrize(("what", "known"), [("figures", KINDS), ("formats", exports.FORMATS)])
def test_the_command_line_lists_what_python_draws_and_writes(what: str, known: Mapping[str, Entry]) -> None:
    command = [sys.executable, "-m", "flowloom", "list", what]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split()[0] for line in printed] == list(known)
    assert all(entry.meta.summary in line for line, entry in zip(printed, known.values(), strict=True))
