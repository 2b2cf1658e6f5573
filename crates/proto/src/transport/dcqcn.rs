//! DCQCN: marks come back as notifications, which cut the rate of a queue pair; timers and bytes
//! raise it again.
//!
//! Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015, sections 3 and 5, Fig. 7; for `reaction =
//! "periodic"` the "mlx" controller of `rdma-hw.cc` in HPCC's simulator (alibaba-edu/High-Precision-Congestion-Control). The machine is
//! `kit/roce`.
//!
//! Model: that of `kit/roce`. Ports mark by RED on the present queue (`red_ecn` with `wq = 1`).
//!
//! | rule | from |
//! |---|---|
//! | receiver: a marked packet causes a notification, at most one per `cnp_interval` | section 3.1, NP |
//! | notification: `target = rate`, `rate = rate (1 - alpha / 2)`, `alpha = (1 - g) alpha + g` | eq. 1 |
//! | no notification for `alpha_interval`: `alpha = (1 - g) alpha` | eq. 2 |
//! | every `timer` and every `byte_counter` bytes: one of three increases | Fig. 7 |
//! | fast recovery, while neither has expired more than F times: `rate = (rate + target) / 2` | eq. 3 |
//! | additive increase, when one of them has: `target += rate_ai` before that | eq. 4 |
//! | hyper increase, when both have: `target += rate_hai` before that | section 3.1 |
//!
//! Assumed:
//! - `rate_ai` and `rate_hai` are a thousandth and a hundredth of the NIC's rate: the paper has 40
//!   Mb/s at 40 Gb/s, and HPCC's simulator ten times as much for the hyper increase.
//! - The paper does not say from which count on "more than F" holds: the first F expiries are fast
//!   recovery.
//! - Before its first notification a queue pair has the NIC's rate and runs no timer. The first one
//!   sets alpha to `alpha`, then cuts.
//! - With `reaction = "periodic"`, notifications only set flags. Every `alpha_interval`, alpha takes
//!   the flag as 0 or 1; every `decrease_interval`, a set flag cuts the rate. The target keeps its
//!   value if no increase has come since the last cut, unless `clamp_target`. Bytes raise no rate.
//! - ACKs, NACKs and notifications cannot be marked, and a port that marks lets them pass.
//! - By default ports mark nothing below DCTCP's threshold, a fifth of the packets just below four
//!   times that threshold, and everything above: the ratio and the probability of HPCC's simulator.
//!   The paper has 5 KB, 200 KB and 1 % at 40 Gb/s.
//! - By default ports mark packets that leave, by what waits behind them, as the simulators of HPCC and PowerTCP, whose
//!   published results have DCQCN. Section 3.1, CP, marks packets that arrive (`qdisc.at = "enqueue"`): with the constants of
//!   PowerTCP's simulator marks are then older by the time in the queue, queues twice as long, and mean completion times
//!   from 34 % shorter (incasts on a long flow) to 23 % longer (two long flows).
//!
//! Deviates: from the simulators of HPCC and PowerTCP, where a new rate does not move a departure that is already
//! scheduled (1 to 3 % of completion times; with one threshold for all marks 15 % in incasts).

use crate::contract::Env;
use crate::kit::roce::{KINDS, Options, RateControl, Roce, RoceConfig};
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};
use base::{Bytes, Dur, Fraction, Rate, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "DCQCN: RoCE with notifications of marks, a rate per queue pair, timers and a byte counter",
    source: "Zhu et al., SIGCOMM 2015",
    needs: Needs { marks: true, ..Needs::NONE },
    implies: &[
        ("qdisc.kind", "red_ecn"),
        ("qdisc.wq", "1"),
        ("qdisc.spread", "4"),
        ("qdisc.max_p", "0.2"),
        ("qdisc.spacing", "geometric"),
        ("qdisc.chosen", "mark_only"),
        ("qdisc.at", "dequeue"),
    ],
    kinds: KINDS,
    host: "an RDMA NIC; HPCC's simulator: queue pairs take turns when the link is free",
    ..Meta::PLAIN
};

base::choice! {
    /// When a sender reacts to notifications.
    pub enum Reaction {
        /// To each one at once.
        Immediate = "immediate",
        /// When its timers expire.
        Periodic = "periodic",
    }
}

base::params! {
    /// Parameters of DCQCN.
    pub struct Params {
        ..roce: Options {}
        /// Gain of alpha.
        g: Fraction = "0.00390625" in Fraction(1)..=Fraction::ONE, "section 5: 1/256";
        /// Alpha before the first cut.
        alpha: Fraction = "1" in Fraction(0)..=Fraction::ONE, "section 3.1";
        /// Least time between two notifications of a queue pair.
        cnp_interval: Dur = "50us", "section 3.1, NP: N";
        /// Alpha decreases when no notification has come for this time.
        alpha_interval: Dur = "55us" in Dur::from_ns(100)..=Dur::from_secs(1), "section 3.1: K";
        /// Period of the timer that raises the rate.
        timer: Dur = "55us" in Dur::from_ns(100)..=Dur::from_secs(1), "section 5.2, Fig. 12";
        /// Bytes sent between two increases; `auto`: 10 MB, with `reaction = "periodic"` no
        /// increase by bytes.
        byte_counter: Auto<Bytes> = "auto" in Auto::Set(Bytes(1))..=Auto::Set(Bytes(u64::MAX)), "section 5.2: B = 10 MB";
        /// Number of fast recoveries, F.
        fast_recoveries: u32 = "5", "section 3.1: F = 5";
        /// Additive increase of the target; `auto`: a thousandth of the NIC's rate.
        rate_ai: Auto<Rate> = "auto", "section 5.2: 40 Mb/s at 40 Gb/s";
        /// Hyper increase of the target; `auto`: a hundredth of the NIC's rate.
        rate_hai: Auto<Rate> = "auto", "HPCC's simulator: ten times `rate_ai`";
        /// When a sender reacts to notifications: `immediate` as in the paper, or `periodic` as in
        /// HPCC's simulator.
        reaction: Reaction = "immediate", "eq. 1";
        /// Least time between two cuts with `reaction = "periodic"`.
        decrease_interval: Dur = "4us" in Dur::from_ns(100)..=Dur::from_secs(1), "HPCC's simulator: `RATE_DECREASE_INTERVAL 4`", quiet;
        /// With `reaction = "periodic"`: whether a cut always lowers the target to the rate before it.
        clamp_target: bool = "false", "HPCC's simulator: `CLAMP_TARGET_RATE 0`", quiet;
    }
}

/// Returns the contradictions between parameters and with the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    params.roce.check(env, 0)
}

/// The machine of one host.
pub type Dcqcn = Roce<Quantized>;

impl Dcqcn {
    /// Creates a host without messages.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.roce.config(env, 0);
        Roce::with(config, Quantized::new(params, config, env)).notify_every(params.cnp_interval)
    }
}

/// The rules of DCQCN.
#[derive(Clone, Copy, Debug)]
pub struct Quantized {
    config: RoceConfig,
    g: f64,
    alpha: f64,
    alpha_interval: Dur,
    timer: Dur,
    byte_counter: u64,
    fast_recoveries: u32,
    rate_ai: u64,
    rate_hai: u64,
    /// The period of cuts and whether the target follows each of them, if the reaction is periodic.
    periodic: Option<(Dur, bool)>,
}

/// A queue pair.
#[derive(Clone, Copy, Debug)]
pub struct State {
    rate: Rate,
    target: u64,
    /// `None` before the first notification.
    active: Option<Active>,
}

/// A queue pair that has been notified.
#[derive(Clone, Copy, Debug)]
struct Active {
    alpha: f64,
    /// When alpha is updated next, the rate raised by the timer, and the flag of cuts read.
    update: Time,
    raise: Time,
    cut: Time,
    /// A notification has come since alpha was updated, since the rate was cut.
    flags: [bool; 2],
    /// Expiries of the timer and of the byte counter since the last cut.
    expired: [u32; 2],
    /// Bytes until the next expiry of the byte counter.
    left: u64,
}

impl Quantized {
    fn new(params: &Params, config: RoceConfig, env: &Env<'_>) -> Self {
        let part = |fraction: Fraction| fraction.ppb() as f64 / 1e9;
        let share = |of: u64| Rate((config.line.bps() / of).max(1));
        let periodic = params.reaction == Reaction::Periodic;
        let byte_counter = env.auto("byte_counter", params.byte_counter, Bytes(if periodic { u64::MAX } else { 10_000_000 })).0;
        env.note_auto("byte_counter", periodic && params.byte_counter == Auto::Auto, String::new);
        Quantized {
            config,
            g: part(params.g),
            alpha: part(params.alpha),
            alpha_interval: params.alpha_interval,
            timer: params.timer,
            byte_counter,
            fast_recoveries: params.fast_recoveries,
            rate_ai: env.auto("rate_ai", params.rate_ai, share(1000)).bps(),
            rate_hai: env.auto("rate_hai", params.rate_hai, share(100)).bps(),
            periodic: periodic.then_some((params.decrease_interval, params.clamp_target)),
        }
    }

    /// Cuts the rate (eq. 1), and starts to count anew.
    fn cut(&self, rate: &mut Rate, target: &mut u64, active: &mut Active, now: Time) {
        let keeps = self.periodic.is_some_and(|(_, clamp)| !clamp && active.expired == [0, 0]);
        if !keeps {
            *target = rate.bps();
        }
        *rate = self.config.clamp(rate.bps() as f64 * (1.0 - active.alpha / 2.0));
        active.expired = [0, 0];
        active.left = self.byte_counter;
        active.raise = now.after(self.timer);
    }

    /// Raises the rate after an expiry of the timer (0) or the byte counter (1): Fig. 7.
    fn raise(&self, rate: &mut Rate, target: &mut u64, active: &mut Active, which: usize) {
        active.expired[which] = active.expired[which].saturating_add(1);
        let [timer, bytes] = active.expired;
        let f = self.fast_recoveries;
        // With bytes that raise nothing, the timer alone decides, and the increase after the
        // additive one is hyper (HPCC's simulator).
        let hyper = if self.byte_counter == u64::MAX { timer > f.saturating_add(1) } else { timer.min(bytes) > f };
        if hyper {
            *target = target.saturating_add(self.rate_hai);
        } else if timer.max(bytes) > f {
            *target = target.saturating_add(self.rate_ai);
        }
        *target = (*target).min(self.config.line.bps());
        *rate = self.config.clamp(((rate.bps() + *target) / 2) as f64);
    }
}

impl RateControl for Quantized {
    type State = State;
    const NOTIFIES: bool = true;

    fn open(&self, _now: Time) -> State {
        State { rate: self.config.line, target: self.config.line.bps(), active: None }
    }
    fn rate(&self, state: &State) -> Rate {
        state.rate
    }
    fn on_notification(&self, state: &mut State, now: Time) {
        let State { rate, target, active } = state;
        if let (Some(active), Some(_)) = (&mut *active, self.periodic) {
            active.flags = [true; 2];
            return;
        }
        let first = active.is_none();
        let active = active.get_or_insert(Active {
            alpha: self.alpha,
            update: now.after(self.alpha_interval),
            raise: now.after(self.timer),
            cut: Time::MAX,
            flags: [false; 2],
            expired: [0, 0],
            left: self.byte_counter,
        });
        if let Some((interval, _)) = self.periodic {
            if first {
                active.flags = [false, true];
                active.cut = now.after(interval);
                active.raise = Time::MAX;
            }
            return;
        }
        self.cut(rate, target, active, now);
        active.alpha = (1.0 - self.g) * active.alpha + self.g;
        active.update = now.after(self.alpha_interval);
    }
    fn on_sent(&self, state: &mut State, wire_bytes: u64, _now: Time) {
        let State { rate, target, active: Some(active) } = state else { return };
        if wire_bytes < active.left {
            active.left -= wire_bytes;
        } else {
            active.left = self.byte_counter;
            self.raise(rate, target, active, 1);
        }
    }
    fn deadline(&self, state: &State) -> Time {
        state.active.map_or(Time::MAX, |active| active.update.min(active.raise).min(active.cut))
    }
    fn on_deadline(&self, state: &mut State, now: Time) {
        let State { rate, target, active: Some(active) } = state else { return };
        if active.update <= now {
            let flag = std::mem::take(&mut active.flags[0]);
            active.alpha = (1.0 - self.g) * active.alpha + if flag { self.g } else { 0.0 };
            active.update = now.after(self.alpha_interval);
        }
        if let Some((interval, _)) = self.periodic
            && active.cut <= now
        {
            active.cut = now.after(interval);
            if std::mem::take(&mut active.flags[1]) {
                self.cut(rate, target, active, now);
            }
        }
        if active.raise <= now {
            active.raise = now.after(self.timer);
            self.raise(rate, target, active, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use base::params::Params as _;

    fn rules(change: impl FnOnce(&mut Params)) -> Quantized {
        let mut params = Params::defaults();
        change(&mut params);
        let env = Env { nic_rate: Rate::from_gbps(40), ..script::env() };
        Quantized::new(&params, params.roce.config(&env, 0), &env)
    }

    fn at(us: u64) -> Time {
        Time::ZERO + Dur::from_us(us)
    }

    fn mbps(state: &State) -> (u64, u64) {
        (state.rate.bps() / 1_000_000, state.target / 1_000_000)
    }

    /// Runs all deadlines up to a time.
    fn until(rules: &Quantized, state: &mut State, end: Time) {
        while rules.deadline(state) <= end {
            let now = rules.deadline(state);
            rules.on_deadline(state, now);
        }
    }

    #[test]
    fn a_notification_halves_the_first_time_and_then_cuts_by_alpha() {
        let rules = rules(|_| {});
        let mut state = rules.open(at(0));
        assert_eq!((mbps(&state), rules.deadline(&state)), ((40_000, 40_000), Time::MAX));
        rules.on_notification(&mut state, at(10));
        assert_eq!(mbps(&state), (20_000, 40_000));
        // Alpha stays 1: (1 - g) + g.
        rules.on_notification(&mut state, at(20));
        assert_eq!(mbps(&state), (10_000, 20_000));
        // Fifty-five microseconds without one: alpha = 255/256.
        until(&rules, &mut state, at(75));
        assert_eq!(state.active.unwrap().alpha, 255.0 / 256.0);
    }

    #[test]
    fn five_recoveries_then_additive_then_hyper_increases() {
        let rules = rules(|p| p.alpha_interval = Dur::from_secs(1));
        let mut state = rules.open(at(0));
        rules.on_notification(&mut state, at(0));
        let by_timer: Vec<_> = (1..=7)
            .map(|n| {
                until(&rules, &mut state, at(55 * n));
                mbps(&state)
            })
            .collect();
        // Halves of the way to the target, which cannot exceed the line.
        assert_eq!(by_timer[..5], [(30_000, 40_000), (35_000, 40_000), (37_500, 40_000), (38_750, 40_000), (39_375, 40_000)]);
        assert_eq!(by_timer[6], (39_843, 40_000));
        // From a lower target: five recoveries, 40 Mb/s, and 400 Mb/s once bytes have expired more
        // than five times too.
        rules.on_notification(&mut state, at(400));
        rules.on_notification(&mut state, at(400));
        let target = mbps(&state).1;
        until(&rules, &mut state, at(400 + 5 * 55));
        assert_eq!(mbps(&state).1, target);
        until(&rules, &mut state, at(400 + 6 * 55));
        assert_eq!(mbps(&state).1, target + 40);
        for _ in 0..5 {
            rules.on_sent(&mut state, 10_000_000, at(800));
        }
        assert_eq!(mbps(&state).1, target + 6 * 40);
        rules.on_sent(&mut state, 10_000_000, at(800));
        assert_eq!(mbps(&state).1, target + 6 * 40 + 400);
    }

    /// Eq. 3 with bytes alone: after k expiries half of the line rate is `1 - 2^-(k + 1)` of it, and the k-th comes with the packet
    /// that completes 10 MB.
    #[test]
    fn ten_megabytes_halve_the_distance_to_the_target() {
        let rules = rules(|p| p.timer = Dur::from_secs(1));
        let mut state = rules.open(Time::ZERO);
        rules.on_notification(&mut state, Time::ZERO);
        for k in 0..5 {
            for _ in 0..9541 {
                assert_eq!(state.rate.bps(), 40_000_000_000 - (20_000_000_000 >> k), "{k} expiries");
                rules.on_sent(&mut state, 1048, Time::ZERO);
            }
            rules.on_sent(&mut state, 1048, Time::ZERO);
        }
        assert_eq!(state.rate.bps(), 39_375_000_000);
    }

    #[test]
    fn periodic_reactions_cut_once_per_interval_and_keep_the_target() {
        let rules = rules(|p| {
            (p.reaction, p.alpha_interval, p.timer) = (Reaction::Periodic, Dur::from_us(1), Dur::from_us(300));
        });
        let mut state = rules.open(at(0));
        rules.on_notification(&mut state, at(0));
        assert_eq!(mbps(&state), (40_000, 40_000));
        // Alpha has decreased four times.
        until(&rules, &mut state, at(4));
        let alpha = (255.0f64 / 256.0).powi(4);
        assert_eq!(state.rate.bps(), (40e9 * (1.0 - alpha / 2.0)) as u64);
        // Several notifications between two readings count once, and the target stays.
        let before = state.rate.bps();
        rules.on_notification(&mut state, at(5));
        rules.on_notification(&mut state, at(6));
        until(&rules, &mut state, at(8));
        assert!(state.rate.bps() < before && state.target == 40_000_000_000);
        let low = state.rate.bps();
        until(&rules, &mut state, at(8 + 299));
        assert_eq!(state.rate.bps(), low);
        until(&rules, &mut state, at(8 + 300));
        assert_eq!(state.rate.bps(), (low + 40_000_000_000) / 2);
    }

    #[test]
    fn the_rate_has_a_minimum() {
        let rules = rules(|_| {});
        let mut state = rules.open(at(0));
        for n in 0..40 {
            rules.on_notification(&mut state, at(n));
        }
        assert_eq!(state.rate, Rate(40_000_000));
    }

    #[test]
    fn the_largest_parameters_overflow_nothing() {
        let most = Auto::Set(Rate(u64::MAX));
        for reaction in [Reaction::Immediate, Reaction::Periodic] {
            for fast_recoveries in [0, u32::MAX] {
                let rules =
                    rules(|p| (p.reaction, p.fast_recoveries, p.rate_ai, p.rate_hai) = (reaction, fast_recoveries, most, most));
                let mut state = rules.open(at(0));
                rules.on_notification(&mut state, at(0));
                until(&rules, &mut state, at(1_000));
                assert!(state.rate <= Rate::from_gbps(40) && state.target <= 40_000_000_000);
            }
        }
    }
}
