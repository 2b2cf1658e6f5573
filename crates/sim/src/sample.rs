//! Time series: ports and flows looked at every so often, as global actions.
//!
//! Looking changes nothing: a run with samples gives the same flows and counters as one without.

use crate::outcome::SampleRow;
use crate::probe::Probe;
use crate::world::{Carried, World};
use base::{Dur, FlowId, LinkId, Time};
use engine::Links;
use proto::transport::Transport;

/// When to look, and what was seen.
pub struct Sampler {
    interval: Dur,
    next: Time,
    ports: u32,
    /// Busy time of every port at the last look; empty when ports are not looked at.
    busy: Vec<Dur>,
    /// Open flows and their delivered bytes at the last look; `None` when flows are not looked at.
    open: Option<Vec<(FlowId, u64)>>,
    started: usize,
    /// What was seen, by time.
    pub rows: Vec<SampleRow>,
}

impl Sampler {
    /// Looks every `interval` from time `interval` on.
    pub fn new(interval: Dur, links: u32, ports: bool, flows: bool) -> Sampler {
        Sampler {
            interval,
            next: Time::ZERO + interval,
            ports: links,
            busy: vec![Dur::ZERO; if ports { links as usize } else { 0 }],
            open: flows.then(Vec::new),
            started: 0,
            rows: Vec::new(),
        }
    }
    /// When the next look is due.
    pub fn next(&self) -> Time {
        self.next
    }
}

/// Looks at everything now.
pub fn take<P: Probe>(world: &mut World<P>, links: &mut impl Links<Carried>) {
    let Some(mut sampler) = world.sampler.take() else { return };
    let now = links.now();
    if !sampler.busy.is_empty() {
        (0..sampler.ports).for_each(|link| look_at_port(world, links, &mut sampler, LinkId(link)));
    }
    look_at_flows(world, &mut sampler, now);
    sampler.next = now + sampler.interval;
    world.sampler = Some(sampler);
}

fn look_at_port<P: Probe>(world: &mut World<P>, links: &mut impl Links<Carried>, sampler: &mut Sampler, link: LinkId) {
    let now = links.now();
    world.catch_up(links, link, now.before(Dur(1)));
    let waiting = match &world.ports[link.index()] {
        Some(port) => fabric::qdisc::Qdisc::backlog(&port.qdisc).bytes,
        None => links.fifo_backlog(link).1,
    };
    let busy = links.busy(link);
    let share = (busy - sampler.busy[link.index()]).0 as f64 / sampler.interval.0 as f64;
    sampler.busy[link.index()] = busy;
    let row = |metric, value| SampleRow { time_ps: now.0, entity: link.0, metric, value };
    sampler.rows.push(row("port.queue_bytes", waiting as f64));
    sampler.rows.push(row("port.utilisation", share));
}

fn look_at_flows<P: Probe>(world: &World<P>, sampler: &mut Sampler, now: Time) {
    let Some(open) = &mut sampler.open else { return };
    while let Some(flow) = world.flows.get(sampler.started).filter(|flow| flow.start < now) {
        open.push((flow.id, 0));
        sampler.started += 1;
    }
    for (flow, before) in open.iter_mut() {
        let delivered = world.table.get(*flow).delivered_bytes;
        let rate = (delivered - *before) as f64 * 8.0 / sampler.interval.as_secs_f64();
        *before = delivered;
        let row = |metric, value| SampleRow { time_ps: now.0, entity: flow.0, metric, value };
        sampler.rows.push(row("flow.rate_bps", rate));
        let sender = &world.hosts[world.flows[flow.index()].src.index()].transport;
        if let Some(sample) = sender.sample(*flow) {
            sampler.rows.push(row("flow.cwnd_bytes", sample.cwnd_bytes as f64));
        }
    }
    open.retain(|(flow, _)| world.table.get(*flow).finish == Time::MAX);
}
