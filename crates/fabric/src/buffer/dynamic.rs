//! Dynamic thresholds: a port may hold at most a multiple of the free space in the switch's buffer.
//!
//! Source: Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", IEEE/ACM ToN 6(2), 1998, section III.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `total` | 4 MB | Alizadeh et al., DCTCP, SIGCOMM 2010, section 3.4: the Triumph switch |
//! | `alpha` | 1 | Choudhury and Hahne section III: a power of two is a shift |
//!
//! Assumed: the port's queue length includes the arriving packet, the free space is measured
//! without it. Both are in the unit of `total`.

use super::{Buffer, Env, Place};
use crate::queue::Backlog;
use base::params::Problem;
use base::registry::Meta;
use base::{Fraction, Limit};
use proto::Packet;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "a port may hold at most a multiple of the free space in the switch's buffer",
    source: "Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998, section III",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a buffer with dynamic thresholds.
    pub struct Params {
        /// Most packets or bytes that may wait at all ports of a switch together.
        total: Limit = "4MB", "DCTCP section 3.4: the Triumph switch";
        /// A port may hold this times the free space.
        alpha: Fraction = "1", "Choudhury and Hahne section III";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let mut problems = super::check_total(params.total, *env);
    let least = match params.total {
        Limit::Bytes(_) => u128::from(env.mtu_bytes),
        _ => 1,
    };
    if problems.is_empty() && amount(params.total).is_some_and(|total| threshold(params.alpha, total) < least) {
        let message = format!(
            "`{}` times `{}` is less than a full packet: every full packet that has to wait would be dropped",
            params.alpha, params.total
        );
        problems.push(Problem { key: "alpha", message, hint: "write a larger `alpha` or `total`".to_owned() });
    }
    problems
}

/// Returns `total` as a number of packets or bytes; `None`: no limit.
fn amount(total: Limit) -> Option<u64> {
    match total {
        Limit::Packets(n) => Some(u64::from(n)),
        Limit::Bytes(n) => Some(n),
        Limit::Unlimited => None,
    }
}

/// Returns how much a port may hold when `free` of the buffer is free.
fn threshold(alpha: Fraction, free: u64) -> u128 {
    u128::from(alpha.0) * u128::from(free) / u128::from(Fraction::ONE.0)
}

/// The buffer.
pub struct Dynamic {
    total: Limit,
    alpha: Fraction,
}

impl Dynamic {
    /// Returns the buffer of a switch.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Dynamic { total: params.total, alpha: params.alpha }
    }
    /// Returns 0: the buffer counts nothing by port.
    pub fn counters(_params: &Params) -> usize {
        0
    }
}

impl Buffer for Dynamic {
    fn admits(&mut self, packet: &Packet, _place: Place, port: Backlog, all: Backlog) -> bool {
        let Some(total) = amount(self.total) else { return true };
        let (mut with, held) = (port, |backlog: Backlog| match self.total {
            Limit::Packets(_) => u64::from(backlog.packets),
            _ => backlog.bytes,
        });
        with.add(packet);
        all.fits(packet, self.total) && u128::from(held(with)) <= threshold(self.alpha, total.saturating_sub(held(all)))
    }
    fn most(&self) -> Limit {
        // q = alpha (total - q).
        let share = |total: u64| {
            let (alpha, one) = (u128::from(self.alpha.0), u128::from(Fraction::ONE.0));
            (u128::from(total) * alpha / (one + alpha)) as u64
        };
        match self.total {
            Limit::Packets(n) => Limit::Packets(share(n.into()) as u32),
            Limit::Bytes(n) => Limit::Bytes(share(n)),
            Limit::Unlimited => Limit::Unlimited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::tests::PLACE;
    use base::FlowId;

    fn buffer(total: Limit, alpha: u64) -> Dynamic {
        Dynamic::new(&Params { total, alpha: Fraction(alpha) }, &Env { mtu_bytes: 1500, links: &[] })
    }

    /// How much each of `ports` holds after all of them have enqueued packets in turn until none is
    /// admitted.
    fn filled(mut buffer: Dynamic, ports: usize) -> Vec<u32> {
        let packet = Packet::data(FlowId(0), 0, 1460, 40);
        let mut held = vec![Backlog::default(); ports];
        loop {
            let mut admitted = false;
            for n in 0..ports {
                let sum = |f: fn(&Backlog) -> u64| held.iter().map(f).sum::<u64>();
                let all = Backlog { packets: sum(|port| port.packets.into()) as u32, bytes: sum(|port| port.bytes) };
                if buffer.admits(&packet, PLACE, held[n], all) {
                    held[n].add(&packet);
                    admitted = true;
                }
            }
            if !admitted {
                return held.iter().map(|port| port.packets).collect();
            }
        }
    }

    /// Each of n ports that take as much as they can gets alpha B / (1 + alpha n), and the rest
    /// stays free (Choudhury and Hahne, Eq. 3). 1000 packets.
    #[test]
    fn congested_ports_get_equal_shares() {
        for (alpha, ports, share) in [(1.0, 1, 500), (1.0, 4, 200), (2.0, 1, 666), (2.0, 2, 400), (0.5, 2, 250), (8.0, 1, 888)] {
            for total in [Limit::Packets(1000), Limit::Bytes(1_500_000)] {
                let held = filled(buffer(total, (alpha * 1e9) as u64), ports);
                assert!(held.iter().all(|port| port.abs_diff(share) <= 1), "{alpha}, {ports} ports: {held:?}");
            }
        }
    }

    #[test]
    fn no_alpha_exceeds_the_total() {
        assert_eq!(filled(buffer(Limit::Packets(10), 1_000_000_000_000), 1), [10]);
        let full = Backlog { packets: 10, bytes: 15_000 };
        assert!(!buffer(Limit::Packets(10), 1_000_000_000).admits(
            &Packet::data(FlowId(0), 0, 1460, 40),
            PLACE,
            Backlog::default(),
            full
        ));
        assert!(buffer(Limit::Unlimited, 1).admits(&Packet::data(FlowId(0), 0, 1460, 40), PLACE, full, full));
    }

    #[test]
    fn an_alpha_that_admits_no_packet_is_a_problem() {
        let of = |total, alpha| check(&Params { total, alpha: Fraction(alpha) }, &Env { mtu_bytes: 1500, links: &[] }).len();
        assert_eq!([of(Limit::Bytes(15_000), 100_000_000), of(Limit::Bytes(15_000), 99_000_000)], [0, 1]);
        assert_eq!([of(Limit::Packets(4), 250_000_000), of(Limit::Packets(4), 249_000_000), of(Limit::Bytes(0), 1)], [0, 1, 1]);
    }
}
