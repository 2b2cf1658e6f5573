"""Writes the packet trace as pcapng, for Wireshark and tcpdump, with an interface for each port.

The time of a packet is the start of its transmission. Dropped packets and packets between switches
that belong to no flow are left out.

Headers are made up: Ethernet, IPv4 and, for segments and for packets that acknowledge or open a
connection, TCP. Other packets of a protocol (probes, credits, grants) have IP protocol 253, which
is reserved for experiments. The bytes that flowloom counts of a packet are those of its IP packet,
so a frame is 14 bytes longer. Only headers are captured, so TCP has no checksum. The name of an
interface is the name of its link. The IP identification of a packet is the low half of its flow's
number.

Host `n` has the address 10.0.0.1 + n. A flow from it has the source port 1024 + flow_id mod 64512,
and the destination port 80. Sequence and acknowledgement numbers are offsets in the flow plus one,
and wrap at 2^32 as those of TCP do. Times are whole nanoseconds.

dpkt makes the headers, python-pcapng the blocks.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flowloom.base.errors import InputError
from flowloom.base.files import write_whole
from flowloom.base.rooms import Meta
from flowloom.runs.data import Data, Run, named_ports

META = Meta(
    "The packets as a capture for Wireshark and tcpdump",
    needs="packets",
    source="draft-ietf-opsawg-pcapng",
    suffix="pcapng",
)

ETHERNET = 1
LARGEST_IP = 65_535
EXPERIMENTAL = 253
"""RFC 3692: an IP protocol number for experiments."""

SEGMENTS = {"data": 0x18, "syn": 0x02, "fin": 0x11}
"""The kinds of packets that the sender of a flow sends as TCP segments, with their flags."""
ANSWERS = {"ack": 0x10, "synack": 0x12, "finack": 0x11}
"""The kinds of packets that the receiver sends as TCP segments, with their flags."""


def write(results: Data, run: Run, path: Path) -> None:
    """Writes a point. Raises `ValueError` if it has no packet trace."""
    try:
        import dpkt  # noqa: F401 - fails before anything is read
        from pcapng import FileWriter
        from pcapng.blocks import EnhancedPacket, InterfaceDescription, SectionHeader
    except ImportError:
        raise ImportError("captures need two libraries\nhint: pip install 'flowloom[export]'") from None
    wanted = ["time_ps", "port_id", "kind", "flow_id", "offset", "size_bytes", "dropped"]
    packets = results.packets(wanted, {"point": run.point}).to_pylist()
    if not packets:
        raise InputError(f"`{run.point}` has no packet trace\nhint: set `packets = true` in the scenario's `[sample]` table")
    known = results.flows(["flow_id", "src", "dst"], {"point": run.point}).to_pylist()
    ends = {row["flow_id"]: (row["src"], row["dst"]) for row in known}
    # Packets between switches belong to no flow.
    rows = [row for row in packets if not row["dropped"] and row["flow_id"] in ends]
    rows.sort(key=lambda row: (row["time_ps"], row["port_id"]))
    answers = answering(results, run, rows, ends)
    names, content = named_ports(results, run), io.BytesIO()
    section = SectionHeader(endianness="<", options={"shb_userappl": "flowloom"})
    ports = sorted({row["port_id"] for row in rows})
    for port in ports:
        options = {"if_name": names[port], "if_tsresol": b"\x09"}
        section.new_member(InterfaceDescription, link_type=ETHERNET, snaplen=0, options=options)
    interfaces = {port: i for i, port in enumerate(ports)}
    writer = FileWriter(content, section)
    for row in rows:
        head, length = frame(row, *ends[row["flow_id"]], row["kind"] in answers)
        time_ns = row["time_ps"] // 1000
        block = section.new_member(
            EnhancedPacket, interface_id=interfaces[row["port_id"]], timestamp_high=time_ns >> 32,
            timestamp_low=time_ns & 0xFFFFFFFF, captured_len=len(head), packet_len=length, packet_data=head,
        )  # fmt: skip
        writer.write_block(block)
    write_whole(path, content.getvalue())


def answering(results: Data, run: Run, rows: Sequence[Mapping[str, Any]], ends: Mapping[int, tuple[int, int]]) -> set[str]:
    """Returns the kinds of packets that receivers of flows send.

    These are the kinds that only leave the destination hosts; for kinds that leave no traced host,
    the name decides.
    """
    tiers = results.ports(["port_id", "node", "tier"], {"point": run.point}).to_pylist()
    host = {row["port_id"]: row["node"] for row in tiers if row["tier"] == 0}
    sent = {kind: set[bool]() for kind in {row["kind"] for row in rows}}
    for row in rows:
        if row["port_id"] in host:
            src, dst = ends[row["flow_id"]]
            node = host[row["port_id"]]
            if node in (src, dst):
                sent[row["kind"]].add(node == dst)
    return {kind for kind, by in sent.items() if by == {True} or (not by and (kind in ANSWERS or kind.endswith("ack")))}


def frame(row: Mapping[str, Any], src: int, dst: int, answer: bool) -> tuple[bytes, int]:
    """Returns the headers of a packet, and the length of its frame."""
    import dpkt

    kind, size = row["kind"], row["size_bytes"]
    if size > LARGEST_IP:
        raise InputError(f"a packet of {size} bytes is longer than an IP packet can be, {LARGEST_IP} bytes\nhint: lower `mtu`")
    here, there = (dst, src) if answer else (src, dst)
    port, at = 1024 + row["flow_id"] % 64_512, (row["offset"] + 1) & 0xFFFFFFFF
    flags = (ANSWERS if answer else SEGMENTS).get(kind)
    if flags is not None:
        ports = {"sport": 80, "dport": port} if answer else {"sport": port, "dport": 80}
        numbers = {"seq": 1, "ack": at} if answer else {"seq": at, "ack": 1}
        inner: Any = dpkt.tcp.TCP(**ports, **numbers, flags=flags)
        protocol = dpkt.ip.IP_PROTO_TCP
    else:
        inner, protocol = f"{kind} of flow {row['flow_id']} at {row['offset']}".encode(), EXPERIMENTAL
    ip = dpkt.ip.IP(src=address(here), dst=address(there), p=protocol, id=row["flow_id"] & 0xFFFF, ttl=64, data=inner)
    ip.len = max(size, 20 + len(bytes(inner)))
    ip.sum = dpkt.in_cksum(ip.pack_hdr())
    ethernet = dpkt.ethernet.Ethernet(src=mac(here), dst=mac(there), type=dpkt.ethernet.ETH_TYPE_IP, data=ip)
    head = bytes(ethernet)
    return head, max(14 + size, len(head))


def address(host: int) -> bytes:
    """Returns the IPv4 address of a host."""
    number = 10 << 24 | (host + 1)
    if host + 1 >= 1 << 24:
        raise InputError(f"host {host} has no address in 10.0.0.0/8\nhint: a capture holds {(1 << 24) - 2} hosts")
    return number.to_bytes(4, "big")


def mac(host: int) -> bytes:
    """Returns the Ethernet address of a host, which is locally administered."""
    return b"\x02\x00" + host.to_bytes(4, "big")
