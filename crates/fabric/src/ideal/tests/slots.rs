//! Models that serve the flows of a link slot by slot, for tests of ideals that know deadlines.

use super::{Exact, ideal, q};
use crate::schedule::link::{Job, Schedule, Segment};
use base::Rng;
use num_traits::ToPrimitive as _;

fn job(size: u64, arrival: u64, deadline: Option<u64>) -> Job<u64> {
    Job { arrival, size, deadline }
}

/// Five flows, half of them with a deadline that some schedule can meet.
pub fn random_jobs(rng: &mut Rng) -> Vec<Job<u64>> {
    let mut draw = |_| {
        let (size, arrival) = (1 + rng.below(5), rng.below(9));
        job(size, arrival, (rng.below(2) == 0).then(|| arrival + size + rng.below(8)))
    };
    (0..5).map(&mut draw).collect()
}

/// An ideal schedule of jobs in whole slots. It switches flows only between slots.
pub fn in_slots(name: &str, jobs: &[Job<u64>]) -> Schedule<u64> {
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
pub fn by_slots(jobs: &[Job<u64>], pick: impl Fn(u64, &[u64], &[usize]) -> usize) -> Schedule<u64> {
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
