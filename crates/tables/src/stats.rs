//! The metrics: the only definitions of the named statistics of a run.

use crate::grouped::{Group, groups};
use crate::hosts;
use crate::jobs::Jobs;
use crate::rank_times::RankTime;
use sim::outcome::{Counters, Engine, FlowRow, PortRow};
use sim::tasks::{PartRow, TaskRow};
use std::collections::BTreeMap;

/// A statistic of a point.
pub struct Metric {
    /// The name, which ends in the unit.
    pub name: &'static str,
    /// The unit, or empty.
    pub unit: &'static str,
    /// The description.
    pub about: &'static str,
    /// Whether the metric depends on the machine, not only on the scenario, the seed and the program.
    pub machine: bool,
    /// Whether the metric applies only to some runs: to flows that wait for others, groups of
    /// flows, a mix of flows with and without deadlines, flows that send through the whole window,
    /// or parts that few systems have. Tables of other runs have no row for it.
    pub optional: bool,
    /// Whether the metric is measured in the measurement window, instead of over whole flows or the
    /// whole run.
    pub window: bool,
    /// Whether the metric is computed only from flows. It then also exists for subsets of flows: of
    /// a workload, or chosen by a filter.
    pub of_flows: bool,
    /// The data that the metric needs.
    pub from: From,
    /// Computes the value. `None` if the point has none, such as a mean over no flows.
    pub of: fn(&Point<'_>) -> Option<f64>,
}

/// The data that a run must have for a metric to have a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// Start and finish times of flows, which every run has.
    Flows,
    /// Rates over time, which ideal schedules do not have.
    Rates,
    /// Packets and queues, which only the packet engine has.
    Packets,
}

impl From {
    /// Returns whether a run with this engine has the data.
    pub fn is_known(self, engine: Engine) -> bool {
        match engine {
            Engine::Packet => true,
            Engine::Flow => self != From::Packets,
            Engine::Ideal => self == From::Flows,
        }
    }
}

/// The data of a point from which metrics are computed.
pub struct Point<'a> {
    /// The flows that began. Flows that never began count only in `not_started`.
    flows: Vec<&'a FlowRow>,
    not_started: Option<u64>,
    ports: &'a [PortRow],
    counters: &'a Counters,
    wall_s: f64,
    fct: Sorted,
    slowdown: Sorted,
    expansion: Sorted,
    goodput: Sorted,
    /// The groups that began.
    groups: Vec<Group>,
    /// The work of programs.
    jobs: Jobs,
    /// Whether some flows have a deadline and some have none.
    mixed: bool,
}

/// Values in ascending order.
struct Sorted(Vec<f64>);

impl<'a> Point<'a> {
    /// Takes the rows of a point and the wall time of its run in seconds. Only flows that count are
    /// used for metrics.
    pub fn new(flows: &'a [FlowRow], ports: &'a [PortRow], counters: &'a Counters, wall_s: f64) -> Self {
        Point::of(flows.iter(), ports, counters, wall_s)
    }
    /// Adds the tasks of programs and the parts of ranks in them.
    pub fn with_tasks(self, tasks: &[TaskRow], parts: &[PartRow]) -> Self {
        Point { jobs: Jobs::of(tasks, parts, self.counters.end_ps), ..self }
    }
    fn of(flows: impl Iterator<Item = &'a FlowRow> + Clone, ports: &'a [PortRow], counters: &'a Counters, wall_s: f64) -> Self {
        let flows = || flows.clone().filter(|flow| flow.measured);
        let waits = flows().any(|flow| flow.waits);
        let not_started = flows().filter(|flow| flow.start_ps.is_none()).count() as u64;
        let flows: Vec<&FlowRow> = flows().filter(|flow| flow.start_ps.is_some()).collect();
        Point {
            not_started: waits.then_some(not_started),
            ports,
            counters,
            wall_s,
            // One division of an integer gives correctly rounded seconds.
            fct: Sorted::new(flows.iter().filter_map(|f| f.fct_ps().map(|ps| ps as f64 / 1e12))),
            slowdown: Sorted::new(flows.iter().filter_map(|f| f.slowdown())),
            expansion: Sorted::new(flows.iter().filter_map(|f| f.expansion_ratio())),
            goodput: Sorted::new(flows.iter().filter_map(|f| f.goodput_bps())),
            groups: groups(&flows).into_values().collect(),
            jobs: Jobs::default(),
            mixed: flows.iter().any(|flow| has_deadline(flow)) && !flows.iter().all(|flow| has_deadline(flow)),
            flows,
        }
    }
    /// Returns all metrics in the order of the registry.
    pub fn metrics(&self) -> Vec<(&'static Metric, Option<f64>)> {
        METRICS.iter().map(|metric| (metric, (metric.of)(self).filter(|x| x.is_finite()))).collect()
    }
    /// Returns the metrics that are computed only from flows, for some of the flows.
    pub fn of_flows<'b>(flows: impl Iterator<Item = &'b FlowRow> + Clone) -> Vec<(&'static Metric, Option<f64>)> {
        let nothing = Counters::default();
        let all = Point::of(flows.map(|flow| flow as &FlowRow), &[], &nothing, 0.0).metrics();
        all.into_iter().filter(|(metric, _)| metric.of_flows).collect()
    }
    fn sum(&self, f: impl Fn(&FlowRow) -> u64) -> Option<f64> {
        Some(self.flows.iter().map(|flow| f(flow)).sum::<u64>() as f64)
    }
    /// Returns the share of the time with traffic for which a port was paused, mean over all ports.
    fn paused_share(&self) -> Option<f64> {
        Some(self.counters.paused_ps? as f64 / (self.ports.len() as f64 * self.counters.traffic_ps.max(1) as f64))
    }
    fn at_ports(&self, f: impl Fn(&PortRow) -> u64) -> Option<f64> {
        Some(self.ports.iter().map(f).sum::<u64>() as f64)
    }
    fn count(&self, f: impl Fn(&FlowRow) -> bool) -> f64 {
        self.flows.iter().filter(|flow| f(flow)).count() as f64
    }
    /// Returns the completion times of some of the flows.
    fn fct_of(&self, of: impl Fn(&FlowRow) -> bool) -> Sorted {
        Sorted::new(self.flows.iter().filter(|f| of(f)).filter_map(|f| f.fct_ps()).map(|ps| ps as f64 / 1e12))
    }
    /// Returns the completion times of some of the flows if some have a deadline and some have
    /// none; otherwise no values.
    fn mixed_fct_of(&self, of: impl Fn(&FlowRow) -> bool) -> Sorted {
        self.fct_of(|flow| self.mixed && of(flow))
    }
    /// Returns the slowdowns of some of the flows.
    fn slowdown_of(&self, of: impl Fn(&FlowRow) -> bool) -> Sorted {
        Sorted::new(self.flows.iter().filter(|f| of(f)).filter_map(|f| f.slowdown()))
    }
    /// Returns the change of the mean slowdown over the run, as a share of the mean: by the
    /// least-squares line through the means of tenths.
    fn drift(&self) -> Option<f64> {
        const TENTHS: usize = 10;
        let mut flows: Vec<(u64, f64)> = self.flows.iter().filter_map(|f| Some((f.start_ps?, f.slowdown()?))).collect();
        if flows.len() < 20 * TENTHS {
            return None;
        }
        flows.sort_by_key(|(start, _)| *start);
        let mean = |tenth: usize| {
            let own = &flows[flows.len() * tenth / TENTHS..flows.len() * (tenth + 1) / TENTHS];
            own.iter().map(|(_, slowdown)| slowdown).sum::<f64>() / own.len() as f64
        };
        let centre = (TENTHS - 1) as f64 / 2.0;
        let (mut slope, mut squares, mut sum) = (0.0, 0.0, 0.0);
        for tenth in 0..TENTHS {
            let (x, y) = (tenth as f64 - centre, mean(tenth));
            (slope, squares, sum) = (slope + x * y, squares + x * x, sum + y);
        }
        Some(slope / squares * (TENTHS - 1) as f64 / (sum / TENTHS as f64))
    }
    /// Returns the completion times of the groups whose flows all finished.
    fn group_fct(&self) -> Sorted {
        Sorted::new(self.groups.iter().filter_map(Group::fct_ps).map(|ps| ps as f64 / 1e12))
    }
    /// Returns, for each sending host, the share of retransmissions among its data packets.
    fn retx_share(&self) -> Sorted {
        let sent = |f: &FlowRow| (f.src, [f.retx_packets, f.tx_packets]);
        Sorted::new(self.by_host(sent).filter(|[_, sent]| *sent > 0).map(|[again, sent]| again as f64 / sent as f64))
    }
    /// Returns, for each receiving host, the mean out-of-order window over the gaps of its flows; 0
    /// without gaps.
    fn gap_packets(&self) -> Sorted {
        Sorted::new(self.by_host(|f| (f.dst, [f.gap_packets, f.gaps])).map(|[packets, gaps]| packets as f64 / gaps.max(1) as f64))
    }
    /// Returns, for each receiving host, the mean out-of-order window over the first gaps of its
    /// flows; 0 without gaps.
    fn first_gap_packets(&self) -> Sorted {
        let first = |f: &FlowRow| (f.dst, [f.first_gap_packets, f.gaps.min(1)]);
        Sorted::new(self.by_host(first).map(|[packets, gaps]| packets as f64 / gaps.max(1) as f64))
    }
    /// Sums counts over the flows of each host.
    fn by_host(&self, of: impl Fn(&FlowRow) -> (u32, [u64; 2])) -> impl Iterator<Item = [u64; 2]> {
        let mut hosts: BTreeMap<u32, [u64; 2]> = BTreeMap::new();
        for (host, counts) in self.flows.iter().map(|flow| of(flow)) {
            let sums = hosts.entry(host).or_default();
            *sums = [sums[0] + counts[0], sums[1] + counts[1]];
        }
        hosts.into_values()
    }
    fn end_s(&self) -> f64 {
        self.counters.end_ps as f64 / 1e12
    }
    fn window_ps(&self) -> Option<u64> {
        self.counters.window.map(|window| window.until_ps - window.from_ps)
    }
    /// Returns the goodput in the window of each host that is the destination of a flow.
    fn host_goodput(&self) -> Sorted {
        let found = self.counters.window.and_then(|window| hosts::goodput_bps(&self.flows, window));
        Sorted::new(found.unwrap_or_default().into_iter())
    }
    fn non_blocking_bps(&self) -> Option<f64> {
        hosts::non_blocking_bps(&self.flows, self.ports, self.counters.window?)
    }
    /// Returns the payload that reached receivers in the window, over the length of the window.
    fn goodput_bps(&self) -> Option<f64> {
        let window = self.counters.window?;
        Some(window.delivered_bytes as f64 * 8e12 / (window.until_ps - window.from_ps) as f64)
    }
    fn utilisation(&self) -> impl Iterator<Item = f64> {
        self.ports.iter().filter_map(|port| utilisation(port.window_busy_ps?, self.window_ps()?))
    }
    fn queue_bytes(&self) -> impl Iterator<Item = f64> {
        self.ports.iter().filter_map(|port| port.window_mean_queue_bytes)
    }
    fn per_wall_s(&self, count: u64) -> Option<f64> {
        (self.wall_s > 0.0).then(|| count as f64 / self.wall_s)
    }
}

/// Returns Jain's fairness index: 1 if all values are equal, 1 / n if one of n values has
/// everything. `None` without values.
pub fn jain(values: &[f64]) -> Option<f64> {
    let (sum, squares) = values.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

/// The largest flow that counts as short (pFabric section 5.1, BOTCP section 4.3).
const SHORT_BYTES: u64 = 100_000;

fn is_short(flow: &FlowRow) -> bool {
    flow.size_bytes <= SHORT_BYTES
}

fn has_deadline(flow: &FlowRow) -> bool {
    flow.deadline_ps.is_some()
}

/// Returns whether a flow is short and has no deadline.
fn is_free_short(flow: &FlowRow) -> bool {
    is_short(flow) && !has_deadline(flow)
}

macro_rules! metrics {
    ($(machine: $machine:literal, optional: $optional:literal, window: $window:literal, of_flows: $of_flows:literal, from: $from:ident { $($name:ident [$unit:literal] $about:literal = $of:expr;)* })*) => {
        /// All metrics.
        pub const METRICS: &[Metric] = &[
            $($(Metric {
                name: stringify!($name), unit: $unit, about: $about, machine: $machine,
                optional: $optional, window: $window, of_flows: $of_flows, from: From::$from, of: $of,
            },)*)*
        ];
    };
}

metrics! {
    machine: false, optional: false, window: false, of_flows: true, from: Flows {
        flows [""] "flows that began" = |p| Some(p.flows.len() as f64);
        unfinished [""] "flows that had not finished at the end of the run" = |p| Some(p.count(|f| f.finish_ps.is_none()));
    }
    machine: false, optional: true, window: false, of_flows: true, from: Flows {
        not_started [""] "flows that never began because a flow that they wait for did not end; they count in no other metric" = |p| p.not_started.map(|n| n as f64);
    }
    machine: false, optional: false, window: false, of_flows: true, from: Flows {
        mean_fct_s ["s"] "flow completion time, mean" = |p| p.fct.mean();
        p50_fct_s ["s"] "flow completion time, median" = |p| p.fct.quantile(500);
        p99_fct_s ["s"] "flow completion time, 99th percentile" = |p| p.fct.quantile(990);
        p999_fct_s ["s"] "flow completion time, 99.9th percentile" = |p| p.fct.quantile(999);
        max_fct_s ["s"] "flow completion time, largest" = |p| p.fct.quantile(1000);
        mean_fct_short_s ["s"] "flow completion time of flows of at most 100 KB, mean" = |p| p.fct_of(is_short).mean();
        p99_fct_short_s ["s"] "flow completion time of flows of at most 100 KB, 99th percentile" = |p| p.fct_of(is_short).quantile(990);
        mean_fct_long_s ["s"] "flow completion time of flows of more than 100 KB, mean" = |p| p.fct_of(|f| !is_short(f)).mean();
        mean_slowdown [""] "flow completion time over the completion time of the flow alone in the network, mean" = |p| p.slowdown.mean();
        p50_slowdown [""] "flow completion time over the completion time of the flow alone in the network, median" = |p| p.slowdown.quantile(500);
        p95_slowdown [""] "flow completion time over the completion time of the flow alone in the network, 95th percentile" = |p| p.slowdown.quantile(950);
        p99_slowdown [""] "flow completion time over the completion time of the flow alone in the network, 99th percentile" = |p| p.slowdown.quantile(990);
        p999_slowdown [""] "flow completion time over the completion time of the flow alone in the network, 99.9th percentile" = |p| p.slowdown.quantile(999);
        max_slowdown [""] "flow completion time over the completion time of the flow alone in the network, largest" = |p| p.slowdown.quantile(1000);
        mean_slowdown_short [""] "slowdown of flows of at most 100 KB, mean" = |p| p.slowdown_of(is_short).mean();
        p99_slowdown_short [""] "slowdown of flows of at most 100 KB, 99th percentile" = |p| p.slowdown_of(is_short).quantile(990);
        mean_slowdown_long [""] "slowdown of flows of more than 100 KB, mean" = |p| p.slowdown_of(|f| !is_short(f)).mean();
        p99_slowdown_long [""] "slowdown of flows of more than 100 KB, 99th percentile" = |p| p.slowdown_of(|f| !is_short(f)).quantile(990);
        slowdown_drift [""] "change of the mean slowdown from the first tenth of the flows (by start time) to the last tenth, as a share of the mean; from a line fitted to the means of the tenths; null with fewer than 200 flows" = |p| p.drift();
        mean_er [""] "expansion ratio (MERP, Eq. 2), mean" = |p| p.expansion.mean();
        p50_er [""] "expansion ratio, median" = |p| p.expansion.quantile(500);
        p99_er [""] "expansion ratio, 99th percentile" = |p| p.expansion.quantile(990);
        p999_er [""] "expansion ratio, 99.9th percentile" = |p| p.expansion.quantile(999);
        max_er [""] "expansion ratio, largest" = |p| p.expansion.quantile(1000);
        deadline_miss_rate [""] "share of the flows with a deadline that did not finish by it, unfinished flows included" = |p| {
            let with = p.count(|f| f.deadline_ps.is_some());
            (with > 0.0).then(|| p.count(|f| f.deadline_met() == Some(false)) / with)
        };
        terminated [""] "unfinished flows that the sender gave up" = |p| Some(p.count(|f| f.terminated));
        mean_flow_goodput_bps ["bps"] "goodput of a flow, its payload over its completion time, mean" = |p| p.goodput.mean();
        p50_flow_goodput_bps ["bps"] "goodput of a flow, median" = |p| p.goodput.quantile(500);
        jain_index [""] "Jain's fairness index of the goodputs of flows: 1 if all are equal" = |p| jain(&p.goodput.0);
    }
    machine: false, optional: false, window: false, of_flows: false, from: Flows {
        realised_load [""] "wire bytes of first transmissions as a share of the capacity that the load of the scenario refers to" = |p| p.counters.realised_load;
        load_error [""] "realised_load over the load of the scenario, minus 1: the relative error of the load of the drawn flows" = |p| Some(p.counters.realised_load? / p.counters.nominal_load? - 1.0);
        end_s ["s"] "simulated time at the end" = |p| Some(p.end_s());
    }
    machine: false, optional: true, window: false, of_flows: true, from: Flows {
        mean_fct_with_deadline_s ["s"] "flow completion time of flows with a deadline, mean; null unless some flows have a deadline and some have none" = |p| p.mixed_fct_of(has_deadline).mean();
        p99_fct_with_deadline_s ["s"] "flow completion time of flows with a deadline, 99th percentile" = |p| p.mixed_fct_of(has_deadline).quantile(990);
        mean_fct_without_deadline_s ["s"] "flow completion time of flows without a deadline, mean; null unless some flows have a deadline and some have none" = |p| p.mixed_fct_of(|f| !has_deadline(f)).mean();
        p99_fct_without_deadline_s ["s"] "flow completion time of flows without a deadline, 99th percentile" = |p| p.mixed_fct_of(|f| !has_deadline(f)).quantile(990);
        mean_fct_without_deadline_short_s ["s"] "flow completion time of flows of at most 100 KB without a deadline, mean" = |p| p.mixed_fct_of(is_free_short).mean();
        p99_fct_without_deadline_short_s ["s"] "flow completion time of flows of at most 100 KB without a deadline, 99th percentile" = |p| p.mixed_fct_of(is_free_short).quantile(990);
        max_fct_without_deadline_short_s ["s"] "flow completion time of flows of at most 100 KB without a deadline, largest" = |p| p.mixed_fct_of(is_free_short).quantile(1000);
        mean_flow_goodput_without_deadline_bps ["bps"] "goodput of a flow without a deadline, its payload over its completion time, mean" = |p| {
            Sorted::new(p.flows.iter().filter(|f| p.mixed && !has_deadline(f)).filter_map(|f| f.goodput_bps())).mean()
        };
    }
    machine: false, optional: true, window: false, of_flows: true, from: Packets {
        drop_rate_with_deadline [""] "share of the data packets of flows with a deadline that queues dropped, retransmissions included" = |p| {
            let of = |count: fn(&FlowRow) -> u64| p.flows.iter().filter(|f| p.mixed && has_deadline(f)).map(|f| count(f)).sum::<u64>();
            let (drops, sent) = (of(|f| f.drops), of(|f| f.tx_packets));
            (sent > 0).then(|| drops as f64 / sent as f64)
        };
    }
    machine: false, optional: true, window: false, of_flows: true, from: Flows {
        groups [""] "groups of flows that began: incasts, jobs, requests" = |p| (!p.groups.is_empty()).then_some(p.groups.len() as f64);
        unfinished_groups [""] "groups with a flow that began and did not finish; they count in no other metric of groups" = |p| {
            (!p.groups.is_empty()).then(|| p.groups.iter().filter(|group| group.unfinished > 0).count() as f64)
        };
        mean_group_fct_s ["s"] "group completion time, from the first start to the last finish, mean" = |p| p.group_fct().mean();
        p50_group_fct_s ["s"] "group completion time, median" = |p| p.group_fct().quantile(500);
        p99_group_fct_s ["s"] "group completion time, 99th percentile" = |p| p.group_fct().quantile(990);
        max_group_fct_s ["s"] "group completion time, largest" = |p| p.group_fct().quantile(1000);
        groups_in_time [""] "share of the groups with deadlines in which every flow with a deadline finished by it" = |p| {
            Sorted::new(p.groups.iter().filter_map(|group| group.in_time).map(|met| f64::from(u8::from(met)))).mean()
        };
        sum_group_goodput_bps ["bps"] "payload of a group over its completion time, summed over groups" = |p| {
            Sorted::new(p.groups.iter().filter_map(Group::goodput_bps)).0.into_iter().reduce(|sum, bps| sum + bps)
        };
        group_jain_index [""] "Jain's index of the goodputs of the flows of a group, mean over groups" = |p| {
            Sorted::new(p.groups.iter().filter(|group| group.unfinished == 0).filter_map(|group| jain(&group.goodput))).mean()
        };
    }
    machine: false, optional: true, window: false, of_flows: false, from: Flows {
        mean_iteration_s ["s"] "time of an iteration of a job, from the first start to the last end of its tasks, mean over the iterations that ended" = |p| Sorted::of(&p.jobs.iteration_s).mean();
        max_iteration_s ["s"] "time of an iteration of a job, longest" = |p| Sorted::of(&p.jobs.iteration_s).quantile(1000);
        mean_collective_s ["s"] "time of a collective, from the start of its first rank to the end of its last, mean over the collectives that ended" = |p| Sorted::of(&p.jobs.collective_s).mean();
        max_collective_s ["s"] "time of a collective, longest" = |p| Sorted::of(&p.jobs.collective_s).quantile(1000);
        mean_collective_spread_s ["s"] "time from the end of the first rank of a collective to the end of the last, mean" = |p| Sorted::of(&p.jobs.spread_s).mean();
        mean_bus_bandwidth_bps ["bps"] "bus bandwidth of a collective as nccl-tests define it: what each rank has to move at least, over the time of the collective; mean" = |p| Sorted::of(&p.jobs.bus_bandwidth_bps).mean();
        computation_share [""] "share of the time of a job in which a rank computes, mean over the ranks that compute; computation_share, exposed_communication, bubble_share and waiting_share add up to 1" = |p| p.jobs.share(|rank| rank.computation_ps);
        exposed_communication [""] "share of the time of a job in which a rank takes part in a collective or in a message between stages and does not compute, mean over the ranks that compute: the sum of the metrics below by kind, and of collectives of other kinds" = |p| p.jobs.share(RankTime::exposed_ps);
        exposed_tensor [""] "part of exposed_communication in collectives of tensor groups" = |p| p.jobs.share_if_any(|rank| rank.tensor_ps);
        exposed_expert [""] "part of exposed_communication in collectives of expert groups" = |p| p.jobs.share_if_any(|rank| rank.expert_ps);
        exposed_data [""] "part of exposed_communication in collectives of data groups: gradients" = |p| p.jobs.share_if_any(|rank| rank.data_ps);
        exposed_pipeline [""] "part of exposed_communication in messages between stages of a pipeline" = |p| p.jobs.share_if_any(|rank| rank.pipeline_ps);
        bubble_share [""] "share of the time of a job in which a rank is idle before a message between stages, before its first work or after its last work, mean over the ranks that compute" = |p| p.jobs.share(|rank| rank.bubble_ps);
        waiting_share [""] "share of the time of a job in which a rank is idle otherwise, mean over the ranks that compute" = |p| p.jobs.share(|rank| rank.waiting_ps);
    }
    machine: false, optional: false, window: true, of_flows: false, from: Rates {
        goodput_bps ["bps"] "payload that reached receivers in the window, each byte once, over the length of the window: papers on routing call it bisection bandwidth" = |p| p.goodput_bps();
        mean_host_goodput_bps ["bps"] "goodput of a receiving host in the window, mean over the hosts that are the destination of a flow" = |p| p.host_goodput().mean();
        min_host_goodput_bps ["bps"] "goodput of a receiving host in the window, smallest of the hosts that are the destination of a flow" = |p| p.host_goodput().quantile(0);
        mean_utilisation [""] "share of the window spent transmitting, mean over all ports" = |p| Sorted::new(p.utilisation()).mean();
        max_utilisation [""] "share of the window spent transmitting, largest of all ports" = |p| p.utilisation().reduce(f64::max);
    }
    machine: false, optional: false, window: true, of_flows: false, from: Packets {
        mean_queue_bytes ["bytes"] "queue length averaged over the window, mean over all ports" = |p| Sorted::new(p.queue_bytes()).mean();
        max_mean_queue_bytes ["bytes"] "queue length averaged over the window, largest of all ports" = |p| p.queue_bytes().reduce(f64::max);
    }
    machine: false, optional: false, window: true, of_flows: false, from: Rates {
        window_s ["s"] "length of the window" = |p| p.window_ps().map(|ps| ps as f64 / 1e12);
    }
    machine: false, optional: true, window: true, of_flows: false, from: Rates {
        non_blocking_bps ["bps"] "goodput that the same flows would have if only the links of hosts limited them: the sum of their max-min fair rates, minus headers; null unless the same flows send through the whole window" = |p| p.non_blocking_bps();
        non_blocking_share [""] "goodput_bps over non_blocking_bps" = |p| Some(p.goodput_bps()? / p.non_blocking_bps()?);
    }
    machine: false, optional: false, window: false, of_flows: false, from: Packets {
        max_queue_bytes ["bytes"] "largest queue length of any port during the run" = |p| p.ports.iter().map(|port| port.max_queue_bytes as f64).reduce(f64::max);
    }
    machine: false, optional: false, window: false, of_flows: true, from: Packets {
        tx_packets ["packets"] "data packets that senders handed to their NICs, retransmissions included" = |p| p.sum(|f| f.tx_packets);
        retx_packets ["packets"] "data packets with bytes that the sender had sent before" = |p| p.sum(|f| f.retx_packets);
    }
    machine: false, optional: false, window: false, of_flows: false, from: Packets {
        lost_link ["packets"] "packets lost on links (to failures or at random) or because there was no path" = |p| Some(p.counters.lost_packets as f64);
        drops ["packets"] "packets dropped by queues: data, credits, trimmed headers and control packets, of all flows" = |p| p.at_ports(|port| port.drops);
        credit_drops ["packets"] "credits dropped by queues, which is how ExpressPass and its relatives share a link" = |p| p.at_ports(|port| port.credit_drops);
        trimmed_drops ["packets"] "trimmed packets (headers without payload) dropped by queues" = |p| p.at_ports(|port| port.trimmed_drops);
        control_drops ["packets"] "ACKs and other control packets dropped by queues" = |p| p.at_ports(|port| port.control_drops);
        marks ["packets"] "packets marked by queues" = |p| p.at_ports(|port| port.marks);
    }
    machine: false, optional: false, window: false, of_flows: true, from: Packets {
        data_drops ["packets"] "data packets of the flows that count, dropped by queues" = |p| p.sum(|f| f.drops);
        timeouts [""] "retransmission timeouts" = |p| p.sum(|f| u64::from(f.timeouts));
        fast_retransmits [""] "fast retransmissions" = |p| p.sum(|f| u64::from(f.fast_retransmits));
        reordered ["packets"] "data packets that reached the receiver after a later byte of the flow" = |p| p.sum(|f| f.reordered);
        out_of_order ["packets"] "data packets that reached the receiver while bytes before theirs were missing, also if it dropped them" = |p| p.sum(|f| f.out_of_order);
        mean_host_retx_share [""] "share of retransmissions among the data packets of a host, mean over hosts that sent data" = |p| p.retx_share().mean();
        max_host_retx_share [""] "share of retransmissions among the data packets of a host, largest" = |p| p.retx_share().quantile(1000);
        mean_host_gap_packets ["packets"] "out-of-order window of a receiving host: number of packets from the first missing packet to the packet that opens a gap, mean over the gaps of its flows, 0 without gaps; mean over receiving hosts" = |p| p.gap_packets().mean();
        max_host_gap_packets ["packets"] "out-of-order window of a receiving host, largest" = |p| p.gap_packets().quantile(1000);
        mean_host_first_gap_packets ["packets"] "out-of-order window of a receiving host over only the first gap of each flow; mean over receiving hosts" = |p| p.first_gap_packets().mean();
        max_host_first_gap_packets ["packets"] "out-of-order window of a receiving host over only the first gap of each flow, largest" = |p| p.first_gap_packets().quantile(1000);
    }
    machine: false, optional: false, window: false, of_flows: false, from: Rates {
        events [""] "events handled" = |p| Some(p.counters.events as f64);
    }
    machine: false, optional: false, window: false, of_flows: false, from: Packets {
        hops [""] "packets moved over a link" = |p| Some(p.counters.hops as f64);
    }
    machine: false, optional: true, window: false, of_flows: false, from: Rates {
        made_packets ["packets"] "packets that routers at switches and policies at hosts created themselves: feedback, requests, replies" = |p| p.counters.made_packets.map(|n| n as f64);
        made_bytes ["bytes"] "bytes on the wire of the packets in made_packets, when they were created" = |p| p.counters.made_bytes.map(|n| n as f64);
        moves [""] "how often the controller set the path of a flow" = |p| p.counters.moves.map(|n| n as f64);
        lost_at_switches ["packets"] "packets lost at switches that had no next hop for them, which ports do not count; of all flows" = |p| p.counters.fails.then(|| p.counters.no_next_hop.iter().map(|(_, packets)| *packets).sum::<u64>() as f64);
        trimmed ["packets"] "data packets that lost their payload in queues, of all flows" = |p| p.counters.trimmed_packets.map(|n| n as f64);
        paused_share [""] "share of the time from the first start of a flow to the last finish for which neighbours paused a port, its classes added up, mean over all ports" = |p| p.paused_share();
        max_paused_share [""] "share of this time for which the port that was paused longest was paused, its classes added up" = |p| Some(p.counters.max_paused_ps? as f64 / p.counters.traffic_ps.max(1) as f64);
    }
    machine: true, optional: false, window: false, of_flows: false, from: Flows {
        wall_s ["s"] "wall time of the run" = |p| Some(p.wall_s);
    }
    machine: true, optional: false, window: false, of_flows: false, from: Rates {
        events_per_s ["1/s"] "events handled per second of wall time" = |p| p.per_wall_s(p.counters.events);
    }
    machine: true, optional: false, window: false, of_flows: false, from: Packets {
        hops_per_s ["1/s"] "packets moved over a link per second of wall time" = |p| p.per_wall_s(p.counters.hops);
    }
}

/// Finds a metric by its name.
pub fn metric(name: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == name)
}

impl Sorted {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        Sorted(values)
    }
    fn of(values: &[f64]) -> Self {
        Sorted::new(values.iter().copied())
    }
    /// Sums in ascending order, so that the order of the flows does not matter.
    fn mean(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.iter().sum::<f64>() / self.0.len() as f64)
    }
    fn quantile(&self, per_mille: u32) -> Option<f64> {
        quantile(&self.0, per_mille)
    }
}

/// Returns the share of a run, or of the measurement window, that a port spends transmitting.
/// `None` for a run without duration.
pub fn utilisation(busy_ps: u64, end_ps: u64) -> Option<f64> {
    (end_ps > 0).then(|| busy_ps as f64 / end_ps as f64)
}

/// Returns the quantile of values in ascending order by nearest rank: the smallest value such that
/// at least `per_mille` / 1000 of all values are no larger. `None` without values.
pub fn quantile(sorted: &[f64], per_mille: u32) -> Option<f64> {
    assert!(per_mille <= 1000, "{per_mille} per mille is more than all");
    sorted.get(rank(sorted.len(), per_mille) - 1).copied()
}

/// Returns the rank of a quantile among `n` values, from 1.
fn rank(n: usize, per_mille: u32) -> usize {
    (n as u64 * u64::from(per_mille)).div_ceil(1000).max(1) as usize
}

/// Returns how many of `n` values are at least as large as a quantile above the median. With fewer
/// than [`FEW`], the quantile is uncertain.
pub fn rests_on(n: usize, per_mille: u32) -> u64 {
    (n + 1).saturating_sub(rank(n, per_mille)).min(n) as u64
}

/// A quantile with fewer values at or above it than this is uncertain. Figures mark it.
pub const FEW: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sim::outcome::Measured;

    proptest! {
        #[test]
        fn quantile_is_the_least_value_with_enough_at_or_below(mut values in prop::collection::vec(-1e9f64..1e9, 1..60), per_mille in 1u32..=1000) {
            values.sort_unstable_by(f64::total_cmp);
            let got = quantile(&values, per_mille).unwrap();
            let enough = |x: f64| values.iter().filter(|v| **v <= x).count() as u64 * 1000 >= values.len() as u64 * u64::from(per_mille);
            let expected = values.iter().copied().filter(|x| enough(*x)).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn quantiles_at_the_ends() {
        let values: Vec<f64> = (1..=1000).map(f64::from).collect();
        let at = |per_mille| quantile(&values, per_mille).unwrap();
        assert_eq!([at(0), at(1), at(500), at(990), at(999), at(1000)], [1.0, 1.0, 500.0, 990.0, 999.0, 1000.0]);
        assert_eq!((quantile(&[], 500), quantile(&[7.0], 0), quantile(&[7.0], 999)), (None, Some(7.0), Some(7.0)));
    }

    #[test]
    fn a_high_quantile_rests_on_the_values_that_are_no_smaller() {
        assert_eq!([(1000, 990), (1000, 500), (900, 990), (10, 990), (0, 990)].map(|(n, q)| rests_on(n, q)), [11, 501, 10, 1, 0]);
    }

    #[test]
    fn drift_is_the_slope_over_the_run() {
        // The slowdown grows from 1 for the first flow to 3 for the last, with a mean of 2.
        let drift = |of: fn(u64) -> u64, n: u64| {
            let row = |i: u64| FlowRow { start_ps: Some(i), finish_ps: Some(i + of(i)), ideal_fct_ps: 1_000, ..flow(1, None) };
            let rows: Vec<FlowRow> = (0..n).rev().map(row).collect();
            Point::new(&rows, &[], &Counters::default(), 1.0).drift()
        };
        // The means of the first and last tenth are half a tenth away from the ends.
        assert!((drift(|i| 1_000 + 2 * i, 1000).unwrap() - 0.9).abs() < 0.01);
        assert_eq!((drift(|_| 5_000, 1000), drift(|_| 5_000, 199)), (Some(0.0), None));
    }

    #[test]
    fn utilisation_is_a_share_of_the_run() {
        assert_eq!((utilisation(250, 1000), utilisation(0, 0)), (Some(0.25), None));
    }

    fn flow(size_bytes: u64, finish_ps: Option<u64>) -> FlowRow {
        FlowRow {
            measured: true,
            size_bytes,
            size_wire_bytes: size_bytes + 40,
            start_ps: Some(1_000_000_000),
            finish_ps,
            ideal_fct_ps: 1_000_000_000,
            bottleneck_bps: 1_000_000_000,
            drops: 1,
            ..FlowRow::default()
        }
    }

    #[test]
    fn a_flow_that_never_began_counts_only_as_not_started() {
        let never = FlowRow { start_ps: None, waits: true, ..flow(500, None) };
        let later = FlowRow { waits: true, deadline_ps: Some(1_000_000_009), ..flow(1000, Some(2_000_000_000)) };
        let counters = Counters { end_ps: 4_000_000_000, ..Counters::default() };
        let of = |flows: &[FlowRow]| -> Vec<(&str, Option<f64>)> {
            Point::new(flows, &[], &counters, 0.0).metrics().into_iter().map(|(metric, value)| (metric.name, value)).collect()
        };
        let (with, without) = (of(&[flow(1000, None), later.clone(), never]), of(&[flow(1000, None), later]));
        for (&(name, with), (_, without)) in with.iter().zip(without) {
            let expected = if name == "not_started" { (Some(1.0), Some(0.0)) } else { (without, without) };
            assert_eq!((with, without), expected, "{name}");
        }
        let get = |name: &str| with.iter().find(|(n, _)| *n == name).unwrap().1;
        assert_eq!((get("flows"), get("unfinished"), get("deadline_miss_rate")), (Some(2.0), Some(1.0), Some(1.0)));
        assert_eq!(of(&[flow(1000, None)]).iter().find(|(n, _)| *n == "not_started").unwrap().1, None, "no flow waits");
    }

    #[test]
    fn metrics_of_a_small_point() {
        let flows = [
            flow(1000, Some(2_000_000_000)),
            flow(2000, Some(4_000_000_000)),
            flow(9000, None),
            FlowRow { deadline_ps: Some(3), ..flow(1, None) },
        ];
        let ports = [
            PortRow {
                drops: 5,
                data_drops: 1,
                credit_drops: 3,
                control_drops: 1,
                busy_ps: 9_000_000_000,
                max_queue_bytes: 10,
                window_busy_ps: Some(1_000_000_000),
                ..PortRow::default()
            },
            PortRow {
                drops: 2,
                data_drops: 1,
                trimmed_drops: 1,
                window_busy_ps: Some(3_000_000_000),
                window_mean_queue_bytes: Some(8.0),
                ..PortRow::default()
            },
        ];
        let flows = flows.map(|flow| FlowRow { window_delivered_bytes: Some(flow.size_bytes / 4), ..flow });
        // A straggler after the window does not change what is measured in the window.
        let window = Some(Measured { from_ps: 1_000_000_000, until_ps: 5_000_000_000, delivered_bytes: 3000 });
        let counters = Counters {
            events: 100,
            end_ps: 9_000_000_000_000,
            traffic_ps: 900_000_000_000,
            paused_ps: Some(450_000_000_000),
            max_paused_ps: Some(360_000_000_000),
            window,
            ..Counters::default()
        };
        let point = Point::new(&flows, &ports, &counters, 2.0);
        let get = |name: &str| point.metrics().into_iter().find(|(m, _)| m.name == name).unwrap().1;
        assert_eq!((get("flows"), get("unfinished"), get("drops")), (Some(4.0), Some(2.0), Some(7.0)));
        let kinds = ["data_drops", "credit_drops", "trimmed_drops", "control_drops"].map(get);
        // Data drops are counted by flow.
        assert_eq!(kinds, [4.0, 3.0, 1.0, 1.0].map(Some));
        assert_eq!((get("mean_fct_s"), get("p50_fct_s"), get("max_fct_s")), (Some(2e-3), Some(1e-3), Some(3e-3)));
        assert_eq!((get("mean_slowdown"), get("max_slowdown")), (Some(2.0), Some(3.0)));
        assert_eq!(get("max_er"), Some(3e-3 / (2040.0 * 8.0 / 1e9)));
        assert_eq!((get("mean_utilisation"), get("max_utilisation"), get("max_queue_bytes")), (Some(0.5), Some(0.75), Some(10.0)));
        // Half of the time with traffic, over two ports; a timer made the run ten times as long.
        assert_eq!((get("paused_share"), get("max_paused_share"), get("trimmed")), (Some(0.25), Some(0.4), None));
        assert_eq!((get("mean_queue_bytes"), get("max_mean_queue_bytes"), get("window_s")), (Some(8.0), Some(8.0), Some(4e-3)));
        assert_eq!(
            (get("deadline_miss_rate"), get("goodput_bps"), get("realised_load")),
            (Some(1.0), Some(3000.0 * 8.0 / 4e-3), None)
        );
        assert_eq!((get("mean_host_goodput_bps"), get("min_host_goodput_bps")), (Some(6e6), Some(6e6)));
        assert_eq!(get("non_blocking_share"), None, "not the same flows send all the time");
        assert_eq!((get("events_per_s"), get("wall_s")), (Some(50.0), Some(2.0)));
    }

    #[test]
    fn permanent_flows_have_a_share_of_the_goodput_of_a_non_blocking_network() {
        let port = |node, peer, tier| PortRow { node, peer, tier, rate_bps: 1_000_000_000, ..PortRow::default() };
        let ports = [port(0, 2, 0), port(1, 2, 0), port(2, 0, 1), port(2, 1, 1)];
        let size = |flow| FlowRow { size_bytes: 900, size_wire_bytes: 1000, start_ps: Some(0), ..flow };
        let flows = [(0, 1), (1, 0)].map(|(src, dst)| size(FlowRow { src, dst, ..flow(1, None) }));
        let window = Some(Measured { from_ps: 1_000_000_000, until_ps: 3_000_000_000, delivered_bytes: 360_000 });
        let counters = Counters { window, ..Counters::default() };
        let point = Point::new(&flows, &ports, &counters, 1.0);
        let get = |name: &str| point.metrics().into_iter().find(|(m, _)| m.name == name).unwrap().1;
        assert_eq!((get("non_blocking_bps"), get("goodput_bps")), (Some(1.8e9), Some(1.44e9)));
        assert_eq!(get("non_blocking_share"), Some(0.8));
    }

    #[test]
    fn a_group_takes_from_its_first_start_to_its_last_finish() {
        let of = |group, start_ps, finish_ps| FlowRow { group_id: Some(group), start_ps: Some(start_ps), ..flow(1000, finish_ps) };
        let ms = |n: u64| n * 1_000_000_000;
        let flows = [
            of(1, ms(1), Some(ms(3))),
            of(1, ms(2), Some(ms(6))),
            of(2, ms(9), Some(ms(12))),
            of(3, ms(9), None),
            flow(1, Some(ms(99))),
        ];
        let counters = Counters { end_ps: ms(99), ..Counters::default() };
        let point = Point::new(&flows, &[], &counters, 1.0);
        let get = |name: &str| point.metrics().into_iter().find(|(m, _)| m.name == name).unwrap().1;
        assert_eq!((get("groups"), get("unfinished_groups")), (Some(3.0), Some(1.0)));
        assert_eq!((get("mean_group_fct_s"), get("max_group_fct_s")), (Some(4e-3), Some(5e-3)));
        assert_eq!(get("groups_in_time"), None, "no flow has a deadline");
        // 2000 bytes in 5 ms and 1000 in 3 ms.
        assert!((get("sum_group_goodput_bps").unwrap() / (3.2e6 + 8e6 / 3.0) - 1.0).abs() < 1e-12);
        // Goodputs of 4 and 2 Mbit/s: (4 + 2)² / (2 · (16 + 4)) = 0.9. A group of one flow has index 1.
        assert!((get("group_jain_index").unwrap() - 0.95).abs() < 1e-12);
        let none = Point::new(&flows[4..], &[], &counters, 1.0);
        assert!(none.metrics().iter().filter(|(m, _)| m.name.contains("group")).all(|(m, value)| m.optional && value.is_none()));
        assert_eq!((jain(&[3.0, 0.0, 0.0]), jain(&[2.0, 2.0]), jain(&[])), (Some(1.0 / 3.0), Some(1.0), None));
    }

    #[test]
    fn a_group_is_in_time_if_all_its_flows_are() {
        let ms = |n: u64| n * 1_000_000_000;
        let of = |group, finish_ps: Option<u64>, deadline_ps: Option<u64>| FlowRow {
            group_id: Some(group),
            deadline_ps,
            ..flow(1000, finish_ps)
        };
        let flows = [
            of(1, Some(ms(3)), Some(ms(3))),
            of(1, Some(ms(9)), None),
            of(2, Some(ms(4)), Some(ms(3))),
            of(2, Some(ms(2)), Some(ms(3))),
            FlowRow { terminated: true, ..of(3, None, Some(ms(9))) },
            of(4, Some(ms(3)), None),
        ];
        let counters = Counters::default();
        let point = Point::new(&flows, &[], &counters, 1.0);
        let get = |name: &str| point.metrics().into_iter().find(|(m, _)| m.name == name).unwrap().1;
        assert_eq!(get("groups_in_time"), Some(1.0 / 3.0));
        // A flow that was given up counts as missed.
        assert_eq!(get("deadline_miss_rate"), Some(0.5));
    }

    #[test]
    fn flows_with_and_without_a_deadline_have_metrics_of_their_own() {
        let ms = |n: u64| n * 1_000_000_000;
        let with = |finish, drops, tx_packets| FlowRow { deadline_ps: Some(ms(50)), drops, tx_packets, ..flow(200_000, finish) };
        let flows = [
            with(Some(ms(5)), 1, 10),
            with(Some(ms(7)), 2, 10),
            with(None, 2, 20),
            flow(100_000, Some(ms(3))),
            flow(90_000, Some(ms(5))),
            flow(1_000_000, Some(ms(9))),
            flow(1_000_000, None),
        ];
        let counters = Counters::default();
        let of = |flows: &[FlowRow], name: &str| {
            Point::new(flows, &[], &counters, 1.0).metrics().into_iter().find(|(m, _)| m.name == name).unwrap().1
        };
        for (name, value) in [
            ("mean_fct_with_deadline_s", 5e-3),
            ("p99_fct_with_deadline_s", 6e-3),
            ("mean_fct_without_deadline_s", 14e-3 / 3.0),
            ("p99_fct_without_deadline_s", 8e-3),
            ("mean_fct_without_deadline_short_s", 3e-3),
            ("p99_fct_without_deadline_short_s", 4e-3),
            ("max_fct_without_deadline_short_s", 4e-3),
            ("mean_flow_goodput_without_deadline_bps", (8e5 / 2e-3 + 7.2e5 / 4e-3 + 8e6 / 8e-3) / 3.0),
            ("drop_rate_with_deadline", 0.125),
        ] {
            assert!((of(&flows, name).unwrap() / value - 1.0).abs() < 1e-12, "{name}: {:?}", of(&flows, name));
            for one_kind in [&flows[..3], &flows[3..]] {
                assert_eq!(of(one_kind, name), None, "{name}: no row if all flows are of one kind");
            }
        }
    }

    /// Host 1 sends two flows to host 2 and one to host 3, which sees no gap. Host 4 sends nothing.
    #[test]
    fn disorder_is_that_of_hosts() {
        let of = |src, dst, [tx_packets, retx_packets]: [u64; 2], [gaps, gap_packets, first_gap_packets]: [u64; 3]| FlowRow {
            src,
            dst,
            tx_packets,
            retx_packets,
            gaps,
            gap_packets,
            first_gap_packets,
            ..flow(1000, None)
        };
        let flows = [
            of(1, 2, [90, 9], [3, 12, 6]),
            of(1, 2, [100, 1], [1, 2, 2]),
            of(1, 3, [10, 0], [0, 0, 0]),
            of(4, 3, [0, 0], [0, 0, 0]),
            of(5, 3, [50, 10], [0, 0, 0]),
        ];
        let counters = Counters::default();
        let values: BTreeMap<&str, Option<f64>> =
            Point::new(&flows, &[], &counters, 0.0).metrics().into_iter().map(|(metric, value)| (metric.name, value)).collect();
        let means = ["mean_host_retx_share", "mean_host_gap_packets", "mean_host_first_gap_packets"].map(|name| values[name]);
        let most = ["max_host_retx_share", "max_host_gap_packets", "max_host_first_gap_packets"].map(|name| values[name]);
        assert_eq!(most, [0.2, 3.5, 4.0].map(Some));
        assert_eq!(means, [(0.05 + 0.2) / 2.0, 3.5 / 2.0, 4.0 / 2.0].map(Some));
        assert_eq!(flows.map(|flow| flow.mean_gap_packets()), [Some(4.0), Some(2.0), None, None, None]);
    }

    #[test]
    fn a_point_without_finished_flows_has_no_times() {
        let counters = Counters::default();
        let point = Point::new(&[], &[], &counters, 0.0);
        for (metric, value) in point.metrics() {
            let counts = ["flows", "unfinished", "end_s", "events", "hops", "wall_s"].contains(&metric.name);
            let sums = [
                "lost_link",
                "drops",
                "data_drops",
                "credit_drops",
                "trimmed_drops",
                "control_drops",
                "marks",
                "tx_packets",
                "retx_packets",
                "timeouts",
                "fast_retransmits",
                "reordered",
                "out_of_order",
                "terminated",
            ]
            .contains(&metric.name);
            assert_eq!(value.is_some(), counts || sums, "{}: {value:?}", metric.name);
        }
    }
}
