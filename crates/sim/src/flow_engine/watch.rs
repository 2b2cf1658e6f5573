//! What watches a run of the flow engine: the measurement window and time series. Neither changes anything.

use super::world::World;
use crate::open::OpenFlows;
use crate::outcome::{Measured, SampleRow};
use crate::sample::look_at_switches;
use base::{Dur, FlowId, LinkId, Time};
use fabric::net::Net;
use scenario::Sample;

/// Reads all counts at both ends of the measurement window.
pub struct Window {
    bounds: scenario::Window,
    first: Option<Reading>,
    last: Option<Reading>,
}

/// All counts at one time.
struct Reading {
    at: Time,
    /// By flow: payload bytes that the receiver has.
    delivered_bytes: Vec<u64>,
    /// By link: how long it has carried bytes, in ps.
    busy: Vec<f64>,
}

impl Window {
    /// A window that has not begun.
    pub fn new(bounds: scenario::Window) -> Window {
        Window { bounds, first: None, last: None }
    }
    /// When the window begins or ends next.
    pub fn next(&self) -> Time {
        match (&self.first, &self.last) {
            (None, _) => self.bounds.from,
            (Some(_), None) => self.bounds.until.unwrap_or(Time::MAX),
            (Some(_), Some(_)) => Time::MAX,
        }
    }
    /// The window begins or ends.
    pub fn act(&mut self, world: &mut World, now: Time) {
        let reading = Some(Reading::take(world, now));
        if self.first.is_none() {
            self.first = reading;
        } else {
            self.last = reading;
        }
    }
    /// Ends the window at the present, if it has begun and not ended.
    pub fn close(&mut self, world: &mut World, now: Time) {
        if self.last.is_none() && self.first.as_ref().is_some_and(|first| first.at < now) {
            self.last = Some(Reading::take(world, now));
        }
    }
    /// The window as it was; `None` if the run ended before it began.
    pub fn measured(&self) -> Option<Measured> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let all = |reading: &Reading| reading.delivered_bytes.iter().sum::<u64>();
        Some(Measured { from_ps: first.at.0, until_ps: last.at.0, delivered_bytes: all(last) - all(first) })
    }
    /// Payload bytes of a flow that were delivered in the window; `None` if the run ended before it began.
    pub fn delivered_bytes(&self, flow: FlowId) -> Option<u64> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        Some(last.delivered_bytes[flow.index()] - first.delivered_bytes[flow.index()])
    }
    /// How long a link carried bytes in the window, in ps; `None` if the run ended before it began.
    pub fn busy_ps(&self, link: LinkId) -> Option<u64> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let busy = last.busy[link.index()] - first.busy[link.index()];
        Some((busy.max(0.0) as u64).min((last.at - first.at).0))
    }
}

impl Reading {
    fn take(world: &mut World, now: Time) -> Reading {
        world.fluid.settle_all(now);
        let busy = (0..world.routing.net.links().len() as u32).map(|link| world.fluid.busy(LinkId(link))).collect();
        let delivered_bytes = (0..world.flows.len() as u32).map(|flow| world.delivered(FlowId(flow))).collect();
        Reading { at: now, delivered_bytes, busy }
    }
}

/// Samples ports and flows at an interval, and keeps the samples.
pub struct Sampler {
    interval: Dur,
    /// When it looks next.
    pub next: Time,
    /// The ports to sample, with the busy time of each at the last sample, in ps.
    ports: Vec<(LinkId, f64)>,
    /// Flows; `None` if flows are not sampled.
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
            ports: chosen.map(|link| (link, 0.0)).collect(),
            open: sample.flows.then(OpenFlows::default),
            own: if sample.switches { vec![[0; 2]; net.nodes().len()] } else { Vec::new() },
            rows: Vec::new(),
        }
    }
    /// Takes a sample.
    pub fn act(&mut self, world: &mut World, now: Time) {
        world.fluid.settle_all(now);
        let row = |entity, metric, value| SampleRow { time_ps: now.0, entity, metric, value };
        for (link, before) in &mut self.ports {
            let busy = world.fluid.busy(*link);
            let share = (busy - std::mem::replace(before, busy)) / self.interval.0 as f64;
            self.rows.push(row(link.0, "port.utilisation", share.min(1.0)));
        }
        if let Some(open) = &mut self.open {
            let rate = |bytes: u64| bytes as f64 * 8.0 / self.interval.as_secs_f64();
            let seen = open.look(world.seen(now), |flow| world.progress(flow));
            self.rows.extend(seen.into_iter().map(|(flow, bytes)| row(flow.0, "flow.rate_bps", rate(bytes))));
        }
        look_at_switches(&mut self.own, &world.packets.nodes, now, &mut self.rows);
        self.next = now + self.interval;
    }
}
