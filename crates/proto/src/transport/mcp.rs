//! MCP, the rate control of Karuna: a flow with a deadline sends just fast enough to end in time,
//! and marks do not slow it down; a flow without a deadline runs DCTCP.
//!
//! Source: L. Chen et al., "Scheduling Mix-flows in Commodity Datacenters with Karuna", SIGCOMM 2016, and "Towards Minimal-Delay Deadline-Driven
//! Data Center TCP", HotNets 2013; the prototype of Karuna's authors (github.com/baiwei0427/PIAS, `backup/mixedflow`). Everything else is `dctcp`.
//!
//! Model: that of `kit/tcp`. The size and the deadline of a flow are known at its start.
//!
//! | rule of a flow with a deadline | from |
//! |---|---|
//! | a round-trip sample counts as at least `base_rtt`; `srtt = 0.875 srtt + 0.125 sample`, at most `max_srtt` | prototype |
//! | once per `srtt` the target is `max(floor(R srtt / time left) / SMSS + 1, min_rate_window)` segments, `R` the bytes left | prototype |
//! | the flow aims to end `margin` times `base_rtt` before its deadline, if the deadline is further away than that | prototype |
//! | on every ACK the rate window moves one segment towards the target | prototype |
//! | after the deadline the target is `min_rate_window` | prototype |
//! | the window in force is the smaller of `cwnd` and the rate window; marks are ignored, losses are not | prototype |
//!
//! Assumed:
//! - The prototype enforces the rate window through the receive window; here the sender does.
//! - The published rule also has a congestion price that is computed from marks. Its formula was
//!   not available, and it is left out.
//! - Bytes left are the bytes that are not acknowledged. Only ACKs of new data move the rate
//!   window.
//! - `cwnd` grows as in DCTCP, and only while it limits the flow.
//! - The smoothed round trip begins with `base_rtt`. It is separate from the one of RFC 6298, which
//!   timeouts use.

use super::dctcp::{self, Params as DctcpParams, Proportional};
use crate::contract::Env;
use crate::flow::Flow;
use crate::kit::tcp::{Ack, Congestion, Ecn, Loss, Tcp, Window};
use base::params::Problem;
use base::registry::{Meta, Needs};
use base::{Dur, Time};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "MCP, the rate control of Karuna: flows with a deadline end just in time, the others run DCTCP",
    source: "Chen et al., SIGCOMM 2016 and HotNets 2013; the authors' prototype",
    needs: Needs { marks: true, least_limit: 1.0, least_mark: 1.0 / 7.0, ..Needs::NONE },
    implies: &[("qdisc.kind", "ecn_threshold")],
    knows: &["size", "deadline"],
    packets_only: "it gives flows the rates that their deadlines need",
    host: "Linux for the prototype: a queue for each class",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of MCP.
    pub struct Params {
        ..dctcp: DctcpParams {}
        /// Round trip of an idle network (RTT0): the first estimate, and the minimum that a sample
        /// counts as.
        base_rtt: Dur = "100us" in Dur::from_ns(1)..=Dur::from_secs(1), "prototype";
        /// Largest smoothed round trip.
        max_srtt: Dur = "1ms" in Dur::from_ns(1)..=Dur::from_secs(10), "prototype";
        /// A flow aims to end this many times `base_rtt` before its deadline.
        margin: u32 = "6" in 0..=1_000_000, "prototype";
        /// Smallest rate window in segments.
        min_rate_window: u32 = "2" in 1..=1000, "prototype";
        /// Rate window in segments when a flow starts.
        first_rate_window: u32 = "3" in 1..=1_000_000, "prototype";
    }
}

/// Returns the contradictions between parameters.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = dctcp::check(&params.dctcp, env);
    let mut below = |key, value: String, least_key: &str, least: String| {
        let message = format!("`{value}` is below `{least_key}`, which is `{least}`");
        problems.push(Problem { key, message, hint: format!("raise `{key}` or lower `{least_key}`") });
    };
    if params.max_srtt < params.base_rtt {
        below("max_srtt", params.max_srtt.to_string(), "base_rtt", params.base_rtt.to_string());
    }
    let (first, least) = (params.first_rate_window, params.min_rate_window);
    if first < least {
        below("first_rate_window", first.to_string(), "min_rate_window", least.to_string());
    }
    problems
}

/// The machine of one host.
pub type Mcp = Tcp<JustInTime>;

impl Mcp {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let config = params.dctcp.tcp.config(env);
        Tcp::with(config, JustInTime::new(params, config.smss))
    }
}

/// DCTCP's rules for flows without a deadline, and a rate window for the others.
#[derive(Clone, Copy, Debug)]
pub struct JustInTime {
    dctcp: Proportional,
    base_rtt: Dur,
    max_srtt: Dur,
    /// How long before its deadline a flow aims to end.
    margin: Dur,
    /// Smallest rate window, in segments.
    least: u64,
    /// First rate window, in segments.
    first: u64,
}

/// The state of one flow.
#[derive(Clone, Copy, Debug)]
pub struct State {
    dctcp: dctcp::State,
    /// The rate window of a flow with a deadline.
    rate: Option<RateWindow>,
}

/// The window with which a flow ends in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateWindow {
    /// When the flow aims to end.
    end: Time,
    srtt: Dur,
    /// When the target was last computed.
    updated: Time,
    /// Target in segments.
    target: u64,
    /// Current window in segments.
    current: u64,
}

impl JustInTime {
    fn new(params: &Params, smss: u64) -> Self {
        JustInTime {
            dctcp: Proportional::new(&params.dctcp, smss),
            base_rtt: params.base_rtt,
            max_srtt: params.max_srtt,
            margin: params.base_rtt * u64::from(params.margin),
            least: params.min_rate_window.into(),
            first: params.first_rate_window.into(),
        }
    }
    /// Returns the first rate window of a flow.
    fn start(&self, flow: &Flow, deadline: Time) -> RateWindow {
        let margin = if deadline.since(flow.start) > self.margin { self.margin } else { Dur::ZERO };
        let (end, srtt) = (deadline.before(margin), self.base_rtt);
        let target = self.target(flow.size_bytes, srtt, end.since(flow.start));
        RateWindow { end, srtt, updated: flow.start, target, current: self.first }
    }
    /// Returns the segments per round trip that transfer `rest` bytes in the time left.
    fn target(&self, rest: u64, srtt: Dur, left: Dur) -> u64 {
        let per_round = (u128::from(rest) * u128::from(srtt.0)).checked_div(u128::from(left.0));
        let segments = per_round.map_or(0, |bytes| bytes / u128::from(self.dctcp.smss) + 1);
        // No flow can use more than this.
        u64::try_from(segments).unwrap_or(u64::MAX).clamp(self.least, MOST_SEGMENTS)
    }
    /// Adds a sample to the smoothed round trip.
    fn smooth(&self, srtt: Dur, sample: Dur) -> Dur {
        let mixed = (7 * u128::from(srtt.0) + u128::from(sample.max(self.base_rtt).0)) / 8;
        Dur(u64::try_from(mixed).unwrap_or(u64::MAX)).min(self.max_srtt)
    }
    fn on_rate_ack(&self, rate: &mut RateWindow, ack: &Ack<'_>) {
        if let Some(sample) = ack.rtt() {
            rate.srtt = self.smooth(rate.srtt, sample);
        }
        let left = rate.end.since(ack.now());
        if left.0 == 0 {
            rate.target = self.least;
        } else if ack.now().since(rate.updated) >= rate.srtt {
            rate.target = self.target(ack.flow.size_bytes - ack.snd_una, rate.srtt, left);
            rate.updated = ack.now();
        }
        rate.current = match rate.current.cmp(&rate.target) {
            std::cmp::Ordering::Less => rate.current + 1,
            std::cmp::Ordering::Equal => rate.current,
            std::cmp::Ordering::Greater => rate.current - 1,
        };
    }
}

impl Congestion for JustInTime {
    type State = State;
    const ECN: Ecn = Ecn::Exact;

    fn open(&self, flow: &Flow) -> State {
        State { dctcp: self.dctcp.open(flow), rate: flow.deadline.map(|deadline| self.start(flow, deadline)) }
    }
    fn inherit(&self, state: &mut State, before: &State) {
        self.dctcp.inherit(&mut state.dctcp, &before.dctcp);
    }
    #[inline]
    fn on_feedback(&self, state: &mut State, ack: &Ack<'_>) {
        match &mut state.rate {
            Some(rate) => self.on_rate_ack(rate, ack),
            None => self.dctcp.on_feedback(&mut state.dctcp, ack),
        }
    }
    #[inline]
    fn on_ack(&self, state: &mut State, window: &mut Window, ack: &Ack<'_>) {
        self.dctcp.on_ack(&mut state.dctcp, window, ack);
    }
    fn on_mark(&self, state: &mut State, window: &Window, ack: &Ack<'_>) -> Option<u64> {
        if state.rate.is_some() { None } else { self.dctcp.on_mark(&mut state.dctcp, window, ack) }
    }
    fn on_loss(&self, state: &mut State, window: &Window, loss: Loss) -> u64 {
        self.dctcp.on_loss(&mut state.dctcp, window, loss)
    }
    #[inline]
    fn most(&self, state: &State) -> u64 {
        state.rate.map_or(u64::MAX, |rate| rate.current * self.dctcp.smss)
    }
}

/// Upper bound of the target, in segments, so that the arithmetic does not overflow.
const MOST_SEGMENTS: u64 = 1 << 24;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::pipe::{Fate, exchange};
    use crate::kit::script::{self, Script};
    use crate::packet::{Kind, Packet};
    use base::params::{Auto, Params as _};
    use base::{FlowId, Rng};

    /// Segment size of the prototype.
    const SMSS: u64 = 1448;

    fn rules() -> JustInTime {
        JustInTime::new(&Params::defaults(), SMSS)
    }

    fn us(n: u64) -> Dur {
        Dur::from_us(n)
    }

    /// Computed independently of this code: (R in bytes, srtt and time left in us) and the target.
    #[test]
    fn golden_targets() {
        for (rest, srtt, left, target) in [
            (512_000, 100, 5000, 8),
            (512_000, 100, 4386, 9),
            (307_200, 100, 15_000, 2),
            (102_400, 250, 1000, 18),
            (512_000, 200, 1000, 71),
            (1448, 100, 1000, 2),
            (512_000, 100, 0, 2),
        ] {
            assert_eq!(rules().target(rest, us(srtt), us(left)), target, "{rest} {srtt} {left}");
        }
        assert_eq!(rules().target(u64::MAX, us(1000), Dur(1)), MOST_SEGMENTS);
    }

    #[test]
    fn a_round_trip_is_smoothed_between_its_bounds() {
        assert_eq!(rules().smooth(us(100), us(300)), us(125));
        // A sample below RTT0 counts as RTT0, and no estimate exceeds the maximum.
        assert_eq!(rules().smooth(us(180), us(20)), us(170));
        assert_eq!([rules().smooth(us(900), us(9000)), rules().smooth(us(900), Dur::MAX)], [us(1000); 2]);
    }

    /// 512 000 bytes: the flow aims to end six times 100 us before the deadline, if the deadline is
    /// further away than that.
    #[test]
    fn a_flow_aims_to_end_before_its_deadline() {
        let start = Time::ZERO + us(70);
        for (allowed, time, target) in [(5600, 5000, 8), (600, 600, 59), (601, 1, 35_360)] {
            let flow = Flow { start, ..script::flow(0, 512_000) };
            let rate = rules().start(&flow, start + us(allowed));
            let wanted = RateWindow { end: start + us(time), srtt: us(100), updated: start, target, current: 3 };
            assert_eq!(rate, wanted, "{allowed}");
        }
    }

    #[test]
    fn the_rate_window_moves_one_segment_per_ack_and_the_target_once_per_round_trip() {
        let flow = Flow { deadline: Some(Time::ZERO + us(5600)), ..script::flow(0, 512_000) };
        let (rules, mut state) = (rules(), rules().open(&flow));
        let mut feed = |at, snd_una, rtt| {
            let ack = script::ack_with(&flow, SMSS, |ack| {
                (ack.now_ps, ack.snd_una, ack.rtt_ps) = ((Time::ZERO + us(at)).0, snd_una, us(rtt).0);
            });
            rules.on_feedback(&mut state, &ack);
            let rate = state.rate.expect("it has a deadline");
            assert_eq!(rules.most(&state), rate.current * SMSS);
            (rate.target, rate.current)
        };
        // The target is computed at the start, and again after one smoothed round trip.
        assert_eq!([feed(50, 0, 100), feed(99, 200_000, 100), feed(100, 200_000, 100)], [(8, 4), (8, 5), (5, 5)]);
        assert_eq!([feed(150, 0, 100), feed(200, 0, 100)], [(5, 5), (8, 6)]);
        // With 1000 bytes left it decreases; after the end the target is the minimum.
        assert_eq!([feed(4000, 511_000, 100), feed(4100, 511_000, 100)], [(2, 5), (2, 4)]);
        assert_eq!([feed(5000, 511_000, 100), feed(6000, 0, 100), feed(9000, 0, 100)], [(2, 3), (2, 2), (2, 2)]);
    }

    /// The flow of the first golden row: 3 segments, then one more for every ACK, since slow start
    /// of ten segments does not limit it. A mark has no effect.
    #[test]
    fn the_smaller_window_is_in_force_and_marks_are_ignored() {
        let mut params = Params::defaults();
        params.dctcp.tcp.handshake = false;
        let flow = Flow { deadline: Some(Time::ZERO + us(5600)), ..script::flow(0, 512_000) };
        let mut host = Script::new(Mcp::new(&params, &script::env()), vec![flow.clone()]);
        assert_eq!(host.open(0).len(), 3);
        let answer = |n: u64| {
            let mut ack = Packet { offset: n * 1460, flags: Packet::ECE, ..Packet::new(FlowId(0), Kind::ACK, 40) };
            crate::kit::tcp::Echo::default().write(&mut ack);
            ack
        };
        host.now = Time::ZERO + us(90);
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(|n| host.packet(answer(n)).len()), [2, 2, 2, 2, 2, 1, 1]);
        // A smaller congestion window takes effect: after a timeout one segment.
        params.dctcp.tcp.init_window = Auto::Set(1);
        assert_eq!(Script::new(Mcp::new(&params, &script::env()), vec![flow]).open(0).len(), 1);
        assert_eq!(host.advance(host.now + Dur::from_ms(10)).len(), 1);
    }

    #[test]
    fn without_a_deadline_it_is_dctcp() {
        for seed in 0..10 {
            let flow = script::flow(0, 400 * 1460);
            let fate = || {
                let mut rng = Rng::stream(seed, "mcp", &[]);
                move |_: &Packet| match rng.below(50) {
                    0 => Fate::Drop,
                    1..10 => Fate::Mark,
                    _ => Fate::Pass,
                }
            };
            let here = exchange(|| Mcp::new(&Params::defaults(), &script::env()), &flow, fate());
            let dctcp = exchange(|| dctcp::Dctcp::new(&DctcpParams::defaults(), &script::env()), &flow, fate());
            assert_eq!(here, dctcp, "seed {seed}");
        }
    }

    /// Despite losses, a flow with a deadline arrives, also long after its deadline.
    #[test]
    fn flows_with_deadlines_survive_losses() {
        for (seed, deadline) in [(1, 1), (2, 500), (3, 50_000)] {
            let flow = Flow { deadline: Some(Time::ZERO + us(deadline)), ..script::flow(0, 300 * 1460) };
            let mut rng = Rng::stream(seed, "mcp", &[]);
            let fate = |_: &Packet| if rng.below(10) == 0 { Fate::Drop } else { Fate::Mark };
            let packets = exchange(|| Mcp::new(&Params::defaults(), &script::env()), &flow, fate);
            assert!(packets.iter().filter(|packet| packet.payload > 0).count() >= 300);
        }
    }

    #[test]
    fn contradictions_are_found() {
        let wrong = Params { max_srtt: us(50), min_rate_window: 4, ..Params::defaults() };
        let keys = |params: &Params| check(params, &script::env()).iter().map(|p| p.key).collect::<Vec<_>>();
        assert_eq!((keys(&wrong), keys(&Params::defaults())), (vec!["max_srtt", "first_rate_window"], vec![]));
    }
}
