//! Global first fit: a large flow takes the first path on which its demand fits in addition to the
//! reservations.
//!
//! Source: NSDI 2010 section 4.2.1; NSim for the order of paths: that of their indices, the aggregation switch first, then the core.
//!
//! Assumed: the reservation of a flow is updated to its estimated demand, since flows that start
//! later share the source's NIC. It is kept while the flow is open, even if the flow is no longer
//! large. Flows are handled in the order of their ids, which is that of their starts.

use super::demand::Demand;
use super::live::Live;
use crate::net::Net;
use crate::paths::is_live;
use base::{FlowId, HostId, LinkId};
use std::collections::BTreeMap;

/// The flows that have been placed.
#[derive(Debug, Default)]
pub struct FirstFit {
    placed: BTreeMap<FlowId, Placed>,
}

#[derive(Debug)]
struct Placed {
    index: u16,
    links: Vec<LinkId>,
    bps: u64,
}

/// The reservations on each link, in bits per second.
struct Reserved<'a> {
    net: &'a Net,
    bps: Vec<u64>,
}

impl Reserved<'_> {
    fn fits(&self, links: &[LinkId], bps: u64) -> bool {
        links.iter().all(|link| self.bps[link.index()] + bps <= self.net.link(*link).rate.bps())
    }
    fn add(&mut self, links: &[LinkId], bps: u64) {
        links.iter().for_each(|link| self.bps[link.index()] += bps);
    }
}

impl FirstFit {
    /// Returns the flows that have been placed, by id.
    #[cfg(test)]
    pub fn placed(&self) -> Vec<FlowId> {
        self.placed.keys().copied().collect()
    }
    /// Places the flows that have no live path yet. Returns the path index of every placed flow.
    /// `open` are the flows that have not ended, with their destinations.
    pub fn place(&mut self, live: &mut Live<'_>, open: &BTreeMap<FlowId, HostId>, large: &[Demand]) -> Vec<(FlowId, u16)> {
        let stays = |id: &FlowId, links: &[LinkId]| open.get(id).is_some_and(|&dst| is_live(live.net, live.routes, links, dst));
        self.placed.retain(|id, placed| stays(id, &placed.links));
        for flow in large {
            if let Some(placed) = self.placed.get_mut(&flow.id) {
                placed.bps = flow.bps;
            }
        }
        let mut reserved = Reserved { net: live.net, bps: vec![0; live.net.links().len()] };
        self.placed.values().for_each(|placed| reserved.add(&placed.links, placed.bps));
        for flow in large {
            if self.placed.contains_key(&flow.id) {
                continue;
            }
            let paths = live.paths.count(flow.src, flow.dst);
            let mut room = |index| live.live(flow.src, flow.dst, index).filter(|links| reserved.fits(links, flow.bps));
            if let Some((index, links)) = (0..paths).find_map(|index| Some((index, room(index)?))) {
                reserved.add(&links, flow.bps);
                self.placed.insert(flow.id, Placed { index, links, bps: flow.bps });
            }
        }
        self.placed.iter().map(|(id, placed)| (*id, placed.index)).collect()
    }
}
