//! The options of all transports on the TCP machine, and the configuration derived from them.

use crate::contract::Env;
use crate::kit::late::{GiveUp, Line};
use crate::kit::rtt::{self, RttConfig};
use base::Dur;
use base::params::{Auto, Param, Problem, Raw, Shape};

base::choice! {
    /// The stack that sets the initial timeout, the smallest timeout and the initial window if
    /// these options are `auto`.
    pub enum Stack {
        /// 1 s, 1 s, and 2, 3 or 4 segments by segment size; after a lost SYN, 3 s (RFC 6298 (5.7)).
        Rfc = "rfc",
        /// 1 s, 200 ms, 10 segments.
        Linux = "linux",
        /// 10 ms, 10 ms, 10 segments: common settings in data centers.
        Datacenter = "datacenter",
        /// 200 us, 200 us, 10 segments: timers of high resolution (Vasudevan et al., SIGCOMM 2009).
        Fine = "fine",
    }
}

impl Stack {
    /// Returns the retransmission timeout before the first sample, and the smallest one.
    fn timeouts(self) -> (Dur, Dur) {
        match self {
            Stack::Rfc => (Dur::from_secs(1), Dur::from_secs(1)), // RFC 6298 (2.1), (2.4)
            Stack::Linux => (Dur::from_secs(1), Dur::from_ms(200)),
            Stack::Datacenter => (Dur::from_ms(10), Dur::from_ms(10)),
            Stack::Fine => (Dur::from_us(200), Dur::from_us(200)),
        }
    }
    /// Returns the initial window in segments.
    fn window(self, smss: u64) -> u32 {
        match self {
            Stack::Rfc => standard_window(smss),
            Stack::Linux | Stack::Datacenter | Stack::Fine => 10, // RFC 6928
        }
    }
}

base::choice! {
    /// The slow-start threshold after a lost SYN.
    pub enum AfterLostSyn {
        /// Unchanged: no RFC lowers it. The initial window is one segment.
        Keep = "keep",
        /// Two segments, as in ns-2.
        TwoSegments = "2smss",
    }
}

base::choice! {
    /// The FlightSize at a timeout in recovery. Half of it becomes the slow-start threshold.
    pub enum FlightSize {
        /// At most the slow-start threshold and, with `sack`, the pipe: each duplicate ACK means
        /// that a segment has left the network.
        InNetwork = "in_network",
        /// All bytes that are sent and not acknowledged, including those that have arrived after
        /// the first loss.
        Unacknowledged = "unacknowledged",
    }
}

base::choice! {
    /// What the messages of a host to a peer have in common.
    pub enum Connections {
        /// Nothing: each has a connection of its own.
        Message = "message",
        /// A message continues the connection of the last one that has ended: without a handshake,
        /// and with its window, slow-start threshold, round trip, and what its controller knows of
        /// the path.
        Peer = "peer",
    }
}

/// Number of duplicate ACKs that reveal a loss, as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum DupThreshold {
    /// `3`: fast retransmit.
    Three,
    /// `"never"`: only timeouts reveal losses.
    Never,
}

impl Param for DupThreshold {
    fn expects() -> String {
        "`3` or `never`".to_owned()
    }
    fn shape() -> Shape {
        Shape::Or("never", Box::new(Shape::Integer))
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Int(3) => Ok(DupThreshold::Three),
            Raw::Str(text) if text == "3" => Ok(DupThreshold::Three),
            Raw::Str(text) if text == "never" => Ok(DupThreshold::Never),
            _ => Err(format!("is not {}", Self::expects())),
        }
    }
    fn show(&self) -> String {
        match self {
            DupThreshold::Three => "3".to_owned(),
            DupThreshold::Never => "never".to_owned(),
        }
    }
}

base::params! {
    /// Options of the TCP machine.
    pub struct Options {
        /// Sets `init_rto`, `min_rto` and `init_window` where these are `auto`: `rfc` 1 s, 1 s and 2 to 4 segments; `linux` 1 s, 200 ms and 10;
        /// `datacenter` 10 ms, 10 ms and 10; `fine` 200 us, 200 us and 10.
        stack: Stack = "datacenter", "flowloom: a timeout of 200 ms is a thousand round trips of a data center";
        /// Smallest retransmission timeout; `auto`: by `stack`, at least three unloaded round trips of the longest path.
        min_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "RFC 6298 (2.4): 1 s; Linux: 200 ms";
        /// Retransmission timeout before the first round-trip sample, also of the first SYN; `auto`: by `stack`, at least three unloaded round
        /// trips of the longest path, between `min_rto` and `max_rto`.
        init_rto: Auto<Dur> = "auto" in Auto::Set(Dur::from_us(1))..=Auto::Set(Dur::from_secs(60)), "RFC 6298 (2.1): 1 s";
        /// Largest retransmission timeout.
        max_rto: Dur = "60s" in Dur::from_us(1)..=Dur::from_secs(3600), "RFC 6298 (2.5)";
        /// Clock granularity G: the timeout exceeds the smoothed round trip by at least this.
        clock: Dur = "0us" in Dur::ZERO..=Dur::from_secs(60), "RFC 6298 (2.3); a simulation's clock is perfect";
        /// Initial window in segments; `auto`: by `stack`.
        init_window: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_000_000), "RFC 5681 section 3.1: 3 for 1460-byte segments; RFC 6928: 10";
        /// Largest window in segments, as a receiver would announce it; `auto`: no limit.
        max_cwnd: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(100_000_000), "no receive window in the model";
        /// Whether every ACK of new data gives a round-trip sample, also that of a retransmitted
        /// segment; otherwise retransmitted segments give none (Karn).
        timestamps: bool = "true", "RFC 7323 section 4; on in Linux";
        /// Whether every connection opens with a SYN and a SYNACK.
        handshake: bool = "true", "RFC 9293";
        /// The slow-start threshold after a lost SYN: unchanged, or two segments.
        lost_syn_ssthresh: AfterLostSyn = "keep", "RFC 5681 section 3.1 sets the window only; ns-2: `2smss`";
        /// Largest growth of the window in slow start per ACK, in segments; after a timeout it is
        /// one until the lost data is acknowledged.
        slow_start_limit: u32 = "1" in 1..=1_000_000, "RFC 5681 eq. 2; RFC 3465 section 2.3: 2; Linux has no limit";
        /// In-order segments per ACK: 1 or 2.
        ack_every: u32 = "1" in 1..=2, "RFC 5681 section 4.2 allows 2";
        /// Longest wait of a delayed ACK.
        delayed_ack: Dur = "40ms" in Dur::from_us(1)..=Dur::from_ms(500), "common stacks; RFC 5681 section 4.2 allows 500 ms";
        /// Number of duplicate ACKs that reveal a loss (DupThresh). `never`: only timeouts reveal losses, for networks
        /// that reorder packets.
        dup_threshold: DupThreshold = "3", "RFC 5681 section 3.2, RFC 6675; `never`: 1000000 in ns-2 scripts that send the packets of a flow on all paths", quiet;
        /// Whether the first two duplicate ACKs send new data.
        limited_transmit: bool = "false", "RFC 3042";
        /// Whether recovery ends with a window of `ssthresh` instead of the smaller of `ssthresh`
        /// and FlightSize + SMSS.
        full_ack_ssthresh: bool = "false", "RFC 6582 section 3.2 step 3, option 2; without effect with `sack`";
        /// Whether selective acknowledgments are used: three blocks in an ACK, and recovery by the
        /// bytes in flight.
        sack: bool = "false", "RFC 2018 and RFC 6675; the papers' baselines have none";
        /// The FlightSize at a timeout in recovery: bytes that may still be in the network, or all
        /// unacknowledged bytes.
        flight_size: FlightSize = "in_network", "RFC 5681 eq. 4: no more than half of FlightSize; `unacknowledged`: its literal definition", quiet;
        /// When a sender gives up a flow with a deadline: never, or (`feasible`) when the deadline
        /// has passed or the bytes that it has never sent cannot arrive in time at the rate of the
        /// NIC. Tested on ACKs of new data and at timeouts.
        give_up: GiveUp = "never", "no RFC has deadlines; D2TCP's ns-2 patch has it as an option, PDQ as a rule", quiet;
        /// Whether each message of a host to a peer has a connection of its own (`message`), or
        /// continues the connection of the last message to this peer that has ended (`peer`).
        connections: Connections = "message", "a connection for each flow, as in the papers; RFC 9040 section 4: `peer`", quiet;
    }
}

impl Options {
    /// Returns the contradictions between options.
    pub fn check(&self) -> Vec<Problem> {
        let (init_rto, min_rto) = self.timeouts(Dur::ZERO);
        let timeouts = [("min_rto", Auto::Set(min_rto)), ("init_rto", Auto::Set(init_rto))];
        let mut problems = rtt::above_largest(&timeouts, self.max_rto);
        if let (Auto::Set(init), Auto::Set(max)) = (self.init_window, self.max_cwnd)
            && init > max
        {
            let message = format!("`{init}` is above `max_cwnd`, which is `{max}`");
            problems.push(Problem { key: "init_window", message, hint: "lower `init_window` or raise `max_cwnd`".to_owned() });
        }
        problems
    }

    /// Returns the retransmission timeout before the first sample, and the smallest one. Those of
    /// the stack are at least `least`.
    fn timeouts(&self, least: Dur) -> (Dur, Dur) {
        let (init_rto, min_rto) = self.stack.timeouts();
        let min_rto = self.min_rto.or(min_rto.max(least).min(self.max_rto));
        (self.init_rto.or(init_rto.max(least).max(min_rto).min(self.max_rto)), min_rto)
    }

    /// Returns the configuration of the machine in an environment.
    pub fn config(&self, env: &Env<'_>) -> Config {
        let smss = u64::from(env.mss());
        let segments = |n: u32| u64::from(n) * smss;
        let (init_rto, min_rto) = self.timeouts(env.timeout(Dur::ZERO));
        env.auto("min_rto", self.min_rto, min_rto);
        env.auto("init_rto", self.init_rto, init_rto);
        env.note_auto("max_cwnd", self.max_cwnd == Auto::Auto, String::new);
        Config {
            smss,
            header: env.header_bytes,
            init_window: segments(env.auto("init_window", self.init_window, self.stack.window(smss))),
            max_window: match self.max_cwnd {
                Auto::Auto => u64::MAX,
                Auto::Set(n) => segments(n),
            },
            rtt: RttConfig { init_rto, min_rto, max_rto: self.max_rto, clock: self.clock },
            timestamps: self.timestamps,
            handshake: self.handshake,
            lost_syn_rto: (self.stack == Stack::Rfc).then_some(Dur::from_secs(3)),
            lost_syn_ssthresh: match self.lost_syn_ssthresh {
                AfterLostSyn::Keep => u64::MAX,
                AfterLostSyn::TwoSegments => 2 * smss,
            },
            slow_start_limit: segments(self.slow_start_limit),
            ack_every: self.ack_every,
            delayed_ack: self.delayed_ack,
            fast_retransmit: self.dup_threshold == DupThreshold::Three,
            limited_transmit: self.limited_transmit,
            full_ack_ssthresh: self.full_ack_ssthresh,
            sack: self.sack,
            flight_size: self.flight_size,
            give_up: (self.give_up == GiveUp::Feasible).then(|| Line::new(env)),
            continues: self.connections == Connections::Peer,
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
    /// Whether ACKs of retransmitted segments give round-trip samples (RFC 7323).
    pub timestamps: bool,
    /// Whether every connection opens with a SYN and a SYNACK.
    pub handshake: bool,
    /// The timeout once the connection is open, if a SYN was lost (RFC 6298 (5.7)).
    pub lost_syn_rto: Option<Dur>,
    /// The slow-start threshold after a lost SYN, in bytes.
    pub lost_syn_ssthresh: u64,
    /// Largest growth of the window in slow start per ACK, in bytes.
    pub slow_start_limit: u64,
    /// In-order segments per ACK.
    pub ack_every: u32,
    /// Longest wait of a delayed ACK.
    pub delayed_ack: Dur,
    /// Whether duplicate ACKs reveal losses (RFC 5681 section 3.2).
    pub fast_retransmit: bool,
    /// Whether the first two duplicate ACKs send new data (RFC 3042).
    pub limited_transmit: bool,
    /// RFC 6582 section 3.2 step 3, option 2.
    pub full_ack_ssthresh: bool,
    /// Whether selective acknowledgments are used (RFC 2018, RFC 6675).
    pub sack: bool,
    /// The FlightSize at a timeout in recovery.
    pub flight_size: FlightSize,
    /// The link by which flows count as late; `None` if flows are not given up.
    pub give_up: Option<Line>,
    /// Whether a flow continues the connection of an earlier flow to the same host.
    pub continues: bool,
}

/// Returns the initial window of RFC 5681 section 3.1 in segments.
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
            let rfc = Options { stack: Stack::Rfc, ..Options::defaults() };
            let config = rfc.config(&Env { mtu_bytes, ..script::env() });
            assert_eq!(config.init_window, segments * config.smss, "{mtu_bytes}");
        }
    }

    #[test]
    fn contradictions_are_found() {
        assert_eq!(Options::defaults().check(), []);
        let (rto, max_rto) = (Auto::Set(Dur::from_ms(200)), Dur::from_ms(100));
        let (init_window, max_cwnd) = (Auto::Set(20), Auto::Set(10));
        let wrong = Options { min_rto: rto, init_rto: rto, max_rto, init_window, max_cwnd, ..Options::defaults() };
        let keys: Vec<_> = wrong.check().iter().map(|p| p.key).collect();
        assert_eq!(keys, ["min_rto", "init_rto", "init_window"]);
    }

    /// (stack, `min_rto`, `init_rto`, `max_rto`; initial and smallest timeout), in milliseconds.
    #[test]
    fn a_stack_sets_timeouts_and_window_that_are_not_given() {
        let ms = Dur::from_ms;
        let rows = [
            (Stack::Rfc, None, None, 60_000, (1000, 1000)),
            (Stack::Linux, None, None, 60_000, (1000, 200)),
            (Stack::Datacenter, None, None, 60_000, (10, 10)),
            (Stack::Fine, Some(1), None, 60_000, (1, 1)),
            (Stack::Datacenter, Some(200), None, 60_000, (200, 200)),
            (Stack::Datacenter, Some(1), None, 60_000, (10, 1)),
            (Stack::Linux, Some(5), Some(7), 60_000, (7, 5)),
            (Stack::Linux, None, None, 100, (100, 100)),
        ];
        let auto = |given: Option<u64>| given.map_or(Auto::Auto, |n| Auto::Set(ms(n)));
        for (stack, min_rto, init_rto, max_rto, (init, min)) in rows {
            let options =
                Options { stack, min_rto: auto(min_rto), init_rto: auto(init_rto), max_rto: ms(max_rto), ..Options::defaults() };
            assert_eq!((options.timeouts(Dur::ZERO), options.check()), ((ms(init), ms(min)), Vec::new()), "{stack:?}");
            let segments = if stack == Stack::Rfc { 3 } else { 10 };
            assert_eq!(options.config(&script::env()).init_window, segments * 1460, "{stack:?}");
        }
    }

    /// On a path of 20 ms no timeout of a stack is below three round trips; a given one is used as it is.
    #[test]
    fn timeouts_of_a_stack_fit_the_longest_path() {
        let ms = Dur::from_ms;
        let far = Env { max_rtt: ms(20), ..script::env() };
        for (stack, min_rto, init_rto, (init, min)) in [
            (Stack::Datacenter, Auto::Auto, Auto::Auto, (60, 60)),
            (Stack::Fine, Auto::Auto, Auto::Auto, (60, 60)),
            (Stack::Linux, Auto::Auto, Auto::Auto, (1000, 200)),
            (Stack::Datacenter, Auto::Set(ms(5)), Auto::Auto, (60, 5)),
            (Stack::Datacenter, Auto::Auto, Auto::Set(ms(5)), (5, 60)),
        ] {
            let rtt = Options { stack, min_rto, init_rto, ..Options::defaults() }.config(&far).rtt;
            assert_eq!((rtt.init_rto, rtt.min_rto), (ms(init), ms(min)), "{stack:?}");
        }
    }
}
