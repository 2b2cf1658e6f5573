//! DiFS: switches spread elephant flows evenly over their ports, and ask the switches before them to move flows that collide further on.
//!
//! Source: W. Cui, C. Qian, "DiFS: Distributed Flow Scheduling for Data Center Networks", arXiv 1307.7416, 2013, sections II and III;
//! github.com/cwz920716/NSim (commit 7c18def, 2015), a later simulator of the first author, where the paper says nothing ("NSim" below).
//!
//! The edge switch of a flow's source counts the flow's bytes and marks the packets of an elephant (section III-B). Edge and aggregation switches
//! keep, for each elephant, the ports that it comes in and leaves through, and count elephants by port: V_o those for which there are several ports
//! out (SIMO), V_i those for which there are several ports in (MISO). A new elephant takes a port with the least V_o (Alg. 2). A control loop
//! forgets flows that have disappeared, evens V_o out and, where V_i is uneven (Alg. 1), sends an explicit adaptation request (EAR) back along the
//! path of one flow. The port that the flow should come in through mirrors one of the uphill switch in the same tier; this switch moves the flow
//! there, or swaps it with another one (Alg. 3). Mice and ACKs follow ECMP.
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
//! - A switch knows its own ports and flows, and the live next hops. What it learns of other switches' flows comes in packets. A switch at the top
//!   keeps the ports of flows as all others do, for EARs; it has nothing to balance.
//! - The mark takes no bytes. The time at which a packet left its host is in the packet.
//! - An EAR is a minimum frame on the wire, while the paper counts 26 bytes of it. It goes first where ports have a class for packets of switches
//!   (`strict` with `class_of = "control_first"`, which stands beside DiFS by default); at other ports it waits, and may be dropped, with the rest.
//!
//! Assumed:
//! - The threshold is exceeded by payload bytes, retransmissions included; the packet that exceeds it is the first one marked. It takes a new path
//!   at once (`first_path`), which may overtake packets under way.
//! - `rebalance`: the algorithm is not printed. `bo` moves random flows from a fullest port to an emptiest one until V_o differs by at most delta;
//!   `nsim` moves at most one, and only if the fullest port has one more than the mean, or more than one while another has none.
//! - Alg. 3 is missing from the paper; section III-E and NSim have its rules. A swap takes place where moving the flow alone would leave
//!   V_o uneven by more than delta; its partner is a random flow of the recommended port.
//! - Delta and Alg. 1's T are the same threshold, which a difference must exceed; differences are absolute.
//! - Of ports with equal V_i a random one is recommended (`ties`).
//! - A flow comes in through another port once a packet does that left its host after all those before: late packets of the old path change
//!   nothing (NSim).
//! - Iterations of switches are independent, with a random phase. In lockstep, switches would all react to one collision.
//! - Flows within a pod are counted (`count_intra_pod`; NSim). Entries of flows that have moved elsewhere stay until `flow_timeout`, and count.
//! - What is single and what is multiple for a flow follows from the healthy network. Dead ports leave S, not the classes.
//! - Failures: a switch sees its own ports die after the scenario's `detect`, and all have the next hops without the link `converge` later. A flow
//!   whose port is not in S any more is allocated anew, wherever the failure was. EARs of a failure are `failure_pace` apart, and are repeated with
//!   the control loop while packets of their flows keep coming. They are obeyed as all others are: until all switches know, a swap may send another
//!   flow into the dead end. A packet without a port is lost, but for a flow that is new where S is empty: it
//!   follows ECMP.
//!
//! DiFS-FM, `measure = "rate"` (the paper names it, section IV-F): V_o and V_i are sums of rates. A flow's rate is a moving average of what passed
//! since the last iteration, with weight `rate_weight`. A flow is moved if the difference of two ports is larger than its rate and than
//! `rate_slack` of the link; an EAR leads to a swap if the recommended port would exceed the other one by more than that slack, with the flow that
//! leaves the least difference, if a swap leaves less than none. All of this is flowloom's.

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

/// What `list` and `check` know of it.
pub const META: Meta = Meta {
    summary: "DiFS: switches even out the elephants of their ports, and ask for what they cannot reach",
    source: "Cui and Qian, arXiv 1307.7416, 2013",
    implies: &[
        ("qdisc.kind", "strict"),
        ("qdisc.classes", "2"),
        ("qdisc.class_of", "control_first"),
        ("qdisc.evict", "worst_class"),
    ],
    kinds: &["ear"],
    counters: &[
        Counter { name: "ears", unit: "packets", about: "EARs made for an imbalance and sent out of the port" },
        Counter { name: "failure_ears", unit: "packets", about: "EARs made for a failure and sent out of the port" },
        Counter { name: "ear_bytes", unit: "bytes", about: "bytes of both, `ear_bytes` each, as the paper counts them" },
        Counter { name: "ears_forwarded", unit: "packets", about: "EARs of other switches sent on through the port" },
        Counter { name: "ears_ignored", unit: "packets", about: "EARs that came in through the port and changed nothing" },
        Counter { name: "allocated", unit: "flows", about: "flows that the path allocation gave to the port" },
        Counter { name: "moved", unit: "flows", about: "flows that an EAR moved to the port" },
        Counter { name: "swapped", unit: "flows", about: "flows that an EAR moved to the port in exchange for another flow" },
        Counter {
            name: "rebalanced",
            unit: "flows",
            about: "flows that the switch moved to the port by itself: by its control loop, or from a dead port",
        },
    ],
    ..Meta::PLAIN
};

/// An explicit adaptation request.
const EAR: Kind = Kind(Kind::ROUTER);

/// The timer of the control loop, and that of EARs for failures.
const LOOP: u32 = 0;
const PACE: u32 = 1;

/// The path tag of an elephant's packets.
const MARK: u16 = 1;

base::choice! {
    /// How flows are spread anew over ports that have become uneven.
    pub enum Rebalance {
        /// Until the ports differ by delta at most (Balanced Output).
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
        /// The first, as in NSim.
        Lowest = "lowest",
    }
}

base::choice! {
    /// Which port a flow takes when it becomes an elephant.
    pub enum FirstPath {
        /// That of the path allocation.
        Allocate = "allocate",
        /// The one that it has had as a mouse.
        Keep = "keep",
    }
}

base::params! {
    /// Parameters of DiFS.
    pub struct Params {
        /// From one iteration of the control loop to the next.
        period: Dur = "10ms" in Dur::from_us(10)..=Dur::from_secs(10), "section IV-A";
        /// How early or late an iteration may be, as a share of the period.
        period_jitter: Fraction = "0.05" in Fraction(0)..=Fraction(500_000_000), "NSim";
        /// Flows by which two ports may differ (delta).
        delta: u32 = "1" in 1..=1000, "section III-A: the smallest possible";
        /// A flow of more bytes is an elephant.
        elephant_bytes: Bytes = "100KB" in Bytes(0)..=Bytes(1_000_000_000_000), "section IV-A";
        /// A flow without packets for so long has disappeared.
        flow_timeout: Dur = "50ms" in Dur::from_us(10)..=Dur::from_secs(1000), "NSim; a multiple of the round trip (section III-C)";
        /// Size of an EAR, for the overhead.
        ear_bytes: u16 = "26" in 1..=1500, "section IV-E";
        /// Size of an EAR on the wire.
        ear_wire: u16 = "84" in 40..=1500, "the least Ethernet frame with preamble and gap";
        /// EARs that a switch sends in one iteration, failures apart.
        ears_per_iteration: u32 = "1" in 0..=1000, "section III-C";
        /// How flows are spread anew over ports that have become uneven.
        rebalance: Rebalance = "bo", "flowloom: goal of section III-A; the paper does not print the algorithm";
        /// Which of several ports with the least V_i is recommended.
        ties: Ties = "random", "flowloom; NSim takes the lowest";
        /// Which port a flow takes when it becomes an elephant.
        first_path: FirstPath = "allocate", "section III-D";
        /// Flows between two edge switches of a pod are counted.
        count_intra_pod: bool = "true", "NSim";
        /// What ports are balanced by.
        measure: Measure = "count", "section III-A; `rate` is DiFS-FM of section IV-F";
        /// Weight of the latest interval in a flow's rate, with `measure = "rate"`.
        rate_weight: Fraction = "0.2" in Fraction(1_000_000)..=Fraction::ONE, "flowloom";
        /// Share of a link by which two ports may differ, with `measure = "rate"`.
        rate_slack: Fraction = "0.1" in Fraction(0)..=Fraction::ONE, "flowloom";
        /// From one EAR of a failure to the next, at one switch.
        failure_pace: Dur = "100us" in Dur(1)..=Dur::from_secs(1), "flowloom";
        /// Switches send EARs for failures.
        failure_ears: bool = "true", "section III-G";
        /// Whether switches hash mice and ACKs alike; see `ecmp`.
        ecmp_seed: ecmp::Seed = "mix", "docs/model.md; `same`: NSim";
    }
}

/// Problems that show only against the network.
pub fn check(_params: &Params, env: &Env<'_>) -> Vec<Problem> {
    check::check(env)
}

/// The switches of the network.
pub struct Difs {
    params: Params,
    /// Chooses for mice and ACKs.
    mice: ecmp::Ecmp,
    /// By node.
    switches: Vec<Switch>,
    /// By link: it leaves a host.
    from_host: Vec<bool>,
    /// By link: the node that it leaves.
    from_node: Vec<NodeId>,
    healthy: Routes,
    top: Tier,
}

/// What an elephant's path depends on beside the switch itself.
struct Rules<'a> {
    params: &'a Params,
    ways: Ways<'a>,
    loads: Loads,
}

impl Difs {
    /// For a network.
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
    /// Switches decide for packets from the source; ACKs follow planned paths.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::There, timers: true, ..Duties::PLAN }
    }

    /// The switch at hand, and what it goes by.
    fn at(&mut self, cx: &SwitchCx<'_>) -> (&mut Switch, Rules<'_>) {
        let Difs { params, switches, healthy, top, .. } = self;
        let switch = &mut switches[cx.at.index()];
        let rate = switch.ups.first().map_or(base::Rate(0), |&up| cx.net.link(up).rate);
        let loads = Loads::new(params.measure, params.delta, params.rate_weight, params.rate_slack, rate);
        (switch, Rules { params, ways: Ways { healthy, intra_pod: params.count_intra_pod, top: *top }, loads })
    }

    /// Marks the packets of an elephant that come from a host of the switch.
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

    /// The port of a mouse.
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
