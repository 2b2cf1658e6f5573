//! Default queue lengths, which scale with the rate of the port and the round trip of the network.
//!
//! A bandwidth-delay product (BDP) is the port's rate times the longest unloaded round trip between
//! two hosts, including store and forward.
//!
//! - Limit: the larger of 100 packets and 2 BDP. One BDP keeps a link busy while a sender halves its window (Villamizar and Song, "High
//!   Performance TCP in ANSNET", CCR 24(5), 1994), and slow start overshoots by as much again. pFabric has 2 BDP (section 5).
//! - Marking threshold (K): the larger of 20 packets and 0.78 BDP: 20 packets at 1 Gb/s and 65 packets at 10 Gb/s with a round trip of 100 us,
//!   as in DCTCP (Alizadeh et al., SIGCOMM 2010, sections 3.4 and 4). It exceeds the least K of its Eq. 13, BDP / 7.

use crate::qdisc::Env;
use base::Limit;
use base::params::Auto;

/// The default limit in hundredths of a BDP.
const LIMIT: u128 = 200;
/// The default marking threshold in hundredths of a BDP, and its minimum in packets.
const MARK: (u128, u32) = (78, 20);

impl Env {
    /// Returns hundredths of the bandwidth-delay product in full packets, rounded up.
    pub(crate) fn bdp_packets(&self, hundredths: u128) -> u32 {
        let bits = u128::from(self.rate.0) * u128::from(self.max_rtt.0) * hundredths;
        let packets = bits.div_ceil(8 * 100 * 1_000_000_000_000 * u128::from(self.mtu_bytes.max(1)));
        u32::try_from(packets).unwrap_or(u32::MAX)
    }
    /// Returns a limit that was set, or by default the larger of `least` packets and two
    /// bandwidth-delay products.
    pub fn limit(&self, limit: Auto<Limit>, least: u32) -> Limit {
        limit.or(Limit::Packets(self.bdp_packets(LIMIT).max(least)))
    }
    /// Returns a marking threshold that was set, or by default that of DCTCP.
    pub fn mark(&self, mark: Auto<Limit>) -> Limit {
        let (share, least) = MARK;
        mark.or(Limit::Packets(self.bdp_packets(share).max(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Dur, LinkId, Rate};

    fn env(gbps: u64, rtt_us: u64) -> Env {
        let rate = Rate::from_gbps(gbps);
        Env { rate, mtu_bytes: 1500, host_port: false, to_host: false, max_rtt: Dur::from_us(rtt_us), link: LinkId(0), seed: 0 }
    }

    #[test]
    fn defaults_scale_with_rate_and_round_trip() {
        // BDPs of 8.3, 83.3, 833.3 and 66.7 packets.
        for (gbps, rtt_us, limit, mark) in [(1, 100, 100, 20), (10, 100, 167, 65), (100, 100, 1667, 650), (100, 8, 134, 52)] {
            let env = env(gbps, rtt_us);
            assert_eq!(env.limit(Auto::Auto, 100), Limit::Packets(limit), "{gbps} Gb/s, {rtt_us} us");
            assert_eq!(env.mark(Auto::Auto), Limit::Packets(mark), "{gbps} Gb/s, {rtt_us} us");
        }
        assert_eq!(env(1, 100).limit(Auto::Auto, 24), Limit::Packets(24));
    }

    #[test]
    fn packets_of_another_size_hold_as_many_bytes() {
        let jumbo = Env { mtu_bytes: 9000, ..env(100, 100) };
        assert_eq!((jumbo.limit(Auto::Auto, 100), jumbo.mark(Auto::Auto)), (Limit::Packets(278), Limit::Packets(109)));
    }

    #[test]
    fn what_is_given_stays() {
        let given = Auto::Set(Limit::Bytes(1500));
        assert_eq!((env(10, 100).limit(given, 100), env(10, 100).mark(given)), (Limit::Bytes(1500), Limit::Bytes(1500)));
    }
}
