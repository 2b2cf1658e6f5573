//! The paths from a leaf to another leaf, and which of them are busy.

use crate::net::Net;
use crate::paths::{Counts, Path};
use crate::router::conweave::header::MOST_PATHS;
use crate::routes::Routes;
use base::{Dur, HostId, LinkId, NodeId, Rng, Time};
use proto::Packet;
use proto::packet::{ASK, ROUTE_HOPS};

/// The paths from a leaf to another leaf.
pub struct LeafPaths {
    /// The links of each path, without the link to the host.
    paths: Vec<Vec<LinkId>>,
    /// Until when each path is busy.
    busy_until: Vec<Time>,
}

impl LeafPaths {
    /// Returns the paths from a leaf to the leaf of `dst`.
    pub fn new(net: &Net, counts: &mut Counts, routes: &Routes, at: NodeId, dst: HostId) -> LeafPaths {
        let all = u64::from(counts.count(net, routes, at, dst));
        let used = all.min(u64::from(MOST_PATHS));
        let path = |i: u64| {
            let mut links = counts.path(net, routes, at, dst, (i * all / used) as u32)?;
            links.pop(); // From the other leaf to its host.
            let fits = links.len() <= ROUTE_HOPS && Path::new(net, links.clone()).route.is_some();
            fits.then_some(links)
        };
        let paths: Vec<_> = (0..used).filter_map(path).collect();
        LeafPaths { busy_until: vec![Time::ZERO; paths.len()], paths }
    }
    /// Returns the links of a path.
    pub fn links(&self, path: u8) -> &[LinkId] {
        &self.paths[usize::from(path)]
    }
    /// Writes the rest of a path into a packet that is about to take its first link, which is
    /// returned. The other leaf decides by itself.
    pub fn lead(&self, packet: &mut Packet, net: &Net, path: u8) -> LinkId {
        let links = self.links(path);
        packet.route = [ASK; ROUTE_HOPS];
        for (byte, &link) in packet.route.iter_mut().zip(&links[1..]) {
            *byte = net.link(link).port.0 as u8;
        }
        links[0]
    }
    /// Marks a path as busy for some time.
    pub fn set_busy(&mut self, path: usize, now: Time, time: Dur) {
        if let Some(until) = self.busy_until.get_mut(path) {
            *until = now.after(time);
        }
    }
    /// Draws two paths at random, and returns the first one that is live, not busy and not `present`.
    pub fn draw(&self, now: Time, present: Option<u8>, live: impl Fn(&[LinkId]) -> bool, rng: &mut Rng) -> Option<u8> {
        if self.paths.is_empty() {
            return None;
        }
        let drawn = [(); 2].map(|()| rng.below(self.paths.len() as u64) as u8);
        let good = |path: &u8| Some(*path) != present && self.busy_until[usize::from(*path)] <= now && live(self.links(*path));
        drawn.into_iter().find(good)
    }
    /// Returns a live path, busy or not: the first one from a random path on.
    pub fn any(&self, live: impl Fn(&[LinkId]) -> bool, rng: &mut Rng) -> Option<u8> {
        let count = self.paths.len();
        let first = if count > 1 { rng.below(count as u64) as usize } else { 0 };
        (first..first + count).map(|n| (n % count) as u8).find(|path| live(self.links(*path)))
    }
}
