//! Ratios of tails: the ratio of the 99th percentiles of slowdowns in two systems, with its
//! confidence interval.
//!
//! Source: the percentile bootstrap of B. Efron and R. Tibshirani, "An Introduction to the
//! Bootstrap", 1993, chapter 13, for pairs: a flow is drawn with both of its slowdowns, so that
//! effects of the workload on both systems cancel out. Seeds are drawn first, then the flows of
//! each seed.

use crate::estimate::around;
use base::Rng;

/// The ratio of two 99th percentiles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TailRatio {
    /// Geometric mean over seeds; `None` without flows.
    pub ratio: Option<f64>,
    /// Ends of its 95 % interval by bootstrap, widened to the ratio if that is outside; `None` if a seed has fewer than 200 flows.
    pub ci95: Option<(f64, f64)>,
}

/// The quantile, in per mille.
const TAIL: u32 = 990;
/// Minimum number of flows for which the 99th percentile can be resampled.
const LEAST: usize = 200;
/// Number of resamples, and maximum number of flows drawn in all resamples.
const DRAWS: [usize; 2] = [1000, 100_000_000];

/// Returns the ratio of the 99th percentiles of slowdowns, second over first, from the pairs of
/// each seed.
pub fn ratio(seeds: &[Vec<[f64; 2]>]) -> TailRatio {
    let all: Vec<&[[f64; 2]]> = seeds.iter().map(Vec::as_slice).collect();
    let ratio = over_seeds(all.iter().map(|pairs| of_seed(pairs.iter().copied())));
    let flows: usize = all.iter().map(|pairs| pairs.len()).sum();
    let Some(estimate) = ratio.filter(|_| all.iter().all(|pairs| pairs.len() >= LEAST)) else {
        return TailRatio { ratio, ci95: None };
    };
    // A fixed seed, so that the same results give the same interval.
    let mut rng = Rng::stream(0, "compare/bootstrap", &[]);
    let draws = DRAWS[0].min(DRAWS[1] / flows).max(100);
    let mut found: Vec<f64> = (0..draws)
        .filter_map(|_| {
            let drawn = (0..all.len()).map(|_| {
                let pairs = all[rng.below(all.len() as u64) as usize];
                of_seed((0..pairs.len()).map(|_| pairs[rng.below(pairs.len() as u64) as usize]))
            });
            over_seeds(drawn.collect::<Vec<_>>().into_iter())
        })
        .collect();
    found.sort_unstable_by(f64::total_cmp);
    // As many resamples are left out above the interval as below, so that swapping the systems gives the reciprocals.
    let out = (found.len() * 25).div_ceil(1000).saturating_sub(1);
    let ends = found.get(out).copied().zip(found.get(found.len() - 1 - out).copied());
    TailRatio { ratio, ci95: ends.map(|(low, high)| around(estimate, low, high)) }
}

/// Returns the ratio of the tails of one seed.
fn of_seed(pairs: impl Iterator<Item = [f64; 2]>) -> Option<f64> {
    let (mut a, mut b): (Vec<f64>, Vec<f64>) = pairs.map(|[a, b]| (a, b)).unzip();
    let tail = |values: &mut Vec<f64>| {
        let rank = (values.len() * TAIL as usize).div_ceil(1000).max(1) - 1;
        (!values.is_empty()).then(|| *values.select_nth_unstable_by(rank, f64::total_cmp).1)
    };
    Some(tail(&mut b)? / tail(&mut a)?)
}

/// Returns the geometric mean.
fn over_seeds(ratios: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logs: Vec<f64> = ratios.flatten().map(base::math::ln).collect();
    (!logs.is_empty()).then(|| base::math::exp(logs.iter().sum::<f64>() / logs.len() as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(number: u64, n: usize, factor: f64) -> Vec<[f64; 2]> {
        let mut rng = Rng::stream(number, "test/tail", &[]);
        // One factor of the slowdown is common to both systems, the other is independent.
        let draw = |_| {
            let common = 1.0 + rng.exponential(2.0);
            [common * (1.0 + rng.unit()), factor * common * (1.0 + rng.unit())]
        };
        (0..n).map(draw).collect()
    }

    #[test]
    fn a_ratio_is_that_of_the_percentiles() {
        let pairs: Vec<[f64; 2]> = (1..=1000).map(|i| [f64::from(i), 2.0 * f64::from(i)]).collect();
        let TailRatio { ratio, ci95 } = super::ratio(&[pairs]);
        // Every flow takes twice as long, so every resample has the ratio 2.
        assert!((ratio.unwrap() - 2.0).abs() < 1e-12);
        assert!(ci95.is_some_and(|(low, high)| (low - 2.0).abs() < 1e-9 && (high - 2.0).abs() < 1e-9));
        assert_eq!(super::ratio(&[]), TailRatio::default());
        assert_eq!(super::ratio(&[vec![[2.0, 2.0]; 10]]), TailRatio { ratio: Some(1.0), ci95: None });
    }

    #[test]
    fn the_interval_contains_its_ratio() {
        // Where all flows of a seed have one ratio, few of the resamples round like the ratio itself. Where the tail is one flow
        // among 200, a resample often misses it.
        for number in 0..20u32 {
            let same = |k: u32| vec![[1.0 + f64::from(k) / 7.0, (1.0 + f64::from(k) / 7.0) * 1.1]; 200];
            let lone = |k: u32| (0..200).map(|i| [1.0, if i < 3 { 50.0 + f64::from(k) } else { 1.0 }]).collect();
            for seeds in
                [vec![same(number); 3], vec![same(number), same(number + 1), same(number + 2)], vec![lone(number), lone(0)]]
            {
                let TailRatio { ratio, ci95 } = super::ratio(&seeds);
                let (ratio, (low, high)) = (ratio.unwrap(), ci95.unwrap());
                assert!(low <= ratio && ratio <= high, "{low:e} {ratio:e} {high:e}");
            }
        }
    }

    #[test]
    fn the_interval_holds_the_ratio_in_most_samples() {
        let holds = |number: u64| {
            let (low, high) = super::ratio(&[seed(2 * number, 400, 1.5), seed(2 * number + 1, 400, 1.5)]).ci95.unwrap();
            assert!(low < high);
            usize::from((low..=high).contains(&1.5))
        };
        let held: usize = (0..40).map(holds).sum();
        // 38 are expected. Bootstrap intervals of percentiles are known to be slightly too narrow.
        assert!((33..=40).contains(&held), "{held} of 40");
        let again = super::ratio(&[seed(1, 400, 1.5)]);
        assert_eq!(again, super::ratio(&[seed(1, 400, 1.5)]));
    }
}
