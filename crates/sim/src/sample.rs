//! Time series: ports, flows and switches sampled at an interval, as global actions.
//!
//! Sampling changes nothing: a run with samples gives the same flows and counters as one without.

use crate::global::Global;
use crate::open::OpenFlows;
use crate::outcome::SampleRow;
use crate::probe::Probe;
use crate::world::{Carried, NodeCounts, World};
use base::{Dur, LinkId, Time};
use engine::{Driver, Links};
use fabric::net::Net;
use proto::Transport;
use scenario::Sample;

/// Samples ports, flows and switches at an interval, and keeps the samples.
pub struct Sampler {
    interval: Dur,
    next: Time,
    /// The ports to sample, with the busy time of each at the last sample.
    ports: Vec<(LinkId, Dur)>,
    /// Open flows; `None` if flows are not sampled.
    open: Option<OpenFlows>,
    /// By node: packets made and taken up to the last sample; empty if switches are not sampled.
    own: Vec<[u64; 2]>,
    /// The samples, by time.
    pub rows: Vec<SampleRow>,
}

impl Sampler {
    /// Samples from the end of the first interval on.
    pub fn new(sample: &Sample, net: &Net) -> Sampler {
        let every = (0..net.links().len() as u32).map(LinkId);
        let chosen = every.filter(|link| sample.ports && sample.port.is_none_or(|only| only == *link));
        Sampler {
            interval: sample.interval,
            next: Time::ZERO + sample.interval,
            ports: chosen.map(|link| (link, Dur::ZERO)).collect(),
            open: sample.flows.then(OpenFlows::default),
            own: if sample.switches { vec![[0; 2]; net.nodes().len()] } else { Vec::new() },
            rows: Vec::new(),
        }
    }
    fn look_at_port<P: Probe>(&mut self, world: &mut World<P>, links: &mut impl Links<Carried>, index: usize) {
        let (link, before) = self.ports[index];
        let now = links.now();
        links.catch_up(world, link, now.before(Dur(1)));
        let waiting = match &world.ports[link.index()] {
            Some(port) => fabric::qdisc::Qdisc::backlog(&port.qdisc).bytes,
            None => links.fifo_backlog(link).1,
        };
        let busy = links.busy(link);
        let share = (busy - before).0 as f64 / self.interval.0 as f64;
        self.ports[index].1 = busy;
        let row = |metric, value| SampleRow { time_ps: now.0, entity: link.0, metric, value };
        self.rows.push(row("port.queue_bytes", waiting as f64));
        self.rows.push(row("port.utilisation", share));
    }

    fn look_at_flows<P: Probe>(&mut self, world: &World<P>, now: Time) {
        let Some(open) = &mut self.open else { return };
        for (flow, delivered) in open.look(world.seen(now), |flow| world.progress(flow)) {
            let rate = delivered as f64 * 8.0 / self.interval.as_secs_f64();
            let row = |metric, value| SampleRow { time_ps: now.0, entity: flow.0, metric, value };
            self.rows.push(row("flow.rate_bps", rate));
            let sender = &world.hosts[world.flows[flow.index()].src.index()].transport;
            if let Some(sample) = sender.sample(flow) {
                self.rows.push(row("flow.cwnd_bytes", sample.cwnd_bytes as f64));
                // Zero stands for none.
                let others = [("flow.ssthresh_bytes", sample.ssthresh_bytes as f64), ("flow.srtt_s", sample.srtt.as_secs_f64())];
                self.rows.extend(others.into_iter().filter(|(_, value)| *value > 0.0).map(|(metric, value)| row(metric, value)));
            }
        }
    }
}

/// Adds the packets that switches have made and taken since the last look, for those that have; `before` are those of the last look.
pub fn look_at_switches(before: &mut [[u64; 2]], nodes: &[NodeCounts], now: Time, rows: &mut Vec<SampleRow>) {
    for (node, (before, counts)) in before.iter_mut().zip(nodes).enumerate() {
        let own = [counts.made, counts.taken];
        for (metric, new) in ["switch.made_packets", "switch.taken_packets"].into_iter().zip([0, 1].map(|i| own[i] - before[i])) {
            if new > 0 {
                rows.push(SampleRow { time_ps: now.0, entity: node as u32, metric, value: new as f64 });
            }
        }
        *before = own;
    }
}

impl Global for Sampler {
    fn next(&self) -> Time {
        self.next
    }
    fn act<P: Probe>(&mut self, world: &mut World<P>, links: &mut impl Driver<Carried>) {
        let now = links.now();
        for i in 0..self.ports.len() {
            self.look_at_port(world, links, i);
        }
        self.look_at_flows(world, now);
        look_at_switches(&mut self.own, &world.nodes, now, &mut self.rows);
        self.next = now + self.interval;
    }
}
