//! A flow in the unloaded, healthy network: the reference that results compare flows with.

use crate::plan::spec::RunSpec;
use base::{Dur, Rate};
use fabric::routes::{self, Routes};
use proto::Flow;

/// The values of a flow in an unloaded, healthy network. Of several equal-cost paths, the best path
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// Completion time: store and forward at line rate on a shortest path, no handshake, no pacing.
    pub ideal_fct: Dur,
    /// Round-trip time: a full packet, and a packet without payload back.
    pub rtt: Dur,
    /// Rate of the slowest link.
    pub bottleneck: Rate,
    /// Links on a shortest path.
    pub hops: u8,
}

impl RunSpec {
    /// Returns the values of a flow in the unloaded network. `routes` are those of the healthy
    /// network.
    pub fn unloaded(&self, routes: &Routes, flow: &Flow) -> Unloaded {
        let (net, full, header) = (&self.net, u64::from(self.mtu_bytes), u64::from(self.header_bytes));
        let shapes = routes.shapes(net, flow.src, flow.dst);
        Unloaded {
            ideal_fct: routes.ideal_fct(net, flow.src, flow.dst, flow.size_bytes, full - header, header),
            rtt: shapes.iter().map(|path| routes::rtt(path, full, header)).min().unwrap_or_default(),
            bottleneck: shapes.iter().map(|path| routes::bottleneck(path)).max().unwrap_or(Rate(1)),
            hops: routes.distance(net.hosts()[flow.src.index()], flow.dst).unwrap_or(0) as u8,
        }
    }
}
