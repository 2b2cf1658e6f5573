//! The contract between hosts and transports: what a transport is, and what it can see and do.
//!
//! The runtime calls [`Transport::on_flow`], [`Transport::on_packet`] and [`Transport::on_timer`].
//! While the NIC's backlog is at or under its low-water mark, it calls [`Transport::poll_transmit`]
//! until that returns `None`. A transport therefore never pushes data: it records that it may send,
//! and waits to be polled. Packets that must not wait behind data (ACKs, handshakes, credits) go
//! out through [`Cx::control`].

use crate::flow::{Flow, Sample};
use crate::host::{FlowTable, HostEvent, HostIo, Path};
use crate::packet::{Ext, Packet};
use crate::reassembly::Delivery;
use crate::turns::RoundRobin;
use base::chosen::Chosen;
use base::params::{Auto, Param, Problem};
use base::{Dur, FlowId, Given, HostId, Limit, Offers, Rate, Rng, Slab, Time, TimerKey};
use std::ops::Range;

/// A transport: the state machine of one host.
pub trait Transport {
    /// Called when the application opens a flow at this host.
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>);
    /// Called when a packet reaches this host.
    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>);
    /// Called when an armed deadline is due: a flow's, or the host's under [`FlowId::HOST`]. The
    /// deadline is disarmed before the call.
    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>);
    /// Returns the next packet, when the NIC can take one. `None` means that no packet is ready
    /// before another method is called.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// Returns the queue of the flows that take turns; `None` for a transport with an order of its
    /// own. A host whose policy sets classes lets the flow with the best class send first.
    fn turns(&mut self) -> Option<&mut RoundRobin> {
        None
    }
    /// Returns the flow and the bytes of the packet that a flow in [`Transport::turns`] would send
    /// now.
    fn next_of(&self, _turn: FlowId) -> Option<(FlowId, Range<u64>)> {
        None
    }
    /// Forgets the state of a flow that this host sends. Returns whether the flow was open.
    fn remove_sender(&mut self, flow: FlowId) -> bool;
    /// Gives up a flow that this host sends: if the flow is open, the sender forgets it and calls
    /// [`Cx::terminate`]. A sender whose data has all been acknowledged and that only ends its own
    /// state may continue.
    #[cold]
    fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.remove_sender(flow) {
            cx.terminate(flow);
        }
    }
    /// Called when a path of a flow that this host has requested becomes dead or alive. While the
    /// path is dead, the flow takes the router's path.
    fn on_path(&mut self, _flow: FlowId, _path: u16, _alive: bool, _cx: &mut Cx<'_>) {}
    /// Returns the sample of a flow that this host sends, if it is open.
    fn sample(&self, flow: FlowId) -> Option<Sample>;
    /// Returns how flows open, and the retransmission timeouts; `check` compares the systems of a
    /// scenario by them.
    fn timers(&self) -> Timers {
        Timers::default()
    }
    /// Returns the bursts that queues must hold; `check` compares the limits of queues with them.
    fn bursts(&self) -> Bursts {
        Bursts::default()
    }
    /// Returns the setting by which flows with different source ports share a sequence of packets, if
    /// they do; `check` warns if such flows take several paths.
    fn shared_sequence(&self) -> Option<SharedSequence> {
        None
    }
}

/// The setting by which all flows from one host to another share a sequence of packets, whatever
/// their source ports. Packets of such flows should take one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedSequence {
    /// The name of the parameter.
    pub key: &'static str,
    /// Its value.
    pub value: &'static str,
    /// The value with which only flows with one source port share a sequence.
    pub apart: &'static str,
}

/// The bursts that the queues of ports must hold, since their loss costs timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Largest payload of a flow that its sender sends before the receiver or the network can limit
    /// it.
    pub first_bytes: u64,
    /// Largest payload that a receiver requests at once from several senders, beyond the amount
    /// that its link carries in a round trip.
    pub granted_bytes: u64,
}

/// How the flows of a transport open, and its retransmission timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// Whether a handshake precedes the data of a flow. The request for a first credit does not
    /// count: it is part of the protocol.
    pub handshake: bool,
    /// The retransmission timeout before the first round-trip sample.
    pub first: Option<Timeout>,
    /// The smallest retransmission timeout after that.
    pub least: Option<Timeout>,
    /// Whether the timeouts are fixed by the protocol and not a setting of the host, so that they
    /// need not equal those of other transports.
    pub fixed: bool,
}

/// A retransmission timeout, and the parameter that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timeout {
    /// The name of the parameter.
    pub key: &'static str,
    /// Its value.
    pub after: Dur,
}

impl Timeout {
    /// Creates the timeout that a parameter sets.
    pub const fn new(key: &'static str, after: Dur) -> Option<Timeout> {
        Some(Timeout { key, after })
    }
}

/// The configuration of the host and the network that a transport knows.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// Largest rate of one flow of this host: the rate of its NIC. With several NICs, the rate of
    /// the fastest, or the sum of their rates if the packets of a flow leave through all of them.
    pub nic_rate: Rate,
    /// Largest rate at which this host can send or receive: the sum of the rates of its NICs.
    pub host_rate: Rate,
    /// Largest packet on the wire, headers included.
    pub mtu_bytes: u16,
    /// Header of every packet; also the size of a packet without payload.
    pub header_bytes: u16,
    /// Longest unloaded round trip of the network: a full packet out, a bare header back.
    pub max_rtt: Dur,
    /// The same with a full packet back.
    pub full_rtt: Dur,
    /// Limit of the switch ports' queues.
    pub queue_limit: Limit,
    /// The other parts of its system.
    pub given: &'a Given,
    /// The traffic that each workload offers, in the order of the scenario.
    pub offered: &'a Offers<'a>,
    /// Records the values chosen for `auto`.
    pub chosen: Option<&'a Chosen>,
}

impl Env<'_> {
    /// Returns the value of the parameter `key`: the given value, or `derived` for `auto`, which is recorded for `check` and
    /// for manifests. Entries resolve all their parameters that can be `auto` with this method or [`Env::note_auto`].
    pub fn auto<T: Param>(&self, key: &'static str, given: Auto<T>, derived: T) -> T {
        self.note_auto(key, matches!(given, Auto::Auto), || derived.show());
        given.or(derived)
    }
    /// Records what is chosen for `auto` if a parameter `is_auto`, where this is not one value of the parameter's type. An empty
    /// text says that the parameter has no effect, and is not printed. The last record of a parameter counts.
    pub fn note_auto(&self, key: &'static str, is_auto: bool, meaning: impl FnOnce() -> String) {
        if let Some(chosen) = self.chosen.filter(|_| is_auto) {
            chosen.note(key, meaning());
        }
    }
    /// Returns the payload of a full packet.
    pub fn mss(&self) -> u16 {
        self.mtu_bytes - self.header_bytes
    }
    /// Returns the bandwidth-delay product of the longest path at the NIC's rate, in bytes.
    pub fn bdp_bytes(&self) -> u64 {
        self.nic_rate.bytes_in(self.max_rtt)
    }
    /// Returns a default timeout: `usual`, or three unloaded round trips of the longest path if
    /// these are longer. RFC 6298 (2.2) computes three round trips from a first sample.
    pub fn timeout(&self, usual: Dur) -> Dur {
        usual.max(self.max_rtt * 3)
    }
    /// Returns a problem if a time is shorter than the longest unloaded round trip, so that no
    /// answer can arrive within it.
    pub fn too_short(&self, key: &'static str, time: Dur, hint: &str) -> Option<Problem> {
        let message = || format!("`{time}` is less than the longest unloaded round trip, which is `{}`", self.max_rtt);
        (time < self.max_rtt).then(|| Problem { key, message: message(), hint: hint.to_owned() })
    }
}

/// The context of a transport while it handles an event: what it can see and do.
pub struct Cx<'a> {
    /// The present.
    pub now: Time,
    /// This host.
    pub host: HostId,
    /// All flows of the run, by id.
    pub flows: &'a [Flow],
    /// Blocks for large headers.
    pub ext: &'a mut Slab<Ext>,
    /// Random numbers of this host's protocol.
    pub rng: &'a mut Rng,
    /// This host's timers and control packets.
    pub io: &'a mut HostIo,
    /// The records of all flows.
    pub table: &'a mut FlowTable,
}

impl<'a> Cx<'a> {
    /// Returns the metadata of a flow.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> &'a Flow {
        &self.flows[flow.index()]
    }
    /// Sets the deadline of a timer of `flow`; an earlier setting is replaced. A deadline in the
    /// past is due now.
    #[inline]
    pub fn arm(&mut self, flow: FlowId, kind: u8, at: Time) {
        self.io.timers.arm(TimerKey { kind, flow }, at.max(self.now));
    }
    /// Clears the deadline of a timer of `flow`.
    #[inline]
    pub fn disarm(&mut self, flow: FlowId, kind: u8) {
        self.io.timers.disarm(TimerKey { kind, flow });
    }
    /// Returns whether a timer of `flow` is armed.
    pub fn is_armed(&self, flow: FlowId, kind: u8) -> bool {
        self.io.timers.is_armed(TimerKey { kind, flow })
    }
    /// Sets the deadline of a timer of this host, which belongs to no flow; an earlier setting is
    /// replaced. It is reported under [`FlowId::HOST`].
    #[inline]
    pub fn arm_host(&mut self, kind: u8, at: Time) {
        self.arm(FlowId::HOST, kind, at);
    }
    /// Clears the deadline of a timer of this host.
    #[inline]
    pub fn disarm_host(&mut self, kind: u8) {
        self.disarm(FlowId::HOST, kind);
    }
    /// Returns whether a timer of this host is armed.
    pub fn is_host_armed(&self, kind: u8) -> bool {
        self.is_armed(FlowId::HOST, kind)
    }
    /// Sends a packet to the flow's other end, before all data.
    #[inline]
    pub fn control(&mut self, packet: Packet) {
        self.io.control.push_back(packet);
    }
    /// Delivers `len` payload bytes of `flow` from `offset` on to the receiver, and finishes the
    /// flow with its last byte. Returns which bytes are new and what to acknowledge.
    #[inline(always)]
    pub fn deliver(&mut self, flow: FlowId, offset: u64, len: u16) -> Delivery {
        let (delivery, finishes) = self.table.deliver(self.flow(flow), offset, len, self.now);
        if finishes {
            self.io.notify(HostEvent::Finish(flow));
        }
        delivery
    }
    /// Counts a data packet that arrived before earlier ones and is not delivered: the receiver drops
    /// it, or keeps it until its turn.
    #[inline]
    pub fn note_undelivered(&mut self, packet: &Packet) {
        self.table.count_undelivered(packet.flow, packet.offset, packet.payload);
    }
    /// Returns whether all bytes of `flow`, which this host receives, have arrived.
    #[inline]
    pub fn has_finished(&self, flow: FlowId) -> bool {
        debug_assert_eq!(self.flow(flow).dst, self.host, "senders learn of the end of a flow by its ACKs");
        self.table.get(flow).finish != Time::MAX
    }
    /// Counts an expiry of a retransmission timer of `flow`, and reports it to the host's policy.
    #[inline]
    pub fn note_timeout(&mut self, flow: FlowId) {
        self.table.count_timeout(flow);
        self.io.notify(HostEvent::Timeout(flow));
    }
    /// Counts a fast retransmit of `flow`: duplicate ACKs made the sender retransmit a segment.
    #[inline]
    pub fn note_fast_retransmit(&mut self, flow: FlowId) {
        self.table.count_fast_retransmit(flow);
    }
    /// Adds `n` to the counter of `flow` with this index in the transport's
    /// [`Meta::counters`](base::registry::Meta).
    #[inline]
    pub fn count(&mut self, flow: FlowId, counter: usize, n: u64) {
        self.table.count(flow, counter, n);
    }
    /// Returns the number of paths for the packets that this host sends of `flow`.
    pub fn paths(&self, flow: FlowId) -> u16 {
        self.table.paths(flow, self.flow(flow).src != self.host)
    }
    /// Requests another path for the packets that this host sends of `flow` from now on. A single
    /// packet can name its path with its [`path_tag`](Packet::path_tag).
    pub fn ask_path(&mut self, flow: FlowId, path: Path) {
        self.io.events.push_back(HostEvent::Path(flow, path));
        self.table.note_change();
    }
    /// Closes the sender's state of `flow`, and forgets its timers.
    pub fn close(&mut self, flow: FlowId) {
        self.io.timers.forget(flow);
        self.io.notify(HostEvent::Close(flow));
        self.table.close(flow);
    }
    /// Records that the sender gives up `flow`, whatever has arrived of it: the run no longer waits
    /// for it to finish.
    pub fn terminate(&mut self, flow: FlowId) {
        self.close(flow);
        self.table.terminate(self.flow(flow));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script::{self, Script};

    /// Counts two beats of a host timer, a millisecond apart, for any number of flows; requests
    /// another path for the first flow at each beat.
    struct Beating {
        beats: u32,
    }

    const BEAT: u8 = 3;
    const BEATS: usize = 1;

    impl Transport for Beating {
        fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
            if !cx.is_host_armed(BEAT) {
                cx.arm_host(BEAT, cx.now.after(Dur::from_ms(1)));
            }
            cx.ask_path(flow, Path::Index(cx.paths(flow) - 1));
        }
        fn on_packet(&mut self, _: &Packet, _: &mut Cx<'_>) {}
        fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
            assert_eq!(key, TimerKey { flow: FlowId::HOST, kind: BEAT });
            self.beats += 1;
            cx.count(FlowId(0), BEATS, 2);
            cx.ask_path(FlowId(0), Path::Other);
            cx.arm_host(BEAT, cx.now.after(Dur::from_ms(1)));
            if self.beats == 2 {
                cx.disarm_host(BEAT);
            }
        }
        fn poll_transmit(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
            None
        }
        fn remove_sender(&mut self, _: FlowId) -> bool {
            false
        }
        fn sample(&self, _: FlowId) -> Option<Sample> {
            None
        }
    }

    #[test]
    fn a_host_has_timers_and_counters_and_may_request_paths() {
        let mut host = Script::new(Beating { beats: 0 }, vec![script::flow(0, 1), script::flow(1, 1)]);
        host.table.keep_counters(2);
        host.table.set_paths(FlowId(0), true, 9);
        host.table.set_paths(FlowId(1), false, 4);
        host.open(0);
        host.open(1);
        host.advance(Time::ZERO + Dur::from_secs(1));
        assert_eq!(host.machine.beats, 2);
        assert_eq!([0, 1].map(|flow| host.table.counts(FlowId(flow))), [[0, 4], [0, 0]]);
        // The run receives requests in order, also without a policy.
        let ask = |flow, path| HostEvent::Path(FlowId(flow), path);
        let asked = [ask(0, Path::Index(0)), ask(1, Path::Index(3)), ask(0, Path::Other), ask(0, Path::Other)];
        assert_eq!(host.io.events, asked);
    }
}
