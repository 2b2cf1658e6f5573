//! NSCC, the congestion control of the sender: a window that follows ECN marks and the delay of
//! packets in queues. The functions of `uec.cpp` that have these rules are cited in brackets.

use base::{Dur, Fraction, Rate, Time};

/// Fractional bits of the constants that the bandwidth-delay product scales.
const BITS: u32 = 16;

/// The constants of all windows of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NsccConfig {
    /// A full packet on the wire: the smallest window.
    pub(super) mtu: u64,
    /// The rate of the NIC.
    pub(super) rate: Rate,
    /// The longest unloaded round trip of the network.
    pub(super) network_rtt: Dur,
    /// Delay in queues at which windows stop growing fast, and above which marks lower them.
    pub(super) target: Dur,
    /// Largest window in bandwidth-delay products.
    pub(super) max_window: Fraction,
    /// The first window in bytes; `None`: the largest.
    pub(super) init_window: Option<u64>,
    /// `alpha`, `fair_increase` and `eta`: bytes with 16 fractional bits.
    pub(super) alpha: u64,
    pub(super) fair_increase: u64,
    pub(super) eta: u64,
    /// The time to which `alpha` refers.
    pub(super) reference_rtt: Dur,
    /// Growth per acknowledged byte in a fast increase, with 16 fractional bits.
    pub(super) fast_increase: u64,
    /// Delay below which windows may grow fast.
    pub(super) fast_delay: Dur,
    pub(super) gamma: Fraction,
    /// Largest part of a window that one decrease takes away.
    pub(super) max_decrease: Fraction,
    /// Weight of a sample in the mean delay.
    pub(super) delay_gain: Fraction,
    pub(super) quick_adapt: bool,
    /// A quick adaptation needs a goodput below the largest window divided by 2 to this power.
    pub(super) qa_gate: u32,
    /// Delay that is a reason for a quick adaptation.
    pub(super) qa_delay: Dur,
    /// The sum of increases is added to the window after this many bytes, or this time.
    pub(super) adjust_bytes: u64,
    pub(super) adjust_period: Dur,
}

impl NsccConfig {
    /// Returns `part` of `bytes`, scaled by the ratio of two bandwidth-delay products, with 16
    /// fractional bits.
    pub(super) fn scaled(part: Fraction, bytes: u64, bdp: u64, reference: u64) -> u64 {
        let product = (u128::from(part.ppb()) * u128::from(bytes)).saturating_mul(u128::from(bdp) << BITS);
        let unit = u128::from(Fraction::ONE.ppb()) * u128::from(reference.max(1));
        u64::try_from(product / unit).unwrap_or(u64::MAX)
    }
    /// Returns the largest window on a path with this unloaded round trip.
    pub(super) fn largest(&self, base_rtt: Dur) -> u64 {
        let bytes = u128::from(self.rate.bytes_in(base_rtt)) * u128::from(self.max_window.ppb());
        let window = u64::try_from(bytes / u128::from(Fraction::ONE.ppb())).unwrap_or(u64::MAX);
        window.max(self.mtu)
    }
}

/// The answer to a data packet, as far as a window depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowAck {
    pub(super) now: Time,
    /// Bytes that arrived since the last ACK, headers included.
    pub(super) received: u64,
    /// Whether the answered packet was marked.
    pub(super) marked: bool,
    /// Its delay in queues.
    pub(super) delay: Dur,
    /// Bytes in flight after the answer.
    pub(super) in_flight: u64,
}

/// The window of a connection.
#[derive(Clone, Debug)]
pub(super) struct Nscc {
    cwnd: u64,
    base_rtt: Dur,
    /// The largest window.
    max: u64,
    mean_delay: Dur,
    /// Increases that are not part of the window: bytes times bytes, with 16 fractional bits.
    increase: u128,
    /// Bytes received since the last adjustment.
    received: u64,
    /// Bytes received in the present period of quick adaptation.
    achieved: u64,
    /// End of that period; `None` before the first one.
    period_end: Option<Time>,
    /// Whether a packet was trimmed since the last quick adaptation.
    trimmed: bool,
    /// Marked ACKs of this many bytes, those that were in flight, are ignored after a quick
    /// adaptation; and how many have been.
    to_ignore: u64,
    ignored: u64,
    /// Bytes received in a row with a delay below `fast_delay`, and whether the window grows fast.
    fast_bytes: u64,
    fast: bool,
    last_adjust: Time,
    last_decrease: Time,
}

impl Nscc {
    /// Creates the window of a connection that opens now on a path with this unloaded round trip
    /// (initNscc).
    pub(super) fn new(config: &NsccConfig, base_rtt: Dur, now: Time) -> Nscc {
        let max = config.largest(base_rtt);
        Nscc {
            cwnd: config.init_window.unwrap_or(max).clamp(config.mtu, max),
            base_rtt,
            max,
            mean_delay: Dur::ZERO,
            increase: 0,
            received: 0,
            achieved: 0,
            period_end: None,
            trimmed: false,
            to_ignore: 0,
            ignored: 0,
            fast_bytes: 0,
            fast: false,
            last_adjust: now,
            last_decrease: now,
        }
    }
    /// Returns the window in bytes on the wire.
    #[inline]
    pub(super) fn cwnd(&self) -> u64 {
        self.cwnd
    }
    /// Returns the unloaded round trip.
    pub(super) fn base_rtt(&self) -> Dur {
        self.base_rtt
    }
    /// Returns the largest window.
    #[cfg(test)]
    fn max(&self) -> u64 {
        self.max
    }
    /// Returns the bytes that must arrive after a missing packet before losses are inferred: 1.5
    /// windows (loss_retx_factor), at most the largest window and at least five packets
    /// (min_retx_config).
    pub(super) fn inference_bytes(&self, mss: u64) -> u64 {
        (self.cwnd + self.cwnd / 2).min(self.max).max(5 * mss)
    }
    /// Returns the mean delay, which takes the place of a delay that was not measured.
    pub(super) fn mean_delay(&self) -> Dur {
        self.mean_delay
    }

    /// Lowers the unloaded round trip to a shorter one, and the largest window with it
    /// (update_base_rtt).
    pub(super) fn lower_base(&mut self, config: &NsccConfig, rtt: Dur) {
        if rtt < self.base_rtt {
            self.base_rtt = rtt;
            self.max = config.largest(rtt);
        }
    }
    /// Handles a measured round trip. Returns the delay in queues.
    pub(super) fn on_rtt(&mut self, config: &NsccConfig, rtt: Dur, marked: bool) -> Dur {
        if rtt < self.base_rtt {
            return self.mean_delay;
        }
        let delay = rtt - self.base_rtt;
        self.average(config, delay, marked);
        delay
    }
    /// Adds a delay to the mean. A long delay without a mark counts as a quarter of the unloaded
    /// round trip (update_delay).
    fn average(&mut self, config: &NsccConfig, delay: Dur, marked: bool) {
        let sample = if !marked && delay > config.target { self.base_rtt / 4 } else { delay };
        let gain = config.delay_gain;
        let sum =
            u128::from(sample.0) * u128::from(gain.ppb()) + u128::from(self.mean_delay.0) * u128::from(gain.complement().ppb());
        self.mean_delay = Dur((sum / u128::from(Fraction::ONE.ppb())) as u64);
    }

    /// Handles an ACK. Returns whether the window was adapted at once (updateCwndOnAck_NSCC).
    pub(super) fn on_ack(&mut self, config: &NsccConfig, ack: WindowAck) -> bool {
        self.achieved += ack.received;
        self.received += ack.received;
        self.ignored += ack.received;
        match self.adapt(config, ack, false) {
            Adapted::Now => return true,
            Adapted::Ignored => return false,
            Adapted::No => {}
        }
        let long = ack.delay >= config.target;
        match (ack.marked, long) {
            (false, true) => self.increase += u128::from(config.fair_increase) * u128::from(ack.received),
            (false, false) => self.grow(config, ack),
            (true, true) => self.decrease(config, ack.now),
            // Only the path changes.
            (true, false) => {}
        }
        self.bound(config);
        if self.received > config.adjust_bytes || ack.now.since(self.last_adjust) > config.adjust_period {
            self.adjust(config, ack.now);
            self.bound(config);
        }
        false
    }

    /// Handles the NACK of a packet of `wire` bytes. With `other_control`, another control limits
    /// the sender, and the window keeps its size unless it is adapted at once. Returns whether it was
    /// (updateCwndOnNack_NSCC).
    pub(super) fn on_nack(&mut self, config: &NsccConfig, wire: u64, in_flight: u64, now: Time, other_control: bool) -> bool {
        self.ignored += wire;
        // The network's round trip is an estimate of the delay at which ports trim.
        self.average(config, config.network_rtt, true);
        self.trimmed = true;
        let nack = WindowAck { now, received: 0, marked: true, delay: Dur::ZERO, in_flight };
        let adapted = self.adapt(config, nack, true);
        if adapted == Adapted::No && !other_control {
            self.cwnd = self.cwnd.saturating_sub(wire);
            self.bound(config);
        }
        adapted == Adapted::Now
    }

    /// Handles the loss of a packet of `wire` bytes that a timer found
    /// (mark_packet_for_retransmission).
    pub(super) fn on_timeout(&mut self, config: &NsccConfig, wire: u64) {
        self.cwnd = self.cwnd.saturating_sub(wire).max(config.mtu);
    }

    /// Sets the window to the bytes that arrived in the last period, if there were losses or long
    /// delays and these bytes are few (quick_adapt).
    fn adapt(&mut self, config: &NsccConfig, ack: WindowAck, lost: bool) -> Adapted {
        if !config.quick_adapt {
            return Adapted::No;
        }
        let mut adapted = Adapted::No;
        if self.ignored < self.to_ignore && ack.marked {
            adapted = Adapted::Ignored;
        } else if self.period_end.is_none_or(|end| ack.now > end) {
            let reason = self.trimmed || lost || ack.delay > config.qa_delay;
            if self.period_end.is_some() && reason && self.achieved < self.max >> config.qa_gate {
                self.cwnd = self.achieved.max(config.mtu);
                (self.to_ignore, self.ignored, self.trimmed) = (ack.in_flight, 0, false);
                adapted = Adapted::Now;
            }
            self.achieved = 0;
            self.period_end = Some(ack.now.after(Dur(self.base_rtt.0.saturating_add(config.target.0))));
        }
        if adapted != Adapted::No {
            (self.increase, self.received) = (0, 0);
        }
        adapted
    }

    /// Grows in proportion to the distance of the delay from the target, or fast after a window
    /// without delay (proportional_increase, fast_increase).
    fn grow(&mut self, config: &NsccConfig, ack: WindowAck) {
        if ack.delay < config.fast_delay {
            self.fast_bytes += ack.received;
            if self.fast || self.fast_bytes > self.cwnd {
                self.fast = true;
                let more = (u128::from(config.fast_increase) * u128::from(ack.received)) >> BITS;
                self.cwnd = self.cwnd.saturating_add(more as u64);
                return;
            }
        } else {
            self.fast_bytes = 0;
        }
        self.fast = false;
        let below = u128::from(config.target.0 - ack.delay.0);
        let more = (u128::from(config.alpha) * u128::from(ack.received)).saturating_mul(below);
        self.increase += more / u128::from(config.reference_rtt.0.max(1));
    }

    /// Lowers the window in proportion to the excess of the mean delay over the target, at most
    /// once per round trip (multiplicative_decrease).
    fn decrease(&mut self, config: &NsccConfig, now: Time) {
        (self.fast, self.fast_bytes) = (false, 0);
        if self.mean_delay <= config.target || now.since(self.last_decrease) <= self.base_rtt {
            return;
        }
        let excess =
            u128::from(config.gamma.ppb()) * u128::from((self.mean_delay - config.target).0) / u128::from(self.mean_delay.0);
        let cut = excess.min(config.max_decrease.ppb().into());
        self.cwnd -= (u128::from(self.cwnd) * cut / u128::from(Fraction::ONE.ppb())) as u64;
        self.cwnd = self.cwnd.max(config.mtu);
        self.last_decrease = now;
    }

    /// Adds the increases to the window, and `eta` once per period (fulfill_adjustment).
    fn adjust(&mut self, config: &NsccConfig, now: Time) {
        let more = (self.increase >> BITS) / u128::from(self.cwnd);
        self.cwnd = self.cwnd.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        if now.since(self.last_adjust) >= config.adjust_period {
            self.cwnd = self.cwnd.saturating_add(config.eta >> BITS);
            self.last_adjust = now;
        }
        (self.increase, self.received) = (0, 0);
    }

    fn bound(&mut self, config: &NsccConfig) {
        self.cwnd = self.cwnd.clamp(config.mtu, self.max);
    }
}

/// The outcome of [`Nscc::adapt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Adapted {
    /// The usual rules apply.
    No,
    /// The answer belongs to a packet that was sent before the last quick adaptation.
    Ignored,
    /// The window was adapted.
    Now,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Env;
    use crate::kit::script;
    use base::Bytes;
    use base::params::{Auto, Params as _};

    fn us(n: u64) -> Time {
        Time::ZERO + Dur::from_us(n)
    }

    /// The program's network: 100 Gb/s, 12 us, 4150-byte packets with a header of 64 bytes. One
    /// bandwidth-delay product is 150 000 bytes, so that the scale is one. Without trimming, the
    /// target is 12 us; most tests set 9 us, as with trimming.
    fn config(change: impl FnOnce(&mut super::super::Params)) -> NsccConfig {
        let mut params = super::super::Params::defaults();
        params.target_delay = Auto::Set(Dur::from_us(9));
        change(&mut params);
        let rate = Rate::from_gbps(100);
        let env =
            Env { nic_rate: rate, host_rate: rate, mtu_bytes: 4150, header_bytes: 64, max_rtt: Dur::from_us(12), ..script::env() };
        super::super::config::nscc(&params, &env)
    }
    fn window(config: &NsccConfig, cwnd: u64) -> Nscc {
        Nscc::new(&NsccConfig { init_window: Some(cwnd), ..*config }, Dur::from_us(12), Time::ZERO)
    }
    fn ack(at: Time, received: u64, marked: bool, delay: Dur) -> WindowAck {
        WindowAck { now: at, received, marked, delay, in_flight: 40_000 }
    }

    /// The constants that `htsim_uec` prints in a fat tree of 16 hosts at 100 Gb/s without trimming, but
    /// for the rounding to 2^-16 here: `alpha` is 0.00159158 bytes per picosecond, `_fi` 23873.7, `_eta`
    /// 716.21, `_fi_scale` 0.29214, and the largest window 262 926 bytes.
    #[test]
    fn constants_are_those_that_the_program_prints() {
        let rate = Rate::from_gbps(100);
        let max_rtt = Dur(14_022_720);
        let env = Env { nic_rate: rate, host_rate: rate, mtu_bytes: 4150, header_bytes: 64, max_rtt, ..script::env() };
        let config = super::super::config::nscc(&super::super::Params::defaults(), &env);
        assert_eq!((config.target, config.qa_delay, config.qa_gate), (max_rtt, max_rtt * 4, 3));
        // Alpha times the reference round trip of 12 us is 19 098.96 bytes.
        assert_eq!((config.alpha >> BITS, config.fair_increase >> BITS, config.eta >> BITS), (19_098, 23_873, 716));
        assert_eq!(config.fast_increase, 19_145, "0.29214 times 2^16");
        assert_eq!((config.adjust_bytes, config.adjust_period, config.mtu), (33_200, max_rtt, 4150));
        let window = Nscc::new(&config, max_rtt, Time::ZERO);
        assert_eq!((window.cwnd(), window.max(), config.fast_delay), (262_926, 262_926, Dur(14_022_720 / 12)));
        // With trimming: `_target_Qdelay` 10517040.
        let trims = base::given::GivenPart { slot: "qdisc", kind: "trim", values: vec![("trims", "true".to_owned())] };
        let given = base::Given::new(vec![trims]);
        let config = super::super::config::nscc(&super::super::Params::defaults(), &Env { given: &given, ..env });
        assert_eq!(config.target, Dur(10_517_040));
        let given = base::Given::new(vec![base::given::GivenPart {
            slot: "qdisc",
            kind: "trim",
            values: vec![("trims", "false".to_owned())],
        }]);
        assert_eq!(super::super::config::nscc(&super::super::Params::defaults(), &Env { given: &given, ..env }).target, max_rtt);
    }

    /// At 400 Gb/s and 6 us the bandwidth-delay product is 300 000 bytes: the scale is two.
    #[test]
    fn constants_scale_with_rate_and_delay() {
        let env =
            Env { nic_rate: Rate::from_gbps(400), mtu_bytes: 4150, header_bytes: 64, max_rtt: Dur::from_us(6), ..script::env() };
        let config = super::super::config::nscc(&super::super::Params::defaults(), &env);
        assert_eq!((config.alpha >> BITS, config.fair_increase >> BITS, config.eta >> BITS), (8 * 4086, 10 * 4086, 1225));
        assert_eq!((config.fast_increase, config.target, config.qa_delay), (1 << (BITS - 1), Dur::from_us(6), Dur::from_us(24)));
        let slow = super::super::config::nscc(&super::super::Params::defaults(), &script::env());
        // 16 160 bytes at 1 Gb/s and 129.28 us: 0.107733 of the reference.
        assert_eq!((slow.alpha >> BITS, slow.eta >> BITS, slow.largest(Dur::from_ns(129_280))), (629, 23, 24_240));
        assert_eq!(slow.fast_delay, Dur(129_280_000 / 12));
    }

    /// 16344 bytes per window and 12 us below the target: three ACKs of 16 600 bytes with 3 us are
    /// 3 * 16 600 * 16 344 * 6/12 / 100 000 = 4069 bytes, added after more than eight packets.
    #[test]
    fn without_mark_and_delay_the_window_grows_in_proportion() {
        let config = config(|_| ());
        let mut window = window(&config, 100_000);
        for (at, cwnd) in [(3, 100_000), (6, 100_000), (9, 104_069)] {
            window.on_ack(&config, ack(us(at), 16_600, false, Dur::from_us(3)));
            assert_eq!(window.cwnd(), cwnd, "{at}");
        }
        // Closer to the target the growth is smaller: one third of 4069.
        for at in [10, 10, 11] {
            window.on_ack(&config, ack(us(at), 16_600, false, Dur::from_us(7)));
        }
        assert_eq!(window.cwnd(), 104_069 + 3 * 16_600 * 16_344 / 6 / 104_069);
    }

    /// 20430 bytes per window: 3 * 16 600 * 20 430 / 100 000 = 10 174.
    #[test]
    fn without_mark_above_the_target_the_increase_is_fair() {
        let config = config(|_| ());
        let mut window = window(&config, 100_000);
        for at in [3, 6, 9] {
            window.on_ack(&config, ack(us(at), 16_600, false, Dur::from_us(9)));
        }
        assert_eq!(window.cwnd(), 110_174);
    }

    /// Eta is added with the first adjustment a period or more after the last, and an adjustment
    /// takes place when the period is over.
    #[test]
    fn once_per_period_eta_is_added() {
        let config = config(|_| ());
        let mut window = window(&config, 100_000);
        for (at, cwnd) in [(12, 100_000), (13, 100_612), (25, 100_612), (26, 101_224)] {
            window.on_ack(&config, ack(us(at), 0, true, Dur::from_us(3)));
            assert_eq!(window.cwnd(), cwnd, "{at}");
        }
    }

    #[test]
    fn after_a_window_without_delay_the_window_grows_fast() {
        let config = config(|_| ());
        let mut window = window(&config, 30_000);
        // Proportional growth is small here: it is added after 33 200 bytes only.
        let grow = |window: &mut Nscc, at, delay| {
            window.on_ack(&config, ack(us(at), 16_000, false, delay));
            window.cwnd()
        };
        let short = Dur::from_ns(999);
        assert_eq!(grow(&mut window, 1, short), 30_000);
        // 32 000 bytes exceed the window: a quarter of the acknowledged bytes is added, now and
        // with every ACK until the delay reaches 1 us. The third ACK also adds what the first earned:
        // 16 000 * 16 344 * (9 - 0.999) / 12 / 38 000.
        assert_eq!(grow(&mut window, 2, short), 34_000);
        assert_eq!(grow(&mut window, 3, short), 38_000 + 4588);
        assert_eq!(grow(&mut window, 4, Dur::from_us(1)), 42_588);
        assert_eq!(grow(&mut window, 5, short), 42_588, "the count of bytes begins again");
    }

    /// The mean must exceed the target: 0.8 * (10 - 9) / 10 = 8 % of the window; and no cut takes
    /// more than half.
    #[test]
    fn marks_and_delay_cut_the_window_once_per_round_trip() {
        let config = config(|params| params.delay_gain = Fraction::ONE);
        let mut window = window(&config, 100_000);
        let mut cut = |at, rtt| {
            let delay = window.on_rtt(&config, Dur::from_us(rtt), true);
            // Without new bytes there is no increase; eta is excluded by the time.
            window.last_adjust = us(at);
            window.on_ack(&config, ack(us(at), 0, true, delay));
            window.cwnd()
        };
        assert_eq!(cut(12, 22), 100_000, "the round trip since the start is not over");
        assert_eq!(cut(13, 21), 100_000, "the mean is not above the target");
        assert_eq!(cut(14, 22), 92_000);
        assert_eq!(cut(26, 22), 92_000, "12 us after the last cut");
        // 0.8 * (48 - 9) / 48 = 0.65: half.
        assert_eq!(cut(27, 60), 46_000);
        // A mark without delay changes nothing.
        window.on_ack(&config, ack(us(60), 0, true, Dur::from_us(8)));
        assert_eq!(window.cwnd(), 46_612, "eta");
    }

    #[test]
    fn a_decrease_ends_a_fast_increase() {
        let config = config(|_| ());
        let mut window = window(&config, 30_000);
        (window.fast, window.fast_bytes) = (true, 50_000);
        window.on_ack(&config, ack(us(1), 0, true, Dur::from_us(9)));
        assert!(!window.fast && window.fast_bytes == 0);
    }

    /// Weight 0.0125. A delay above the target without a mark counts as a quarter of the base.
    #[test]
    fn the_mean_delay_is_smoothed() {
        let config = config(|_| ());
        let mut window = window(&config, 100_000);
        assert_eq!(window.on_rtt(&config, Dur::from_us(20), true), Dur::from_us(8));
        assert_eq!(window.mean_delay(), Dur::from_ns(100));
        assert_eq!(window.on_rtt(&config, Dur::from_us(32), false), Dur::from_us(20));
        // 0.0125 * 3 us + 0.9875 * 100 ns.
        assert_eq!(window.mean_delay(), Dur(136_250));
        assert_eq!(window.on_rtt(&config, Dur::from_us(11), false), Dur(136_250), "shorter than the base: not measured");
    }

    #[test]
    fn a_shorter_round_trip_lowers_the_base_and_the_bound() {
        let config = config(|_| ());
        let mut window = window(&config, 225_000);
        window.lower_base(&config, Dur::from_us(13));
        assert_eq!((window.base_rtt(), window.max()), (Dur::from_us(12), 225_000));
        window.lower_base(&config, Dur::from_us(8));
        assert_eq!((window.base_rtt(), window.max()), (Dur::from_us(8), 150_000));
        window.on_ack(&config, ack(us(1), 0, true, Dur::from_us(3)));
        assert_eq!(window.cwnd(), 150_000);
    }

    /// Periods of 21 us, the base and the target. The gate is 225 000 / 8 = 28 125 bytes.
    #[test]
    fn a_period_with_few_bytes_and_a_loss_sets_the_window() {
        let config = config(|_| ());
        let mut window = window(&config, 100_000);
        // The first ACK begins a period, even with a loss before it.
        assert!(!window.on_nack(&config, 4_150, 40_000, us(12), false));
        assert_eq!(window.cwnd(), 95_850, "a NACK takes its packet from the window");
        assert!(!window.on_ack(&config, ack(us(20), 20_000, false, Dur::from_us(3))));
        let before = window.cwnd();
        assert!(!window.on_ack(&config, ack(us(33), 8_124, true, Dur::from_us(3))), "33 us is the end of the period, not after it");
        assert!(window.on_ack(&config, ack(us(34), 0, true, Dur::from_us(3))), "a packet was trimmed, and 28 124 bytes arrived");
        assert!(before > 90_000 && window.cwnd() == 28_124);
        // Marked ACKs of the 40 000 bytes in flight are ignored, and NACKs take nothing away.
        assert!(!window.on_nack(&config, 4_150, 36_000, us(35), false));
        assert!(!window.on_ack(&config, ack(us(60), 35_849, true, Dur::from_us(9))));
        assert_eq!((window.cwnd(), window.ignored), (28_124, 39_999));
        // The next marked answer counts: 35 849 bytes in the period are above the gate.
        assert!(!window.on_nack(&config, 1, 36_000, us(61), false));
        assert_eq!(window.cwnd(), 28_123);
    }

    #[test]
    fn a_period_with_many_bytes_or_without_reason_changes_nothing() {
        let config = config(|_| ());
        for (bytes, delay, adapted) in [(28_124, 37, true), (28_125, 37, false), (28_124, 36, false)] {
            let mut window = window(&config, 100_000);
            window.on_ack(&config, ack(us(12), 0, false, Dur::from_us(3)));
            window.on_ack(&config, ack(us(20), bytes, false, Dur::from_us(3)));
            let found = window.on_ack(&config, ack(us(40), 0, false, Dur::from_us(delay)));
            assert_eq!(found, adapted, "{bytes} {delay}");
        }
        let off = NsccConfig { quick_adapt: false, ..config };
        let mut window = window(&off, 100_000);
        window.on_nack(&off, 4_150, 0, us(12), false);
        assert!(!window.on_nack(&off, 4_150, 0, us(99), false));
        assert_eq!(window.cwnd(), 91_700);
    }

    /// 1.5 windows, between five packets and the largest window.
    #[test]
    fn losses_are_inferred_from_one_and_a_half_windows() {
        let config = config(|_| ());
        let bytes = [5_000, 20_000, 200_000].map(|cwnd| window(&config, cwnd).inference_bytes(4_086));
        assert_eq!(bytes, [20_430, 30_000, 225_000]);
    }

    #[test]
    fn the_window_never_leaves_its_bounds() {
        let config = config(|params| params.init_window = Auto::Set(Bytes(1)));
        let mut window = Nscc::new(&config, Dur::from_us(12), Time::ZERO);
        assert_eq!(window.cwnd(), 4_150);
        window.on_timeout(&config, 4_150);
        window.on_nack(&config, 4_150, 0, us(1), false);
        assert_eq!(window.cwnd(), 4_150);
        window.cwnd = 224_000;
        window.on_timeout(&config, 4_150);
        assert_eq!(window.cwnd(), 219_850);
        window.on_nack(&config, 4_150, 0, us(2), true);
        assert_eq!(window.cwnd(), 219_850, "receivers limit the sender too");
        (window.fast, window.fast_bytes) = (true, 0);
        window.on_ack(&config, ack(us(3), 100_000, false, Dur::ZERO));
        assert_eq!(window.cwnd(), 225_000);
    }
}
