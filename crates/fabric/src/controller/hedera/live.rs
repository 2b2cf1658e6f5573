//! The paths between hosts, and which of them are alive.

use crate::net::Net;
use crate::paths::{AllPaths, is_live};
use crate::routes::Routes;
use base::{HostId, LinkId, Rate};

/// The parts of a controller's view that are needed to choose paths.
pub struct Live<'a> {
    /// The network.
    pub net: &'a Net,
    /// The live next hops of the network.
    pub routes: &'a Routes,
    /// All shortest paths of the healthy network, by index.
    pub paths: &'a mut AllPaths,
}

impl Live<'_> {
    /// Returns the links of a path.
    pub fn links(&mut self, src: HostId, dst: HostId, index: u16) -> Option<Vec<LinkId>> {
        self.paths.path(src, dst, index).map(|path| path.links)
    }
    /// Returns the links of a path; `None` if it is known to be dead.
    pub fn live(&mut self, src: HostId, dst: HostId, index: u16) -> Option<Vec<LinkId>> {
        self.links(src, dst, index).filter(|links| is_live(self.net, self.routes, links, dst))
    }
    /// Returns the sum of the rates of a host's NICs.
    pub fn host_rate(&self, host: HostId) -> Rate {
        self.net.host_rate(host)
    }
}
