//! Start of a run in the steady state: the flows that are open when a run begins, and how long the
//! load continues after the flows that count.
//!
//! A network that is empty when the first flow starts takes long to fill: at load 0.8 and with
//! heavy-tailed sizes, some hundred flows of every host come and go before the means settle, and
//! the last flows finish in a network that drains. Therefore open loops have additional flows
//! before and after the flows of the scenario. The flows before are moved as fluids with max-min
//! fair rates, over the same links, for a few relaxation times; the bytes of them that remain when
//! the first flow of the scenario may start are sent by the system from then on. The system also
//! sends the flows after, for as long as most flows last. These additional flows do not count in
//! any metric of flows.
//!
//! Source: D. Kelton, "Random initialization methods in simulation", IIE Transactions 21 (4), 1989:
//! an initial state drawn at random from an approximation of the steady state leaves less bias than
//! an empty initial state whose first output is discarded. The number of bytes that wait at a link
//! does not depend on the order of service, so that the state with fair shares is the state of
//! every system that keeps its links busy. The relaxation time is that of queues in heavy traffic:
//! W. Whitt, "Planning queueing simulations", Management Science 35 (11), 1989.
//!
//! Model: a fluid flow takes one shortest path, drawn at random. It sends its bytes on the wire,
//! without handshake and without losses.
//!
//! Assumed: [`RELAXATIONS`], [`MOST_FLOWS`], [`LASTING`], [`MOST_AFTER`], [`STEP`]; a run starts
//! in an empty network if a link is offered more than [`MOST_LOAD`]. Flows that are open at the
//! start begin within the first [`SPREAD`] round trips, so that they do not all send at the same
//! time.

use crate::plan::offered;
use crate::plan::spec::RunSpec;
use crate::plan::state::Steady;
use crate::workload::{Drawn, Outside, Workload as _};
use base::{Dur, FlowId, LinkId, Rng, Streams, Time};
use fabric::fluid::Flows;
use fabric::routes::Routes;

/// Duration of the fluid simulation, in relaxation times.
const RELAXATIONS: f64 = 3.0;
/// Maximum number of fluid flows, unless the scenario has more flows: a second or two of computation.
const MOST_FLOWS: f64 = 100_000.0;
/// The load continues for the time within which this share of the fluid flows, in thousandths,
/// finish.
const LASTING: usize = 950;
/// Maximum number of flows after those of the scenario, as a multiple of their number.
const MOST_AFTER: f64 = 2.0;
/// Maximum load of a link for which a run can reach a steady state.
const MOST_LOAD: f64 = 0.97;
/// Minimum time between computations of the fluid rates, as a share of the transmission time of the
/// mean flow on the busiest link.
const STEP: f64 = 0.02;
/// Time in which the open flows start, in longest round trips of the network.
const SPREAD: u64 = 10;

/// The load that open loops offer the link that they load most, and the relaxation time of the
/// network.
struct Offer {
    load: f64,
    /// The relaxation time in seconds.
    relaxation_s: f64,
    /// The transmission time of the mean flow on that link, in seconds.
    mean_s: f64,
    flows_per_s: f64,
}

/// Returns the offer of the open loops of a run, or `None` if there are no open loops or the
/// network is too large.
fn offer(spec: &RunSpec, routes: &Routes) -> Option<Offer> {
    let mut rates = vec![0.0; spec.net.links().len()];
    let (mut flows_per_s, mut bytes, mut squares) = (0.0, 0.0, 0.0);
    for index in open_loops(spec) {
        let env = spec.env(index);
        let machine = spec.workloads[index].1.workload.build(&env);
        let traffic = machine.traffic(&env)?;
        let own = offered::by_link(&spec.net, routes, &traffic)?;
        rates.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        let (mean, square) = moments(&machine.offered(&env).sizes, machine.flows());
        let per_s = traffic.bps / 8.0 / mean;
        (flows_per_s, bytes, squares) = (flows_per_s + per_s, bytes + per_s * mean, squares + per_s * square);
    }
    let loads = rates.iter().zip(spec.net.links()).map(|(bps, link)| (bps / link.rate.bps() as f64, link.rate.bps() as f64));
    let (load, bps) = loads.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(load, _)| *load > 0.0)?;
    // Twice the mean service time of a flow, weighted by its size, over the square of the unused
    // share of the link: exact for M/M/1 in heavy traffic.
    let relaxation_s = 2.0 * (squares / bytes) * 8.0 / bps / (1.0 - load).powi(2);
    let mean_s = bytes / flows_per_s * 8.0 / bps;
    Some(Offer { load, relaxation_s, mean_s, flows_per_s })
}

/// Returns the first two moments of a law given as points, without the largest sizes, which `flows`
/// flows most likely do not have.
fn moments(points: &[(u64, f64)], flows: u64) -> (f64, f64) {
    let most = 1.0 - 1.0 / flows.max(2) as f64;
    let (mut mean, mut square, mut before) = (0.0, 0.0, (points.first().map_or(1, |point| point.0), 0.0));
    for &(size, up_to) in points {
        let (share, a, b) = (up_to.min(most) - before.1, before.0 as f64, size as f64);
        if share > 0.0 {
            (mean, square) = (mean + share * (a + b) / 2.0, square + share * (a * a + a * b + b * b) / 3.0);
        }
        before = (size, up_to);
    }
    (mean.max(1.0), square.max(1.0))
}

/// Returns the workloads that are open loops and could continue for ever.
pub(crate) fn open_loops(spec: &RunSpec) -> Vec<usize> {
    let nothing = Outside { name: "workload/none", from: Time::ZERO, until: Time::ZERO };
    let is_open = |index: &usize| matches!(arrivals(spec, *index, &mut Streams::new(spec.seed), &nothing), Ok(Some(_)));
    (0..spec.workloads.len()).filter(is_open).collect()
}

/// Draws the flows of a workload in a time outside its own arrivals. Returns `None` if it is not an
/// open loop.
pub(crate) fn arrivals(spec: &RunSpec, index: usize, streams: &mut Streams, when: &Outside) -> Result<Option<Vec<Drawn>>, String> {
    let (name, traffic) = &spec.workloads[index];
    let env = spec.env(index);
    traffic.workload.build(&env).arrivals(&env, streams, when).map_err(|e| format!("workload `{name}`: {e}"))
}

/// Computes the steady state of a run. Returns `None` if no workload is an open loop, or if there
/// is no steady state.
pub(crate) fn state(spec: &RunSpec, routes: &Routes) -> Result<Option<Steady>, String> {
    let Some(offer) = offer(spec, routes).filter(|offer| offer.load <= MOST_LOAD) else { return Ok(None) };
    let own: u64 = open_loops(spec).iter().map(|&index| spec.workloads[index].1.workload.build(&spec.env(index)).flows()).sum();
    let wanted = offer.relaxation_s * RELAXATIONS;
    let most = MOST_FLOWS.max(own as f64) / offer.flows_per_s;
    let until = Time((wanted.min(most) * 1e12) as u64);
    let mut streams = Streams::new(spec.seed);
    let mut all: Vec<(usize, Drawn)> = Vec::new();
    for index in open_loops(spec) {
        let own = arrivals(spec, index, &mut streams, &Outside { name: "workload/before", from: Time::ZERO, until })?;
        all.extend(own.unwrap_or_default().into_iter().map(|flow| (index, flow)));
    }
    all.sort_by_key(|(index, flow)| (flow.start, *index));
    let mut rng = streams.take("workload/before/paths", &[]);
    let step = Dur((offer.mean_s * STEP * 1e12) as u64);
    let Moved { left, mut lasted } = moved(spec, routes, &all, (until, step), &mut rng);
    lasted.sort_unstable();
    let lasting = lasted.get(lasted.len() * LASTING / 1000).copied().unwrap_or_default();
    let lasting = lasting.min(Dur((MOST_AFTER * own as f64 / offer.flows_per_s * 1e12) as u64));
    let spread = routes.max_rtt(&spec.net, spec.mtu_bytes.into(), spec.header_bytes.into()).0.saturating_mul(SPREAD);
    let mut under_way = vec![Vec::new(); spec.workloads.len()];
    for (flow, share) in left {
        let (index, flow) = &all[flow.index()];
        // At least the last byte remains.
        let size_bytes = ((flow.size_bytes as f64 * share) as u64).clamp(1, flow.size_bytes);
        let start = Time(rng.below(spread.max(1)));
        under_way[*index].push(Drawn { size_bytes, start, ..flow.clone() });
    }
    Ok(Some(Steady { under_way, lasting }))
}

/// The result of the fluid simulation.
struct Moved {
    /// The flows that are open at the end, each with the share that remains.
    left: Vec<(FlowId, f64)>,
    /// Durations of the flows that started in the second half and have finished.
    lasted: Vec<Dur>,
}

/// Moves flows as fluids, from an empty network until a time. Rates are computed at most once in a
/// step.
fn moved(spec: &RunSpec, routes: &Routes, all: &[(usize, Drawn)], (until, step): (Time, Dur), rng: &mut Rng) -> Moved {
    let mut fluid = Flows::new(&spec.net, step);
    let mut coming = (0..).map(FlowId).zip(all).peekable();
    let mut lasted = Vec::new();
    loop {
        let arrival = coming.peek().map_or(Time::MAX, |(_, (_, flow))| flow.start);
        let now = arrival.min(fluid.next_end()).min(fluid.solves_at());
        if now >= until {
            break;
        }
        while let Some(flow) = fluid.pop_end(now) {
            fluid.finish(flow);
            let start = all[flow.index()].1.start;
            if start.0 > until.0 / 2 {
                lasted.push(now.since(start));
            }
        }
        while let Some((id, (_, flow))) = coming.next_if(|(_, (_, flow))| flow.start <= now) {
            fluid.start(id, spec.packets().wire(flow.size_bytes), now);
            if let Some(path) = routes.random_path(&spec.net, flow.src, flow.dst, rng) {
                let path: Vec<(LinkId, f64)> = path.into_iter().map(|link| (link, 1.0)).collect();
                fluid.set_paths(id, &[(&path, 1.0)], now);
            }
        }
        if fluid.solves_at() <= now {
            fluid.solve(now);
        }
    }
    fluid.settle_all(until);
    let left = fluid.open().into_iter().map(|flow| (flow, 1.0 - fluid.share_sent(flow).unwrap_or(1.0)));
    Moved { left: left.filter(|(_, share)| *share > 0.0).collect(), lasted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::spec::{Options, Plan};

    fn plan(workload: &str, more: &str) -> Plan {
        let text = format!(
            "{more}\n[topology]\nkind = 'star'\nhosts = 4\nrate = '10Gbps'\ndelay = '1ns'\n[workload.web]\nkind = 'poisson'\nload_ref = '10Gbps'\n\
             src = 'h0'\ndst = 'h1'\n{workload}\n[[system]]\ntransport = 'newreno'\n"
        );
        crate::load(&text, "t.toml", ".".as_ref(), &Options::default()).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Compares with M/G/1 processor sharing: the number of open flows, which does not depend on
    /// the law of sizes, and the bytes that remain of all of them.
    #[test]
    fn open_flows_are_those_of_theory() {
        for (law, ratio) in [("size = 'exponential'\nmean = '100KB'", 2.0), ("size = 'fixed'\nmean = '100KB'", 1.0)] {
            const SEEDS: u32 = 600;
            let seeds: Vec<String> = (1..=SEEDS).map(|seed| seed.to_string()).collect();
            let plan = plan(&format!("flows = 1000\nload = 0.8\n{law}"), &format!("seed = [{}]", seeds.join(", ")));
            let (mut count, mut bytes) = (0.0, 0.0);
            for point in &plan.points {
                let own: Vec<Drawn> = state(&point.run, &Routes::new(&point.run.net, &[])).unwrap().unwrap().under_way.concat();
                count += own.len() as f64 / f64::from(SEEDS);
                bytes += own.iter().map(|flow| flow.size_bytes as f64).sum::<f64>() / f64::from(SEEDS);
            }
            // load / (1 - load) flows; load E[S^2] / (2 E[S] (1 - load)) bytes (Pollaczek, Khinchine). Four standard errors.
            let (flows, work) = (4.0, 0.8 / 0.2 * ratio * 100e3 / 2.0);
            assert!((count / flows - 1.0).abs() < 0.17, "{law}: {count} flows");
            assert!((bytes / work - 1.0).abs() < 0.17, "{law}: {bytes} bytes, not {work}");
        }
    }

    #[test]
    fn the_flows_of_the_scenario_are_those_without_a_steady_state() {
        let workload = "flows = 300\nload = 0.7\nsize = 'exponential'\nmean = '100KB'";
        let flows = |measure: &str| plan(workload, &format!("[measure]\n{measure}")).points[0].run.flows().unwrap();
        let (all, steady) = (flows("flows = 'all'"), flows(""));
        assert!(all.len() == 300 && all.iter().all(|flow| flow.measured) && steady.len() > 302);
        let own: Vec<_> = steady.iter().filter(|flow| flow.measured).collect();
        let same = |(a, b): (&&proto::Flow, &proto::Flow)| {
            (a.start, a.src, a.dst, a.size_bytes, a.src_port) == (b.start, b.src, b.dst, b.size_bytes, b.src_port)
        };
        assert!(own.len() == 300 && own.iter().zip(&all).all(same));
        let last = own[299].start;
        let after = steady.iter().filter(|flow| flow.start > last).count();
        assert!(
            (1..=600).contains(&after)
                && steady.iter().all(|flow| flow.measured || flow.start > last || flow.start.0 < 1_000_000_000)
        );
        // The measurement window covers the flows of the scenario only.
        let window = |measure: &str| {
            let plan = plan(workload, &format!("[measure]\n{measure}"));
            plan.points[0].run.window(&plan.points[0].run.traffic().unwrap())
        };
        assert_eq!(window(""), window("flows = 'all'"));
    }

    #[test]
    fn flows_of_the_window_count_where_one_is_given() {
        let flows = |measure: &str| {
            let plan = plan("flows = 100\nload = 0.7", &format!("[measure]\n{measure}"));
            plan.points[0].run.flows().unwrap().iter().map(|flow| flow.measured).collect::<Vec<_>>()
        };
        let found = flows("from = '20%'\nuntil = '90%'");
        assert!(found.len() == 100 && (0..100).all(|i| found[i] == (19..90).contains(&i)), "{found:?}");
        assert!(flows("from = '20%'\nflows = 'all'").iter().all(|measured| *measured));
    }

    #[test]
    fn a_run_with_an_end_or_without_a_steady_state_starts_empty() {
        for (load, more) in [("0.7", "end = '1s'"), ("0.99", ""), ("1.5", "")] {
            let plan = plan(&format!("flows = 50\nload = {load}"), more);
            assert_eq!(plan.points[0].run.flows().unwrap().len(), 50, "{load} {more}");
        }
        let later = plan("flows = 50\nload = 0.7\nstart = '1ms'", "");
        assert_eq!(later.points[0].run.flows().unwrap().len(), 50);
    }

    #[test]
    fn a_steady_state_that_is_asked_for_needs_an_open_loop() {
        let text = "[measure]\nflows = 'steady'\n[topology]\nkind = 'star'\n[workload.burst]\nkind = 'incast'\nsenders = 3\nsize = '20KB'\n\
                    [[system]]\ntransport = 'newreno'\n";
        let refused = crate::load(text, "t.toml", ".".as_ref(), &Options::default()).unwrap_err().to_string();
        assert!(
            refused.contains("no workload of `t` can continue its load for ever") && refused.contains("t.toml:2:1"),
            "{refused}"
        );
        assert!(crate::load(&text.replace("steady", "auto"), "t.toml", ".".as_ref(), &Options::default()).is_ok());
    }

    #[test]
    fn the_moments_of_a_law_in_points() {
        // Uniform between 0 and 10: mean 5, second moment 100 / 3, without the largest thousandth.
        let (mean, square) = moments(&[(0, 0.0), (10, 1.0)], 1000);
        assert!((mean - 5.0).abs() < 0.02 && (square - 100.0 / 3.0).abs() < 0.2, "{mean} {square}");
        assert_eq!(moments(&[(7, 1.0)], 1_000_000_000).0.round(), 7.0);
    }
}
