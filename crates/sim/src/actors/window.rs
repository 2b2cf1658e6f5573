//! The measurement window: transmissions and waiting bytes of every port, and bytes delivered to receivers,
//! between two times. The result is exact: all counts are read at both ends of the window. A reading does
//! not change the run.

use crate::actors::global::Global;
use crate::node::closing::ClosingFlows;
use crate::node::world::Carried;
use crate::outcome::Measured;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{Dur, FlowId, LinkId, Time};
use engine::Driver;
use proto::Flow;
use scenario::{CountedFlows, RunSpec, RunTraffic, Window, WindowEnd};

/// Reads the counts at both ends of the window.
#[derive(Clone)]
pub struct WindowActor {
    bounds: Window,
    /// The end of the window, once it is known.
    until: Option<Time>,
    /// Whether flows that start after the window do not count.
    only_flows: bool,
    first: Option<Reading>,
    last: Option<Reading>,
}

/// All counts at one time.
#[derive(Clone)]
pub struct Reading {
    /// The time.
    pub at: Time,
    /// By flow: payload bytes that the receiver has.
    pub delivered_bytes: Vec<u64>,
    /// By link: how long its transmitter has been busy, and the integral of waiting bytes over time, in
    /// units of 1 byte times 1024 ps.
    pub ports: Vec<(Dur, u64)>,
}

/// The use of a port in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PortUse {
    /// Time spent transmitting, in ps.
    pub busy_ps: u64,
    /// Bytes waiting, averaged over the window.
    pub mean_queue_bytes: f64,
}

impl WindowActor {
    /// Creates the window of a run before it begins; `None` if the run has no window.
    pub fn new(spec: &RunSpec, traffic: &RunTraffic) -> Option<WindowActor> {
        let bounds = spec.window(traffic)?;
        let until = if let WindowEnd::At(until) = bounds.until { Some(until) } else { None };
        let only_flows = spec.counted() == CountedFlows::Window;
        Some(WindowActor { bounds, until, only_flows, first: None, last: None })
    }
    /// Returns the flows with whose last finish the window ends; none if its end is known.
    pub fn closing(&self, flows: &[Flow]) -> ClosingFlows {
        let closes = |flow: &&Flow| match &self.bounds.until {
            WindowEnd::At(_) => false,
            WindowEnd::LastFinish => true,
            WindowEnd::Programs(workloads) => workloads.contains(&flow.workload),
        };
        ClosingFlows::new(flows.iter().filter(closes).map(|flow| flow.id).collect())
    }
    /// Sets the end of a window that ends with its closing flows, which have all ended at `now`. `tasks` is
    /// when the last task of a program ends.
    pub fn end_at(&mut self, now: Time, tasks: Option<Time>) {
        if self.is_open(now) {
            let tasks = tasks.filter(|_| self.is_of_programs());
            self.until = Some(tasks.map_or(now, |tasks| tasks.max(now)));
        }
    }
    /// Returns whether the end of the window is not known yet.
    pub fn end_is_open(&self) -> bool {
        self.until.is_none() && self.last.is_none()
    }
    /// Returns whether the window ends with programs.
    fn is_of_programs(&self) -> bool {
        matches!(self.bounds.until, WindowEnd::Programs(_))
    }
    /// Returns when the window begins or ends next.
    pub fn next(&self) -> Time {
        match (&self.first, &self.last) {
            (None, _) => self.bounds.from,
            (Some(_), None) => self.until.unwrap_or(Time::MAX),
            (Some(_), Some(_)) => Time::MAX,
        }
    }
    /// Returns whether a flow counts in metrics.
    pub fn counts(&self, flow: &Flow) -> bool {
        let after = self.last.as_ref().is_some_and(|last| flow.wait.is_none() && flow.start > last.at);
        flow.measured && !(self.only_flows && after)
    }
    /// Begins the window with this reading, or ends it.
    pub fn put(&mut self, reading: Reading) {
        if self.first.is_none() {
            self.first = Some(reading);
        } else {
            self.last = Some(reading);
        }
    }
    /// Returns whether the window has begun before `now` and not ended.
    pub fn is_open(&self, now: Time) -> bool {
        self.last.is_none() && self.first.as_ref().is_some_and(|first| first.at < now)
    }
    /// Ends the window with the run, if it has begun and not ended. A program may compute after the last
    /// event of a run that has `finished`: its window is as long, since nothing else happens.
    pub fn close(&mut self, now: Time, finished: bool, reading: impl FnOnce() -> Reading) {
        if self.is_open(now) {
            let until = self.until.filter(|_| finished && self.is_of_programs());
            self.put(Reading { at: until.unwrap_or(now), ..reading() });
        }
    }
    /// Returns the measurements of the window; `None` if the run ended before the window began.
    pub fn measured(&self) -> Option<Measured> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let all = |reading: &Reading| reading.delivered_bytes.iter().sum::<u64>();
        Some(Measured { from_ps: first.at.0, until_ps: last.at.0, delivered_bytes: all(last) - all(first) })
    }
    /// Returns the payload bytes of a flow that reached its receiver in the window; `None` if the run ended
    /// before the window began.
    pub fn delivered_bytes(&self, flow: FlowId) -> Option<u64> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        Some(last.delivered_bytes[flow.index()] - first.delivered_bytes[flow.index()])
    }
    /// Returns the use of a port in the window; `None` if the run ended before the window began.
    pub fn port(&self, link: LinkId) -> Option<PortUse> {
        let (first, last) = (self.first.as_ref()?, self.last.as_ref()?);
        let ((busy, area), (busy_before, area_before)) = (last.ports[link.index()], first.ports[link.index()]);
        let mean_queue_bytes = area.saturating_sub(area_before) as f64 * 1024.0 / (last.at - first.at).0 as f64;
        // The flow engine rounds busy times to whole picoseconds at both ends.
        Some(PortUse { busy_ps: (busy.0 - busy_before.0).min((last.at - first.at).0), mean_queue_bytes })
    }
}

impl Reading {
    /// Reads all counts at the present time, before the other events of that time.
    pub fn take<E: Driver<Carried>, P: Probe>(whole: &mut Whole<E, P>) -> Reading {
        let (now, links) = (whole.now(), whole.links());
        let port = |link: LinkId| {
            let part = whole.at_port(link);
            part.engine.catch_up(&mut part.world, link, now.before(Dur(1)));
            (part.engine.busy(link), part.queue_area(link))
        };
        let ports = links.map(port).collect();
        let delivered_bytes = whole.flows().iter().map(|flow| whole.progress(flow.id).0).collect();
        Reading { at: now, delivered_bytes, ports }
    }
}

impl Global for WindowActor {
    fn next(&self) -> Time {
        self.next()
    }
    fn act<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        self.put(Reading::take(whole));
    }
}
