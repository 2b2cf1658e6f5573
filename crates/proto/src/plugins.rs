//! Packets and hosts as plug-ins see them.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::demotion;
use crate::packet::{Kind, Packet};
use base::{FlowId, HostId, Time};
use plugin::abi::{self, NEVER};
use plugin::host::{Endpoint, NO_FLOW, SeenFlow};
use plugin::library::Library;

/// Number of kinds of timers that a plug-in at a host has.
const TIMER_KINDS: u32 = base::timers::KINDS as u32;
/// Timers of plug-ins at this time or later never expire, in picoseconds.
pub const NEVER_DUE: u64 = 1 << 63;
/// The most that a plug-in adds to a counter at a time, so that no total of a run overflows.
pub const MOST_COUNTED: u64 = 1 << 32;

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

/// The host whose plug-in makes a call. Errors complete a sentence about the plug-in.
#[derive(Clone, Copy)]
pub struct Caller<'a> {
    /// The plug-in.
    pub library: &'static Library,
    /// The host.
    pub host: HostId,
    /// All flows of the run.
    pub flows: &'a [Flow],
}

impl<'a> Caller<'a> {
    /// Returns a flow, if this host is an end of it.
    pub fn flow(&self, flow: u32) -> Result<&'a Flow, String> {
        let found = self.flows.get(flow as usize).filter(|found| found.src == self.host || found.dst == self.host);
        found.ok_or_else(|| format!("host {} is not an end of flow {flow}", self.host.0))
    }
    /// Returns a flow that this host sends.
    pub fn sent(&self, flow: u32) -> Result<&'a Flow, String> {
        let found = self.flow(flow)?;
        if found.src == self.host { Ok(found) } else { Err(format!("host {} does not send flow {flow}", self.host.0)) }
    }
    /// Returns a flow that this host receives.
    pub fn received(&self, flow: u32) -> Result<&'a Flow, String> {
        let found = self.flow(flow)?;
        if found.dst == self.host { Ok(found) } else { Err(format!("host {} does not receive flow {flow}", self.host.0)) }
    }
    /// Returns the flow and the kind of a timer.
    pub fn timer(&self, flow: u32, kind: u32) -> Result<(FlowId, u8), String> {
        if kind >= TIMER_KINDS {
            return Err(format!("the kind of the timer is {kind}: it must be below {TIMER_KINDS}"));
        }
        let flow = if flow == NO_FLOW { FlowId::HOST } else { self.flow(flow)?.id };
        Ok((flow, kind as u8))
    }
    /// Returns the flow and the counter that a plug-in adds to.
    pub fn counter(&self, flow: u32, counter: u32) -> Result<(FlowId, usize), String> {
        let (found, counters) = (self.flow(flow)?, self.library.counters.len());
        if counter as usize >= counters {
            return Err(format!("the plug-in declares {counters} counters, and no counter {counter}"));
        }
        Ok((found.id, counter as usize))
    }
    /// Describes a flow by what the plug-in knows of it.
    pub fn view(&self, flow: u32) -> Result<SeenFlow, String> {
        let Flow { id, src, dst, size_bytes, start, deadline, .. } = *self.flow(flow)?;
        let deadline_ps = deadline.filter(|_| self.library.knows_deadline()).map_or(NEVER, |deadline| deadline.0);
        let size = if self.library.knows_size() { size_bytes } else { 0 };
        Ok(SeenFlow { number: id.0.into(), size, start_ps: start.0, deadline_ps, source: src.0, destination: dst.0 })
    }
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
