//! One run: from a point of a plan to its outcome.

use crate::actors::{self, Actor};
use crate::audit;
use crate::build::{build_engine, build_world};
use crate::counted::port_counters;
use crate::outcome::{Outcome, PacketRow, StopReason};
use crate::probe::{Off, Packets, Probe};
use crate::progress::{Continue, Progress, RunError};
use crate::rows;
use crate::world::Carried;
use base::{Dur, LinkId, Time};
use engine::{Driver, Engine, Pause};
use proto::Kind;
use scenario::RunSpec;

/// Events between two looks at the watcher: some hundredths of a second.
const SLICE: u64 = 1 << 20;

/// Runs `spec` to its end. `control` is called every million events or so.
pub fn run(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    if let Some(ideal) = spec.ideal {
        return crate::fluid::point::run(spec, ideal, control);
    }
    if spec.engine.is_flow() {
        return crate::flow_engine::run(spec, control);
    }
    run_on::<Engine<Carried>>(spec, control)
}

/// The same on another engine, for tests that compare engines.
pub fn run_on<E: Driver<Carried>>(spec: &RunSpec, control: &mut dyn FnMut(Progress) -> Continue) -> Result<Outcome, RunError> {
    if spec.sample.as_ref().is_some_and(|sample| sample.packets) {
        let (mut outcome, packets) = run_with::<E, _>(spec, Packets::default(), control)?;
        let policy = spec.system.policy.as_ref().map(|policy| (Kind::POLICY, policy.meta()));
        let entries = [(Kind::OWN, spec.system.transport.meta()), (Kind::ROUTER, spec.system.router.meta())];
        let entries: Vec<_> = entries.into_iter().chain(policy).collect();
        outcome.packets = packets
            .sorted()
            .into_iter()
            .map(|seen| PacketRow {
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
                dropped: seen.dropped,
            })
            .collect();
        return Ok(outcome);
    }
    run_with::<E, _>(spec, Off, control).map(|(outcome, _)| outcome)
}

type Watcher<'a> = &'a mut dyn FnMut(Progress) -> Continue;

/// The same with a probe, which is returned beside the outcome.
pub(crate) fn run_with<E: Driver<Carried>, P: Probe>(
    spec: &RunSpec,
    probe: P,
    control: Watcher<'_>,
) -> Result<(Outcome, P), RunError> {
    let net = &*spec.net;
    let (mut world, mut actors, alone) = build_world(spec, probe)?;
    let mut engine: E = build_engine(spec, &world, P::WATCHES);
    for (host, waker) in world.hosts.iter().zip(world.first_host..) {
        engine.set_wake(waker, host.next_wake(Time::MAX));
    }
    world.start_switches(&mut engine);
    for actor in &mut actors {
        if let Actor::Failures(failures) = actor {
            failures.tell(&mut world, &mut engine);
        }
    }
    engine.set_action(actors::next(&actors));
    let end = spec.end.unwrap_or(Time::MAX);
    let (mut complete, mut stop_reason) = (true, StopReason::Finished);
    let mut asked = 0;
    while !world.table.all_done() {
        let mut pause = engine.run(&mut world, end, SLICE);
        if pause == Pause::Action {
            actors::act(&mut actors, &mut world, &mut engine);
            if engine.events() - asked < SLICE {
                continue;
            }
            pause = Pause::Budget;
        }
        asked = engine.events();
        let finished = world.flows.len() - world.table.unfinished();
        let progress = Progress { now: engine.now(), finished, flows: world.flows.len(), events: engine.events() };
        match pause {
            // The last flow has finished; its sender may not know yet.
            Pause::Stopped => {
                if let Some(window) = actors::window(&mut actors).filter(|window| window.ends_with_last_flow()) {
                    window.close(&mut world, &mut engine);
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
        window.close(&mut world, &mut engine);
    }
    let now = engine.now();
    // Nobody may have looked at a port since service was due. What is due at the end itself happens no more.
    let until = if stop_reason == StopReason::End { now.before(Dur(1)) } else { now };
    for link in (0..net.links().len() as u32).map(LinkId) {
        engine.catch_up(&mut world, link, until);
    }
    let flows = rows::flow_rows(spec, &world, &alone, actors::window(&mut actors));
    let ports = rows::port_rows(spec, &world, &mut actors, &mut engine, now);
    audit::check(&mut world, &mut engine, net);
    let mut counters = rows::counters(&world, &ports, &flows, &engine, now, spec.realised_load(&world.flows));
    let makes = |meta: &base::registry::Meta| !meta.kinds.is_empty();
    let policy = spec.system.policy.as_ref().map(|policy| policy.meta());
    if makes(spec.system.router.meta()) || policy.is_some_and(makes) {
        let (packets, bytes) = world.made();
        (counters.made_packets, counters.made_bytes) = (Some(packets), Some(bytes));
    }
    counters.moves = actors.iter().find_map(|actor| if let Actor::Control(control) = actor { Some(control.moves) } else { None });
    counters.window = actors::window(&mut actors).and_then(|window| window.measured());
    let samples = actors.into_iter().flat_map(|actor| if let Actor::Sampler(sampler) = actor { sampler.rows } else { Vec::new() });
    let samples = samples.collect();
    Ok((
        Outcome {
            flows,
            ports,
            samples,
            counters,
            flow_counters: rows::flow_counters(spec),
            port_counters: port_counters(spec),
            complete,
            stop_reason,
            ..Outcome::default()
        },
        world.probe,
    ))
}
