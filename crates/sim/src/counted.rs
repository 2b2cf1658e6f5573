//! The counters per port of the entries of a system.

use crate::node::arrivals::Receiving;
use crate::outcome::NamedCounter;
use base::registry::Entry;
use base::{LinkId, Time};
use fabric::port::Port;
use fabric::qdisc::{self, Qdisc as _};
use fabric::receiver::Receiver as _;
use fabric::router::{AnyRouter, Router as _};
use scenario::RunSpec;

/// Returns the name of an entry in the names of its counters: that of the plug-in, if it is one.
pub fn label(entry: &'static Entry) -> &'static str {
    entry.plugin.map_or(entry.name, |plugin| plugin.name.as_str())
}

/// Returns the queue disciplines of switches and of NICs; only one if both have the same label.
fn disciplines(spec: &RunSpec) -> impl Iterator<Item = &qdisc::AnyParams> {
    let (switches, nics) = (&spec.system.qdisc, &spec.system.nic.qdisc);
    std::iter::once(switches).chain(Some(nics).filter(|nics| label(nics.entry()) != label(switches.entry())))
}

/// Returns the counters per port: those of the queue disciplines, then of the router, the receivers of
/// hosts and the buffer.
pub fn port_counters(spec: &RunSpec) -> Vec<NamedCounter> {
    let router = &spec.system.router;
    let parts = disciplines(spec).map(qdisc::AnyParams::entry).chain([router.entry()]);
    let all = parts.map(|entry| (label(entry), entry.meta.counters));
    let all = all.chain(spec.system.receiver.iter().map(|entry| (entry.name(), entry.meta().counters)));
    let all = all.chain(spec.system.buffer.iter().map(|entry| (entry.name(), &entry.meta().counters[..entry.counters()])));
    all.flat_map(|(entry, counters)| counters.iter().map(move |&counter| NamedCounter { entry, counter })).collect()
}

/// The parts of a run that have the counts of a port.
pub struct Counting<'a> {
    /// The port; `None` if it is a plain first-in first-out queue.
    pub port: Option<&'a Port>,
    /// The router.
    pub router: &'a AnyRouter,
    /// The receivers of hosts.
    pub receivers: &'a [Option<Receiving>],
}

/// Returns the counts of one port up to `now`, in the order of [`port_counters`]. Counters of entries that
/// this port does not have are zero.
pub fn port_counts(spec: &RunSpec, id: LinkId, of: &Counting<'_>, now: Time) -> Vec<u64> {
    let &Counting { port, router, receivers } = of;
    let (own, _) = spec.port(id);
    let of = |entry: &qdisc::AnyParams| {
        let counts = port.filter(|_| label(entry.entry()) == label(own.entry())).map_or(&[][..], |port| port.qdisc.counts());
        (0..entry.meta().counters.len()).map(|n| counts.get(n).copied().unwrap_or(0)).collect::<Vec<_>>()
    };
    let paused = port.and_then(|port| port.pausing.as_ref()).map(|pausing| pausing.counts(now));
    let paused = paused.into_iter().flatten().chain(std::iter::repeat(0));
    let buffer = spec.system.buffer.iter().flat_map(|entry| paused.clone().take(entry.counters()));
    let link = spec.net.link(id);
    let host = spec.net.host(link.from).filter(|_| link.port.0 == 0);
    let receiver = host.and_then(|host| receivers.get(host.index())?.as_ref()).map_or(Vec::new(), |of| of.machine.counts(now));
    let receiver = receiver.into_iter().chain(std::iter::repeat(0));
    let receiver = spec.system.receiver.iter().flat_map(|entry| receiver.clone().take(entry.meta().counters.len()));
    disciplines(spec).flat_map(of).chain(router.counts(id).iter().copied()).chain(receiver).chain(buffer).collect()
}
