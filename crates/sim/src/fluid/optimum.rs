//! The best schedule of a few flows, with and without deadlines, on one link, found by a search of all
//! schedules.
//!
//! Source: STAM (Zang, Lan, Hu, Acta Electronica Sinica 47(10), 2019), section 2: minimise the mean
//! completion time of flows without deadlines while all deadlines are met.
//!
//! Model: the link serves one unit of one flow per slot, and is never idle while a flow is present.
//! Arrivals, sizes and deadlines are whole slots. The search knows flows before they arrive, which no
//! scheduler does.

use fabric::schedule::link::{Job, Schedule, Segment};

/// The result of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Optimum {
    /// The number of schedules that meet all deadlines; `u64::MAX` if there are more.
    pub schedules: u64,
    /// The smallest sum of the completion times of the flows without a deadline.
    pub total: u64,
    /// The number of schedules with this sum.
    pub best: u64,
    /// The first [`SHOWN`] schedules with this sum, in the order of the flows that they serve.
    pub shown: Vec<Schedule<u64>>,
}

/// Maximum number of schedules in [`Optimum::shown`].
pub const SHOWN: usize = 100;
/// Maximum number of states that are searched. A state is the remaining size of each flow.
const MOST_STATES: u64 = 1_000_000;
/// Maximum number of slots of all flows together.
const MOST_SLOTS: u64 = 1000;

/// The schedules that can be reached from a state: their number, their smallest sum of completion times,
/// and the number of schedules with this sum.
#[derive(Clone, Copy)]
struct Reach {
    schedules: u64,
    total: u64,
    best: u64,
}

/// The value of a state from which every schedule misses a deadline.
const MISSED: Reach = Reach { schedules: 0, total: u64::MAX, best: 0 };

/// Searches all schedules of `jobs` on a link that serves one unit per slot. Returns `None` if every
/// schedule misses a deadline. Fails if there are too many schedules.
pub fn optimum(jobs: &[Job<u64>]) -> Result<Option<Optimum>, String> {
    let states = jobs.iter().try_fold(1u64, |product, job| product.checked_mul(job.size.checked_add(1)?));
    let slots = jobs.iter().try_fold(0u64, |sum, job| sum.checked_add(job.size)).filter(|slots| *slots <= MOST_SLOTS);
    let (Some(states), Some(slots)) = (states.filter(|states| *states <= MOST_STATES), slots) else {
        return Err(format!(
            "too many schedules to search: the product of (size + 1) over all flows must be at most {MOST_STATES}, and the sum of sizes at most {MOST_SLOTS}"
        ));
    };
    let search = Search { jobs, starts: starts(jobs, slots), slots };
    // The number of a state has the remaining sizes of the flows as its digits, so it is smaller than the
    // number of each state from which it is reached.
    let mut reach: Vec<Reach> = Vec::with_capacity(states as usize);
    for state in 0..states {
        let found = search.reach(state, &reach);
        reach.push(found);
    }
    let whole = states - 1;
    let Reach { schedules, total, best } = reach[whole as usize];
    Ok((schedules > 0).then(|| Optimum { schedules, total, best, shown: search.best(whole, &reach) }))
}

/// Returns the start time of each slot of a link that is never idle while a flow is present. It does not
/// depend on the order of service.
fn starts(jobs: &[Job<u64>], slots: u64) -> Vec<u64> {
    let mut by_arrival: Vec<&Job<u64>> = jobs.iter().collect();
    by_arrival.sort_by_key(|job| job.arrival);
    let mut starts = Vec::with_capacity(slots as usize);
    let mut now = 0;
    for job in by_arrival {
        now = job.arrival.max(now);
        starts.extend((0..job.size).map(|slot| now.saturating_add(slot)));
        now = now.saturating_add(job.size);
    }
    starts
}

struct Search<'a> {
    jobs: &'a [Job<u64>],
    /// The start time of each slot.
    starts: Vec<u64>,
    slots: u64,
}

impl Search<'_> {
    /// Returns the digits of a state: the remaining size of each flow.
    fn left(&self, mut state: u64) -> Vec<u64> {
        let digit = |job: &Job<u64>| {
            let left = state % (job.size + 1);
            state /= job.size + 1;
            left
        };
        self.jobs.iter().map(digit).collect()
    }

    /// Returns the steps from a state: each flow that may be served, the next state, and the completion
    /// time to count if the flow ends with this step. Flows that would end late are left out.
    fn steps(&self, state: u64) -> Vec<(usize, u64, u64)> {
        let left = self.left(state);
        let served = self.slots - left.iter().sum::<u64>();
        let Some(&now) = self.starts.get(served as usize) else { return Vec::new() };
        let (mut steps, mut weight) = (Vec::new(), 1);
        for (flow, (job, &left)) in self.jobs.iter().zip(&left).enumerate() {
            let ends = left == 1;
            let late = ends && job.deadline.is_some_and(|deadline| now >= deadline);
            if left > 0 && job.arrival <= now && !late {
                let cost = if ends && job.deadline.is_none() { now + 1 - job.arrival } else { 0 };
                steps.push((flow, state - weight, cost));
            }
            weight *= job.size + 1;
        }
        steps
    }

    /// Returns the value of a state. `reach` has the values of all states with smaller numbers.
    fn reach(&self, state: u64, reach: &[Reach]) -> Reach {
        if state == 0 {
            return Reach { schedules: 1, total: 0, best: 1 };
        }
        let mut all = MISSED;
        for (_, behind, cost) in self.steps(state) {
            let Reach { schedules, total, best } = reach[behind as usize];
            if schedules == 0 {
                continue;
            }
            all.schedules = all.schedules.saturating_add(schedules);
            let total = total + cost;
            if total < all.total {
                (all.total, all.best) = (total, best);
            } else if total == all.total {
                all.best = all.best.saturating_add(best);
            }
        }
        all
    }

    /// Returns the first schedules with the smallest sum from a state.
    fn best(&self, state: u64, reach: &[Reach]) -> Vec<Schedule<u64>> {
        let mut found = vec![(state, Vec::new())];
        for _ in 0..self.slots {
            let longer = |(state, served): (u64, Vec<usize>)| {
                let least = reach[state as usize].total;
                let of_best = move |(_, behind, cost): &(usize, u64, u64)| {
                    reach[*behind as usize].schedules > 0 && reach[*behind as usize].total + cost == least
                };
                self.steps(state)
                    .into_iter()
                    .filter(of_best)
                    .map(move |(flow, behind, _)| (behind, [&served[..], &[flow]].concat()))
            };
            found = found.into_iter().flat_map(longer).take(SHOWN).collect();
        }
        found.into_iter().map(|(_, served)| self.schedule(&served)).collect()
    }

    /// Builds a schedule from the flows that its slots serve.
    fn schedule(&self, served: &[usize]) -> Schedule<u64> {
        let mut finish: Vec<u64> = self.jobs.iter().map(|job| job.arrival).collect();
        let mut segments: Vec<Segment<u64>> = Vec::new();
        for (&flow, &start) in served.iter().zip(&self.starts) {
            finish[flow] = start + 1;
            match segments.last_mut() {
                Some(last) if (last.flow, last.end) == (flow, start) => last.end = start + 1,
                _ => segments.push(Segment { flow, start, end: start + 1, rate: 1 }),
            }
        }
        Schedule { finish, segments }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;
    use fabric::ideal::AnyParams;
    use fabric::schedule::link::Number;
    use num_rational::BigRational;
    use num_traits::ToPrimitive as _;

    fn job(size: u64, arrival: u64, deadline: Option<u64>) -> Job<u64> {
        Job { arrival, size, deadline }
    }

    /// The flows A, B, C and D of Table 1 of STAM's paper.
    fn table_1() -> [Job<u64>; 4] {
        [job(1, 2, Some(8)), job(2, 3, None), job(5, 0, Some(6)), job(6, 1, None)]
    }

    /// The flow of each slot as a letter, `-` where there is none.
    fn letters(segments: &[Segment<u64>]) -> String {
        let end = segments.iter().map(|s| s.end).max().unwrap_or(0);
        let letter =
            |slot| segments.iter().find(|s| s.start <= slot && slot < s.end).map_or('-', |s| (b'A' + s.flow as u8) as char);
        (0..end).map(letter).collect()
    }

    fn exact(job: &Job<u64>) -> Job<BigRational> {
        let number = |x: u64| BigRational::from_integer(x.into());
        Job { arrival: number(job.arrival), size: number(job.size), deadline: job.deadline.map(number) }
    }

    /// Returns the ideal schedule of jobs in whole slots. Asserts that the schedule switches flows at slot
    /// boundaries only.
    fn ideal(name: &str, jobs: &[Job<u64>]) -> Schedule<u64> {
        let ideal = AnyParams::defaults(name).unwrap().build(&());
        let found = ideal.schedule(&exact(&job(1, 0, None)).size, &jobs.iter().map(exact).collect::<Vec<_>>()).unwrap();
        let whole = |x: &BigRational| {
            assert!(x.is_integer(), "{name} {jobs:?}");
            x.to_u64().unwrap()
        };
        let segments = found.segments.iter();
        let segment = |s: &Segment<BigRational>| Segment { flow: s.flow, start: whole(&s.start), end: whole(&s.end), rate: 1 };
        Schedule { finish: found.finish.iter().map(whole).collect(), segments: segments.map(segment).collect() }
    }

    /// Returns the sum of completion times of the flows without a deadline, and the flows that miss their
    /// deadlines.
    fn judged<T: Number>(jobs: &[Job<T>], finish: &[T]) -> (T, Vec<usize>) {
        let without = jobs.iter().zip(finish).filter(|(job, _)| job.deadline.is_none());
        let total = without.fold(T::zero(), |sum, (job, end)| sum + end.clone() - job.arrival.clone());
        let late = |&flow: &usize| jobs[flow].deadline.as_ref().is_some_and(|deadline| finish[flow] > *deadline);
        (total, (0..jobs.len()).filter(late).collect())
    }

    /// Serves slot by slot: `pick` gets the time, the remaining size of each flow, and the flows present.
    fn by_slots(jobs: &[Job<u64>], pick: impl Fn(u64, &[u64], &[usize]) -> usize) -> Schedule<u64> {
        let mut left: Vec<u64> = jobs.iter().map(|job| job.size).collect();
        let (mut now, mut served) = (0, Vec::new());
        let search = Search { jobs, slots: left.iter().sum(), starts: starts(jobs, left.iter().sum()) };
        while left.iter().any(|left| *left > 0) {
            let present: Vec<usize> = (0..jobs.len()).filter(|&flow| jobs[flow].arrival <= now && left[flow] > 0).collect();
            if !present.is_empty() {
                let flow = pick(now, &left, &present);
                left[flow] -= 1;
                served.push(flow);
            }
            now += 1;
        }
        search.schedule(&served)
    }

    /// EDF, then the shortest flow of those without a deadline: a second implementation.
    fn edf_sjf(jobs: &[Job<u64>]) -> Schedule<u64> {
        let key = |flow: usize| {
            let Job { arrival, size, deadline } = jobs[flow];
            (deadline.is_none(), deadline.unwrap_or(size), arrival, flow)
        };
        by_slots(jobs, |_, _, present| *present.iter().min_by_key(|&&flow| key(flow)).unwrap())
    }

    /// STAM's ideal: a second implementation. Without `bound`, any flow without a deadline may use slack.
    fn stam(jobs: &[Job<u64>], bound: bool) -> Schedule<u64> {
        by_slots(jobs, |now, left, present| {
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
            if can_wait && (!bound || left[shortest] <= left[first]) { shortest } else { first }
        })
    }

    #[test]
    fn the_four_schedules_of_stams_table_1() {
        let jobs = table_1();
        for (policy, slots, finish, missed, twice_mean) in [
            ("fcfs", "CCCCCDDDDDDABB", [12, 14, 5, 11], vec![0], 21),
            ("sjf", "CCABBCCCDDDDDD", [3, 5, 8, 14], vec![2], 15),
            ("srpt", "CCABBCCCDDDDDD", [3, 5, 8, 14], vec![2], 15),
            ("edf_sjf", "CCCCCABBDDDDDD", [6, 8, 5, 14], vec![], 18),
            ("stam", "CCCBCCBADDDDDD", [8, 7, 6, 14], vec![], 17),
        ] {
            let found = ideal(policy, &jobs);
            assert_eq!((letters(&found.segments).as_str(), &found.finish[..]), (slots, &finish[..]), "{policy}");
            assert_eq!(judged(&jobs, &found.finish), (twice_mean, missed), "{policy}");
        }
    }

    #[test]
    fn the_optimum_of_stams_table_1() {
        let found = optimum(&table_1()).unwrap().unwrap();
        assert_eq!((found.schedules, found.total, found.best), (364, 17, 3));
        let shown: Vec<String> = found.shown.iter().map(|schedule| letters(&schedule.segments)).collect();
        assert_eq!(shown, ["CCCBCCBADDDDDD", "CCCCBCBADDDDDD", "CCCCCBBADDDDDD"]);
        // In two of these schedules A and C end at their deadlines, as the text of the paper says.
        assert_eq!(
            found.shown.iter().map(|schedule| [schedule.finish[0], schedule.finish[2]]).collect::<Vec<_>>(),
            [[8, 6], [8, 6], [8, 5]]
        );
    }

    /// Two schedules that only seem right: slack for any flow, and least attained service, whose mean is as
    /// good but which misses a deadline.
    #[test]
    fn two_traps_of_stams_table_1() {
        let jobs = table_1();
        let unbounded = stam(&jobs, false);
        assert_eq!((letters(&unbounded.segments).as_str(), judged(&jobs, &unbounded.finish)), ("CDCCCCBABDDDDD", (19, vec![])));
        let attained = |flow: usize, left: &[u64]| (jobs[flow].size - left[flow], jobs[flow].arrival, flow);
        let las = by_slots(&jobs, |_, left, present| *present.iter().min_by_key(|&&flow| attained(flow, left)).unwrap());
        assert_eq!((letters(&las.segments).as_str(), judged(&jobs, &las.finish)), ("CDABCDBCDCDCDD", (17, vec![2])));
    }

    fn random_jobs(rng: &mut Rng) -> Vec<Job<u64>> {
        let mut draw = |_| {
            let (size, arrival) = (1 + rng.below(5), rng.below(9));
            job(size, arrival, (rng.below(2) == 0).then(|| arrival + size + rng.below(8)))
        };
        (0..5).map(&mut draw).collect()
    }

    #[test]
    fn edf_and_sjf_against_all_schedules() {
        let mut rng = Rng::stream(1, "fluid/mixed", &[]);
        let mut feasible = 0;
        for _ in 0..400 {
            let jobs = random_jobs(&mut rng);
            let found = ideal("edf_sjf", &jobs);
            assert_eq!(found, edf_sjf(&jobs), "{jobs:?}");
            let (total, late) = judged(&jobs, &found.finish);
            let best = optimum(&jobs).unwrap();
            // EDF meets all deadlines wherever some schedule does.
            assert_eq!(best.is_some(), late.is_empty(), "{jobs:?}");
            assert!(best.iter().all(|best| best.total <= total), "{jobs:?}");
            feasible += u32::from(best.is_some());
        }
        assert!((100..350).contains(&feasible), "{feasible}");
    }

    #[test]
    fn stam_against_slot_by_slot() {
        let mut rng = Rng::stream(1, "fluid/mixed", &[]);
        let (mut better, mut missed) = (0, 0);
        for _ in 0..400 {
            let jobs = random_jobs(&mut rng);
            let found = ideal("stam", &jobs);
            assert_eq!(found, stam(&jobs, true), "{jobs:?}");
            let (best, (total, late)) = (optimum(&jobs).unwrap(), judged(&jobs, &found.finish));
            if let Some(best) = best.filter(|_| late.is_empty()) {
                assert!(best.total <= total, "{jobs:?}");
                better += u32::from(total < judged(&jobs, &ideal("edf_sjf", &jobs).finish).0);
            } else {
                missed += u32::from(!late.is_empty());
            }
        }
        assert!(better > 20 && missed > 0, "{better} {missed}");
    }

    /// Compares the search with an enumeration of every order of slots.
    #[test]
    fn the_search_finds_every_schedule() {
        fn all(jobs: &[Job<u64>], now: u64, left: &mut [u64], cost: u64, found: &mut Vec<u64>) {
            if left.iter().all(|left| *left == 0) {
                return found.push(cost);
            }
            let present: Vec<usize> = (0..jobs.len()).filter(|&flow| jobs[flow].arrival <= now && left[flow] > 0).collect();
            if present.is_empty() {
                return all(jobs, now + 1, left, cost, found);
            }
            for flow in present {
                left[flow] -= 1;
                let job = &jobs[flow];
                let ends = left[flow] == 0;
                if !(ends && job.deadline.is_some_and(|deadline| now + 1 > deadline)) {
                    let more = if ends && job.deadline.is_none() { now + 1 - job.arrival } else { 0 };
                    all(jobs, now + 1, left, cost + more, found);
                }
                left[flow] += 1;
            }
        }
        let mut rng = Rng::stream(2, "fluid/mixed", &[]);
        for _ in 0..60 {
            let jobs = &random_jobs(&mut rng)[..3];
            let mut left: Vec<u64> = jobs.iter().map(|job| job.size).collect();
            let mut found = Vec::new();
            all(jobs, 0, &mut left, 0, &mut found);
            let least = found.iter().min();
            let expected =
                least.map(|least| (found.len() as u64, *least, found.iter().filter(|cost| *cost == least).count() as u64));
            let optimum = optimum(jobs).unwrap();
            assert_eq!(optimum.as_ref().map(|o| (o.schedules, o.total, o.best)), expected, "{jobs:?}");
            for shown in optimum.iter().flat_map(|o| &o.shown) {
                assert_eq!(judged(jobs, &shown.finish), (optimum.as_ref().unwrap().total, vec![]));
            }
        }
    }

    #[test]
    fn cases_that_are_too_large_are_refused() {
        assert!(optimum(&[job(1001, 0, None)]).unwrap_err().contains("too many schedules"));
        assert!(optimum(&vec![job(9, 0, None); 7]).unwrap_err().contains("1000000"));
        assert!(optimum(&[job(u64::MAX, 0, None), job(1, 0, None)]).is_err());
        assert_eq!(optimum(&[job(2, 0, Some(1))]), Ok(None));
        let nothing = optimum(&[job(0, 3, None)]).unwrap().unwrap();
        assert_eq!((nothing.schedules, nothing.total, nothing.shown[0].finish[0]), (1, 0, 3));
    }
}
