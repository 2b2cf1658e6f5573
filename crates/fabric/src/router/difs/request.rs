//! Explicit adaptation requests (EARs): how switches create, forward and obey them (section III-E,
//! Alg. 3).

use super::load::Measure;
use super::switch::{Count, Switch};
use super::{EAR, Rules};
use crate::net::Tier;
use crate::paths::ASK_ALWAYS;
use crate::router::SwitchCx;
use base::{FlowId, LinkId};
use proto::Packet;

base::header! {
    /// The recommendation of an EAR: the flow's uphill switch in this tier should use its port with
    /// this index among the ports to the tier above. In the paper's words a port of an aggregation
    /// switch is a core, and a port of an edge switch is an aggregation switch.
    pub struct Request {
        /// The tier of the switch that must obey. It equals the tier of the requesting switch,
        /// because ports mirror each other (section II-B).
        tier: Tier,
        /// The index of the port.
        place: u16,
    }
}

impl Switch {
    /// Sends an EAR for a flow over the port through which the flow enters.
    pub fn send(&mut self, flow: FlowId, request: Request, why: Count, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) {
        let Some(back) = self.table.get(flow).map(|entry| entry.back) else { return };
        let mut packet = Packet::new(flow, EAR, rules.params.ear_wire);
        (packet.flags, packet.route) = (Packet::BACK, ASK_ALWAYS);
        packet.set(request);
        self.count(back, why, 1);
        self.count(back, Count::EarBytes, rules.params.ear_bytes.into());
        cx.send_via(back, packet);
    }

    /// Returns the next link of an EAR that does not end here: back towards the source of its flow.
    /// The path tag counts the switches that have forwarded it.
    pub fn send_on(&mut self, packet: &mut Packet, cx: &SwitchCx<'_>) -> Option<LinkId> {
        let back = self.table.get(packet.flow)?.back;
        let (_, src) = cx.ends(packet);
        let alive = cx.routes.candidates(cx.at, src).contains(&back);
        self.count(back, Count::Forwarded, alive.into());
        packet.path_tag += 1;
        alive.then_some(back)
    }

    /// Handles an arriving EAR. Returns whether it ends here.
    pub fn obey(&mut self, packet: &Packet, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) -> bool {
        let came_over = cx.from.map(|from| cx.net.link(from).reverse);
        let (flow, request): (FlowId, Request) = (packet.flow, packet.get());
        let Some(entry) = self.table.get(flow).copied() else {
            came_over.into_iter().for_each(|port| self.count(port, Count::Ignored, 1));
            return true;
        };
        let mine = entry.simo && self.tier == request.tier;
        // No further switch can obey: the next hop back is the source, or the EAR has passed too
        // many switches because entries of past paths form a circle.
        let last = cx.net.host(cx.net.link(entry.back).to).is_some() || packet.path_tag >= MOST_SWITCHES;
        if !mine && !last {
            return false;
        }
        if !(mine && self.adapt(flow, request, rules, cx)) {
            came_over.into_iter().for_each(|port| self.count(port, Count::Ignored, 1));
        }
        true
    }

    /// Performs the explicit adaptation. Returns whether the flow has moved.
    fn adapt(&mut self, flow: FlowId, request: Request, rules: &Rules<'_>, cx: &mut SwitchCx<'_>) -> bool {
        let (Some(entry), Some(&new)) = (self.table.get(flow).copied(), self.ups.get(usize::from(request.place))) else {
            return false;
        };
        let live = |flow: FlowId, cx: &SwitchCx<'_>| rules.ways.live(cx, cx.flows[flow.index()].dst);
        let Some(old) = entry.out.filter(|&old| old != new && live(flow, cx).contains(&new)) else { return false };
        let (there, here) = (self.table.leaving(new), self.table.leaving(old));
        if !rules.loads.overfills(there, here, entry.load) {
            self.move_to(flow, new, Count::Moved, cx);
            return true;
        }
        // Another flow is moved in exchange, so that the ports stay as even as they are.
        let mut partners = self.table.flows(|other| other.simo && other.out == Some(new) && other.load > 0);
        partners.retain(|&other| live(other, cx).contains(&old));
        let partner = match rules.loads.measure {
            Measure::Count => self.any(&partners),
            Measure::Rate => {
                let gap = |moved: i128, came: i128| (i128::from(there) + moved - came - (i128::from(here) - moved + came)).abs();
                let load = |other: FlowId| self.table.get(other).map_or(0, |other| i128::from(other.load));
                let moved = i128::from(entry.load);
                let best = partners.iter().copied().min_by_key(|&other| gap(moved, load(other)));
                let Some(best) = best.filter(|&other| gap(moved, load(other)) < gap(moved, 0)) else {
                    self.move_to(flow, new, Count::Moved, cx);
                    return true;
                };
                Some(best)
            }
        };
        let Some(partner) = partner else { return false };
        self.table.change(partner, |other| other.out = Some(old));
        cx.rerouted(partner);
        self.move_to(flow, new, Count::Swapped, cx);
        true
    }
}

/// Number of switches on the longest path in three tiers.
const MOST_SWITCHES: u16 = 5;
