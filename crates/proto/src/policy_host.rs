//! A policy at a host: its state machine and timers, and the order in which policy, transport and
//! run handle events.
//!
//! The run calls [`PolicyHost::on_open`] before the transport opens a flow,
//! [`PolicyHost::on_receive`] before the transport handles a packet, [`PolicyHost::on_timers`]
//! after the transport's timers, and [`PolicyHost::settle`] after each of these and after the
//! transport's own events. Each packet that the NIC takes goes through [`PolicyHost::on_send`]
//! before its length is read.

use crate::contract::{self, Transport as _};
use crate::host::HostEvent;
use crate::packet::Packet;
use crate::policy::{AnyPolicy, Cx, Own, Policy, Urgency};
use crate::transport::AnyTransport;
use base::registry::Meta;
use base::{FlowId, Time, Timers};

/// A policy at a host.
pub struct PolicyHost<P = AnyPolicy> {
    policy: P,
    own: Own,
    /// Whether the flow whose next packet has the best class sends first.
    by_class: bool,
}

impl<P: Policy> PolicyHost<P> {
    /// Creates the policy with its META, and the number of counters that the system has before the
    /// policy's own.
    pub fn new(policy: P, meta: &'static Meta, first_counter: usize) -> PolicyHost<P> {
        let own = Own { meta, first_counter, timers: Timers::default(), made: (0, 0), given_up: Vec::new() };
        PolicyHost { policy, own, by_class: false }
    }
    /// Lets the flow whose next packet has the best class and rank send first, if the policy sets
    /// any and the flows of the transport take turns.
    pub fn by_class(mut self) -> PolicyHost<P> {
        self.by_class = self.own.meta.classes;
        self
    }
    /// Returns the policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }
    /// Returns how many packets of its own the policy has sent, and their bytes.
    pub fn made(&self) -> (u64, u64) {
        self.own.made
    }
    /// Returns the time of the policy's next timer: none is due before.
    #[inline]
    pub fn next_wake(&self) -> Time {
        self.own.timers.next_wake()
    }
    /// Called when the application opens a flow.
    pub fn on_open(&mut self, flow: FlowId, transport: &AnyTransport, cx: &mut contract::Cx<'_>) {
        self.with(transport, cx, |policy, cx| policy.on_open(flow, cx));
    }
    /// Called before the transport is polled: puts the flows that take turns in the order of their classes.
    #[inline]
    pub fn before_poll(&mut self, transport: &mut AnyTransport, cx: &mut contract::Cx<'_>) {
        if self.by_class {
            self.sort(transport, cx);
        }
    }
    fn sort(&mut self, transport: &mut AnyTransport, cx: &mut contract::Cx<'_>) {
        let Some(mut turns) = transport.turns().map(std::mem::take) else { return };
        self.with(transport, cx, |policy, cx| {
            // A flow that cannot send now comes last.
            turns.sort(|turn| match cx.transport.next_of(turn) {
                Some((flow, bytes)) => (false, policy.urgency(flow, bytes, cx)),
                None => (true, Urgency::default()),
            });
        });
        if let Some(place) = transport.turns() {
            *place = turns;
        }
    }
    /// Called when the NIC takes a packet.
    #[inline]
    pub fn on_send(&mut self, packet: &mut Packet, transport: &AnyTransport, cx: &mut contract::Cx<'_>) {
        self.with(transport, cx, |policy, cx| policy.on_send(packet, cx));
    }
    /// Called when a packet reaches the host. Returns whether the transport must handle it.
    #[inline]
    pub fn on_receive(&mut self, packet: &mut Packet, transport: &AnyTransport, cx: &mut contract::Cx<'_>) -> bool {
        self.with(transport, cx, |policy, cx| policy.on_receive(packet, cx))
    }
    /// Fires the policy's timers that are due, in the order (deadline, kind, flow).
    pub fn on_timers(&mut self, transport: &AnyTransport, cx: &mut contract::Cx<'_>) {
        while let Some(key) = self.own.timers.pop_due(cx.now) {
            self.with(transport, cx, |policy, cx| policy.on_timer(key, cx));
        }
    }
    /// Passes the transport's events to the policy, and lets the transport give up the flows that
    /// the policy requests, until neither is left. Requests for paths stay for the run.
    pub fn settle(&mut self, transport: &mut AnyTransport, cx: &mut contract::Cx<'_>) {
        let mut kept = 0;
        loop {
            while let Some(event) = cx.io.events.get(kept).copied() {
                let handle: fn(&mut P, FlowId, &mut Cx<'_>) = match event {
                    HostEvent::Timeout(_) => P::on_timeout,
                    HostEvent::Finish(_) => P::on_finish,
                    HostEvent::Close(_) => P::on_close,
                    HostEvent::Path(..) => {
                        kept += 1;
                        continue;
                    }
                };
                cx.io.events.remove(kept);
                self.with(transport, cx, |policy, cx| handle(policy, event.flow(), cx));
            }
            // Flows are given up in the order of the requests; the policy handles the events of
            // each before the next.
            if self.own.given_up.is_empty() {
                return;
            }
            transport.give_up(self.own.given_up.remove(0), cx);
        }
    }
    #[inline]
    fn with<R>(&mut self, transport: &AnyTransport, cx: &mut contract::Cx<'_>, act: impl FnOnce(&mut P, &mut Cx<'_>) -> R) -> R {
        let mut own = Cx {
            now: cx.now,
            host: cx.host,
            ext: &mut *cx.ext,
            flows: cx.flows,
            table: &mut *cx.table,
            rng: &mut *cx.rng,
            control: &mut cx.io.control,
            events: &mut cx.io.events,
            transport,
            own: &mut self.own,
        };
        act(&mut self.policy, &mut own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hops::Hop;
    use crate::host::Path;
    use crate::kit::script::{self, Script};
    use crate::packet::Kind;
    use crate::policy_script::PolicyScript;
    use crate::transport::newreno;
    use base::params::{Auto, Params as _};
    use base::registry::Counter;
    use base::{Dur, NodeId, PortId, Rate, TimerKey};
    use std::sync::Arc;

    base::header! {
        /// The header that the policy writes into every packet.
        pub struct Tag { class: u64 }
    }

    const COUNTERS: [Counter; 1] = [Counter { name: "sent", unit: "packets", about: "Packets sent." }];
    const META: Meta = Meta { knows: &["size"], kinds: &["hello"], counters: &COUNTERS, ..Meta::PLAIN };
    const HELLO: Kind = Kind(Kind::POLICY);

    /// Does everything that a policy can do, and records the events that it receives.
    #[derive(Default)]
    struct Busy {
        seen: Vec<(&'static str, u32)>,
        give_up_at: Option<Time>,
    }

    impl Policy for Busy {
        fn on_open(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
            assert!(cx.sample(flow).is_none(), "the transport opens a flow later");
            self.seen.push(("open", flow.0));
            cx.control(Packet::new(flow, HELLO, 40));
            cx.arm(flow, 0, self.give_up_at.unwrap_or(Time::MAX));
            cx.arm_host(1, cx.now.after(Dur::from_us(1)));
        }
        fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
            let flow = cx.flow(packet.flow);
            assert_eq!((flow.id(), flow.src().0, flow.dst().0, flow.start()), (packet.flow, 0, 1, Time::ZERO));
            packet.prio = 5;
            packet.flags |= Packet::ECT;
            packet.wire_len += 4;
            packet.set_tag(Tag { class: flow.size_bytes() }, cx.ext);
            cx.count(packet.flow, 0, 1);
        }
        fn on_receive(&mut self, packet: &mut Packet, _cx: &mut Cx<'_>) -> bool {
            self.seen.push(("receive", packet.flow.0));
            packet.kind != HELLO
        }
        fn on_timeout(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
            assert!(cx.sample(flow).is_some_and(|sample| sample.cwnd_bytes > 0));
            self.seen.push(("timeout", flow.0));
        }
        fn on_finish(&mut self, flow: FlowId, _cx: &mut Cx<'_>) {
            self.seen.push(("finish", flow.0));
        }
        fn on_close(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
            self.seen.push(("close", flow.0));
            cx.forget(flow);
        }
        fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
            self.seen.push(("timer", key.flow.0));
            if key.flow != FlowId::HOST {
                // Twice, since terminating a flow that is not open has no effect.
                cx.terminate(key.flow);
                cx.terminate(key.flow);
            }
        }
    }

    /// A host with flows of these sizes.
    fn script(policy: Busy, sizes: &[u64]) -> PolicyScript<Busy> {
        let mut tcp = newreno::Params::defaults();
        (tcp.tcp.init_window, tcp.tcp.handshake) = (Auto::Set(10), false);
        (tcp.tcp.min_rto, tcp.tcp.init_rto) = (Auto::Set(Dur::from_ms(1)), Auto::Set(Dur::from_ms(1)));
        let transport = AnyTransport::NewReno(newreno::NewReno::new(&tcp, &script::env()));
        let flows = sizes.iter().zip(0..).map(|(size, id)| script::flow(id, *size)).collect();
        let mut script = PolicyScript::new(Script::new(transport, flows), PolicyHost::new(policy, &META, 2));
        script.host.table.keep_counters(3);
        script
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    #[test]
    fn every_packet_goes_through_the_policy() {
        let mut script = script(Busy::default(), &[3 * 1460]);
        let sent = script.open(0);
        let shapes: Vec<_> = sent.iter().map(|p| (p.kind, p.wire_len, p.prio, p.has(Packet::ECT))).collect();
        assert_eq!(
            shapes,
            [(HELLO, 44, 5, true), (Kind::DATA, 1504, 5, true), (Kind::DATA, 1504, 5, true), (Kind::DATA, 1504, 5, true)]
        );
        assert!(sent.iter().all(|p| p.get_tag::<Tag>(&script.host.ext).class == 3 * 1460));
        assert_eq!(script.policy_host.made(), (1, 40));
        // The policy's counters come after those of the transport.
        assert_eq!(script.host.table.counts(FlowId(0)), [0, 0, 4]);
        sent.iter().for_each(|p| p.free(&mut script.host.ext));
        assert!(script.host.ext.is_empty());
    }

    #[test]
    fn the_transport_never_sees_packets_that_the_policy_keeps() {
        let mut script = script(Busy::default(), &[10 * 1460]);
        script.open(0);
        // The transport would acknowledge all bytes.
        let hello = Packet { offset: 10 * 1460, ..Packet::new(FlowId(0), HELLO, 40) };
        script.packet(hello);
        assert!(!script.host.table.get(FlowId(0)).closed);
        script.packet(Packet { kind: Kind::ACK, ..hello });
        assert!(script.host.table.get(FlowId(0)).closed);
        assert_eq!(script.policy_host.policy().seen, [("open", 0), ("receive", 0), ("receive", 0), ("close", 0)]);
    }

    #[test]
    fn the_policy_receives_timeouts_and_ends_and_has_its_own_timers() {
        let mut script = script(Busy::default(), &[10 * 1460, 1460]);
        script.open(0);
        script.advance(at(3_000));
        script.packet(Packet { offset: 10 * 1460, ..Packet::new(FlowId(0), Kind::ACK, 40) });
        // Flow 1 comes from another host.
        script.packet(Packet::data(FlowId(1), 0, 1460, 40));
        let host = FlowId::HOST.0;
        let seen = [("open", 0), ("timer", host), ("timeout", 0), ("timeout", 0), ("receive", 0), ("close", 0), ("receive", 1)];
        assert_eq!(script.policy_host.policy().seen, [&seen[..], &[("finish", 1)]].concat());
    }

    /// At equal times the transport's timers come first.
    #[test]
    fn the_policy_can_give_a_flow_up() {
        let mut script = script(Busy { give_up_at: Some(at(1_000)), ..Busy::default() }, &[100 * 1460]);
        script.open(0);
        script.advance(at(5_000));
        let host = FlowId::HOST.0;
        let seen = [("open", 0), ("timer", host), ("timeout", 0), ("timer", 0), ("close", 0)];
        assert_eq!(script.policy_host.policy().seen, seen);
        let record = script.host.table.get(FlowId(0));
        assert!(record.terminated && record.stats.timeouts == 1);
        assert_eq!((script.host.next_wake(), script.policy_host.next_wake()), (Time::MAX, Time::MAX));
    }

    #[test]
    fn a_receiver_knows_what_has_arrived() {
        let mut script = script(Busy::default(), &[2 * 1460]);
        script.host = script.host.at_host(1);
        for (offset, finished) in [(1460, false), (0, true), (0, true)] {
            script.packet(Packet::data(FlowId(0), offset, 1460, 40));
            let PolicyScript { host, policy_host } = &mut script;
            let seen = host.with(|transport, cx| policy_host.with(transport, cx, |_, cx| cx.has_finished(FlowId(0))));
            assert_eq!(seen, finished);
        }
    }

    #[test]
    fn a_policy_asks_for_paths_and_knows_their_links() {
        const META: Meta = Meta { knows: &["paths"], many_paths: true, ..Meta::PLAIN };
        let hop = |switch| Hop { switch: NodeId(switch), port: PortId(3), rate: Rate::from_gbps(1) };
        let mut script = script(Busy::default(), &[1460]);
        script.host.table.set_hops(FlowId(0), Arc::new(vec![vec![hop(4)], vec![hop(5)]]));
        script.policy_host.own.meta = &META;
        for (host, known) in [(0, Some(vec![hop(5)])), (1, None)] {
            script.host = script.host.at_host(host);
            let PolicyScript { host, policy_host } = &mut script;
            let seen = host.with(|transport, cx| {
                policy_host.with(transport, cx, |_, cx| {
                    cx.ask_path(FlowId(0), Path::Index(1));
                    assert!(cx.rng.below(7) < 7);
                    cx.hops(FlowId(0)).map(|hops| hops[1].clone())
                })
            });
            assert_eq!(seen, known);
            // The run finds the request after the policy has handled all other events.
            host.with(|transport, cx| policy_host.settle(transport, cx));
            assert_eq!(host.io.events.pop_front(), Some(HostEvent::Path(FlowId(0), Path::Index(1))));
            assert!(host.table.take_change());
        }
    }

    #[test]
    #[should_panic(expected = "the policy must not know deadlines")]
    #[cfg(debug_assertions)]
    fn a_policy_reads_only_what_its_meta_lists() {
        let flow = script::flow(0, 1);
        let mut script = script(Busy::default(), &[1]);
        let PolicyScript { host, policy_host } = &mut script;
        host.with(|transport, cx| policy_host.with(transport, cx, |_, cx| cx.flow(flow.id).deadline()));
    }
}
