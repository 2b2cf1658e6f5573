"""Examples and exercises are listed and copied, and what is copied works where it lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from flowloom import Scenario, _core
from flowloom import __main__ as command
from flowloom.base import files
from flowloom.cli import copies


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the compiled part returns."""
    options: dict[str, Any] = {}
    monkeypatch.setattr(_core, "main", lambda argv: options)
    return options


def test_the_wheel_carries_them() -> None:
    package = Path(files.__file__).parents[1]
    assert (package / "examples_data/demo.toml").is_file() and (package / "examples_data/goal/allreduce.goal").is_file()
    assert (package / "lab_data/incast.ipynb").is_file()


def test_each_has_a_name_and_a_line() -> None:
    for known in (copies.examples(), copies.lab()):
        assert len({one.name for one in known}) == len(known) >= 5
        assert all(20 < len(one.about) < 200 and not one.about.endswith(".") for one in known)
    assert {"demo", "incast", "incast.py"} < {one.name for one in copies.examples()}


@pytest.mark.parametrize("example", [one for one in copies.examples() if one.files[0].endswith(".toml")], ids=lambda one: one.name)
@pytest.mark.filterwarnings("ignore::flowloom.ScenarioWarning")
def test_a_copied_scenario_has_the_files_that_it_reads(example: copies.Copy, tmp_path: Path) -> None:
    first, *_ = copies.write(copies.examples(), [example.name], tmp_path)
    assert Scenario.from_file(first).points


def test_what_is_there_is_kept(tmp_path: Path) -> None:
    known = copies.examples()
    written = copies.write(known, ["hpcc", "demo.toml"], tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in written] == [
        "hpcc.toml", "hpcc/flow.txt", "hpcc/topology.txt", "demo.toml",
    ]  # fmt: skip
    # Copies that nobody has changed may be made again.
    assert copies.write(known, ["hpcc"], tmp_path)
    (tmp_path / "hpcc/flow.txt").write_text("mine")
    (tmp_path / "hpcc.toml").unlink()
    with pytest.raises(ValueError, match=r"flow.txt` exists already and differs\nhint: .* `--overwrite`"):
        copies.write(known, ["hpcc"], tmp_path)
    assert (tmp_path / "hpcc/flow.txt").read_text() == "mine" and not (tmp_path / "hpcc.toml").exists()
    copies.write(known, ["hpcc"], tmp_path, overwrite=True)
    assert (tmp_path / "hpcc/flow.txt").read_text() != "mine"


def test_a_wrong_name_copies_nothing(tmp_path: Path) -> None:
    with pytest.raises(
        ValueError,
        match=r"there is no `dmeo`; did you mean `demo`\?\nhint: one of all_reduce, background_and_incast, deadlines, demo",
    ):
        copies.write(copies.examples(), ["hpcc", "dmeo"], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "first"), [("examples", "demo"), ("lab", "incast")])
def test_the_commands_list_and_copy(
    name: str, first: str, asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.update(command=name, names=[], out=None, overwrite=False)
    assert command.main([]) == 0
    listed, hint = capsys.readouterr()
    assert f"\n{first} " in f"\n{listed}" and f"`flowloom {name} {first}`" in hint
    asked.update(names=[first], out=str(tmp_path))
    assert command.main([]) == 0
    copied, hint = capsys.readouterr()
    assert Path(copied.strip()).parent == tmp_path and Path(copied.strip()).is_file()
    assert {"examples": "flowloom run", "lab": "jupyter lab"}[name] in hint
    asked.update(names=["nothing"])
    assert command.main([]) == 2


def test_examples_are_copied_by_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert command.main(["examples", "goal"]) == 0
    assert (tmp_path / "goal/allreduce.goal").is_file() and command.main(["check", "goal.toml"]) == 0
