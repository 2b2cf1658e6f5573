//! BOTCP: every ACK adjusts the window so that the longest queue on the path approaches a target,
//! which is higher for short flows than for long ones.
//!
//! Source: H. Ahmed, M. J. Arshad, "Buffer Occupancy-Based Transport to Reduce Flow Completion Time
//! of Short Flows in Data Center Networks", Symmetry 11(5):646, 2019, sections 3.2, 4.1 to 4.3. The
//! state machine is `kit/tcp`.
//!
//! Model: that of `kit/tcp`. The size of a flow is not read. The 4-octet IP option is 4 bytes of
//! header, which reduce the payload of a full packet: a flow of 1460 bytes takes two packets of
//! 1500. `option_bytes = "0B"` keeps the payload without the option, as in a simulator whose
//! packets have a given size. The option's octets are word 0 of a packet's header: BOF in data
//! packets, the echo in ACKs.
//!
//! Assumed:
//! - Where signs are missing in the paper's formulas, they are taken from its list of cases, its
//!   lemmas and its prose, which agree.
//! - BOF starts at zero. Occupancies count packets of 1500 bytes, rounded up; with `bof_unit =
//!   "kib"` the thresholds are converted and rounded.
//! - Windows below one segment: at most one packet is in flight, and the next transmission follows
//!   the last one by a smoothed round trip divided by `w`, or at once when `w` is back at 1.
//! - `w` stays between 1/64 and `max_cwnd`. Only whole packets of it are in flight.
//! - A flow is long from the packet on with which more than X bytes were sent; retransmitted bytes
//!   do not count.
//! - Losses are detected and repaired as in NewReno. Three duplicate ACKs halve `w`, but not below
//!   1, and `w` does not change until recovery ends; after a timeout it is at most 1.
//! - There is no handshake: data starts with the flow.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::tcp::{Ack, Cause, Congestion, Loss, Options, Tcp, Window};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Bytes, Dur, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "BOTCP: windows controlled by the largest buffer occupancy on the path",
    source: "Ahmed and Arshad, Symmetry 11(5):646, 2019",
    needs: Needs { agent: &["bof"], alike: &[("agent", "bof_unit")], ..Needs::NONE },
    queue_lengths: &["occ_long", "occ_short", "occ_max"],
    packets_only: "it controls windows by the queues of ports",
    implies: &[("nic.kind", "ns2")],
    host: "ns-2: all packets wait at the NIC in a queue like those of the switches",
    ..Meta::PLAIN
};

base::choice! {
    /// Unit of the buffer occupancy in packets.
    pub enum Unit {
        /// Packets of 1500 bytes, rounded up.
        Packet = "packet",
        /// 1024 bytes, rounded down.
        Kib = "kib",
    }
}

impl Unit {
    /// Returns the octet for `bytes` waiting bytes.
    #[inline]
    pub fn octet(self, bytes: u64) -> u8 {
        let units = match self {
            Unit::Packet => bytes.div_ceil(FULL_PACKET),
            Unit::Kib => bytes >> 10,
        };
        u8::try_from(units).unwrap_or(u8::MAX)
    }
    /// Converts `packets` to this unit, rounded to the nearest.
    fn of_packets(self, packets: u64) -> u64 {
        match self {
            Unit::Packet => packets,
            Unit::Kib => (packets * FULL_PACKET + 512) >> 10,
        }
    }
}

base::params! {
    /// Parameters of BOTCP.
    pub struct Params {
        ..tcp: Options {
            stack = "fine", "section 5: a smallest timeout of 0.2 ms";
            init_window = "1", "section 3.2: 1 MSS";
            max_cwnd = "256", "flowloom, see Assumed";
            handshake = "false", "flowloom, see Assumed";
        }
        /// Allowed occupancy for long flows (Bl), in packets.
        occ_long: u64 = "20" in 1..=250, "section 5";
        /// Allowed occupancy for short flows (Bs), in packets.
        occ_short: u64 = "40" in 1..=250, "section 5";
        /// Largest allowed occupancy (Bm), in packets.
        occ_max: u64 = "60" in 1..=250, "section 5";
        /// A flow that has sent more than this is long (X).
        long_after: Bytes = "10KB", "section 5; section 4.3: e.g. 50 KB";
        /// Bytes that the IP option adds to the header of each packet.
        option_bytes: Bytes = "4B" in Bytes(0)..=Bytes(40), "section 4.4: type, length, BOF and echo of section 4.1";
        /// Unit of the occupancy; must be the same as at the ports.
        bof_unit: Unit = "packet", "section 5 counts packets; section 3.1 shifts by ten bits: `kib`";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.tcp.check();
    let rows =
        [("occ_long", params.occ_long, "occ_short", params.occ_short), ("occ_short", params.occ_short, "occ_max", params.occ_max)];
    for (key, value, above, limit) in rows {
        if value >= limit {
            let message = format!("`{value}` is not below `{above}`, which is `{limit}`");
            problems.push(Problem { key, message, hint: format!("lower `{key}` or raise `{above}`") });
        }
    }
    problems
}

/// The machine of one host.
pub type Botcp = Tcp<Bocc>;

impl Botcp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.tcp.config(&Env { header_bytes: env.header_bytes + params.option_bytes.0 as u16, ..*env });
        let [long, short, most] = [params.occ_long, params.occ_short, params.occ_max].map(|n| params.bof_unit.of_packets(n));
        let smss = config.smss;
        let largest = (config.max_window / smss).min(MOST_SEGMENTS);
        let first = (config.init_window / smss).min(largest);
        let control = Bocc { smss, long, short, most, first, largest, long_after: params.long_after.0 };
        Tcp::with(config, control)
    }
}

/// Congestion control by buffer occupancy.
#[derive(Clone, Copy, Debug)]
pub struct Bocc {
    smss: u64,
    /// Bl.
    long: u64,
    /// Bs.
    short: u64,
    /// Bm.
    most: u64,
    /// Initial window, in segments.
    first: u64,
    /// Largest window, in segments.
    largest: u64,
    /// X.
    long_after: u64,
}

/// The state of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// `w`: the window in segments, with 32 fractional bits.
    w: u64,
    /// The flow is long.
    long: bool,
    /// When its last segment was handed to the NIC.
    last_tx: Time,
}

impl Bocc {
    /// Returns the window after an ACK that reports occupancy `b`: procedure 1, with the rows in
    /// the order of the cases of section 3.2.
    fn step(&self, w: u64, long: bool, b: u64) -> u64 {
        let Bocc { long: low, short, most, .. } = *self;
        let part = |n: u64| ((n << FRACTION) + b / 2) / b;
        let next = if w < ONE {
            // Procedure 4: l5 to l7, s4 to s6.
            match b {
                _ if 2 * b <= short => 2 * w,
                _ if b <= short => (2 * w).min(ONE),
                _ if b <= most => scaled(w, most, b).min(ONE),
                _ => scaled(w, most, b),
            }
        } else {
            let target = if long { low } else { short };
            match b {
                // Procedure 2: l1, s1.
                _ if 2 * b <= target => w + ONE,
                _ if b <= target => w + part(target - b),
                // Procedure 3: l2 and s2, l3, l4 and s3.
                _ if b <= if long { short } else { most } => (w - part(b - target)).max(ONE),
                _ if b <= most => (w - ONE / 2).max(ONE),
                _ => w - ONE / 2,
            }
        };
        next.clamp(ONE / 64, self.largest << FRACTION)
    }

    /// Returns a window as the bytes that may be in flight: whole segments, at least one.
    fn bytes(&self, w: u64) -> u64 {
        (w >> FRACTION).max(1) * self.smss
    }
}

/// Returns `w * n / b`, rounded to the nearest.
fn scaled(w: u64, n: u64, b: u64) -> u64 {
    (w * n + b / 2) / b
}

impl Congestion for Bocc {
    type State = State;

    fn open(&self, _flow: &Flow) -> State {
        State { w: self.first << FRACTION, long: false, last_tx: Time::ZERO }
    }

    fn inherit(&self, state: &mut State, before: &State) {
        (state.w, state.last_tx) = (before.w, before.last_tx);
    }

    #[inline]
    fn on_ack(&self, state: &mut State, window: &mut Window, ack: &Ack<'_>) {
        state.w = self.step(state.w, state.long, ack.feedback);
        window.cwnd = self.bytes(state.w);
    }

    fn on_loss(&self, state: &mut State, _window: &Window, loss: Loss) -> u64 {
        state.w = match loss.cause {
            Cause::Duplicates if state.w >= ONE => (state.w / 2).max(ONE),
            Cause::Duplicates => state.w,
            Cause::Timeout => state.w.min(ONE),
        };
        self.bytes(state.w)
    }

    #[inline]
    fn on_sent(&self, state: &mut State, now: Time, sent: u64) {
        state.last_tx = now;
        // Section 4.3.
        state.long |= sent > self.long_after;
    }

    #[inline]
    fn not_before(&self, state: &State, srtt: Dur) -> Time {
        if state.w >= ONE {
            return Time::ZERO;
        }
        let gap = (u128::from(srtt.0) << FRACTION).div_ceil(state.w.into());
        state.last_tx.after(Dur(u64::try_from(gap).unwrap_or(u64::MAX)))
    }
}

/// Bytes of a packet when occupancies are counted in packets.
const FULL_PACKET: u64 = 1500;
/// Fractional bits of a window.
const FRACTION: u32 = 32;
/// Upper bound of every window, so that the arithmetic does not overflow.
const MOST_SEGMENTS: u64 = 1 << 24;
/// A window of one segment.
const ONE: u64 = 1 << FRACTION;

#[cfg(test)]
mod tests;
