"""Plug-ins: new ones run and are tested, those in Python give the bytes of the built-in one, and mistakes are reported."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import flowloom.__main__ as command
import pytest
from flowloom.cli import plugins

ROOT = Path(__file__).parents[2]

NET = """
end = "3ms"
[topology]
kind = "star"
hosts = 4
[workload.in]
kind = "incast"
senders = 3
size = "300KB"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def digests(results: str) -> dict[str, object]:
    """The counters of each point of a run, with its digest, and the hashes of tables without the label of the system."""
    files = sorted(Path(results).glob("*/manifest.json"))
    points = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    hashes = ([file["hash"] for file in point["files"] if file["name"] != "flows.parquet"] for point in points)
    return {point["system"]: (point["counters"], found) for point, found in zip(points, hashes, strict=True)}


def scenario(*transports: str) -> str:
    systems = (f'[[system]]\nlabel = "{n}"\ntransport = {transport}\n' for n, transport in enumerate(transports))
    return NET + "\n".join(systems)


@pytest.mark.parametrize("lang", ["python", "c", "rust"])
def test_a_new_plug_in_runs_and_its_test_passes(lang: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if lang == "rust" and shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    assert command.main(["new", "transport", "quick", "--lang", lang]) == 0
    written, hint = capfd.readouterr()
    assert f"quick.{'py' if lang == 'python' else lang[0] if lang == 'c' else 'rs'}" in written.splitlines()
    assert "`flowloom run quick.toml`" in hint
    assert command.main(["run", "quick.toml"]) == 0
    table = capfd.readouterr().out
    rows = [line.split() for line in table.splitlines() if line.startswith(("quick", "DCTCP"))]
    assert len(rows) == 2 and rows[0][1:] == rows[1][1:], table
    found = digests("results/quick")
    assert found["quick"] == found["DCTCP"]
    test = plugins.project("quick", lang).test.replace("python ", f"{sys.executable} ")
    done = subprocess.run(test, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_plug_in_replaces_nothing(folder: Path) -> None:
    (folder / "mine.toml").write_text("mine")
    assert command.main(["new", "transport", "mine", "--lang", "python"]) == 2
    assert [file.name for file in folder.iterdir()] == ["mine.toml"]
    assert command.main(["new", "transport", "mine", "--lang", "python", "--overwrite"]) == 0
    for wrong in ("Mine", "a-b", "1st", "../x", "test", "ä"):
        assert command.main(["new", "transport", wrong, "--lang", "c"]) == 2, wrong


def test_python_gives_the_bytes_of_the_built_in_transport(folder: Path) -> None:
    text = (ROOT / "bench/dctcp.toml").read_text(encoding="utf-8").replace("10ms", "500us")
    above, system = text.split("[[system]]")
    shutil.copy(ROOT / "crates/plugin/new/python/mine.py", folder)
    mine = system.replace('"DCTCP"', '"mine"').replace('kind = "dctcp"', 'kind = "plugin", path = "mine.py"')
    (folder / "s.toml").write_text(f"{above}[[system]]{system}\n[[system]]{mine}")
    assert command.main(["run", "s.toml", "--out", "r", "--threads", "2"]) == 0
    found = digests("r")
    assert found["DCTCP"] == found["mine"]
    manifest = json.loads((folder / "r/mine-seed1/manifest.json").read_text(encoding="utf-8"))
    assert manifest["one_thread"] == "a plug-in in Python runs on one thread"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("class Mine:", "class Mine", "SyntaxError"),
        ("def on_loss", "def on_lost", "one class with `on_ack` and `on_loss`, and has 0"),
        ('"exact"', '"maybe"', "its `ecn` is `maybe`"),
        ('"type": "integer"', '"type": "text"', "its parameter `min_cwnd` has the type `text`"),
        ('"default": "0.0625"', '"default": "2"', "is not from `0.000000001` to `1`"),
        ('"default": "0.0625"', '"defualt": "0.0625"', "its parameter `g` has the unknown key `defualt`"),
        ('name = "mine"', 'name = "My protocol"', "is not a word"),
        ('"g": {', '"on_ack": {', "has the name of an attribute"),
        ("ONE = 1_000_000_000", "raise KeyError('x')", "KeyError: 'x' (line 6)"),
    ],
)
def test_a_class_that_does_not_fit_is_refused(
    old: str, new: str, why: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "crates/plugin/new/python/mine.py").read_text(encoding="utf-8")
    assert old in text
    (folder / "mine.py").write_text(text.replace(old, new))
    (folder / "s.toml").write_text(scenario('{ kind = "plugin", path = "mine.py" }'))
    assert command.main(["check", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert why in error and "cannot" in error and "s.toml:" in error, error


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("self.owed = 0", "self.owed = 0 // 0", "failed in `open`: ZeroDivisionError: "),
        ("self.acked += ack.acked", "self.acked += ack.ackde", "failed in `on_ack`: AttributeError: "),
        ("window.cwnd += ack.slow_start", "window.cwnd = -1", "failed in `on_ack`: OverflowError: "),
        ("window.cwnd += ack.slow_start", "window.cwnd = 2.5", "failed in `on_ack`: TypeError: "),
        ("return max(window.cwnd *", "return 2**64 + max(window.cwnd *", "failed in `on_mark`: OverflowError: "),
    ],
)
def test_an_exception_ends_the_run_with_its_line(
    old: str, new: str, why: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "crates/plugin/new/python/mine.py").read_text(encoding="utf-8")
    assert old in text
    (folder / "mine.py").write_text(text.replace(old, new))
    (folder / "s.toml").write_text(scenario('{ kind = "plugin", path = "mine.py" }'))
    assert command.main(["run", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert f"the plug-in `mine` (`mine.py`) {why}" in error and ("(line " in error or "too big" in error), error


def test_extreme_windows_of_python_are_bounded(folder: Path) -> None:
    text = (ROOT / "crates/plugin/new/python/mine.py").read_text(encoding="utf-8")
    for value in ("0", "1 << 63"):
        changed = text.replace("window.cwnd += ack.slow_start", f"window.cwnd = {value}")
        (folder / "mine.py").write_text(changed)
        (folder / "s.toml").write_text(scenario('{ kind = "plugin", path = "mine.py" }').replace("3ms", "1s"))
        assert command.main(["run", "s.toml", "--overwrite"]) == 0


def test_a_plug_in_is_explained_and_packed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command.main(["new", "transport", "mine", "--lang", "c"]) == 0
    capfd.readouterr()
    assert command.main(["explain", "mine.so"]) == 0
    text = capfd.readouterr().out
    assert "DCTCP, to be changed" in text and "Gain: the weight" in text and "min_rto" in text
    assert command.main(["check", "mine.toml"]) == 0
    assert capfd.readouterr().out.count("native code, which runs with your rights") == 1
    assert command.main(["run", "mine.toml", "--out", "r"]) == 0
    assert command.main(["pack", "r", "--scenario", "mine.toml", "--out", "r.zip"]) == 0
    with zipfile.ZipFile("r.zip") as archive:
        archive.extractall(folder / "x")
    (inside,) = (folder / "x").iterdir()
    assert (inside / "mine.so").read_bytes() == (folder / "mine.so").read_bytes()
    assert command.main(["run", str(inside / "scenario.toml"), "--out", "again"]) == 0
    assert digests("again") == digests("r")
    # Another build of the plug-in is another configuration, which is not packed.
    with (folder / "mine.so").open("ab") as file:
        file.write(b" ")
    assert command.main(["pack", "r", "--scenario", "mine.toml", "--out", "s.zip"]) == 2
    assert "has changed since the run" in capfd.readouterr().err
