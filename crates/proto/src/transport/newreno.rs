//! TCP NewReno: slow start, congestion avoidance, fast retransmit and recovery without SACK.
//!
//! Source: RFC 5681 sections 3.1 and 3.2, RFC 6582, RFC 6298. The machine, with what it leaves out, is `kit/tcp`; this file says how
//! the window grows and falls.
//!
//! Model: no receive window unless `max_cwnd` is given, no SACK, no FIN: the sender's state ends with the last acknowledgment. No
//! restart of idle connections, since a flow is all there from the start and never idles.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `min_rto` | 200 ms | ns-2 scripts of the DCTCP line; RFC 6298 (2.4) asks for 1 s |
//! | `init_rto` | 1 s | RFC 6298 (2.1) |
//! | `max_rto` | 60 s | RFC 6298 (2.5) |
//! | `clock` | 0 | a simulation's clock is perfect |
//! | `init_window` | 3 segments of 1460 B | RFC 5681 section 3.1 |
//! | `max_cwnd` | none | |
//! | `handshake` | on | RFC 9293 |
//! | `ack_every`, `delayed_ack` | 1, 40 ms | RFC 5681 section 4.2 allows 2 |
//! | `limited_transmit`, `full_ack_ssthresh`, `byte_counting` | off | RFC 3042, RFC 6582, RFC 5681 |
//!
//! Assumed:
//! - Congestion avoidance adds SMSS * SMSS / cwnd per ACK, rounded down, at least one byte.
//! - The window grows only while it is the limit: when the bytes in flight were within one SMSS of `cwnd` before the ACK.
//! - A round trip is timed by an echo in every ACK; retransmissions give no sample (Karn).
//! - After a timeout everything above the resent segment counts as lost, so FlightSize is `snd_nxt - snd_una`.
//! - The retransmission timer starts when a segment is handed to the NIC.
//! - `clock` enters the timeout formula only; timers fire exactly at their deadlines.
//! - With delayed ACKs the segment that completes a flow is acknowledged at once, as its FIN would be.
//!
//! Deviates: RFC 6298 (5.7) raises the timeout to 3 s after a lost SYN; here the doubled timeout stays.

use super::Env;
use crate::flow::Flow;
use crate::kit::rtt::RttConfig;
use crate::kit::tcp::{Ack, Config, Congestion, Loss, Tcp, Window};
use base::Dur;
use base::params::{Auto, Problem};
use base::registry::{Meta, Needs};

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "TCP NewReno: slow start, congestion avoidance, fast retransmit and recovery without SACK",
    source: "RFC 5681, RFC 6582, RFC 6298",
    needs: Needs::NONE,
};

base::params! {
    /// Parameters of TCP NewReno.
    pub struct Params {
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
        full_ack_ssthresh: bool = "false", "RFC 6582 section 3.2 step 3, option 2";
        /// In congestion avoidance, add one SMSS per `cwnd` bytes acknowledged instead of a part of it per ACK.
        byte_counting: bool = "false", "RFC 5681 section 3.1";
    }
}

/// Problems that show only against the network, or between parameters.
pub fn check(params: &Params, _env: &Env) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut above = |key, value: String, limit_key: &str, limit: String| {
        let message = format!("`{value}` is above `{limit_key}`, which is `{limit}`");
        problems.push(Problem { key, message, hint: format!("lower `{key}` or raise `{limit_key}`") });
    };
    if params.min_rto > params.max_rto {
        above("min_rto", params.min_rto.to_string(), "max_rto", params.max_rto.to_string());
    }
    if let Auto::Set(rto) = params.init_rto
        && rto > params.max_rto
    {
        above("init_rto", rto.to_string(), "max_rto", params.max_rto.to_string());
    }
    if let (Auto::Set(init), Auto::Set(max)) = (params.init_window, params.max_cwnd)
        && init > max
    {
        above("init_window", init.to_string(), "max_cwnd", max.to_string());
    }
    problems
}

/// The machine of one host.
pub type NewReno = Tcp<Reno>;

impl NewReno {
    /// A host without flows.
    pub fn new(params: &Params, env: &Env) -> Self {
        let smss = u64::from(env.mss());
        let segments = |n: u32| u64::from(n) * smss;
        let config = Config {
            smss,
            header: env.header_bytes,
            init_window: segments(params.init_window.or(Config::standard_window(smss))),
            max_window: match params.max_cwnd {
                Auto::Auto => u64::MAX,
                Auto::Set(n) => segments(n),
            },
            rtt: RttConfig {
                init_rto: params.init_rto.or(params.min_rto),
                min_rto: params.min_rto,
                max_rto: params.max_rto,
                clock: params.clock,
            },
            handshake: params.handshake,
            ack_every: params.ack_every,
            delayed_ack: params.delayed_ack,
            limited_transmit: params.limited_transmit,
            full_ack_ssthresh: params.full_ack_ssthresh,
        };
        Tcp::with(config, Reno { smss, byte_counting: params.byte_counting })
    }
}

/// The window rules of RFC 5681.
#[derive(Clone, Copy, Debug)]
pub struct Reno {
    smss: u64,
    byte_counting: bool,
}

impl Congestion for Reno {
    /// Bytes acknowledged towards the next SMSS, when bytes are counted.
    type State = u64;

    fn open(&self, _flow: &Flow) -> u64 {
        0
    }

    #[inline]
    fn on_ack(&self, counted: &mut u64, window: &mut Window, ack: &Ack<'_>) {
        if !ack.window_limited {
            return;
        }
        let cwnd = window.cwnd;
        window.cwnd += if cwnd < window.ssthresh {
            // RFC 5681 eq. 2.
            ack.acked.min(self.smss)
        } else if self.byte_counting {
            *counted += ack.acked;
            if *counted < cwnd {
                return;
            }
            *counted -= cwnd;
            self.smss
        } else {
            // RFC 5681 eq. 3.
            (self.smss * self.smss / cwnd).max(1)
        };
    }

    fn on_loss(&self, counted: &mut u64, _window: &Window, loss: Loss) -> u64 {
        *counted = 0;
        // RFC 5681 eq. 4.
        (loss.flight / 2).max(2 * self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::pipe::{Fate, Pipe};
    use crate::kit::script::{self, Script};
    use crate::packet::Kind;
    use base::params::Params as _;
    use base::{HostId, Time};
    use proptest::prelude::*;

    const SMSS: u64 = 1460;

    fn grow(reno: Reno, window: &mut Window, counted: &mut u64, acked: u64, window_limited: bool) -> u64 {
        let flow = script::flow(0, 1);
        let ack = Ack { window_limited, ..script::ack(&flow, acked) };
        reno.on_ack(counted, window, &ack);
        window.cwnd
    }

    #[test]
    fn slow_start_adds_what_was_acknowledged_up_to_one_segment() {
        let reno = Reno { smss: SMSS, byte_counting: false };
        let mut window = Window { cwnd: 3 * SMSS, ssthresh: u64::MAX };
        assert_eq!(grow(reno, &mut window, &mut 0, 2 * SMSS, true), 4 * SMSS);
        assert_eq!(grow(reno, &mut window, &mut 0, 100, true), 4 * SMSS + 100);
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, false), 4 * SMSS + 100);
    }

    #[test]
    fn congestion_avoidance_adds_a_part_of_a_segment_per_ack() {
        let reno = Reno { smss: SMSS, byte_counting: false };
        let mut window = Window { cwnd: 10 * SMSS, ssthresh: 10 * SMSS };
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, true), 10 * SMSS + 146);
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, true), 10 * SMSS + 146 + 144);
        window.cwnd = SMSS * SMSS * 2;
        assert_eq!(grow(reno, &mut window, &mut 0, SMSS, true), SMSS * SMSS * 2 + 1);
    }

    #[test]
    fn byte_counting_adds_a_segment_per_window() {
        let reno = Reno { smss: SMSS, byte_counting: true };
        let (mut window, mut counted) = (Window { cwnd: 4 * SMSS, ssthresh: 2 * SMSS }, 0);
        let steps: Vec<u64> = (0..9).map(|_| grow(reno, &mut window, &mut counted, SMSS, true) / SMSS).collect();
        assert_eq!(steps, [4, 4, 4, 5, 5, 5, 5, 5, 6]);
    }

    #[test]
    fn a_loss_halves_the_flight_down_to_two_segments() {
        let reno = Reno { smss: SMSS, byte_counting: false };
        let window = Window { cwnd: 100 * SMSS, ssthresh: u64::MAX };
        let cause = crate::kit::tcp::Cause::Timeout;
        assert_eq!(reno.on_loss(&mut 0, &window, Loss { cause, flight: 9 * SMSS, after_mark: false }), 9 * SMSS / 2);
        assert_eq!(reno.on_loss(&mut 0, &window, Loss { cause, flight: SMSS, after_mark: false }), 2 * SMSS);
    }

    #[test]
    fn the_initial_window_depends_on_the_segment_size() {
        for (mtu_bytes, segments) in [(9000, 2), (2231, 2), (2230, 3), (1500, 3), (1136, 3), (1135, 4), (576, 4)] {
            let env = Env { mtu_bytes, ..script::env() };
            let params = Params { handshake: false, ..Params::defaults() };
            let mut host = Script::new(NewReno::new(&params, &env), vec![script::flow(0, 1_000_000)]);
            assert_eq!(host.open(0).len(), segments, "{mtu_bytes}");
        }
    }

    #[test]
    fn growth_is_one_segment_per_ack_then_one_per_window() {
        let params = Params { handshake: false, ..Params::defaults() };
        let mut pipe = pipe(&params, &[400 * SMSS]);
        pipe.run(|_| Fate::Pass);
        // Doubling from 3: 400 segments need 8 round trips of 200 us, and no more.
        let finish = pipe.hosts[1].table.get(base::FlowId(0)).finish;
        assert_eq!(finish, Time::ZERO + Dur::from_us(100 + 7 * 200));
    }

    #[test]
    fn contradictions_are_found() {
        let env = script::env();
        assert_eq!(check(&Params::defaults(), &env), []);
        let wrong =
            Params { max_rto: Dur::from_ms(100), init_window: Auto::Set(20), max_cwnd: Auto::Set(10), ..Params::defaults() };
        let keys: Vec<_> = check(&wrong, &env).iter().map(|p| p.key).collect();
        assert_eq!(keys, ["min_rto", "init_rto", "init_window"]);
        let auto = Params { init_rto: Auto::Auto, max_rto: Dur::from_ms(200), ..Params::defaults() };
        assert_eq!(check(&auto, &env), []);
    }

    /// Flows of these sizes, every second one from host 1 to host 0, through a pipe with a round trip of 200 us.
    fn pipe(params: &Params, sizes: &[u64]) -> Pipe<NewReno> {
        let flows: Vec<Flow> = sizes
            .iter()
            .enumerate()
            .map(|(i, size)| {
                let ends = [HostId(0), HostId(1)];
                Flow { src: ends[i % 2], dst: ends[1 - i % 2], ..script::flow(i as u32, *size) }
            })
            .collect();
        let host = || Script::new(NewReno::new(params, &script::env()), flows.clone());
        Pipe::new(host(), host(), Dur::from_us(100))
    }

    fn variants() -> Vec<Params> {
        let plain = Params::defaults();
        vec![
            plain.clone(),
            Params {
                handshake: false,
                init_window: Auto::Set(10),
                min_rto: Dur::from_us(200),
                init_rto: Auto::Auto,
                ..plain.clone()
            },
            Params { ack_every: 2, limited_transmit: true, full_ack_ssthresh: true, ..plain.clone() },
            Params { byte_counting: true, max_cwnd: Auto::Set(4), ..plain },
        ]
    }

    #[test]
    fn a_segment_dropped_once_at_any_place_is_recovered() {
        for params in variants() {
            for lost in 0..20 {
                let mut pipe = pipe(&params, &[20 * SMSS]);
                let mut dropped = 0;
                pipe.run(|p| {
                    let hit = p.kind == Kind::DATA && p.offset == lost * SMSS && dropped == 0;
                    dropped += u32::from(hit);
                    if hit { Fate::Drop } else { Fate::Pass }
                });
                assert_eq!(dropped, 1);
                let stats = pipe.hosts[0].table.get(base::FlowId(0)).stats;
                assert!(stats.timeouts + stats.fast_retransmits >= 1, "segment {lost}: {stats:?}");
            }
        }
    }

    #[test]
    fn every_packet_of_any_kind_dropped_once_is_recovered() {
        for params in variants() {
            let packets = {
                let mut whole = pipe(&params, &[20 * SMSS]);
                whole.run(|_| Fate::Pass);
                whole.log.len()
            };
            for lost in 0..packets {
                let mut seen = 0;
                pipe(&params, &[20 * SMSS]).run(|_| {
                    seen += 1;
                    if seen == lost + 1 { Fate::Drop } else { Fate::Pass }
                });
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        /// All bytes arrive once, senders close and timers end, whatever happens to the first 200 packets.
        #[test]
        fn survives_loss_reordering_and_duplication(
            variant in 0usize..4,
            sizes in prop::collection::vec(1u64..60_000, 1..4),
            fates in prop::collection::vec(prop_oneof![
                4 => Just(Fate::Pass),
                2 => Just(Fate::Drop),
                1 => Just(Fate::Twice),
                2 => (1u64..2_000).prop_map(|us| Fate::Late(Dur::from_us(us))),
            ], 0..200),
        ) {
            let mut fates = fates.into_iter();
            pipe(&variants()[variant], &sizes).run(|_| fates.next().unwrap_or(Fate::Pass));
        }
    }
}
