//! The options of all transports on the RoCE machine, and the configuration derived from them.

use crate::contract::Env;
use base::params::{Auto, Param as _, Problem};
use base::{Dur, Rate};

base::choice! {
    /// How a sender recovers lost packets.
    pub enum Recovery {
        /// Go-back-N: the receiver drops packets that arrive out of order and asks for the first
        /// missing one, and the sender resends everything from there on.
        GoBackN = "go_back_n",
        /// IRN: the receiver keeps packets that arrive out of order, and the sender resends only
        /// lost ones. At most a bandwidth-delay product is in flight.
        Irn = "irn",
    }
}

base::choice! {
    /// The bound of the bytes in flight.
    pub enum Bound {
        /// None with go-back-N, one bandwidth-delay product with IRN.
        Auto = "auto",
        /// No bound: only the rate limits the sender.
        None = "none",
        /// One bandwidth-delay product: the NIC's rate times `base_rtt`.
        Bdp = "bdp",
        /// The present rate times `base_rtt`.
        Rate = "rate",
    }
}

base::choice! {
    /// The unit of the bytes in flight.
    pub enum WindowUnit {
        /// Bytes on the wire, as rates and queues have.
        Wire = "wire",
        /// Payload.
        Payload = "payload",
    }
}

base::choice! {
    /// Which messages share a queue pair.
    pub enum QueuePairs {
        /// None: every message has a queue pair of its own, which starts with the first rate.
        Message = "message",
        /// The messages from one host to another that have one source port.
        Port = "port",
        /// The messages from one host to another.
        Peer = "peer",
    }
}

base::params! {
    /// Options of the RoCE machine.
    pub struct Options {
        /// Which messages share a queue pair, its rate and its sequence numbers: `message`, none; `peer`, those from one
        /// host to another; `port`, those of them that have one source port, see `ports` of the workload.
        queue_pairs: QueuePairs = "message", "HPCC's simulator: a queue pair per flow; MPI and collective libraries: one per peer or channel";
        /// How lost packets are recovered: `go_back_n`, or `irn` (selective retransmission).
        recovery: Recovery = "go_back_n", "InfiniBand architecture, section 9.7; Mittal et al., SIGCOMM 2018: `irn`";
        /// Bound of the bytes in flight: `none`, `bdp`, or `rate`, which is the present rate times
        /// `base_rtt`; `auto`: `none` with go-back-N, `bdp` with IRN.
        window: Bound = "auto", "RoCE NICs have none; Mittal et al. section 3.2: BDP-FC";
        /// What this bound counts: bytes on the wire (the payload of full packets that take the bound with their headers),
        /// or payload, so that more bytes are in flight.
        window_unit: WindowUnit = "wire", "HPCC and PowerTCP, Algorithms 1: rates, queues and windows have one unit; their simulators: payload", quiet;
        /// The round trip of an unloaded path; `auto`: the longest of the network, a full packet
        /// out and a bare header back.
        base_rtt: Auto<Dur> = "auto" in Auto::Set(Dur::from_ns(100))..=Auto::Set(Dur::from_secs(1)), "HPCC section 3.3: T, the same for all flows";
        /// Smallest rate of a queue pair; `auto`: a thousandth of the NIC's rate.
        min_rate: Auto<Rate> = "auto" in Auto::Set(Rate(1_000))..=Auto::Set(Rate(1_000_000_000_000)), "HPCC's simulator: 100 Mb/s at 100 Gb/s";
        /// In-order packets per ACK. The last packet of a message is always acknowledged.
        ack_every: u32 = "1" in 1..=1_000_000, "HPCC's simulator: `L2_ACK_INTERVAL 1`";
        /// Least time between two NACKs that ask for the same packet, with go-back-N.
        nack_interval: Dur = "500us", "HPCC's simulator";
        /// Retransmission timeout, fixed; `auto`: with go-back-N the longer of 67.1 ms and three
        /// unloaded round trips; with IRN the longer of 320 us and three.
        rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "InfiniBand section 9.9.2.1.1: 4.096 us times 2^14 as in perftest; Mittal et al. section 4.1: RTO_high";
        /// With IRN, the timeout while fewer than three packets are in flight; `auto`: the longer of 100 us
        /// and three unloaded round trips.
        rto_low: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "Mittal et al. section 4.1: RTO_low, N = 3";
    }
}

impl Options {
    /// Returns the contradictions between options and with the network, for packets with `int_bytes`
    /// bytes of telemetry.
    pub fn check(&self, env: &Env<'_>, int_bytes: u16) -> Vec<Problem> {
        let mut problems = Vec::new();
        if int_bytes >= env.mss() {
            problems.push(Problem {
                key: "int_bytes",
                message: format!("`{int_bytes}` leaves no room for payload: a packet has {} bytes after its header", env.mss()),
                hint: "write fewer bytes, or a larger `mtu`".to_owned(),
            });
        }
        for (key, time) in [("rto", self.rto), ("rto_low", self.rto_low)] {
            if let Auto::Set(time) = time {
                problems.extend(env.too_short(key, time, "every packet would be retransmitted: write a longer time or `auto`"));
            }
        }
        if let Auto::Set(min) = self.min_rate
            && min > env.nic_rate
        {
            problems.push(Problem {
                key: "min_rate",
                message: format!("`{min}` is above the rate of a NIC, which is `{}`", env.nic_rate),
                hint: "write a lower rate or `auto`".to_owned(),
            });
        }
        problems
    }

    /// Returns the configuration of hosts that leave room for `int_bytes` bytes of telemetry in
    /// every packet.
    pub fn config(&self, env: &Env<'_>, int_bytes: u16) -> RoceConfig {
        let irn = self.recovery == Recovery::Irn;
        let bound = match self.window {
            Bound::Auto if irn => Bound::Bdp,
            Bound::Auto => Bound::None,
            other => other,
        };
        let shown = if bound == Bound::None { String::new() } else { bound.show() };
        env.note_auto("window", self.window == Bound::Auto, || shown);
        if !irn {
            env.note_auto("rto_low", self.rto_low == Auto::Auto, String::new);
        }
        let usual = if irn { Dur::from_us(320) } else { Dur::from_ns(4096 << 14) };
        let rto = env.auto("rto", self.rto, env.timeout(usual));
        let (mss, header) = (u64::from(env.mss() - int_bytes.min(env.mss() - 1)), env.header_bytes + int_bytes);
        let base_rtt = env.auto("base_rtt", self.base_rtt, env.max_rtt);
        RoceConfig {
            mss,
            header,
            line: env.nic_rate,
            min_rate: env.auto("min_rate", self.min_rate, Rate((env.nic_rate.bps() / 1000).max(1))),
            base_rtt,
            payload_time: match self.window_unit {
                WindowUnit::Wire => Dur((u128::from(base_rtt.0) * u128::from(mss) / u128::from(mss + u64::from(header))) as u64),
                WindowUnit::Payload => base_rtt,
            },
            irn,
            queue_pairs: self.queue_pairs,
            bound,
            ack_every: self.ack_every,
            nack_interval: self.nack_interval,
            rto,
            rto_low: if irn { env.auto("rto_low", self.rto_low, env.timeout(Dur::from_us(100))).min(rto) } else { rto },
        }
    }
}

/// The configuration of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoceConfig {
    /// Payload of a full packet.
    pub mss: u64,
    /// Header of every packet, room for telemetry included.
    pub header: u16,
    /// The rate of the NIC, the largest of a queue pair.
    pub line: Rate,
    /// The smallest rate of a queue pair.
    pub min_rate: Rate,
    /// The round trip of an unloaded path.
    pub base_rtt: Dur,
    /// The time in which a full link carries the payload that the bound of the bytes in flight allows at its rate.
    pub payload_time: Dur,
    /// Whether lost packets are resent selectively.
    pub irn: bool,
    /// Which messages share a queue pair.
    pub queue_pairs: QueuePairs,
    /// The bound of the bytes in flight; never [`Bound::Auto`].
    pub bound: Bound,
    /// In-order packets per ACK.
    pub ack_every: u32,
    /// Least time between NACKs for the same packet.
    pub nack_interval: Dur,
    /// Retransmission timeout.
    pub rto: Dur,
    /// Retransmission timeout while few packets are in flight.
    pub rto_low: Dur,
}

impl RoceConfig {
    /// Returns a rate between the smallest and the largest of a queue pair, from a number that may
    /// have any sign or size.
    pub fn clamp(&self, bps: f64) -> Rate {
        // Rounded to the nearest; a conversion to an integer saturates.
        Rate(((bps + 0.5) as u64).clamp(self.min_rate.bps(), self.line.bps().max(self.min_rate.bps())))
    }
    /// Returns the largest number of payload bytes in flight at a rate.
    pub fn window(&self, rate: Rate) -> u64 {
        match self.bound {
            Bound::None | Bound::Auto => u64::MAX,
            Bound::Bdp => self.line.bytes_in(self.payload_time).max(1),
            Bound::Rate => rate.bytes_in(self.payload_time).max(1),
        }
    }
}
