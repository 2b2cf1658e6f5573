//! The measurement window: the time over which rates, utilisation and queue lengths are averaged.
//!
//! By default the window begins at the first start of a flow and ends at the last start, so that
//! flows that end late do not dilute the averages. All flows of a group count as starting with its
//! first flow, so that an incast is a single start. If all starts have the same time, the window
//! ends with the last flow.
//!
//! The flows of a program start during the run, when other flows have ended. If a workload is a
//! program, the window is the whole job: from the first start of the programs to the end of their
//! last flow or task.

use crate::plan::tasks::RunTasks;
use base::params::{Param, Raw};
use base::{Dur, Time};
use proto::Flow;
use std::collections::BTreeMap;

/// A limit of the window as a scenario writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// `auto`: the first start; for `until` the last start or, if all flows start at the same time,
    /// the last finish. With programs, the start and the end of the job.
    Auto,
    /// A time from the start of the run: `10ms`.
    At(Dur),
    /// The time at which this share of the flows has started, in thousandths of a percent: `10%`.
    Started(u32),
    /// `end`: the last finish, or the end of the run if flows remain unfinished.
    End,
}

/// 100 %, in thousandths of a percent.
const ALL: u32 = 100_000;

impl Param for Moment {
    fn expects() -> String {
        "a time, like `10ms`, a share of the flows that have started, like `10%`, `end` or `auto`".to_owned()
    }
    fn parse(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Str(text) if text == "auto" => Ok(Moment::Auto),
            Raw::Str(text) if text == "end" => Ok(Moment::End),
            Raw::Str(text) if text.ends_with('%') => {
                share(text.trim_end_matches('%').trim()).map(Moment::Started).ok_or("is not a share from `0%` to `100%`".to_owned())
            }
            _ => Dur::parse(raw).map(Moment::At).map_err(|_| format!("is not {}", Self::expects())),
        }
    }
    fn show(&self) -> String {
        match self {
            Moment::Auto => "auto".to_owned(),
            Moment::At(time) => time.show(),
            Moment::Started(share) if share % 1000 == 0 => format!("{}%", share / 1000),
            Moment::Started(share) => format!("{}%", format!("{}.{:03}", share / 1000, share % 1000).trim_end_matches('0')),
            Moment::End => "end".to_owned(),
        }
    }
}

impl PartialOrd for Moment {
    /// Compares moments of the same kind; `end` is after all other moments.
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Moment::At(a), Moment::At(b)) => a.partial_cmp(b),
            (Moment::Started(a), Moment::Started(b)) => a.partial_cmp(b),
            (Moment::End, other) => {
                Some(if *other == Moment::End { std::cmp::Ordering::Equal } else { std::cmp::Ordering::Greater })
            }
            (_, Moment::End) => Some(std::cmp::Ordering::Less),
            _ => None,
        }
    }
}

/// Parses a percentage with up to three decimals, as thousandths of a percent.
fn share(digits: &str) -> Option<u32> {
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    if whole.is_empty() || rest.len() > 3 || !all_digits(whole) || !all_digits(rest) {
        return None;
    }
    let share = whole.parse::<u32>().ok()?.checked_mul(1000)? + format!("{rest:0<3}").parse::<u32>().ok()?;
    (share <= ALL).then_some(share)
}

base::choice! {
    /// The flows that count in metrics of flows and of groups.
    pub enum CountedFlows {
        /// If no workload is an open loop that could continue for ever: `all`. Else `window` if
        /// `from` or `until` is given, `all` if the run has an `end`, and otherwise `steady`.
        Auto = "auto",
        /// The flows of the scenario, in a network that has the same load before the first and
        /// until the last of them has finished.
        Steady = "steady",
        /// All flows, in a network that is empty before the first and after the last flow.
        All = "all",
        /// The flows that start in the window.
        Window = "window",
    }
}

base::params! {
    /// The measurement window.
    pub struct Measure {
        /// Start of the window; `auto`: the first start.
        from: Moment = "auto", "flowloom: before the first flow there is nothing to measure", quiet;
        /// End of the window; `auto`: the last start, the last finish if all flows start at the same
        /// time, or the end of the job if a workload is a program.
        until: Moment = "auto", "flowloom: the load is offered until the last start; after it the network drains", quiet;
        /// The flows that count in metrics of flows and of groups.
        flows: CountedFlows = "auto", "flowloom: means over a run that starts empty understate load (Kelton, IIE Transactions 1989)", quiet;
    }
}

/// The measurement window of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start of the window.
    pub from: Time,
    /// End of the window.
    pub until: WindowEnd,
}

/// The end of a measurement window. The end of the run ends every window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowEnd {
    /// A time.
    At(Time),
    /// The last finish.
    LastFinish,
    /// The end of the last flow or task of these workloads, by index.
    Programs(Vec<u16>),
}

/// The programs of a run: workloads whose flows start when other flows have ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// The workloads, by index, in order.
    pub workloads: Vec<u16>,
    /// The first start of a flow or task of theirs.
    pub start: Time,
}

impl Programs {
    /// Returns the programs among the workloads with these flows and tasks. `clocked` are workloads
    /// whose flows wait only for flows whose starts are known: they are no programs.
    pub fn of<'a>(flows: impl Iterator<Item = &'a Flow> + Clone, tasks: &RunTasks, clocked: &[u16]) -> Option<Programs> {
        let with_tasks = tasks.all.iter().map(|task| task.workload);
        let mut workloads: Vec<u16> = flows.clone().filter(|flow| flow.wait.is_some()).map(|flow| flow.workload).collect();
        workloads.extend(with_tasks);
        workloads.sort_unstable();
        workloads.dedup();
        workloads.retain(|workload| !clocked.contains(workload));
        let flows = flows.filter(|flow| flow.wait.is_none() && workloads.binary_search(&flow.workload).is_ok());
        let begins = tasks.parts.iter().map(|part| &tasks.moments[part.moments[0] as usize]);
        let begins = begins.filter(|begin| begin.on.is_empty() && begin.joins.is_empty()).map(|begin| begin.not_before);
        let start = flows.map(|flow| flow.start).chain(begins).min()?;
        (!workloads.is_empty()).then_some(Programs { workloads, start })
    }
}

impl Measure {
    /// Returns which flows count. `open_loop`: the run has an open loop; `ends`: the run has an
    /// `end`.
    pub(crate) fn counted(&self, open_loop: bool, ends: bool) -> CountedFlows {
        match self.flows {
            CountedFlows::Auto if !open_loop => CountedFlows::All,
            CountedFlows::Auto if self.from != Moment::Auto || self.until != Moment::Auto => CountedFlows::Window,
            CountedFlows::Auto if ends => CountedFlows::All,
            CountedFlows::Auto => CountedFlows::Steady,
            given => given,
        }
    }
    /// Returns the window of a run with these flows and programs, or `None` if it is empty. The
    /// window is shorter if the run ends before it.
    pub fn window<'a>(&self, flows: impl Iterator<Item = &'a Flow> + Clone, programs: Option<Programs>) -> Option<Window> {
        let mut groups: BTreeMap<u64, Time> = BTreeMap::new();
        let flows = || flows.clone().filter(|flow| flow.wait.is_none());
        for flow in flows().filter(|flow| flow.group != u64::MAX) {
            let first = groups.entry(flow.group).or_insert(flow.start);
            *first = flow.start.min(*first);
        }
        let start = |flow: &Flow| groups.get(&flow.group).copied().unwrap_or(flow.start);
        let mut starts: Vec<Time> = flows().map(start).collect();
        starts.sort_unstable();
        let (first, last) = (*starts.first()?, *starts.last()?);
        let started = |share: u32| {
            let rank = (starts.len() as u64 * u64::from(share)).div_ceil(u64::from(ALL)).max(1);
            starts[rank as usize - 1]
        };
        let from = match self.from {
            Moment::Auto => programs.as_ref().map_or(first, |programs| programs.start),
            Moment::At(time) => Time(time.0),
            Moment::Started(share) => started(share),
            Moment::End => return None,
        };
        let until = match self.until {
            Moment::Auto => match programs {
                Some(programs) => WindowEnd::Programs(programs.workloads),
                None if last > first => WindowEnd::At(last),
                None => WindowEnd::LastFinish,
            },
            Moment::At(time) => WindowEnd::At(Time(time.0)),
            Moment::Started(share) => WindowEnd::At(started(share)),
            Moment::End => WindowEnd::LastFinish,
        };
        let is_empty = matches!(until, WindowEnd::At(until) if until <= from);
        (!is_empty).then_some(Window { from, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tasks::RunTask;
    use crate::workload::tasks::{Task, TaskPart};
    use base::params::Params as _;
    use proto::flow::Wait;
    use proto::kit::script;

    /// Returns flows that start at these microseconds; `None`: the flow waits for the first flow.
    fn flows(starts: &[Option<u64>]) -> Vec<Flow> {
        let flow = |(id, start): (u32, &Option<u64>)| {
            let wait = start.is_none().then(|| Box::new(Wait::new(&[base::FlowId(0)], Dur::ZERO)));
            Flow { start: start.map_or(Time::MAX, |us| Time(us * 1_000_000)), wait, ..script::flow(id, 1000) }
        };
        (0..).zip(starts).map(flow).collect()
    }

    fn window_of(from: &str, until: &str, flows: &[Flow], clocked: &[u16]) -> Option<(u64, WindowEnd)> {
        let read = |text: &str| Moment::parse(&Raw::Str(text.to_owned())).unwrap();
        let measure = Measure { from: read(from), until: read(until), flows: CountedFlows::Auto };
        let programs = Programs::of(flows.iter(), &RunTasks::default(), clocked);
        let window = measure.window(flows.iter(), programs)?;
        Some((window.from.0 / 1_000_000, window.until))
    }

    fn window(from: &str, until: &str, starts: &[Option<u64>]) -> Option<(u64, WindowEnd)> {
        window_of(from, until, &flows(starts), &[])
    }

    fn at(us: u64) -> WindowEnd {
        WindowEnd::At(Time(us * 1_000_000))
    }

    #[test]
    fn the_window_goes_from_the_first_start_to_the_last() {
        let starts: Vec<Option<u64>> = (1..=10).map(|n| Some(10 * n)).collect();
        assert_eq!(window("auto", "auto", &starts), Some((10, at(100))));
        assert_eq!(window("20%", "90%", &starts), Some((20, at(90))));
        assert_eq!(window("11%", "55us", &starts), Some((20, at(55))));
        assert_eq!(window("0us", "end", &starts), Some((0, WindowEnd::LastFinish)));
        assert_eq!(
            (window("60us", "50%", &starts), window("end", "end", &starts), window("auto", "auto", &[])),
            (None, None, None)
        );
    }

    #[test]
    fn the_window_of_flows_that_start_together_ends_with_the_last_flow() {
        assert_eq!(window("auto", "auto", &[Some(5), Some(5)]), Some((5, WindowEnd::LastFinish)));
    }

    #[test]
    fn the_window_of_a_program_is_its_job() {
        let job = || Some((5, WindowEnd::Programs(vec![0])));
        assert_eq!([window("auto", "auto", &[Some(5), None]), window("auto", "auto", &[Some(5), None, Some(9)])], [job(), job()]);
        // A window that is given stays.
        assert_eq!(window("1us", "6us", &[Some(5), None, Some(9)]), Some((1, at(6))));
        assert_eq!(window("50%", "auto", &[Some(5), None, Some(9)]), Some((5, WindowEnd::Programs(vec![0]))));
        // Flows of other workloads do not change the window.
        let mut flows = flows(&[Some(1), Some(5), None, Some(9)]);
        [0, 3].into_iter().for_each(|other| flows[other].workload = 1);
        assert_eq!(window_of("auto", "auto", &flows, &[]), job());
        // Requests that come at an interval and their answers are no program.
        assert_eq!(window_of("auto", "auto", &flows, &[0]), Some((1, at(9))));
    }

    #[test]
    fn a_job_begins_with_its_first_task() {
        let wait = |not_before: u64, on: &[u32]| Wait {
            not_before: Time(not_before),
            ..Wait::new(&on.iter().map(|flow| base::FlowId(*flow)).collect::<Vec<_>>(), Dur::ZERO)
        };
        let task = Task { name: "forward 0".to_owned(), iteration: 0, collective: None, parallelism: None };
        let part = |begin| TaskPart { task: 0, rank: 0, host: base::HostId(0), moments: [begin, 0] };
        let tasks = RunTasks {
            all: vec![RunTask { workload: 0, group: 0, task }],
            parts: vec![part(0), part(1)],
            moments: vec![wait(1, &[0]), wait(3_000_000, &[])],
        };
        let programs = Programs::of(flows(&[Some(5), None]).iter(), &tasks, &[]);
        assert_eq!(programs, Some(Programs { workloads: vec![0], start: Time(3_000_000) }));
    }

    #[test]
    fn an_incast_is_one_start() {
        let mut burst = flows(&[Some(5), Some(6), Some(9)]);
        burst.iter_mut().for_each(|flow| flow.group = 1);
        assert_eq!(window_of("auto", "auto", &burst, &[]), Some((5, WindowEnd::LastFinish)));
        burst[2].group = u64::MAX;
        assert_eq!(window_of("auto", "auto", &burst, &[]), Some((5, at(9))));
    }

    #[test]
    fn moments_are_read_as_they_are_shown() {
        for text in ["auto", "end", "10ms", "0%", "12.5%", "99.999%", "100%"] {
            assert_eq!(Moment::parse(&Raw::Str(text.to_owned())).unwrap().show(), text);
        }
        for text in ["101%", "%", "1.2345%", "-1%", "start", "10"] {
            assert!(Moment::parse(&Raw::Str(text.to_owned())).is_err(), "{text}");
        }
        assert_eq!(Measure::defaults(), Measure { from: Moment::Auto, until: Moment::Auto, flows: CountedFlows::Auto });
    }
}
