//! What can run and may mislead: warnings, each with its place and what to do.

use crate::checks::flow_engine;
use crate::checks::short_queues;
use crate::files::Files;
use crate::plan::draft::{Built, Draft, Section, Variant, with_slot};
use crate::plan::keys::SampleParams;
use crate::plan::offered;
use crate::plan::seeds::AUTO;
use crate::plan::spec::Demand;
use crate::system::envs::{self, Envs};
use crate::system::slots::System;
use crate::text::diag::Item;
use crate::text::part::{Part, listed};
use crate::text::tree::Table;
use crate::workload::{self, Workload as _};
use base::{Dur, LinkId, Offers, Time};
use fabric::controller::Controller as _;
use fabric::qdisc::Qdisc as _;
use proto::{Timeout, Timers, Transport as _};

/// A timeout of more unloaded round trips of the longest path is out of proportion, if it is longer than [`TICK`].
const MAX_ROUND_TRIPS: u64 = 100;
/// Timers of common hosts are no finer: Linux with HZ = 1000.
const TICK: Dur = Dur::from_ms(1);
/// Timeouts of two systems are unlike when one is more than this many times the other.
const UNLIKE: u64 = 10;
/// The percentile that figures and tables show first of all tails, and the flows that must lie above it.
const TAIL: (f64, u64) = (0.99, 10);

/// All warnings about a draft in which nothing is wrong.
pub(crate) fn warnings(draft: &Draft, files: &Files) -> Vec<Item> {
    let mut found = Vec::new();
    let by_packets = draft.engine.variants.iter().any(|variant| !variant.value.is_flow());
    found.extend(overload(draft, files));
    for section in &draft.systems {
        found.extend(no_deadlines(draft, files, section));
        found.extend(late_controller(draft, section));
        // Without packets there are neither marks nor timeouts nor handshakes.
        if by_packets {
            found.extend(no_marks(draft, section));
            found.extend(long_timeout(draft, section));
            found.extend(short_timeout(draft, section));
            found.extend(short_queues::warnings(draft, files, section));
        }
    }
    if by_packets {
        found.extend(unlike_handshakes(draft));
        found.extend(unlike_timeouts(draft));
    }
    found.extend(few_flows(draft, files));
    found.extend(unseen_samples(draft));
    found.extend(flow_engine::without_effect(draft));
    found.extend(draft.seeds.unused.map(|(key, at)| {
        let hint = format!("write `seed = \"{AUTO}\"`, or leave `{key}` out");
        Item::new(at, format!("`{key}` has no effect: the seeds are given"), "no effect", hint)
    }));
    found
}

/// A part of a section as messages place and name it.
fn part_of<'a>(section: &'a Section<impl Sized>, table: &'a Table, path: &'a str) -> Part<'a> {
    Part { table, at: section.at, path }
}

/// Runs `then` in the environments of a system on a network.
fn with_envs<R>(draft: &Draft, built: &Built, system: &System, then: impl FnOnce(&Envs<'_>) -> R) -> R {
    then(&Envs::new(draft.site(built), system.ports_and_router(), system.given(), Offers::new(Vec::new)))
}

/// Offered load above what some link can carry.
fn overload(draft: &Draft, files: &Files) -> Option<Item> {
    let mut worst: Option<(f64, Item)> = None;
    for built in draft.topology.variants.iter().map(|variant| &variant.value) {
        // Of each workload the variant that offers most; together these are the worst point.
        let most = |(index, section): (usize, &'_ Section<Demand>)| {
            let env = draft.workload_env(built, files, index);
            let traffic = section.variants.iter().filter_map(|v| Some((v.value.workload.build(&env).traffic(&env)?, v)));
            let (traffic, variant) = traffic.max_by(|(a, _), (b, _)| a.bps.total_cmp(&b.bps))?;
            let rates = offered::by_link(&built.net, &built.routes, &traffic)?;
            Some((index, variant.table.clone(), traffic.key, rates))
        };
        let most: Vec<_> = draft.workloads.iter().enumerate().filter_map(most).collect();
        let load = |link: usize| most.iter().map(|(.., rates)| rates[link]).sum::<f64>() / built.net.links()[link].rate.0 as f64;
        let busiest =
            (0..built.net.links().len()).map(|link| (load(link), link)).max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
        let Some((load, link)) = busiest.filter(|(load, _)| *load > 1.0 + 1e-9) else { continue };
        if worst.as_ref().is_some_and(|(before, _)| *before >= load) {
            continue;
        }
        let heaviest = most.iter().max_by(|a, b| a.3[link].total_cmp(&b.3[link]));
        let Some((index, table, key, _)) = heaviest else { continue };
        let section = &draft.workloads[*index];
        let (name, rate) = (built.net.link_name(LinkId(link as u32)), built.net.links()[link].rate);
        let given = table.get(key).map_or(String::new(), |entry| format!("{} ", entry.node.named()));
        let message = format!("{given}offers the link `{name}` {load:.2} times its rate of {rate}");
        let hint = format!(
            "its queue grows for as long as flows arrive, and completion times with the number of flows: offer at most {:.2} of this",
            1.0 / load
        );
        let item = part_of(section, table, &section.name).problem(key, message, "more than the network carries", hint);
        worst = Some((load, item));
    }
    worst.map(|(_, item)| item)
}

/// A transport whose rule rests on marks, and ports that never mark.
fn no_marks(draft: &Draft, section: &Section<System>) -> Option<Item> {
    let built = &draft.topology.variants.first()?.value;
    section.variants.iter().find_map(|variant| {
        let system = &variant.value;
        let marks = with_envs(draft, built, system, |envs| {
            envs.kinds_of_ports()
                .into_iter()
                .map(|link| envs.qdisc(link))
                .filter(|env| !env.host_port)
                .any(|env| system.qdisc.build(&env).can_mark())
        });
        let part = system.parts().into_iter().find(|part| part.entry.meta.needs.marks).filter(|_| !marks)?;
        let (name, qdisc) = (part.entry.name, system.qdisc.name());
        let message = format!("`{name}` needs marks, and no port marks: the queue discipline is `{qdisc}`");
        let beside = part.entry.meta.implies.iter().find(|(key, _)| *key == "qdisc.kind").map(|(_, kind)| *kind);
        let hint = beside.map_or("take a queue discipline that marks".to_owned(), |kind| {
            format!("write `qdisc = \"{kind}\"`, or another one that marks")
        });
        Some(with_slot(section, variant, part.slot.name, |at| Item::new(at.at_of("kind"), message, "never sees a mark", hint)))
    })
}

/// A part whose rule rests on deadlines, and workloads of which none gives any.
fn no_deadlines(draft: &Draft, files: &Files, section: &Section<System>) -> Option<Item> {
    let needs = |variant: &Variant<System>| variant.value.parts().into_iter().find(|part| part.entry.meta.needs.deadlines);
    let (variant, part) = section.variants.iter().find_map(|variant| Some((variant, needs(variant)?)))?;
    let built = &draft.topology.variants.first()?.value;
    let some = draft.workloads.iter().enumerate().any(|(index, workload)| {
        let env = draft.workload_env(built, files, index);
        let gives = |Demand { workload, deadline }: &Demand| deadline.is_some() || workload.build(&env).deadlines(&env);
        workload.variants.iter().any(|variant| gives(&variant.value))
    });
    (!some).then(|| {
        let message = format!("`{}` needs deadlines, and no flow has one", part.entry.name);
        let hint = "write a law of deadlines into a workload, like `deadline = \"20ms\"`: `flowloom list deadlines` names all";
        with_slot(section, variant, part.slot.name, |at| Item::new(at.at_of("kind"), message, "sees no deadline", hint))
    })
}

/// The timers of a system on a network.
fn timers(draft: &Draft, built: &Built, system: &System) -> Timers {
    with_envs(draft, built, system, |envs| system.transport.build(&envs.transport(envs.fastest_host())).timers())
}

/// A timeout of a system in one of its variants, and the longest unloaded round trip of one of the networks.
type Timed<'a> = (Timeout, Dur, &'a Variant<System>);

/// The timeouts of all variants of a system on all networks that a scenario may set, or has set.
fn timeouts<'a>(draft: &'a Draft, section: &'a Section<System>) -> impl Iterator<Item = Timed<'a>> {
    let networks = draft.topology.variants.iter().map(|variant| &variant.value);
    let pairs = networks.flat_map(|built| section.variants.iter().map(move |variant| (built, variant)));
    pairs.flat_map(|(built, variant)| {
        let Timers { first, least, fixed, .. } = timers(draft, built, &variant.value);
        let given =
            |key: &str| variant.table.get("transport").and_then(|e| e.node.table()).is_some_and(|table| table.get(key).is_some());
        // The default of a protocol with a rule of its own is part of the protocol.
        let counts = move |timeout: &Timeout| !fixed || given(timeout.key);
        first.into_iter().chain(least).filter(counts).map(move |timeout| (timeout, built.max_rtt, variant))
    })
}

/// A timeout out of proportion to the network.
fn long_timeout(draft: &Draft, section: &Section<System>) -> Option<Item> {
    let times = |(timeout, rtt, _): &Timed<'_>| timeout.after.0 / rtt.0.max(1);
    let longest = timeouts(draft, section).max_by_key(|timed| (times(timed), timed.0.after))?;
    let (times, (Timeout { key, after }, rtt, variant)) = (times(&longest), longest);
    (times > MAX_ROUND_TRIPS && after > TICK).then(|| {
        let message = format!("`{after}` is {times} times the longest unloaded round trip, which is {rtt}");
        let hint = format!(
            "a flow that loses its last packet waits for that long: at most {} would be in proportion",
            (rtt * MAX_ROUND_TRIPS).max(TICK)
        );
        with_slot(section, variant, "transport", |part| part.problem(key, message, "out of proportion", hint))
    })
}

/// A timeout that expires before an answer can come. Defaults are never so short.
fn short_timeout(draft: &Draft, section: &Section<System>) -> Option<Item> {
    let short = timeouts(draft, section).filter(|(timeout, rtt, _)| timeout.after < *rtt);
    let (Timeout { key, after }, rtt, variant) = short.min_by_key(|(timeout, ..)| timeout.after)?;
    let message = format!("`{after}` is less than the longest unloaded round trip, which is {rtt}");
    let hint = format!("packets that were not lost are retransmitted: write at least {}, or leave `{key}` out", rtt * 3);
    Some(with_slot(section, variant, "transport", |part| part.problem(key, message, "expires before an answer", hint)))
}

/// A controller whose first orders would come after the end of the run.
fn late_controller(draft: &Draft, section: &Section<System>) -> Option<Item> {
    let (built, end) = (&draft.topology.variants.first()?.value, draft.head.latest_end()?);
    section.variants.iter().find_map(|variant| {
        let controller = variant.value.controller.as_ref()?;
        let machine = with_envs(draft, built, &variant.value, |envs| controller.build(&envs.router()));
        let (period, latency) = (machine.period(), machine.latency());
        (Time::ZERO + period + latency >= end).then(|| {
            let message = format!("`{}` looks at the network after {period} and acts {latency} later", controller.name());
            let hint = format!("the run ends at {}: take a shorter `period`, or a later `end`", Dur(end.0));
            with_slot(section, variant, "controller", |part| part.problem("period", message, "never acts", hint))
        })
    })
}

/// A system, its first variant, and the timers of that.
type FirstOf<'a> = (&'a Section<System>, &'a Variant<System>, Timers);

/// What the first variant of each system does: what a system sweeps is unlike on purpose.
fn first_timers(draft: &Draft) -> Vec<FirstOf<'_>> {
    let Some(built) = draft.topology.variants.first() else { return Vec::new() };
    let first = draft.systems.iter().filter_map(|section| Some((section, section.variants.first()?)));
    first.map(|(section, variant)| (section, variant, timers(draft, &built.value, &variant.value))).collect()
}

/// Systems of which some open flows with a handshake.
fn unlike_handshakes(draft: &Draft) -> Option<Item> {
    let all = first_timers(draft);
    let (with, without): (Vec<FirstOf<'_>>, Vec<FirstOf<'_>>) = all.into_iter().partition(|(.., timers)| timers.handshake);
    let (section, variant, _) = without.first().filter(|_| !with.is_empty())?;
    let names = |some: &[FirstOf<'_>]| listed(some.iter().map(|(section, ..)| section.name.as_str()));
    let message = format!("flows of {} open without a handshake, and those of {} with one", names(&without), names(&with));
    let hint = "a handshake costs every flow a round trip: set `handshake` to the same value in all transports that have it";
    Some(with_slot(section, variant, "transport", |part| Item::new(part.at_of("handshake"), message, "compared unlike", hint)))
}

/// Systems whose timeouts are settings, and unlike.
fn unlike_timeouts(draft: &Draft) -> Option<Item> {
    let all = first_timers(draft);
    let worst = [|t: &Timers| t.least, |t: &Timers| t.first].into_iter().filter_map(|of| {
        let each = all.iter().filter(|(.., t)| !t.fixed).filter_map(|(section, variant, t)| Some((section, variant, of(t)?)));
        let each: Vec<_> = each.collect();
        let (low, high) = (each.iter().min_by_key(|(.., t)| t.after)?, each.iter().rev().max_by_key(|(.., t)| t.after)?);
        Some((high.2.after.0 / low.2.after.0.max(1), *low, *high))
    });
    let (times, low, high) = worst.rev().max_by_key(|(times, ..)| *times).filter(|(times, ..)| *times > UNLIKE)?;
    let Timeout { key, after } = high.2;
    let message = format!("`{after}` is {times} times the `{}` of `{}`, which is {}", low.2.key, low.0.name, low.2.after);
    let hint = "timeouts like these decide a comparison by themselves: give both systems like values";
    Some(with_slot(high.0, high.1, "transport", |part| part.problem(key, message, "compared unlike", hint)))
}

/// Too few flows, drawn at random, for the tail that is shown.
fn few_flows(draft: &Draft, files: &Files) -> Option<Item> {
    let built = &draft.topology.variants.first()?.value;
    let least = |(index, section): (usize, &'_ Section<Demand>)| {
        let env: workload::Env<'_> = draft.workload_env(built, files, index);
        let of = |variant: &Variant<Demand>| {
            let machine = variant.value.workload.build(&env);
            (machine.flows(), envs::offered(&variant.value.workload, &env).load.is_some())
        };
        Some((section.variants.iter().map(of).min()?, index))
    };
    let counts: Vec<((u64, bool), usize)> = draft.workloads.iter().enumerate().filter_map(least).collect();
    let flows: u64 = counts.iter().map(|((flows, _), _)| *flows).sum();
    let random = counts.iter().filter(|((_, random), _)| *random).max()?;
    let (share, above) = TAIL;
    let beyond = |flows: u64| flows - (share * flows as f64).ceil() as u64;
    let section = &draft.workloads[random.1];
    (beyond(flows) < above).then(|| {
        let message =
            format!("`{}`: {flows} flows leave {} above the {:.0}th percentile", section.name, beyond(flows), share * 100.0);
        let hint = format!("take {:.0} flows or more, or read means and medians only", above as f64 / (1.0 - share));
        Item::new(section.at, message, format!("{above} are needed"), hint)
    })
}

/// Keys of `[sample]` that record nothing.
fn unseen_samples(draft: &Draft) -> Option<Item> {
    let section = draft.sample.as_ref()?;
    let (part, SampleParams { interval, ports, port, flows, switches, agents, packets, .. }) = (section.part(), &section.params);
    let series = *ports || *flows || *switches || *agents;
    let end = draft.head.latest_end();
    let (key, message, hint) = if !series && !packets {
        (
            "ports",
            "nothing is recorded: `ports`, `flows`, `switches`, `agents` and `packets` are all false".to_owned(),
            "write `ports = true`, or leave [sample] out",
        )
    } else if let Some(name) = port.as_ref().filter(|_| !ports && !agents) {
        ("port", format!("`{name}` is not recorded: `ports` is false"), "write `ports = true`, or leave `port` out")
    } else if !series && part.table.get("interval").is_some() {
        (
            "interval",
            format!("`{interval}` has no effect: packets are recorded one by one"),
            "leave `interval` out, or write `ports = true`",
        )
    } else if end.is_some_and(|end| series && interval.0 >= end.0) {
        ("interval", format!("`{interval}` is no shorter than the run: there is no sample"), "take a shorter `interval`")
    } else {
        return None;
    };
    Some(part.problem(key, message, "nothing shows it", hint))
}
