//! Flows as fluids: their remaining bytes, their rates on links, and the bytes that links have
//! carried.

use super::ends::Ends;
use super::rates::Rates;
use crate::net::Net;
use base::{Dur, FlowId, FlowMap, LinkId, Time};

/// Bits in a byte times picoseconds in a second.
const BITS_PS: f64 = 8e12;

/// The flows that have started and not finished.
pub struct Flows {
    rates: Rates,
    ends: Ends,
    live: FlowMap<Live>,
    /// The flow of each subflow.
    owner: Vec<FlowId>,
    /// For each link: bytes per picosecond while it is up, and the bytes that it has carried.
    capacity: Vec<f64>,
    carried: Vec<f64>,
    /// Bytes that flows have sent, summed over all links of their paths, for the audit.
    sent_over_links: f64,
    /// Minimum time between two computations of rates, and the time of the last one.
    step: Dur,
    solved: Option<Time>,
}

/// A flow that has started and not finished.
#[derive(Debug, Default)]
struct Live {
    /// Bytes on the wire, and how many of them remain.
    size: f64,
    left: f64,
    /// The present paths, each as a subflow with its rate in bytes per picosecond.
    subflows: Vec<(u32, f64)>,
    /// The time at which `left` was updated.
    since: Time,
}

/// A path of a flow: its links, each with the fraction of the bytes that crosses it, and the flow's
/// weight on the path. A fraction below 1 means that the bytes are spread over several links.
pub type FluidPath<'a> = (&'a [(LinkId, f64)], f64);

impl Flows {
    /// Returns an empty set of flows on a network.
    pub fn new(net: &Net, step: Dur) -> Flows {
        let capacity: Vec<f64> = net.links().iter().map(|link| link.rate.bps() as f64 / BITS_PS).collect();
        Flows {
            rates: Rates::new(capacity.clone()),
            ends: Ends::default(),
            live: FlowMap::default(),
            owner: Vec::new(),
            carried: vec![0.0; capacity.len()],
            capacity,
            sent_over_links: 0.0,
            step,
            solved: None,
        }
    }

    /// Starts a flow, without a path.
    pub fn start(&mut self, flow: FlowId, wire_bytes: u64, now: Time) {
        let size = wire_bytes as f64;
        self.live.insert(flow, Live { size, left: size, subflows: Vec::new(), since: now });
    }

    /// Removes a finished flow.
    pub fn finish(&mut self, flow: FlowId) {
        self.live.remove(flow);
    }

    /// Returns whether a flow has started and not finished.
    pub fn is_open(&self, flow: FlowId) -> bool {
        self.live.contains(flow)
    }

    /// Returns whether a flow has started and has bytes left to send.
    pub fn is_moving(&self, flow: FlowId) -> bool {
        self.live.get(flow).is_some_and(|live| live.left > 0.0)
    }

    /// Returns the flows that have started and not finished, by id.
    pub fn open(&self) -> Vec<FlowId> {
        let mut open: Vec<FlowId> = self.live.iter().map(|(flow, _)| flow).collect();
        open.sort_unstable();
        open
    }

    /// Sets the paths of a flow with bytes left. Its rate is 0 until rates are computed again. Does
    /// nothing if the flow already has these paths.
    pub fn set_paths(&mut self, flow: FlowId, paths: &[FluidPath<'_>], now: Time) {
        let Some(live) = self.live.get(flow).filter(|live| live.left > 0.0) else { return };
        let same = |((subflow, _), (links, _)): (&(u32, f64), &FluidPath<'_>)| self.rates.links(*subflow).eq(numbers(links));
        if live.subflows.len() == paths.len() && live.subflows.iter().zip(paths).all(same) {
            return;
        }
        self.settle(flow, now);
        self.drop_subflows(flow);
        for (links, weight) in paths {
            let subflow = self.rates.add(numbers(links), *weight);
            if self.owner.len() <= subflow as usize {
                self.owner.resize(subflow as usize + 1, flow);
            }
            self.owner[subflow as usize] = flow;
            let live = self.live.get_mut(flow).expect("seen above");
            live.subflows.push((subflow, 0.0));
        }
        self.ends.set(flow.0, Time::MAX);
    }

    fn drop_subflows(&mut self, flow: FlowId) {
        let Some(live) = self.live.get_mut(flow) else { return };
        for (subflow, _) in live.subflows.drain(..) {
            self.rates.remove(subflow);
        }
    }

    /// Records that a link goes down or comes up. Flows over a dead link stop at once.
    pub fn set_link(&mut self, link: LinkId, up: bool, now: Time) {
        let capacity = if up { self.capacity[link.index()] } else { 0.0 };
        self.rates.set_capacity(link.0, capacity);
        if !up {
            self.solve(now);
        }
    }

    /// Returns when rates must be computed next; `Time::MAX` if nothing has changed.
    pub fn solves_at(&self) -> Time {
        if !self.rates.is_due() {
            return Time::MAX;
        }
        self.solved.map_or(Time::ZERO, |solved| solved + self.step)
    }

    /// Computes the rates.
    pub fn solve(&mut self, now: Time) {
        self.solved = Some(now);
        for subflow in self.rates.solve() {
            let flow = self.owner[subflow as usize];
            let rate = self.rates.rate(subflow);
            let Some(live) = self.live.get(flow) else { continue };
            // A removed subflow may have no flow, or belong to another flow now.
            let Some(place) = live.subflows.iter().position(|(own, _)| *own == subflow) else { continue };
            if live.subflows[place].1 == rate {
                continue;
            }
            self.settle(flow, now);
            let live = self.live.get_mut(flow).expect("seen above");
            live.subflows[place].1 = rate;
            let all: f64 = live.subflows.iter().map(|(_, rate)| rate).sum();
            let end = if all > 0.0 { now.after(ceil(live.left / all)) } else { Time::MAX };
            self.ends.set(flow.0, end);
        }
    }

    /// Returns the next time at which the last byte of a flow leaves its sender; `Time::MAX` if
    /// there is none.
    pub fn next_end(&self) -> Time {
        self.ends.first().map_or(Time::MAX, |(at, _)| at)
    }

    /// Ends the next flow whose last byte leaves its sender by `now`. The flow is removed from its
    /// links, and stays open.
    pub fn pop_end(&mut self, now: Time) -> Option<FlowId> {
        let (_, number) = self.ends.first().filter(|(at, _)| *at <= now)?;
        let flow = FlowId(number);
        self.ends.set(number, Time::MAX);
        self.settle(flow, now);
        if let Some(live) = self.live.get_mut(flow) {
            live.left = 0.0;
        }
        self.drop_subflows(flow);
        Some(flow)
    }

    /// Moves a flow's bytes up to `now`.
    pub fn settle(&mut self, flow: FlowId, now: Time) {
        let Some(live) = self.live.get_mut(flow) else { return };
        let time = (now - live.since).0 as f64;
        live.since = now;
        for (subflow, rate) in &live.subflows {
            // The last step may be a picosecond too long.
            let bytes = (rate * time).min(live.left);
            live.left -= bytes;
            let mut hops = 0.0;
            for (link, share) in self.rates.links(*subflow) {
                hops += share;
                self.carried[link as usize] += bytes * share;
            }
            self.sent_over_links += bytes * hops;
        }
    }

    /// Moves the bytes of all flows up to `now`, so that all counts are valid for `now`.
    pub fn settle_all(&mut self, now: Time) {
        for flow in self.open() {
            self.settle(flow, now);
        }
    }

    /// Returns the fraction of its bytes that an open flow has sent, as of the last settlement.
    pub fn share_sent(&self, flow: FlowId) -> Option<f64> {
        self.live.get(flow).map(|live| if live.size > 0.0 { 1.0 - live.left / live.size } else { 1.0 })
    }

    /// Returns the bytes that a link has carried, as of the last settlement.
    pub fn carried(&self, link: LinkId) -> f64 {
        self.carried[link.index()]
    }

    /// Returns for how long a link has carried bytes in total, in ps.
    pub fn busy(&self, link: LinkId) -> f64 {
        self.carried[link.index()] / self.capacity[link.index()]
    }

    /// Checks that links have carried what flows have sent, and not more than their capacity.
    /// Panics otherwise.
    pub fn audit(&self, now: Time) {
        let carried: f64 = self.carried.iter().sum();
        let apart = (carried - self.sent_over_links).abs();
        assert!(
            apart <= 1e-6 * carried + 1.0,
            "links have carried {carried} bytes, and flows have sent {} over them",
            self.sent_over_links
        );
        for (link, (carried, capacity)) in self.carried.iter().zip(&self.capacity).enumerate() {
            let most = capacity * now.0 as f64;
            assert!(*carried <= most * (1.0 + 1e-9) + 1.0, "link {link} has carried {carried} bytes, more than {most}");
        }
    }
}

/// Returns the links of a path with the numbers that [`Rates`] uses.
fn numbers(links: &[(LinkId, f64)]) -> impl Iterator<Item = (u32, f64)> {
    links.iter().map(|(link, share)| (link.0, *share))
}

/// Returns a time in ps, rounded up.
fn ceil(ps: f64) -> Dur {
    // Conversion to an integer truncates, and saturates at the largest value.
    let floor = ps as u64;
    Dur(if (floor as f64) < ps { floor.saturating_add(1) } else { floor })
}
