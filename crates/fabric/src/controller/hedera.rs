//! Hedera: a central controller periodically estimates the demands of large flows, and places these
//! flows on paths.
//!
//! Source: Al-Fares et al., "Hedera: Dynamic Flow Scheduling for Data Center Networks", NSDI 2010, sections 3 and 4; the simulator of
//! the authors of DiFS (Cui and Qian, arXiv 1307.7416), github.com/cwz920716/NSim, which has Hedera as a baseline.
//!
//! At the end of each period the controller determines which flows are large, and estimates the
//! rate of each if only the NICs of its ends limited it (`hedera/demand`). Then it places them: by
//! global first fit (`hedera/first_fit`) or by simulated annealing (`hedera/annealing`). New and
//! small flows stay on the router's paths.
//!
//! Model: the controller has exact counts of the bytes that each flow delivers. Only data is moved;
//! ACKs stay on the router's paths. Reports and orders take one `latency`, whatever their number.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `period` | 5 s | NSDI 2010 section 5 |
//! | `large` | `bytes`, 100 KB | DiFS section IV-A, for all schemes; NSDI 2010: `rate`, 10 % of the NIC |
//! | `placement` | `annealing` | NSDI 2010 section 4.2: close to the optimum at little cost |
//! | `key` | `dst` | NSDI 2010 section 4.2; NSim looks up the source |
//!
//! Assumed:
//! - The paper was known but not available: the period, the rate of a large flow, the demand
//!   estimation and the constants of annealing must be checked against it.
//! - `latency` is 1 ms. A literal reading of DiFS gives 0.
//! - The size of a flow is the payload that it has delivered. With `rate`, only the last period
//!   counts.
//! - A demand is in bits of payload per second, and a NIC's capacity is its line rate: headers are
//!   ignored on both sides.
//! - NICs may differ: the demands from a source share the rate of the source's NICs, the demands to
//!   a destination the rate of the destination's NICs.
//! - A path that is known to be dead is never chosen, and a flow that was placed on such a path is
//!   placed again.

use super::{Controller, Env, Move, View, needs_planned_paths};
use annealing::Annealing;
use base::params::{Auto, Problem};
use base::registry::Meta;
use base::{Bytes, Dur, FlowId, Fraction, HostId};
use demand::Demand;
use first_fit::FirstFit;
use live::Live;
use std::collections::BTreeMap;

pub mod annealing;
pub mod cores;
pub mod demand;
pub mod first_fit;
pub mod live;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "periodically estimates the demands of large flows and places these flows on paths",
    source: "Al-Fares et al., NSDI 2010",
    ..Meta::PLAIN
};

base::choice! {
    /// Which flows are large.
    pub enum Large {
        /// Flows that have delivered at least `large_bytes`.
        Bytes = "bytes",
        /// Flows that have delivered at a rate of at least `large_rate` since the last reading.
        Rate = "rate",
    }
}

base::choice! {
    /// How large flows are placed.
    pub enum Placement {
        /// On the first path with room, once for each flow.
        Gff = "gff",
        /// By assigning a core to each host, found by simulated annealing.
        Annealing = "annealing",
    }
}

base::choice! {
    /// The host whose core a flow takes with annealing.
    pub enum Key {
        /// The flow's destination.
        Dst = "dst",
        /// The flow's source.
        Src = "src",
    }
}

base::params! {
    /// Parameters of Hedera.
    pub struct Params {
        /// Time between two readings of the network.
        period: Dur = "5s" in Dur::from_us(1)..=Dur::from_secs(1000), "NSDI 2010 section 5";
        /// Time from a reading until the flows move.
        latency: Dur = "1ms" in Dur(0)..=Dur::from_secs(1000), "flowloom: delay of reports and orders; NSim has 0";
        /// What makes a flow large.
        large: Large = "bytes", "DiFS section IV-A; NSDI 2010: `rate`";
        /// With `large = "bytes"`: a flow is large when it has delivered this much payload.
        large_bytes: Bytes = "100KB", "DiFS section IV-A";
        /// With `large = "rate"`: a flow is large when it delivers at this fraction of its source's
        /// NIC rate.
        large_rate: Fraction = "0.1" in Fraction(0)..=Fraction::ONE, "NSDI 2010 section 3.1";
        /// How large flows are placed.
        placement: Placement = "annealing", "NSDI 2010 section 4.2";
        /// The host whose core a flow takes with annealing.
        key: Key = "dst", "NSDI 2010 section 4.2; NSim: `src`";
        /// Initial temperature of annealing, and the number of its steps.
        t0: u32 = "1000" in 1..=1_000_000, "NSDI 2010 section 4.2";
        /// How strongly annealing rejects a step that raises the energy, in multiples of `t0`;
        /// `auto`: 0.5 for networks of at most 16 hosts, otherwise 1000.
        c: Auto<f64> = "auto" in Auto::Set(0.0)..=Auto::Set(1e9), "NSDI 2010 section 4.2";
    }
}

/// Returns the problems of parameters that depend on the network and the other parts of the system.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems: Vec<Problem> = needs_planned_paths(env).into_iter().collect();
    if params.placement == Placement::Annealing
        && let Err(why) = cores::find(env.net, env.routes)
    {
        problems.push(Problem {
            key: "placement",
            message: format!("annealing assigns a core switch to each host, which needs a fat tree or a leaf-spine network: {why}"),
            hint: "write `placement = \"gff\"`, which works on any network".to_owned(),
        });
    }
    problems
}

/// The controller.
pub struct Hedera {
    params: Params,
    /// Payload that each open flow has delivered.
    delivered: BTreeMap<FlowId, u64>,
    placer: Placer,
}

enum Placer {
    FirstFit(FirstFit),
    Annealing(Box<Annealing>),
}

impl Hedera {
    /// Returns the controller of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let placer = match params.placement {
            Placement::Gff => Placer::FirstFit(FirstFit::default()),
            Placement::Annealing => {
                let small = env.net.hosts().len() <= 16;
                let schedule = annealing::Schedule { t0: params.t0, c: params.c.or(if small { 0.5 } else { 1000.0 }) };
                // A network that `check` refuses has no cores, so no flow moves.
                let cores = cores::find(env.net, env.routes).unwrap_or_default();
                Placer::Annealing(Box::new(Annealing::new(cores, schedule, params.key == Key::Dst, env.seed)))
            }
        };
        Hedera { params: params.clone(), delivered: BTreeMap::new(), placer }
    }

    /// Updates the delivered bytes. Returns the large flows with their demands, by id.
    fn learn(&mut self, view: &View<'_>) -> Vec<Demand> {
        let before = std::mem::take(&mut self.delivered);
        let total = |id, bytes| before.get(&id).copied().unwrap_or(0) + bytes;
        self.delivered = view.flows.iter().map(|flow| (flow.id, total(flow.id, flow.delivered_bytes))).collect();
        let rate_of = |host: HostId| view.net.host_rate(host).bps();
        let is_large = |id: FlowId, src: HostId, bytes: u64| match self.params.large {
            Large::Bytes => self.delivered[&id] >= self.params.large_bytes.0,
            Large::Rate => {
                let bits = u128::from(bytes) * 8 * 1_000_000_000_000 * u128::from(Fraction::ONE.0);
                let share = u128::from(rate_of(src)) * u128::from(self.params.large_rate.0);
                bits >= share * u128::from(self.params.period.ps())
            }
        };
        let large: Vec<_> = view.flows.iter().filter(|flow| is_large(flow.id, flow.src, flow.delivered_bytes)).collect();
        let ends: Vec<(HostId, HostId)> = large.iter().map(|flow| (flow.src, flow.dst)).collect();
        let rates: Vec<f64> = (0..view.net.hosts().len() as u32).map(|host| rate_of(HostId(host)) as f64).collect();
        let demands = demand::estimate(&ends, &rates);
        let with = |(flow, bps): (&&super::OpenFlow, f64)| {
            // Rounded down, so that demands that fill a link do not exceed its rate.
            Demand { id: flow.id, src: flow.src, dst: flow.dst, present: flow.paths[0], bps: bps as u64 }
        };
        large.iter().zip(demands).map(with).collect()
    }
}

impl Controller for Hedera {
    fn period(&self) -> Dur {
        self.params.period
    }
    fn latency(&self) -> Dur {
        self.params.latency
    }
    fn decide(&mut self, view: &mut View<'_>, moves: &mut Vec<Move>) {
        let large = self.learn(view);
        let present: BTreeMap<FlowId, Option<u16>> = view.flows.iter().map(|flow| (flow.id, flow.paths[0])).collect();
        let mut live = Live { net: view.net, routes: view.routes, paths: &mut *view.paths };
        let placed = match &mut self.placer {
            Placer::FirstFit(first_fit) => {
                let open = view.flows.iter().map(|flow| (flow.id, flow.dst)).collect();
                first_fit.place(&mut live, &open, &large)
            }
            Placer::Annealing(annealing) => annealing.place(&mut live, &large),
        };
        let moved = placed.into_iter().filter(|(id, index)| present[id] != Some(*index));
        moves.extend(moved.map(|(flow, index)| Move { flow, back: false, path: Some(index) }));
    }
}

#[cfg(test)]
mod tests;
