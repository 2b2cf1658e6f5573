//! Equal-cost multipath (ECMP): each flow keeps one path, chosen at every switch by a hash of its
//! five-tuple.
//!
//! Source: RFC 2992 (hash-threshold); RFC 2991 (modulo-N, highest random weight); MERP section 5.1, which hashes the TCP/IP five-tuple
//! with a CRC.
//!
//! Model: the hash covers 13 bytes, big-endian: source address, destination address, protocol,
//! source port, destination port. Switches keep no state per flow, so some flows move needlessly
//! when the set of next hops changes.
//!
//! Assumed: CRC-32 is that of IEEE 802.3, CRC-16 is CCITT-FALSE; both sources leave the polynomial
//! open. MERP does not say whether its switches use the same hash. If they do (`seed = "same"`), an
//! aggregation switch sees only the keys that the edge switches sent to it and uses only part of
//! its uplinks. A CRC is linear, so salting its input or output does not help; `seed = "mix"`
//! multiplies the switch's id into it.

use super::{Duties, Env, Router};
use crate::paths::FiveTuple;
use base::params::Problem;
use base::registry::Meta;
use base::{LinkId, NodeId, Rng};
use crc::{CRC_16_IBM_3740, CRC_32_ISO_HDLC, Crc};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "equal-cost multipath: one path per flow by a hash of its five-tuple",
    source: "RFC 2992; MERP section 5.1",
    ..Meta::PLAIN
};

base::choice! {
    /// The hash function.
    pub enum Hash {
        /// IEEE 802.3.
        Crc32 = "crc32",
        /// CCITT-FALSE.
        Crc16 = "crc16",
    }
}

base::choice! {
    /// How the hash selects a next hop.
    pub enum Mode {
        /// The key space is divided into equal regions.
        HashThreshold = "hash_threshold",
        /// The hash modulo the number of next hops.
        Modulo = "modulo",
        /// Highest random weight: if a next hop is lost, only its flows move.
        Hrw = "hrw",
        /// No hash: a random next hop, uniform and independent at every switch, fixed for a
        /// five-tuple.
        Random = "random",
    }
}

base::choice! {
    /// Whether all switches use the same hash.
    pub enum Seed {
        /// All switches use the same hash: flows polarise.
        Same = "same",
        /// Each switch mixes its id into the hash.
        Mix = "mix",
    }
}

base::params! {
    /// Parameters of ECMP.
    pub struct Params {
        /// The hash function.
        hash: Hash = "crc32", "docs/model.md; the paper says CRC only";
        /// How the hash selects a next hop.
        mode: Mode = "hash_threshold", "RFC 2992; MERP section 5.1";
        /// Whether all switches use the same hash.
        seed: Seed = "mix", "docs/model.md; `same` is the literal reading of MERP";
        /// Seed of the choices with `mode = "random"`.
        salt: u64 = "0", "docs/model.md";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The ECMP of all switches.
#[derive(Debug)]
pub struct Ecmp {
    params: Params,
}

impl Ecmp {
    /// Returns the router of a network.
    pub fn new(params: &Params, _env: &Env<'_>) -> Self {
        Ecmp { params: params.clone() }
    }
    /// Returns that all paths are planned, since a flow keeps its path.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties::PLAN
    }

    /// Returns the hash of a five-tuple.
    pub fn hash(&self, path: &FiveTuple) -> u32 {
        self.crc(path).0
    }
    /// Returns the hash and its width in bits.
    fn crc(&self, path: &FiveTuple) -> (u32, u32) {
        let message = message(path);
        match self.params.hash {
            Hash::Crc32 => (CRC_32.checksum(&message), 32),
            Hash::Crc16 => (u32::from(CRC_16.checksum(&message)), 16),
        }
    }
    /// Returns the key of a five-tuple at a switch, and its width in bits.
    fn key(&self, at: NodeId, path: &FiveTuple) -> (u32, u32) {
        let (crc, bits) = self.crc(path);
        match self.params.seed {
            Seed::Same => (crc, bits),
            Seed::Mix => (mix(crc, at.0), 32),
        }
    }
}

impl Router for Ecmp {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        let n = candidates.len() as u32;
        if self.params.mode == Mode::Random {
            let ends = u64::from(path.src) << 32 | u64::from(path.dst);
            let rest = u64::from(path.protocol) << 32 | u64::from(path.src_port) << 16 | u64::from(path.dst_port);
            return Rng::stream(self.params.salt, "router/pick", &[u64::from(at.0), ends, rest]).below(u64::from(n)) as u32;
        }
        let (key, bits) = self.key(at, path);
        match self.params.mode {
            Mode::HashThreshold => threshold(key, bits, n),
            Mode::Modulo => key % n,
            Mode::Hrw => (0..n).max_by_key(|&i| mix(key, candidates[i as usize].0)).unwrap_or(0),
            Mode::Random => unreachable!("handled above"),
        }
    }
}

/// Returns the hashed bytes.
fn message(path: &FiveTuple) -> [u8; 13] {
    let mut bytes = [0; 13];
    bytes[..4].copy_from_slice(&path.src.to_be_bytes());
    bytes[4..8].copy_from_slice(&path.dst.to_be_bytes());
    bytes[8] = path.protocol;
    bytes[9..11].copy_from_slice(&path.src_port.to_be_bytes());
    bytes[11..].copy_from_slice(&path.dst_port.to_be_bytes());
    bytes
}

/// Returns the region of the key space that contains `key` (RFC 2992). The region size is rounded
/// down, so the last next hop also gets the remainder.
fn threshold(key: u32, bits: u32, n: u32) -> u32 {
    let region = ((1u64 << bits) / u64::from(n)).max(1);
    (u64::from(key) / region).min(u64::from(n) - 1) as u32
}

/// Mixes `salt` into a key so that keys with different salts are practically independent, which no
/// XOR on a CRC achieves.
fn mix(key: u32, salt: u32) -> u32 {
    let mut x = key ^ salt;
    x = x.wrapping_mul(0x9E37_79B1);
    x ^= x >> 15;
    x = x.wrapping_mul(0x85EB_CA77);
    x ^ x >> 13
}

const CRC_32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
const CRC_16: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_3740);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::Net;
    use crate::routes::Routes;
    use base::params::Params as _;

    fn ecmp(params: Params) -> Ecmp {
        let net = Net::default();
        Ecmp::new(
            &params,
            &Env { net: &net, routes: &Routes::new(&net, &[]), seed: 0, max_rtt: base::Dur::ZERO, given: base::Given::none() },
        )
    }

    fn router(hash: Hash, mode: Mode, seed: Seed) -> Ecmp {
        ecmp(Params { hash, mode, seed, ..Params::defaults() })
    }

    fn links(n: u32) -> Vec<LinkId> {
        (100..100 + n).map(LinkId).collect()
    }

    fn tuple(src: [u8; 4], dst: [u8; 4], src_port: u16, dst_port: u16) -> FiveTuple {
        FiveTuple { src: u32::from_be_bytes(src), dst: u32::from_be_bytes(dst), protocol: 6, src_port, dst_port }
    }

    /// Tuples of a k = 4 fat-tree with random source ports.
    fn tuples(n: usize) -> impl Iterator<Item = FiveTuple> {
        let mut rng = Rng::stream(1, "ecmp/tuples", &[]);
        (0..n).map(move |_| {
            let mut host = || [10, rng.below(4) as u8, rng.below(2) as u8, 2 + rng.below(2) as u8];
            let (src, dst) = (host(), host());
            tuple(src, dst, 1024 + rng.below(64_512) as u16, 5001)
        })
    }

    #[test]
    fn check_values_of_the_hashes() {
        assert_eq!(CRC_32.checksum(b"123456789"), 0xCBF4_3926);
        assert_eq!(CRC_16.checksum(b"123456789"), 0x29B1);
    }

    #[test]
    fn golden_keys_and_choices() {
        let a = tuple([10, 0, 0, 2], [10, 1, 0, 2], 10_000, 80);
        assert_eq!(message(&a), [0x0a, 0, 0, 2, 0x0a, 1, 0, 2, 6, 0x27, 0x10, 0, 0x50]);
        let b = FiveTuple { src_port: 10_001, ..a };
        let c = tuple([10, 0, 1, 3], [10, 3, 1, 2], 49_152, 5001);
        let d = tuple([10, 2, 0, 3], [10, 0, 0, 2], 5001, 49_152);
        let (crc16, crc32) = ((Hash::Crc16, Seed::Same, 0), (Hash::Crc32, Seed::Same, 0));
        let mixed = |switch| (Hash::Crc32, Seed::Mix, switch);
        let rows: [(FiveTuple, _, u32, [u32; 3]); 20] = [
            (a, crc16, 0xE661, [1, 2, 3]),
            (b, crc16, 0xD151, [1, 2, 3]),
            (c, crc16, 0xFC7A, [1, 2, 3]),
            (d, crc16, 0x840C, [1, 1, 2]),
            (a, crc32, 0xE07A_4B31, [1, 2, 3]),
            (b, crc32, 0xE1B8_2106, [1, 2, 3]),
            (c, crc32, 0xE30A_0215, [1, 2, 3]),
            (d, crc32, 0x0233_D43D, [0, 0, 0]),
            (a, mixed(1), 0x9B55_A402, [1, 1, 2]),
            (b, mixed(1), 0xF4CD_1AAC, [1, 2, 3]),
            (c, mixed(1), 0xE233_66E4, [1, 2, 3]),
            (d, mixed(1), 0x8F24_BA5E, [1, 1, 2]),
            (a, mixed(7), 0x2CFB_6799, [0, 0, 0]),
            (b, mixed(7), 0x682B_893F, [0, 1, 1]),
            (c, mixed(7), 0xD4D0_8052, [1, 2, 3]),
            (d, mixed(7), 0x1257_3DC9, [0, 0, 0]),
            (a, mixed(9), 0x8199_D7FC, [1, 1, 2]),
            (b, mixed(9), 0x156D_161D, [0, 0, 0]),
            (c, mixed(9), 0x75BB_9836, [0, 1, 1]),
            (d, mixed(9), 0xCB37_DCD4, [1, 2, 3]),
        ];
        for (path, (hash, seed, switch), key, choices) in rows {
            let mut router = router(hash, Mode::HashThreshold, seed);
            assert_eq!(router.key(NodeId(switch), &path).0, key, "{path:?}");
            let chosen = [2, 3, 4].map(|n| router.choose(NodeId(switch), &path, &links(n)));
            assert_eq!(chosen, choices, "{path:?}");
        }
    }

    #[test]
    fn prefixing_a_crc_does_not_break_its_linearity() {
        let a = message(&tuple([10, 0, 0, 2], [10, 1, 0, 2], 10_000, 80));
        let b = message(&tuple([10, 2, 0, 3], [10, 0, 0, 2], 5001, 49_152));
        let prefixed = |m: &[u8; 13]| CRC_32.checksum(&[&[0, 0, 0, 1], &m[..]].concat());
        assert_eq!(prefixed(&a), 0xBBEE_1D78);
        assert_eq!(prefixed(&a) ^ prefixed(&b), CRC_32.checksum(&a) ^ CRC_32.checksum(&b));
    }

    #[test]
    fn the_last_region_takes_the_remainder() {
        assert_eq!(threshold(65_535, 16, 3), 2);
        assert_eq!(threshold(u32::MAX, 32, 3), 2);
        assert_eq!([21_844, 21_845, 43_690].map(|key| threshold(key, 16, 3)), [0, 1, 2]);
    }

    /// Fraction of the key space whose next hop changes when one of n next hops is lost, by its
    /// position.
    #[test]
    fn disruption_of_hash_threshold() {
        let table: [(u32, &[f64]); 4] = [
            (2, &[1. / 2., 1. / 2.]),
            (3, &[1. / 2., 1. / 3., 1. / 2.]),
            (4, &[1. / 2., 1. / 3., 1. / 3., 1. / 2.]),
            (8, &[1. / 2., 11. / 28., 9. / 28., 2. / 7., 2. / 7., 9. / 28., 11. / 28., 1. / 2.]),
        ];
        for (n, shares) in table {
            for (lost, share) in (0..n).zip(shares) {
                let moved = (0..=65_535).filter(|&key| {
                    let after = threshold(key, 16, n - 1);
                    threshold(key, 16, n) != if after < lost { after } else { after + 1 }
                });
                let found = moved.count() as f64 / 65_536.0;
                assert!((found - share).abs() < 2e-4, "n {n}, lost {lost}: {found} for {share}");
            }
        }
    }

    #[test]
    fn highest_random_weight_moves_only_flows_of_the_lost_hop() {
        let mut router = router(Hash::Crc32, Mode::Hrw, Seed::Mix);
        let all = links(5);
        let without: Vec<LinkId> = [0, 1, 3, 4].map(|i| all[i]).to_vec();
        for path in tuples(5000) {
            let before = all[router.choose(NodeId(3), &path, &all) as usize];
            let after = without[router.choose(NodeId(3), &path, &without) as usize];
            assert!(before == after || before == all[2]);
        }
    }

    /// How often each pair of choices (at an edge switch, and at the aggregation switch to which it
    /// leads) occurs among flows.
    fn pairs(mut router: Ecmp) -> [f64; 4] {
        let mut counts = [0.0; 4];
        for path in tuples(20_000) {
            let up = router.choose(NodeId(16), &path, &links(2));
            let core = router.choose(NodeId(20 + up), &path, &links(2));
            counts[(2 * up + core) as usize] += 1.0 / 20_000.0;
        }
        counts
    }

    #[test]
    fn switches_that_hash_alike_polarise() {
        for hash in [Hash::Crc32, Hash::Crc16] {
            let [same, cross_a, cross_b, other] = pairs(router(hash, Mode::HashThreshold, Seed::Same));
            assert_eq!((cross_a, cross_b), (0.0, 0.0));
            assert!(same > 0.4 && other > 0.4);
        }
    }

    #[test]
    fn mixing_and_random_choices_use_all_paths() {
        let routers = [
            router(Hash::Crc32, Mode::HashThreshold, Seed::Mix),
            router(Hash::Crc16, Mode::HashThreshold, Seed::Mix),
            router(Hash::Crc32, Mode::Modulo, Seed::Mix),
            router(Hash::Crc32, Mode::Hrw, Seed::Mix),
            router(Hash::Crc32, Mode::Random, Seed::Same),
        ];
        for router in routers {
            let mode = router.params.mode;
            let shares = pairs(router);
            assert!(shares.iter().all(|&share| share < 0.30), "{mode:?} {shares:?}");
        }
    }

    #[test]
    fn choices_are_uniform() {
        // 99.9 % quantile of chi-square with n - 1 degrees of freedom, for n = 2, 3, 4, 8.
        let limits = [(2, 10.828), (3, 13.816), (4, 16.266), (8, 24.322)];
        for mode in [Mode::HashThreshold, Mode::Modulo, Mode::Hrw, Mode::Random] {
            for (hash, seed) in [(Hash::Crc32, Seed::Same), (Hash::Crc16, Seed::Same), (Hash::Crc32, Seed::Mix)] {
                let mut router = router(hash, mode, seed);
                for (n, limit) in limits {
                    let mut counts = vec![0.0; n as usize];
                    for path in tuples(40_000) {
                        counts[router.choose(NodeId(16), &path, &links(n)) as usize] += 1.0;
                    }
                    let expected = 40_000.0 / f64::from(n);
                    let chi: f64 = counts.iter().map(|c| (c - expected) * (c - expected) / expected).sum();
                    assert!(chi < limit, "{mode:?} {hash:?} {seed:?} n {n}: {chi}");
                }
            }
        }
    }

    /// How many of 4 next hops 4 flows use: (1, 21, 36, 6) / 64 if flows choose independently.
    #[test]
    fn flows_collide_as_often_as_they_should() {
        for mode in [Mode::HashThreshold, Mode::Modulo, Mode::Hrw, Mode::Random] {
            let mut router = router(Hash::Crc32, mode, Seed::Mix);
            let chosen: Vec<u32> = tuples(40_000).map(|t| router.choose(NodeId(20), &t, &links(4))).collect();
            let mut counts = [0.0; 4];
            for four in chosen.chunks(4) {
                let used = (0..4).filter(|hop| four.contains(hop)).count();
                counts[used - 1] += 1.0;
            }
            let expected = [1.0, 21.0, 36.0, 6.0].map(|share| share / 64.0 * 10_000.0);
            let chi: f64 = counts.iter().zip(expected).map(|(c, e)| (c - e) * (c - e) / e).sum();
            // 99.9 % quantile with 3 degrees of freedom.
            assert!(chi < 16.266, "{mode:?} {counts:?}: {chi}");
        }
    }

    #[test]
    fn random_choices_depend_on_salt_and_tuple_only() {
        let salted = |salt| ecmp(Params { mode: Mode::Random, salt, ..Params::defaults() });
        let draw = |mut router: Ecmp| tuples(200).map(|t| router.choose(NodeId(1), &t, &links(4))).collect::<Vec<_>>();
        assert_eq!(draw(salted(1)), draw(salted(1)));
        assert_ne!(draw(salted(1)), draw(salted(2)));
    }
}
