//! Closed forms for one server with Poisson arrivals, against which schedules, queues and the simulator
//! are tested.
//!
//! `service` is a mean service time, `lambda` the arrival rate in the same unit of time, and
//! `rho = lambda * service` the load, which must be below one.
//!
//! Source: Kleinrock, Queueing Systems, vol. 1, chapter 5, and vol. 2, chapter 4; Schrage and Miller, Operations Research 14(4) 1966.

/// Returns the mean waiting time in M/G/1 first come first served, from the mean square of the service
/// time (Pollaczek and Khinchine).
pub fn fcfs_mean_wait(lambda: f64, service: f64, service_squared: f64) -> f64 {
    lambda * service_squared / (2.0 * (1.0 - lambda * service))
}

/// Returns the mean waiting time in M/D/1: all packets take `service`.
pub fn md1_mean_wait(rho: f64, service: f64) -> f64 {
    fcfs_mean_wait(rho / service, service, service * service)
}

/// Returns the mean response time (waiting and service) in M/M/1 first come first served.
pub fn mm1_mean_response(rho: f64, service: f64) -> f64 {
    service / (1.0 - rho)
}

/// Returns the mean response time in M/G/1 processor sharing: only the mean of the service time matters.
pub fn ps_mean_response(rho: f64, service: f64) -> f64 {
    service / (1.0 - rho)
}

/// Returns the mean response time in M/G/1 shortest remaining processing time first, for service times
/// from 0 to `longest` with the given density, by Simpson's rule over `steps` intervals. Schrage and
/// Miller:
///
/// `T(x) = lambda (m2(x) + x^2 (1 - F(x))) / (2 (1 - rho(x))^2) + integral from 0 to x of dt / (1 - rho(t))`,
///
/// where m2(x) and rho(x) are the contributions of services up to x to the mean square and to the load.
pub fn srpt_mean_response(lambda: f64, density: impl Fn(f64) -> f64, longest: f64, steps: usize) -> f64 {
    let h = longest / steps as f64;
    // Running integrals up to x of: density, its first and second moments, and the time in service.
    let (mut mass, mut first, mut second, mut residence, mut mean) = (0.0, 0.0, 0.0, 0.0, 0.0);
    let simpson = |from: f64, g: &dyn Fn(f64) -> f64| h / 6.0 * (g(from) + 4.0 * g(from + h / 2.0) + g(from + h));
    let response = |x: f64, mass: f64, first: f64, second: f64, residence: f64| {
        let idle = 1.0 - lambda * first;
        lambda * (second + x * x * (1.0 - mass)) / (2.0 * idle * idle) + residence
    };
    let mut before = response(0.0, 0.0, 0.0, 0.0, 0.0) * density(0.0);
    for i in 0..steps {
        let from = i as f64 * h;
        let idle = 1.0 - lambda * first;
        mass += simpson(from, &density);
        first += simpson(from, &|x| x * density(x));
        second += simpson(from, &|x| x * x * density(x));
        residence += h / 2.0 * (1.0 / idle + 1.0 / (1.0 - lambda * first));
        let after = response(from + h, mass, first, second, residence) * density(from + h);
        mean += h / 2.0 * (before + after);
        before = after;
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Rng, math};
    use fabric::ideal::AnyParams;
    use fabric::schedule::link::Job;

    /// Returns the mean response times of 40 runs of Poisson arrivals at load `rho` with unit mean service,
    /// without the first flows of each run.
    fn simulate(name: &str, rho: f64, stream: &str, service: impl Fn(&mut Rng) -> f64) -> Vec<f64> {
        let ideal = AnyParams::defaults(name).unwrap().build(&());
        let run = |run: u64| {
            let mut arrivals = Rng::stream(run, "fluid/arrivals", &[]);
            let mut sizes = Rng::stream(run, stream, &[]);
            let mut now = 0.0;
            let jobs: Vec<Job<f64>> = (0..22_000)
                .map(|_| {
                    now += arrivals.exponential(1.0 / rho);
                    Job { arrival: now, size: service(&mut sizes), deadline: None }
                })
                .collect();
            let finish = ideal.finish_times(&1.0, &jobs).unwrap();
            finish.iter().zip(&jobs).skip(2000).map(|(end, job)| end - job.arrival).sum::<f64>() / 20_000.0
        };
        (0..40).map(run).collect()
    }

    /// Asserts that the closed form lies in the 99.9 % confidence interval of 40 runs, and that the
    /// interval is narrow enough for a test.
    fn agrees(means: &[f64], expected: f64) {
        let n = means.len() as f64;
        let mean = means.iter().sum::<f64>() / n;
        let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (n - 1.0);
        // Student's t with 39 degrees of freedom, two-sided 99.9 %.
        let half = 3.558 * math::sqrt(variance / n);
        assert!((mean - expected).abs() < half, "{mean} +- {half}, expected {expected}");
        assert!(half < 0.05 * expected, "{mean} +- {half} is too wide an interval");
    }

    #[test]
    fn constant_services_wait_as_md1() {
        let means = simulate("fcfs", 0.8, "fluid/constant", |_| 1.0);
        agrees(&means, md1_mean_wait(0.8, 1.0) + 1.0);
        assert_eq!(md1_mean_wait(0.5, 12.0), 6.0);
    }

    #[test]
    fn exponential_services_respond_as_mm1() {
        let means = simulate("fcfs", 0.7, "fluid/exponential", |rng| rng.exponential(1.0));
        agrees(&means, mm1_mean_response(0.7, 1.0));
        let by_moments = fcfs_mean_wait(0.7, 1.0, 2.0) + 1.0;
        assert!((by_moments - mm1_mean_response(0.7, 1.0)).abs() < 1e-12);
    }

    #[test]
    fn processor_sharing_sees_only_the_mean() {
        let exponential = simulate("ps", 0.7, "fluid/exponential", |rng| rng.exponential(1.0));
        agrees(&exponential, ps_mean_response(0.7, 1.0));
        let pareto = simulate("ps", 0.7, "fluid/pareto", |rng| rng.pareto(2.5, 0.6));
        agrees(&pareto, ps_mean_response(0.7, 1.0));
    }

    #[test]
    fn shortest_remaining_first_responds_as_schrage_and_miller() {
        let exponential = |x: f64| math::exp(-x);
        for rho in [0.5, 0.8] {
            let means = simulate("srpt", rho, "fluid/exponential", |rng| rng.exponential(1.0));
            agrees(&means, srpt_mean_response(rho, exponential, 50.0, 20_000));
        }
        // Uniform services in (0, 2).
        let means = simulate("srpt", 0.8, "fluid/uniform", |rng| 2.0 * rng.unit());
        agrees(&means, srpt_mean_response(0.8, |_| 0.5, 2.0, 20_000));
    }

    #[test]
    fn the_integral_has_converged() {
        let at = |steps| srpt_mean_response(0.8, |x| math::exp(-x), 50.0, steps);
        assert!((at(20_000) - at(80_000)).abs() < 1e-4, "{} {}", at(20_000), at(80_000));
        // Without load the response time is the service time.
        assert!((srpt_mean_response(0.0, |x| math::exp(-x), 50.0, 20_000) - 1.0).abs() < 1e-5);
    }
}
