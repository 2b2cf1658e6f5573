//! The times in which ports were paused, from the PAUSE frames in a trace.

use crate::probe::Seen;
use base::{FlowId, LinkId, Time};
use fabric::buffer::{Buffer as _, ORDER_BYTES};
use fabric::qdisc::{AnyQdisc, Qdisc as _};
use proto::{Kind, Packet};
use scenario::{Envs, RunSpec};
use std::collections::BTreeMap;
use std::ops::Range;

/// The flow id of orders to pause.
pub const ORDERS: FlowId = FlowId(u32::MAX);

/// The ports that were paused, by link.
#[derive(Default)]
pub struct Held(BTreeMap<LinkId, HeldPort>);

struct HeldPort {
    /// The port's queue discipline, which maps packets to classes.
    qdisc: AnyQdisc,
    /// By class: when it was paused, in order.
    classes: [Vec<Range<Time>>; 8],
}

impl Held {
    /// Reads the orders to pause in a trace. `seen` must be in order of time.
    pub fn new(spec: &RunSpec, envs: &Envs<'_>, seen: &[Seen]) -> Held {
        let mut held = Held::default();
        let pauses = spec.system.buffer.as_ref().is_some_and(|buffer| buffer.build(&envs.buffer(base::NodeId(0))).pauses());
        for seen in seen.iter().filter(|seen| pauses && seen.packet.kind == Kind::PAUSE && !seen.dropped) {
            let way = spec.net.link(seen.link);
            let at = seen.start + way.rate.tx_time(ORDER_BYTES.into()) + way.delay;
            let (params, env) = spec.port(way.reverse);
            let new = || HeldPort { qdisc: params.build(&env), classes: Default::default() };
            let port = held.0.entry(way.reverse).or_insert_with(new);
            let class = &mut port.classes[usize::from(seen.packet.words[0] as u8 & 7)];
            let is_held = class.last().is_some_and(|last| last.end == Time::MAX);
            match (seen.packet.words[1] != 0, class.last_mut()) {
                // The link goes down before the order arrives.
                _ if at >= seen.until => {}
                (true, _) if !is_held => class.push(at..Time::MAX),
                (false, Some(last)) if is_held => last.end = at,
                _ => {}
            }
            // An order is void once the link over which it came has gone down.
            if let Some(last) = class.last_mut().filter(|last| last.end == Time::MAX && seen.until < Time::MAX) {
                last.end = seen.until;
            }
        }
        held
    }
    /// Returns when the class of a packet was paused on a link that was not `busy`. `busy` must be in
    /// order of time.
    pub fn idle(&self, link: LinkId, packet: &Packet, busy: &[Range<Time>]) -> Vec<Range<Time>> {
        let mut idle = Vec::new();
        for held in self.before(link, packet, Time::MAX).collect::<Vec<_>>().into_iter().rev() {
            let mut from = held.start;
            let first = busy.partition_point(|busy| busy.end <= from);
            for busy in busy[first..].iter().take_while(|busy| busy.start < held.end) {
                if from < busy.start {
                    idle.push(from..busy.start);
                }
                from = from.max(busy.end);
            }
            if from < held.end {
                idle.push(from..held.end);
            }
        }
        idle
    }
    /// Returns the pauses of a packet's class on a link that began before `at`, the last one first.
    pub fn before(&self, link: LinkId, packet: &Packet, at: Time) -> impl Iterator<Item = &Range<Time>> {
        let held = self.0.get(&link).map_or(&[][..], |port| &port.classes[usize::from(port.qdisc.class(packet)) & 7]);
        let first = held.partition_point(|held| held.start < at);
        held[..first].iter().rev()
    }
}
