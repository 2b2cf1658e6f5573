//! Time series: ports and flows looked at every so often, as global actions.
//!
//! Looking changes nothing: a run with samples gives the same flows and counters as one without.

use crate::outcome::SampleRow;
use crate::probe::Probe;
use crate::world::{Carried, World};
use base::{Dur, FlowId, LinkId, Time};
use engine::Links;
use fabric::net::Net;
use proto::transport::Transport;
use scenario::Sample;

/// When to look, and what was seen.
pub struct Sampler {
    interval: Dur,
    next: Time,
    /// The ports to look at, and how long each had been busy at the last look.
    ports: Vec<(LinkId, Dur)>,
    /// Open flows and their delivered bytes at the last look; `None` when flows are not looked at.
    open: Option<Vec<(FlowId, u64)>>,
    started: usize,
    /// What was seen, by time.
    pub rows: Vec<SampleRow>,
}

impl Sampler {
    /// Looks every interval from its first end on.
    pub fn new(sample: &Sample, net: &Net) -> Sampler {
        let every = (0..net.links().len() as u32).map(LinkId);
        let chosen = every.filter(|link| sample.ports && sample.port.is_none_or(|only| only == *link));
        Sampler {
            interval: sample.interval,
            next: Time::ZERO + sample.interval,
            ports: chosen.map(|link| (link, Dur::ZERO)).collect(),
            open: sample.flows.then(Vec::new),
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
    for i in 0..sampler.ports.len() {
        look_at_port(world, links, &mut sampler, i);
    }
    look_at_flows(world, &mut sampler, now);
    sampler.next = now + sampler.interval;
    world.sampler = Some(sampler);
}

fn look_at_port<P: Probe>(world: &mut World<P>, links: &mut impl Links<Carried>, sampler: &mut Sampler, index: usize) {
    let (link, before) = sampler.ports[index];
    let now = links.now();
    links.catch_up(world, link, now.before(Dur(1)));
    let waiting = match &world.ports[link.index()] {
        Some(port) => fabric::qdisc::Qdisc::backlog(&port.qdisc).bytes,
        None => links.fifo_backlog(link).1,
    };
    let busy = links.busy(link);
    let share = (busy - before).0 as f64 / sampler.interval.0 as f64;
    sampler.ports[index].1 = busy;
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
