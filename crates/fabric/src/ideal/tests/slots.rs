//! Flows with and without deadlines against models that serve a link slot by slot.

use super::{Exact, ideal, q};
use crate::schedule::link::{Job, Schedule, Segment};
use base::Rng;
use num_traits::ToPrimitive as _;

fn job(size: u64, arrival: u64, deadline: Option<u64>) -> Job<u64> {
    Job { arrival, size, deadline }
}

fn random_jobs(rng: &mut Rng) -> Vec<Job<u64>> {
    let mut draw = |_| {
        let (size, arrival) = (1 + rng.below(5), rng.below(9));
        job(size, arrival, (rng.below(2) == 0).then(|| arrival + size + rng.below(8)))
    };
    (0..5).map(&mut draw).collect()
}

/// An ideal schedule of jobs in whole slots. It switches flows only between slots.
fn in_slots(name: &str, jobs: &[Job<u64>]) -> Schedule<u64> {
    let number = |x: u64| q(x as i64, 1);
    let exact = |job: &Job<u64>| Job { arrival: number(job.arrival), size: number(job.size), deadline: job.deadline.map(number) };
    let found = ideal(name).schedule(&q(1, 1), &jobs.iter().map(exact).collect::<Vec<_>>()).unwrap();
    let whole = |x: &Exact| {
        assert!(x.is_integer(), "{name} {jobs:?}");
        x.to_u64().unwrap()
    };
    let segment = |s: &Segment<Exact>| Segment { flow: s.flow, start: whole(&s.start), end: whole(&s.end), rate: 1 };
    Schedule { finish: found.finish.iter().map(whole).collect(), segments: found.segments.iter().map(segment).collect() }
}

/// Serves slot by slot the flow that `pick` chooses from the time, what is left of each flow, and the flows present.
fn by_slots(jobs: &[Job<u64>], pick: impl Fn(u64, &[u64], &[usize]) -> usize) -> Schedule<u64> {
    let mut left: Vec<u64> = jobs.iter().map(|job| job.size).collect();
    let mut finish: Vec<u64> = jobs.iter().map(|job| job.arrival).collect();
    let mut segments: Vec<Segment<u64>> = Vec::new();
    for now in 0.. {
        if left.iter().all(|left| *left == 0) {
            break;
        }
        let present: Vec<usize> = (0..jobs.len()).filter(|&flow| jobs[flow].arrival <= now && left[flow] > 0).collect();
        if present.is_empty() {
            continue;
        }
        let flow = pick(now, &left, &present);
        left[flow] -= 1;
        finish[flow] = now + 1;
        match segments.last_mut() {
            Some(last) if (last.flow, last.end) == (flow, now) => last.end = now + 1,
            _ => segments.push(Segment { flow, start: now, end: now + 1, rate: 1 }),
        }
    }
    Schedule { finish, segments }
}

#[test]
fn edf_then_the_shortest_flow() {
    let mut rng = Rng::stream(1, "fluid/mixed", &[]);
    for _ in 0..400 {
        let jobs = random_jobs(&mut rng);
        let key = |flow: usize| {
            let Job { arrival, size, deadline } = jobs[flow];
            (deadline.is_none(), deadline.unwrap_or(size), arrival, flow)
        };
        let expected = by_slots(&jobs, |_, _, present| *present.iter().min_by_key(|&&flow| key(flow)).unwrap());
        assert_eq!(in_slots("edf_sjf", &jobs), expected, "{jobs:?}");
    }
}

#[test]
fn slack_for_flows_without_a_deadline() {
    let mut rng = Rng::stream(1, "fluid/mixed", &[]);
    let mut used = 0;
    for _ in 0..400 {
        let jobs = random_jobs(&mut rng);
        let expected = by_slots(&jobs, |now, left, present| {
            let mut urgent: Vec<usize> = present.iter().copied().filter(|&flow| jobs[flow].deadline.is_some()).collect();
            urgent.sort_by_key(|&flow| (jobs[flow].deadline, jobs[flow].arrival, flow));
            let shortest = present.iter().copied().filter(|&flow| jobs[flow].deadline.is_none());
            let shortest = shortest.min_by_key(|&flow| (left[flow], jobs[flow].arrival, flow));
            let (Some(&first), Some(shortest)) = (urgent.first(), shortest) else {
                return urgent.first().copied().or(shortest).unwrap();
            };
            let mut end = now + 1;
            let can_wait = urgent.iter().all(|&flow| {
                end += left[flow];
                end <= jobs[flow].deadline.unwrap()
            });
            if can_wait && left[shortest] <= left[first] { shortest } else { first }
        });
        assert_eq!(in_slots("stam", &jobs), expected, "{jobs:?}");
        used += u32::from(expected != in_slots("edf_sjf", &jobs));
    }
    assert!(used > 20, "{used}");
}
