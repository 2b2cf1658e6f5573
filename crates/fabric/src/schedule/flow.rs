//! Flows as fluids in a network.

use base::Time;
use std::collections::VecDeque;
use std::mem::take;

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FluidFlow {
    /// When the flow arrives; ignored for a flow that waits for others.
    pub arrival: Time,
    /// Bytes to send, headers included; at least 1.
    pub wire_bytes: u64,
    /// The flow's links in order, as indices into the capacities. A flow without links ends when it arrives.
    pub path: Vec<usize>,
    /// The flow's deadline, for orders that use deadlines.
    pub deadline: Option<Time>,
    /// The ends of other flows that the flow waits for before it arrives, if any.
    pub wait: Option<FluidWait>,
}

impl FluidFlow {
    /// Returns the deadline in seconds of a flow that arrives at `at`.
    pub fn deadline_at(&self, at: f64) -> Option<f64> {
        match &self.wait {
            Some(wait) => wait.allowed.map(|allowed| at + allowed),
            None => self.deadline.map(Time::as_secs_f64),
        }
    }
}

/// The condition for the arrival of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FluidWait {
    /// The flows to wait for, each with the time in seconds from its end to the arrival.
    pub on: Vec<(usize, f64)>,
    /// The joins to wait for, each with the time in seconds from the join to the arrival.
    pub joins: Vec<(usize, f64)>,
    /// Earliest arrival, in seconds.
    pub not_before: f64,
    /// For each of these flows, the time in seconds from its arrival after which it is no longer
    /// waited for.
    pub give_up_after: Option<Vec<f64>>,
    /// Time from the arrival to the deadline in seconds, if there is a deadline.
    pub allowed: Option<f64>,
}

/// A moment of a host for which flows may wait: several flows have ended.
#[derive(Clone, Debug, PartialEq)]
pub struct FluidJoin {
    /// The flows that must have ended, each with the delay after its end and with the time from its end
    /// until the host knows it, in seconds.
    pub on: Vec<(usize, [f64; 2])>,
    /// The joins that must have happened, each with a delay in seconds.
    pub joins: Vec<(usize, f64)>,
}

/// Called repeatedly with the present time in seconds and the number of ended flows. Returns
/// whether to continue.
pub type GoOn<'a> = &'a mut dyn FnMut(f64, usize) -> bool;

/// Number of arrivals and ends between two calls of [`GoOn`].
pub(super) const PATIENCE: usize = 1 << 10;

/// The flows that have not arrived yet, by arrival and then by index. Flows that wait for others
/// are added when the others have ended.
pub(super) struct Arrivals<'a> {
    flows: &'a [FluidFlow],
    /// The arrival of each flow in seconds; infinity while it is unknown.
    at: Vec<f64>,
    coming: VecDeque<usize>,
    /// For each flow: the flows that wait for its end, and its index among the flows that they wait
    /// for.
    next: Vec<Vec<(usize, usize)>>,
    /// For each flow and each flow that it waits for: the latest arrival that the latter allows;
    /// infinity while it is unknown.
    latest: Vec<Vec<f64>>,
    /// For each flow: the joins that wait for its end, each with two times as in [`FluidJoin::on`].
    ends: Vec<Vec<(usize, [f64; 2])>>,
    joins: Vec<FluidJoinState>,
}

/// The state of a join.
#[derive(Default)]
struct FluidJoinState {
    /// Number of ends and joins that it waits for.
    missing: usize,
    /// The latest end plus its delays, and the time at which the host knows all ends.
    time: [f64; 2],
    /// The joins that wait for it, each with a delay.
    joins: Vec<(usize, f64)>,
    /// The flows that wait for it, each with the place of the join in `latest` and a delay.
    flows: Vec<(usize, usize, f64)>,
}

impl FluidJoinState {
    /// Records the time of an end or a join. Returns whether it was the last.
    fn learn(&mut self, time: [f64; 2]) -> bool {
        self.time = [self.time[0].max(time[0]), self.time[1].max(time[1])];
        self.missing -= 1;
        self.missing == 0
    }
}

impl<'a> Arrivals<'a> {
    /// Returns the arrivals of all flows. `joins` are the joins for which they wait.
    pub fn new(flows: &'a [FluidFlow], joins: &[FluidJoin]) -> Self {
        let mut coming: Vec<usize> = (0..flows.len()).filter(|&flow| flows[flow].wait.is_none()).collect();
        coming.sort_by_key(|&flow| (flows[flow].arrival, flow));
        let at = flows.iter().map(|flow| if flow.wait.is_some() { f64::INFINITY } else { flow.arrival.as_secs_f64() });
        let mut next = vec![Vec::new(); flows.len()];
        for (index, flow) in flows.iter().enumerate() {
            let on = flow.wait.iter().flat_map(|wait| &wait.on).enumerate();
            on.for_each(|(place, &(other, _))| next[other].push((index, place)));
        }
        let count = |flow: &FluidFlow| flow.wait.as_ref().map_or(0, |wait| wait.on.len() + wait.joins.len());
        let latest = flows.iter().map(|flow| vec![f64::INFINITY; count(flow)]);
        let state = |join: &FluidJoin| FluidJoinState { missing: join.on.len() + join.joins.len(), ..FluidJoinState::default() };
        let (mut ends, mut states) = (vec![Vec::new(); flows.len()], joins.iter().map(state).collect::<Vec<_>>());
        for (index, join) in joins.iter().enumerate() {
            join.on.iter().for_each(|&(flow, times)| ends[flow].push((index, times)));
            join.joins.iter().for_each(|&(other, delay)| states[other].joins.push((index, delay)));
        }
        for (index, wait) in flows.iter().enumerate().filter_map(|(index, flow)| Some((index, flow.wait.as_ref()?))) {
            let places = wait.on.len()..;
            wait.joins.iter().zip(places).for_each(|(&(join, delay), place)| states[join].flows.push((index, place, delay)));
        }
        Arrivals { flows, at: at.collect(), coming: coming.into(), next, latest: latest.collect(), ends, joins: states }
    }
    /// Returns the next arrival in seconds; infinity if none is known.
    pub fn next(&self) -> f64 {
        self.coming.front().map_or(f64::INFINITY, |&flow| self.at[flow])
    }
    /// Returns the arrival of a flow in seconds.
    pub fn at(&self, flow: usize) -> f64 {
        self.at[flow]
    }
    /// Removes and returns the next flow that has arrived by `now`.
    pub fn take(&mut self, now: f64) -> Option<usize> {
        let flow = if self.next() <= now { self.coming.pop_front() } else { None }?;
        self.latest[flow] = Vec::new();
        let at = self.at[flow];
        self.learn(flow, |wait, place| Some(at + wait.give_up_after.as_ref()?[place]));
        Some(flow)
    }
    /// Records that a flow has ended at `now`, which lets flows arrive that waited only for it.
    pub fn on_end(&mut self, flow: usize, now: f64) {
        self.learn(flow, |wait, place| Some(now + wait.on[place].1));
        let ends = take(&mut self.ends[flow]).into_iter();
        let mut happened: Vec<usize> =
            ends.filter_map(|(join, times)| self.joins[join].learn(times.map(|time| now + time)).then_some(join)).collect();
        while let Some(join) = happened.pop() {
            let FluidJoinState { time, joins, flows, .. } = take(&mut self.joins[join]);
            for (join, delay) in joins {
                happened.extend(self.joins[join].learn([time[0] + delay, time[1]]).then_some(join));
            }
            flows.into_iter().for_each(|(flow, place, delay)| self.allow(flow, place, time[1].max(time[0] + delay)));
        }
    }
    /// Updates the arrivals of the flows that wait for `flow`. `allows` returns the latest arrival
    /// that `flow` allows.
    fn learn(&mut self, flow: usize, allows: impl Fn(&FluidWait, usize) -> Option<f64>) {
        for number in 0..self.next[flow].len() {
            let (index, place) = self.next[flow][number];
            let Some(at) = self.flows[index].wait.as_ref().and_then(|wait| allows(wait, place)) else { continue };
            self.allow(index, place, at);
        }
    }
    /// Stores the latest arrival that a flow or a join allows a flow that waits for it at `place`.
    fn allow(&mut self, index: usize, place: usize, at: f64) {
        // A flow that has arrived ignores this.
        let Some(latest) = self.latest[index].get_mut(place).filter(|latest| at < **latest) else { return };
        *latest = at;
        let not_before = self.flows[index].wait.as_ref().map_or(0.0, |wait| wait.not_before);
        let at = self.latest[index].iter().copied().fold(not_before, f64::max);
        let before = std::mem::replace(&mut self.at[index], at);
        if at == before {
            return;
        }
        if before.is_finite() {
            self.coming.retain(|&other| other != index);
        }
        let place = self.coming.partition_point(|&other| (self.at[other], other) < (at, index));
        self.coming.insert(place, index);
    }
}
