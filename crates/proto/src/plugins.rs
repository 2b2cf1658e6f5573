//! Packets and hosts as plug-ins see them.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::demotion;
use crate::packet::{Kind, Packet};
use base::{FlowId, Time};
use plugin::abi;
use plugin::transport::Endpoint;

/// Number of kinds of timers that a plug-in at a host has.
pub const TIMER_KINDS: u32 = base::timers::KINDS as u32;
/// Timers of plug-ins at this time or later never expire, in picoseconds.
pub const NEVER_DUE: u64 = 1 << 63;

/// Returns what plug-ins know of a host and its network.
pub fn endpoint(env: &Env<'_>) -> Endpoint {
    Endpoint {
        mtu: env.mtu_bytes.into(),
        header: env.header_bytes.into(),
        nic_rate_bps: env.nic_rate.0,
        host_rate_bps: env.host_rate.0,
        max_rtt_ps: env.max_rtt.0,
        classes: demotion::classes(env) as u64,
    }
}

/// Returns a flow that a plug-in may give up: one with a deadline. Runs on several threads rely on
/// flows without a deadline to stay open until they finish. The error completes a sentence.
pub fn may_be_given_up(flow: &Flow) -> Result<&Flow, String> {
    let why = || format!("flow {} has no deadline: only flows with a deadline can be given up", flow.id);
    flow.deadline.map(|_| flow).ok_or_else(why)
}

/// Returns a packet as a plug-in at a host sees it: without handles of the extension slab, its path
/// and the bits of routers.
#[inline(always)]
pub fn shown_to_host(packet: &Packet) -> abi::Packet {
    let hidden = Packet::ROUTER_BITS | Packet::EXT | Packet::TAGGED;
    let rank = if packet.has(Packet::TAGGED) { 0 } else { packet.rank };
    let words = if packet.has(Packet::EXT) { [0; 2] } else { packet.words };
    abi::Packet { rank, words, flags: packet.flags & !hidden, path_tag: 0, route: [0; 6], ..shown(packet) }
}

/// Returns a packet as a plug-in sees it.
#[inline(always)]
pub fn shown(packet: &Packet) -> abi::Packet {
    let Packet { arrival, sent_at, offset, words, flow, rank, wire_len, payload, path_tag, kind, prio, flags, route } = *packet;
    abi::Packet {
        arrival_ps: arrival.0,
        sent_ps: sent_at.0,
        offset,
        words,
        flow: flow.0,
        rank,
        wire_len,
        payload,
        path_tag,
        kind: kind.0,
        prio,
        flags,
        route,
    }
}

/// Returns the packet that a plug-in was shown or has made. The caller checks what a plug-in must not
/// change.
#[inline(always)]
pub fn read(packet: &abi::Packet) -> Packet {
    let abi::Packet { arrival_ps, sent_ps, offset, words, flow, rank, wire_len, payload, path_tag, kind, prio, flags, route } =
        *packet;
    let (arrival, sent_at, flow, kind) = (Time(arrival_ps), Time(sent_ps), FlowId(flow), Kind(kind));
    Packet { arrival, sent_at, offset, words, flow, rank, wire_len, payload, path_tag, kind, prio, flags, route }
}

const _: () = {
    assert!(abi::Packet::DATA == Kind::DATA.0 && abi::Packet::ACK == Kind::ACK.0);
    assert!(abi::Packet::SYN == Kind::SYN.0 && abi::Packet::SYNACK == Kind::SYNACK.0);
    assert!(abi::Packet::TRIMMED == Kind::TRIMMED.0);
    assert!(abi::Packet::OWN == Kind::OWN && abi::Packet::POLICY == Kind::POLICY);
    assert!(abi::Packet::ECT == Packet::ECT && abi::Packet::CE == Packet::CE && abi::Packet::ECE == Packet::ECE);
    assert!(abi::Packet::RETX == Packet::RETX && abi::Packet::BACK == Packet::BACK);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_that_was_shown_is_read_unchanged() {
        let packet = Packet {
            arrival: Time(1),
            sent_at: Time(2),
            offset: 3,
            words: [4, 5],
            flow: FlowId(6),
            rank: 7,
            wire_len: 8,
            payload: 9,
            path_tag: 10,
            kind: Kind(11),
            prio: 12,
            flags: 13,
            route: [14, 15, 16, 17, 18, 19],
        };
        assert_eq!(read(&shown(&packet)), packet);
    }
}
