//! The measurement window: transmissions and waiting bytes of every port, and bytes delivered to receivers,
//! between two times. The result is exact: all counts are read at both ends of the window. A reading does
//! not change the run.

use crate::actors::global::Global;
use crate::node::world::Carried;
use crate::outcome::Measured;
use crate::parallel::part::Part;
use crate::parallel::whole::Whole;
use crate::probe::Probe;
use base::{Dur, FlowId, LinkId, Time};
use engine::Driver;

/// Reads the counts at both ends of the window.
#[derive(Clone)]
pub struct WindowActor {
    bounds: scenario::Window,
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
    /// Creates a window that has not begun.
    pub fn new(bounds: scenario::Window) -> WindowActor {
        WindowActor { bounds, first: None, last: None }
    }
    /// Returns whether the window ends with the last flow.
    pub fn ends_with_last_flow(&self) -> bool {
        self.bounds.until.is_none() && self.last.is_none()
    }
    /// Returns when the window begins or ends next.
    pub fn next(&self) -> Time {
        match (&self.first, &self.last) {
            (None, _) => self.bounds.from,
            (Some(_), None) => self.bounds.until.unwrap_or(Time::MAX),
            (Some(_), Some(_)) => Time::MAX,
        }
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
    /// Ends the window at the present, if it has begun and not ended.
    pub fn close<E: Driver<Carried>, P: Probe>(&mut self, whole: &mut Whole<E, P>) {
        if self.is_open(whole.now()) {
            self.put(Reading::take(whole));
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
    fn take<E: Driver<Carried>, P: Probe>(whole: &mut Whole<E, P>) -> Reading {
        let (now, links) = (whole.now(), whole.links());
        let port = |link: LinkId| {
            let Part { world, engine } = whole.at_port(link);
            engine.catch_up(world, link, now.before(Dur(1)));
            let waiting = world.ports[link.index()].as_ref().map_or(0, |port| port.waited(now));
            (engine.busy(link), engine.queue_area(link) + waiting)
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
