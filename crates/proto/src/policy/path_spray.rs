//! Packet spraying by hosts: each packet takes the next path of its flow, whatever the switches
//! would choose.
//!
//! Source: M. Handley et al., "Re-architecting datacenter networks and stacks for low latency and
//! high performance" (NDP), SIGCOMM 2017, section 3.1.1, where senders spread packets over all
//! paths in an order that differs between senders.
//!
//! Model: sizes are not known. ACKs are sprayed too.
//!
//! Assumed:
//! - Paths are taken in the order of their indices. The first path differs from flow to flow: its
//!   index is the number of the flow modulo the number of paths.
//!
//! Deviates: NDP permutes the list of paths at random, and again after each round. It excludes
//! paths that lose more packets than others.

use super::{Cx, Policy};
use crate::contract::Env;
use crate::packet::Packet;
use base::FlowMap;
use base::params::Problem;
use base::registry::Meta;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "packet spraying by hosts: each packet takes the next path of its flow",
    source: "Handley et al., SIGCOMM 2017, section 3.1.1",
    many_paths: true,
    packets_only: "hosts choose the path of each packet; in the flow engine routers choose the paths",
    host: "that of the transport; the policy orders no packets",
    ..Meta::PLAIN
};

base::params! {
    /// Packet spraying has no parameters.
    pub struct Params {}
}

/// Returns the problems that depend on the network: none.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The machine of one host: the number of packets sent, by flow.
#[derive(Default)]
pub struct PathSpray {
    sent: FlowMap<u32>,
}

impl PathSpray {
    /// Creates a host that has sent nothing.
    pub fn new(_params: &Params, _env: &Env<'_>) -> Self {
        PathSpray::default()
    }
}

impl Policy for PathSpray {
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
        let paths = u32::from(cx.paths(packet.flow));
        let sent = self.sent.or_insert_with(packet.flow, || packet.flow.0 % paths);
        // Tags count from 1.
        packet.path_tag = *sent as u16 + 1;
        *sent = (*sent + 1) % paths;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script::{self, Script};
    use crate::policy_host::PolicyHost;
    use crate::policy_script::PolicyScript;
    use crate::transport::{AnyTransport, newreno};
    use base::FlowId;
    use base::params::{Auto, Params as _};

    #[test]
    fn packets_take_the_paths_in_turn() {
        let mut tcp = newreno::Params::defaults();
        (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(5), false);
        let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
        let host = Script::new(transport, vec![script::flow(0, 1), script::flow(1, 10 * 1460)]);
        let mut script = PolicyScript::new(host, PolicyHost::new(PathSpray::default(), &META, 0));
        script.host.table.set_paths(FlowId(1), false, 3);
        let tags: Vec<u16> = script.open(1).iter().map(|packet| packet.path_tag).collect();
        assert_eq!(tags, [2, 3, 1, 2, 3]);
    }
}
