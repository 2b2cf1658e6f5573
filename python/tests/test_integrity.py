"""Results that cannot be damaged in silence: what is read back, what is packed and merged, and where commands write."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import flowloom
import pytest
from damage import contents, edited, flip, forged
from flowloom import __main__ as command_line
from flowloom import _core
from flowloom.api.results import Results
from flowloom.cli import pack

TABLE = """
seed = [1, 2]
topology = { kind = "star", hosts = 4 }
[workload.w]
kind = "table"
path = "flows.csv"
[[system]]
label = "A"
transport = "newreno"
[[system]]
label = "B"
transport = "newreno"
qdisc = { kind = "droptail", limit = "5pkt" }
[sample]
packets = true
ports = false
"""
FLOWS = "src,dst,size_bytes,start\nh0,h2,10000,0us\nh1,h2,20000,1us\n"


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a scenario, the file that it reads, and its results."""
    folder = tmp_path_factory.mktemp("integrity")
    (folder / "s.toml").write_text(TABLE)
    (folder / "flows.csv").write_text(FLOWS)
    flowloom.run(folder / "s.toml", out=folder / "r")
    return folder


@pytest.fixture
def here(ready: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, to break, and the working folder."""
    copy = shutil.copytree(ready, tmp_path / "here")
    monkeypatch.chdir(copy)
    return copy


def flowloom_here(capfd: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str]:
    """Runs a command in this process; its exit code, and what it says."""
    code = command_line.main(argv)
    out, err = capfd.readouterr()
    return code, out + err


def slower(manifest: Path) -> None:
    """Multiplies a metric by ten, as somebody would by hand."""
    value = next(value for name, value in json.loads(manifest.read_text())["metrics"] if name == "mean_slowdown")
    edited(manifest, json.dumps(value), json.dumps(10 * value))


READERS = {
    "report": ["report", "r"],
    "plot": ["plot", "r", "--kind", "fct_cdf"],
    "compare": ["compare", "r"],
    "export": ["export", "r", "--format", "hpcc", "--point", "a-seed1"],
    "pack": ["pack", "r", "--scenario", "s.toml"],
    "play": ["play", "r", "--at", "seed=1"],
    "why": ["why", "r", "--point", "a-seed1"],
    "merge": ["merge", "r", "--out", "m"],
}
DAMAGE = {
    "a bit of a table": ("r/a-seed1/flows.parquet", flip, READERS.keys() - {"play"}),
    "a bit of a trace": ("r/a-seed1/packets.parquet", flip, {"play", "pack", "merge"}),
    "a metric of a point": ("r/a-seed1/manifest.json", slower, READERS.keys()),
    "a label of the run": ("r/manifest.json", lambda path: edited(path, '"label', '"lebal'), READERS.keys()),
    "points.parquet": ("r/points.parquet", flip, {"pack"}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_every_command_finds_damage(here: Path, capfd: pytest.CaptureFixture[str], damage: str) -> None:
    file, harm, finders = DAMAGE[damage]
    harm(here / file)
    before = contents(here)
    for name in sorted(finders):
        code, said = flowloom_here(capfd, *READERS[name])
        assert (code, said.count("error: ")) == (5, 1), (name, said)
        assert f"{file}` is damaged: its content is not what was written\nhint: repeat the `flowloom run`" in said, (name, said)
        assert contents(here) == before, (name, "nothing is written")
    code, said = flowloom_here(capfd, "run", "s.toml", "--out", "r")
    assert code == 0 and ("3 kept" in said or "4 kept" in said), said
    assert flowloom_here(capfd, *READERS["pack"])[0] == 0


def test_python_finds_damage_too(here: Path) -> None:
    results = flowloom.open("r")
    flip(here / "r/a-seed1/flows.parquet")
    reads: Sequence[Callable[[], object]] = (
        results.flows,
        lambda: results.flows(["fct_ps"]),
        lambda: results.flows(None, {"system": "A"}),
        results.by_size,
        results._core.whole,
        lambda: _core.Results.open("r").flows().__arrow_c_stream__(),
    )
    for read in reads:
        with pytest.raises(flowloom.StorageError, match="its content is not what was written\nhint: "):
            read()
    assert results.flows(["fct_ps"], {"system": "B"}).num_rows == 4, "only what is read is checked"
    assert results.manifest["stop_reason"] == "finished"


def test_results_of_an_older_layout_are_named_so(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for path in (here / "r").rglob("manifest.json"):
        edited(path, '"schema_version": 8', '"schema_version": 7')
    code, said = flowloom_here(capfd, "report", "r")
    assert code == 5 and "has layout 7, but this version of flowloom reads layout 8" in said and "damaged" not in said
    code, said = flowloom_here(capfd, "run", "s.toml", "--out", "r")
    assert code == 5 and "another version of flowloom" in said and "--overwrite" in said
    assert flowloom_here(capfd, "run", "s.toml", "--out", "r", "--overwrite")[0] == 0


# Where commands write

ONTO = {
    "a run onto a point": ["run", "s.toml", "--out", "r/a-seed1"],
    "a merge onto a point": ["merge", "r", "--out", "r/a-seed1"],
    "papers into a point": ["papers", "merp", "table1", "--profile", "smoke", "--out", "r/a-seed1"],
    "an archive onto a table": ["pack", "r", "--scenario", "s.toml", "--out", "r/points.parquet"],
    "an export onto the manifest": ["export", "r", "--format", "hpcc", "--point", "a-seed1", "--out", "r/manifest.json"],
    "a report onto flows": ["report", "r", "--out", "r/a-seed1/flows.parquet"],
    "a report into a point": ["report", "r", "--out", "r/a-seed1"],
    "figures into a point": ["plot", "r", "--kind", "metrics", "--out", "r/a-seed1"],
    "a figure into a point": ["plot", "r", "--kind", "metrics", "--out", "r/a-seed1/x.png"],
    "a page onto the lock": ["play", "r", "--at", "seed=1", "--out", "r/.lock"],
    "a figure onto a table": ["why", "r", "--point", "a-seed1", "--out", "r/summary.parquet/x.png"],
    "a report onto somebody's file": ["report", "r", "--out", "r/thesis.tex"],
    "through a link": ["report", "r", "--out", "link.html"],
    "by another way": ["report", "r", "--out", "r/../r/figures/../a-seed1/flows.parquet"],
}


@pytest.mark.parametrize("name", ONTO)
def test_nothing_is_written_onto_results(here: Path, capfd: pytest.CaptureFixture[str], name: str) -> None:
    (here / "r/thesis.tex").write_text("x")
    (here / "link.html").symlink_to("r/a-seed1/flows.parquet")
    before = contents(here)
    code, said = flowloom_here(capfd, *ONTO[name])
    assert (code, said.count("error: ")) == (5, 1) and "must not be written: it " in said, said
    assert contents(here) == before


def test_what_commands_made_is_made_again(here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    # What is in the report takes time and does not matter here.
    monkeypatch.setattr("flowloom.pages.report.build", lambda *_: "page")
    before = contents(here / "r")
    for argv in (
        ["report", "r"],
        ["plot", "r", "--kind", "metrics"],
        ["plot", "r", "--kind", "metrics", "--out", "r/mine.svg"],
        ["export", "r", "--format", "hpcc", "--point", "a-seed1"],
        ["play", "r", "--at", "seed=1"],
        ["report", "r", "--out", "r/more/page.html"],
    ):
        for _ in range(2):
            code, said = flowloom_here(capfd, *argv)
            assert code == 0, said
    after = contents(here / "r")
    assert {name: after[name] for name in before} == before
    assert {"report.html", "figures/metrics.png", "mine.svg", "a-seed1.txt", "playback.html", "more/page.html"} <= after.keys()
    with pytest.raises(flowloom.StorageError, match="it is a part of the results"):
        flowloom.open("r").report("r/points.parquet")


# Names in manifests, and shares


def test_names_in_manifests_are_no_paths(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def move(manifest: dict[str, Any]) -> None:
        manifest["points"][0]["id"] = "../../escaped"
        del manifest["done"]["a-seed1"]

    shutil.copytree(here / "r", here / "deep/er/r")
    forged(here / "deep/er/r/manifest.json", move)
    shutil.move(here / "deep/er/r/a-seed1", here / "deep/escaped")
    forged(here / "deep/escaped/manifest.json", lambda manifest: manifest.update(id="../../escaped"))
    for argv in (["merge", "deep/er/r", "--out", "x/y/m"], ["report", "deep/er/r"], ["pack", "deep/er/r", "--scenario", "s.toml"]):
        code, said = flowloom_here(capfd, *argv)
        assert code == 5 and "the point `../../escaped` is not the name of a folder" in said, said
    forged(here / "r/a-seed1/manifest.json", lambda manifest: manifest["files"][0].update(name="../../evil.parquet"))
    forged(here / "r/manifest.json", lambda manifest: manifest.update(done={}))
    shutil.copy(here / "r/a-seed1/flows.parquet", here / "evil.parquet")
    code, said = flowloom_here(capfd, "merge", "r", "--out", "v/w/m")
    assert code == 5 and "the file `../../evil.parquet` is not one of flows.parquet" in said, said
    assert not (here / "x").exists() and not (here / "v").exists()


def test_shares_that_read_other_files_are_not_joined(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for share, size in (("1/2", "10000"), ("2/2", "900000"), ("2/2", "10000")):
        (here / "flows.csv").write_text(FLOWS.replace("10000", size))
        out = f"s{share[0]}-{size}"
        assert flowloom_here(capfd, "run", "s.toml", "--shard", share, "--out", out)[0] == 0
    code, said = flowloom_here(capfd, "merge", "s1-10000", "s2-900000", "--out", "m")
    assert code == 5 and "they read `flows.csv` with different contents" in said, said
    assert not (here / "m").exists()
    code, said = flowloom_here(capfd, "merge", "s1-10000", "s2-10000", "--out", "m")
    assert code == 0 and "4 points of 4 joined" in said, said
    tables = {name: content for name, content in contents(here / "m").items() if name.endswith(".parquet")}
    assert tables == {name: content for name, content in contents(here / "r").items() if name.endswith(".parquet")}
    assert flowloom_here(capfd, "pack", "m", "--scenario", "s.toml")[0] == 0


# Archives


def unpacked(path: Path, folder: Path) -> dict[str, bytes]:
    """The members of an archive by name, which all lie below `folder`, with their digests checked."""
    with zipfile.ZipFile(path) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
        assert len(found) == len(archive.namelist())
        archive.extractall(folder)
    (top,) = {name.split("/")[0] for name in found}
    assert top not in ("", ".", "..") and not any({"", ".", ".."} & set(name.split("/")) for name in found), list(found)
    inside = {name.removeprefix(f"{top}/"): content for name, content in found.items()}
    (sums,) = (name for name in inside if name.endswith("SHA256SUMS") and b"  " in inside[name])
    listed = sorted(inside[sums].decode().splitlines())
    assert listed == sorted(f"{hashlib.sha256(content).hexdigest()}  {name}" for name, content in inside.items() if name != sums)
    return inside


@pytest.mark.parametrize("place", ["r", ".", "figures/..", "../r/", "../../here/r/figures/.."])
def test_an_archive_has_plain_names_from_everywhere(
    here: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (here / "r/figures").mkdir()
    (here / "secret").write_text("secret")
    (here / "r/notes.parquet").symlink_to("../secret")
    (here / "r/a-seed1/more.parquet").write_text("not of the run")
    monkeypatch.chdir(here if place == "r" else here / "r")
    scenario = str(here / "s.toml")
    assert flowloom_here(capfd, "pack", place, "--scenario", scenario, "--out", str(tmp_path / "x.zip"))[0] == 0
    inside = unpacked(tmp_path / "x.zip", tmp_path / "out")
    assert {name for name in inside if "/" in name} == {
        "results/manifest.json",
        "results/points.parquet",
        "results/summary.parquet",
        *(
            f"results/{point}/{name}"
            for point in ("a-seed1", "a-seed2", "b-seed1", "b-seed2")
            for name in ("manifest.json", "flows.parquet", "ports.parquet", "packets.parquet")
        ),
    }
    assert {name for name in inside if "/" not in name} == {"README.txt", "scenario.toml", "flows.csv", "SHA256SUMS"}
    if place == ".":
        code, said = flowloom_here(capfd, "pack", place, "--scenario", scenario)
        assert code == 0 and (here / "r.zip").is_file(), said
    # What was packed is results again.
    assert Results.open(tmp_path / "out/r/results").complete


def test_an_archive_follows_no_link(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.move(here / "r/a-seed1/flows.parquet", here / "moved.parquet")
    (here / "r/a-seed1/flows.parquet").symlink_to(here / "moved.parquet")
    assert flowloom.open("r").flows().num_rows == 8, "a table may lie elsewhere"
    code, said = flowloom_here(capfd, *READERS["pack"])
    assert code == 2 and "a-seed1/flows.parquet` is a link or is in a linked folder" in said, said
    shutil.move(here / "moved.parquet", here / "r/a-seed1/flows.parquet")
    shutil.move(here / "flows.csv", here / "there.csv")
    (here / "flows.csv").symlink_to("there.csv")
    code, said = flowloom_here(capfd, *READERS["pack"])
    assert code == 2 and "`flows.csv` is a link or is in a linked folder" in said, said
    assert not (here / "r.zip").exists()


def test_an_archive_has_the_inputs_of_the_run_and_no_others(here: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (here / "flows.csv").write_text(FLOWS.replace("10000", "10001"))
    code, said = flowloom_here(capfd, *READERS["pack"])
    assert code == 2 and "`flows.csv` has changed since the run" in said and not (here / "r.zip").exists(), said


def test_inputs_may_be_called_like_files_of_the_archive(tmp_path: Path) -> None:
    names = ["SHA256SUMS", "readme.txt", "scenario.toml", "results/flows.csv"]
    (tmp_path / "results").mkdir()
    text = 'topology = { kind = "star", hosts = 4 }\nsystem = [{ transport = "newreno" }]\n'
    for number, name in enumerate(names):
        (tmp_path / name).write_text(FLOWS)
        text += f'[workload.w{number}]\nkind = "table"\npath = "./{name}"\n'
    (tmp_path / "s.toml").write_text(text)
    results = flowloom.run(tmp_path / "s.toml", out=tmp_path / "r")
    inside = unpacked(pack.write(results, tmp_path / "s.toml"), tmp_path / "out")
    assert all(inside[name] == FLOWS.encode() for name in names)
    own = {"flowloom-README.txt", "flowloom-scenario.toml", "flowloom-SHA256SUMS", "flowloom-results/points.parquet"}
    assert own <= inside.keys()
    assert "flowloom run flowloom-scenario.toml --out again" in inside["flowloom-README.txt"].decode()
    folder = tmp_path / "out/r"
    again = flowloom.run(folder / "flowloom-scenario.toml", out=folder / "again")
    assert again.flows().num_rows == 8


@pytest.mark.parametrize("path", ["/etc/hostname", "../x.csv", "a/../../x.csv", "..\\x.csv", "c:x.csv"])
def test_no_member_lies_outside(path: str) -> None:
    with pytest.raises(ValueError, match="is outside its folder"):
        pack.plain(path)


# Folders that go while a run writes


@pytest.mark.parametrize("gone", ["r2", "r2/a-seed1"])
def test_points_that_are_removed_during_a_run_are_missed(here: Path, gone: str) -> None:
    removed = False

    def progress(reported: dict[str, Any]) -> None:
        nonlocal removed
        if reported["points_done"] == 4 and not removed:
            shutil.rmtree(here / gone)
            removed = True

    with pytest.raises(
        flowloom.StorageError, match=r"(?s)`r2` has lost \d of the points of the run.*`a-seed1`.*hint: something else"
    ):
        flowloom.Scenario.from_file("s.toml").run(out="r2", progress=progress)
    again = flowloom.run("s.toml", out="r2")
    assert again.complete and contents(here / "r2").keys() == contents(here / "r").keys()


def test_the_hashes_are_those_of_the_documentation(here: Path) -> None:
    run = json.loads((here / "r/manifest.json").read_text())
    for path in (here / "r").rglob("manifest.json"):
        manifest = json.loads(path.read_text())
        body, _, _ = path.read_text().rpartition(',\n  "manifest_hash"')
        assert manifest["manifest_hash"] == _core.content_hash(body.encode())
        for file in manifest["files"]:
            content = (path.parent / file["name"]).read_bytes()
            assert (file["bytes"], file["hash"]) == (len(content), _core.content_hash(content))
        if path.parent.name in run["done"]:
            assert run["done"][path.parent.name] == manifest["manifest_hash"]
    assert len(run["done"]) == 4
    assert run["inputs"] == [{"path": "flows.csv", "hash": _core.content_hash(FLOWS.encode())}]
