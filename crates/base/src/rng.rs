//! Random numbers from named streams.
//!
//! A stream depends only on (seed, name, indices). Therefore a new consumer does not change the
//! numbers of other consumers, and every system of a sweep sees the same flows. The generator is
//! PCG-64 MCG (`rand_pcg::Pcg64Mcg`), whose output is fixed.

use crate::math;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng as _;
use std::collections::BTreeSet;
use xxhash_rust::xxh3::xxh3_128;

/// A random stream.
#[derive(Clone, Debug)]
pub struct Rng(Pcg64Mcg);

impl Rng {
    /// Returns the stream `name` with `indices` for `seed`. Inside a run, use [`Streams::take`],
    /// which panics if a stream is taken twice.
    pub fn stream(seed: u64, name: &str, indices: &[u64]) -> Rng {
        let mut key = Vec::with_capacity(name.len() + 9 + 8 * indices.len());
        key.extend_from_slice(&seed.to_le_bytes());
        key.extend_from_slice(name.as_bytes());
        key.push(0);
        for index in indices {
            key.extend_from_slice(&index.to_le_bytes());
        }
        Rng(Pcg64Mcg::new(xxh3_128(&key)))
    }
    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// Draws a uniform number in [0, 1), with 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }
    /// Draws a uniform whole number in 0..n, without bias. Panics if `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a choice among nothing");
        // Lemire's multiplication with rejection of the short interval.
        let threshold = n.wrapping_neg() % n;
        loop {
            let wide = u128::from(self.bits()) * u128::from(n);
            if wide as u64 >= threshold {
                return (wide >> 64) as u64;
            }
        }
    }
    /// Draws an exponential number with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * math::ln(1.0 - self.unit())
    }
    /// Draws a Pareto number with the given shape and smallest value: `scale / (1 - u)^(1/shape)`.
    pub fn pareto(&mut self, shape: f64, scale: f64) -> f64 {
        scale * math::pow(1.0 - self.unit(), -1.0 / shape)
    }
}

/// The streams of a run. Each stream can be taken once.
#[derive(Debug)]
pub struct Streams {
    seed: u64,
    taken: BTreeSet<(String, Vec<u64>)>,
}

impl Streams {
    /// Creates the streams for `seed`.
    pub fn new(seed: u64) -> Streams {
        Streams { seed, taken: BTreeSet::new() }
    }
    /// Takes the stream `name` with `indices`. Panics if it was taken before: two users of the same
    /// stream are a bug.
    pub fn take(&mut self, name: &str, indices: &[u64]) -> Rng {
        let fresh = self.taken.insert((name.to_owned(), indices.to_vec()));
        assert!(fresh, "random stream `{name}` {indices:?} taken twice");
        Rng::stream(self.seed, name, indices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_depends_on_seed_name_and_indices_only() {
        let first = |seed, name, indices: &[u64]| Rng::stream(seed, name, indices).bits();
        assert_eq!(first(1, "workload/sizes", &[0]), first(1, "workload/sizes", &[0]));
        let all = [
            first(1, "workload/sizes", &[0]),
            first(2, "workload/sizes", &[0]),
            first(1, "workload/pairs", &[0]),
            first(1, "workload/sizes", &[1]),
            first(1, "workload/sizes", &[]),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(!all[..i].contains(a));
        }
    }

    #[test]
    #[should_panic(expected = "taken twice")]
    fn a_stream_is_taken_once() {
        let mut streams = Streams::new(1);
        streams.take("a", &[]);
        streams.take("a", &[]);
    }

    /// Fixed outputs: a change here changes every result ever published with flowloom.
    #[test]
    fn golden_bits() {
        let mut rng = Rng::stream(1, "golden", &[]);
        let bits = [rng.bits(), rng.bits()];
        assert_eq!(bits, GOLDEN);
    }

    #[test]
    fn laws_have_their_means() {
        let mut rng = Rng::stream(7, "laws", &[]);
        let n = 200_000;
        let mean = |draw: &mut dyn FnMut() -> f64| (0..n).map(|_| draw()).sum::<f64>() / f64::from(n);
        let uniform = mean(&mut || rng.unit());
        assert!((uniform - 0.5).abs() < 0.003, "{uniform}");
        let exponential = mean(&mut || rng.exponential(3.0));
        assert!((exponential - 3.0).abs() < 0.03, "{exponential}");
        // Shape 3 so that the sample mean settles: mean = scale * a / (a - 1).
        let pareto = mean(&mut || rng.pareto(3.0, 2.0));
        assert!((pareto - 3.0).abs() < 0.03, "{pareto}");
        let below = mean(&mut || rng.below(7) as f64);
        assert!((below - 3.0).abs() < 0.02, "{below}");
    }

    const GOLDEN: [u64; 2] = [1530813319035370892, 536676547432367942];
}
