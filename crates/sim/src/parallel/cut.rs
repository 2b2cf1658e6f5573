//! Cuts a network into parts that run on different threads.

use base::{Dur, LinkId, NodeId, Time};
use fabric::net::Net;
use plugin::library::Code;
use proto::Flow;
use scenario::{RunSpec, Unloaded};
use std::sync::Arc;

/// The number of threads that the user wants for a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// This number, if the network can be cut into as many parts.
    Exactly(usize),
    /// At most this number; fewer where more threads would not make the run faster.
    UpTo(usize),
}

/// Why a run is not cut into parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uncut {
    /// The user wants one thread.
    Asked,
    /// The run has no packets.
    NoPackets,
    /// Only one part would have hosts, since all hosts are at one switch; or no link joins two parts.
    Indivisible,
    /// Several threads would not make the run faster.
    Small,
    /// Hosts may change the paths of their flows, and the path of the replies, which another part may
    /// send, changes at the same time.
    Paths,
    /// Flows wait for other flows that may be given up: see [`Cut::forbids`].
    Gives,
    /// A plug-in runs in an interpreter.
    Interpreter,
}

impl Uncut {
    /// Returns the reason in words; `None` if the user wants one thread.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Uncut::Asked => None,
            Uncut::NoPackets => Some("ideal schedules and the flow engine use one thread"),
            Uncut::Indivisible => Some("all hosts are at one switch, or no link joins the parts of the network"),
            Uncut::Small => Some("the network is too small, or has too few events at a time, for several threads to be faster"),
            Uncut::Paths => {
                Some("replies take the path of the data, so a host that changes the path of a flow changes both directions at once")
            }
            Uncut::Interpreter => Some("a plug-in in Python runs on one thread"),
            Uncut::Gives => Some("flows wait for other flows that may be given up, within the delay of a link or for a deadline"),
        }
    }
}

/// Minimum hosts per thread. With fewer, another thread does not make a run faster.
const ENOUGH_HOSTS: usize = 32;
/// Minimum events per thread in a window. With fewer, several threads do not make a run faster.
const ENOUGH_EVENTS: u128 = 50;

/// A cut of a network: the part that owns each node. A node owns its ports.
#[derive(Clone, Debug)]
pub struct Cut {
    /// By node: its part.
    pub owners: Arc<[u8]>,
    /// By part: the links that lead to other parts, each with the part where it ends.
    pub crossing: Vec<Vec<(LinkId, u8)>>,
    /// The longest window: the smallest delay of all links between parts.
    pub window: Dur,
}

/// Returns whether a node would need information about flows of another node before a packet from there
/// can arrive, `window` later. This holds if a flow gives up waiting for another flow within a window after
/// the start of that flow, or if flows wait and a sender may give up a flow for its deadline.
pub fn forbids(window: Dur, flows: &[Flow]) -> bool {
    let waits = || flows.iter().filter_map(|flow| flow.wait.as_deref());
    let soon = waits().any(|wait| wait.give_up_after.is_some_and(|after| after < window));
    soon || waits().next().is_some()
        && flows.iter().any(|flow| flow.deadline.is_some() || flow.wait.as_ref().is_some_and(|wait| wait.allowed.is_some()))
}

/// Maximum number of parts.
pub const MOST: usize = 64;

impl Cut {
    /// Chooses the cut of a run for a number of threads.
    pub fn choose(spec: &RunSpec, threads: Threads) -> Result<Cut, Uncut> {
        if spec.ideal.is_some() || spec.engine.is_flow() {
            return Err(Uncut::NoPackets);
        }
        if spec.system.changes_both_paths() {
            return Err(Uncut::Paths);
        }
        if spec.system.plugins().any(|plugin| plugin.code == Code::Python) {
            return Err(Uncut::Interpreter);
        }
        let parts = match threads {
            Threads::Exactly(0 | 1) | Threads::UpTo(0 | 1) => return Err(Uncut::Asked),
            Threads::Exactly(threads) => threads,
            Threads::UpTo(most) => most.min(spec.net.hosts().len() / ENOUGH_HOSTS),
        };
        if parts < 2 {
            return Err(Uncut::Small);
        }
        Cut::new(&spec.net, parts).ok_or(Uncut::Indivisible)
    }

    /// Cuts a network into `parts` parts, or fewer. Returns `None` if only one part would have nodes.
    ///
    /// Switches with hosts are assigned in order of their ids, with about the same number of NICs for
    /// each part. A host belongs to the part of the switch at its first NIC. Every other switch joins
    /// the part of its neighbours if two thirds of them or more are in one part; otherwise it joins the
    /// part with the least capacity so far among the parts of its neighbours. So pods and racks stay
    /// whole if there are enough of them, and spines and cores are divided among the parts.
    pub fn new(net: &Net, parts: usize) -> Option<Cut> {
        let parts = parts.min(MOST);
        let hosts_at = |node: NodeId| net.out_links(node).filter(|link| net.host(net.link(*link).to).is_some()).count();
        let capacity = |node: NodeId| net.out_links(node).map(|link| net.link(link).rate.0).sum::<u64>();
        let nodes = || (0..net.nodes().len() as u32).map(NodeId);
        let mut owners: Vec<Option<u8>> = vec![None; net.nodes().len()];
        let mut load = vec![0; parts];
        let (mut seen, nics) = (0, net.hosts().iter().map(|host| net.out_links(*host).len()).sum::<usize>());
        for leaf in nodes().filter(|node| net.host(*node).is_none() && hosts_at(*node) > 0) {
            let own = hosts_at(leaf);
            // The middle of the switch's NICs decides.
            let part = (2 * seen + own) * parts / (2 * nics);
            owners[leaf.index()] = Some(part as u8);
            load[part] += capacity(leaf);
            seen += own;
        }
        for host in net.hosts() {
            owners[host.index()] = net.out_links(*host).next().and_then(|nic| owners[net.link(nic).to.index()]);
            owners[host.index()].iter().for_each(|part| load[usize::from(*part)] += capacity(*host));
        }
        loop {
            let known = owners.clone();
            for node in nodes().filter(|node| known[node.index()].is_none()) {
                let mut votes = vec![0; parts];
                let neighbours = net.out_links(node).filter_map(|link| known[net.link(link).to.index()]);
                neighbours.for_each(|part| votes[usize::from(part)] += 1);
                let all: usize = votes.iter().sum();
                let clear = (0..parts).find(|part| 3 * votes[*part] >= 2 * all);
                let part = clear.or_else(|| (0..parts).filter(|part| votes[*part] > 0).min_by_key(|part| load[*part]));
                if let Some(part) = part.filter(|_| all > 0) {
                    owners[node.index()] = Some(part as u8);
                    load[part] += capacity(node);
                }
            }
            if owners == known {
                break;
            }
        }
        // Parts without nodes are left out.
        let mut numbers: Vec<u8> = owners.iter().flatten().copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let number = |owner: Option<u8>| owner.and_then(|owner| numbers.binary_search(&owner).ok()).unwrap_or(0) as u8;
        Cut::of(net, owners.into_iter().map(number).collect())
    }

    /// Returns whether several threads make the run faster, which takes enough events per part and
    /// window. The events are estimated from the packets of all flows, spread evenly over the shortest
    /// time that the flows can take.
    pub fn pays(&self, spec: &RunSpec, flows: &[Flow], alone: &[Unloaded]) -> bool {
        let end = spec.end.unwrap_or(Time::MAX);
        let (mut first, mut last, mut events) = (Time::MAX, Time::ZERO, 0u128);
        for (flow, alone) in flows.iter().zip(alone).filter(|(flow, _)| flow.start < end) {
            let until = flow.start.after(alone.ideal_fct).min(end);
            (first, last) = (first.min(flow.start), last.max(until));
            let packets = u128::from(flow.size_wire_bytes / u64::from(spec.mtu_bytes) + 1) * u128::from(until.since(flow.start).0)
                / u128::from(alone.ideal_fct.0.max(1));
            // A data packet and its ACK, on each link.
            events += packets * 2 * u128::from(alone.hops);
        }
        let windows = u128::from(last.since(first).0 / self.window.0 + 1);
        events / windows >= ENOUGH_EVENTS * self.crossing.len() as u128
    }

    /// Returns whether the flows [forbid](forbids) parts.
    pub fn forbids(&self, flows: &[Flow]) -> bool {
        forbids(self.window, flows)
    }

    /// Returns the part in which a link of `part` ends; `None` if the link ends in `part`.
    pub fn end_elsewhere(&self, link: LinkId, part: usize) -> Option<usize> {
        let crossing = &self.crossing[part];
        let place = crossing.binary_search_by_key(&link, |(link, _)| *link).ok()?;
        Some(usize::from(crossing[place].1))
    }

    /// Returns the cut with these owners, by node; `None` if no link is cut or a part is empty.
    pub fn of(net: &Net, owners: Vec<u8>) -> Option<Cut> {
        let parts = usize::from(owners.iter().copied().max()?) + 1;
        let mut crossing = vec![Vec::new(); parts];
        let mut window: Option<Dur> = None;
        for (id, link) in (0..).map(LinkId).zip(net.links()) {
            let [from, to] = [link.from, link.to].map(|node| owners[node.index()]);
            if from != to {
                crossing[usize::from(from)].push((id, to));
                window = Some(window.map_or(link.delay, |window| window.min(link.delay)));
            }
        }
        let whole = (0..parts).all(|part| owners.iter().any(|owner| usize::from(*owner) == part));
        let window = window.filter(|window| whole && *window > Dur::ZERO)?;
        Some(Cut { owners: owners.into(), crossing, window })
    }
}
