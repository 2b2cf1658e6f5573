"""Modules of WebAssembly for other rooms than congestion control.

Each gives the bytes of the same protocol as native code or built in, and hostile modules end with a message."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import flowloom.__main__ as command
import pytest
from test_plugins import ROOT, digests, folder
from test_wasm import wat2wasm

__all__ = ["folder"]

# Where a system names the plug-in of a room, and the module of the room, which is written by hand.
ROOMS = {"qdisc": "drr", "router": "spray", "policy": "pias", "transport": "stop_and_wait"}
WAT = {room: (ROOT / f"crates/plugin/tests/{name}.wat").read_text(encoding="utf-8") for room, name in ROOMS.items()}

# Racks with losses, whose flows have classes.
NET = """
end = "4ms"
[topology]
kind = "leaf_spine"
loss = 0.002
[workload.all]
kind = "poisson"
flows = 100
load = 0.6
size = "fixed"
mean = "100KB"
"""
SYSTEM = {
    "transport": "{ kind = 'dctcp', handshake = false, min_rto = '200us', init_rto = '200us' }",
    "qdisc": "{ kind = 'strict', classes = 3, limit = '30pkt', mark = '20pkt' }",
    "policy": "{ kind = 'pias', thresholds = '5pkt, 20pkt' }",
    "router": "'ecmp'",
}


def changed(room: str, *pairs: tuple[str, str]) -> bytes:
    """The module of a room with other text in places."""
    text = WAT[room]
    for old, new in pairs:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return bytes(wat2wasm(text))


def systems(room: str, *values: str) -> str:
    """A scenario whose systems differ in one part. Its policies have the same kind of host."""
    host = {"nic": "'ns2'"} if room == "policy" else {}
    parts = [{**SYSTEM, **host, room: value, "label": f"'{n}'"} for n, value in enumerate(values)]
    return NET + "".join("[[system]]\n" + "".join(f"{key} = {value}\n" for key, value in part.items()) for part in parts)


def mine(parameters: str = "") -> str:
    return f"{{ kind = 'plugin', path = 'mine.wasm'{parameters} }}"


def compiled(folder: Path, name: str, text: str) -> str:
    """Compiles a plug-in in C."""
    (folder / f"{name}.c").write_text(text)
    include = f"-I{ROOT / 'crates/plugin/include'}"
    flags = ["-std=c11", "-O2", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", include]
    subprocess.run(["cc", *flags, "-o", f"{name}.so", f"{name}.c"], cwd=folder, check=True)
    return f"{name}.so"


def same(folder: Path, text: str) -> None:
    """Both systems of a scenario give the same bytes, on one thread and on two."""
    (folder / "s.toml").write_text(text)
    for threads in ("1", "2"):
        assert command.main(["run", "s.toml", "--out", f"r{threads}", "--threads", threads]) == 0
        found = digests(f"r{threads}")
        assert len(found) == 2 and found["0"] == found["1"]
        assert isinstance(found["0"], tuple) and found["0"][0]["events"] > 10_000, found
    assert digests("r1") == digests("r2")


def drr() -> str:
    """Deficit round robin in C, which marks and counts as the module does, and has its name."""
    text = (ROOT / "crates/plugin/new/qdisc/c/mine.c").read_text(encoding="utf-8")
    functions = """
static int32_t on_dequeue(void *own, uint64_t now, const flowloom_view *view, const flowloom_packet *packet) {
    (void)now, (void)packet;
    return view->packets > ((struct drr *)own)->mark ? FLOWLOOM_MARK : FLOWLOOM_OK;
}
static int32_t on_pass(void *own, uint64_t now, const flowloom_packet *packet) {
    (void)now, (void)packet;
    ((struct drr *)own)->turns++;
    return FLOWLOOM_OK;
}
static const uint64_t *count"""
    for old, new in [
        ('its turn.", FLOWLOOM_SIZE, 0},', 'its turn.", FLOWLOOM_SIZE, 0}, {"mark", "20", "0", "9999", "x", "x.", 0, 0},'),
        ("    uint64_t turns;", "    uint64_t mark, turns;"),
        ("values[0].integer;", "values[0].integer; d->mark = values[1].integer;"),
        ("\nstatic const uint64_t *count", functions),
        (".queues = QUEUES,", ".queues = QUEUES, .marks = 1, .on_dequeue = on_dequeue, .on_pass = on_pass,"),
        ('.name = "mine"', '.name = "drr_wat"'),
    ]:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_a_queue_discipline_gives_the_bytes_of_the_native_one(folder: Path) -> None:
    (folder / "mine.wasm").write_bytes(changed("qdisc"))
    parameters = ", quantum = '3KB', mark = 9, limit = '30pkt'"
    native = f"{{ kind = 'plugin', path = '{compiled(folder, 'drr', drr())}'{parameters} }}"
    same(folder, systems("qdisc", native, mine(parameters)))
    # It has marked packets and taken turns.
    import pyarrow.parquet as pq

    (ports,) = Path("r1").glob("1-*/ports.parquet")
    table = pq.read_table(ports)
    marks, turns = (sum(n or 0 for n in table[column].to_pylist()) for column in ("marks", "drr_wat.turns"))
    assert marks > 100 and turns > 1000


@pytest.mark.parametrize(("builtin", "decides"), [("{ kind = 'spray', mode = 'round_robin' }", "02"), ("{ kind = 'ecmp' }", "00")])
def test_a_router_gives_the_bytes_of_the_built_in_one(builtin: str, decides: str, folder: Path) -> None:
    old = '"\\02\\00\\00\\00" "\\00\\00\\00\\00"\n'
    (folder / "mine.wasm").write_bytes(changed("router", (old, old.replace("02", decides))))
    same(folder, systems("router", builtin, mine()))


@pytest.mark.parametrize(
    ("builtin", "own"),
    [
        ("", ""),
        (", count = 'sent', aging = true, aging_after = 1", ", sent = true, aging = 1"),
        (", aging = true, aging_after = 2", ", aging = 2"),
    ],
)
def test_a_policy_gives_the_bytes_of_the_built_in_one(builtin: str, own: str, folder: Path) -> None:
    # The memory grows, and moves, in the middle of calls.
    grows = (CALLS["policy"], "(if (i32.lt_u (memory.size) (i32.const 9)) (then (drop (memory.grow (i32.const 1)))))")
    (folder / "mine.wasm").write_bytes(changed("policy", grows) if own else changed("policy"))
    thresholds = ", first = '7300B', second = '29200B'"
    same(folder, systems("policy", f"{{ kind = 'pias', thresholds = '5pkt, 20pkt'{builtin} }}", mine(thresholds + own)))


def test_a_transport_gives_the_bytes_of_the_native_one(folder: Path) -> None:
    (folder / "mine.wasm").write_bytes(changed("transport"))
    text = (ROOT / "crates/plugin/new/whole_transport/c/mine.c").read_text(encoding="utf-8")
    native = compiled(folder, "native", text.replace('.name = "mine"', '.name = "stop_and_wait_wat"'))
    same(folder, systems("transport", f"{{ kind = 'plugin', path = '{native}', rto = '300us' }}", mine(", rto = '300us'")))


# Where tests make calls.
CALLS = {
    "qdisc": "(local.set $queue (i32.load8_u offset=55 (local.get $packet)))",
    "router": "(local.set $at (i32.add (local.get $state) (i32.const 16)))",
    "policy": ";; The calls of tests are here.",
    "transport": ";; The calls of tests are here.",
}


def call(kinds: str, offset: int, *arguments: str, handle: str = "(i32.load offset=12 (local.get $cx))") -> str:
    """A call of a function of the simulator, whose address is at an offset of the structure of functions."""
    function = f"(i32.load offset={offset} (i32.load offset=8 (local.get $cx)))"
    return f"(call_indirect (type ${kinds}) {handle} {' '.join(arguments)} {function})"


FLOW = "(i32.load offset=40 (local.get $packet))"
HOST = "(i32.const -1)"


def number(n: int) -> str:
    return f"(i32.const {n})"


def test_every_function_that_a_policy_may_call_gives_what_it_gives_to_native_code(folder: Path) -> None:
    in_c = """
    flowloom_seen_flow seen = {0};
    flowloom_sample sample = {0};
    const flowloom_policy_calls *calls = cx->calls;
    uint64_t sum = cx->now_ps + cx->host + (uint64_t)calls->view(cx->handle, packet->flow, &seen);
    sum += seen.number + seen.size + seen.start_ps + seen.deadline_ps + seen.source + seen.destination;
    if (seen.source == cx->host) {
        sum += (uint64_t)calls->sample(cx->handle, packet->flow, &sample);
        sum += sample.cwnd + sample.ssthresh + sample.srtt_ps + sample.rate_bps + sample.in_flight;
    } else
        sum += (uint64_t)calls->finished(cx->handle, packet->flow);
    calls->arm(cx->handle, packet->flow, 1, cx->now_ps + 5000000);
    calls->disarm(cx->handle, FLOWLOOM_NO_FLOW, 2);
    sum += calls->random(cx->handle);
    packet->prio = (uint8_t)(sum % 3);
    return FLOWLOOM_OK;
"""
    seen, sample = 0x3000, 0x3040
    words = [f"(i64.load (i32.const {seen + 8 * i}))" for i in range(4)]
    words += [f"(i64.load32_u (i32.const {seen + 32 + 4 * i}))" for i in range(2)]
    sampled = [f"(i64.load (i32.const {sample + 8 * i}))" for i in range(5)]

    def plus(*terms: str) -> str:
        return "".join(f"(local.set $before (i64.add (local.get $before) {term}))" for term in terms)

    in_wat = (
        "(local.set $before (i64.add (i64.load (local.get $cx)) (i64.load32_u offset=16 (local.get $cx))))"
        + f"(memory.fill {number(seen)} {number(0)} {number(256)})"
        + plus(f"(i64.extend_i32_u {call('of_two', 28, FLOW, number(seen))})", *words)
        + f"(if (i32.eq (i32.load {number(seen + 32)}) (i32.load offset=16 (local.get $cx))) (then "
        + plus(f"(i64.extend_i32_u {call('of_two', 16, FLOW, number(sample))})", *sampled)
        + ") (else "
        + plus(f"(i64.extend_i32_u {call('of_flow', 12, FLOW)})")
        + "))"
        + f"(drop {call('of_three', 0, FLOW, number(1), '(i64.add (i64.load (local.get $cx)) (i64.const 5000000))')})"
        + f"(drop {call('of_two', 4, HOST, number(2))})"
        + plus(call("of_none", 24))
        + "(i32.store8 offset=55 (local.get $packet) (i32.wrap_i64 (i64.rem_u (local.get $before) (i64.const 3))))"
        + "(return (i32.const 0))"
    )
    (folder / "mine.wasm").write_bytes(changed("policy", (CALLS["policy"], in_wat)))
    text = (ROOT / "crates/plugin/new/policy/c/mine.c").read_text(encoding="utf-8")
    start = "    const struct host *host = own;\n    packet->prio = 0;\n"
    assert text.count(start) == 1
    text = text[: text.index(start)] + "    (void)own;\n" + in_c + "}\n" + text[text.index("\nstatic int32_t on_receive") :]
    text = text.replace(".name =", ".knows = FLOWLOOM_KNOWS_SIZE, .name =").replace(".create =", ".on_timer = on_timer, .create =")
    timer = "static int32_t on_timer(void *own, const flowloom_policy_context *cx, uint32_t kind, uint32_t flow) {\n"
    timer += "    (void)own, (void)kind;\n    flow_of(cx, flow)->sent = 0;\n    return FLOWLOOM_OK;\n}\n\n"
    text = text.replace("static const flowloom_policy table", timer + "static const flowloom_policy table")
    same(folder, systems("policy", f"{{ kind = 'plugin', path = '{compiled(folder, 'calls', text)}' }}", mine()))


# Words of tables, which tests replace: sizes of tables, sizes of a structure with its name, a function, the number after the head.
TABLE_SIZE = {
    "qdisc": '"\\a8\\00\\00\\00"\n',
    "router": '"\\98\\00\\00\\00"\n',
    "policy": '"\\a8\\00\\00\\00"\n',
    "transport": '"\\a8\\00\\00\\00"\n',
}
STRUCTURE = {
    "qdisc": ('"\\18\\00\\00\\00" "\\18\\00\\00\\00" "\\40', "flowloom_view"),
    "router": ('"\\20\\00\\00\\00" "\\40\\00\\00\\00" "\\00', "flowloom_candidate"),
    "policy": ('"\\18\\00\\00\\00" "\\24\\00\\00\\00" "\\00', "flowloom_policy_context"),
    "transport": ('"\\38\\00\\00\\00" "\\00\\00\\00\\00"\n', "flowloom_transport_calls"),
}
FUNCTION_INDEX = {
    "qdisc": ('"\\02\\00\\00\\00" "\\03\\00\\00\\00" "\\04', "enqueue"),
    "router": ('"\\04\\00\\00\\00")', "decide"),
    "policy": ('"\\02\\00\\00\\00" "\\03\\00\\00\\00" "\\04', "on_send"),
    "transport": ('"\\05\\00\\00\\00" "\\06\\00\\00\\00" "\\07', "poll"),
}
NUMBER = {
    "qdisc": ('"\\08\\00\\00\\00" "\\01\\00\\00\\00"\n', "its `queues` is 65: 1 to 64 are allowed"),
    "router": ('"\\02\\00\\00\\00" "\\00\\00\\00\\00"\n', "its `decides` is 65: 0 to 2 are allowed"),
    "policy": ('"\\02\\00\\00\\00" "\\00\\00\\00\\00"\n', "its `uses` is 65"),
    "transport": ('"\\00\\00\\00\\00" "\\00\\00\\00\\00"\n    "\\01', "its `uses` is 65"),
}
# The sizes of machines and of states.
BLOCKS = {
    "qdisc": '"\\70\\00\\00\\00\\00\\00\\00\\00" "\\00\\00\\00',
    "policy": '"\\20\\00\\00\\00\\00\\00\\00\\00" "\\30\\00\\00',
}
FIRST_BYTE = len('"\\00')


def begin(room: str) -> str:
    """The line with which `create` begins."""
    found = re.search(r"\(func \$create .*\n", WAT[room])
    assert found
    return found.group()


def table_of(room: str) -> tuple[str, str]:
    """The declaration of a module's table of functions, and its size."""
    found = re.search(r'\(export "__indirect_function_table"\) (\d+) funcref', WAT[room])
    assert found
    return found.group(), found.group(1)


def refused() -> Iterator[tuple[str, str, bytes, str]]:
    """Yields the name of a case, its room, its module and the message."""

    def byte(old: str, new: str) -> tuple[str, str]:
        return old, f'"\\{new}{old[FIRST_BYTE:]}'

    for room in ROOMS:
        old = TABLE_SIZE[room]
        yield "size", room, changed(room, byte(old, "b0")), f"its `table` has 176 bytes instead of {int(old[2:4], 16)}"
        old, name = STRUCTURE[room]
        yield "structure", room, changed(room, byte(old, "70")), f"its `{name}` has 112 bytes instead of {int(old[2:4], 16)}"
        old, name = FUNCTION_INDEX[room]
        yield "missing function", room, changed(room, byte(old, "00")), f"it has no function `{name}`"
        yield "index outside", room, changed(room, byte(old, "63")), f"its `{name}` is 99, which is no function of its exported"
        yield (
            "type",
            room,
            changed(room, byte(old, "01")),
            f"its function `{name}` has the type (i32 i32 i32 i32) -> (i32) instead of",
        )
        old, why = NUMBER[room]
        yield "number", room, changed(room, byte(old, "41")), why
        for name, text, why in [
            ("traps", "unreachable", ": wasm `unreachable`"),
            ("loops", "(loop (br 0))", ": it has used up its fuel"),
            ("fails", "(return (i32.const -1))", ""),
            ("returns garbage", "(return (i32.const 9))", ": it returned 9"),
        ]:
            create = changed(room, (begin(room), f"{begin(room)} {text}"))
            yield f"create {name}", room, create, f"failed in `create`{why}"
    for room in ("policy", "transport"):
        table, size = table_of(room)
        bounded = changed(room, (table, table.replace(" funcref", f" {size} funcref")))
        yield "table cannot grow", room, bounded, "link it with `--growable-table`"
        # The first function of the simulator is at the end of the module's table.
        arguments = f"{number(0)} {number(0)} {number(0)} (i64.const 0)"
        early = f"(drop (call_indirect (type $of_three) {arguments} {number(int(size))}))"
        early_call = changed(room, (begin(room), f"{begin(room)} {early}"))
        yield "early call", room, early_call, "it calls `arm` in a function that has no context"
    old = BLOCKS["qdisc"]
    yield "states", "qdisc", changed("qdisc", (old, old.replace('"\\00', '"\\08'))), "its `knows` and `state_size` must be 0"
    old = '"\\0c\\00\\00\\00" "\\00'
    yield "knows", "router", changed("router", (old, old[:-1] + "1")), "its `counter_count` and `knows` must be 0"


REFUSED = {f"{room}: {name}": (room, content, why) for name, room, content, why in refused()}


@pytest.mark.parametrize("name", REFUSED)
def test_a_module_that_does_not_fit_is_refused(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    room, content, why = REFUSED[name]
    (folder / "mine.wasm").write_bytes(content)
    (folder / "s.toml").write_text(systems(room, mine()))
    assert command.main(["check", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert why in error and "mine.wasm" in error and "s.toml:" in error, error


@pytest.mark.parametrize("room", ROOMS)
def test_a_module_of_another_room_is_refused(room: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    other = "qdisc" if room != "qdisc" else "policy"
    (folder / "mine.wasm").write_bytes(changed(other))
    (folder / "s.toml").write_text(systems(room, mine()))
    assert command.main(["check", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert "not for this part" in error and "s.toml:" in error, error


FUNCTION = {"qdisc": "enqueue", "router": "decide", "policy": "on_send", "transport": "on_packet"}

# What modules of all rooms may do where their calls are: (text, message).
ANYWHERE = {
    "trap": ("unreachable", "wasm `unreachable` instruction executed (in the function `FUNCTION` of the file)"),
    "endless loop": ("(loop (br 0))", "it has used up its fuel"),
    "write outside": ("(i64.store (i32.const -8) (i64.const 1))", "out of bounds memory access"),
    "failure": ("(return (i32.const -1))", ""),
    "garbage": ("(return (i32.const 99))", "it returned 99"),
    "memory and loop": (
        "(loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) (loop (br 0))",
        "it has used up its fuel",
    ),
}
EVICT = "(i32.store (local.get $queue) (local.get $longest))"
END = "\n    (i32.const 0))\n\n  (func (export"
CHOSEN = f"(i64.store (local.get $index) (local.get $chosen)){END}"

# (room, text in its place, function that fails, message)
OWN = {
    "qdisc: no queue": (
        "qdisc",
        ("(i32.store (local.get $queue) (local.get $turn))", "(i32.store (local.get $queue) (i32.const 8))"),
        "dequeue",
        "the port has no queue 8: it has 8",
    ),
    "qdisc: empty queue": (
        "qdisc",
        (
            "(i32.store (local.get $queue) (local.get $turn))",
            "(i32.store (local.get $queue) (i32.xor (local.get $turn) (i32.const 7)))",
        ),
        "dequeue",
        "queue",
    ),
    "qdisc: nothing set": ("qdisc", (EVICT, ""), "evict", "the port has no queue 4294967295"),
    "qdisc: counters outside": (
        "qdisc",
        ("(i32.add (local.get $own) (i32.const 24)))\n\n  (func (export", "(i32.const -8))\n\n  (func (export"),
        "count",
        "it returns the address 4294967288",
    ),
    "router: index": (
        "router",
        (CHOSEN, f"(i64.store (local.get $index) (local.get $count)){END}"),
        "decide",
        "there is no next hop",
    ),
    "router: nothing set": ("router", (CHOSEN, END), "decide", "there is no next hop 18446744073709551615"),
    "policy: packet": (
        "policy",
        (CALLS["policy"], "(i32.store16 offset=48 (local.get $packet) (i32.const 9))"),
        "on_send",
        "it changes more of a packet",
    ),
    "policy: address": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_two', 28, FLOW, number(-8))})"),
        "on_send",
        "it calls `view` with the address 4294967288, and its memory has ",
    ),
    "policy: across the end": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_two', 28, FLOW, '(i32.sub (i32.shl (memory.size) (i32.const 16)) (i32.const 32))')})"),
        "on_send",
        "it calls `view` with the address ",
    ),
    "policy: null": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_two', 16, FLOW, number(0))})"),
        "on_send",
        "it calls `sample` with the address 0",
    ),
    "policy: handle": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_two', 4, FLOW, number(0), handle=number(7))})"),
        "on_send",
        "it calls `disarm` with another handle",
    ),
    "policy: foreign flow": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_flow', 12, number(1 << 30))})"),
        "on_send",
        "it calls `finished`, but host",
    ),
    "policy: timer": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_two', 4, FLOW, number(4))})"),
        "on_send",
        "it calls `disarm`, but the kind of the timer is 4",
    ),
    "policy: deadline": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_flow', 8, FLOW)})"),
        "on_send",
        "it calls `terminate`, but ",
    ),
    "policy: another type": (
        "policy",
        (CALLS["policy"], f"(drop {call('of_flow', 0, FLOW)})"),
        "on_send",
        "indirect call type mismatch",
    ),
    "policy: no function": (
        "policy",
        (CALLS["policy"], "(memory.fill (i32.load offset=8 (local.get $cx)) (i32.const 255) (i32.const 36))"),
        "on_send",
        "undefined element",
    ),
    "policy: no states": (
        "policy",
        ('"\\20\\00\\00\\00\\00\\00\\00\\00" "\\30', '"\\20\\00\\00\\00\\00\\00\\00\\00" "\\00'),
        "on_open",
        "it calls `state`, but its `state_size` is 0",
    ),
    "transport: packet": (
        "transport",
        (
            "(i32.store16 offset=48 (local.get $packet) (i32.add ",
            "(i32.store16 offset=48 (local.get $packet) (i32.sub ",
        ),
        "poll",
        "",
    ),
    "transport: control outside": (
        "transport",
        (
            CALLS["transport"],
            "(return (call_indirect (type $of_flow) (local.get $handle) (i32.const -64) (i32.load offset=8 (local.get $calls))))",
        ),
        "on_packet",
        "it calls `control` with the address 4294967232",
    ),
    "transport: endless control packets": (
        "transport",
        (
            CALLS["transport"],
            "(i32.store (i32.const 0x3028) (local.get $number)) (i32.store16 (i32.const 0x3030) (i32.load (local.get $own)))"
            "(i32.store8 (i32.const 0x3036) (i32.const 1)) (loop (drop (call_indirect (type $of_flow) (local.get $handle)"
            "(i32.const 0x3000) (i32.load offset=8 (local.get $calls)))) (br 0))",
        ),
        "on_packet",
        "it calls `control` more than 10000 times in a function",
    ),
    "transport: delivery outside": (
        "transport",
        ("(i32.const 0x3040) (i32.load offset=12", "(i32.const -8) (i32.load offset=12"),
        "on_packet",
        "it calls `deliver` with the address 4294967288",
    ),
    "transport: foreign flow": (
        "transport",
        (CALLS["transport"], "(drop (call $payload (local.get $cx) (i32.const 0x40000000) (i64.const 0)))"),
        "on_packet",
        "it calls `payload`, but ",
    ),
}
FAILING = {
    f"{room}: {name}": (room, (CALLS[room], text + " " + CALLS[room]), FUNCTION[room], why.replace("FUNCTION", FUNCTION[room]))
    for room in ROOMS
    for name, (text, why) in ANYWHERE.items()
} | OWN


@pytest.mark.parametrize("name", FAILING)
def test_a_module_that_fails_ends_the_run(name: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    room, pair, function, why = FAILING[name]
    (folder / "mine.wasm").write_bytes(changed(room, pair))
    parameters = ", limit = '10pkt'" if room == "qdisc" else ""
    (folder / "s.toml").write_text(systems(room, mine(parameters)))
    for threads in ("1", "2"):
        assert command.main(["run", "s.toml", "--threads", threads, "--overwrite"]) == 2
        error = capfd.readouterr().err
        assert f"`{ROOMS[room]}_wat` (`mine.wasm`) failed in `{function}" in error and why in error, error


def test_states_that_do_not_fit_end_the_run(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    memory = ('(memory (export "memory") 1)', '(memory (export "memory") 255)')
    old = '"\\20\\00\\00\\00\\00\\00\\00\\00" "\\30\\00\\00\\00\\00'
    (folder / "mine.wasm").write_bytes(changed("policy", memory, (old, old.replace("\\30\\00\\00", "\\00\\00\\10"))))
    (folder / "s.toml").write_text(systems("policy", mine()))
    assert command.main(["run", "s.toml"]) == 2
    error = capfd.readouterr().err
    assert "`pias_wat` (`mine.wasm`) failed in `on_" in error and "its memory is full: an instance has at most 16 MiB" in error, (
        error
    )


def test_a_module_that_overwrites_its_memory_harms_only_itself(folder: Path) -> None:
    # Each fills the page of the simulator, without the table of the module. The run ends, well or with a message.
    for room, text in CALLS.items():
        fill = "(memory.fill (i32.const 0x10000) (i32.const 255) (i32.const 8192))"
        (folder / "mine.wasm").write_bytes(changed(room, (text, f"{fill} (return (i32.const 0)) {text}")))
        (folder / "s.toml").write_text(systems(room, mine()))
        assert command.main(["run", "s.toml", "--overwrite"]) in (0, 2), room


@pytest.mark.parametrize("room", ROOMS)
def test_check_says_that_a_module_is_in_a_sandbox(room: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "mine.wasm").write_bytes(changed(room))
    (folder / "s.toml").write_text(systems(room, mine()))
    assert command.main(["check", "s.toml"]) == 0
    assert "WebAssembly, which runs in a sandbox: no files, no clock" in capfd.readouterr().out
    assert command.main(["explain", "mine.wasm"]) == 0
    assert "in WebAssembly, by hand" in capfd.readouterr().out
