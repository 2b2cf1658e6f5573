"""The command line: which commands come back to Python, and what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fake
import pytest
from flowloom import __main__ as command
from flowloom import _core
from flowloom.api.results import Results


@pytest.fixture
def folder(results: Results) -> str:
    assert results.path is not None
    return str(results.path)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the compiled part returns; it reads made-up results."""
    options: dict[str, Any] = {}
    monkeypatch.setattr(_core, "main", lambda argv: options if options else int(argv[0]), raising=False)
    monkeypatch.setattr(_core, "Results", fake.Results, raising=False)
    monkeypatch.setattr(_core, "compare", fake.compare, raising=False)
    monkeypatch.setattr(_core, "Scenario", fake.Scenario, raising=False)
    return options


def test_commands_of_the_compiled_part_give_their_code(asked: dict[str, Any]) -> None:
    assert command.main(["2"]) == 2 and command.main(["0"]) == 0


def test_plot_writes_both_formats(asked: dict[str, Any], folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked.update(command="plot", dirs=[folder], kind=["fct_cdf"], out=str(tmp_path), at=["load=0.8"])
    assert command.main([]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fct_cdf.png", "fct_cdf.svg"]
    assert capsys.readouterr().out.split() == [str(tmp_path / "fct_cdf.png"), str(tmp_path / "fct_cdf.svg")]


def test_plot_without_a_kind_draws_what_there_is(asked: dict[str, Any], folder: str, tmp_path: Path) -> None:
    asked.update(command="plot", dirs=[folder], out=str(tmp_path), format=["svg"])
    assert command.main([]) == 0
    names = {p.name for p in tmp_path.iterdir()}
    assert "metrics.svg" in names and "gantt.svg" not in names


def test_what_cannot_be_drawn_is_an_error_of_input(asked: dict[str, Any], folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked.update(command="plot", dirs=[folder], kind=["gantt"])
    assert command.main([]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and "hint: set `packets = true`" in error


def test_report_prints_the_table_and_the_path(
    asked: dict[str, Any], folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked.update(command="report", dirs=[folder], out=str(tmp_path / "r.html"))
    assert command.main([]) == 0
    out = capsys.readouterr().out
    assert "mean FCT (ms)" in out and str(tmp_path / "r.html") in out and (tmp_path / "r.html").is_file()


def test_run_ends_with_the_table(asked: dict[str, Any], folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked.update(command="run", dirs=[folder], exit=0)
    assert command.main([]) == 0
    assert "mean FCT (ms)" in capsys.readouterr().out


def test_compare_prints_the_pairs(asked: dict[str, Any], folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked.update(command="compare", dirs=[folder])
    assert command.main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["system", "a", "system", "b", "load", "flows", "mean", "fct", "ratio"]
    assert lines[2].split() == ["MERP", "TCP", "0.8", "400", "2.5"]


def test_papers_lists_and_runs(asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked.update(command="papers")
    assert command.main([]) == 0
    assert "merp: MERP" in capsys.readouterr().out
    asked.update(name="merp", figure="fig9", profile="smoke", out=str(tmp_path))
    assert command.main([]) == 0
    out = capsys.readouterr().out
    assert "f9-small" in out and str(tmp_path / "merp-smoke" / "report.html") in out


def test_strict_fails_on_a_claim_that_is_not_met(asked: dict[str, Any], tmp_path: Path) -> None:
    # The made-up numbers of five seeds contradict the paper's axes.
    asked.update(command="papers", name="merp", figure="fig6", profile="paper", out=str(tmp_path), strict=True)
    assert command.main([]) == 1
    asked.update(strict=False)
    assert command.main([]) == 0


def test_a_folder_without_results_is_named(asked: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked.update(command="report", dirs=[str(tmp_path)])
    assert command.main([]) == 2
    assert f"`{tmp_path}` is not a results folder" in capsys.readouterr().err


def test_stopping_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(_core, "main", stop, raising=False)
    assert command.main([]) == 130
