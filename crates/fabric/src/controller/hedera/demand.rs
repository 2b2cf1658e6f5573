//! Demand estimation: what each large flow would send if only the NICs of its ends limited it.
//!
//! Source: NSDI 2010 section 4.1: sources share their capacity evenly among the flows that have not converged; destinations that get
//! too much hold the flows back that get more than an even share of theirs; until nothing changes.

use base::{FlowId, HostId};

/// A large flow and what it would send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// The flow.
    pub id: FlowId,
    /// Its sender.
    pub src: HostId,
    /// Its receiver.
    pub dst: HostId,
    /// The index of its present path; `None` where the path has none.
    pub present: Option<u16>,
    /// Bits per second.
    pub bps: u64,
}

/// Shares that differ by less than this part of a NIC's rate are the same.
const SAME: f64 = 1e-9;

/// Rounds after which the iteration ends in any case.
const MAX_ROUNDS: u32 = 10_000;

/// The demands of flows, by source and destination, in the unit of the rates that `rates` gives by host.
pub fn estimate(flows: &[(HostId, HostId)], rates: &[f64]) -> Vec<f64> {
    let mut estimator = Estimator::new(flows, rates);
    // It converges long before.
    (0..MAX_ROUNDS).find(|_| !estimator.step());
    estimator.demand
}

/// The iteration.
pub struct Estimator<'a> {
    flows: &'a [(HostId, HostId)],
    rates: &'a [f64],
    /// Which flows each host sends, and which it receives; of hosts that have any.
    by_src: Vec<Vec<usize>>,
    by_dst: Vec<Vec<usize>>,
    /// By flow.
    pub demand: Vec<f64>,
    /// By flow: its destination limits it.
    pub converged: Vec<bool>,
}

impl<'a> Estimator<'a> {
    /// Flows whose demands are 0.
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

    /// One round of both. Returns whether a demand has changed.
    pub fn step(&mut self) -> bool {
        let before = self.demand.clone();
        self.sources();
        self.destinations();
        let rate = |flow: usize| self.rates[self.flows[flow].0.index()];
        before.iter().zip(&self.demand).enumerate().any(|(flow, (a, b))| (a - b).abs() > SAME * rate(flow))
    }

    /// Each source shares what its converged flows leave evenly among the others.
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

    /// Each destination that gets too much limits the flows that send it more than an even share.
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
