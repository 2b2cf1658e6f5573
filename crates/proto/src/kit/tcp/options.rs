//! The options that all transports on the TCP machine share, and the configuration that follows from them.

use crate::contract::Env;
use crate::kit::rtt::RttConfig;
use base::Dur;
use base::params::{Auto, Problem};

base::params! {
    /// Options of the TCP machine.
    pub struct Options {
        /// Smallest retransmission timeout.
        min_rto: Dur = "200ms" in Dur::from_us(1)..=Dur::from_secs(60), "ns-2 scripts of the DCTCP line; RFC 6298 (2.4) asks for 1 s";
        /// Retransmission timeout before the first round-trip sample, also of the first SYN; `auto`: as `min_rto`.
        init_rto: Auto<Dur> = "1s" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "RFC 6298 (2.1)";
        /// Largest retransmission timeout.
        max_rto: Dur = "60s" in Dur::from_us(1)..=Dur::from_secs(3600), "RFC 6298 (2.5)";
        /// Clock granularity G: the least that the timeout exceeds the smoothed round trip by.
        clock: Dur = "0us" in Dur::ZERO..=Dur::from_secs(60), "RFC 6298 (2.3); a simulation's clock is perfect";
        /// Initial window in segments; `auto`: 2, 3 or 4 by segment size.
        init_window: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_000_000), "RFC 5681 section 3.1: 3 for 1460-byte segments; RFC 6928: 10";
        /// Largest window in segments, as a receiver would announce it; `auto`: no limit.
        max_cwnd: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(100_000_000), "no receive window in the model";
        /// Open every connection with a SYN and a SYNACK.
        handshake: bool = "true", "RFC 9293";
        /// In-order segments per ACK: 1 or 2.
        ack_every: u32 = "1" in 1..=2, "RFC 5681 section 4.2 allows 2";
        /// Longest wait of a delayed ACK.
        delayed_ack: Dur = "40ms" in Dur::from_us(1)..=Dur::from_ms(500), "common stacks; RFC 5681 section 4.2 allows 500 ms";
        /// Send new data on the first two duplicate ACKs.
        limited_transmit: bool = "false", "RFC 3042";
        /// Leave recovery at `ssthresh` instead of the smaller of it and FlightSize + SMSS.
        full_ack_ssthresh: bool = "false", "RFC 6582 section 3.2 step 3, option 2; without effect with `sack`";
        /// Selective acknowledgments: three blocks in an ACK, and recovery by what is in flight.
        sack: bool = "false", "RFC 2018 and RFC 6675; the papers' baselines have none";
    }
}

impl Options {
    /// Contradictions between options.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut above = |key, value: String, limit_key: &str, limit: String| {
            let message = format!("`{value}` is above `{limit_key}`, which is `{limit}`");
            problems.push(Problem { key, message, hint: format!("lower `{key}` or raise `{limit_key}`") });
        };
        if self.min_rto > self.max_rto {
            above("min_rto", self.min_rto.to_string(), "max_rto", self.max_rto.to_string());
        }
        if let Auto::Set(rto) = self.init_rto
            && rto > self.max_rto
        {
            above("init_rto", rto.to_string(), "max_rto", self.max_rto.to_string());
        }
        if let (Auto::Set(init), Auto::Set(max)) = (self.init_window, self.max_cwnd)
            && init > max
        {
            above("init_window", init.to_string(), "max_cwnd", max.to_string());
        }
        problems
    }

    /// The configuration of the machine in an environment.
    pub fn config(&self, env: &Env<'_>) -> Config {
        let smss = u64::from(env.mss());
        let segments = |n: u32| u64::from(n) * smss;
        Config {
            smss,
            header: env.header_bytes,
            init_window: segments(self.init_window.or(standard_window(smss))),
            max_window: match self.max_cwnd {
                Auto::Auto => u64::MAX,
                Auto::Set(n) => segments(n),
            },
            rtt: RttConfig {
                init_rto: self.init_rto.or(self.min_rto),
                min_rto: self.min_rto,
                max_rto: self.max_rto,
                clock: self.clock,
            },
            handshake: self.handshake,
            ack_every: self.ack_every,
            delayed_ack: self.delayed_ack,
            limited_transmit: self.limited_transmit,
            full_ack_ssthresh: self.full_ack_ssthresh,
            sack: self.sack,
        }
    }
}

/// Configuration of the machine, apart from its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// SMSS: payload of a full segment.
    pub smss: u64,
    /// Bytes of a header, and of a packet without payload.
    pub header: u16,
    /// Initial window in bytes.
    pub init_window: u64,
    /// Largest window in bytes, as a receiver would announce it.
    pub max_window: u64,
    /// Bounds of the retransmission timeout.
    pub rtt: RttConfig,
    /// Open every connection with a SYN and a SYNACK.
    pub handshake: bool,
    /// In-order segments per ACK.
    pub ack_every: u32,
    /// Longest wait of a delayed ACK.
    pub delayed_ack: Dur,
    /// Send new data on the first two duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// RFC 6582 section 3.2 step 3, option 2.
    pub full_ack_ssthresh: bool,
    /// Selective acknowledgments (RFC 2018, RFC 6675).
    pub sack: bool,
}

/// The initial window of RFC 5681 section 3.1 in segments.
fn standard_window(smss: u64) -> u32 {
    match smss {
        2191.. => 2,
        1096..=2190 => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use base::params::Params as _;

    #[test]
    fn the_initial_window_depends_on_the_segment_size() {
        for (mtu_bytes, segments) in [(9000, 2), (2231, 2), (2230, 3), (1500, 3), (1136, 3), (1135, 4), (576, 4)] {
            let config = Options::defaults().config(&Env { mtu_bytes, ..script::env() });
            assert_eq!(config.init_window, segments * config.smss, "{mtu_bytes}");
        }
    }

    #[test]
    fn contradictions_are_found() {
        assert_eq!(Options::defaults().check(), []);
        let wrong =
            Options { max_rto: Dur::from_ms(100), init_window: Auto::Set(20), max_cwnd: Auto::Set(10), ..Options::defaults() };
        let keys: Vec<_> = wrong.check().iter().map(|p| p.key).collect();
        assert_eq!(keys, ["min_rto", "init_rto", "init_window"]);
        let auto = Options { init_rto: Auto::Auto, max_rto: Dur::from_ms(200), ..Options::defaults() };
        assert_eq!(auto.check(), []);
    }
}
