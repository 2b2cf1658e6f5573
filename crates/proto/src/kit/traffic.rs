//! The traffic that the workloads offer, and classes computed from it: quantiles of sizes, equal
//! shares of bytes, and the demotion thresholds with the least mean FCT.
//!
//! # Demotion thresholds
//!
//! A flow is in level `i` of `N` from its byte `a(i-1)` to its byte `a(i)`; `a(0) = 0`, `a(N)` is infinite. On a link of rate `C` with
//! flows of size `X` that arrive at rate `lambda`, the first `i` levels have the load
//!
//! ```text
//! rho(i) = lambda E[min(X, a(i))] / C,        rho(N) = rho
//! ```
//!
//! A level gets the rate that those above it leave, `C (1 - rho(i-1))`, and shares it evenly among
//! its flows, as congestion control does. As an M/G/1 queue with processor sharing it takes `b / (C
//! (1 - rho(i)))` for `b` bytes of a flow, for every size distribution. The objective is the mean
//! over all flows, in units of the time that a flow of mean size takes in an idle network:
//!
//! ```text
//! F(a) = 1/rho  sum over i = 1..N of  (rho(i) - rho(i-1)) / (1 - rho(i))
//! ```
//! The sum is that of `(1 - rho(i-1)) / (1 - rho(i)) - 1`. The product of these ratios is `1 / (1 -
//! rho)`, whatever the thresholds, so that the sum is smallest if all ratios are equal (inequality
//! of arithmetic and geometric means):
//!
//! ```text
//! rho(i) = 1 - (1 - rho)^(i/N),        F = N ((1 - rho)^(-1/N) - 1) / rho
//! ```
//!
//! Source: W. Bai et al., "Information-Agnostic Flow Scheduling for Commodity Data Centers", NSDI
//! 2015, section 4.2, for the levels as queues that get the rate left by the levels above; L.
//! Kleinrock, "Queueing Systems", volume 2, 1976, section 4.4, for processor sharing.

use base::given::Offered;
use base::math;

/// Upper bound of the load: at 1 no queue is stable.
const MOST_LOAD: f64 = 0.95;

/// Sizes and load of all workloads that have a load, mixed by their rates of flows.
#[derive(Clone, Debug)]
pub struct Traffic<'a> {
    laws: Vec<(f64, Law<'a>)>,
    load: f64,
}

impl<'a> Traffic<'a> {
    /// Returns the traffic of the workloads, or the reason why it is not known. Loads add up as if
    /// they had one reference.
    pub fn of(all: &'a [Offered]) -> Result<Traffic<'a>, String> {
        let loads = all.iter().filter(|one| !one.sizes.is_empty()).filter_map(|one| Some((one.load?, Law::new(&one.sizes))));
        let rates: Vec<(f64, f64, Law<'a>)> =
            loads.map(|(load, law)| (load.ppb() as f64 / 1e9, law)).map(|(load, law)| (load, load / law.mean(), law)).collect();
        let (load, flows) = rates.iter().fold((0.0, 0.0), |(load, flows), one| (load + one.0, flows + one.1));
        if rates.is_empty() {
            return Err("no workload offers a load".to_owned());
        }
        let laws = rates.into_iter().map(|(_, rate, law)| (rate / flows, law)).collect();
        Ok(Traffic { laws, load: load.min(MOST_LOAD) })
    }
    /// Returns the traffic of the workloads where only sizes matter: if no workload has a load, all
    /// size distributions have the same weight.
    pub fn of_sizes(all: &'a [Offered]) -> Result<Traffic<'a>, String> {
        if let Ok(traffic) = Traffic::of(all) {
            return Ok(traffic);
        }
        let laws: Vec<_> = all.iter().filter(|one| !one.sizes.is_empty()).map(|one| (1.0, Law::new(&one.sizes))).collect();
        if laws.is_empty() {
            return Err("no workload has a size distribution".to_owned());
        }
        let share = 1.0 / laws.len() as f64;
        Ok(Traffic { laws: laws.into_iter().map(|(_, law)| (share, law)).collect(), load: 0.0 })
    }
    /// Returns the weighted sum of `of` over the size distributions.
    fn sum(&self, of: impl Fn(&Law<'a>) -> f64) -> f64 {
        self.laws.iter().map(|(share, law)| share * of(law)).sum()
    }
    /// Returns the mean size in bytes: `E[X]`.
    pub fn mean(&self) -> f64 {
        self.sum(Law::mean)
    }
    /// Returns the mean of the first `bytes` bytes of a flow: E[min(X, bytes)].
    pub fn mean_below(&self, bytes: u64) -> f64 {
        self.sum(|law| law.mean_below(bytes))
    }
    /// Returns the smallest size at which `of`, which rises, reaches `wanted`.
    fn first(&self, wanted: f64, of: impl Fn(u64) -> f64) -> u64 {
        let (mut low, mut high) = (0, self.laws.iter().map(|(_, law)| law.largest()).max().unwrap_or(1));
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if of(middle) < wanted {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
    /// Returns sizes in bytes that divide the flows, or what `of` counts up to a size, into
    /// `classes` classes with equal shares of `all`.
    fn parts(&self, classes: usize, all: f64, of: impl Fn(u64) -> f64) -> Vec<u64> {
        let share = |i: usize| i as f64 / classes as f64;
        rising((1..classes).map(|i| self.first(all * share(i), &of)))
    }
    /// Returns sizes in bytes that divide the flows into `classes` classes with equal numbers of
    /// flows.
    pub fn equal_flows(&self, classes: usize) -> Vec<u64> {
        self.parts(classes, 1.0, |size| self.sum(|law| law.up_to(size).0))
    }
    /// Returns sizes in bytes that divide the flows into `classes` classes with equal numbers of
    /// bytes.
    pub fn equal_bytes(&self, classes: usize) -> Vec<u64> {
        self.parts(classes, self.mean(), |size| self.sum(|law| law.up_to(size).1))
    }
    /// Returns distinct rising sizes in bytes that divide the flows into at most `classes` classes
    /// with equal numbers of bytes among the first `bytes` of each flow. In addition, `more` bytes
    /// per flow count as those of flows of size 0.
    pub fn equal_first_bytes(&self, classes: usize, bytes: u64, more: f64) -> Vec<u64> {
        let all = more + self.mean_below(bytes);
        let share = |i: usize| all * i as f64 / classes as f64;
        let up_to = |size: u64| more + self.sum(|law| law.first_bytes_up_to(size, bytes));
        let mut sizes: Vec<u64> = (1..classes).map(|i| self.first(share(i), up_to)).collect();
        sizes.dedup();
        sizes
    }
    /// Returns the load of the first `bytes` bytes of all flows.
    fn load_of(&self, bytes: u64) -> f64 {
        self.load * self.mean_below(bytes) / self.mean()
    }
    /// Returns the demotion thresholds in bytes with the least objective for `levels` levels.
    pub fn thresholds(&self, levels: usize) -> Vec<u64> {
        let load = |i: usize| 1.0 - math::pow(1.0 - self.load, i as f64 / levels as f64);
        rising((1..levels).map(|i| self.first(load(i), |bytes| self.load_of(bytes))))
    }
    /// Returns the objective of demotion thresholds in bytes: the mean FCT divided by the time that
    /// a flow of mean size takes in an idle network.
    pub fn objective(&self, thresholds: &[u64]) -> f64 {
        let loads = thresholds.iter().map(|bytes| self.load_of(*bytes)).chain([self.load]);
        let (sum, _) = loads.fold((0.0, 0.0), |(sum, above), load| (sum + (load - above) / (1.0 - load), load));
        sum / self.load
    }
}

/// Returns the sizes, each at least one byte above the previous one.
fn rising(sizes: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut before = 0;
    let above = |size: u64| {
        before = size.max(before + 1);
        before
    };
    sizes.map(above).collect()
}

/// A size distribution, as points of its distribution function (see [`Offered::sizes`]).
#[derive(Clone, Debug)]
struct Law<'a> {
    points: &'a [(u64, f64)],
    /// E[X; X <= point], for each point.
    bytes: Vec<f64>,
}

impl<'a> Law<'a> {
    /// Creates a distribution of at least one point.
    fn new(points: &'a [(u64, f64)]) -> Law<'a> {
        let mut bytes = vec![points[0].1 * points[0].0 as f64];
        for pair in points.windows(2) {
            let [(x0, p0), (x1, p1)] = [pair[0], pair[1]];
            bytes.push(bytes[bytes.len() - 1] + (p1 - p0) * (x0 as f64 + x1 as f64) / 2.0);
        }
        Law { points, bytes }
    }
    fn largest(&self) -> u64 {
        self.points[self.points.len() - 1].0
    }
    fn mean(&self) -> f64 {
        self.bytes[self.bytes.len() - 1]
    }
    /// Returns the share of flows of at most `size` bytes, and their part of the mean: P(X <= size)
    /// and E[X; X <= size].
    fn up_to(&self, size: u64) -> (f64, f64) {
        let above = self.points.partition_point(|point| point.0 <= size);
        let Some(last) = above.checked_sub(1) else { return (0.0, 0.0) };
        let ((x0, p0), bytes) = (self.points[last], self.bytes[last]);
        let Some(&(x1, p1)) = self.points.get(above) else { return (p0, bytes) };
        let flows = (p1 - p0) * (size - x0) as f64 / (x1 - x0) as f64;
        (p0 + flows, bytes + flows * (x0 as f64 + size as f64) / 2.0)
    }
    /// Returns E[min(X, bytes); X <= size].
    fn first_bytes_up_to(&self, size: u64, bytes: u64) -> f64 {
        let (flows, whole) = self.up_to(bytes.min(size));
        whole + (self.up_to(size).0 - flows) * bytes as f64
    }
    /// Returns E[min(X, bytes)].
    fn mean_below(&self, bytes: u64) -> f64 {
        let (flows, whole) = self.up_to(bytes);
        whole + (1.0 - flows) * bytes as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::published::{DATA_MINING, WEB_SEARCH};
    use crate::kit::published::{LAWS, PAYLOAD};
    use base::Fraction;
    use proptest::prelude::*;

    fn offered(load: f64, sizes: &[(u64, f64)]) -> Offered {
        Offered { load: Some(Fraction((load * 1e9) as u64)), sizes: sizes.to_vec() }
    }

    /// Returns the objective of the thresholds for `levels`, and its expected value.
    fn objective(offered: &[Offered], levels: usize) -> (f64, f64) {
        let traffic = Traffic::of(offered).unwrap();
        let (rho, n) = (traffic.load, levels as f64);
        (traffic.objective(&traffic.thresholds(levels)), n * (math::pow(1.0 - rho, -1.0 / n) - 1.0) / rho)
    }

    #[test]
    fn the_objective_is_at_most_that_of_the_published_thresholds() {
        for (law, sizes) in LAWS.iter().zip([&WEB_SEARCH[..], &DATA_MINING[..]]) {
            for (row, load) in law.thresholds.iter().zip([0.5, 0.6, 0.7, 0.8, 0.9]) {
                let all = [offered(load, sizes)];
                let traffic = Traffic::of(&all).unwrap();
                let published = traffic.objective(&row.map(|packets| packets * PAYLOAD));
                let (found, least) = objective(&all, 8);
                assert!(found <= published, "{} {load}: {found}, published {published}", law.name);
                assert!((found - least).abs() < 1e-4 * least, "{} {load}: {found}, not {least}", law.name);
            }
        }
    }

    /// Computed independently of this code.
    #[test]
    fn thresholds_of_web_search_at_load_0_8() {
        let all = [offered(0.8, &WEB_SEARCH)];
        let traffic = Traffic::of(&all).unwrap();
        let found = traffic.thresholds(8);
        let wanted = [984_217u64, 2_309_143, 3_890_266, 5_875_644, 8_394_541, 12_838_025, 18_225_590];
        assert!(found.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) <= 2), "{found:?}");
        assert!((traffic.objective(&wanted) - 2.228_445).abs() < 1e-5);
        // A single class is processor sharing.
        assert_eq!(traffic.thresholds(1), []);
        assert!((traffic.objective(&[]) - 5.0).abs() < 1e-9);
    }

    #[test]
    fn equal_shares_of_bytes_and_flows() {
        let all = [offered(0.5, &WEB_SEARCH)];
        let traffic = Traffic::of(&all).unwrap();
        let published = [2_060_060u64, 4_258_820, 6_602_120, 8_757_080, 15_328_540, 23_319_120];
        let found = traffic.equal_bytes(7);
        assert!(found.iter().zip(published).all(|(a, b)| a.abs_diff(b) < 2 * PAYLOAD + b / 200), "{found:?}");
        assert_eq!(traffic.equal_flows(4), [23_360, 70_642, 1_460_000]);
    }

    /// Among the first 9700 bytes of flows of 100, 1000, 5000 and 50 000 bytes, half of the bytes
    /// belong to flows of up to 5000.
    #[test]
    fn equal_shares_of_the_first_bytes() {
        let points = [(100, 0.5), (1000, 0.5), (1000, 0.8), (5000, 0.8), (5000, 0.95), (50_000, 0.95), (50_000, 1.0)];
        let all = [Offered { load: None, sizes: points.to_vec() }];
        assert!(Traffic::of(&all).is_err() && Traffic::of_sizes(&[]).is_err());
        let traffic = Traffic::of_sizes(&all).unwrap();
        assert!((traffic.mean() - 3600.0).abs() < 1e-9 && (traffic.mean_below(9700) - 1585.0).abs() < 1e-9);
        assert_eq!(traffic.equal_first_bytes(2, 9700, 0.0), [5000]);
        assert_eq!(traffic.equal_first_bytes(4, 9700, 0.0), [5000, 50_000]);
        // With 1000 bytes of size 0 the quarters are at 646, 1292 and 1939 bytes.
        assert_eq!(traffic.equal_first_bytes(4, 9700, 1000.0), [1, 1000, 5000]);
        // Between points sizes are uniform: the first byte of all flows counts them.
        let uniform = [Offered { load: None, sizes: vec![(1, 0.0), (101, 1.0)] }];
        assert_eq!(Traffic::of_sizes(&uniform).unwrap().equal_first_bytes(4, 1, 0.0), [26, 51, 76]);
        // Without loads all distributions have the same weight.
        let two = [all[0].clone(), uniform[0].clone()];
        assert!((Traffic::of_sizes(&two).unwrap().mean() - (3600.0 + 51.0) / 2.0).abs() < 1e-9);
    }

    /// Workloads mix by flows: of two workloads with equal loads, the one with flows of half the
    /// size has twice as many flows.
    #[test]
    fn workloads_mix_by_their_rates_of_flows() {
        let mixed = [offered(0.2, &[(1_000, 1.0)]), Offered { load: None, sizes: vec![(7, 1.0)] }, offered(0.2, &[(2_000, 1.0)])];
        let traffic = Traffic::of(&mixed).unwrap();
        assert!((traffic.mean() - 4_000.0 / 3.0).abs() < 1e-9 && (traffic.load - 0.4).abs() < 1e-12);
        // The first 500 bytes of all flows make 3/8 of the load.
        assert!((traffic.load_of(500) - 0.4 * 3.0 / 8.0).abs() < 1e-12);
        assert!(Traffic::of(&mixed[1..2]).is_err() && Traffic::of(&[]).is_err());
        assert!(Traffic::of(&[offered(3.0, &[(1, 1.0)])]).is_ok_and(|traffic| traffic.load == MOST_LOAD));
    }

    /// Flows of few bytes have no space for many levels: the thresholds still rise.
    #[test]
    fn thresholds_always_rise() {
        let all = [offered(0.9, &[(2, 1.0)])];
        let traffic = Traffic::of(&all).unwrap();
        for found in [traffic.thresholds(8), traffic.equal_bytes(8), traffic.equal_flows(8)] {
            assert!(found.len() == 7 && found.is_sorted_by(|a, b| a < b), "{found:?}");
        }
    }

    proptest! {
        /// No other thresholds have a smaller objective.
        #[test]
        fn the_objective_is_the_least(
            load in 0.05f64..0.99,
            other in prop::collection::btree_set(1u64..29_200_000, 1..12),
        ) {
            let all = [offered(load, &WEB_SEARCH)];
            let traffic = Traffic::of(&all).unwrap();
            let other: Vec<u64> = other.into_iter().collect();
            prop_assert!(objective(&all, other.len() + 1).0 <= traffic.objective(&other) * (1.0 + 1e-4));
        }
    }
}
