//! The control loop (section III-C): it removes flows that have disappeared, spreads flows evenly
//! over the ports through which they leave, and requests another switch to move a flow if flows
//! enter unevenly.

use super::load::Measure;
use super::request::Request;
use super::switch::{Count, Switch};
use super::{Rebalance, Rules, Ties};
use crate::router::SwitchCx;
use base::{FlowId, LinkId};

impl Switch {
    /// Runs one iteration.
    pub fn iterate(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        let timeout = rules.params.flow_timeout;
        for flow in self.table.flows(|entry| cx.now.since(entry.seen) > timeout) {
            self.table.remove(flow);
        }
        if rules.loads.measure == Measure::Rate {
            self.measure(rules, cx);
        }
        self.rebalance(rules, cx);
        self.detect(rules, cx);
        self.ask_again(rules, cx);
        self.last = cx.now;
    }

    fn measure(&mut self, rules: &Rules<'_>, cx: &SwitchCx<'_>) {
        let interval = cx.now.since(self.last);
        for flow in self.table.flows(|entry| entry.load > 0 || entry.bytes > 0) {
            let (src, dst) = cx.flows[flow.index()].ends(false);
            let counted = rules.ways.counts(cx, src, dst);
            self.table.change(flow, |entry| {
                entry.load = if counted { rules.loads.next(entry.load, entry.bytes, interval) } else { 0 };
                entry.bytes = 0;
            });
        }
    }

    /// Moves flows from the fullest ports to the emptiest until no two ports differ by too much
    /// (Balanced Output).
    fn rebalance(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        let live: Vec<LinkId> = self.ups.iter().zip(&self.alive).filter(|(_, alive)| **alive).map(|(up, _)| *up).collect();
        // Moves by rate could continue for ever smaller gains; no flow needs to move twice.
        let most = match rules.params.rebalance {
            Rebalance::Bo => self.table.iter().count(),
            Rebalance::Nsim => 1,
        };
        let by_mean = rules.params.rebalance == Rebalance::Nsim && rules.loads.measure == Measure::Count;
        for _ in 0..most {
            let load = |port: LinkId| self.table.leaving(port);
            let (Some(max), Some(min)) = (live.iter().map(|&up| load(up)).max(), live.iter().map(|&up| load(up)).min()) else {
                return;
            };
            if by_mean {
                let sum: u64 = live.iter().map(|&up| load(up)).sum();
                // max - mean >= 1, or max > 1 and min = 0.
                if max * (live.len() as u64) < sum + live.len() as u64 && !(max > 1 && min == 0) {
                    return;
                }
            } else if !rules.loads.uneven(max, min, 1) {
                return;
            }
            let with = |load: u64| live.iter().copied().filter(|&up| self.table.leaving(up) == load).collect::<Vec<_>>();
            let (fullest, emptiest) = (with(max), with(min));
            let (Some(from), Some(to)) = (self.any(&fullest), self.any(&emptiest)) else { return };
            let gains = |load: u64| by_mean && load > 0 || rules.loads.uneven(max, min, load);
            let mut movable = self.table.flows(|entry| entry.simo && entry.out == Some(from) && gains(entry.load));
            movable.retain(|flow| rules.ways.live(cx, cx.flows[flow.index()].dst).contains(&to));
            let Some(flow) = self.any(&movable) else { return };
            self.move_to(flow, to, Count::Rebalanced, cx);
        }
    }

    /// Sends EARs for flows that enter through a port with too many flows, up to the limit per
    /// iteration (Alg. 1). The paper goes through the flows in random order.
    fn detect(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        let mut found: Vec<(FlowId, Vec<LinkId>)> = Vec::new();
        for (flow, entry) in self.table.iter().filter(|(_, entry)| entry.miso && entry.load > 0) {
            let mut ports = rules.ways.live(cx, cx.flows[flow.index()].src);
            let Some(least) = ports.iter().map(|&port| self.table.entering(port)).min() else { continue };
            if rules.loads.uneven(self.table.entering(entry.back), least, entry.load) {
                ports.retain(|&port| self.table.entering(port) == least);
                found.push((flow, ports));
            }
        }
        for _ in 0..rules.params.ears_per_iteration {
            if found.is_empty() {
                return;
            }
            let (flow, best) = found.swap_remove(self.rng.below(found.len() as u64) as usize);
            let best = match rules.params.ties {
                Ties::Random => self.any(&best),
                Ties::Lowest => best.first().copied(),
            };
            let place = best.and_then(|port| self.ups.iter().position(|&up| up == port));
            if let Some(place) = place {
                self.send(flow, Request { tier: self.tier, place: place as u16 }, Count::Ears, rules, cx);
            }
        }
    }

    /// Moves a flow to another port.
    pub fn move_to(&mut self, flow: FlowId, port: LinkId, why: Count, cx: &mut SwitchCx<'_>) {
        self.table.change(flow, |entry| entry.out = Some(port));
        self.count(port, why, 1);
        cx.rerouted(flow);
    }
}
