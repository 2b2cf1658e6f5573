//! The parameters of transports with a burst before the first credit, and the configuration of a
//! host.

use crate::contract::Env;
use crate::kit::credits::{self, CreditConfig as Pacing, Params as Pace};
use base::params::{Auto, Problem};
use base::{Bytes, Dur};

base::params! {
    /// Parameters of transports that send a burst before the first credit.
    pub struct Options {
        ..pace: Pace {}
        /// Largest number of bytes that a flow sends before its first credit, rounded up to whole
        /// packets; `auto`: one bandwidth-delay product of the longest path.
        unsched_bytes: Auto<Bytes> = "auto", "Aeolus section 3.1: one BDP";
        /// Whether a credit without lost or new data retransmits an unconfirmed packet of the
        /// burst.
        resend_unconfirmed: bool = "true", "Aeolus";
        /// Whether a dropped data packet also counts as a lost credit, since its echo is missing.
        count_drop_as_credit_loss: bool = "true", "ExpressPass: receivers see only echoes";
        /// Shortest time without progress after which a sender repeats its request and its probe;
        /// at least three round trips.
        backstop: Dur = "1ms" in Dur::from_ns(100)..=Dur::from_secs(60), "flowloom; testbed code of Aeolus: 10 ms";
        /// Longest time without progress; the time doubles until there is progress.
        most_backstop: Dur = "10ms" in Dur::from_ns(100)..=Dur::from_secs(60), "testbed code of Aeolus: 10 ms";
        /// Time without packets of a flow after which a receiver stops its credits; `auto`: 10 ms,
        /// at least three unloaded round trips of the longest path.
        idle: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "flowloom";
    }
}

/// Returns the problems that depend on the network, and contradictions between parameters.
pub fn check(options: &Options, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = credits::check(&options.pace);
    if let Auto::Set(idle) = options.idle {
        problems.extend(env.too_short("idle", idle, "write a longer time or `auto`"));
    }
    if options.most_backstop < options.backstop {
        let message = format!("`{}` is below `backstop`, which is `{}`", options.most_backstop, options.backstop);
        problems.push(Problem { key: "most_backstop", message, hint: "raise `most_backstop` or lower `backstop`".to_owned() });
    }
    problems
}

/// The configuration of a host.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub pacing: Pacing,
    /// Payload of a full packet.
    pub mss: u64,
    pub header: u16,
    /// Payload that a flow sends before its first credit, a number of full packets.
    pub budget: u64,
    pub resend_unconfirmed: bool,
    pub drops_are_credit_losses: bool,
    pub backstop: Dur,
    pub most_backstop: Dur,
    /// Three unloaded round trips of the longest path.
    pub three_rtts: Dur,
    pub idle: Dur,
}

impl Config {
    pub fn new(options: &Options, env: &Env<'_>) -> Config {
        let mss = u64::from(env.mss());
        let budget = env.auto("unsched_bytes", options.unsched_bytes, Bytes(env.bdp_bytes())).0;
        Config {
            pacing: Pacing::new(&options.pace, env),
            mss,
            header: env.header_bytes,
            budget: budget.div_ceil(mss).saturating_mul(mss),
            resend_unconfirmed: options.resend_unconfirmed,
            drops_are_credit_losses: options.count_drop_as_credit_loss,
            backstop: options.backstop,
            most_backstop: options.most_backstop,
            three_rtts: env.max_rtt * 3,
            idle: env.auto("idle", options.idle, env.timeout(Dur::from_ms(10))),
        }
    }
    /// Returns how long a sender waits for progress if its smoothed round trip is `srtt`; zero
    /// means unknown.
    pub fn patience(&self, srtt: Dur) -> Dur {
        self.backstop.max(if srtt == Dur::ZERO { self.three_rtts } else { srtt * 3 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use base::Rate;
    use base::params::Params as _;

    /// Golden vector: one bandwidth-delay product at 52 us, in packets of 1460 bytes.
    #[test]
    fn golden_budgets() {
        let env = |gbps| Env {
            nic_rate: Rate::from_gbps(gbps),
            mtu_bytes: 1538,
            header_bytes: 78,
            max_rtt: Dur::from_us(52),
            ..script::env()
        };
        let packets = |gbps| Config::new(&Options::defaults(), &env(gbps)).budget / 1460;
        assert_eq!([10, 40, 100].map(|gbps| env(gbps).bdp_bytes()), [65_000, 260_000, 650_000]);
        assert_eq!([10, 40, 100].map(packets), [45, 179, 446]);
        let none = Options { unsched_bytes: Auto::Set(Bytes(0)), ..Options::defaults() };
        assert_eq!(Config::new(&none, &env(10)).budget, 0);
    }

    #[test]
    fn patience_is_three_round_trips_or_the_backstop() {
        let config = Config::new(&Options::defaults(), &script::env());
        let us = Dur::from_us;
        assert_eq!([us(0), us(100), us(400)].map(|srtt| config.patience(srtt)), [us(1000), us(1000), us(1200)]);
        let slow = Config { three_rtts: us(3000), ..config };
        assert_eq!([us(0), us(100)].map(|srtt| slow.patience(srtt)), [us(3000), us(1000)]);
    }

    #[test]
    fn contradictions_are_problems() {
        let wrong = Options { idle: Auto::Set(Dur::from_us(100)), most_backstop: Dur::from_us(999), ..Options::defaults() };
        assert_eq!(check(&wrong, &script::env()).iter().map(|problem| problem.key).collect::<Vec<_>>(), ["idle", "most_backstop"]);
        assert_eq!(check(&Options::defaults(), &script::env()), []);
    }
}
