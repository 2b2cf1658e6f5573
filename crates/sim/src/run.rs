//! One run: from a point of a plan to its outcome.

use crate::actors::deadlock::Deadlocks;
use crate::actors::global::Global as _;
use crate::actors::window::{Reading, WindowActor};
use crate::actors::{self, Actor};
use crate::audit;
use crate::build::build;
use crate::counted::port_counters;
use crate::node::share::PartShare;
use crate::node::world::Carried;
use crate::order::EventOrder;
use crate::outcome::{Outcome, PacketRow, StopReason};
use crate::parallel::cut::{Cut, Threads, Uncut};
use crate::parallel::part::Part;
use crate::parallel::whole::Whole;
use crate::probe::{Off, PacketTrace, Probe, Seen};
use crate::progress::{Continue, Progress, RunError};
use crate::rows;
use crate::start::Beginning;
use crate::timeline::Timeline;
use crate::untouched::untouched;
use base::{Dur, Time};
use engine::{Driver, Engine, Pause};
use plugin::library::Failure;
use proto::Kind;
use scenario::{RunSpec, Unloaded};
use std::mem::take;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

/// Events between two calls of the watcher: some hundredths of a second.
const SLICE: u64 = 1 << 20;

/// Runs `spec` to its end. Calls `control` about every million events; the run stops when `control`
/// returns [`Continue::No`].
pub fn run(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    if let Some(ideal) = spec.ideal {
        return crate::fluid::point::run(spec, ideal, control);
    }
    if spec.engine.is_flow() {
        return crate::flow_engine::run(spec, control);
    }
    run_on::<Engine<Carried>>(spec, control)
}

/// Runs `spec` on several threads, if `threads` and the network allow it, with its events in a given order. The
/// outcome is that of [`run`] except for [`Outcome::threads`], [`Outcome::uncut`],
/// [`Outcome::order`] and [`Outcome::not_windows`].
pub fn run_threads(spec: &RunSpec, threads: Threads, order: EventOrder, control: Watcher<'_>) -> Result<Outcome, RunError> {
    match Cut::choose(spec, threads) {
        Ok(cut) => {
            let if_it_pays = matches!(threads, Threads::UpTo(_));
            run_as(spec, Parts { cut: &Arc::new(cut), threads: usize::MAX, if_it_pays, order }, control)
        }
        Err(Uncut::NoPackets) => Ok(Outcome { uncut: Some(Uncut::NoPackets), ..run(spec, control)? }),
        Err(why) => Ok(Outcome { uncut: Some(why), ..run_in(order, spec, control)? }),
    }
}

/// Runs `spec` in the parts of a cut, on at most `threads` threads, with the events of each part in a given order.
pub fn run_cut(
    spec: &RunSpec,
    cut: &Arc<Cut>,
    threads: usize,
    order: EventOrder,
    control: Watcher<'_>,
) -> Result<Outcome, RunError> {
    run_as(spec, Parts { cut, threads, if_it_pays: false, order }, control)
}

/// The parts in which a run is to be simulated.
struct Parts<'a> {
    cut: &'a Arc<Cut>,
    /// Maximum number of threads.
    threads: usize,
    /// Cut the run only if this [makes it faster](Cut::pays).
    if_it_pays: bool,
    /// The order of the events of each part.
    order: EventOrder,
}

fn run_as(spec: &RunSpec, parts: Parts<'_>, control: Watcher<'_>) -> Result<Outcome, RunError> {
    match trace(spec) {
        Some(packets) => Ok(with_packets(spec, run_parts(spec, parts, packets, control)?)),
        None => Ok(run_parts(spec, parts, Off, control)?.0),
    }
}

/// Runs `spec` by packets on one thread, with its events in a given order.
pub fn run_in(order: EventOrder, spec: &RunSpec, control: Watcher<'_>) -> Result<Outcome, RunError> {
    let beginning = Beginning { order, ..Beginning::of(spec)? };
    let not_windows = order.choose(spec, &beginning.flows).err().filter(|_| order == EventOrder::Windows);
    let outcome = match trace(spec) {
        Some(packets) => with_packets(spec, run_whole::<Engine<Carried>, _>(spec, beginning, packets, control)?),
        None => run_whole::<Engine<Carried>, _>(spec, beginning, Off, control)?.0,
    };
    Ok(Outcome { not_windows, ..outcome })
}

/// Runs `spec` on the engine `E`, for tests that compare engines.
pub fn run_on<E: Driver<Carried>>(spec: &RunSpec, control: Watcher<'_>) -> Result<Outcome, RunError> {
    match trace(spec) {
        Some(packets) => Ok(with_packets(spec, run_with::<E, _>(spec, packets, control)?)),
        None => Ok(run_with::<E, _>(spec, Off, control)?.0),
    }
}

/// Returns the packet trace that a scenario asks for, if it asks for any.
fn trace(spec: &RunSpec) -> Option<PacketTrace> {
    spec.sample.as_ref().filter(|sample| sample.packets).map(PacketTrace::sampled)
}

/// Adds the rows of a trace to an outcome.
fn with_packets(spec: &RunSpec, (outcome, packets): (Outcome, PacketTrace)) -> Outcome {
    Outcome { packets: packet_rows(spec, packets.sorted()), ..outcome }
}

/// Converts a trace into rows.
pub(crate) fn packet_rows(spec: &RunSpec, seen: Vec<Seen>) -> Vec<PacketRow> {
    let policy = spec.system.policy.as_ref().map(|policy| (Kind::POLICY, policy.meta()));
    let entries = [(Kind::OWN, spec.system.transport.meta()), (Kind::ROUTER, spec.system.router.meta())];
    let entries: Vec<_> = entries.into_iter().chain(policy).collect();
    let row = |seen: Seen| PacketRow {
        time_ps: seen.start.0,
        end_ps: match seen.dropped {
            true => seen.start.0,
            false => (seen.start + spec.net.link(seen.link).rate.tx_time(seen.packet.wire_len.into())).min(seen.until).0,
        },
        port_id: seen.link.0,
        kind: seen.packet.kind.name(&entries),
        flow_id: seen.packet.flow.0,
        offset: seen.packet.offset,
        size_bytes: u32::from(seen.packet.wire_len),
        class: seen.packet.prio,
        dropped: seen.dropped,
    };
    seen.into_iter().map(row).collect()
}

type Watcher<'a> = &'a mut dyn FnMut(Progress) -> Continue;

/// Runs `spec` with a probe. Returns the outcome and the probe.
pub(crate) fn run_with<E: Driver<Carried>, P: Probe>(
    spec: &RunSpec,
    probe: P,
    control: Watcher<'_>,
) -> Result<(Outcome, P), RunError> {
    run_whole::<E, P>(spec, Beginning::of(spec)?, probe, control)
}

fn run_whole<E: Driver<Carried>, P: Probe>(
    spec: &RunSpec,
    mut beginning: Beginning,
    probe: P,
    control: Watcher<'_>,
) -> Result<(Outcome, P), RunError> {
    let (alone, healthy) = (take(&mut beginning.alone), Arc::clone(&beginning.healthy));
    let (joins, tasks) = (take(&mut beginning.joins), take(&mut beginning.tasks));
    let timeline = Timeline { spec, healthy: &healthy, joins: &joins, tasks: &tasks };
    let (outcome, probe) = caught(|| {
        let (part, actors) = build::<E, P>(spec, beginning, None, probe);
        drive(&timeline, Whole::new(part), actors, &alone, control)
    })?;
    Ok((complete(&timeline, outcome)?, probe))
}

/// Runs `spec` in parts. Each part has a copy of the probe.
fn run_parts<P: Probe + Clone + Send + 'static>(
    spec: &RunSpec,
    Parts { cut, threads, if_it_pays, order }: Parts<'_>,
    probe: P,
    control: Watcher<'_>,
) -> Result<(Outcome, P), RunError> {
    let mut beginning = Beginning { order, ..Beginning::of(spec)? };
    let uncut = if cut.forbids(&beginning.flows) {
        Some(Uncut::Gives)
    } else if if_it_pays && !cut.pays(spec, &beginning.flows, &beginning.alone) {
        Some(Uncut::Small)
    } else {
        None
    };
    if uncut.is_some() {
        let (outcome, probe) = run_whole::<Engine<Carried>, P>(spec, beginning, probe, control)?;
        return Ok((Outcome { uncut, ..outcome }, probe));
    }
    let (alone, healthy) = (take(&mut beginning.alone), Arc::clone(&beginning.healthy));
    let (joins, tasks) = (take(&mut beginning.joins), take(&mut beginning.tasks));
    let timeline = Timeline { spec, healthy: &healthy, joins: &joins, tasks: &tasks };
    let closes = beginning.closing().choose(beginning.flows.len());
    let part = |number: usize, beginning: Beginning, probe: P| {
        let owners = (Arc::clone(&cut.owners), cut.window);
        let share = PartShare::new(owners, number, &spec.net, (&beginning.flows, &closes), spec.mtu_bytes.into());
        build(spec, beginning, Some(share), probe)
    };
    let (outcome, probe) = caught(|| {
        let (parts, actors) = std::thread::scope(|scope| {
            let others: Vec<_> = (1..cut.crossing.len())
                .map(|number| {
                    let (beginning, probe) = (beginning.clone(), probe.clone());
                    scope.spawn(move || part(number, beginning, probe).0)
                })
                .collect();
            let (first, actors) = part(0, beginning, probe);
            let others = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            (std::iter::once(first).chain(others).collect(), actors)
        });
        drive(&timeline, Whole::of(parts, cut, threads), actors, &alone, control)
    })?;
    let outcome = complete(&timeline, outcome)?;
    Ok((Outcome { threads: cut.crossing.len().min(threads) as u32, ..outcome }, probe))
}

/// Adds the tasks of programs, the values chosen for `auto`, and the failures that touched no traffic to the outcome of a run.
fn complete(timeline: &Timeline<'_>, outcome: Outcome) -> Result<Outcome, RunError> {
    let Timeline { spec, healthy, .. } = *timeline;
    let mut outcome = timeline.add(outcome);
    outcome.chosen = caught(|| Ok(spec.envs(healthy).chosen(&spec.system.transport, spec.system.policy.as_ref())))?;
    outcome.untouched = untouched(spec, healthy, &outcome.flows, &outcome.ports, outcome.counters.end_ps);
    Ok(outcome)
}

/// Builds and runs the parts of a run. The failure of a plug-in ends the run with an error.
fn caught<T>(run: impl FnOnce() -> Result<T, RunError>) -> Result<T, RunError> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| match panic.downcast::<Failure>() {
        Ok(failure) => Err(RunError::Plugin(failure.to_string())),
        Err(panic) => resume_unwind(panic),
    })
}

/// Runs all parts to the end and collects the outcome.
fn drive<E: Driver<Carried>, P: Probe>(
    timeline: &Timeline<'_>,
    mut whole: Whole<E, P>,
    mut actors: Vec<Actor>,
    alone: &[Unloaded],
    control: Watcher<'_>,
) -> Result<(Outcome, P), RunError> {
    let spec = timeline.spec;
    for actor in &mut actors {
        if let Actor::Failures(failures) = actor {
            failures.notify_router(&mut whole);
        }
    }
    let end = spec.end.unwrap_or(Time::MAX);
    let (mut complete, mut stop_reason) = (true, StopReason::Finished);
    let mut asked = 0;
    while !whole.all_done() {
        let mut pause = whole.run(actors::next(&actors), end, SLICE);
        if pause == Pause::Action {
            actors::act(&mut actors, &mut whole);
            if actors::deadlocks(&actors).is_some_and(Deadlocks::ends_the_run) {
                stop_reason = StopReason::Deadlock;
                break;
            }
            if whole.events() - asked < SLICE {
                continue;
            }
            pause = Pause::Budget;
        }
        asked = whole.events();
        let progress = Progress { now: whole.now(), finished: whole.finished(), flows: whole.flows().len(), events: asked };
        match pause {
            // The last flow of the window has finished, or all flows are done. The sender of the last flow may
            // not have received its last ACK yet.
            Pause::Stopped => {
                let open = |window: &&mut WindowActor| window.end_is_open();
                if let Some(window) = actors::window(&mut actors).filter(open) {
                    let tasks = timeline.end(whole.flows(), |flow| whole.record(flow).finish).map(|last| last.min(end));
                    window.end_at(whole.now(), tasks);
                    if window.next() <= whole.now() {
                        window.act(&mut whole);
                    }
                }
            }
            Pause::Action => {}
            Pause::End => {
                stop_reason = StopReason::End;
                break;
            }
            Pause::Budget if control(progress) == Continue::No => {
                (complete, stop_reason) = (false, StopReason::Stopped);
                break;
            }
            Pause::Budget => {}
        }
    }
    if let Some(window) = actors::window(&mut actors) {
        window.close(whole.now(), stop_reason == StopReason::Finished, || Reading::take(&mut whole));
    }
    let order = if whole.uses_windows() { EventOrder::Windows } else { EventOrder::Tree };
    let now = whole.now();
    // Ports are served lazily, so services may be due at ports that nothing has read since. Services that
    // are due exactly at the end do not happen any more.
    let until = if matches!(stop_reason, StopReason::End | StopReason::Deadlock) { now.before(Dur(1)) } else { now };
    for link in whole.links() {
        let Part { world, engine } = whole.at_port(link);
        engine.catch_up(world, link, until);
    }
    // The audit empties the ports.
    let ports = rows::port_rows(spec, &mut whole, &mut actors, until);
    audit::check(&mut whole);
    // The rows of a large run are as large as the state of its hosts, which they do not need.
    whole.parts.iter_mut().for_each(|part| part.world.hosts = Vec::new());
    let flows = rows::flow_rows(spec, &whole, alone, actors::window(&mut actors));
    let mut counters = rows::counters(&whole, &ports, &flows, spec.realised_load(whole.flows()));
    counters.nominal_load = spec.nominal_load();
    let makes = |meta: &base::registry::Meta| !meta.kinds.is_empty();
    let policy = spec.system.policy.as_ref().map(|policy| policy.meta());
    if makes(spec.system.router.meta()) || policy.is_some_and(makes) {
        let (packets, bytes) = whole.made();
        (counters.made_packets, counters.made_bytes) = (Some(packets), Some(bytes));
    }
    counters.moves = actors.iter().find_map(|actor| if let Actor::Control(control) = actor { Some(control.moves) } else { None });
    let port_counters = port_counters(spec);
    let counts_of = |name: &str| {
        let at = port_counters.iter().position(|counter| counter.counter.name == name)?;
        Some(ports.iter().map(move |port| port.counts[at]))
    };
    counters.paused_ps = counts_of("paused_ps").map(Iterator::sum);
    counters.max_paused_ps = counts_of("paused_ps").and_then(Iterator::max);
    counters.fails = !spec.changes().is_empty();
    counters.trimmed_packets = counts_of("trimmed").map(Iterator::sum);
    counters.window = actors::window(&mut actors).and_then(|window| window.measured());
    let deadlock = actors::deadlocks(&actors).and_then(|deadlocks| deadlocks.found.clone());
    let sampled = actors
        .into_iter()
        .find_map(|actor| if let Actor::Sampler(sampler) = actor { Some((sampler.rows, sampler.tables)) } else { None });
    let (samples, agents) = sampled.unwrap_or_default();
    Ok((
        Outcome {
            flows,
            ports,
            samples,
            agents,
            counters,
            flow_counters: rows::flow_counters(spec),
            port_counters,
            complete,
            stop_reason,
            deadlock,
            threads: 1,
            order: Some(order),
            ..Outcome::default()
        },
        whole.into_probe(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::LinkId;
    use proto::Packet;
    use scenario::Options;

    /// A probe that panics when the last host sends, whichever part the host is in.
    #[derive(Clone)]
    struct Fails;

    const LAST_NIC: LinkId = LinkId(15);

    impl Probe for Fails {
        const WATCHES: bool = true;
        fn on_start(&mut self, link: LinkId, _start: Time, _packet: &Packet) {
            assert!(link != LAST_NIC, "the last host sends");
        }
        fn join(self, _other: Fails) -> Fails {
            self
        }
    }

    #[test]
    fn a_panic_on_any_thread_ends_the_run() {
        let text = "[topology]\nkind = 'fat_tree'\nk = 4\n[workload.all]\nkind = 'long'\n[[system]]\ntransport = 'newreno'\n";
        let text = format!("end = '1ms'\n{text}");
        let plan = scenario::load(&text, "t.toml", ".".as_ref(), &Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let spec = &plan.points[0].run;
        assert_eq!(spec.net.first_nic(base::HostId(15)), LAST_NIC);
        for parts in [2, 4] {
            let cut = Arc::new(Cut::new(&spec.net, parts).unwrap());
            assert_eq!(usize::from(cut.owners[spec.net.hosts()[15].index()]), parts - 1, "not the part of this thread");
            let parts = Parts { cut: &cut, threads: parts, if_it_pays: false, order: EventOrder::Tree };
            let run = catch_unwind(AssertUnwindSafe(|| run_parts(spec, parts, Fails, &mut |_| Continue::Yes).is_ok()));
            assert_eq!(run.unwrap_err().downcast_ref::<&str>(), Some(&"the last host sends"));
        }
    }
}
