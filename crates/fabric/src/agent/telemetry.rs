//! In-band network telemetry: the ports of switches write their queue, sent bytes, time and rate
//! into packets that ask for it.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, section 4.1; P4.org, "In-band Network Telemetry (INT)
//! Dataplane Specification", version 2.1 (2020).
//!
//! Model: a packet asks by carrying an empty stack (`kit/int`). Hosts' NICs write nothing.
//! The stack has a fixed length on the wire, which the transport counts (`int_bytes`).
//!
//! Assumed: values are those at the start of the packet's transmission, without the packet, as in
//! HPCC's simulator (`SwitchNotifyDequeue`).

use super::{Agent, Env, PortCx};
use base::params::Problem;
use base::registry::Meta;
use proto::kit::int::{IntStack, LineRate};
use proto::{Kind, Packet};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "in-band telemetry: switch ports write queue, sent bytes, time and rate into data packets",
    source: "Li et al., SIGCOMM 2019, section 4.1; P4.org INT 2.1",
    reads_port: true,
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of telemetry: none.
    pub struct Params {}
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The agent of one port.
pub struct Telemetry {
    rate: LineRate,
    silent: bool,
}

impl Telemetry {
    /// Returns the agent of a port.
    pub fn new(_params: &Params, env: &Env<'_>) -> Self {
        Telemetry { rate: LineRate::new(env.rate), silent: env.host_port }
    }
}

impl Agent for Telemetry {
    fn on_arrive(&mut self, _packet: &mut Packet, _cx: &mut PortCx<'_>) {}
    fn on_enqueue(&mut self, _packet: &Packet, _cx: &mut PortCx<'_>) {}
    fn on_depart(&mut self, packet: &mut Packet, cx: &mut PortCx<'_>) {
        if !self.silent && packet.kind == Kind::DATA && packet.has(Packet::EXT) {
            let mut stack: IntStack = packet.get_ext(cx.ext);
            stack.push(cx.now, cx.port.sent_bytes, cx.port.queue.bytes, self.rate);
            packet.put_ext(stack, cx.ext);
        }
    }
    fn on_link_down(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::PortState;
    use crate::queue::Backlog;
    use base::params::Params as _;
    use base::{FlowId, Given, LinkId, NodeId, Rate, Slab, Time};
    use proto::kit::int::IntHop;
    use proto::packet::Ext;

    fn depart(host_port: bool, packet: &mut Packet, ext: &mut Slab<Ext>, now: Time, queue: u64, sent_bytes: u64) {
        let rate = Rate::from_gbps(100);
        let env = Env { link: LinkId(0), node: NodeId(0), rate, nic_rate: rate, header_bytes: 48, host_port, given: Given::none() };
        let port = PortState { queue: Backlog { packets: 1, bytes: queue }, sent_bytes };
        Telemetry::new(&Params::defaults(), &env).on_depart(packet, &mut PortCx { now, flows: &[], ext, port: &port });
    }

    #[test]
    fn every_switch_adds_a_hop_and_hosts_add_none() {
        let mut ext = Slab::default();
        let mut packet = Packet::data(FlowId(0), 0, 1000, 48);
        packet.set_ext(IntStack::default(), &mut ext);
        depart(true, &mut packet, &mut ext, Time(1_000), 800, 1280);
        assert!(packet.get_ext::<IntStack>(&ext).is_empty());
        depart(false, &mut packet, &mut ext, Time(2_000), 800, 1280);
        depart(false, &mut packet, &mut ext, Time(9_000), 0, 12_800);
        let rate = Rate::from_gbps(100);
        let hop = |time_ns, queue_bytes, sent_bytes| IntHop { time_ns, queue_bytes, sent_bytes, rate };
        assert_eq!(packet.get_ext::<IntStack>(&ext).hops().collect::<Vec<_>>(), [hop(2, 800, 1280), hop(9, 0, 12_800)]);
    }

    #[test]
    fn packets_that_do_not_ask_and_answers_pass_unchanged() {
        let mut ext = Slab::default();
        let mut plain = Packet::data(FlowId(0), 0, 1000, 48);
        depart(false, &mut plain, &mut ext, Time(1_000), 800, 1280);
        assert_eq!(plain, Packet::data(FlowId(0), 0, 1000, 48));
        let mut ack = Packet::new(FlowId(0), Kind::ACK, 48);
        ack.set_ext(IntStack::default(), &mut ext);
        depart(false, &mut ack, &mut ext, Time(1_000), 800, 1280);
        assert!(ack.get_ext::<IntStack>(&ext).is_empty());
    }
}
