//! A link: finish times, and the flow served at each time.
//!
//! Generic over the type of numbers: `f64` for many flows, `num_rational::BigRational` for exact
//! results. Times, sizes and the capacity are in any consistent units. All orders are preemptive.
//!
//! Assumed: ties are broken by arrival, then by index.

use num_traits::Num;
use std::cmp::Ordering;

/// A type of numbers for schedules.
pub trait Number: Num + PartialOrd + Clone {}
impl<T: Num + PartialOrd + Clone> Number for T {}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Job<T> {
    /// When the flow arrives.
    pub arrival: T,
    /// The flow's size; a flow of size zero ends when it arrives.
    pub size: T,
    /// The flow's deadline, for orders that use deadlines.
    pub deadline: Option<T>,
}

impl<T: Number> Job<T> {
    /// Compares by deadline; flows without a deadline come last.
    pub fn by_deadline(&self, other: &Job<T>) -> Ordering {
        match (&self.deadline, &other.deadline) {
            (Some(a), Some(b)) => compare(a, b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }
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

/// The order in which a link serves flows one at a time.
pub trait Rule<T: Number> {
    /// Orders two flows; flows that are equal are served by arrival.
    fn compare(&self, _link: &Server<'_, T>, _a: usize, _b: usize) -> Ordering {
        Ordering::Equal
    }
    /// Called after flows have arrived and were inserted into the [active](Server::active) flows.
    /// May change their order.
    fn on_arrivals(&self, _link: &mut Server<'_, T>) {}
    /// Returns the index of the flow to serve among the active flows, and the time at which the
    /// choice must be made again if it may change without an arrival or an end.
    fn next(&self, link: &Server<'_, T>) -> Option<(usize, Option<T>)> {
        Some((link.active.len().checked_sub(1)?, None))
    }
}

fn check<T: Number>(capacity: &T, jobs: &[Job<T>]) -> Result<(), String> {
    if capacity.partial_cmp(&T::zero()) != Some(Ordering::Greater) {
        return Err("the capacity must be above zero".to_owned());
    }
    // NaN differs from itself, and infinity minus infinity is not zero.
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
pub fn compare<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    a.partial_cmp(b).unwrap_or(Ordering::Equal)
}

/// A link and its flows.
pub struct Server<'a, T> {
    /// The link's rate.
    pub capacity: &'a T,
    /// The flows.
    pub jobs: &'a [Job<T>],
    /// The remaining size of each flow.
    pub left: Vec<T>,
    /// Flows that have arrived and have not ended. The flow to serve or to end next is last.
    pub active: Vec<usize>,
    /// The current time.
    pub now: T,
    by_arrival: Vec<usize>,
    finish: Vec<T>,
    segments: Option<&'a mut Vec<Segment<T>>>,
    /// The latest segment of each flow.
    last_segment: Vec<usize>,
}

impl<'a, T: Number> Server<'a, T> {
    /// Returns a link that has served nothing yet, and that writes its periods of service to
    /// `segments`. The error names the first invalid number.
    pub fn new(capacity: &'a T, jobs: &'a [Job<T>], segments: Option<&'a mut Vec<Segment<T>>>) -> Result<Self, String> {
        check(capacity, jobs)?;
        let mut by_arrival: Vec<usize> = (0..jobs.len()).collect();
        by_arrival.sort_by(|&a, &b| compare(&jobs[a].arrival, &jobs[b].arrival));
        Ok(Server {
            capacity,
            jobs,
            left: jobs.iter().map(|job| job.size.clone()).collect(),
            active: Vec::new(),
            now: T::zero(),
            by_arrival,
            finish: jobs.iter().map(|job| job.arrival.clone()).collect(),
            segments,
            last_segment: vec![usize::MAX; jobs.len()],
        })
    }

    /// Serves one flow at a time, in the order of a rule. Returns when each flow ends.
    pub fn serve(mut self, rule: &impl Rule<T>) -> Vec<T> {
        let mut coming = std::mem::take(&mut self.by_arrival).into_iter().peekable();
        loop {
            if self.active.is_empty() {
                let Some(&next) = coming.peek() else { return self.finish };
                self.now = self.jobs[next].arrival.clone();
            }
            let mut fresh = false;
            while let Some(flow) = coming.next_if(|&flow| self.jobs[flow].arrival <= self.now) {
                if !self.left[flow].is_zero() {
                    self.admit(flow, |link, a, b| rule.compare(link, a, b));
                    fresh = true;
                }
            }
            if fresh {
                rule.on_arrivals(&mut self);
            }
            let Some((place, until)) = rule.next(&self) else { continue };
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

    /// Serves all flows at equal rates. Returns when each flow ends. Here `left` of a flow is the
    /// service that every active flow will have received when that flow ends.
    pub fn share(mut self) -> Vec<T> {
        let mut coming = std::mem::take(&mut self.by_arrival).into_iter().peekable();
        let (mut attained, mut count) = (T::zero(), T::zero());
        loop {
            if self.active.is_empty() {
                let Some(&next) = coming.peek() else { return self.finish };
                self.now = self.jobs[next].arrival.clone();
            }
            while let Some(flow) = coming.next_if(|&flow| self.jobs[flow].arrival <= self.now) {
                if !self.left[flow].is_zero() {
                    self.left[flow] = self.left[flow].clone() + attained.clone();
                    self.admit(flow, |link, a, b| compare(&link.left[a], &link.left[b]));
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
    fn admit(&mut self, flow: usize, order: impl Fn(&Self, usize, usize) -> Ordering) {
        let arrival = |flow: usize| &self.jobs[flow].arrival;
        let first =
            |other: usize| order(self, flow, other).then_with(|| compare(arrival(flow), arrival(other))).then(flow.cmp(&other));
        let place = self.active.partition_point(|&other| first(other).is_lt());
        self.active.insert(place, flow);
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
