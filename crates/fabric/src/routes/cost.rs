//! The time that a path takes in an otherwise idle network.

use crate::net::Net;
use base::{Dur, LinkId, Rate};

/// Rate and delay of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CostedHop {
    /// Line rate.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Dur,
}

impl CostedHop {
    /// Returns the rate and delay of a link of a network.
    pub fn of(net: &Net, link: LinkId) -> CostedHop {
        let link = net.link(link);
        CostedHop { rate: link.rate, delay: link.delay }
    }
}

/// Returns the rate of the slowest link.
pub fn bottleneck(hops: &[CostedHop]) -> Rate {
    hops.iter().map(|hop| hop.rate).min().unwrap_or_default()
}

/// Returns the time of one packet over an idle path, with store and forward.
pub fn one_way(hops: &[CostedHop], wire_bytes: u64) -> Dur {
    hops.iter().fold(Dur::ZERO, |sum, hop| sum + hop.rate.tx_time(wire_bytes) + hop.delay)
}

/// Returns the unloaded round trip: a packet of `full` wire bytes out, a packet of `header` bytes
/// back over the same cables.
pub fn rtt(hops: &[CostedHop], full: u64, header: u64) -> Dur {
    one_way(hops, full) + one_way(hops, header)
}

/// Returns when the last of `payload` bytes has crossed an idle path. Packets of at most `mss`
/// payload bytes plus `header` bytes leave at line rate and are stored and forwarded. No handshake,
/// no pacing.
///
/// The last packet follows the previous packet through the path, catches up with it at links up to
/// some link a, and leaves link a right after it. Let T be the time of a full packet on a link and
/// s that of the last packet. Then the n packets take `max over a of (sum of T up to a) + (n - 2)
/// (largest T up to a) + (sum of s from a on)`, plus the delays: the longest path through the grid
/// of packets and links.
pub fn ideal_fct(hops: &[CostedHop], payload: u64, mss: u64, header: u64) -> Dur {
    let packets = payload.div_ceil(mss).max(1);
    let last = payload - (packets - 1) * mss + header;
    let alone = one_way(hops, last);
    if packets == 1 {
        return alone;
    }
    let mut rest: u64 = hops.iter().map(|hop| hop.rate.tx_time(last).ps()).sum();
    let delays = alone.ps() - rest;
    let (mut sum, mut slowest, mut longest) = (0, 0, 0);
    for hop in hops {
        let full = hop.rate.tx_time(mss + header).ps();
        sum += full;
        slowest = slowest.max(full);
        longest = longest.max(sum + (packets - 2) * slowest + rest);
        rest -= hop.rate.tx_time(last).ps();
    }
    Dur(longest + delays)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    const GBPS: Rate = Rate::from_gbps(1);
    const DELAY: Dur = Dur::from_us(10);

    #[test]
    fn ideal_fct_of_equal_links() {
        // 100 full packets over four links: 99 times 12 us at the first, then one packet over all of them.
        let hops = [CostedHop { rate: GBPS, delay: DELAY }; 4];
        assert_eq!(ideal_fct(&hops, 100 * 1460, 1460, 40), Dur::from_us(99 * 12 + 4 * 22));
        assert_eq!(ideal_fct(&hops, 1, 1460, 40), Dur(4 * (41 * 8000 + 10_000_000)));
        assert_eq!(ideal_fct(&hops, 1460, 1460, 40), Dur::from_us(4 * 22));
    }

    /// Compared with a simulation of the single packets.
    #[test]
    fn ideal_fct_of_any_links() {
        let mut rng = Rng::stream(1, "routes/ideal", &[]);
        let rates = [1, 3, 7, 10, 25, 40, 100].map(Rate::from_gbps);
        for _ in 0..5000 {
            let hop = |rng: &mut Rng| CostedHop { rate: rates[rng.below(7) as usize], delay: Dur(1 + rng.below(50_000_000)) };
            let hops: Vec<CostedHop> = (0..1 + rng.below(7)).map(|_| hop(&mut rng)).collect();
            let payload = 1 + rng.below(30_000);
            let mut free = vec![0; hops.len()];
            let mut end = 0;
            for offset in (0..payload).step_by(1460) {
                let len = 1460.min(payload - offset) + 40;
                let mut at = 0;
                for (hop, free) in hops.iter().zip(&mut free) {
                    *free = at.max(*free) + hop.rate.tx_time(len).ps();
                    at = *free + hop.delay.ps();
                }
                end = at;
            }
            assert_eq!(ideal_fct(&hops, payload, 1460, 40), Dur(end), "{payload} {hops:?}");
        }
    }
}
