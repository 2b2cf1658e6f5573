//! Test harness: hand-made packets and times in, packets out. One host, no network.

use crate::contract::{Cx, Env, Transport};
use crate::flow::Flow;
use crate::host::{FlowTable, HostIo};
use crate::kit::tcp::Ack;
use crate::packet::{Ext, Packet};
use base::given::Offered;
use base::params::{Raw, Reader, Shape};
use base::registry::Entry;
use base::{Dur, FlowId, Fraction, Given, HostId, Limit, Offers, Rate, Rng, Slab, Time, TimerKey};

/// A host with one transport, driven by hand.
pub struct Script<T> {
    /// The machine under test.
    pub machine: T,
    /// The current time. Set it, or call [`Script::advance`].
    pub now: Time,
    /// The flows of the run, by id.
    pub flows: Vec<Flow>,
    /// Blocks for large headers.
    pub ext: Slab<Ext>,
    /// The records of the flows.
    pub table: FlowTable,
    /// Timers and control packets.
    pub io: HostIo,
    /// While set, the NIC takes only control packets.
    pub nic_busy: bool,
    host: HostId,
    rng: Rng,
}

/// A flow of `size_bytes` payload bytes from host 0 to host 1 at time 0 over 1 Gb/s with a round trip of 129.28 us, the longest path
/// of MERP's single tree.
pub fn flow(id: u32, size_bytes: u64) -> Flow {
    Flow {
        id: FlowId(id),
        src: HostId(0),
        dst: HostId(1),
        size_bytes,
        size_wire_bytes: Flow::wire_bytes(size_bytes, 1460, 40),
        start: Time::ZERO,
        deadline: None,
        group: u64::MAX,
        workload: 0,
        src_port: 10_000 + id as u16,
        rtt: Dur::from_ns(129_280),
        bottleneck: Rate::from_gbps(1),
        switches: 5,
        measured: true,
        wait: None,
    }
}

/// The environment of MERP's single tree: 1 Gb/s, 1500-byte packets, 129.28 us, 100-packet queues.
pub fn env() -> Env<'static> {
    Env {
        nic_rate: Rate::from_gbps(1),
        host_rate: Rate::from_gbps(1),
        mtu_bytes: 1500,
        header_bytes: 40,
        max_rtt: Dur::from_ns(129_280),
        full_rtt: Dur::from_ns(154_800),
        queue_limit: Limit::Packets(100),
        given: Given::none(),
        offered: Offers::none(),
        chosen: None,
    }
}

/// Two workloads with loads, for parameters that are computed from the workloads.
pub fn offers() -> Offers<'static> {
    let offered = |sizes: &[(u64, f64)]| Offered { load: Some(Fraction(400_000_000)), sizes: sizes.to_vec() };
    Offers::new(move || vec![offered(&[(100, 0.0), (10_000, 0.5), (10_000_000, 1.0)]), offered(&[(64_000, 0.0), (64_000, 1.0)])])
}

/// Returns the names of an entry's parameters that can be `auto`.
pub fn can_be_auto(entry: &Entry) -> Vec<&'static str> {
    fn accepts(shape: &Shape) -> bool {
        match shape {
            Shape::Or(word, other) => *word == "auto" || accepts(other),
            Shape::OneOf(words) => words.contains(&"auto"),
            _ => false,
        }
    }
    entry.fields.iter().filter(|field| accepts(&(field.shape)())).map(|field| field.name).collect()
}

/// Reads `auto` for every parameter of an entry that can be `auto`; all other parameters are as the META implies.
pub struct AllAuto(pub &'static Entry);

impl Reader for AllAuto {
    fn get(&mut self, key: &'static str) -> Option<Raw> {
        let own = |name: &str| ["transport.", "policy."].iter().any(|slot| name.strip_prefix(slot) == Some(key));
        let implied = self.0.meta.implies.iter().find(|(name, _)| own(name));
        let value = if can_be_auto(self.0).contains(&key) { Some("auto") } else { implied.map(|(_, value)| *value) };
        value.map(|value| Raw::Str(value.to_owned()))
    }
    fn fail(&mut self, key: &'static str, message: String) {
        panic!("{key}: {message}");
    }
}

/// An ACK of `acked` bytes for a congestion controller: limited by the window, without a mark, at
/// time 0.
pub fn ack(flow: &Flow, acked: u64) -> Ack<'_> {
    let (window_limited, may_change) = (true, true);
    let seen =
        plugin::congestion::Ack { acked, slow_start: acked.min(1460), window_limited, may_change, ..plugin::congestion::Ack::NONE };
    Ack { seen, flow, feedback: 0 }
}

/// The same ACK with other contents.
pub fn ack_with(flow: &Flow, acked: u64, change: impl FnOnce(&mut plugin::congestion::Ack)) -> Ack<'_> {
    let mut ack = ack(flow, acked);
    change(&mut ack.seen);
    ack
}

impl<T: Transport> Script<T> {
    /// Creates host 0 with `machine`, and `flows` by id.
    pub fn new(machine: T, flows: Vec<Flow>) -> Script<T> {
        let table = FlowTable::new(flows.len());
        let rng = Rng::stream(1, "script", &[]);
        Script {
            machine,
            now: Time::ZERO,
            flows,
            ext: Slab::default(),
            table,
            io: HostIo::default(),
            nic_busy: false,
            host: HostId(0),
            rng,
        }
    }
    /// Moves the machine to another host: receivers are tested as host 1.
    pub fn at_host(mut self, host: u32) -> Script<T> {
        self.host = HostId(host);
        self
    }
    /// Calls `act` with the machine and its context.
    pub fn with<R>(&mut self, act: impl FnOnce(&mut T, &mut Cx<'_>) -> R) -> R {
        let mut cx = Cx {
            now: self.now,
            host: self.host,
            flows: &self.flows,
            ext: &mut self.ext,
            rng: &mut self.rng,
            io: &mut self.io,
            table: &mut self.table,
        };
        act(&mut self.machine, &mut cx)
    }
    /// Opens `flow` now. Returns the packets that the host sends.
    pub fn open(&mut self, flow: u32) -> Vec<Packet> {
        self.with(|machine, cx| machine.on_flow(FlowId(flow), cx));
        self.sent()
    }
    /// Gives up `flow` now. Returns the packets that the host sends.
    pub fn give_up(&mut self, flow: u32) -> Vec<Packet> {
        self.with(|machine, cx| machine.give_up(FlowId(flow), cx));
        self.sent()
    }
    /// Delivers `packet` now. It has arrived now, unless its arrival is set. Returns the packets that
    /// the host sends.
    pub fn packet(&mut self, mut packet: Packet) -> Vec<Packet> {
        if packet.arrival == Time::ZERO {
            packet.arrival = self.now;
        }
        self.with(|machine, cx| machine.on_packet(&packet, cx));
        self.sent()
    }
    /// Advances time to `until` and fires every timer on the way. Returns the packets that the host
    /// sends, each with its time in `sent_at`.
    pub fn advance(&mut self, until: Time) -> Vec<Packet> {
        let mut all = Vec::new();
        loop {
            let next = self.io.timers.next_wake();
            if next > until {
                break;
            }
            self.now = self.now.max(next);
            while let Some(key) = self.io.timers.pop_due(self.now) {
                self.with(|machine, cx| machine.on_timer(key, cx));
            }
            all.extend(self.sent());
        }
        self.now = until;
        all
    }
    /// Returns when the next timer may fire.
    pub fn next_wake(&self) -> Time {
        self.io.timers.next_wake()
    }
    /// Returns whether a timer is armed.
    pub fn is_armed(&self, flow: u32, kind: u8) -> bool {
        self.io.timers.is_armed(TimerKey { kind, flow: FlowId(flow) })
    }
    /// Takes all packets that the host would send now: control packets, then data until there is
    /// none or the NIC is busy.
    pub fn sent(&mut self) -> Vec<Packet> {
        let mut packets: Vec<Packet> = self.io.control.drain(..).collect();
        while !self.nic_busy {
            let Some(packet) = self.with(|machine, cx| machine.poll_transmit(cx)) else { break };
            packets.extend(self.io.control.drain(..));
            packets.push(packet);
            assert!(packets.len() < 100_000, "a machine that never stops sending");
        }
        for packet in &mut packets {
            packet.sent_at = self.now;
            if packet.payload > 0 {
                self.table.on_transmit(packet, self.now);
            }
        }
        packets
    }
}
