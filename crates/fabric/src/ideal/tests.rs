//! Tests of every ideal schedule on one link and in networks, and helpers for the tests of entries.

pub mod slots;

use super::*;
use crate::schedule::flow::{FluidFlow, FluidJoin, FluidWait};
use crate::schedule::link::Segment;
use base::{Rate, Rng, Time};
use num_rational::BigRational;

pub type Exact = BigRational;

/// A byte per nanosecond.
pub const GIGABYTE: Rate = Rate(8_000_000_000);

/// Returns the ideal schedule with this name.
pub fn ideal(name: &str) -> AnyIdeal {
    AnyParams::defaults(name).expect("an entry of the room").build(&())
}

fn names() -> impl Iterator<Item = &'static str> {
    ROOM.names()
}

pub fn q(num: i64, den: i64) -> Exact {
    Exact::new(num.into(), den.into())
}

pub fn job(arrival: i64, size: i64) -> Job<Exact> {
    Job { arrival: q(arrival, 1), size: q(size, 1), deadline: None }
}

/// Flows A, B, C of Table 1 in MERP's paper.
pub fn table_1() -> Vec<Job<Exact>> {
    vec![job(0, 3), job(3, 3), job(0, 4)]
}

/// Checks a schedule of Table 1. Segments are given as (flow, start, end).
pub fn check_table_1(name: &str, segments: &[(usize, i64, i64)], fct: [Exact; 3], mean: Exact, ratios: [Exact; 3]) {
    let jobs = table_1();
    let found = ideal(name).schedule(&q(1, 1), &jobs).unwrap();
    let expected = |&(flow, start, end): &(usize, i64, i64)| Segment { flow, start: q(start, 1), end: q(end, 1), rate: q(1, 1) };
    if name != "ps" {
        assert_eq!(found.segments, segments.iter().map(expected).collect::<Vec<_>>());
    }
    let found: Vec<Exact> = found.finish.iter().zip(&jobs).map(|(end, job)| end - &job.arrival).collect();
    assert_eq!(found, fct);
    assert_eq!(found.iter().sum::<Exact>() / q(3, 1), mean);
    assert_eq!(found.iter().zip(&jobs).map(|(fct, job)| fct / &job.size).collect::<Vec<_>>(), ratios);
}

pub fn flow(arrival_ns: u64, wire_bytes: u64, path: &[usize]) -> FluidFlow {
    FluidFlow { arrival: Time(arrival_ns * 1000), wire_bytes, path: path.to_vec(), deadline: None, wait: None }
}

pub fn in_seconds(name: &str, capacity: &[Rate], flows: &[FluidFlow]) -> Vec<f64> {
    ideal(name).serve_network(Network { capacity, flows, joins: &[] }, &mut |_, _| true).unwrap()
}

pub fn finish_ns(name: &str, capacity: &[Rate], flows: &[FluidFlow]) -> Vec<f64> {
    in_seconds(name, capacity, flows).iter().map(|t| (t * 1e12).round() / 1e3).collect()
}

#[test]
fn empty_flows_idle_times_and_nonsense() {
    for name in names() {
        let jobs = [job(5, 0), job(7, 2), job(-1, 1), job(7, 0)];
        assert_eq!(ideal(name).finish_times(&q(1, 1), &jobs).unwrap(), [q(5, 1), q(9, 1), q(0, 1), q(7, 1)]);
        assert_eq!(ideal(name).finish_times::<Exact>(&q(1, 1), &[]).unwrap(), []);
        let wrong = |arrival, size| ideal(name).finish_times(&1.0, &[Job { arrival, size, deadline: None }]).unwrap_err();
        assert!(wrong(f64::NAN, 1.0).contains("arrival of flow 0"));
        assert!(wrong(0.0, f64::INFINITY).contains("size of flow 0"));
        assert!(wrong(0.0, -1.0).contains("size of flow 0"));
        assert!(ideal(name).finish_times::<f64>(&0.0, &[]).unwrap_err().contains("capacity"));
    }
}

fn random_jobs(rng: &mut Rng, n: u64) -> Vec<Job<Exact>> {
    let mut draw = |below: u64| rng.below(below) as i64;
    (0..n).map(|_| Job { deadline: Some(q(draw(60), 1)), ..job(draw(30), 1 + draw(9)) }).collect()
}

/// No ideal schedule is idle while flows wait, exceeds the capacity, or serves a flow too early or
/// too much; all of them end the last flow at the same time.
#[test]
fn every_ideal_conserves_work() {
    let mut rng = Rng::stream(1, "fluid/work", &[]);
    let capacity = q(3, 2);
    for _ in 0..200 {
        let jobs = random_jobs(&mut rng, 8);
        let mut ends = Vec::new();
        for name in names() {
            let found = ideal(name).schedule(&capacity, &jobs).unwrap();
            for (i, job) in jobs.iter().enumerate() {
                let own: Vec<_> = found.segments.iter().filter(|s| s.flow == i).collect();
                assert_eq!(own.iter().map(|s| (&s.end - &s.start) * &s.rate).sum::<Exact>(), job.size);
                assert!(own.iter().all(|s| s.start >= job.arrival && s.end <= found.finish[i]));
            }
            let mut edges: Vec<&Exact> = found.segments.iter().flat_map(|s| [&s.start, &s.end]).collect();
            edges.sort();
            edges.dedup();
            for pair in edges.windows(2) {
                let running = found.segments.iter().filter(|s| s.start <= *pair[0] && *pair[1] <= s.end);
                let rate: Exact = running.map(|s| s.rate.clone()).sum();
                let waiting = jobs.iter().zip(&found.finish).any(|(job, end)| job.arrival <= *pair[0] && pair[1] <= end);
                assert_eq!(rate, if waiting { capacity.clone() } else { q(0, 1) });
            }
            ends.push(found.finish.iter().max().cloned());
        }
        ends.dedup();
        assert_eq!(ends.len(), 1);
    }
}

/// SRPT has the smallest mean, EDF the smallest maximum lateness.
#[test]
fn optimal_policies_are_optimal() {
    let mut rng = Rng::stream(1, "fluid/optimal", &[]);
    for _ in 0..300 {
        let jobs = random_jobs(&mut rng, 7);
        let run = |name| ideal(name).finish_times(&q(1, 1), &jobs).unwrap();
        let total = |name| run(name).iter().sum::<Exact>();
        let late = |end: &Exact, job: &Job<Exact>| job.deadline.as_ref().map(|d| end - d);
        let lateness = |name| run(name).iter().zip(&jobs).filter_map(|(end, job)| late(end, job)).max();
        for other in names() {
            assert!(total("srpt") <= total(other), "{other} {jobs:?}");
            assert!(lateness("edf") <= lateness(other), "{other} {jobs:?}");
        }
    }
}

#[test]
fn one_link_is_the_one_link_schedule() {
    let mut rng = Rng::stream(1, "fluid/one", &[]);
    for _ in 0..200 {
        let draw = |rng: &mut Rng| {
            let deadline = (rng.below(3) > 0).then(|| Time(1000 * rng.below(90_000)));
            FluidFlow { deadline, ..flow(rng.below(30_000), 1 + rng.below(5000), &[0]) }
        };
        let flows: Vec<FluidFlow> = (0..1 + rng.below(12)).map(|_| draw(&mut rng)).collect();
        let job = |f: &FluidFlow| Job {
            arrival: f.arrival.as_secs_f64(),
            size: f.wire_bytes as f64,
            deadline: f.deadline.map(Time::as_secs_f64),
        };
        let jobs: Vec<_> = flows.iter().map(job).collect();
        for name in names() {
            let network = in_seconds(name, &[GIGABYTE], &flows);
            let alone = ideal(name).finish_times(&1e9, &jobs).unwrap();
            for (a, b) in network.iter().zip(&alone) {
                assert!((a - b).abs() < 2e-9, "{name} {network:?} {alone:?} {flows:?}");
            }
        }
    }
}

const NO_WAIT: FluidWait = FluidWait { on: Vec::new(), joins: Vec::new(), not_before: 0.0, give_up_after: None, allowed: None };

#[test]
fn flows_may_wait_for_joins() {
    // The first flow ends at 100, and its host knows it 40 ns later. The second ends at 300, and its host knows it at once.
    // With 5 ns after the first and 10 ns after the second, the first join happens at 310.
    let first = FluidJoin { on: vec![(0, [5e-9, 40e-9]), (1, [10e-9, 0.0])], joins: vec![] };
    // The second join waits 20 ns more, until 330, and for the end of the fourth flow at 320, which its host knows at 420.
    let second = FluidJoin { on: vec![(3, [1e-9, 100e-9])], joins: vec![(0, 20e-9)] };
    let wait = |joins: &[(usize, f64)]| Some(FluidWait { joins: joins.to_vec(), ..NO_WAIT });
    let flows = [
        flow(0, 100, &[0]),
        flow(100, 200, &[0]),
        // Waits 30 ns for the first join, until 340.
        FluidFlow { wait: wait(&[(0, 30e-9)]), ..flow(0, 10, &[0]) },
        flow(0, 320, &[1]),
        // Waits 80 ns for the second join: 410 after the ends, but its host learns of the last end at 420.
        FluidFlow { wait: wait(&[(1, 80e-9)]), ..flow(0, 10, &[0]) },
        // Waits 95 ns for the second join, until 425.
        FluidFlow { wait: wait(&[(1, 95e-9), (0, 0.0)]), ..flow(0, 10, &[1]) },
    ];
    for name in names() {
        let finish = ideal(name).serve_network(
            Network { capacity: &[GIGABYTE; 2], flows: &flows, joins: &[first.clone(), second.clone()] },
            &mut |_, _| true,
        );
        let finish: Vec<f64> = finish.unwrap().into_iter().map(|end| (end * 1e9).round()).collect();
        assert_eq!(finish, [100.0, 300.0, 350.0, 320.0, 430.0, 435.0], "{name}");
    }
}

#[test]
fn flows_may_wait_for_the_ends_of_others() {
    let wait = |on: &[(usize, f64)]| Some(FluidWait { on: on.to_vec(), allowed: Some(1e-6), ..NO_WAIT });
    // The third flow arrives 50 ns after the end of the first at 100 and of the second at 300; a
    // flow of the other link ends at 400.
    let flows = [
        flow(0, 100, &[0]),
        flow(100, 200, &[0]),
        FluidFlow { wait: wait(&[(0, 1e-9), (1, 50e-9)]), ..flow(0, 100, &[0]) },
        flow(0, 400, &[1]),
        FluidFlow { wait: wait(&[(2, 0.0)]), ..flow(0, 10, &[1]) },
    ];
    for name in names() {
        assert_eq!(finish_ns(name, &[GIGABYTE; 2], &flows), [100.0, 300.0, 450.0, 400.0, 460.0], "{name}");
    }
}

#[test]
fn a_flow_may_give_up_on_others() {
    // The third flow arrives 20 ns after the end of the first at 100, because the second, which
    // ends at 600, is 90 ns old by then.
    let wait = FluidWait { on: vec![(0, 20e-9), (1, 0.0)], give_up_after: Some(vec![1e-6, 90e-9]), ..NO_WAIT };
    let flows = [flow(0, 100, &[0]), flow(10, 590, &[1]), FluidFlow { wait: Some(wait), ..flow(0, 100, &[0]) }];
    for name in names() {
        assert_eq!(finish_ns(name, &[GIGABYTE; 2], &flows), [100.0, 600.0, 220.0], "{name}");
    }
}

#[test]
fn degenerate_input() {
    for name in names() {
        let flows = [flow(7, 10, &[]), flow(0, 10, &[1]), flow(0, 10, &[0])];
        let finish = in_seconds(name, &[GIGABYTE, Rate(0)], &flows);
        assert_eq!(finish[1], f64::INFINITY);
        assert!((finish[0] - 7e-9).abs() < 1e-18 && (finish[2] - 10e-9).abs() < 1e-18);
        assert!(in_seconds(name, &[], &[]).is_empty());
    }
}

#[test]
fn a_stopped_schedule_returns_no_times() {
    let flows: Vec<FluidFlow> = (0..2000).map(|i| flow(10 * i, 10, &[0])).collect();
    for name in names() {
        let mut asked = Vec::new();
        let stopped = ideal(name).serve_network(Network { capacity: &[GIGABYTE], flows: &flows, joins: &[] }, &mut |now, ended| {
            asked.push((now, ended));
            asked.len() < 2
        });
        assert_eq!((stopped, asked.len()), (None, 2), "{name}");
        assert!(asked[0].0 < asked[1].0 && asked[0].1 < asked[1].1, "{asked:?}");
    }
}
