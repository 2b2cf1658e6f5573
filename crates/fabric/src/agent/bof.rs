//! BOTCP's ports: every data packet carries the largest occupancy that it met on its path.
//!
//! Source: H. Ahmed, M. J. Arshad, "Buffer Occupancy-Based Transport to Reduce Flow Completion Time of Short Flows in Data Center
//! Networks", Symmetry 11(5):646, 2019, sections 3.1 and 4.1, Fig. 5.
//!
//! Model: ACKs pass unchanged. Occupancies in ACKs would be used by data in the reverse direction,
//! and flows here have data in one direction only.
//!
//! Assumed:
//! - The occupancy is read when a packet arrives. It includes that packet, but not the packet in
//!   transmission (`at = "dequeue"`: it is read when the packet departs, without that packet). The
//!   paper does not say.
//! - A host's NIC is a port like any other, as in ns-2, where a host's link has a queue of the same
//!   kind. Otherwise only `max_cwnd` would limit the window of a flow with no other flow on its
//!   path: none of its packets waits at a switch.
//! - An occupancy of more than 255 units is written as 255.

use super::{Agent, Env, PortCx};
use crate::qdisc::At;
use base::params::Problem;
use base::registry::{Meta, Needs};
use proto::transport::botcp::Unit;
use proto::{Kind, Packet};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "BOTCP ports: write the largest occupancy on the path into data packets",
    source: "Ahmed and Arshad, Symmetry 11(5):646, 2019, section 4.1",
    needs: Needs { transport: &["botcp"], qdisc: &["droptail", "ecn_threshold", "red_ecn"], ..Needs::NONE },
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of BOTCP's ports.
    pub struct Params {
        /// Unit of the occupancy; must be equal to that of the hosts.
        bof_unit: Unit = "packet", "section 5 counts packets; section 3.1 drops ten bits: `kib`";
        /// When the occupancy is read.
        at: At = "enqueue", "flowloom, see Assumed";
        /// Whether the NICs of hosts write the occupancy too.
        bof_at_host: bool = "true", "flowloom, see Assumed";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The agent of one port.
pub struct Bof {
    unit: Unit,
    at: At,
    silent: bool,
    /// Bytes in the queue.
    queued: u64,
}

impl Bof {
    /// Returns the agent of a port with an empty queue.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let silent = env.host_port && !params.bof_at_host;
        Bof { unit: params.bof_unit, at: params.at, silent, queued: 0 }
    }

    /// Writes the larger one of the occupancy in the packet and that of this port into the packet
    /// (Fig. 5).
    fn write(&self, packet: &mut Packet, at: At, occupancy: u64) {
        if at == self.at && !self.silent && packet.kind == Kind::DATA {
            let bof = &mut packet.words[0];
            *bof = (*bof).max(self.unit.octet(occupancy).into());
        }
    }
}

impl Agent for Bof {
    fn on_arrive(&mut self, packet: &mut Packet, _cx: &mut PortCx<'_>) {
        let with_it = self.queued + u64::from(packet.wire_len);
        self.write(packet, At::Enqueue, with_it);
    }
    fn on_enqueue(&mut self, packet: &Packet, _cx: &mut PortCx<'_>) {
        self.queued += u64::from(packet.wire_len);
    }
    fn on_depart(&mut self, packet: &mut Packet, _cx: &mut PortCx<'_>) {
        self.queued -= u64::from(packet.wire_len);
        self.write(packet, At::Dequeue, self.queued);
    }
    fn on_link_down(&mut self) {
        self.queued = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::params::Params as _;
    use base::{FlowId, LinkId, NodeId, Rate, Slab, Time};
    use proto::packet::Ext;

    struct Bench {
        port: Bof,
        ext: Slab<Ext>,
    }

    impl Bench {
        fn new(host_port: bool, change: impl FnOnce(&mut Params)) -> Bench {
            let mut params = Params::defaults();
            change(&mut params);
            let rate = Rate::from_gbps(10);
            let env = Env {
                link: LinkId(0),
                node: NodeId(0),
                rate,
                nic_rate: rate,
                header_bytes: 40,
                host_port,
                given: base::Given::none(),
            };
            Bench { port: Bof::new(&params, &env), ext: Slab::default() }
        }
        fn with(&mut self, act: impl FnOnce(&mut Bof, &mut PortCx<'_>)) {
            act(
                &mut self.port,
                &mut PortCx { now: Time::ZERO, flows: &[], ext: &mut self.ext, port: &crate::agent::PortState::NEW },
            );
        }
        /// A packet arrives, and stays if it is `admitted`.
        fn arrive(&mut self, mut packet: Packet, admitted: bool) -> Packet {
            self.with(|port, cx| {
                port.on_arrive(&mut packet, cx);
                if admitted {
                    port.on_enqueue(&packet, cx);
                }
            });
            packet
        }
        fn depart(&mut self, mut packet: Packet) -> Packet {
            self.with(|port, cx| port.on_depart(&mut packet, cx));
            packet
        }
    }

    fn data() -> Packet {
        Packet::data(FlowId(0), 0, 1456, 44)
    }
    fn bof(packet: &Packet) -> u64 {
        packet.words[0]
    }

    /// The arriving packet counts, the packet in transmission does not, and a dropped packet leaves
    /// no trace.
    #[test]
    fn the_occupancy_is_what_waits_with_the_arriving_packet() {
        let mut b = Bench::new(false, |_| {});
        assert_eq!(bof(&b.arrive(data(), true)), 1);
        assert_eq!(bof(&b.arrive(data(), true)), 2);
        assert_eq!(bof(&b.arrive(data(), false)), 3);
        assert_eq!(bof(&b.arrive(data(), true)), 3);
        // Nothing is written on departure.
        assert_eq!(bof(&b.depart(data())), 0);
        assert_eq!(bof(&b.arrive(data(), true)), 3);
        b.with(|port, _| port.on_link_down());
        assert_eq!(bof(&b.arrive(data(), true)), 1);
    }

    /// Ports with 3, 41 and 12 packets.
    #[test]
    fn the_largest_on_the_way_stays() {
        let mut packet = data();
        for (others, so_far) in [(2, 3), (40, 41), (11, 41)] {
            let mut b = Bench::new(false, |_| {});
            for _ in 0..others {
                b.arrive(data(), true);
            }
            packet = b.arrive(packet, true);
            assert_eq!(bof(&packet), so_far);
        }
    }

    #[test]
    fn at_departure_it_is_what_stays_behind() {
        let mut b = Bench::new(false, |p| p.at = At::Dequeue);
        let waiting: Vec<Packet> = (0..3).map(|_| b.arrive(data(), true)).collect();
        assert!(waiting.iter().all(|p| bof(p) == 0));
        let seen: Vec<u64> = waiting.into_iter().map(|p| bof(&b.depart(p))).collect();
        assert_eq!(seen, [2, 1, 0]);
    }

    #[test]
    fn bytes_count_and_kib_are_rounded_down() {
        let mut b = Bench::new(false, |p| p.bof_unit = Unit::Kib);
        let ack = Packet::new(FlowId(0), Kind::ACK, 44);
        for _ in 0..20 {
            b.arrive(data(), true);
        }
        // 30 000 B and 40 ACKs are 31 760 B; with the arriving packet 33 260.
        for _ in 0..40 {
            assert_eq!(bof(&b.arrive(ack, true)), 0);
        }
        assert_eq!(bof(&b.arrive(data(), true)), 32);
    }

    #[test]
    fn hosts_take_part_by_default() {
        for (at_host, expected) in [(true, 1), (false, 0)] {
            let mut b = Bench::new(true, |p| p.bof_at_host = at_host);
            assert_eq!(bof(&b.arrive(data(), true)), expected);
            let mut switch = Bench::new(false, |p| p.bof_at_host = at_host);
            assert_eq!(bof(&switch.arrive(data(), true)), 1);
        }
    }
}
