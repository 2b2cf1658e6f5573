//! Planning of paths: the router's choice at each node on the path, and the route bytes of packets.

use crate::net::Net;
use crate::paths::{ASK_ALWAYS, FiveTuple, Path};
use crate::router::Router;
use crate::routes::{Routes, Unreachable};
use base::{HostId, LinkId, NodeId};
use proto::Packet;

/// Sets the route bytes so that the router decides at every switch from here on.
pub fn ask_always(packet: &mut Packet) {
    packet.route = ASK_ALWAYS;
}

/// Returns the next hop from `at` of a flow with this five-tuple. The router chooses if there are
/// several.
#[inline]
pub(crate) fn choose(
    routes: &Routes,
    router: &mut impl Router,
    tuple: impl FnOnce() -> FiveTuple,
    at: NodeId,
    dst: HostId,
) -> Option<LinkId> {
    match routes.candidates(at, dst) {
        [] => None,
        [only] => Some(*only),
        several => Some(several[router.choose(at, &tuple(), several) as usize]),
    }
}

/// Returns the path of a flow with this five-tuple. The router chooses at every switch with several
/// next hops.
pub fn plan(
    net: &Net,
    routes: &Routes,
    router: &mut impl Router,
    tuple: &FiveTuple,
    src: HostId,
    dst: HostId,
) -> Result<Path, Unreachable> {
    let (mut at, end) = (net.hosts()[src.index()], net.hosts()[dst.index()]);
    let mut links = Vec::new();
    while at != end {
        let link = choose(routes, router, || *tuple, at, dst).ok_or(Unreachable { src, dst })?;
        links.push(link);
        at = net.link(link).to;
    }
    Ok(Path::new(net, links))
}
