//! When ports held packets back, by the orders that a trace shows.

use crate::probe::Seen;
use base::{FlowId, LinkId, Time};
use fabric::buffer::{Buffer as _, ORDER_BYTES};
use fabric::qdisc::{AnyQdisc, Qdisc as _};
use proto::{Kind, Packet};
use scenario::{Envs, RunSpec};
use std::collections::BTreeMap;
use std::ops::Range;

/// The flow that orders are of.
pub const ORDERS: FlowId = FlowId(u32::MAX);

/// The ports that held packets back, by link.
#[derive(Default)]
pub struct Held(BTreeMap<LinkId, HeldPort>);

struct HeldPort {
    /// It knows the classes of packets.
    qdisc: AnyQdisc,
    /// By class: when it was held, in order.
    classes: [Vec<Range<Time>>; 8],
}

impl Held {
    /// By the orders among what was seen, which is in order of time.
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
                // The link dies before the order has come.
                _ if at >= seen.until => {}
                (true, _) if !is_held => class.push(at..Time::MAX),
                (false, Some(last)) if is_held => last.end = at,
                _ => {}
            }
            // With the link dies what was said over it.
            if let Some(last) = class.last_mut().filter(|last| last.end == Time::MAX && seen.until < Time::MAX) {
                last.end = seen.until;
            }
        }
        held
    }
    /// When a link held the class of a packet and was not `busy`, which is in order.
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
    /// When a link held the class of a packet, of what began before a time; the last first.
    pub fn before(&self, link: LinkId, packet: &Packet, at: Time) -> impl Iterator<Item = &Range<Time>> {
        let held = self.0.get(&link).map_or(&[][..], |port| &port.classes[usize::from(port.qdisc.class(packet)) & 7]);
        let first = held.partition_point(|held| held.start < at);
        held[..first].iter().rev()
    }
}
