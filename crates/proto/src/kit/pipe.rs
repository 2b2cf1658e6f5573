//! Test helper: two hosts joined by a pipe that may lose, delay, duplicate, trim or return packets.

use super::script::{self, Script};
use crate::contract::Transport;
use crate::flow::Flow;
use crate::packet::{Ext, Kind, Packet};
use base::{Dur, FlowId, HostId, Time};
use proptest::prelude::*;
use proptest::strategy::Union;
use std::collections::BTreeMap;

/// The fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives after the pipe's delay.
    Pass,
    /// It is lost.
    Drop,
    /// It arrives, and again one microsecond later.
    Twice,
    /// It arrives this much later than other packets.
    Late(Dur),
    /// It arrives, marked if it is ECN-capable.
    Mark,
    /// Data loses its payload, and its header arrives; other packets arrive unchanged.
    Trim,
    /// Data comes back to its sender; other packets are lost.
    Return,
}

/// Returns the number of random patterns of fates: `usual`, or `FLOWLOOM_PATTERNS` if it is set
/// (`make slow`).
pub fn patterns(usual: u32) -> u32 {
    std::env::var("FLOWLOOM_PATTERNS").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Random fates of fewer than `count` packets: most pass, the others are lost, duplicated or late,
/// or have one of the fates `more` with its weight.
pub fn fates(count: usize, more: &[(u32, Fate)]) -> impl Strategy<Value = Vec<Fate>> + use<> {
    let usual = [(4, Fate::Pass), (3, Fate::Drop), (1, Fate::Twice)];
    let fixed = usual.iter().chain(more).map(|(weight, fate)| (*weight, Just(*fate).boxed()));
    let late = (1u64..2_000).prop_map(|us| Fate::Late(Dur::from_us(us)));
    prop::collection::vec(Union::new_weighted(fixed.chain([(2, late.boxed())]).collect()), 0..count)
}

/// Returns flows of these sizes, every second one from host 1 to host 0.
pub fn both_ways(sizes: &[u64]) -> Vec<Flow> {
    let ends = |i: u32| (HostId(i % 2), HostId(1 - i % 2));
    let flow = |(id, size): (u32, &u64)| Flow { src: ends(id).0, dst: ends(id).1, ..script::flow(id, *size) };
    (0..).zip(sizes).map(flow).collect()
}

/// Two hosts, 0 and 1, and the packets between them.
pub struct Pipe<T> {
    /// Both hosts.
    pub hosts: [Script<T>; 2],
    /// Every packet handed to the pipe, lost ones included, in order, while `keep_log` is set.
    pub log: Vec<Packet>,
    /// Whether the log is kept.
    pub keep_log: bool,
    /// Called with a host after each of its events.
    pub watch: fn(&Script<T>),
    /// A flow that its sender gives up when the hosts have sent this number of packets.
    pub gives_up: Option<(u64, FlowId)>,
    // By arrival; at equal times in the order of departure.
    flying: BTreeMap<(Time, u64), Flying>,
    posted: u64,
    delay: Dur,
}

/// A packet on its way to a host, with its block of the sender's extension slab.
#[derive(Clone)]
struct Flying {
    packet: Packet,
    block: Option<Ext>,
    to: usize,
}

/// Runs `flow` between two hosts with these machines through a pipe of 50 us. Returns all packets.
pub fn exchange<T: Transport>(machine: impl Fn() -> T, flow: &Flow, fate: impl FnMut(&Packet) -> Fate) -> Vec<Packet> {
    let host = || Script::new(machine(), vec![flow.clone()]);
    let mut pipe = Pipe::new(host(), host(), Dur::from_us(50));
    pipe.run(fate);
    pipe.log
}

impl<T: Transport> Pipe<T> {
    /// Joins two hosts that know the same flows.
    pub fn new(first: Script<T>, second: Script<T>, delay: Dur) -> Pipe<T> {
        let hosts = [first, second.at_host(1)];
        Pipe { hosts, log: Vec::new(), keep_log: true, watch: |_| {}, gives_up: None, flying: BTreeMap::new(), posted: 0, delay }
    }
    fn post(&mut self, from: usize, packets: Vec<Packet>, fate: &mut dyn FnMut(&Packet) -> Fate) {
        (self.watch)(&self.hosts[from]);
        for mut packet in packets {
            let arrival = packet.sent_at + self.delay;
            let fate = fate(&packet);
            if self.keep_log {
                self.log.push(packet);
            }
            let slab = &mut self.hosts[from].ext;
            let block = packet.has(Packet::EXT).then(|| *slab.get(packet.ext()));
            if packet.has(Packet::EXT) {
                slab.remove(packet.ext());
            }
            if fate == Fate::Mark && packet.has(Packet::ECT) {
                packet.flags |= Packet::CE;
            }
            let is_data = packet.kind == Kind::DATA;
            let to = if fate == Fate::Return { from } else { 1 - from };
            match fate {
                Fate::Trim if is_data => packet.trim(64),
                Fate::Return if is_data => packet.turn_back(),
                _ => {}
            }
            let arrivals: &[Time] = match fate {
                Fate::Drop => &[],
                Fate::Return if !is_data => &[],
                Fate::Pass | Fate::Mark | Fate::Trim | Fate::Return => &[arrival],
                Fate::Twice => &[arrival, arrival + Dur::from_us(1)],
                Fate::Late(extra) => &[arrival + extra],
            };
            for &at in arrivals {
                self.flying.insert((at, self.posted), Flying { packet, block, to });
            }
            self.posted += 1;
        }
    }
    /// Runs with these fates of the first packets; later packets pass.
    pub fn run_fates(&mut self, fates: Vec<Fate>) {
        let mut fates = fates.into_iter();
        self.run(|_| fates.next().unwrap_or(Fate::Pass));
    }
    /// Opens every flow at its sender, and runs until no timer is armed and no packet is on its
    /// way. Fails if a flow is then unfinished or open, except for one that was given up.
    pub fn run(&mut self, mut fate: impl FnMut(&Packet) -> Fate) {
        for flow in self.hosts[0].flows.clone() {
            let from = flow.src.index();
            let sent = self.hosts[from].open(flow.id.0);
            self.post(from, sent, &mut fate);
        }
        loop {
            if let Some((_, flow)) = self.gives_up.take_if(|(count, _)| *count <= self.posted) {
                let from = self.hosts[0].flows[flow.index()].src.index();
                let sent = self.hosts[from].give_up(flow.0);
                self.post(from, sent, &mut fate);
            }
            let arrival = self.flying.first_key_value().map_or(Time::MAX, |(next, _)| next.0);
            let now = arrival.min(self.hosts[0].next_wake()).min(self.hosts[1].next_wake());
            if now == Time::MAX {
                break;
            }
            assert!(now < Time::ZERO + Dur::from_secs(100_000), "timers that never end");
            for host in [0, 1] {
                let sent = self.hosts[host].advance(now);
                self.post(host, sent, &mut fate);
            }
            while let Some(next) = self.flying.first_entry()
                && next.key().0 <= now
            {
                let Flying { mut packet, block, to } = next.remove();
                let host = &mut self.hosts[to];
                if let Some(block) = block {
                    packet.words[0] = u64::from(host.ext.insert(block));
                }
                let sent = host.packet(packet);
                packet.free(&mut host.ext);
                self.post(to, sent, &mut fate);
            }
        }
        for flow in &self.hosts[0].flows {
            let (src, dst) = (flow.src, flow.dst);
            let host = |id: HostId| &self.hosts[id.index()];
            let received = host(dst).table.get(flow.id);
            let given_up = host(src).table.get(flow.id).terminated;
            assert!(given_up || received.delivered_bytes == flow.size_bytes, "flow {} is unfinished", flow.id);
            assert!(host(src).table.get(flow.id).closed, "flow {} is open", flow.id);
            assert!(self.hosts.iter().all(|host| host.ext.is_empty()), "header blocks are left over");
            assert_eq!(host(src).machine.sample(flow.id), None, "flow {} left state behind", flow.id);
        }
    }
}
