"""Plug-ins in WebAssembly: DCTCP gives the bytes of the built-in one, and hostile modules end with a message."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import flowloom.__main__ as command
import pytest
from test_plugins import ROOT, digests, folder, scenario

__all__ = ["folder", "wat2wasm"]

wat2wasm = pytest.importorskip("wasmtime").wat2wasm

DCTCP = (ROOT / "crates/plugin/tests/dctcp.wat").read_text(encoding="utf-8")
PLUGIN = '{ kind = "plugin", path = "mine.wasm" }'

# The bodies of functions of DCTCP, which tests replace.
ON_ACK = ";; RFC 8257 section 3.3, steps 1 to 3."
ON_LOSS = ";; RFC 5681 eq. 4."
CREATE = "(i64.store (local.get $own) (i64.load (local.get $host)))"
OPEN = "(i64.store offset=8 (local.get $state) (i64.load offset=16 (local.get $own)))"
ASKED = '(func (export "flowloom_plugin") (result i32) (i32.const 1024))'
FUNCTIONS = '"\\01\\00\\00\\00" "\\02\\00\\00\\00" "\\03\\00\\00\\00" "\\04\\00\\00\\00"'
# A table whose sizes of structures would be after the end of the memory.
CUT_OFF = """(func (export "flowloom_plugin") (result i32)
  (i64.store (i32.const 0xfff0) (i64.const 0x100000001)) (i32.store (i32.const 0xfff8) (i32.const 184)) (i32.const 0xfff0))"""
SIZES = '"\\01\\00\\00\\00" "\\01\\00\\00\\00" "\\b8\\00\\00\\00"'
TEXTS = '"\\00\\08\\00\\00" "\\10\\08\\00\\00" "\\30\\08\\00\\00"'
PARAMETERS = '"\\00\\05\\00\\00" "\\03\\00\\00\\00\\00\\00\\00\\00"'
STATE = '"\\20\\00\\00\\00\\00\\00\\00\\00" "\\28\\00\\00\\00\\00\\00\\00\\00"'


# Whether hosts share an instance.
SHARES = '"\\02\\00\\00\\00" "\\01\\00\\00\\00"\n'
ALONE = (SHARES, SHARES.replace("01", "00"))


def changed(*pairs: tuple[str, str]) -> bytes:
    """DCTCP with other text in places."""
    text = DCTCP
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return bytes(wat2wasm(text))


def test_webassembly_gives_the_bytes_of_the_built_in_transport(folder: Path) -> None:
    text = (ROOT / "bench/dctcp.toml").read_text(encoding="utf-8").replace("10ms", "500us")
    above, system = text.split("[[system]]")
    systems = [system]
    for name, content in (("mine", changed()), ("alone", changed(ALONE))):
        (folder / f"{name}.wasm").write_bytes(content)
        systems.append(system.replace('"DCTCP"', f'"{name}"').replace('kind = "dctcp"', f'kind = "plugin", path = "{name}.wasm"'))
    (folder / "s.toml").write_text("[[system]]".join([above, *systems]))
    for threads in ("1", "2"):
        out = f"r{threads}"
        assert command.main(["run", "s.toml", "--out", out, "--threads", threads]) == 0
        found = digests(out)
        assert found["DCTCP"] == found["mine"] == found["alone"]
    assert digests("r1") == digests("r2")


def test_global_variables_belong_to_a_host_unless_hosts_share_an_instance(folder: Path) -> None:
    """A controller that counts the ACKs of all its flows in a global variable, and sets the window by it."""
    count = (
        "(global.set $n (i64.add (global.get $n) (i64.const 1))) (i64.store (local.get $window) (i64.add (i64.const 3000)"
        " (i64.mul (i64.const 1000) (i64.and (global.get $n) (i64.const 31))))) (return (i32.const 0))"
    )
    pairs = [(ON_ACK, count), ("(module\n", "(module (global $n (mut i64) (i64.const 0))\n")]
    text = (ROOT / "bench/dctcp.toml").read_text(encoding="utf-8").replace("10ms", "500us")
    (folder / "s.toml").write_text(text.replace('kind = "dctcp"', 'kind = "plugin", path = "mine.wasm"'))
    found = {}
    for name, content in (("alone", changed(*pairs, ALONE)), ("shares", changed(*pairs))):
        (folder / "mine.wasm").write_bytes(content)
        for threads in ("1", "2"):
            out = f"{name}{threads}"
            assert command.main(["run", "s.toml", "--out", out, "--threads", threads]) == 0
            found[out] = digests(out)["DCTCP"]
    assert found["alone1"] == found["alone2"]
    # A declaration that is wrong: then the variable belongs to all hosts of a thread.
    assert found["alone1"] != found["shares1"] != found["shares2"]


REFUSED = {
    "text": (b"(module)", "it is not a module of WebAssembly"),
    "empty": (b"", "it is not a module of WebAssembly"),
    "cut off": (changed()[:700], "unexpected end"),
    "native": (b"\x7fELF\x02\x01", "it is not a module of WebAssembly"),
    "component": (b"\0asm\x0d\0\x01\0", "it is not a module of WebAssembly"),
    "import": (
        changed(
            ("(module\n", '(module (import "wasi_snapshot_preview1" "clock_time_get" (func (param i32 i64 i32) (result i32)))\n')
        ),
        "it imports `wasi_snapshot_preview1.clock_time_get`, and a plug-in may import nothing",
    ),
    "no function": (changed((ASKED, "")), "it exports no function `flowloom_plugin`"),
    "no memory": (changed(('(export "memory")', "")), "it exports no memory `memory`"),
    "large memory": (changed(('(export "memory") 1)', '(export "memory") 10000)')), "it cannot be started: "),
    "no functions": (changed(('(export "__indirect_function_table")', "")), "which is no function of its exported"),
    "type of the function": (changed(("(result i32) (i32.const 1024)", "(result i64) (i64.const 1024)")), "instead of () -> (i32)"),
    "no table": (changed(("(i32.const 1024))\n", "(i32.const 0))\n")), "has the address 0"),
    "table outside": (changed(("(i32.const 1024))\n", "(i32.const 0x10000))\n")), "has the address 65536"),
    "table across the end": (changed(("(i32.const 1024))\n", "(i32.const 0xfff8))\n")), "has the address 65528"),
    "negative table": (changed(("(i32.const 1024))\n", "(i32.const -8))\n")), "has the address 4294967288"),
    "unaligned table": (changed(("(i32.const 1024))\n", "(i32.const 1028))\n")), "not a multiple of 8"),
    "version": (changed((SIZES, SIZES.replace("01", "07", 1))), "version 7 of plug-ins"),
    "room": (
        changed((SIZES, '"\\01\\00\\00\\00" "\\06\\00\\00\\00" "\\b8\\00\\00\\00"')),
        "it is for room 6, which this program does not",
    ),
    "another room": (
        changed((SIZES, SIZES.replace('"\\01\\00\\00\\00" "\\01', '"\\01\\00\\00\\00" "\\02'))),
        "its `table` has 184 bytes instead of",
    ),
    "sizes across the end": (changed((ASKED, CUT_OFF)), "has the address 65520"),
    "size": (changed((SIZES, SIZES.replace("b8", "b0"))), "its `table` has 176 bytes instead of 184"),
    "name outside": (
        changed((TEXTS, TEXTS.replace("\\00\\08\\00\\00", "\\00\\08\\ff\\00"))),
        "its `name` has the address 16713728",
    ),
    "no name": (changed((TEXTS, TEXTS.replace("\\00\\08\\00\\00", "\\00\\00\\00\\00"))), "its `name` is missing"),
    "parameters outside": (
        changed((PARAMETERS, PARAMETERS.replace("00\\05", "e0\\ff"))),
        "the list of its parameters has the address 65504",
    ),
    "many parameters": (changed((PARAMETERS, PARAMETERS.replace("\\03\\00", "\\ff\\ff"))), "its `parameter_count` is 65535"),
    "too many parameters": (changed((PARAMETERS, PARAMETERS.replace('00\\00"', '00\\ff"'))), "its `parameter_count` is 183"),
    "large state": (changed((STATE, STATE.replace("28\\00\\00\\00", "28\\00\\00\\ff"))), "its `state_size` is 42781"),
    "index outside": (changed((FUNCTIONS, FUNCTIONS.replace("03", "63"))), "its `on_ack` is 99, which is no function"),
    "null function": (changed((FUNCTIONS, FUNCTIONS.replace("03", "00"))), "it has no function `on_ack`"),
    "shares": (changed((SHARES, SHARES.replace("01", "02"))), "its `shares` is 2: 0 or 1 are allowed"),
    "type of on_ack": (
        changed((FUNCTIONS, FUNCTIONS.replace("03", "02"))),
        "its function `on_ack` has the type (i32 i32 i32) -> (i32) instead of (i32 i32 i32 i32) -> (i32)",
    ),
    "start traps": (changed((ASKED, ASKED + "(func $start unreachable) (start $start)")), "it cannot be started: "),
    "start loops": (changed((ASKED, ASKED + "(func $start (loop (br 0))) (start $start)")), "it has used up its fuel"),
    "asked and traps": (
        changed(("(result i32) (i32.const 1024)", "(result i32) unreachable")),
        "its function `flowloom_plugin` fails: ",
    ),
    "another table": (
        changed((ASKED, ASKED.replace("(i32.const 1024)", "(i64.store (i32.const 1024) (i64.const 0)) (i32.const 1024)"))),
        "version 0 of plug-ins",
    ),
    "create traps": (changed((CREATE, "unreachable")), "failed in `create`: wasm `unreachable` instruction executed"),
    "create fails": (changed((CREATE, "(return (i32.const -1))")), "failed in `create`"),
    "create loops": (changed((CREATE, "(loop (br 0))")), "failed in `create`: it has used up its fuel"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_does_not_fit_is_refused(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content, why = REFUSED[name]
    (folder / "mine.wasm").write_bytes(content)
    (folder / "s.toml").write_text(scenario(PLUGIN))
    assert command.main(["check", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert why in error and "mine.wasm" in error and "s.toml:" in error, error


# Steps of 4 MiB: in steps of a page, growth up to the limit takes minutes, and uses no fuel.
GROW = "(loop (if (i32.ne (memory.grow (i32.const 64)) (i32.const -1)) (then (br 1))))"

FAILING = {
    "trap": (
        (ON_ACK, "unreachable"),
        "failed in `on_ack`: wasm `unreachable` instruction executed (in the function `on_ack` of the file)",
    ),
    "division by zero": ((ON_ACK, "(drop (i64.div_u (i64.const 1) (i64.const 0)))"), "failed in `on_ack`: integer divide by zero"),
    "endless loop": ((ON_ACK, "(loop (br 0))"), "failed in `on_ack`: it has used up its fuel"),
    "recursion": (
        (ON_ACK, "(drop (call $on_ack (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)))"),
        "call stack exhausted",
    ),
    "memory and loop": ((ON_ACK, f"{GROW} (loop (br 0))"), "failed in `on_ack`: it has used up its fuel"),
    "write outside": ((ON_ACK, "(i64.store (i32.const -8) (i64.const 1))"), "failed in `on_ack`: out of bounds memory access"),
    "status": ((ON_ACK, "(return (i32.const -1))"), "failed in `on_ack`"),
    "unknown status": ((ON_ACK, "(return (i32.const 7))"), "failed in `on_ack`"),
    "open": ((OPEN, "unreachable"), "failed in `open`: wasm `unreachable` instruction executed"),
    "pointer": ((ON_ACK, "(drop (call_indirect (result i64) (i32.const 1)))"), "indirect call type mismatch"),
}


@pytest.mark.parametrize("threads", ["1", "2"])
@pytest.mark.parametrize("name", FAILING)
def test_a_module_that_fails_ends_the_run(name: str, threads: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pair, why = FAILING[name]
    (folder / "mine.wasm").write_bytes(changed(pair))
    (folder / "s.toml").write_text(scenario(PLUGIN))
    assert command.main(["run", "s.toml", "--threads", threads]) == 2
    error = capfd.readouterr().err
    assert "the plug-in `dctcp_wat` (`mine.wasm`) failed in" in error and why in error, error


def test_extreme_values_are_bounded(folder: Path) -> None:
    for value in ("0", "-9223372036854775808", "-1"):
        window = f"(i64.store (local.get $window) (i64.const {value})) (return (i32.const 0))"
        threshold = f"(i64.store (local.get $ssthresh) (i64.const {value})) (return (i32.const 0))"
        (folder / "mine.wasm").write_bytes(changed((ON_ACK, window), (ON_LOSS, threshold)))
        (folder / "s.toml").write_text(scenario(PLUGIN).replace("3ms", "1s"))
        assert command.main(["run", "s.toml", "--overwrite"]) == 0


def test_a_module_that_overwrites_its_memory_harms_only_itself(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # It fills the page of the simulator, with the blocks of the controller and of flows, with ones, and its memory grows.
    fill = "(memory.fill (i32.const 0x10000) (i32.const 255) (i32.const 4096)) (return (i32.const 0))"
    grow = "(drop (memory.grow (i32.const 1)))"
    (folder / "mine.wasm").write_bytes(changed((ON_ACK, grow + fill)))
    (folder / "s.toml").write_text(scenario(PLUGIN).replace("3ms", "1s"))
    assert command.main(["run", "s.toml"]) == 0


def test_a_missing_engine_and_another_version_are_reported(folder: Path) -> None:
    (folder / "mine.wasm").write_bytes(changed())
    (folder / "s.toml").write_text(scenario(PLUGIN))
    (folder / "site/wasmtime").mkdir(parents=True)
    for version in ("49.0.0", "51.0.0", None):
        if version:
            (folder / f"site/wasmtime-{version}.dist-info").mkdir()
        # In a new process, since the engine is loaded once.
        environment = {**os.environ, "FLOWLOOM_WASMTIME": str(folder / "site/wasmtime")}
        done = subprocess.run(
            [sys.executable, "-m", "flowloom", "check", "s.toml"], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2 and "WebAssembly needs version 50" in done.stderr and "flowloom[wasm]" in done.stderr, (
            done.stderr
        )
        shutil.rmtree(folder / f"site/wasmtime-{version}.dist-info", ignore_errors=True)


def test_a_module_is_explained_and_packed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.wasm").write_bytes(changed())
    (folder / "s.toml").write_text(scenario(PLUGIN))
    assert command.main(["explain", "mine.wasm"]) == 0
    text = capfd.readouterr().out
    assert "DCTCP in WebAssembly, by hand" in text and "Gain: the weight" in text and "min_rto" in text
    assert command.main(["check", "s.toml"]) == 0
    assert "WebAssembly, which runs in a sandbox: no files, no clock" in capfd.readouterr().out
    assert command.main(["run", "s.toml", "--out", "r"]) == 0
    assert command.main(["pack", "r", "--scenario", "s.toml", "--out", "r.zip"]) == 0
    with zipfile.ZipFile("r.zip") as archive:
        archive.extractall(folder / "x")
    (inside,) = (folder / "x").iterdir()
    assert command.main(["run", str(inside / "scenario.toml"), "--out", "again"]) == 0
    assert digests("again") == digests("r")
