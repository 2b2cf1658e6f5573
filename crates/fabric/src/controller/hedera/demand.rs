//! Demand estimation: the rate of each large flow if only the NICs of its ends limited it.
//!
//! Source: NSDI 2010 section 4.1. Sources share their capacity evenly among the flows that have not
//! converged. Destinations that receive too much limit the flows with more than an even share. This
//! repeats until nothing changes.

use base::{FlowId, HostId};

/// A large flow and its estimated demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The flow.
    pub id: FlowId,
    /// Its sender.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// The index of the flow's present path; `None` for a path without an index.
    pub present: Option<u16>,
    /// Estimated demand in bits per second.
    pub bps: u64,
}

/// Shares that differ by less than this fraction of a NIC's rate are considered equal.
const SAME: f64 = 1e-9;

/// Maximum number of rounds of the iteration.
const MAX_ROUNDS: u32 = 10_000;

/// Returns the demands of flows, given by source and destination, in the unit of `rates`, which are
/// indexed by host.
pub fn estimate(flows: &[(HostId, HostId)], rates: &[f64]) -> Vec<f64> {
    let mut estimator = Estimator::new(flows, rates);
    // It converges much earlier.
    (0..MAX_ROUNDS).find(|_| !estimator.step());
    estimator.demand
}

/// The iteration.
pub struct Estimator<'a> {
    flows: &'a [(HostId, HostId)],
    rates: &'a [f64],
    /// The flows that each host sends, and that each host receives; hosts without flows are left
    /// out.
    by_src: Vec<Vec<usize>>,
    by_dst: Vec<Vec<usize>>,
    /// The demand of each flow.
    pub demand: Vec<f64>,
    /// Whether its destination limits a flow, by flow.
    pub converged: Vec<bool>,
}

impl<'a> Estimator<'a> {
    /// Returns an estimator in which all demands are 0.
    pub fn new(flows: &'a [(HostId, HostId)], rates: &'a [f64]) -> Estimator<'a> {
        let group = |end: fn(&(HostId, HostId)) -> HostId| {
            let mut groups = vec![Vec::new(); rates.len()];
            flows.iter().enumerate().for_each(|(flow, ends)| groups[end(ends).index()].push(flow));
            groups.retain(|group| !group.is_empty());
            groups
        };
        let (by_src, by_dst) = (group(|ends| ends.0), group(|ends| ends.1));
        Estimator { flows, rates, by_src, by_dst, demand: vec![0.0; flows.len()], converged: vec![false; flows.len()] }
    }

    /// Runs one round of both steps. Returns whether a demand has changed.
    pub fn step(&mut self) -> bool {
        let before = self.demand.clone();
        self.sources();
        self.destinations();
        let rate = |flow: usize| self.rates[self.flows[flow].0.index()];
        before.iter().zip(&self.demand).enumerate().any(|(flow, (a, b))| (a - b).abs() > SAME * rate(flow))
    }

    /// Divides the capacity of each source that its converged flows leave evenly among its other
    /// flows.
    pub fn sources(&mut self) {
        for flows in &self.by_src {
            let rate = self.rates[self.flows[flows[0]].0.index()];
            let fixed: f64 = flows.iter().filter(|&&flow| self.converged[flow]).map(|&flow| self.demand[flow]).sum();
            let rest = flows.iter().filter(|&&flow| !self.converged[flow]);
            let share = (rate - fixed).max(0.0) / rest.clone().count() as f64;
            for &flow in rest {
                self.demand[flow] = share;
            }
        }
    }

    /// For each destination that receives too much, limits the flows with more than an even share.
    pub fn destinations(&mut self) {
        for flows in &self.by_dst {
            let rate = self.rates[self.flows[flows[0]].1.index()];
            let sum: f64 = flows.iter().map(|&flow| self.demand[flow]).sum();
            if sum <= rate * (1.0 + SAME) {
                continue;
            }
            let (mut limited, mut taken) = (flows.clone(), 0.0);
            let mut share = rate / limited.len() as f64;
            loop {
                let (below, rest): (Vec<usize>, Vec<usize>) =
                    limited.iter().partition(|&&flow| self.demand[flow] < share - SAME * rate);
                if below.is_empty() || rest.is_empty() {
                    break;
                }
                taken += below.iter().map(|&flow| self.demand[flow]).sum::<f64>();
                share = (rate - taken) / rest.len() as f64;
                limited = rest;
            }
            for flow in limited {
                (self.demand[flow], self.converged[flow]) = (share, true);
            }
        }
    }
}
