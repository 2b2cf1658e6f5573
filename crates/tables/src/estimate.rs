//! Means over seeds, with their confidence intervals.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The mean of a few values, with its confidence interval if there are at least two values. The mean
/// is at least the smallest value and at most the largest, and the interval contains the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Number of values.
    pub n: u32,
    /// The mean; `None` without values.
    pub mean: Option<f64>,
    /// Ends of the 95 % confidence interval of the mean.
    pub ci95: Option<(f64, f64)>,
}

impl Estimate {
    /// Estimates the mean of independent values, such as one value per seed.
    pub fn of(values: &[f64]) -> Estimate {
        let n = values.len() as f64;
        if values.is_empty() {
            return Estimate::default();
        }
        // The sum is rounded: the mean of equal values would differ from them.
        let mean = within(values.iter().sum::<f64>() / n, values);
        let ci95 = (values.len() > 1).then(|| {
            let variance = values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
            let half = student_t_975(values.len() as u32 - 1) * (variance / n).sqrt();
            (mean - half, mean + half)
        });
        Estimate { n: values.len() as u32, mean: Some(mean), ci95 }
    }
    /// Estimates the geometric mean of independent positive ratios. The interval is that of the
    /// logarithms, so it has no negative ratios.
    pub fn of_ratios(values: &[f64]) -> Estimate {
        if values.iter().all(|x| *x == values[0]) {
            return Estimate::of(values);
        }
        let logs: Vec<f64> = values.iter().map(|x| base::math::ln(*x)).collect();
        let Estimate { n, mean, ci95 } = Estimate::of(&logs);
        let mean = mean.map(|mean| within(base::math::exp(mean), values));
        let ends = |(low, high)| mean.map(|mean| around(mean, base::math::exp(low), base::math::exp(high)));
        Estimate { n, mean, ci95: ci95.and_then(ends) }
    }
}

/// Returns a mean of values, which rounding may have moved below the smallest or above the largest.
pub(crate) fn within(mean: f64, values: &[f64]) -> f64 {
    let ends = (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    mean.max(ends.0).min(ends.1)
}

/// Returns an interval that contains its estimate, which rounding or chance may have put outside.
pub(crate) fn around(estimate: f64, low: f64, high: f64) -> (f64, f64) {
    (low.min(estimate), high.max(estimate))
}

/// Returns the two-sided p-value of the hypothesis that the geometric mean of independent positive ratios is 1, by Student's t
/// of their logarithms; `None` with fewer than two values. It is below 0.05 if the interval of [`Estimate::of_ratios`] does not
/// hold 1.
pub fn p_of_ratios(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|x| base::math::ln(*x)).collect();
    let (mean, (low, _)) = Estimate::of(&logs).mean.zip(Estimate::of(&logs).ci95)?;
    let degrees_of_freedom = logs.len() as u32 - 1;
    let error = (mean - low) / student_t_975(degrees_of_freedom);
    if mean == 0.0 || error <= 0.0 {
        return Some(if mean == 0.0 { 1.0 } else { 0.0 });
    }
    Some((2.0 * student_t(degrees_of_freedom).sf((mean / error).abs())).min(1.0))
}

/// The largest number that [`more_seeds`] returns: as many or more.
pub const MOST_SEEDS: u32 = 1000;

/// Returns how many more values would separate the geometric mean of independent positive ratios from 1, if mean and spread of
/// their logarithms, m and s, stay as they are: the smallest N above their number n for which t(0.975, N - 1) s / sqrt(N) < |m|,
/// less n; at most [`MOST_SEEDS`]. `None` with fewer than two values, and if their interval does not hold 1.
pub fn more_seeds(values: &[f64]) -> Option<u32> {
    let logs: Vec<f64> = values.iter().map(|x| base::math::ln(*x)).collect();
    let (mean, (low, high)) = Estimate::of(&logs).mean.zip(Estimate::of(&logs).ci95)?;
    if low > 0.0 || high < 0.0 {
        return None;
    }
    let n = logs.len() as u32;
    let spread = (mean - low) / student_t_975(n - 1) * f64::from(n).sqrt();
    let separates = |more: &u32| student_t_975(n + more - 1) * spread / f64::from(n + more).sqrt() < mean.abs();
    Some((1..MOST_SEEDS).find(separates).unwrap_or(MOST_SEEDS))
}

fn student_t(degrees_of_freedom: u32) -> StudentsT {
    StudentsT::new(0.0, 1.0, f64::from(degrees_of_freedom)).expect("at least one degree of freedom")
}

/// Returns the 97.5 % quantile of Student's t distribution: half the width of a two-sided 95 %
/// interval, in standard errors.
pub fn student_t_975(degrees_of_freedom: u32) -> f64 {
    student_t(degrees_of_freedom).inverse_cdf(0.975)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t_quantiles_are_those_of_the_printed_tables() {
        // Two-sided 95 %, as printed in every statistics book.
        let table =
            [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (5, 2.571), (9, 2.262), (19, 2.093), (29, 2.045), (100, 1.984)];
        for (df, t) in table {
            assert!((student_t_975(df) - t).abs() < 6e-4, "{df}: {}", student_t_975(df));
        }
    }

    #[test]
    fn interval_of_a_small_sample() {
        // Mean 10, standard deviation 2, standard error 2 / sqrt(5), t = 2.776445.
        let e = Estimate::of(&[8.0, 9.0, 10.0, 10.0, 13.0]);
        let half = 2.776445 * (3.5f64 / 5.0).sqrt();
        let (low, high) = e.ci95.unwrap();
        assert!((low - (10.0 - half)).abs() < 1e-5 && (high - (10.0 + half)).abs() < 1e-5, "{low} {high}");
        assert_eq!((e.n, e.mean), (5, Some(10.0)));
        assert_eq!(Estimate::of(&[3.0]), Estimate { n: 1, mean: Some(3.0), ci95: None });
        assert_eq!(Estimate::of(&[]), Estimate::default());
        assert_eq!(Estimate::of(&[0.1, 0.1, 0.1]).ci95, Some((0.1, 0.1)));
    }

    #[test]
    fn every_interval_contains_its_mean() {
        // Equal values whose sum is rounded, values that differ in the last bits, and values of any size.
        let mut rng = base::Rng::stream(1, "test/estimate", &[]);
        let mut cases: Vec<Vec<f64>> = Vec::new();
        for n in 1..=40 {
            let base = base::math::exp(40.0 * rng.unit() - 20.0);
            cases.push(vec![base; n]);
            cases.push((0..n).map(|i| f64::from_bits(base.to_bits() + i as u64 % 3)).collect());
            cases.push((0..n).map(|_| base * (1.0 + 1e-15 * rng.unit())).collect());
            cases.push((0..n).map(|_| base * rng.unit() + f64::MIN_POSITIVE).collect());
            cases.push((0..n).map(|_| 1e300 * (1.0 + rng.unit())).collect());
        }
        cases.push(vec![0.1, 0.1, 0.1]);
        for values in cases {
            let range = within(f64::NEG_INFINITY, &values)..=within(f64::INFINITY, &values);
            for (what, e) in [("mean", Estimate::of(&values)), ("ratio", Estimate::of_ratios(&values))] {
                let mean = e.mean.unwrap();
                assert!(range.contains(&mean), "{what} {mean:e} of {values:?}");
                assert_eq!(e.ci95.is_some(), values.len() > 1);
                let Some((low, high)) = e.ci95 else { continue };
                assert!(low <= mean && mean <= high, "{what} {low:e} {mean:e} {high:e} of {values:?}");
                if values.iter().all(|x| *x == values[0]) {
                    assert_eq!((low, mean, high), (values[0], values[0], values[0]), "{what}");
                }
            }
        }
    }

    #[test]
    fn ratios_have_the_intervals_of_their_logarithms() {
        // Half and double cancel out, and the interval is symmetric as a factor. The standard error
        // of the logarithms is ln 2.
        let e = Estimate::of_ratios(&[0.5, 2.0]);
        let (low, high) = e.ci95.unwrap();
        assert!((e.mean.unwrap() - 1.0).abs() < 1e-12 && (low * high - 1.0).abs() < 1e-9);
        assert!((high - base::math::pow(2.0, 12.7062047)).abs() < 1e-2, "{high}");
        assert_eq!((Estimate::of_ratios(&[]), Estimate::of_ratios(&[3.0, 3.0]).ci95), (Estimate::default(), Some((3.0, 3.0))));
    }

    #[test]
    fn more_seeds_are_those_that_narrow_the_interval_enough() {
        // Logarithms 0.0, 0.1, 0.2: mean 0.1, standard deviation 0.1. Half intervals with the printed quantiles: 2.571 * 0.1 / sqrt(6)
        // is 0.105, and 2.447 * 0.1 / sqrt(7) is 0.092, so seven seeds are needed, four more.
        assert_eq!(more_seeds(&[0.0, 0.1, 0.2].map(base::math::exp)), Some(4));
        assert_eq!(more_seeds(&[0.0, -0.1, -0.2].map(base::math::exp)), Some(4), "the systems swapped");
        assert_eq!(more_seeds(&[1.1, 1.1001, 1.1002]), None, "separate already");
        assert_eq!((more_seeds(&[1.2]), more_seeds(&[])), (None, None));
        assert_eq!((more_seeds(&[0.5, 2.0]), more_seeds(&[1.0, 1.0])), (Some(MOST_SEEDS), Some(MOST_SEEDS)));
    }

    #[test]
    fn p_values_agree_with_the_intervals() {
        // Logarithms 0.1, 0.2, 0.3: t = 0.2 / (0.1 / sqrt(3)) = 3.4641 with 2 degrees of freedom. There, the two-sided p-value is
        // 1 - t / sqrt(t^2 + 2) = 1 - sqrt(12 / 14).
        let ratios = [0.1, 0.2, 0.3].map(base::math::exp);
        let p = p_of_ratios(&ratios).unwrap();
        assert!((p - (1.0 - (12.0f64 / 14.0).sqrt())).abs() < 1e-9, "{p}");
        assert_eq!((p_of_ratios(&[2.0]), p_of_ratios(&[])), (None, None));
        assert_eq!((p_of_ratios(&[1.0, 1.0]), p_of_ratios(&[2.0, 2.0])), (Some(1.0), Some(0.0)));
        for high in [1.05, 1.1, 1.3, 2.0, 4.0] {
            let ratios = [1.02, 1.03, high];
            let (low, _) = Estimate::of_ratios(&ratios).ci95.unwrap();
            assert_eq!(p_of_ratios(&ratios).unwrap() < 0.05, low > 1.0, "{high}");
        }
    }
}
