"""The command line: which commands come back to Python, and what they print."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flowloom import __main__ as command
from flowloom import _core
from flowloom.__main__ import main
from flowloom.api.results import Results


@pytest.fixture
def folder(results: Results) -> str:
    return str(results.path)


def test_commands_of_the_compiled_part_give_their_code() -> None:
    assert main(["plo"]) == 2 and main(["list", "figures"]) == 0


def test_plot_writes_both_formats(folder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", folder, "--kind", "fct_cdf", "--out", str(tmp_path), "--at", "load=0.8"]) == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["fct_cdf.png", "fct_cdf.svg"]
    assert capfd.readouterr().out.split() == [str(tmp_path / "fct_cdf.png"), str(tmp_path / "fct_cdf.svg")]


def test_plot_without_a_kind_draws_what_there_is(folder: str, tmp_path: Path) -> None:
    assert main(["plot", folder, "--out", str(tmp_path), "--format", "svg"]) == 0
    names = {p.name for p in tmp_path.iterdir()}
    assert "metrics.svg" in names and "gantt.svg" not in names


def test_what_cannot_be_drawn_is_an_error_of_input(folder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["plot", folder, "--kind", "gantt", "--out", str(tmp_path)]) == 2
    error = capfd.readouterr().err
    assert error.startswith("error: ") and "hint: set `packets = true`" in error


def test_report_prints_the_table_and_the_path(folder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", folder, "--out", str(tmp_path / "r.html")]) == 0
    out = capfd.readouterr().out
    assert "mean FCT (ms)" in out and str(tmp_path / "r.html") in out and (tmp_path / "r.html").is_file()


def test_run_ends_with_the_table(results: Results, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.toml").write_text(results._core.config)
    one = ["--seed", "1", "--set", "workload.web.flows=20", "--set", "workload.web.load=0.5"]
    assert main(["run", str(tmp_path / "s.toml"), "--out", str(tmp_path / "r"), *one]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert "mean FCT (µs)" in lines[0] and [line.split()[0] for line in lines[2:5]] == results.systems


def test_compare_prints_the_pairs(folder: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", folder]) == 0
    out = capfd.readouterr().out
    assert "corrected for 12 comparisons (Holm)" in out and "above 1, flows take longer in system b" in out
    head, _, *rows = (re.split(r"\s{2,}", line.strip()) for line in out.splitlines())
    assert head[:5] == ["system a", "system b", "load", "seeds", "flows"]
    (found,) = (dict(zip(head, row, strict=True)) for row in rows if row[:3] == ["MERP", "TCP", "0.8"])
    times = {
        system: [pq.read_table(f"{folder}/{system}-load0.8-seed{seed}/flows.parquet")["fct_ps"].to_numpy() for seed in (1, 2, 3)]
        for system in ("merp", "tcp")
    }
    ratios = [np.mean(np.log(b / a)) for a, b in zip(times["merp"], times["tcp"], strict=True)]
    means = [np.log(np.mean(b) / np.mean(a)) for a, b in zip(times["merp"], times["tcp"], strict=True)]
    assert found["flows"] == "1200"
    for name, expected in (("FCT b / a [95 %]", ratios), ("mean FCT b / a [95 %]", means)):
        ratio, low, high = (float(number) for number in re.findall(r"[\d.]+", found[name]))
        assert ratio == pytest.approx(np.exp(np.mean(expected)), abs=5.1e-4) and low < ratio < high


def test_papers_lists_and_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["papers"]) == 0
    assert "merp: MERP" in capfd.readouterr().out
    assert main(["papers", "merp", "fig9", "--profile", "smoke", "--out", str(tmp_path)]) == 0
    out = capfd.readouterr().out
    assert "f9-small" in out and str(tmp_path / "merp-smoke" / "report.html") in out


def test_a_folder_without_results_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert f"`{tmp_path}` is not a results folder" in capfd.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        ValueError("'yerr' must not contain negative values"),
        KeyError("x"),
        pa.ArrowInvalid("no"),
        AttributeError("y"),
        type("PanicException", (BaseException,), {})("attempt to add with overflow"),
    ],
)
def test_an_error_of_a_library_is_reported_as_a_bug(
    error: BaseException, folder: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*given: object, **named: object) -> None:
        raise error

    monkeypatch.setattr(Results, "table", fail)
    assert main(["table", folder]) == 70
    out, text = capfd.readouterr()
    assert not out and text.startswith("Traceback") and "\nerror: this is a bug of flowloom\nhint: report it" in text


def test_only_errors_of_our_own_are_errors_of_the_user() -> None:
    """A plain `ValueError` or `KeyError` is a bug: every message for users is of a class of ours."""
    package = Path(command.__file__).parent
    plain = re.compile(r"raise (ValueError|KeyError|TypeError)\b")
    files = list(package.rglob("*.py"))
    assert len(files) > 50 and not [file for file in files if plain.search(file.read_text(encoding="utf-8"))]


def test_stopping_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(_core, "main", stop)
    assert main([]) == 130


def test_run_names_failures_that_touched_no_traffic(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    scenario = tmp_path / "idle.toml"
    flow = '[workload.all]\nkind = "long"\nsize = "15KB"\npairs = "h0->h1"\n'
    event = '[failure]\nunreachable = "run"\n[[event]]\nat = "5us"\nnode = "h2"\n'
    text = f'end = "40ms"\n[topology]\nkind = "star"\nhosts = 3\n{flow}[[system]]\ntransport = "newreno"\n{event}'
    scenario.write_text(text, encoding="utf-8")
    assert main(["run", str(scenario), "--out", str(tmp_path / "idle")]) == 0
    assert "a failure touched no traffic at all points: h2, down from 5us to the end" in capfd.readouterr().err
