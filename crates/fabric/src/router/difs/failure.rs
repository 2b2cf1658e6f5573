//! Failures (section III-G): flows leave dead ports, and a switch that has no other port for a flow asks the uphill switches to send the flow
//! another way.

use super::request::Request;
use super::switch::{Count, Switch, ups};
use super::{PACE, Rules};
use crate::router::SwitchCx;
use base::FlowId;

impl Switch {
    /// The next hops have changed. Flows whose port does not lead to their destination any more are allocated anew; EARs will be sent for those
    /// that have no other port.
    pub fn on_routes(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        for flow in self.table.flows(|_| true) {
            let Some(entry) = self.table.get(flow).copied() else { continue };
            let ports = rules.ways.live(cx, cx.flows[flow.index()].dst);
            // It has a port that leads on, or it has had none before.
            if entry.out.map_or(ports.is_empty(), |out| ports.contains(&out)) {
                continue;
            }
            if ports.is_empty() && entry.simo {
                // If a packet comes all the same, the flow is as new.
                self.table.remove(flow);
                continue;
            }
            // The flow is not counted where it was, so that it does not weigh against its own choice.
            self.table.change(flow, |entry| entry.out = None);
            match self.least_loaded(&ports) {
                Some(port) => self.move_to(flow, port, Count::Rebalanced, cx),
                None if rules.params.failure_ears => self.stranded.push_back(flow),
                None => {}
            }
        }
        self.pace(cx);
    }

    /// EARs for flows that still send packets here and are lost: one that was lost itself, or that led to another dead end, is repaired by a later
    /// one.
    pub fn ask_again(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        let again = self.table.flows(|entry| rules.params.failure_ears && entry.out.is_none() && entry.stuck);
        self.stranded.extend(again);
        self.pace(cx);
    }

    /// Sends the EAR for one flow that has no port, if it is still there, and sets a time for the next one.
    pub fn ask_for_stranded(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        self.pacing = false;
        while let Some(flow) = self.stranded.pop_front() {
            if let Some(request) = self.detour(flow, rules, cx) {
                self.table.change(flow, |entry| entry.stuck = false);
                self.send(flow, request, Count::FailureEars, rules, cx);
                self.pacing = true;
                cx.arm(PACE, cx.now + rules.params.failure_pace);
                return;
            }
        }
    }

    fn pace(&mut self, cx: &mut SwitchCx<'_>) {
        if !self.pacing && !self.stranded.is_empty() {
            self.pacing = true;
            cx.arm(PACE, cx.now);
        }
    }

    /// What to recommend for a flow whose only next hop here is dead: any port but the one whose mirror leads to that hop.
    fn detour(&mut self, flow: FlowId, rules: &Rules<'_>, cx: &SwitchCx<'_>) -> Option<Request> {
        self.table.get(flow).filter(|entry| entry.out.is_none())?;
        let &[dead] = rules.ways.healthy.candidates(cx.at, cx.flows[flow.index()].dst) else { return None };
        let link = cx.net.link(dead);
        let others: Vec<usize> =
            ups(cx.net, link.to).iter().enumerate().filter(|(_, up)| **up != link.reverse).map(|(i, _)| i).collect();
        let place = self.any(&others)? as u16;
        Some(Request { tier: cx.net.node(link.to).tier, place })
    }
}
