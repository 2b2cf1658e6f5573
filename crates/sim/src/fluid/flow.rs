//! Flows of the fluid of a network.

use base::Time;
use std::collections::VecDeque;

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// When the flow arrives; of no meaning for a flow that waits.
    pub arrival: Time,
    /// Bytes to send, headers included; at least 1.
    pub wire_bytes: u64,
    /// The flow's links in order, as indices into the capacities. A flow without links ends when it arrives.
    pub path: Vec<usize>,
    /// The flow's deadline, used by EDF only.
    pub deadline: Option<Time>,
    /// The ends that the flow waits for before it arrives, if it does.
    pub wait: Option<Wait>,
}

/// What a flow waits for before it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// Other flows, each with the time in seconds from its end to the arrival.
    pub on: Vec<(usize, f64)>,
    /// From the arrival to the deadline in seconds, if there is one.
    pub allowed: Option<f64>,
}

/// Called from time to time with the present time in seconds and the number of flows that have ended; returns whether to go on.
pub type GoOn<'a> = &'a mut dyn FnMut(f64, usize) -> bool;

/// Arrivals and ends between two calls of [`GoOn`].
pub(super) const PATIENCE: usize = 1 << 10;

/// The flows that have not arrived yet, by arrival and then by index. Those that wait for others come in when the others have ended.
pub(super) struct Arrivals {
    /// Per flow: its arrival in seconds; infinity until it is known.
    at: Vec<f64>,
    coming: VecDeque<usize>,
    /// Per flow: the flows that wait for its end.
    next: Vec<Vec<(usize, f64)>>,
    /// Per flow: the ends that are missing, and the latest arrival that the known ones ask for.
    missing: Vec<(usize, f64)>,
}

impl Arrivals {
    /// All flows.
    pub fn new(flows: &[Flow]) -> Arrivals {
        let mut coming: Vec<usize> = (0..flows.len()).filter(|&flow| flows[flow].wait.is_none()).collect();
        coming.sort_by_key(|&flow| (flows[flow].arrival, flow));
        let at = flows.iter().map(|flow| if flow.wait.is_some() { f64::INFINITY } else { flow.arrival.as_secs_f64() });
        let mut next = vec![Vec::new(); flows.len()];
        for (index, flow) in flows.iter().enumerate() {
            flow.wait.iter().flat_map(|wait| &wait.on).for_each(|&(other, delay)| next[other].push((index, delay)));
        }
        let missing = flows.iter().map(|flow| (flow.wait.as_ref().map_or(0, |wait| wait.on.len()), 0.0));
        Arrivals { at: at.collect(), coming: coming.into(), next, missing: missing.collect() }
    }
    /// The next arrival in seconds; infinity if none is known.
    pub fn next(&self) -> f64 {
        self.coming.front().map_or(f64::INFINITY, |&flow| self.at[flow])
    }
    /// The arrival of a flow in seconds.
    pub fn at(&self, flow: usize) -> f64 {
        self.at[flow]
    }
    /// Takes the next flow that has arrived by `now`.
    pub fn take(&mut self, now: f64) -> Option<usize> {
        if self.next() <= now { self.coming.pop_front() } else { None }
    }
    /// A flow has ended at `now`: those arrive that waited for it last.
    pub fn on_end(&mut self, flow: usize, now: f64) {
        for (index, delay) in std::mem::take(&mut self.next[flow]) {
            let (missing, at) = &mut self.missing[index];
            *missing -= 1;
            *at = at.max(now + delay);
            if *missing == 0 {
                self.at[index] = *at;
                let key = (*at, index);
                let place = self.coming.partition_point(|&other| (self.at[other], other) < key);
                self.coming.insert(place, index);
            }
        }
    }
}
