//! TCP NewReno: slow start, congestion avoidance, fast retransmit and recovery without SACK.
//!
//! Source: RFC 5681 sections 3.1 and 3.2, RFC 6582, RFC 6298. The machine is `kit/tcp`; this file says how the window grows and falls.
//!
//! Model: as the machine's.
//!
//! Assumed:
//! - Congestion avoidance adds SMSS * SMSS / cwnd per ACK, rounded down, at least one byte.

use super::Env;
use crate::flow::Flow;
use crate::kit::tcp::{Ack, Congestion, Loss, Options, Tcp, Window, half_flight};
use base::params::Problem;
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
        ..tcp: Options {}
        /// In congestion avoidance, add one SMSS per `cwnd` bytes acknowledged instead of a part of it per ACK.
        byte_counting: bool = "false", "RFC 5681 section 3.1";
    }
}

/// Contradictions between parameters.
pub fn check(params: &Params, _env: &Env) -> Vec<Problem> {
    params.tcp.check()
}

/// The machine of one host.
pub type NewReno = Tcp<Reno>;

impl NewReno {
    /// A host without flows.
    pub fn new(params: &Params, env: &Env) -> Self {
        let config = params.tcp.config(env);
        Tcp::with(config, Reno { smss: config.smss, byte_counting: params.byte_counting })
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
        half_flight(loss, self.smss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::pipe::{Fate, Pipe};
    use crate::kit::script::{self, Script};
    use crate::packet::Kind;
    use base::params::{Auto, Params as _};
    use base::{Dur, HostId, Time};
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
    fn growth_is_one_segment_per_ack_then_one_per_window() {
        let mut params = Params::defaults();
        params.tcp.handshake = false;
        let mut pipe = pipe(&params, &[400 * SMSS]);
        pipe.run(|_| Fate::Pass);
        // Doubling from 3: 400 segments need 8 round trips of 200 us, and no more.
        let finish = pipe.hosts[1].table.get(base::FlowId(0)).finish;
        assert_eq!(finish, Time::ZERO + Dur::from_us(100 + 7 * 200));
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
        let plain = Options::defaults();
        let with = |tcp, byte_counting| Params { tcp, byte_counting };
        vec![
            Params::defaults(),
            with(
                Options {
                    handshake: false,
                    init_window: Auto::Set(10),
                    min_rto: Dur::from_us(200),
                    init_rto: Auto::Auto,
                    ..plain.clone()
                },
                false,
            ),
            with(Options { ack_every: 2, limited_transmit: true, full_ack_ssthresh: true, ..plain.clone() }, false),
            with(Options { max_cwnd: Auto::Set(4), ..plain }, true),
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
