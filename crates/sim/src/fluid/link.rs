//! One link: finish times, and the flow served at each time.
//!
//! Source: Zhang et al., IEEE TPDS 28(11) 2017, sections 2 and 4.3 (Table 1, Fig. 1, Alg. 2); STAM (Zang, Lan, Hu, Acta Electronica Sinica
//! 47(10), 2019), section 2 (Table 1, Fig. 2).
//!
//! Generic over the kind of number: `f64` for many flows, `num_rational::BigRational` for exact results. Times, sizes and the capacity
//! are in any consistent units. On one link the big switch is SRPT. All orders preempt.
//!
//! Assumed: ties are served in the order of arrival, then of the list. In Alg. 2 the flow with the largest (size, arrival, rest, index)
//! among ties is placed last. STAM's paper gives its ideal schedule by example only. The slack is the time that all flows with deadlines that are
//! present can wait and still end in time by EDF. A flow without a deadline uses it if it has no more left than the flow that EDF serves;
//! without this bound the long flow of the example would take the slack that the short one needs. A flow that is late keeps its place in EDF.

use num_traits::Num;
use scenario::Ideal;
use std::cmp::Ordering;

/// A kind of number to compute with.
pub trait Number: Num + PartialOrd + Clone {}
impl<T: Num + PartialOrd + Clone> Number for T {}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Job<T> {
    /// When the flow arrives.
    pub arrival: T,
    /// The flow's size; a flow of size zero ends when it arrives.
    pub size: T,
    /// The flow's deadline, used by EDF, EDF+SJF and STAM only.
    pub deadline: Option<T>,
}

/// A period of service at a constant rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<T> {
    /// The flow, by index.
    pub flow: usize,
    /// Its start.
    pub start: T,
    /// Its end.
    pub end: T,
    /// Its rate.
    pub rate: T,
}

/// The schedule of the flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule<T> {
    /// When each flow ends.
    pub finish: Vec<T>,
    /// All periods of service, in the order of their ends. Adjacent periods of one flow have different rates.
    pub segments: Vec<Segment<T>>,
}

/// Serves `jobs` with `capacity`. The error names the first invalid number.
pub fn schedule<T: Number>(ideal: Ideal, capacity: &T, jobs: &[Job<T>]) -> Result<Schedule<T>, String> {
    let mut segments = Vec::new();
    let finish = run(ideal, capacity, jobs, Some(&mut segments))?;
    Ok(Schedule { finish, segments })
}

/// When each flow ends. Leaves out the segments, since processor sharing has very many.
pub fn finish_times<T: Number>(ideal: Ideal, capacity: &T, jobs: &[Job<T>]) -> Result<Vec<T>, String> {
    run(ideal, capacity, jobs, None)
}

fn run<T: Number>(ideal: Ideal, capacity: &T, jobs: &[Job<T>], segments: Option<&mut Vec<Segment<T>>>) -> Result<Vec<T>, String> {
    check(capacity, jobs)?;
    let mut by_arrival: Vec<usize> = (0..jobs.len()).collect();
    by_arrival.sort_by(|&a, &b| compare(&jobs[a].arrival, &jobs[b].arrival));
    let server = Server {
        ideal,
        capacity,
        jobs,
        left: jobs.iter().map(|job| job.size.clone()).collect(),
        active: Vec::new(),
        now: T::zero(),
        finish: jobs.iter().map(|job| job.arrival.clone()).collect(),
        segments,
        last_segment: vec![usize::MAX; jobs.len()],
    };
    Ok(if ideal == Ideal::Ps { server.share(&by_arrival) } else { server.serve(&by_arrival) })
}

fn check<T: Number>(capacity: &T, jobs: &[Job<T>]) -> Result<(), String> {
    if capacity.partial_cmp(&T::zero()) != Some(Ordering::Greater) {
        return Err("the capacity must be above zero".to_owned());
    }
    // A number that differs from itself is NaN; one that minus itself is not zero is infinite.
    let finite = |x: &T| x.clone() - x.clone() == T::zero();
    for (i, job) in jobs.iter().enumerate() {
        if !finite(&job.arrival) {
            return Err(format!("the arrival of flow {i} must be finite"));
        }
        if !finite(&job.size) || job.size < T::zero() {
            return Err(format!("the size of flow {i} must be finite and not below zero"));
        }
        if job.deadline.as_ref().is_some_and(|d| !finite(d)) {
            return Err(format!("the deadline of flow {i} must be finite"));
        }
    }
    Ok(())
}

/// Compares numbers that were checked to be finite.
fn compare<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

struct Server<'a, T> {
    ideal: Ideal,
    capacity: &'a T,
    jobs: &'a [Job<T>],
    left: Vec<T>,
    /// Flows in the system; the next to serve, or to end, is the last.
    active: Vec<usize>,
    now: T,
    finish: Vec<T>,
    segments: Option<&'a mut Vec<Segment<T>>>,
    /// Per flow: its latest segment.
    last_segment: Vec<usize>,
}

impl<T: Number> Server<'_, T> {
    /// Serves one flow at a time.
    fn serve(mut self, by_arrival: &[usize]) -> Vec<T> {
        let mut coming = by_arrival.iter().copied().peekable();
        loop {
            if self.active.is_empty() {
                let Some(&next) = coming.peek() else { return self.finish };
                self.now = self.jobs[next].arrival.clone();
            }
            let mut fresh = false;
            while let Some(flow) = coming.next_if(|&flow| self.jobs[flow].arrival <= self.now) {
                if !self.left[flow].is_zero() {
                    self.admit(flow);
                    fresh = true;
                }
            }
            if fresh && self.ideal == Ideal::Merp {
                self.order_by_vdg();
            }
            let Some((place, until)) = self.next() else { continue };
            let flow = self.active[place];
            let end = self.now.clone() + self.left[flow].clone() / self.capacity.clone();
            let arrival = coming.peek().map(|&next| self.jobs[next].arrival.clone());
            match arrival.into_iter().chain(until).min_by(compare).filter(|stop| *stop < end) {
                Some(stop) => {
                    let sent = (stop.clone() - self.now.clone()) * self.capacity.clone();
                    self.left[flow] = self.left[flow].clone() - sent;
                    self.record(flow, stop.clone(), self.capacity.clone());
                    self.now = stop;
                }
                None => {
                    self.record(flow, end.clone(), self.capacity.clone());
                    self.finish[flow] = end.clone();
                    self.now = end;
                    self.active.remove(place);
                }
            }
        }
    }

    /// The place in `active` of the flow to serve, and the time at which the choice must be made again, if it may change by itself.
    fn next(&self) -> Option<(usize, Option<T>)> {
        let last = self.active.len().checked_sub(1)?;
        // By STAM flows without deadlines come first in `active`, the one with the least left last among them.
        let without = self.active.partition_point(|&flow| self.jobs[flow].deadline.is_none());
        if self.ideal != Ideal::Stam || without == 0 || self.left[self.active[without - 1]] > self.left[self.active[last]] {
            return Some((last, None));
        }
        let (mut ends, mut slack) = (self.now.clone(), None);
        for &flow in self.active[without..].iter().rev() {
            ends = ends + self.left[flow].clone() / self.capacity.clone();
            let own = self.jobs[flow].deadline.clone().map(|deadline| deadline - ends.clone());
            slack = slack.into_iter().chain(own).min_by(compare);
        }
        match slack {
            None => Some((last, None)),
            Some(slack) if slack > T::zero() => Some((without - 1, Some(self.now.clone() + slack))),
            Some(_) => Some((last, None)),
        }
    }

    /// Serves all flows at equal rates. Here `left` of a flow is the service that every active flow will have had when that flow ends.
    fn share(mut self, by_arrival: &[usize]) -> Vec<T> {
        let mut coming = by_arrival.iter().copied().peekable();
        let (mut attained, mut count) = (T::zero(), T::zero());
        loop {
            if self.active.is_empty() {
                let Some(&next) = coming.peek() else { return self.finish };
                self.now = self.jobs[next].arrival.clone();
            }
            while let Some(flow) = coming.next_if(|&flow| self.jobs[flow].arrival <= self.now) {
                if !self.left[flow].is_zero() {
                    self.left[flow] = self.left[flow].clone() + attained.clone();
                    self.admit(flow);
                    count = count + T::one();
                }
            }
            let Some(&flow) = self.active.last() else { continue };
            let rate = self.capacity.clone() / count.clone();
            let end = self.now.clone() + (self.left[flow].clone() - attained.clone()) / rate.clone();
            let arrival = coming.peek().map(|&next| self.jobs[next].arrival.clone()).filter(|arrival| *arrival < end);
            let until = arrival.clone().unwrap_or(end);
            if self.segments.is_some() {
                for i in (0..self.active.len()).rev() {
                    self.record(self.active[i], until.clone(), rate.clone());
                }
            }
            if arrival.is_some() {
                attained = attained + (until.clone() - self.now.clone()) * rate;
            } else {
                attained = self.left[flow].clone();
                self.finish[flow] = until.clone();
                self.active.pop();
                count = count - T::one();
            }
            self.now = until;
        }
    }

    /// Inserts a flow at its place in the order.
    fn admit(&mut self, flow: usize) {
        let place = self.active.partition_point(|&other| self.goes_before(flow, other));
        self.active.insert(place, flow);
    }

    /// Whether `flow` is served before `other`.
    fn goes_before(&self, flow: usize, other: usize) -> bool {
        let (a, b) = (&self.jobs[flow], &self.jobs[other]);
        let by_left = || compare(&self.left[flow], &self.left[other]);
        let by_deadline = || match (&a.deadline, &b.deadline) {
            (Some(x), Some(y)) => compare(x, y),
            (x, y) => y.is_some().cmp(&x.is_some()),
        };
        let without = a.deadline.is_none() && b.deadline.is_none();
        let first = match self.ideal {
            Ideal::Srpt | Ideal::BigSwitch | Ideal::Ps => by_left(),
            Ideal::Sjf => compare(&a.size, &b.size),
            Ideal::EdfSjf if without => compare(&a.size, &b.size),
            Ideal::Stam if without => by_left(),
            Ideal::Edf | Ideal::EdfSjf | Ideal::Stam => by_deadline(),
            Ideal::Fcfs | Ideal::Merp => Ordering::Equal,
        };
        first.then_with(|| compare(&a.arrival, &b.arrival)).then(flow.cmp(&other)).is_lt()
    }

    /// Alg. 2: the flow with the smallest expansion ratio if it came last is placed last, which is first in `active`.
    fn order_by_vdg(&mut self) {
        let mut rest = self.active.iter().fold(T::zero(), |sum, &flow| sum + self.left[flow].clone());
        for k in 0..self.active.len() {
            let x = self.now.clone() + rest.clone() / self.capacity.clone();
            // Expansion ratios are compared as age(a) size(b) < age(b) size(a).
            let ratio = |a: usize, b: usize| (x.clone() - self.jobs[a].arrival.clone()) * self.jobs[b].size.clone();
            let after = |a: usize, b: usize| {
                let (p, q) = (&self.jobs[a], &self.jobs[b]);
                compare(&ratio(a, b), &ratio(b, a))
                    .then_with(|| compare(&q.size, &p.size))
                    .then_with(|| compare(&q.arrival, &p.arrival))
                    .then_with(|| compare(&self.left[b], &self.left[a]))
                    .then(b.cmp(&a))
            };
            let last = (k..self.active.len()).min_by(|&i, &j| after(self.active[i], self.active[j])).unwrap_or(k);
            self.active.swap(k, last);
            rest = rest - self.left[self.active[k]].clone();
        }
    }

    /// Records service from now to `end`.
    fn record(&mut self, flow: usize, end: T, rate: T) {
        let Some(segments) = &mut self.segments else { return };
        if end <= self.now {
            return;
        }
        let last = &mut self.last_segment[flow];
        match segments.get_mut(*last) {
            Some(segment) if segment.end == self.now && segment.rate == rate => segment.end = end,
            _ => {
                *last = segments.len();
                segments.push(Segment { flow, start: self.now.clone(), end, rate });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{Rate, Rng, Time};
    use fabric::agent::merp::vdg;
    use num_rational::BigRational;

    type Exact = BigRational;

    fn q(num: i64, den: i64) -> Exact {
        Exact::new(num.into(), den.into())
    }

    fn job(arrival: i64, size: i64) -> Job<Exact> {
        Job { arrival: q(arrival, 1), size: q(size, 1), deadline: None }
    }

    /// A, B, C of the paper's Table 1.
    fn table_1() -> Vec<Job<Exact>> {
        vec![job(0, 3), job(3, 3), job(0, 4)]
    }

    /// Expected segments as (flow, start, end).
    fn check_table_1(ideal: Ideal, segments: &[(usize, i64, i64)], fct: [Exact; 3], mean: Exact, ratios: [Exact; 3]) {
        let jobs = table_1();
        let found = schedule(ideal, &q(1, 1), &jobs).unwrap();
        let expected =
            |&(flow, start, end): &(usize, i64, i64)| Segment { flow, start: q(start, 1), end: q(end, 1), rate: q(1, 1) };
        if ideal != Ideal::Ps {
            assert_eq!(found.segments, segments.iter().map(expected).collect::<Vec<_>>());
        }
        let found: Vec<Exact> = found.finish.iter().zip(&jobs).map(|(end, job)| end - &job.arrival).collect();
        assert_eq!(found, fct);
        assert_eq!(found.iter().sum::<Exact>() / q(3, 1), mean);
        assert_eq!(found.iter().zip(&jobs).map(|(fct, job)| fct / &job.size).collect::<Vec<_>>(), ratios);
    }

    #[test]
    fn table_1_under_srpt() {
        let segments = [(0, 0, 3), (1, 3, 6), (2, 6, 10)];
        check_table_1(Ideal::Srpt, &segments, [q(3, 1), q(3, 1), q(10, 1)], q(16, 3), [q(1, 1), q(1, 1), q(5, 2)]);
    }

    #[test]
    fn table_1_under_processor_sharing() {
        // The paper prints 7/3 for A, which is the value of B; A has 5/2.
        check_table_1(Ideal::Ps, &[], [q(15, 2), q(7, 1), q(19, 2)], q(8, 1), [q(5, 2), q(7, 3), q(19, 8)]);
        let found = schedule(Ideal::Ps, &q(1, 1), &table_1()).unwrap().segments;
        let of_b: Vec<_> = found.iter().filter(|s| s.flow == 1).map(|s| (s.start.clone(), s.end.clone(), s.rate.clone())).collect();
        assert_eq!(of_b, [(q(3, 1), q(15, 2), q(1, 3)), (q(15, 2), q(19, 2), q(1, 2)), (q(19, 2), q(10, 1), q(1, 1))]);
    }

    #[test]
    fn table_1_under_merp() {
        let segments = [(0, 0, 3), (2, 3, 7), (1, 7, 10)];
        check_table_1(Ideal::Merp, &segments, [q(3, 1), q(7, 1), q(7, 1)], q(17, 3), [q(1, 1), q(7, 3), q(7, 4)]);
    }

    #[test]
    fn deadlines_and_arrivals_order_edf_and_fcfs() {
        let with = |arrival, size, deadline| Job { deadline: Some(q(deadline, 1)), ..job(arrival, size) };
        let jobs = [job(0, 2), with(0, 4, 20), with(1, 2, 5)];
        let edf = schedule(Ideal::Edf, &q(2, 1), &jobs).unwrap();
        assert_eq!(edf.finish, [q(4, 1), q(3, 1), q(2, 1)]);
        let order: Vec<usize> = edf.segments.iter().map(|s| s.flow).collect();
        assert_eq!(order, [1, 2, 1, 0]);
        assert_eq!(finish_times(Ideal::Fcfs, &q(2, 1), &jobs).unwrap(), [q(1, 1), q(3, 1), q(4, 1)]);
    }

    #[test]
    fn empty_flows_idle_times_and_nonsense() {
        for ideal in Ideal::ALL {
            let jobs = [job(5, 0), job(7, 2), job(-1, 1), job(7, 0)];
            assert_eq!(finish_times(ideal, &q(1, 1), &jobs).unwrap(), [q(5, 1), q(9, 1), q(0, 1), q(7, 1)]);
            assert_eq!(finish_times::<Exact>(ideal, &q(1, 1), &[]).unwrap(), []);
            let wrong = |arrival, size| finish_times(ideal, &1.0, &[Job { arrival, size, deadline: None }]).unwrap_err();
            assert!(wrong(f64::NAN, 1.0).contains("arrival of flow 0"));
            assert!(wrong(0.0, f64::INFINITY).contains("size of flow 0"));
            assert!(wrong(0.0, -1.0).contains("size of flow 0"));
            assert!(finish_times(ideal, &0.0, &[]).unwrap_err().contains("capacity"));
        }
    }

    fn random_jobs(rng: &mut Rng, n: u64) -> Vec<Job<Exact>> {
        let mut draw = |below: u64| rng.below(below) as i64;
        (0..n).map(|_| Job { deadline: Some(q(draw(60), 1)), ..job(draw(30), 1 + draw(9)) }).collect()
    }

    /// No ideal idles, exceeds the capacity, or serves a flow too early or too much; all ideals end the last flow at the same time.
    #[test]
    fn every_ideal_conserves_work() {
        let mut rng = Rng::stream(1, "fluid/work", &[]);
        let capacity = q(3, 2);
        for _ in 0..200 {
            let jobs = random_jobs(&mut rng, 8);
            let mut ends = Vec::new();
            for ideal in Ideal::ALL {
                let found = schedule(ideal, &capacity, &jobs).unwrap();
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
            let run = |ideal| finish_times(ideal, &q(1, 1), &jobs).unwrap();
            let total = |ideal| run(ideal).iter().sum::<Exact>();
            let late = |end: &Exact, job: &Job<Exact>| job.deadline.as_ref().map(|d| end - d);
            let lateness = |ideal| run(ideal).iter().zip(&jobs).filter_map(|(end, job)| late(end, job)).max();
            for other in Ideal::ALL {
                assert!(total(Ideal::Srpt) <= total(other), "{other:?} {jobs:?}");
                assert!(lateness(Ideal::Edf) <= lateness(other), "{other:?} {jobs:?}");
            }
        }
    }

    /// Flows that arrive together leave in the order of the ports' own VDG, at its virtual deadlines.
    #[test]
    fn merp_agrees_with_the_port() {
        let mut rng = Rng::stream(1, "fluid/vdg", &[]);
        let (mut placed, mut scratch) = (Vec::new(), vdg::Scratch::default());
        for round in 0..200 {
            let n = 1 + rng.below(if round % 20 == 0 { 60 } else { 10 });
            let jobs: Vec<Job<Exact>> = (0..n).map(|_| job(0, 1 + rng.below(12) as i64)).collect();
            let entry = |(id, job): (usize, &Job<Exact>)| {
                let size = job.size.to_integer().try_into().unwrap();
                vdg::Entry { size, rs: size, arrived: Time::ZERO, id: id as u32 }
            };
            let entries: Vec<vdg::Entry> = jobs.iter().enumerate().map(entry).collect();
            vdg::vdg(Time::ZERO, Rate(8_000_000_000), &entries, &mut placed, &mut scratch);
            let finish = finish_times(Ideal::Merp, &q(1, 1), &jobs).unwrap();
            for place in &placed {
                assert_eq!(q(place.vdl.ps() as i64, 1000), finish[place.index]);
            }
        }
    }
}
