//! What a transport is, and what it can see and do: the contract between hosts and the protocols that run on them.
//!
//! The runtime calls [`Transport::on_flow`], [`Transport::on_packet`] and [`Transport::on_timer`], and, while the NIC's backlog is at
//! or under its low-water mark, [`Transport::poll_transmit`] until it returns `None`. A machine therefore never pushes data: it
//! notes that it may send, and waits to be polled. Packets that must not wait behind data (ACKs, handshakes, credits) go out
//! through [`Cx::control`].

use crate::flow::{Flow, Sample};
use crate::host::{FlowTable, HostEvent, HostIo, Path};
use crate::packet::{Ext, Packet};
use crate::reassembly::Delivery;
use base::params::Problem;
use base::{Dur, FlowId, Given, HostId, Limit, Offers, Rate, Rng, Slab, Time, TimerKey};

/// A transport: the machine of one host.
pub trait Transport {
    /// The application opens a flow at this host.
    fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>);
    /// A packet reached this host.
    fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>);
    /// An armed deadline is due: one of a flow, or, under [`FlowId::HOST`], one of the host. It is disarmed.
    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>);
    /// The NIC can take a packet. `None`: nothing now, and nothing until one of the above is called.
    fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet>;
    /// Forgets the state of a flow that this host sends. Returns whether the flow was open.
    fn remove_sender(&mut self, flow: FlowId) -> bool;
    /// Gives up a flow that this host sends: if the flow is open, the sender forgets it and calls [`Cx::terminate`]. A sender that waits only
    /// for the end of its own state may go on.
    #[cold]
    fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        if self.remove_sender(flow) {
            cx.terminate(flow);
        }
    }
    /// A path of a flow that this host has asked for is known to be dead, so that the flow takes the router's path in its place, or is alive
    /// again.
    fn on_path(&mut self, _flow: FlowId, _path: u16, _alive: bool, _cx: &mut Cx<'_>) {}
    /// What to show of a flow this host sends, if it is open.
    fn sample(&self, flow: FlowId) -> Option<Sample>;
    /// How its flows open, and how long it waits before it takes a packet for lost; checks compare systems by it.
    fn timers(&self) -> Timers {
        Timers::default()
    }
    /// What it relies on queues to hold; checks compare the limits of queues with it.
    fn bursts(&self) -> Bursts {
        Bursts::default()
    }
}

/// What a transport relies on the queues of ports to hold, since the loss of it costs timeouts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bursts {
    /// Most payload of a flow that its sender sends before the receiver or the network can limit the flow.
    pub first_bytes: u64,
    /// Most payload that a receiver asks for at once from several senders, beyond what its link carries in a round trip.
    pub granted_bytes: u64,
}

/// How the flows of a transport open, and how long it waits before it takes a packet for lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timers {
    /// A handshake comes before the data of a flow. The request for a first credit is none: no host is without that round trip.
    pub handshake: bool,
    /// The retransmission timeout before the first round-trip sample.
    pub first: Option<Timeout>,
    /// The smallest retransmission timeout after that.
    pub least: Option<Timeout>,
    /// The timeouts are a rule of the protocol and no setting of a host, so that those of other transports need not be like them.
    pub fixed: bool,
}

/// A retransmission timeout, and the parameter that sets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timeout {
    /// The parameter.
    pub key: &'static str,
    /// Its value.
    pub after: Dur,
}

impl Timeout {
    /// The timeout that a parameter sets.
    pub const fn new(key: &'static str, after: Dur) -> Option<Timeout> {
        Some(Timeout { key, after })
    }
}

/// What a transport knows of its host and network from configuration.
#[derive(Clone, Copy, Debug)]
pub struct Env<'a> {
    /// The most that one flow of this host can have: the rate of its NIC. Of several NICs the fastest counts, or the sum of their rates where
    /// the packets of a flow leave through all of them.
    pub nic_rate: Rate,
    /// The most that this host can send or receive: the sum of the rates of its NICs.
    pub host_rate: Rate,
    /// Largest packet on the wire, headers included.
    pub mtu_bytes: u16,
    /// Header of every packet; also the size of a packet without payload.
    pub header_bytes: u16,
    /// Longest unloaded round trip of the network: a full packet out, a bare header back.
    pub max_rtt: Dur,
    /// Limit of the switch ports' queues.
    pub queue_limit: Limit,
    /// The other parts of its system.
    pub given: &'a Given,
    /// What each workload offers, in the order of the scenario.
    pub offered: &'a Offers<'a>,
}

impl Env<'_> {
    /// Payload of a full packet.
    pub fn mss(&self) -> u16 {
        self.mtu_bytes - self.header_bytes
    }
    /// Bandwidth-delay product of the longest path at the NIC's rate, in bytes.
    pub fn bdp_bytes(&self) -> u64 {
        self.nic_rate.bytes_in(self.max_rtt)
    }
    /// A default timeout: `usual`, or three unloaded round trips of the longest path if these take longer. RFC 6298 (2.2) computes that from a first
    /// sample.
    pub fn timeout(&self, usual: Dur) -> Dur {
        usual.max(self.max_rtt * 3)
    }
    /// The problem with a time that no answer can keep, since it is less than the longest unloaded round trip.
    pub fn too_short(&self, key: &'static str, time: Dur, hint: &str) -> Option<Problem> {
        let message = || format!("`{time}` is less than the longest unloaded round trip, which is `{}`", self.max_rtt);
        (time < self.max_rtt).then(|| Problem { key, message: message(), hint: hint.to_owned() })
    }
}

/// What a transport can see and do while it handles an event.
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
    /// What is recorded of every flow.
    pub table: &'a mut FlowTable,
}

impl<'a> Cx<'a> {
    /// The metadata of a flow.
    #[inline]
    pub fn flow(&self, flow: FlowId) -> &'a Flow {
        &self.flows[flow.index()]
    }
    /// Sets the deadline of a timer of `flow`; an earlier setting is replaced. A deadline that has passed is due now.
    #[inline]
    pub fn arm(&mut self, flow: FlowId, kind: u8, at: Time) {
        self.io.timers.arm(TimerKey { kind, flow }, at.max(self.now));
    }
    /// Takes a deadline away.
    #[inline]
    pub fn disarm(&mut self, flow: FlowId, kind: u8) {
        self.io.timers.disarm(TimerKey { kind, flow });
    }
    /// Whether a timer of `flow` is armed.
    pub fn is_armed(&self, flow: FlowId, kind: u8) -> bool {
        self.io.timers.is_armed(TimerKey { kind, flow })
    }
    /// Sets the deadline of a timer of this host, which belongs to no flow; an earlier setting is replaced. It comes back under
    /// [`FlowId::HOST`].
    #[inline]
    pub fn arm_host(&mut self, kind: u8, at: Time) {
        self.arm(FlowId::HOST, kind, at);
    }
    /// Takes the deadline of a timer of this host away.
    #[inline]
    pub fn disarm_host(&mut self, kind: u8) {
        self.disarm(FlowId::HOST, kind);
    }
    /// Whether a timer of this host is armed.
    pub fn is_host_armed(&self, kind: u8) -> bool {
        self.is_armed(FlowId::HOST, kind)
    }
    /// Sends a packet before all data: to the flow's other end.
    #[inline]
    pub fn control(&mut self, packet: Packet) {
        self.io.control.push_back(packet);
    }
    /// The receiver has `len` payload bytes of `flow` from `offset` on. Says what is new and what to acknowledge, and finishes the
    /// flow when its last byte has come.
    #[inline(always)]
    pub fn deliver(&mut self, flow: FlowId, offset: u64, len: u16) -> Delivery {
        let (delivery, finishes) = self.table.deliver(self.flow(flow), offset, len, self.now);
        if finishes {
            self.io.notify(HostEvent::Finish(flow));
        }
        delivery
    }
    /// Whether all bytes of `flow`, which this host receives, have arrived.
    #[inline]
    pub fn has_finished(&self, flow: FlowId) -> bool {
        debug_assert_eq!(self.flow(flow).dst, self.host, "senders learn of the end of a flow by its ACKs");
        self.table.get(flow).finish != Time::MAX
    }
    /// A retransmission timer of `flow` expired: counts it, and the host's policy hears of it.
    #[inline]
    pub fn note_timeout(&mut self, flow: FlowId) {
        self.table.count_timeout(flow);
        self.io.notify(HostEvent::Timeout(flow));
    }
    /// Duplicate ACKs had a segment of `flow` sent again: counts it.
    #[inline]
    pub fn note_fast_retransmit(&mut self, flow: FlowId) {
        self.table.count_fast_retransmit(flow);
    }
    /// Adds `n` to the counter of `flow` that has this place in the transport's [`Meta::counters`](base::registry::Meta).
    #[inline]
    pub fn count(&mut self, flow: FlowId, counter: usize, n: u64) {
        self.table.count(flow, counter, n);
    }
    /// How many paths what this host sends of `flow` may take.
    pub fn paths(&self, flow: FlowId) -> u16 {
        self.table.paths(flow, self.flow(flow).src != self.host)
    }
    /// Asks that what this host sends of `flow` take another path from now on. A packet may ask for itself alone by its
    /// [`path_tag`](Packet::path_tag).
    pub fn ask_path(&mut self, flow: FlowId, path: Path) {
        self.io.events.push_back(HostEvent::Path(flow, path));
        self.table.note_news();
    }
    /// The sender's own state of `flow` is done: forgets its timers.
    pub fn close(&mut self, flow: FlowId) {
        self.io.timers.forget(flow);
        self.io.notify(HostEvent::Close(flow));
        self.table.close(flow);
    }
    /// The sender gives `flow` up, whatever has arrived of it: nobody waits for it to finish any more.
    pub fn terminate(&mut self, flow: FlowId) {
        self.close(flow);
        self.table.terminate(self.flow(flow));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script::{self, Script};

    /// Beats twice, a millisecond apart, however many flows there are; asks for another path for the first flow at each beat.
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
    fn a_host_has_timers_counters_and_a_say_in_paths() {
        let mut host = Script::new(Beating { beats: 0 }, vec![script::flow(0, 1), script::flow(1, 1)]);
        host.table.keep_counters(2);
        host.table.set_paths(FlowId(0), true, 9);
        host.table.set_paths(FlowId(1), false, 4);
        host.open(0);
        host.open(1);
        host.advance(Time::ZERO + Dur::from_secs(1));
        assert_eq!(host.machine.beats, 2);
        assert_eq!([0, 1].map(|flow| host.table.counts(FlowId(flow))), [[0, 4], [0, 0]]);
        // Requests reach the run without a policy too, in order.
        let ask = |flow, path| HostEvent::Path(FlowId(flow), path);
        let asked = [ask(0, Path::Index(0)), ask(1, Path::Index(3)), ask(0, Path::Other), ask(0, Path::Other)];
        assert_eq!(host.io.events, asked);
    }
}
