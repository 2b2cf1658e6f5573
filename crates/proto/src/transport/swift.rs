//! Swift: AIMD windows that keep the delay of the fabric and of the receiving host at a target.
//!
//! Source: G. Kumar et al., "Swift: Delay is Simple and Effective for Congestion Control in the
//! Datacenter", SIGCOMM 2020, sections 3.1 to 3.6 and Algorithm 1. The state machine is `kit/tcp`,
//! with selective acknowledgments. Decisions were compared with csg-htsim (Broadcom, `swift.cpp`).
//!
//! Model: that of `kit/tcp`. Every ACK gives the delay of its segment, from the time at which the NIC
//! took it. The endpoint delay is the time that the segment waited at the receiving host plus the
//! time that the ACK waited at the sending host: zero unless the system has a receiver. The fabric
//! delay is the rest. There is no path selection (PLB), no class of service for ACKs (section 3.7),
//! and delays have no errors.
//!
//! | rule | from |
//! |---|---|
//! | delay below the target: `cwnd += ai acked / cwnd`, or `ai acked` if `cwnd < 1` | Algorithm 1, lines 7 to 11 |
//! | otherwise, at most once per round trip: `cwnd *= max(1 - beta (delay - target) / delay, 1 - max_mdf)` | lines 12 to 14 |
//! | a fast recovery, at most once per round trip: `cwnd *= 1 - max_mdf` | lines 22 to 25 |
//! | a timeout: the same; from `retx_reset` timeouts in a row on `cwnd = min_cwnd` | lines 15 to 21 |
//! | `cwnd < 1`: one packet every `rtt / cwnd` | lines 29 to 30, section 3.4 |
//! | two windows, for fabric and endpoint delay; the smaller limits the flow | section 3.3 |
//! | fabric target: `base + hops per_hop + clamp(alpha / sqrt(cwnd) + beta, 0, fs_range)` | section 3.5 |
//!
//! `alpha = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd))`, `beta = -alpha / sqrt(fs_max_cwnd)`.
//!
//! The paper's times (a base target of 25 us) belong to its network. By default the target of a flow
//! is the unloaded round trip of its path, in place of `hops per_hop`, plus the longest unloaded
//! round trip of the network as `base`: queues of one bandwidth-delay product. `fs_range` is five
//! times `base`, as in csg-htsim, and `fs_max_cwnd` the bandwidth-delay product.
//!
//! Assumed:
//! - The text of the paper was not at hand: the algorithm was taken from csg-htsim and from other
//!   public programs that agree on it, and the constants `ai`, `beta`, `max_mdf`, `retx_reset` and
//!   `fs_min_cwnd` from csg-htsim, which calls most of them guesses.
//! - Windows have 32 fractional bits. A full segment is sent only if it fits into the window as a
//!   whole, unless the window is below one packet.
//! - The round trip of `can_decrease` and of pacing is the smoothed one, before the first sample the
//!   unloaded one. The time of the last decrease is set when a window shrinks, as in csg-htsim. Other
//!   programs also set it when a window stays as it is: every ACK then delays the next decrease.
//! - Each of the two windows has its own time of the last decrease. Losses cut both.
//! - Both windows grow only if the window was the limit (`kit/tcp`), so that a flow that its NIC limits
//!   does not collect a window.
//! - `max_cwnd = "auto"`: the bytes that the NIC sends in `base` plus the longest unloaded round trip,
//!   at least `init_window`.
//! - The endpoint delay is smoothed with the weight of RFC 6298, 1/8. Its target is by default the
//!   longest unloaded round trip of the network.
//! - `hops` are the switches on the flow's shortest path, not counted packet by packet (TTL).
//! - There is no handshake: connections between hosts are open before the flow. There is no slow
//!   start: flows begin with `init_window`.
//! - With `ack_every = 2` the wait for the second segment counts as fabric delay.
//!
//! Deviates: duplicate ACKs change no window, since only ACKs of new data have a delay in `kit/tcp`; in
//! recovery delays change both windows, but the sender uses the window of the loss until
//! recovery ends. After a timeout one segment is in flight until its ACK arrives (csg-htsim does the
//! same); then the window is Swift's. From csg-htsim (841d9e7), where that errs:
//! - It divides integers in `sqrt(cwnd/_mss)`: every window below a packet has the largest target. Mean completion times of
//!   incasts of 40 are 1 % shorter there.
//! - Copies of a route lose the number of hops, so that `per_hop` has no effect, and a flow sends a packet too many.

use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::tcp::{Ack, Cause, Config, Congestion, Loss, Options, Tcp, Window};
use crate::packet::Packet;
use base::params::{Auto, Param as _, Problem};
use base::registry::{Meta, Needs};
use base::{Bytes, Dur, Fraction, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "Swift: windows that keep fabric and endpoint delay at a target",
    source: "Kumar et al., SIGCOMM 2020",
    // The default target lets queues grow to one bandwidth-delay product.
    needs: Needs { least_limit: 1.0, ..Needs::NONE },
    host: "a user-space stack that paces packets; csg-htsim: one first-in first-out queue",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of Swift.
    pub struct Params {
        ..tcp: Options {
            sack = "true", "section 3.6";
            handshake = "false", "flowloom, see Assumed";
        }
        /// Additive increment, in packets per round trip.
        ai: Fraction = "1" in Fraction(1)..=Fraction(1_000_000_000_000), "csg-htsim";
        /// Multiplicative decrease constant.
        beta: Fraction = "0.8" in Fraction(0)..=Fraction::ONE, "csg-htsim";
        /// Largest part of a window that one decrease takes away.
        max_mdf: Fraction = "0.5" in Fraction(0)..=Fraction(999_999_999), "csg-htsim";
        /// Base target of the fabric delay; `auto`: the longest unloaded round trip of the network.
        base_target: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(60)), "flowloom; the paper's network: 25 us";
        /// Addition to the target per switch on the path; `auto`: the flow's unloaded round trip, in
        /// place of the sum over all switches.
        per_hop: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(60)), "flowloom; section 3.5 has one number for all links";
        /// Largest addition to the target for small windows; `auto`: five base targets. Zero switches
        /// flow scaling off.
        fs_range: Auto<Dur> = "auto" in Auto::Set(Dur::ZERO)..=Auto::Set(Dur::from_secs(60)), "csg-htsim";
        /// Window in packets up to which the addition is `fs_range`.
        fs_min_cwnd: Fraction = "0.1" in Fraction(1)..=Fraction(1_000_000_000_000_000), "csg-htsim";
        /// Window in packets from which there is no addition; `auto`: one bandwidth-delay product.
        fs_max_cwnd: Auto<Fraction> = "auto" in Auto::Set(Fraction(1))..=Auto::Set(Fraction(1_000_000_000_000_000)), "flowloom; csg-htsim: 100";
        /// Target of the smoothed endpoint delay; `auto`: the longest unloaded round trip.
        endpoint_target: Auto<Dur> = "auto" in Auto::Set(Dur(1))..=Auto::Set(Dur::from_secs(60)), "flowloom";
        /// Weight of a sample in the smoothed endpoint delay.
        endpoint_gain: Fraction = "0.125" in Fraction(1)..=Fraction::ONE, "flowloom: RFC 6298 (2.3)";
        /// Smallest window in packets.
        min_cwnd: Fraction = "0.001" in Fraction(1_000)..=Fraction::ONE, "section 3.4";
        /// Timeouts in a row that set the window to the smallest one (`RETX_RESET_THRESHOLD`).
        retx_reset: u32 = "5" in 1..=1_000_000, "csg-htsim";
    }
}

impl Params {
    /// Returns the base target.
    fn base(&self, env: &Env<'_>) -> Dur {
        env.auto("base_target", self.base_target, env.max_rtt.max(Dur(1)))
    }
    /// Returns the configuration of the machine.
    fn config(&self, env: &Env<'_>) -> Config {
        let mut config = self.tcp.config(env);
        if self.tcp.max_cwnd == Auto::Auto {
            let longest = Dur(self.base(env).0.saturating_add(env.max_rtt.0));
            config.max_window = env.nic_rate.bytes_in(longest).max(config.init_window);
            env.note_auto("max_cwnd", true, || Bytes(config.max_window).show());
        }
        config
    }
    /// Returns the windows in packets between which the target scales.
    fn scaled(&self, env: &Env<'_>) -> [Fraction; 2] {
        let bdp = env.bdp_bytes().div_ceil(env.mss().into()).clamp(1, MOST_PACKETS);
        [self.fs_min_cwnd, env.auto("fs_max_cwnd", self.fs_max_cwnd, Fraction(bdp * Fraction::ONE.ppb()))]
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = params.tcp.check();
    let [least, most] = params.scaled(env);
    if least >= most {
        let message = format!("`{least}` is not below `fs_max_cwnd`, which is `{most}`");
        let hint = "lower `fs_min_cwnd` or raise `fs_max_cwnd`".to_owned();
        problems.push(Problem { key: "fs_min_cwnd", message, hint });
    }
    problems
}

/// The machine of one host.
pub type Swift = Tcp<SwiftRules>;

impl Swift {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Tcp::with(params.config(env), SwiftRules::new(params, env))
    }
}

/// The window rules of Swift. Windows are packets with 32 fractional bits.
#[derive(Clone, Copy, Debug)]
pub struct SwiftRules {
    smss: u64,
    ai: u64,
    beta: Fraction,
    max_mdf: Fraction,
    base: Dur,
    per_hop: Option<Dur>,
    scaling: FlowScaling,
    endpoint_target: Dur,
    endpoint_gain: Fraction,
    min: u64,
    max: u64,
    /// Initial window.
    first: u64,
    retx_reset: u32,
}

/// Flow scaling of the fabric target (section 3.5).
#[derive(Clone, Copy, Debug)]
struct FlowScaling {
    range: Dur,
    /// `1 / sqrt(fs_min_cwnd)` and `1 / sqrt(fs_max_cwnd)`, with 32 fractional bits.
    roots: [u64; 2],
}

impl FlowScaling {
    fn new(range: Dur, windows: [Fraction; 2]) -> FlowScaling {
        FlowScaling { range, roots: windows.map(|window| inverse_root(fixed(window))) }
    }
    /// Returns the addition to the target of a flow with this window.
    fn of(&self, cwnd: u64) -> Dur {
        let [high, low] = self.roots;
        if self.range == Dur::ZERO || high <= low {
            return Dur::ZERO;
        }
        let part = inverse_root(cwnd).clamp(low, high) - low;
        Dur((u128::from(self.range.0) * u128::from(part) / u128::from(high - low)) as u64)
    }
}

/// A window that follows one delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DelayWindow {
    cwnd: u64,
    /// `t_last_decrease`.
    decreased: Option<Time>,
}

/// An observed delay and its target.
#[derive(Clone, Copy, Debug)]
struct Delay {
    delay: Dur,
    target: Dur,
}

/// The state of one flow.
#[derive(Clone, Copy, Debug)]
pub struct SwiftState {
    fabric: DelayWindow,
    endpoint: DelayWindow,
    /// The part of the fabric target that depends on the path.
    path: Dur,
    /// The smoothed endpoint delay; `None` before the first sample.
    endpoint_delay: Option<Dur>,
    /// `retransmit_cnt`.
    timeouts: u32,
    /// The smoothed round trip; before the first sample the unloaded one.
    rtt: Dur,
    /// When the last segment was handed to the NIC.
    last_tx: Time,
}

impl SwiftState {
    /// Returns the window of the flow.
    fn cwnd(&self) -> u64 {
        self.fabric.cwnd.min(self.endpoint.cwnd)
    }
    /// Returns whether the round trip since the last decrease of `window` is over.
    fn can_decrease(&self, window: &DelayWindow, now: Time) -> bool {
        window.decreased.is_none_or(|at| now.since(at) >= self.rtt)
    }
}

impl SwiftRules {
    /// Creates the rules.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let (config, base) = (params.config(env), params.base(env));
        env.note_auto("per_hop", params.per_hop == Auto::Auto, || "by path".to_owned());
        let most = MOST_PACKETS * config.smss;
        let packets = |bytes: u64| ((u128::from(bytes.min(most)) << BITS) / u128::from(config.smss)) as u64;
        let max = packets(config.max_window).max(ONE);
        SwiftRules {
            smss: config.smss,
            ai: fixed(params.ai),
            beta: params.beta,
            max_mdf: params.max_mdf,
            base,
            per_hop: match params.per_hop {
                Auto::Auto => None,
                Auto::Set(per_hop) => Some(per_hop),
            },
            scaling: FlowScaling::new(env.auto("fs_range", params.fs_range, Dur(base.0.saturating_mul(5))), params.scaled(env)),
            endpoint_target: env.auto("endpoint_target", params.endpoint_target, env.max_rtt.max(Dur(1))),
            endpoint_gain: params.endpoint_gain,
            min: fixed(params.min_cwnd),
            max,
            first: packets(config.init_window).min(max),
            retx_reset: params.retx_reset,
        }
    }
    /// Returns the target of the fabric delay.
    fn fabric_target(&self, state: &SwiftState) -> Dur {
        Dur(self.base.0.saturating_add(state.path.0).saturating_add(self.scaling.of(state.fabric.cwnd).0))
    }

    /// Algorithm 1, lines 7 to 14, after `acked` packets with this delay.
    fn step(&self, state: &SwiftState, window: DelayWindow, seen: Delay, acked: u64, ack: &Ack<'_>) -> DelayWindow {
        let Delay { delay, target } = seen;
        if delay >= target {
            let excess = u128::from(self.beta.ppb()) * u128::from(delay.0 - target.0) / u128::from(delay.0);
            return self.cut(state, window, Fraction(excess as u64).min(self.max_mdf), ack.now());
        }
        if !ack.window_limited {
            return window;
        }
        let growth = u128::from(self.ai) * u128::from(acked) / u128::from(window.cwnd.max(ONE));
        let cwnd = window.cwnd.saturating_add(u64::try_from(growth).unwrap_or(u64::MAX)).min(self.max);
        DelayWindow { cwnd, ..window }
    }

    /// Takes the fraction `part` away from a window, at most once per round trip.
    fn cut(&self, state: &SwiftState, window: DelayWindow, part: Fraction, now: Time) -> DelayWindow {
        if !state.can_decrease(&window, now) {
            return window;
        }
        let less = (u128::from(window.cwnd) * u128::from(part.ppb()) / u128::from(Fraction::ONE.ppb())) as u64;
        self.lower(window, window.cwnd - less, now)
    }

    /// Lowers a window to `cwnd`, down to the smallest one.
    fn lower(&self, window: DelayWindow, cwnd: u64, now: Time) -> DelayWindow {
        let cwnd = cwnd.max(self.min);
        if cwnd < window.cwnd { DelayWindow { cwnd, decreased: Some(now) } } else { window }
    }

    /// Returns a window as the bytes that may be in flight, at least one segment.
    fn bytes(&self, cwnd: u64) -> u64 {
        (((u128::from(cwnd) * u128::from(self.smss)) >> BITS) as u64).max(self.smss)
    }
}

impl Congestion for SwiftRules {
    type State = SwiftState;

    /// The time that the segment waited at the receiving host (section 3.1).
    #[inline]
    fn feedback(segment: &Packet, now: Time) -> u64 {
        now.since(segment.arrival).0
    }

    fn open(&self, flow: &Flow) -> SwiftState {
        let window = DelayWindow { cwnd: self.first, decreased: None };
        let path = self.per_hop.map_or(flow.rtt, |per_hop| Dur(per_hop.0.saturating_mul(flow.switches.into())));
        SwiftState { fabric: window, endpoint: window, path, endpoint_delay: None, timeouts: 0, rtt: flow.rtt, last_tx: Time::ZERO }
    }

    fn inherit(&self, state: &mut SwiftState, before: &SwiftState) {
        *state = SwiftState { timeouts: 0, path: state.path, ..*before };
    }

    fn on_feedback(&self, state: &mut SwiftState, ack: &Ack<'_>) {
        // Line 5.
        state.timeouts = 0;
        let Some(rtt) = ack.rtt() else { return };
        state.rtt = ack.srtt();
        let waited = Dur(ack.feedback.saturating_add(ack.waited().0)).min(rtt);
        let smoothed = state.endpoint_delay.map_or(waited, |old| average(old, waited, self.endpoint_gain));
        state.endpoint_delay = Some(smoothed);
        let acked = ((u128::from(ack.acked) << BITS) / u128::from(self.smss)) as u64;
        let fabric = Delay { delay: rtt - waited, target: self.fabric_target(state) };
        let endpoint = Delay { delay: smoothed, target: self.endpoint_target };
        state.fabric = self.step(state, state.fabric, fabric, acked, ack);
        state.endpoint = self.step(state, state.endpoint, endpoint, acked, ack);
    }

    #[inline]
    fn on_ack(&self, state: &mut SwiftState, window: &mut Window, _ack: &Ack<'_>) {
        window.cwnd = self.bytes(state.cwnd());
        // There is no slow start.
        window.ssthresh = window.cwnd;
    }

    fn before_loss(&self, state: &mut SwiftState, cause: Cause, now: Time) {
        state.timeouts = if cause == Cause::Timeout { state.timeouts.saturating_add(1) } else { 0 };
        let reset = state.timeouts >= self.retx_reset;
        let react = |window| if reset { self.lower(window, 0, now) } else { self.cut(state, window, self.max_mdf, now) };
        (state.fabric, state.endpoint) = (react(state.fabric), react(state.endpoint));
    }

    fn on_loss(&self, state: &mut SwiftState, _window: &Window, _loss: Loss) -> u64 {
        self.bytes(state.cwnd())
    }

    #[inline]
    fn on_sent(&self, state: &mut SwiftState, now: Time, _sent: u64) {
        state.last_tx = now;
    }

    #[inline]
    fn not_before(&self, state: &SwiftState, _srtt: Dur) -> Time {
        let cwnd = state.cwnd();
        if cwnd >= ONE {
            return Time::ZERO;
        }
        let gap = (u128::from(state.rtt.0) << BITS) / u128::from(cwnd);
        state.last_tx.after(Dur(u64::try_from(gap).unwrap_or(u64::MAX)))
    }
}

/// Returns a fraction with 32 fractional bits, above zero.
fn fixed(fraction: Fraction) -> u64 {
    ((u128::from(fraction.ppb()) << BITS) / u128::from(Fraction::ONE.ppb())).max(1) as u64
}

/// Returns `1 / sqrt(cwnd)`; both have 32 fractional bits.
fn inverse_root(cwnd: u64) -> u64 {
    ((1u128 << (3 * BITS)) / u128::from(cwnd)).isqrt() as u64
}

/// Returns `(1 - gain) old + gain new`, rounded down.
fn average(old: Dur, new: Dur, gain: Fraction) -> Dur {
    let parts = u128::from(old.0) * u128::from(gain.complement().ppb()) + u128::from(new.0) * u128::from(gain.ppb());
    Dur((parts / u128::from(Fraction::ONE.ppb())) as u64)
}

/// Fractional bits of a window.
const BITS: u32 = 32;
/// A window of one packet.
const ONE: u64 = 1 << BITS;
/// Upper bound of every window in packets, so that the arithmetic does not overflow.
const MOST_PACKETS: u64 = 1 << 24;

#[cfg(test)]
mod tests;
