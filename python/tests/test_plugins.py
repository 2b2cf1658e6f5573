"""Plug-ins: new ones run and are tested, those in Python give the bytes of the built-in one, and mistakes are reported."""

from __future__ import annotations

import json
import re
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


PARTS = ["transport", "whole_transport", "policy", "qdisc", "router"]
RIVALS = {
    "transport": ["DCTCP"], "whole_transport": ["DCTCP"], "policy": ["PIAS"], "qdisc": ["strict"], "router": ["LetFlow", "ECMP"],
}  # fmt: skip
"""The other systems of the scenario of each template."""


# One folder for all plug-ins of a language: `cargo` builds the crate for authors once.
@pytest.mark.parametrize(("lang", "end", "parts"), [("python", "py", PARTS[:1]), ("c", "c", PARTS), ("rust", "rs", PARTS)])
def test_new_plug_ins_run_and_their_tests_pass(
    lang: str, end: str, parts: list[str], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    if lang == "rust" and shutil.which("cargo") is None:
        pytest.skip("there is no cargo")
    for part in parts:
        name = f"quick_{part}"
        assert command.main(["new", part, name, "--lang", lang, "--overwrite"]) == 0
        written, hint = capfd.readouterr()
        assert {f"{name}.{end}", f"{name}.toml"} < set(written.splitlines()) and f"`flowloom run {name}.toml`" in hint
        assert command.main(["run", f"{name}.toml"]) == 0
        table = capfd.readouterr().out
        rows = [line.split() for line in table.splitlines()]
        found = digests(f"results/{name}")
        assert set(found) == {name, *RIVALS[part]} <= {row[0] for row in rows if row}, table
        # Templates that are the same protocol as a built-in one.
        if part in ("transport", "policy"):
            assert found[name] == found[RIVALS[part][0]], part
        test = plugins.project(part, name, lang).test
        assert f"test: `{test}`" in hint
        test = test.replace("python ", f"{sys.executable} ")
        done = subprocess.run(test, shell=True, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and "running 0 tests" not in done.stdout, done.stdout + done.stderr


def test_what_has_no_template_is_refused(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for part in PARTS[1:]:
        assert command.main(["new", part, "mine", "--lang", "python"]) == 2
        error = capfd.readouterr().err
        assert f"a plug-in for `{part}` is written in C or Rust" in error and "`flowloom new transport mine --lang python`" in error
    assert not list(folder.iterdir())


def test_commands_for_another_folder_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert command.main(["new", "router", "mine", "--lang", "c", "--out", "a b"]) == 0
    for printed in re.findall(r"(?:built by|test:) `(.*?)`", capfd.readouterr().err):
        assert printed.startswith("cd 'a b' && ") and subprocess.run(printed, shell=True, cwd=folder, check=False).returncode == 0


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
    shutil.copy(ROOT / "crates/plugin/new/transport/python/mine.py", folder)
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
        ("def on_loss", "def on_lost", "its class has `on_lost`, which flowloom does not use; did you mean `on_loss`?"),
        ("def on_loss", "def _loss", "one class with `on_ack` and `on_loss`, and has 0"),
        ("def on_mark", "def on_makr", "did you mean `on_mark`?"),
        ("def on_mark", "def onMark", "did you mean `on_mark`?"),
        ("def on_mark", "def on_timeout", "does not call; it calls `open`, `on_ack`, `on_loss`, `on_mark`, "),
        ("def inherit", "def not_befor", "did you mean `not_before`?"),
        ("def inherit", "def before_losses", "did you mean `before_loss`?"),
        ('ecn = "exact"', 'ecm = "exact"', "did you mean `ecn`?"),
        ("parameters = {", "parameter = {", "did you mean `parameters`?"),
        ('ecn = "exact"', 'known = ("size",)', "did you mean `knows`?"),
        ('ecn = "exact"', "host = 3", "an attribute `host`, which flowloom sets on every object"),
        ('ecn = "exact"', "ecn = 3", "its `ecn` is 3: a text is allowed"),
        ('ecn = "exact"', "ecn = None", "its `ecn` is None: a text is allowed"),
        ('name = "mine"', "name = 3", "its `name` is 3: a text is allowed"),
        ('source = "RFC 8257"', "source = 8257", "its `source` is 8257: a text is allowed"),
        ('ecn = "exact"', 'knows = "size"', "its `knows` is 'size': a tuple such as"),
        ('ecn = "exact"', 'knows = ("szie",)', "its `knows` has `szie`"),
        ('ecn = "exact"', "on_sent = 3", "its `on_sent` is not a method"),
        ('ecn = "exact"', "most = 3", "its `most` is not a method"),
        ("parameters = {", "parameters = [{", "SyntaxError"),
        ("parameters = {", "parameters = () and {", "its `parameters` is (): a dict of dicts"),
        ('"g": {', '"g": 3, "h": {', "its parameter `g` is 3: a dict is allowed"),
        ('"range": ("0.000000001", "1")', '"range": "1"', "its parameter `g` has the range '1': a pair such as"),
        ('"g": {', '"most": {', "its parameter `most` has the name of an attribute that flowloom uses"),
        ('"g": {', '"host": {', "its parameter `host` has the name of an attribute that flowloom uses"),
        ('"g": {', '"min_rto": {', "its parameter `min_rto` has a name that is already taken"),
        ('"exact"', '"maybe"', "its `ecn` is `maybe`"),
        ('"type": "integer"', '"type": "text"', "its parameter `min_cwnd` has the type `text`"),
        ('"default": "0.0625"', '"default": "2"', "is not from `0.000000001` to `1`"),
        ('"default": "0.0625"', '"defualt": "0.0625"', "its parameter `g` has the unknown key `defualt`; did you mean `default`?"),
        ('name = "mine"', 'name = "My protocol"', "is not a word"),
        ('"g": {', '"on_ack": {', "has the name of an attribute"),
        ("ONE = 1_000_000_000", "raise KeyError('x')", "KeyError: 'x' (line 6)"),
    ],
)
def test_a_class_that_does_not_fit_is_refused(
    old: str, new: str, why: str, folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "crates/plugin/new/transport/python/mine.py").read_text(encoding="utf-8")
    assert old in text
    (folder / "mine.py").write_text(text.replace(old, new))
    (folder / "s.toml").write_text(scenario('{ kind = "plugin", path = "mine.py" }'))
    assert command.main(["check", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert why in error and "cannot" in error and "s.toml:" in error, error


def test_an_author_has_names_of_his_own(folder: Path) -> None:
    text = (ROOT / "crates/plugin/new/transport/python/mine.py").read_text(encoding="utf-8")
    own = "rate = update = gain = window = before = 3\n    _on_makr = _ecm = _parameter = 4\n    ecn ="
    text = text.replace("ecn =", own).replace("class Mine:", "class Base:\n    helper = 1\n\n\nclass Mine(Base):")
    (folder / "mine.py").write_text(text)
    (folder / "s.toml").write_text(scenario('{ kind = "plugin", path = "mine.py" }'))
    assert command.main(["check", "s.toml"]) == 0


def test_what_a_plug_in_prints_is_no_data(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "crates/plugin/new/transport/python/mine.py").read_text(encoding="utf-8")
    loud = text.replace("ONE =", "import sys\nprint('xyzzy')\nsys.stdout.write('plugh\\n')\nONE =")
    (folder / "mine.py").write_text(loud.replace("self.acked += ack.acked", "print('plover'); self.acked += ack.acked"))
    (folder / "s.toml").write_text(scenario('{ kind = "plugin", path = "mine.py" }'))
    for line in (
        ["check", "s.toml", "--format", "json"], ["run", "s.toml", "--out", "r"], ["table", "r", "--format", "csv"], ["why", "r"],
        ["play", "r", "--around", "0"], ["explain", "mine.py"],
    ):  # fmt: skip
        assert command.main(line) == 0
        out, error = capfd.readouterr()
        assert not re.search("xyzzy|plugh|plover", out), line
        assert "plover" in error or line[0] not in ("run", "why", "play"), line
        if line[0] == "check":
            assert json.loads(out)["diagnostics"] is not None and "xyzzy\nplugh\n" in error


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
    text = (ROOT / "crates/plugin/new/transport/python/mine.py").read_text(encoding="utf-8")
    assert old in text
    (folder / "mine.py").write_text(text.replace(old, new))
    (folder / "s.toml").write_text(scenario('{ kind = "plugin", path = "mine.py" }'))
    assert command.main(["run", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert f"the plug-in `mine` (`mine.py`) {why}" in error and ("(line " in error or "too big" in error), error


def test_extreme_windows_of_python_are_bounded(folder: Path) -> None:
    text = (ROOT / "crates/plugin/new/transport/python/mine.py").read_text(encoding="utf-8")
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
