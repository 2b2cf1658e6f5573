//! Test harness: a host with a transport and a policy. Hand-made packets and times in, packets out. No network.

use crate::contract::Transport as _;
use crate::kit::script::Script;
use crate::packet::Packet;
use crate::policy::Policy;
use crate::policy_host::PolicyHost;
use crate::transport::AnyTransport;
use base::{FlowId, Time};

/// A host with a policy, driven by hand in the order in which a run would drive it.
pub struct PolicyScript<P> {
    /// The transport, and the state behind both machines.
    pub host: Script<AnyTransport>,
    /// The policy.
    pub policy_host: PolicyHost<P>,
}

impl<P: Policy> PolicyScript<P> {
    /// Creates a host with a transport and a policy.
    pub fn new(mut host: Script<AnyTransport>, policy_host: PolicyHost<P>) -> PolicyScript<P> {
        host.io.has_policy = true;
        PolicyScript { host, policy_host }
    }
    /// Opens `flow` now. Returns the packets that the host sends.
    pub fn open(&mut self, flow: u32) -> Vec<Packet> {
        let PolicyScript { host, policy_host } = self;
        host.with(|transport, cx| {
            policy_host.on_open(FlowId(flow), transport, cx);
            transport.on_flow(FlowId(flow), cx);
            policy_host.settle(transport, cx);
        });
        self.sent()
    }
    /// Delivers `packet` now. Returns the packets that the host sends.
    pub fn packet(&mut self, mut packet: Packet) -> Vec<Packet> {
        let PolicyScript { host, policy_host } = self;
        host.with(|transport, cx| {
            if policy_host.on_receive(&mut packet, transport, cx) {
                transport.on_packet(&packet, cx);
            }
            policy_host.settle(transport, cx);
        });
        self.sent()
    }
    /// Advances time to `until` and fires every timer on the way, the transport's before the
    /// policy's. Returns the packets that the host sends, each with its time in `sent_at`.
    pub fn advance(&mut self, until: Time) -> Vec<Packet> {
        let mut all = Vec::new();
        loop {
            let next = self.host.next_wake().min(self.policy_host.next_wake());
            if next > until {
                break;
            }
            let PolicyScript { host, policy_host } = self;
            host.now = host.now.max(next);
            while let Some(key) = host.io.timers.pop_due(host.now) {
                host.with(|transport, cx| transport.on_timer(key, cx));
            }
            host.with(|transport, cx| {
                policy_host.settle(transport, cx);
                policy_host.on_timers(transport, cx);
                policy_host.settle(transport, cx);
            });
            all.extend(self.sent());
        }
        self.host.now = until;
        all
    }
    /// Takes all packets that the host would send now: control packets, then data.
    pub fn sent(&mut self) -> Vec<Packet> {
        let PolicyScript { host, policy_host } = self;
        let now = host.now;
        host.with(|transport, cx| {
            let mut packets = Vec::new();
            while let Some(mut packet) = cx.io.control.pop_front().or_else(|| transport.poll_transmit(cx)) {
                policy_host.on_send(&mut packet, transport, cx);
                packet.sent_at = now;
                packets.push(packet);
                assert!(packets.len() < 100_000, "a machine that never stops sending");
            }
            policy_host.settle(transport, cx);
            packets
        })
    }
}
