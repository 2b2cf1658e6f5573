//! pFabric hosts: line-rate start, remaining size as priority, probe mode after repeated timeouts.
//!
//! Source: Alizadeh et al., "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013, section 4; where the paper is silent,
//! the authors' ns-2 patch and scripts as published with later studies.
//!
//! Model: there is no FIN: the sender's state ends with the last acknowledgment. There is no
//! pacing, no ECN and no fast retransmit.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `init_cwnd` | ceil(BDP / MTU) of the longest path | "one BDP"; 12 in the authors' scripts |
//! | `max_cwnd` | queue - 1, at least `init_cwnd` | authors' scripts |
//! | `rto` | 3 unloaded round trips of the longest path | authors' scripts: 45 us at 14.6 us |
//! | `probe_after` | 5 | authors' scripts |
//! | `priority` | remaining size | section 4.1 |
//! | `sacked` | `widen` | YAPS |
//! | `handshake` | off | the public sources start on warm connections |
//!
//! Assumed:
//! - The priority number is in bytes and saturates at 2^32 - 1 in a packet; packets without payload
//!   have number 0.
//! - Among the flows of one host, the flow with the smallest priority number sends first, as in the
//!   host's own port; ties go by flow id.
//! - A switch queue limited in bytes counts as that many full packets for `max_cwnd`; without a limit there is no cap.
//! - An ACK carries the cumulative acknowledgment and one SACK block: the contiguous range with the
//!   bytes that caused the ACK.
//! - The ACK that ends probe mode does not grow the window.
//! - SACKed bytes widen the window wherever they are, also beyond the next byte to send, and are not retransmitted, as
//!   in YAPS (`sacked = "widen"`). In the ns-2 patch they do not widen the window, and are retransmitted after a timeout
//!   (`sacked = "ignore"`): incasts of 15 flows of 292 and 146 KB take 1.18 and 1.22 times as long there. The paper
//!   does not say.
//! - Segments start at multiples of a full payload from the start of the flow; after a probe the
//!   first segment is one byte short.
//! - The timer starts when a packet is handed to the NIC, and restarts with every ACK that advances.

use crate::contract::{Cx, Env, Timeout, Timers, Transport};
use crate::flow::Sample;
use crate::kit::order::ByKey;
use crate::packet::{Kind, Packet};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Dur, FlowId, FlowMap, Rate, TimerKey};
use sender::{Config, Phase, Sender};

mod sender;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "pFabric: line-rate start, remaining size as priority, probe mode after repeated timeouts",
    source: "Alizadeh et al., SIGCOMM 2013",
    needs: Needs { qdisc: &["pfabric"], ..Needs::NONE },
    implies: &[("nic.low_water", "1B")],
    knows: &["size"],
    ranks: true,
    packets_only: "its ports serve the flow with the fewest bytes left first",
    host: "YAPS: the most urgent packet is chosen when the link is free; the authors' ns-2: a queue like those of the switches",
    ..Meta::PLAIN
};

base::choice! {
    /// The priority number of a packet.
    pub enum Priority {
        /// Bytes of its flow that are not acknowledged when it is sent.
        Remaining = "remaining",
        /// Total size of its flow.
        Size = "size",
        /// Bytes of its flow sent before it.
        Sent = "sent",
    }
}

base::choice! {
    /// What a sender does with SACKed bytes.
    pub enum Sacked {
        /// They widen the window, and are not retransmitted.
        Widen = "widen",
        /// They are in the window until they are acknowledged in order, and are retransmitted after a timeout. Only the
        /// priority number leaves them out.
        Ignore = "ignore",
    }
}

base::params! {
    /// Parameters of pFabric's hosts.
    pub struct Params {
        /// Initial window in packets; `auto`: one bandwidth-delay product of the longest path.
        init_cwnd: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_000_000), "section 4.3: one BDP";
        /// Largest window in packets; `auto`: one packet less than the switch queue holds, at least
        /// the initial window.
        max_cwnd: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_000_000), "authors' ns-2 scripts: queue - 1";
        /// Retransmission timeout, fixed and never backed off; `auto`: three unloaded round trips of the longest path.
        rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(60)), "authors' ns-2 scripts: 45 us at 14.6 us";
        /// Consecutive timeouts before probe mode; 0: never.
        probe_after: u32 = "5", "authors' ns-2 scripts";
        /// The priority number of a packet.
        priority: Priority = "remaining", "section 4.1";
        /// Whether SACKed bytes widen the window and are not retransmitted, or neither.
        sacked: Sacked = "widen", "YAPS; authors' ns-2 patch: `ignore`", quiet;
        /// Whether every connection opens with a SYN and a SYNACK.
        handshake: bool = "false", "the public sources start on warm connections";
    }
}

/// Returns the problems that depend on the network, and contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let (Auto::Set(init), Auto::Set(max)) = (params.init_cwnd, params.max_cwnd)
        && init > max
    {
        problems.push(Problem {
            key: "init_cwnd",
            message: format!("`{init}` is above `max_cwnd`, which is `{max}`"),
            hint: "lower `init_cwnd` or raise `max_cwnd`".to_owned(),
        });
    }
    if let Auto::Set(rto) = params.rto {
        problems.extend(env.too_short("rto", rto, "every packet would be retransmitted: write a longer time or `auto`"));
    }
    problems
}

base::header! {
    /// The SACK block of an ACK: a contiguous range of bytes that have arrived.
    pub struct Block {
        /// Its first byte.
        start: u64,
        /// The byte after its last.
        end: u64,
    }
}

/// Timer: retransmission.
const RTO: u8 = 0;

/// The machine of one host.
pub struct Pfabric {
    config: Config,
    senders: FlowMap<Sender>,
    // Flows that may send now, by the priority number of the flow's next packet.
    ready: ByKey,
}

impl Pfabric {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Pfabric { config: Config::new(params, env), senders: FlowMap::default(), ready: ByKey::default() }
    }

    /// Adds `flow` to the flows that may send, or removes it.
    #[inline]
    fn refresh(ready: &mut ByKey, config: &Config, flow: FlowId, sender: &mut Sender) {
        sender.next = sender.next_packet(config);
        match sender.next {
            Some((offset, _, _)) => ready.set(flow, sender.priority(offset, config)),
            None => ready.remove(flow),
        }
    }

    fn send_syn(config: &Config, flow: FlowId, sender: &mut Sender, resent: bool, cx: &mut Cx<'_>) {
        let mut syn = Packet::new(flow, Kind::SYN, config.header);
        if resent {
            syn.flags |= Packet::RETX;
        }
        cx.control(syn);
        Self::start_timer(config, flow, sender, cx);
    }

    fn start_timer(config: &Config, flow: FlowId, sender: &mut Sender, cx: &mut Cx<'_>) {
        cx.arm(flow, RTO, cx.now.after(config.rto));
        sender.timer = true;
    }

    fn stop_timer(flow: FlowId, sender: &mut Sender, cx: &mut Cx<'_>) {
        cx.disarm(flow, RTO);
        sender.timer = false;
    }

    fn on_data(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let delivery = cx.deliver(packet.flow, packet.offset, packet.payload);
        let mut ack = Packet::new(packet.flow, Kind::ACK, self.config.header);
        ack.offset = delivery.next;
        ack.set(Block { start: delivery.block.start, end: delivery.block.end });
        cx.control(ack);
    }

    fn on_ack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let (flow, config) = (packet.flow, &self.config);
        // An ACK of a closed flow is a late duplicate.
        let Some(sender) = self.senders.get_mut(flow) else { return };
        let restart = sender.on_ack(packet, config);
        if sender.cum_ack == sender.size {
            self.senders.remove(flow);
            self.ready.remove(flow);
            cx.close(flow);
            return;
        }
        if restart && sender.next_seq > sender.cum_ack {
            Self::start_timer(config, flow, sender, cx);
        } else if restart {
            Self::stop_timer(flow, sender, cx);
        }
        Self::refresh(&mut self.ready, config, flow, sender);
    }

    fn on_synack(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        let flow = packet.flow;
        let Some(sender) = self.senders.get_mut(flow) else { return };
        if sender.phase == Phase::Opening {
            sender.phase = Phase::Open;
            Self::stop_timer(flow, sender, cx);
            Self::refresh(&mut self.ready, &self.config, flow, sender);
        }
    }
}

impl Transport for Pfabric {
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        let config = &self.config;
        let mut sender = Sender::new(cx.flow(flow).size_bytes, config);
        if config.handshake {
            Self::send_syn(config, flow, &mut sender, false, cx);
        }
        Self::refresh(&mut self.ready, config, flow, &mut sender);
        self.senders.insert(flow, sender);
    }

    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
        match packet.kind {
            Kind::DATA | Kind::PROBE => self.on_data(packet, cx),
            Kind::ACK => self.on_ack(packet, cx),
            Kind::SYN => cx.control(Packet::new(packet.flow, Kind::SYNACK, self.config.header)),
            Kind::SYNACK => self.on_synack(packet, cx),
            // No other kind is sent.
            _ => {}
        }
    }

    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let flow = key.flow;
        let Some(sender) = self.senders.get_mut(flow) else { return };
        sender.timer = false;
        cx.note_timeout(flow);
        if sender.phase == Phase::Opening {
            Self::send_syn(&self.config, flow, sender, true, cx);
        } else {
            sender.on_timeout(&self.config);
            Self::refresh(&mut self.ready, &self.config, flow, sender);
        }
    }

    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (flow, config) = (self.ready.first()?, &self.config);
        let sender = self.senders.get_mut(flow).expect("a closed flow is never ready");
        let (offset, payload, kind) = sender.next.expect("a ready flow can send");
        let mut packet = Packet { kind, ..Packet::data(flow, offset, payload, config.header) };
        // The rank is fixed when the packet is sent, whatever is acknowledged later.
        packet.rank = u32::try_from(sender.priority(offset, config)).unwrap_or(u32::MAX);
        if sender.on_sent(offset, payload, kind) {
            packet.flags |= Packet::RETX;
        }
        if !sender.timer {
            Self::start_timer(config, flow, sender, cx);
        }
        Self::refresh(&mut self.ready, config, flow, sender);
        Some(packet)
    }

    fn remove_sender(&mut self, flow: FlowId) -> bool {
        self.ready.remove(flow);
        self.senders.remove(flow).is_some()
    }

    fn sample(&self, flow: FlowId) -> Option<Sample> {
        self.senders.get(flow).map(|sender| Sample {
            cwnd_bytes: u64::from(sender.cwnd).saturating_mul(self.config.mss),
            ssthresh_bytes: if sender.ssthresh == u32::MAX { 0 } else { u64::from(sender.ssthresh) * self.config.mss },
            srtt: Dur::ZERO,
            rate: Rate(0),
            in_flight_bytes: (sender.next_seq - sender.cum_ack).saturating_sub(sender.sacked_bytes),
        })
    }
    fn timers(&self) -> Timers {
        let rto = Timeout::new("rto", self.config.rto);
        Timers { handshake: self.config.handshake, first: rto, least: rto, fixed: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::FlowStats;
    use crate::kit::pipe::{Fate, Pipe, both_ways, fates, patterns};
    use crate::kit::script::{self, Script};
    use base::Time;
    use base::params::Params as _;
    use proptest::prelude::*;

    pub(super) const MSS: u64 = 1460;
    /// 3 * 129.28 us.
    pub(super) const RTO_NS: u64 = 387_840;

    pub(super) fn host(params: &Params, sizes: &[u64]) -> Script<Pfabric> {
        let flows = sizes.iter().enumerate().map(|(i, size)| script::flow(i as u32, *size)).collect();
        Script::new(Pfabric::new(params, &script::env()), flows)
    }

    pub(super) fn at(ns: u64) -> Time {
        Time::ZERO + Dur::from_ns(ns)
    }

    /// An ACK of all segments below `next` with the block of segments `block`.
    pub(super) fn ack(next: u64, block: std::ops::Range<u64>) -> Packet {
        let mut ack = Packet::new(FlowId(0), Kind::ACK, 40);
        ack.offset = next * MSS;
        ack.set(Block { start: block.start * MSS, end: block.end * MSS });
        ack
    }

    pub(super) fn segments(packets: &[Packet]) -> Vec<u64> {
        assert!(packets.iter().all(|p| p.kind == Kind::DATA && p.offset % MSS == 0));
        packets.iter().map(|p| p.offset / MSS).collect()
    }

    #[test]
    fn contradictions_are_found() {
        assert_eq!(check(&Params::defaults(), &script::env()), []);
        let wrong =
            Params { init_cwnd: Auto::Set(9), max_cwnd: Auto::Set(8), rto: Auto::Set(Dur::from_us(100)), ..Params::defaults() };
        let keys: Vec<_> = check(&wrong, &script::env()).iter().map(|p| p.key).collect();
        assert_eq!(keys, ["init_cwnd", "rto"]);
    }

    #[test]
    fn the_receiver_acknowledges_every_packet_with_a_block() {
        let mut r = host(&Params::defaults(), &[10 * MSS]).at_host(1);
        let mut send = |n: u64| {
            let acks = r.packet(Packet { rank: 9, ..Packet::data(FlowId(0), n * MSS, MSS as u16, 40) });
            assert!(acks.len() == 1 && acks[0].kind == Kind::ACK && acks[0].rank == 0 && acks[0].wire_len == 40);
            let block: Block = acks[0].get();
            (acks[0].offset / MSS, block.start / MSS, block.end / MSS)
        };
        let seen = [0, 2, 3, 5, 2, 1, 0].map(&mut send);
        assert_eq!(seen, [(1, 0, 1), (1, 2, 3), (1, 2, 4), (1, 5, 6), (1, 2, 4), (4, 0, 4), (4, 0, 4)]);
    }

    #[test]
    fn the_smallest_remaining_size_of_a_host_sends_first() {
        let mut h = host(&Params::defaults(), &[8 * MSS, 3 * MSS, 2 * MSS]);
        h.nic_busy = true;
        for flow in 0..3 {
            h.open(flow);
        }
        // An ACK of another time makes flow 0 the smallest.
        h.machine.senders.get_mut(FlowId(0)).expect("open").max_seq = 7 * MSS;
        h.packet(ack(7, 0..7));
        h.nic_busy = false;
        let order: Vec<u32> = h.sent().iter().map(|p| p.flow.0).collect();
        assert_eq!(order, [0, 2, 2, 1, 1, 1]);
    }

    #[test]
    fn the_handshake_is_an_option() {
        let mut h = host(&Params { handshake: true, ..Params::defaults() }, &[2 * MSS]);
        let syn = h.open(0);
        assert!(syn.len() == 1 && syn[0].kind == Kind::SYN && syn[0].rank == 0);
        let again = h.advance(at(RTO_NS));
        assert!(again.len() == 1 && again[0].kind == Kind::SYN);
        let synack = Packet::new(FlowId(0), Kind::SYNACK, 40);
        assert_eq!(segments(&h.packet(synack)), [0, 1]);
        assert_eq!(h.packet(synack), []);
        assert_eq!(h.advance(at(2 * RTO_NS - 1)), []);
        let mut r = host(&Params::defaults(), &[2 * MSS]).at_host(1);
        assert_eq!(r.packet(syn[0])[0].kind, Kind::SYNACK);
    }

    #[test]
    fn the_last_ack_closes_and_later_ones_are_ignored() {
        let mut h = host(&Params::defaults(), &[3 * MSS]);
        h.open(0);
        h.packet(ack(3, 0..3));
        assert!(h.table.get(FlowId(0)).closed && h.machine.senders.is_empty() && h.machine.ready.first().is_none());
        assert_eq!(h.packet(ack(3, 0..3)), []);
        assert_eq!(h.advance(at(1_000_000_000)), []);
    }

    #[test]
    fn a_busy_nic_holds_timer_and_packets_back() {
        let mut h = host(&Params { init_cwnd: Auto::Set(1), ..Params::defaults() }, &[2 * MSS]);
        h.open(0);
        h.nic_busy = true;
        h.packet(ack(1, 0..1));
        assert!(!h.is_armed(0, RTO));
        h.nic_busy = false;
        assert_eq!(segments(&h.sent()), [1]);
        // The last ACK overtakes a waiting retransmission.
        h.nic_busy = true;
        h.advance(at(RTO_NS));
        h.packet(ack(2, 0..2));
        h.nic_busy = false;
        assert_eq!(h.sent(), []);
    }

    fn pipe(params: &Params, sizes: &[u64]) -> Pipe<Pfabric> {
        let flows = both_ways(sizes);
        let host = || Script::new(Pfabric::new(params, &script::env()), flows.clone());
        Pipe::new(host(), host(), Dur::from_us(60))
    }

    fn variants() -> Vec<Params> {
        let plain = Params::defaults();
        vec![
            plain.clone(),
            Params { probe_after: 1, ..plain.clone() },
            Params { handshake: true, priority: Priority::Sent, max_cwnd: Auto::Set(3), ..plain.clone() },
            Params { probe_after: 0, init_cwnd: Auto::Set(1), ..plain },
        ]
    }

    #[test]
    fn a_segment_dropped_once_at_any_place_is_recovered() {
        for params in variants() {
            for lost in 0..20 {
                let mut pipe = pipe(&params, &[20 * MSS]);
                let mut dropped = 0;
                pipe.run(|p| {
                    let hit = p.kind == Kind::DATA && p.offset == lost * MSS && dropped == 0;
                    dropped += u32::from(hit);
                    if hit { Fate::Drop } else { Fate::Pass }
                });
                let stats = pipe.hosts[0].table.get(FlowId(0)).stats;
                assert_eq!((dropped, stats), (1, FlowStats { timeouts: 1, fast_retransmits: 0 }), "segment {lost}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(patterns(200)))]
        /// All bytes arrive once, senders close and timers end, whatever happens to the first 300
        /// packets.
        #[test]
        fn survives_loss_reordering_and_duplication(
            variant in 0usize..4,
            sizes in prop::collection::vec(1u64..60_000, 1..4),
            fates in fates(300, &[]),
        ) {
                pipe(&variants()[variant], &sizes).run_fates(fates);
        }
    }
}
