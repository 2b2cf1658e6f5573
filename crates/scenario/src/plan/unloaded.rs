//! A flow alone in the healthy network: what results compare it with.

use crate::plan::spec::RunSpec;
use base::{Dur, Rate};
use fabric::routes::{self, Routes};
use proto::Flow;

/// A flow that has the healthy network to itself. Of several equal-cost paths the best one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// Completion time: store and forward at line rate on a shortest path, no handshake, no pacing.
    pub ideal_fct: Dur,
    /// Round trip of a full packet and a bare header.
    pub rtt: Dur,
    /// Rate of the slowest link.
    pub bottleneck: Rate,
    /// Links on a shortest path.
    pub hops: u8,
}

impl RunSpec {
    /// A flow alone. `routes` are those of the healthy network.
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
