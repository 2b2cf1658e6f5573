//! Failures (section III-G): flows leave dead ports, and a switch that has no other port for a flow
//! requests the uphill switches to send the flow another way.

use super::request::Request;
use super::switch::{Count, Switch, ups};
use super::{PACE, Rules};
use crate::router::SwitchCx;
use base::FlowId;

impl Switch {
    /// Handles a change of the next hops. Flows whose port no longer leads to their destination are
    /// allocated again; for those that have no other port, EARs are scheduled.
    pub fn on_routes(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        for flow in self.table.flows(|_| true) {
            let Some(entry) = self.table.get(flow).copied() else { continue };
            let ports = rules.ways.live(cx, cx.flows[flow.index()].dst);
            // The flow has a port that leads on, or it had none before and there is still none.
            if entry.out.map_or(ports.is_empty(), |out| ports.contains(&out)) {
                continue;
            }
            if ports.is_empty() && entry.simo {
                // If a packet still arrives, the flow is treated as new.
                self.table.remove(flow);
                continue;
            }
            // Remove the flow from its old port, so that it does not influence its own choice.
            self.table.change(flow, |entry| entry.out = None);
            match self.least_loaded(&ports) {
                Some(port) => self.move_to(flow, port, Count::Rebalanced, cx),
                None if rules.params.failure_ears => self.stranded.push_back(flow),
                None => {}
            }
        }
        self.pace(cx);
    }

    /// Schedules EARs for flows whose packets still arrive here and are lost. This recovers from a
    /// lost EAR and from one that led to another dead end.
    pub fn ask_again(&mut self, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        let again = self.table.flows(|entry| rules.params.failure_ears && entry.out.is_none() && entry.stuck);
        self.stranded.extend(again);
        self.pace(cx);
    }

    /// Sends the EAR for one stranded flow, if the flow still exists, and sets the timer of the
    /// next EAR.
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

    /// Returns the request for a flow whose only next hop here is dead: any port except the one
    /// whose mirror leads to that hop.
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
