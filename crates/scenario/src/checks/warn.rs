//! Warnings about scenarios that can run but may give misleading results, each with its place and
//! what to do.

use crate::checks::flow_engine;
use crate::checks::hosts;
use crate::checks::overtaking;
use crate::checks::short_queues;
use crate::files::{Files, Warning};
use crate::plan::draft::{Built, Draft, Section, Variant, with_envs, with_slot};
use crate::plan::keys::SampleParams;
use crate::plan::offered;
use crate::plan::seeds::AUTO;
use crate::plan::spec::Demand;
use crate::system::envs;
use crate::system::slots::System;
use crate::text::diag::Item;
use crate::text::part::{Part, listed};
use crate::text::tree::Table;
use crate::workload::{self, Workload as _};
use base::params::Raw;
use base::{Dur, HostId, LinkId, NodeId, Time};
use fabric::controller::Controller as _;
use fabric::qdisc::Qdisc as _;
use fabric::router::Decides;
use proto::{Timeout, Timers, Transport as _};

/// A timeout longer than this many unloaded round trips of the longest path, and longer than
/// [`TICK`], gives a warning.
const MAX_ROUND_TRIPS: u64 = 100;
/// Timer resolution of common hosts: Linux with HZ = 1000.
const TICK: Dur = Dur::from_ms(1);
/// Timeouts of two systems give a warning if one is more than this many times the other.
const UNLIKE: u64 = 10;
/// The tail percentile that figures and tables show by default, and the number of flows that must
/// lie above it.
const TAIL: (f64, u64) = (0.99, 10);

/// Returns all warnings about a draft without errors.
pub(crate) fn warnings(draft: &Draft, files: &Files) -> Vec<Item> {
    let mut found = Vec::new();
    let by_packets = draft.engine.variants.iter().any(|variant| !variant.value.is_flow());
    found.extend(overload(draft, files));
    for section in &draft.systems {
        found.extend(no_deadlines(draft, files, section));
        found.extend(late_controller(draft, section));
        // The flow engine has no marks, timeouts or handshakes.
        if by_packets {
            found.extend(no_marks(draft, section));
            found.extend(long_timeout(draft, section));
            found.extend(short_timeout(draft, section));
            found.extend(reordering(draft, section));
            found.extend(short_queues::warnings(draft, files, section));
        }
    }
    if by_packets {
        found.extend(different_handshakes(draft));
        found.extend(different_timeouts(draft));
        found.extend(hosts::warning(draft));
        found.extend(overtaking::warnings(draft, files));
    }
    found.extend(few_flows(draft, files));
    found.extend(of_files(draft, files));
    found.extend(unseen_samples(draft));
    found.extend(flow_engine::without_effect(draft));
    found.extend(draft.seeds.unused.map(|(key, at)| {
        let hint = format!("write `seed = \"{AUTO}\"`, or remove `{key}`");
        Item::new(at, format!("`{key}` has no effect: the seeds are given"), "no effect", hint)
    }));
    found
}

/// Returns the warnings of the readers of files, each at the first `path` that names the file.
fn of_files(draft: &Draft, files: &Files) -> Vec<Item> {
    let topologies = draft.topology.variants.iter().map(|variant| &variant.table);
    let workloads = draft.workloads.iter().flat_map(|section| section.variants.iter().map(|variant| &variant.table));
    let paths: Vec<_> = topologies.chain(workloads).filter_map(|table| table.get("path")).collect();
    let of = |warning: Warning| {
        // A file that only a profile names has no place here.
        let entry = paths.iter().find(|entry| entry.node.raw() == Raw::Str(warning.path.clone()))?;
        Some(Item::new(entry.node.at, format!("`{}`: {}", warning.path, warning.message), "left out", warning.hint))
    };
    files.warnings().into_iter().filter_map(of).collect()
}

/// Returns a section as a part, with its place and its name in messages.
fn part_of<'a>(section: &'a Section<impl Sized>, table: &'a Table, path: &'a str) -> Part<'a> {
    Part { table, at: section.at, path }
}

/// Warns of an offered load above the rate of some link.
fn overload(draft: &Draft, files: &Files) -> Option<Item> {
    let mut worst: Option<(f64, Item)> = None;
    for built in draft.topology.variants.iter().map(|variant| &variant.value) {
        // The variant of each workload that offers most: together these are the point with the
        // highest load.
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
            "the queue of this link grows until the last flow arrives, so completion times depend on the number of flows: reduce \
             the offered load to at most {:.2} of this",
            1.0 / load
        );
        let item = part_of(section, table, &section.name).problem(key, message, "more than the network can carry", hint);
        worst = Some((load, item));
    }
    worst.map(|(_, item)| item)
}

/// Warns of a system with a part that needs ECN marks if no switch port sets marks.
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
        let message = format!("`{name}` needs ECN marks, but no switch port sets them: the queue discipline is `{qdisc}`");
        let implied = part.entry.meta.implies.iter().find(|(key, _)| *key == "qdisc.kind").map(|(_, kind)| *kind);
        let write = implied.map_or("choose".to_owned(), |kind| format!("write `qdisc = \"{kind}\"`, or choose"));
        let hint = format!("without marks the results do not represent `{name}`: {write} another queue discipline that marks");
        Some(with_slot(section, variant, part.slot.name, |at| Item::new(at.at_of("kind"), message, "never sees a mark", hint)))
    })
}

/// Warns of a system with a part that needs deadlines if no workload gives its flows deadlines.
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
        let name = part.entry.name;
        let message = format!("`{name}` needs deadlines, but no flow has one");
        let hint = format!(
            "without deadlines the results do not represent `{name}`: write deadlines in a workload, like `deadline = \"20ms\"`; \
             `flowloom list deadlines` lists all kinds"
        );
        with_slot(section, variant, part.slot.name, |at| Item::new(at.at_of("kind"), message, "sees no deadline", hint))
    })
}

/// Returns the timers of a system on a network.
fn timers(draft: &Draft, built: &Built, system: &System) -> Timers {
    with_envs(draft, built, system, |envs| system.transport.build(&envs.transport(envs.fastest_host())).timers())
}

/// A timeout, the longest unloaded round trip of the network, and the variant of the system.
type Timed<'a> = (Timeout, Dur, &'a Variant<System>);

/// Returns the timeouts of all variants of a system on all networks. A default that belongs to a protocol counts only if
/// `defaults` is set and packets can be lost: nothing waits for it otherwise.
fn timeouts<'a>(draft: &'a Draft, section: &'a Section<System>, defaults: bool) -> impl Iterator<Item = Timed<'a>> {
    let networks = draft.topology.variants.iter().map(|variant| &variant.value);
    let pairs = networks.flat_map(|built| section.variants.iter().map(move |variant| (built, variant)));
    pairs.flat_map(move |(built, variant)| {
        let Timers { first, least, fixed, .. } = timers(draft, built, &variant.value);
        let given =
            |key: &str| variant.table.get("transport").and_then(|e| e.node.table()).is_some_and(|table| table.get(key).is_some());
        let all = !fixed || (defaults && loses_packets(draft, built, &variant.value));
        let counts = move |timeout: &Timeout| all || given(timeout.key);
        first.into_iter().chain(least).filter(counts).map(move |timeout| (timeout, built.max_rtt, variant))
    })
}

/// Returns whether packets of a system can be lost on a network: in its cables, when links or switches fail, or at switch ports
/// that hold a limited number of bytes.
fn loses_packets(draft: &Draft, built: &Built, system: &System) -> bool {
    let limited =
        || with_envs(draft, built, system, |envs| short_queues::ports(system, envs).iter().any(|port| port.room.is_some()));
    !draft.events.is_empty() || built.net.links().iter().any(|link| link.loss.0 > 0) || limited()
}

/// Warns of a timeout that is too long for the network.
fn long_timeout(draft: &Draft, section: &Section<System>) -> Option<Item> {
    let times = |(timeout, rtt, _): &Timed<'_>| timeout.after.0 / rtt.0.max(1);
    let longest = timeouts(draft, section, true).max_by_key(|timed| (times(timed), timed.0.after))?;
    let (times, (Timeout { key, after }, rtt, variant)) = (times(&longest), longest);
    (times > MAX_ROUND_TRIPS && after > TICK).then(|| {
        let message = format!("`{after}` is {times} times the longest unloaded round trip, which is {rtt}");
        let hint = format!(
            "a flow that loses its last packet waits that long, so timeouts dominate its completion time: write `{key} = \"{}\"` or less",
            (rtt * MAX_ROUND_TRIPS).max(TICK)
        );
        with_slot(section, variant, "transport", |part| part.problem(key, message, "long for this network", hint))
    })
}

/// Warns of a timeout that expires before an ACK can arrive. Defaults are never so short.
fn short_timeout(draft: &Draft, section: &Section<System>) -> Option<Item> {
    let short = timeouts(draft, section, false).filter(|(timeout, rtt, _)| timeout.after < *rtt);
    let (Timeout { key, after }, rtt, variant) = short.min_by_key(|(timeout, ..)| timeout.after)?;
    let message = format!("`{after}` is less than the longest unloaded round trip, which is {rtt}");
    let hint = format!(
        "packets that were not lost are retransmitted, which wastes capacity: write `{key} = \"{}\"` or more, or remove `{key}`",
        rtt * 3
    );
    Some(with_slot(section, variant, "transport", |part| part.problem(key, message, "expires before an ACK can arrive", hint)))
}

/// Warns of a transport that takes reordering for loss while its router sends the packets of a flow on several paths.
fn reordering(draft: &Draft, section: &Section<System>) -> Option<Item> {
    const KEY: &str = "dup_threshold";
    let several = |built: &Built| {
        let mut nodes = (0..built.net.nodes().len() as u32).map(NodeId);
        nodes.any(|node| built.routes.candidates(node, HostId(0)).len() > 1)
    };
    let built = draft.topology.variants.iter().map(|variant| &variant.value).find(|built| several(built))?;
    section.variants.iter().find_map(|variant| {
        let system = &variant.value;
        let evenly = with_envs(draft, built, system, |envs| system.router.duties(&envs.router()).decides == Decides::Evenly);
        let given = system.given();
        let threshold = given.param("transport", KEY).filter(|threshold| evenly && *threshold != "never")?;
        let (router, transport) = (system.router.name(), system.transport.name());
        let message = format!("`{router}` reorders packets, and {threshold} duplicate ACKs are a loss for `{transport}`");
        let hint = format!(
            "packets that were only overtaken are retransmitted and cut the window, so flows take longer: write `{KEY} = \"never\"`, as the \
             ns-2 scripts of PIAS do, or choose another router"
        );
        Some(with_slot(section, variant, "transport", |part| part.problem(KEY, message, "takes reordering for loss", hint)))
    })
}

/// Warns of a controller that would act for the first time after the end of the run.
fn late_controller(draft: &Draft, section: &Section<System>) -> Option<Item> {
    let (built, end) = (&draft.topology.variants.first()?.value, draft.head.latest_end()?);
    section.variants.iter().find_map(|variant| {
        let controller = variant.value.controller.as_ref()?;
        let machine = with_envs(draft, built, &variant.value, |envs| controller.build(&envs.router()));
        let (period, latency) = (machine.period(), machine.latency());
        (Time::ZERO + period + latency >= end).then(|| {
            let message = format!("`{}` first looks at the network after {period} and acts {latency} later", controller.name());
            let hint = format!(
                "the run ends at {}, so the results are those without a controller: shorten `period`, or set a later `end`",
                Dur(end.0)
            );
            with_slot(section, variant, "controller", |part| part.problem("period", message, "never acts", hint))
        })
    })
}

/// A system, its first variant, and the timers of that variant.
type FirstOf<'a> = (&'a Section<System>, &'a Variant<System>, Timers);

/// Returns the timers of the first variant of each system. The variants of one system differ on
/// purpose.
fn first_timers(draft: &Draft) -> Vec<FirstOf<'_>> {
    let Some(built) = draft.topology.variants.first() else { return Vec::new() };
    let first = draft.systems.iter().filter_map(|section| Some((section, section.variants.first()?)));
    first.map(|(section, variant)| (section, variant, timers(draft, &built.value, &variant.value))).collect()
}

/// Warns of systems that are compared although only some of them open flows with a handshake.
fn different_handshakes(draft: &Draft) -> Option<Item> {
    let all = first_timers(draft);
    let (with, without): (Vec<FirstOf<'_>>, Vec<FirstOf<'_>>) = all.into_iter().partition(|(.., timers)| timers.handshake);
    let (section, variant, _) = without.first().filter(|_| !with.is_empty())?;
    let names = |some: &[FirstOf<'_>]| listed(some.iter().map(|(section, ..)| section.name.as_str()));
    let message = format!("flows of {} start without a handshake, but flows of {} with one", names(&without), names(&with));
    let hint = "a handshake adds a round trip to every completion time, so these systems are not comparable: write the same \
                `handshake = true` or `false` in all transports that have this key";
    Some(with_slot(section, variant, "transport", |part| Item::new(part.at_of("handshake"), message, "not comparable", hint)))
}

/// Warns of systems that are compared although their timeouts differ greatly. Timeouts that a
/// protocol fixes do not count.
fn different_timeouts(draft: &Draft) -> Option<Item> {
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
    let hint = format!(
        "this difference can decide the comparison, whatever else the systems do: write `{key} = \"{}\"` here, or similar timeouts in both",
        low.2.after
    );
    Some(with_slot(high.0, high.1, "transport", |part| part.problem(key, message, "not comparable", hint)))
}

/// Warns of too few randomly drawn flows for the tail percentile of figures and tables.
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
    // The percentile of all flows counts those of all workloads.
    let names: Vec<&str> =
        counts.iter().filter(|((flows, _), _)| *flows > 0).map(|(_, i)| draft.workloads[*i].name.as_str()).collect();
    let named = if names.len() > 1 { format!("{} together", listed(names)) } else { format!("`{}`", section.name) };
    (beyond(flows) < above).then(|| {
        let message = format!("{named}: of {flows} flows, {} are above the {:.0}th percentile", beyond(flows), share * 100.0);
        let hint = format!(
            "with so few flows that percentile is mostly chance: use {:.0} flows or more, or report only means and medians",
            above as f64 / (1.0 - share)
        );
        Item::new(section.at, message, format!("{above} are needed"), hint)
    })
}

/// Warns of keys of `[sample]` that record nothing.
fn unseen_samples(draft: &Draft) -> Option<Item> {
    let section = draft.sample.as_ref()?;
    let (part, SampleParams { interval, ports, port, flows, switches, agents, packets, .. }) = (section.part(), &section.params);
    let series = *ports || *flows || *switches || *agents;
    let end = draft.head.latest_end();
    let (key, message, hint) = if !series && !packets {
        (
            "ports",
            "nothing is recorded: `ports`, `flows`, `switches`, `agents` and `packets` are all false".to_owned(),
            "write `ports = true`, or remove [sample]",
        )
    } else if let Some(name) = port.as_ref().filter(|_| !ports && !agents) {
        ("port", format!("`{name}` is not recorded: `ports` is false"), "write `ports = true`, or remove `port`")
    } else if !series && part.table.get("interval").is_some() {
        (
            "interval",
            format!("`{interval}` has no effect: packets are recorded one by one"),
            "remove `interval`, or write `ports = true`",
        )
    } else if end.is_some_and(|end| series && interval.0 >= end.0) {
        ("interval", format!("`{interval}` is not shorter than the run, so no sample is taken"), "write a shorter `interval`")
    } else {
        return None;
    };
    Some(part.problem(key, message, "no effect", hint))
}
