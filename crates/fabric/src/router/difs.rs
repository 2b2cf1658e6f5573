//! DiFS: switches spread elephant flows evenly over their ports, and request earlier switches on
//! the path to move flows that collide further on.
//!
//! Source: W. Cui, C. Qian, "DiFS: Distributed Flow Scheduling for Data Center Networks", arXiv 1307.7416, 2013, sections II and III;
//! github.com/cwz920716/NSim (commit 7c18def, 2015), a later simulator of the first author, where the paper says nothing ("NSim" below).
//!
//! The edge switch of a flow's source counts the flow's bytes and marks the packets of an elephant
//! (section III-B). Edge and aggregation switches store, for each elephant, the ports through which
//! it enters and leaves, and count elephants by port: V_o the flows that could leave through
//! several ports (SIMO), V_i the flows that could enter through several ports (MISO). A new
//! elephant takes a port with the smallest V_o (Alg. 2). A control loop removes flows that have
//! disappeared, evens out V_o and, where V_i is uneven (Alg. 1), sends an explicit adaptation
//! request (EAR) back along the path of one flow. The port through which the flow should enter
//! mirrors a port of the uphill switch in the same tier; this switch moves the flow to that port,
//! or swaps it with another flow (Alg. 3). Mice and ACKs follow ECMP.
//!
//! | parameter | default | from |
//! |---|---|---|
//! | `period` | 10 ms | section IV-A |
//! | `period_jitter` | 5 % | NSim |
//! | `delta` | 1 | section III-A: the smallest possible |
//! | `elephant_bytes` | 100 KB | section IV-A |
//! | `flow_timeout` | 50 ms | NSim; section III-C has a multiple of the average round trip |
//! | `ear_bytes` | 26 | section IV-E |
//! | `ears_per_iteration` | 1 | section III-C |
//!
//! Model:
//! - A switch knows its own ports and flows, and the live next hops. It learns about flows of other
//!   switches only from packets. A switch at the top stores the ports of flows like all others, for
//!   EARs; it has nothing to balance.
//! - The mark adds no bytes. The time at which a packet left its host is in the packet.
//! - An EAR is a minimum frame on the wire, while the paper counts only its 26 bytes. It is sent
//!   first where ports have a class for packets of switches (`strict` with `class_of =
//!   "control_first"`, the default discipline with DiFS); at other ports it waits, and may be
//!   dropped, like any other packet.
//!
//! Assumed:
//! - The threshold is compared with payload bytes including retransmissions; the packet that
//!   exceeds it is the first marked packet. It takes a new path at once (`first_path`), on which it
//!   may overtake packets in flight.
//! - `rebalance`: the paper does not print the algorithm. `bo` moves random flows from a fullest
//!   port to an emptiest port until V_o differs by at most delta; `nsim` moves at most one flow,
//!   and only if the fullest port has at least one more than the mean, or has more than one while
//!   another port has none.
//! - Alg. 3 is missing from the paper; section III-E and NSim have its rules. A swap takes place
//!   where moving only the flow would leave V_o uneven by more than delta; the flow is swapped with
//!   a random flow of the recommended port.
//! - Delta and Alg. 1's T are the same threshold, which a difference must exceed; differences are
//!   absolute.
//! - Among ports with equal V_i a random port is recommended (`ties`).
//! - The port through which a flow enters is updated by a packet from another port only if it left
//!   its host after all packets before: late packets of the old path change nothing (NSim).
//! - Iterations of switches are independent, with a random phase. If they were synchronised, all
//!   switches would react to the same collision.
//! - Flows within a pod are counted (`count_intra_pod`; NSim). Entries of flows that now take
//!   another path stay until `flow_timeout`, and count.
//! - Whether a flow has one port or several is determined in the healthy network. Dead ports are
//!   removed from S but do not change the classes.
//! - Failures: a switch detects the failure of its own ports after the scenario's `detect`, and all
//!   switches have next hops without the link `converge` later. A flow whose port is no longer in S
//!   is allocated again, wherever the failure is. EARs of a failure are `failure_pace` apart, and
//!   are repeated with the control loop while packets of their flows arrive. They are handled like
//!   all others: until all switches know of the failure, a swap may send another flow into the dead
//!   end. A packet without a port is lost, except for a flow that is new where S is empty: it
//!   follows ECMP.
//!
//! DiFS-FM, `measure = "rate"` (the paper names it, section IV-F): V_o and V_i are sums of rates. A
//! flow's rate is a moving average of the bytes since the last iteration, with weight
//! `rate_weight`. A flow is moved if the difference of two ports is larger than its rate and than
//! `rate_slack` of the link. An EAR leads to a swap if moving the flow would make the recommended
//! port exceed the other port by more than that slack. The flow is swapped with the one that leaves
//! the smallest difference, if a swap leaves a smaller difference than a move. All of this is
//! flowloom's.

use super::{Decides, Duties, Env, Router, SwitchCx, ecmp};
use crate::net::{HOST_TIER, Tier};
use crate::paths::FiveTuple;
use crate::routes::Routes;
use base::params::{Params as _, Problem};
use base::registry::{Counter, Meta};
use base::{Bytes, Dur, Fraction, LinkId, NodeId};
use proto::{Kind, Packet};

mod check;
mod control;
mod failure;
mod load;
mod request;
mod switch;
mod table;

use load::Loads;
pub use load::Measure;
use switch::{Switch, Ways};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "DiFS: switches balance elephants over their ports, and request moves that only other switches can make",
    source: "Cui and Qian, arXiv 1307.7416, 2013",
    implies: &[
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "2"),
        ("qdisc.class_of", "control_first"),
        ("qdisc.evict", "worst_class"),
    ],
    kinds: &["ear"],
    counters: &[
        Counter {
            name: "ears",
            unit: "packets",
            about: "EARs that the switch created because of an imbalance and sent through the port",
        },
        Counter {
            name: "failure_ears",
            unit: "packets",
            about: "EARs that the switch created because of a failure and sent through the port",
        },
        Counter {
            name: "ear_bytes",
            unit: "bytes",
            about: "bytes of `ears` and `failure_ears`, counted as in the paper: `ear_bytes` each",
        },
        Counter { name: "ears_forwarded", unit: "packets", about: "EARs of other switches forwarded through the port" },
        Counter { name: "ears_ignored", unit: "packets", about: "EARs that arrived through the port and changed nothing" },
        Counter { name: "allocated", unit: "flows", about: "flows that the path allocation assigned to the port" },
        Counter { name: "moved", unit: "flows", about: "flows that an EAR moved to the port" },
        Counter { name: "swapped", unit: "flows", about: "flows that an EAR moved to the port in exchange for another flow" },
        Counter {
            name: "rebalanced",
            unit: "flows",
            about: "flows that the switch moved to the port without an EAR: by its control loop, or from a dead port",
        },
    ],
    ..Meta::PLAIN
};

/// An explicit adaptation request.
const EAR: Kind = Kind(Kind::ROUTER);

/// The timer of the control loop, and the timer of EARs for failures.
const LOOP: u32 = 0;
const PACE: u32 = 1;

/// The path tag of an elephant's packets.
const MARK: u16 = 1;

base::choice! {
    /// How flows are moved between ports that have become uneven.
    pub enum Rebalance {
        /// Until the ports differ by at most delta (Balanced Output).
        Bo = "bo",
        /// At most one flow per iteration, as in NSim.
        Nsim = "nsim",
    }
}

base::choice! {
    /// Which of several ports with the least V_i is recommended.
    pub enum Ties {
        /// A random one.
        Random = "random",
        /// The first port, as in NSim.
        Lowest = "lowest",
    }
}

base::choice! {
    /// Which port a flow takes when it becomes an elephant.
    pub enum FirstPath {
        /// The port chosen by the path allocation.
        Allocate = "allocate",
        /// The port that the flow had as a mouse.
        Keep = "keep",
    }
}

base::params! {
    /// Parameters of DiFS.
    pub struct Params {
        /// Time between two iterations of the control loop.
        period: Dur = "10ms" in Dur::from_us(10)..=Dur::from_secs(10), "section IV-A";
        /// How early or late an iteration may be, as a fraction of the period.
        period_jitter: Fraction = "0.05" in Fraction(0)..=Fraction(500_000_000), "NSim";
        /// Number of flows by which two ports may differ (delta).
        delta: u32 = "1" in 1..=1000, "section III-A: the smallest possible";
        /// A flow with more bytes than this is an elephant.
        elephant_bytes: Bytes = "100KB" in Bytes(0)..=Bytes(1_000_000_000_000), "section IV-A";
        /// A flow without packets for this long has disappeared.
        flow_timeout: Dur = "50ms" in Dur::from_us(10)..=Dur::from_secs(1000), "NSim; a multiple of the round trip (section III-C)";
        /// Size of an EAR in the count of the overhead.
        ear_bytes: u16 = "26" in 1..=1500, "section IV-E";
        /// Size of an EAR on the wire.
        ear_wire: u16 = "84" in 40..=1500, "the smallest Ethernet frame with preamble and gap";
        /// Largest number of EARs that a switch sends in one iteration, not counting those for
        /// failures.
        ears_per_iteration: u32 = "1" in 0..=1000, "section III-C";
        /// How flows are moved between ports that have become uneven.
        rebalance: Rebalance = "bo", "flowloom: goal of section III-A; the paper does not print the algorithm";
        /// Which of several ports with the least V_i is recommended.
        ties: Ties = "random", "flowloom; NSim takes the lowest";
        /// Which port a flow takes when it becomes an elephant.
        first_path: FirstPath = "allocate", "section III-D";
        /// Count flows between two edge switches of the same pod.
        count_intra_pod: bool = "true", "NSim";
        /// The quantity that ports are balanced by.
        measure: Measure = "count", "section III-A; `rate` is DiFS-FM of section IV-F";
        /// With `measure = "rate"`: weight of the latest interval in a flow's rate.
        rate_weight: Fraction = "0.2" in Fraction(1_000_000)..=Fraction::ONE, "flowloom";
        /// With `measure = "rate"`: fraction of a link by which two ports may differ.
        rate_slack: Fraction = "0.1" in Fraction(0)..=Fraction::ONE, "flowloom";
        /// Time between two EARs for failures at one switch.
        failure_pace: Dur = "100us" in Dur(1)..=Dur::from_secs(1), "flowloom";
        /// Whether switches send EARs for failures.
        failure_ears: bool = "true", "section III-G";
        /// Whether all switches use the same hash for mice and ACKs; see `ecmp`.
        ecmp_seed: ecmp::Seed = "mix", "docs/model.md; `same`: NSim";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, env: &Env<'_>) -> Vec<Problem> {
    check::check(env)
}

/// The state of all switches.
pub struct Difs {
    params: Params,
    /// Routes mice and ACKs.
    mice: ecmp::Ecmp,
    /// The switches, by node.
    switches: Vec<Switch>,
    /// Whether a link leaves a host, by link.
    from_host: Vec<bool>,
    /// The node that a link leaves, by link.
    from_node: Vec<NodeId>,
    healthy: Routes,
    top: Tier,
}

/// Everything outside the switch that determines an elephant's path.
struct Rules<'a> {
    params: &'a Params,
    ways: Ways<'a>,
    loads: Loads,
}

impl Difs {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let net = env.net;
        Difs {
            params: params.clone(),
            mice: ecmp::Ecmp::new(&ecmp::Params { seed: params.ecmp_seed, ..ecmp::Params::defaults() }, env),
            switches: (0..net.nodes().len() as u32).map(|node| Switch::new(net, NodeId(node), env.seed)).collect(),
            from_host: net.links().iter().map(|link| net.node(link.from).tier == HOST_TIER).collect(),
            from_node: net.links().iter().map(|link| link.from).collect(),
            healthy: env.routes.clone(),
            top: net.nodes().iter().map(|node| node.tier).max().unwrap_or(HOST_TIER),
        }
    }
    /// Returns that switches decide on packets from the source; ACKs follow planned paths.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::There, timers: true, ..Duties::PLAN }
    }

    /// Returns the current switch, and the rules for it.
    fn at(&mut self, cx: &SwitchCx<'_>) -> (&mut Switch, Rules<'_>) {
        let Difs { params, switches, healthy, top, .. } = self;
        let switch = &mut switches[cx.at.index()];
        let rate = switch.ups.first().map_or(base::Rate(0), |&up| cx.net.link(up).rate);
        let loads = Loads::new(params.measure, params.delta, params.rate_weight, params.rate_slack, rate);
        (switch, Rules { params, ways: Ways { healthy, intra_pod: params.count_intra_pod, top: *top }, loads })
    }

    /// Returns whether a packet belongs to an elephant. Marks packets of elephants that arrive from
    /// a host of the switch.
    #[inline]
    fn is_marked(&mut self, packet: &mut Packet, cx: &SwitchCx<'_>) -> bool {
        if packet.path_tag == MARK {
            return true;
        }
        if !cx.from.is_some_and(|from| self.from_host[from.index()]) {
            return false;
        }
        let switch = &mut self.switches[cx.at.index()];
        let (bytes, threshold) = (cx.payload_bytes, self.params.elephant_bytes.0);
        let marked = switch.table.get(packet.flow).is_some() || switch.is_elephant(packet.flow, bytes, threshold);
        packet.path_tag = if marked { MARK } else { 0 };
        marked
    }

    /// Returns the port of a mouse.
    fn by_hash(&mut self, packet: &Packet, cx: &SwitchCx<'_>) -> Option<LinkId> {
        match cx.routes.candidates(cx.at, cx.ends(packet).1) {
            [] => None,
            [only] => Some(*only),
            several => Some(several[self.mice.choose(cx.at, &cx.tuple(packet), several) as usize]),
        }
    }

    #[cold]
    fn allocate(&mut self, packet: &Packet, cx: &SwitchCx<'_>) -> Option<LinkId> {
        let kept = (self.params.first_path == FirstPath::Keep).then(|| self.by_hash(packet, cx)).flatten();
        let (switch, Rules { ways, loads, .. }) = self.at(cx);
        switch.allocate(packet, kept, &ways, &loads, cx).or_else(|| self.by_hash(packet, cx))
    }
}

impl Router for Difs {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.mice.choose(at, path, candidates)
    }

    fn next(&mut self, packet: &mut Packet, cx: &mut SwitchCx<'_>) -> Option<LinkId> {
        if packet.kind == EAR {
            return self.switches[cx.at.index()].send_on(packet, cx);
        }
        if !self.is_marked(packet, cx) {
            return self.by_hash(packet, cx);
        }
        match self.switches[cx.at.index()].pass(packet, cx) {
            Some(port) => port,
            None => self.allocate(packet, cx),
        }
    }

    fn on_start(&mut self, cx: &mut SwitchCx<'_>) {
        let (switch, Rules { params, .. }) = self.at(cx);
        switch.due = cx.now + Dur(switch.rng.below(params.period.ps()));
        cx.arm(LOOP, switch.due);
    }

    fn on_timer(&mut self, key: u32, cx: &mut SwitchCx<'_>) {
        let (switch, rules) = self.at(cx);
        if key == PACE {
            return switch.ask_for_stranded(&rules, cx);
        }
        switch.iterate(&rules, cx);
        let (period, jitter) = (rules.params.period, rules.params.period.times(rules.params.period_jitter));
        switch.due += period;
        let late = Dur(switch.rng.below(2 * jitter.ps() + 1));
        cx.arm(LOOP, switch.due.before(jitter) + late);
    }

    fn on_link(&mut self, link: LinkId, up: bool, cx: &mut SwitchCx<'_>) {
        let switch = &mut self.switches[cx.at.index()];
        if let Some(place) = switch.ups.iter().position(|&port| port == link) {
            switch.alive[place] = up;
        }
    }

    fn on_routes(&mut self, cx: &mut SwitchCx<'_>) {
        let (switch, rules) = self.at(cx);
        switch.on_routes(&rules, cx);
    }

    fn take(&mut self, packet: &Packet, cx: &mut SwitchCx<'_>) -> bool {
        let (switch, rules) = self.at(cx);
        switch.obey(packet, &rules, cx)
    }

    fn counts(&self, link: LinkId) -> &[u64] {
        self.switches[self.from_node[link.index()].index()].counts(link)
    }
}

#[cfg(test)]
mod tests;
