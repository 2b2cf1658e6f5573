//! Test helper: two hosts joined by a pipe that may lose, delay or double what goes through it.

use super::script::Script;
use crate::packet::{Ext, Packet};
use crate::transport::Transport;
use base::{Dur, HostId, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives after the pipe's delay.
    Pass,
    /// It is lost.
    Drop,
    /// It arrives, and again one microsecond later.
    Twice,
    /// It arrives this much later than the others.
    Late(Dur),
}

/// Two hosts, 0 and 1, and what is between them.
pub struct Pipe<T> {
    /// Both hosts.
    pub hosts: [Script<T>; 2],
    /// Every packet handed to the pipe, lost ones included, in order.
    pub log: Vec<Packet>,
    /// Their blocks of the sender's extension slab.
    blocks: Vec<Option<Ext>>,
    // (arrival, packet as an index into `log`, host it goes to).
    flying: BinaryHeap<Reverse<(Time, usize, usize)>>,
    delay: Dur,
}

impl<T: Transport> Pipe<T> {
    /// Joins two hosts that know the same flows.
    pub fn new(first: Script<T>, second: Script<T>, delay: Dur) -> Pipe<T> {
        Pipe { hosts: [first, second.at_host(1)], log: Vec::new(), blocks: Vec::new(), flying: BinaryHeap::new(), delay }
    }
    fn post(&mut self, from: usize, packets: Vec<Packet>, fate: &mut dyn FnMut(&Packet) -> Fate) {
        for packet in packets {
            let arrival = packet.sent_at + self.delay;
            let arrivals: &[Time] = match fate(&packet) {
                Fate::Pass => &[arrival],
                Fate::Drop => &[],
                Fate::Twice => &[arrival, arrival + Dur::from_us(1)],
                Fate::Late(extra) => &[arrival + extra],
            };
            for &at in arrivals {
                self.flying.push(Reverse((at, self.log.len(), 1 - from)));
            }
            let slab = &mut self.hosts[from].ext;
            self.blocks.push(packet.has(Packet::EXT).then(|| *slab.get(packet.ext())));
            if packet.has(Packet::EXT) {
                slab.remove(packet.ext());
            }
            self.log.push(packet);
        }
    }
    /// Opens every flow at its sender, and runs until nothing is armed and nothing flies. Fails when a flow is then unfinished or
    /// open.
    pub fn run(&mut self, mut fate: impl FnMut(&Packet) -> Fate) {
        for flow in self.hosts[0].flows.clone() {
            let from = flow.src.index();
            let sent = self.hosts[from].open(flow.id.0);
            self.post(from, sent, &mut fate);
        }
        loop {
            let arrival = self.flying.peek().map_or(Time::MAX, |Reverse(next)| next.0);
            let now = arrival.min(self.hosts[0].next_wake()).min(self.hosts[1].next_wake());
            if now == Time::MAX {
                break;
            }
            assert!(now < Time::ZERO + Dur::from_secs(100_000), "timers that never end");
            for host in [0, 1] {
                let sent = self.hosts[host].advance(now);
                self.post(host, sent, &mut fate);
            }
            while let Some(&Reverse((at, index, to))) = self.flying.peek() {
                if at > now {
                    break;
                }
                self.flying.pop();
                let (mut packet, host) = (self.log[index], &mut self.hosts[to]);
                if let Some(block) = self.blocks[index] {
                    packet.words[0] = u64::from(host.ext.insert(block));
                }
                let sent = host.packet(packet);
                if packet.has(Packet::EXT) {
                    host.ext.remove(packet.ext());
                }
                self.post(to, sent, &mut fate);
            }
        }
        for flow in &self.hosts[0].flows {
            let (src, dst) = (flow.src, flow.dst);
            let host = |id: HostId| &self.hosts[id.index()];
            let received = host(dst).table.get(flow.id);
            assert_eq!(received.delivered_bytes, flow.size_bytes, "flow {} is unfinished", flow.id);
            assert!(host(src).table.get(flow.id).closed, "flow {} is open", flow.id);
            assert!(self.hosts.iter().all(|host| host.ext.is_empty()), "header blocks are left over");
            assert_eq!(host(src).machine.sample(flow.id), None, "flow {} left state behind", flow.id);
        }
    }
}
