//! MERP's route control (MEMR): a flow takes the next hop whose port would serve it best, according
//! to the flow tables of MERP's ports.
//!
//! Source: S. Zhang, Z. Qian, H. Wu, S. Lu, "Efficient Data Center Flow Scheduling Without Starvation Using Expansion Ratio", IEEE
//! TPDS 28(11), 2017, section 5.3: Alg. 4 (two stages), Alg. 5 (GPE), Alg. 6 (GMER).
//!
//! Stage 1 keeps the ports at which the flow's own expansion ratio would be smallest (GPE). Among
//! these, stage 2 takes the port whose last flow would be served fastest, given what flows to the
//! same destination can expect (GMER).
//!
//! Model: a path is represented by its next port at this switch. The rest of the path enters
//! through the expected rates that ports exchange.
//!
//! Assumed:
//! - Every switch with several next hops decides when a SYN arrives, and when DATA arrives of a
//!   flow that the port does not know (any more). The choice holds while the port has the flow in
//!   its table: until a FIN, silence, or the failure of the link. A retransmitted SYN keeps it; a
//!   SYN that requests another path (`reroute`) takes any port but the present one.
//! - Remaining ties are broken by the flow's hash (ECMP with `mix`): otherwise all flows that find
//!   empty tables would take the first port. The hash also routes packets of flows that are in no
//!   table (a DET after its FIN, the fallback of section 4.4), and all ACKs.
//! - GPE breaks ties as VDG does. A port where no flow precedes the new one has GPE 1; so has an
//!   empty port, for which Alg. 5 returns nothing.
//! - Ports of unequal rate are compared by GPE * C_ref / C: by when the flow would be done.
//! - `gmer_cmp` selects the flows to the same destination that limit the rate of a port's last flow
//!   (Alg. 6 l. 12); the direction of the comparison of sizes is ambiguous in the copies of the
//!   paper.

use super::{Decides, Duties, Env, PortAccess, Router, SwitchCx, ecmp};
use crate::agent::AnyAgent;
use crate::agent::merp::{Row, vdg};
use crate::paths::FiveTuple;
use base::params::{Params as _, Problem};
use base::registry::{Meta, Needs};
use base::{FlowId, FlowMap, HostId, LinkId, NodeId, Rate, Time};
use proto::transport::merp::{DET, Header, OVERFLOW};
use proto::{Flow, Kind, Packet};
use std::cmp::Ordering;

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "MERP's routing (MEMR): chooses next hops by the flow tables of MERP's ports",
    source: "Zhang et al., IEEE TPDS 28(11) 2017, section 5.3, Alg. 4 to 6",
    needs: Needs { agent: &["merp"], ..Needs::NONE },
    packets_only: "it reads the flow tables of ports, which only packets fill",
    ..Meta::PLAIN
};

base::choice! {
    /// Which flows to the same destination limit GMER, by their size.
    pub enum GmerCmp {
        /// Flows of the new flow's size or larger.
        Le = "le",
        /// Flows of the new flow's size or smaller.
        Ge = "ge",
        /// All flows.
        Any = "any",
    }
}

base::params! {
    /// Parameters of MEMR.
    pub struct Params {
        /// Which flows to the same destination limit GMER, by their size.
        gmer_cmp: GmerCmp = "le", "Alg. 6 l. 12: f.size <= f_i.size";
    }
}

/// Returns the problems of parameters that depend on the network.
pub fn check(_params: &Params, _env: &Env<'_>) -> Vec<Problem> {
    Vec::new()
}

/// The state of all switches.
pub struct Memr {
    gmer_cmp: GmerCmp,
    ties: ecmp::Ecmp,
    /// The port of each flow, by node.
    pins: Vec<FlowMap<LinkId>>,
    // Buffers.
    entries: Vec<vdg::Entry>,
    placed: Vec<vdg::Placed>,
    scratch: vdg::Scratch,
    best: Vec<LinkId>,
}

impl Memr {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Memr {
            gmer_cmp: params.gmer_cmp,
            ties: ecmp::Ecmp::new(&ecmp::Params::defaults(), env),
            pins: vec![FlowMap::default(); env.net.nodes().len()],
            entries: Vec::new(),
            placed: Vec::new(),
            scratch: vdg::Scratch::default(),
            best: Vec::new(),
        }
    }
    /// Returns that MEMR decides on packets from the source; paths from the destination are
    /// planned.
    pub fn duties(_params: &Params, _env: &Env<'_>) -> Duties {
        Duties { decides: Decides::There, ports: PortAccess::Reads, ..Duties::PLAN }
    }

    /// Puts the best port into `self.best`, or all best ports if there is a tie (Alg. 4).
    fn select<'a>(&mut self, flow: &Flow, now: Time, flows: &[Flow], ports: impl Iterator<Item = (LinkId, Port<'a>)>) {
        self.best.clear();
        let mut least: Option<Score> = None;
        for (link, port) in ports {
            let score = Score { done_ps: self.done(flow, now, &port), ps_per_byte: tail(self.gmer_cmp, flow, now, flows, &port) };
            match least.map_or(Ordering::Less, |least| score.cmp(&least)) {
                Ordering::Less => {
                    self.best.clear();
                    self.best.push(link);
                    least = Some(score);
                }
                Ordering::Equal => self.best.push(link),
                Ordering::Greater => {}
            }
        }
    }

    /// Returns the time until a port is done with the flow, if flows placed after it wait: GPE
    /// (Alg. 5) times the flow's size over the port's rate. This is GPE * C_ref / C times a factor
    /// that is the same for all ports.
    fn done(&mut self, flow: &Flow, now: Time, port: &Port<'_>) -> u64 {
        self.entries.clear();
        let rows = port.table.into_iter().flat_map(FlowMap::iter);
        for (id, row) in rows.filter(|(id, _)| *id != flow.id) {
            self.entries.push(vdg::Entry { size: row.size, rs: row.rs, arrived: row.arrived, id: id.0 });
        }
        let (me, size) = (self.entries.len(), flow.size_wire_bytes);
        self.entries.push(vdg::Entry { size, rs: size, arrived: now, id: flow.id.0 });
        vdg::vdg(now, port.rate, &self.entries, &mut self.placed, &mut self.scratch);
        let mine = self.placed.iter().find(|placed| placed.index == me).expect("every flow is placed");
        mine.vdl.since(now).ps()
    }

    /// Returns the port that a flow takes from now on.
    fn pick(&mut self, packet: &Packet, candidates: &[LinkId], cx: &SwitchCx<'_>, barred: Option<LinkId>) -> LinkId {
        let port = |&link: &LinkId| (link, Port { rate: cx.net.link(link).rate, table: table(cx, link) });
        let open = candidates.iter().filter(|&&link| Some(link) != barred);
        self.select(&cx.flows[packet.flow.index()], cx.now, cx.flows, open.map(port));
        let tie = if self.best.len() == 1 { 0 } else { self.ties.choose(cx.at, &cx.tuple(packet), &self.best) };
        self.best[tie as usize]
    }
}

impl Router for Memr {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        self.ties.choose(at, path, candidates)
    }
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        if candidates.len() == 1 {
            return 0;
        }
        let (pins, flow) = (&mut self.pins[cx.at.index()], packet.flow);
        let index = |link: LinkId| candidates.iter().position(|&candidate| candidate == link).map(|i| i as u32);
        // A flow that overflowed a table passes its port once more, which deletes the flow's entry.
        let leaves = packet.kind == Kind::FIN || packet.prio == OVERFLOW;
        let pin = if leaves { pins.remove(flow) } else { pins.get(flow).copied() };
        // A dead link is not a candidate.
        let pinned = pin.and_then(index);
        if leaves || packet.kind == DET {
            return pinned.unwrap_or_else(|| self.choose(cx.at, &cx.tuple(packet), candidates));
        }
        let known = pin.filter(|&link| pinned.is_some() && table(cx, link).is_some_and(|table| table.contains(flow)));
        let reroute = packet.kind == Kind::SYN && packet.get_ext::<Header>(cx.ext).bits & Header::REROUTE != 0;
        if let (Some(_), Some(pinned), false) = (known, pinned, reroute) {
            return pinned;
        }
        let link = self.pick(packet, candidates, cx, pin.filter(|_| reroute));
        self.pins[cx.at.index()].insert(flow, link);
        index(link).expect("picked from the candidates")
    }
}

/// Returns the flow table of a port, if the port has MERP's agent.
fn table<'a>(cx: &SwitchCx<'a>, link: LinkId) -> Option<&'a FlowMap<Row>> {
    match cx.ports.agent(link)? {
        AnyAgent::Merp(port) => Some(port.table()),
        _ => None,
    }
}

/// A port as MEMR sees it.
struct Port<'a> {
    rate: Rate,
    table: Option<&'a FlowMap<Row>>,
}

/// The score of a port, compared by `done_ps` and then by the time per byte of its last flow.
/// Smaller is better.
#[derive(Clone, Copy, Debug)]
struct Score {
    done_ps: u64,
    ps_per_byte: Ratio,
}

impl Score {
    fn cmp(&self, other: &Score) -> Ordering {
        self.done_ps.cmp(&other.done_ps).then_with(|| self.ps_per_byte.cmp(&other.ps_per_byte))
    }
}

/// A time over a number of bytes, compared exactly.
#[derive(Clone, Copy, Debug)]
struct Ratio(u64, u64);

impl Ratio {
    fn cmp(&self, other: &Ratio) -> Ordering {
        (u128::from(self.0) * u128::from(other.1)).cmp(&(u128::from(other.0) * u128::from(self.1)))
    }
    fn min(self, other: Ratio) -> Ratio {
        if other.cmp(&self).is_lt() { other } else { self }
    }
    fn max(self, other: Ratio) -> Ratio {
        if other.cmp(&self).is_gt() { other } else { self }
    }
}

/// Returns GMER (Alg. 6) as a time per byte: that of the flow that would be last, or a longer one
/// if a flow to the same destination expects no faster service.
fn tail(cmp: GmerCmp, flow: &Flow, now: Time, flows: &[Flow], port: &Port<'_>) -> Ratio {
    let size = flow.size_wire_bytes;
    let rows = || port.table.into_iter().flat_map(FlowMap::iter).filter(|(id, _)| *id != flow.id);
    let all = port.rate.tx_time(rows().map(|(_, row)| row.rs).sum::<u64>() + size);
    let last = |least: Ratio, (_, row): (FlowId, &Row)| least.min(Ratio((all + now.since(row.arrived)).ps(), row.size)); // Alg. 6 l. 2-9
    let least = rows().fold(Ratio(all.ps(), size), last);
    let dst = |id: FlowId| -> HostId { flows[id.index()].dst };
    let bounds = |(id, row): &(FlowId, &Row)| {
        let fits = match cmp {
            GmerCmp::Le => size <= row.size,
            GmerCmp::Ge => size >= row.size,
            GmerCmp::Any => true,
        };
        fits && dst(*id) == flow.dst
    };
    // Alg. 6 l. 11-15, 1 / esr = (vdl - aT) / size.
    rows().filter(bounds).fold(least, |most, (_, row)| most.max(Ratio(row.expected.ps(), row.size)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::merp::{Merp, Params as PortParams};
    use crate::agent::{self, Agent};
    use crate::net::{Net, NetBuilder};
    use crate::qdisc::{self, AnyQdisc};
    use crate::router::Ports;
    use crate::routes::Routes;
    use base::{Dur, Slab};
    use proptest::prelude::*;
    use proto::kit::script;
    use proto::packet::Ext;

    /// One byte per second.
    const SLOW: Rate = Rate(8);
    const SEC: u64 = 1_000_000_000_000;

    /// (id, aT in s, size, rs, vdl - aT in s as a fraction); esr is the size over that fraction.
    type Known = (u32, u64, u64, u64, (u64, u64));

    fn table(rows: &[Known]) -> FlowMap<Row> {
        let mut table = FlowMap::default();
        for &(id, at, size, rs, (num, den)) in rows {
            let expected = Dur(num * SEC / den);
            let (arrived, last_seen) = (Time(at * SEC), Time::ZERO);
            let held_until = Time::ZERO;
            let row = Row { size, rs, arrived, local: expected, expected, paused_by_other_port: false, last_seen, held_until };
            table.insert(FlowId(id), row);
        }
        table
    }
    /// Flows of these wire bytes to these hosts.
    fn flows(all: &[(u64, u32)]) -> Vec<Flow> {
        let flow = |(i, &(size, dst)): (usize, &(u64, u32))| Flow {
            size_wire_bytes: size,
            dst: HostId(dst),
            ..script::flow(i as u32, size)
        };
        all.iter().enumerate().map(flow).collect()
    }
    fn memr(gmer_cmp: GmerCmp) -> Memr {
        let net = Net::default();
        Memr::new(
            &Params { gmer_cmp },
            &Env { net: &net, routes: &Routes::new(&net, &[]), seed: 0, max_rtt: base::Dur::ZERO, given: base::Given::none() },
        )
    }
    /// GPE at the port's own rate: (ps until done, ps that the flow takes on an empty port).
    fn gpe(flow: &Flow, now: u64, rate: Rate, table: &FlowMap<Row>) -> (u64, u64) {
        let done = memr(GmerCmp::Le).done(flow, Time(now * SEC), &Port { rate, table: Some(table) });
        (done, rate.tx_time(flow.size_wire_bytes).ps())
    }
    fn gmer(cmp: GmerCmp, flow: &Flow, now: u64, flows: &[Flow], table: &FlowMap<Row>) -> Ratio {
        tail(cmp, flow, Time(now * SEC), flows, &Port { rate: SLOW, table: Some(table) })
    }
    /// The best ports, by index; all of them have the slow rate.
    fn best(flow: &Flow, now: u64, flows: &[Flow], tables: &[FlowMap<Row>]) -> Vec<u32> {
        let mut memr = memr(GmerCmp::Le);
        let port = |(i, table)| (LinkId(i as u32), Port { rate: SLOW, table: Some(table) });
        memr.select(flow, Time(now * SEC), flows, tables.iter().enumerate().map(port));
        memr.best.iter().map(|l| l.0).collect()
    }
    fn assert_ratio(found: Ratio, num: u64, den: u64) {
        assert!(found.cmp(&Ratio(num * SEC, den)).is_eq(), "{found:?} is not {num}/{den} s per byte");
    }

    /// The example of section 5.2.
    #[test]
    fn g1_the_port_that_serves_the_flow_first() {
        let all = flows(&[(4, 0), (1, 0), (1, 0), (1, 0)]);
        let p1 = table(&[(0, 0, 4, 4, (4, 1))]);
        let p2 = table(&[(1, 0, 1, 1, (1, 1)), (2, 0, 1, 1, (2, 1))]);
        assert_eq!([&p1, &p2].map(|t| gpe(&all[3], 0, SLOW, t)), [(SEC, SEC), (3 * SEC, SEC)]);
        assert_eq!(best(&all[3], 0, &all, &[p1, p2]), [0]);
    }

    #[test]
    fn g2_two_stages() {
        let all = flows(&[(20, 0), (4, 0), (10, 0), (6, 0), (30, 0), (5, 1)]);
        let p1 = table(&[(0, 0, 20, 12, (1, 1)), (1, 6, 4, 4, (1, 1))]);
        let p2 = table(&[(2, 2, 10, 8, (1, 1)), (3, 9, 6, 6, (1, 1))]);
        let p3 = table(&[(4, 4, 30, 25, (1, 1))]);
        let f = &all[5];
        assert_eq!([&p1, &p2, &p3].map(|t| gpe(f, 10, SLOW, t)), [(9 * SEC, 5 * SEC), (5 * SEC, 5 * SEC), (5 * SEC, 5 * SEC)]);
        assert_ratio(gmer(GmerCmp::Le, f, 10, &all, &p2), 27, 10);
        assert_ratio(gmer(GmerCmp::Le, f, 10, &all, &p3), 6, 5);
        assert_eq!(best(f, 10, &all, &[p1, p2, p3]), [2]);
    }

    #[test]
    fn g3_flows_to_the_same_destination_bound_the_tail() {
        let all = flows(&[(20, 1), (40, 2), (5, 1)]);
        let q1 = table(&[(0, 0, 20, 20, (40, 1))]);
        let q2 = table(&[(1, 0, 40, 40, (320, 1))]);
        assert_eq!([&q1, &q2].map(|t| gpe(&all[2], 0, SLOW, t)), [(5 * SEC, 5 * SEC); 2]);
        assert_ratio(gmer(GmerCmp::Le, &all[2], 0, &all, &q1), 2, 1);
        assert_ratio(gmer(GmerCmp::Le, &all[2], 0, &all, &q2), 9, 8);
        // Without a bound.
        assert_ratio(gmer(GmerCmp::Ge, &all[2], 0, &all, &q1), 5, 4);
        assert_eq!(best(&all[2], 0, &all, &[q1, q2]), [1]);
    }

    #[test]
    fn g4_the_sign_of_the_comparison() {
        let all = flows(&[(20, 1), (2, 1), (30, 2), (5, 1)]);
        let t = table(&[(0, 0, 20, 20, (40, 1)), (1, 0, 2, 2, (20, 1)), (2, 0, 30, 5, (600, 1))]);
        let unbounded = flows(&[(20, 9), (2, 9), (30, 9), (5, 1)]);
        assert_ratio(gmer(GmerCmp::Any, &unbounded[3], 0, &unbounded, &t), 16, 15);
        for (cmp, num, den) in [(GmerCmp::Le, 2, 1), (GmerCmp::Ge, 10, 1), (GmerCmp::Any, 10, 1)] {
            assert_ratio(gmer(cmp, &all[3], 0, &all, &t), num, den);
        }
    }

    #[test]
    fn a_faster_port_wins_if_it_is_done_earlier() {
        // Unloaded at C = 1: GPE 1. After 3 bytes at C = 2: GPE 4/1, which C_ref / C halves.
        let all = flows(&[(1, 0), (1, 0), (3, 1)]);
        let empty = table(&[]);
        let busy = |rs| table(&[(0, 0, 3, rs, (1, 1))]);
        let mut memr = memr(GmerCmp::Le);
        let mut pick = |rs| {
            let tables = [(Rate(8), &empty), (Rate(16), &busy(rs))];
            let port = |(i, &(rate, table)): (usize, &(Rate, &'_ FlowMap<Row>))| {
                let done = memr.done(&all[2], Time(0), &Port { rate, table: Some(table) });
                (done, i)
            };
            tables.iter().enumerate().map(port).min().unwrap().1
        };
        assert_eq!([pick(1), pick(2)], [1, 1]);
        let alone = gpe(&all[2], 0, Rate(16), &empty);
        assert_eq!(alone, (3 * SEC / 2, 3 * SEC / 2));
    }

    proptest! {
        /// Compares GPE with a literal implementation of Alg. 5: remove the flow with the smallest
        /// expansion ratio until it is the new flow.
        #[test]
        fn gpe_is_alg_5(rows in prop::collection::vec((1u64..30, 0u64..30, 0u64..20), 0..12), size in 1u64..30) {
            let known: Vec<Known> = rows.iter().enumerate().map(|(i, &(s, rs, at))| (i as u32, at, s, rs.min(s), (1, 1))).collect();
            let mut all: Vec<(u64, u32)> = rows.iter().map(|r| (r.0, 0)).collect();
            all.push((size, 0));
            let (all, me, now) = (flows(&all), rows.len() as u32, 20);
            let mut left: Vec<(u64, u64, u64, u32)> = known.iter().map(|&(id, at, s, rs, _)| (s, at, rs, id)).collect();
            left.push((size, now, size, me));
            let done = loop {
                let x = now + left.iter().map(|f| f.2).sum::<u64>();
                // Smallest (x - aT) / size; ties to the largest key.
                let last = *left.iter().min_by(|a, b| ((x - a.1) * b.0).cmp(&((x - b.1) * a.0)).then(b.cmp(a))).unwrap();
                if last.3 == me {
                    break x - now;
                }
                left.retain(|f| f.3 != last.3);
            };
            prop_assert_eq!(gpe(&all[me as usize], now, SLOW, &table(&known)).0, done * SEC);
        }
    }

    /// A switch with three next hops to a host, and MERP's ports.
    struct Bench {
        net: Net,
        flows: Vec<Flow>,
        routes: Routes,
        ports: Vec<Option<Box<crate::port::Port>>>,
        ext: Slab<Ext>,
        memr: Memr,
    }

    const AT: NodeId = NodeId(2);

    impl Bench {
        fn new(flows: &[u64]) -> Bench {
            let (mut b, rate, delay) = (NetBuilder::default(), Rate::from_gbps(1), Dur::from_us(10));
            let (h0, h1) = (b.host("h0", None), b.host("h1", None));
            let (s, t) = (b.switch("s", 1), b.switch("t", 1));
            b.cable(h0, s, rate, delay);
            b.cable(h1, t, rate, delay);
            for i in 0..3 {
                let spine = b.switch(format!("spine{i}"), 2);
                b.cable(s, spine, rate, delay);
                b.cable(spine, t, rate, delay);
            }
            let net = b.build();
            let port = |id: usize, link: &crate::net::Link| {
                let node = link.from;
                let env = agent::Env {
                    link: LinkId(id as u32),
                    node,
                    rate,
                    nic_rate: rate,
                    header_bytes: 40,
                    host_port: false,
                    given: base::Given::none(),
                };
                let qdisc = qdisc::AnyParams::DropTail(qdisc::droptail::Params::defaults());
                let qdisc: AnyQdisc = qdisc.build(&qdisc::Env {
                    rate,
                    mtu_bytes: 1500,
                    max_rtt: Dur::ZERO,
                    host_port: false,
                    to_host: false,
                    link: LinkId(0),
                    seed: 0,
                });
                let agent = AnyAgent::Merp(Merp::new(&PortParams::defaults(), &env));
                Some(Box::new(crate::port::Port {
                    qdisc,
                    agent: Some(agent),
                    state: agent::PortState::NEW,
                    watched: false,
                    minded: false,
                    pausing: None,
                }))
            };
            let ports = net.links().iter().enumerate().map(|(id, link)| port(id, link)).collect();
            let flow = |(i, &packets): (usize, &u64)| script::flow(i as u32, packets * 1460);
            let routes = Routes::new(&net, &[]);
            let memr = Memr::new(
                &Params::defaults(),
                &Env { net: &net, routes: &routes, seed: 0, max_rtt: base::Dur::ZERO, given: base::Given::none() },
            );
            Bench { flows: flows.iter().enumerate().map(flow).collect(), net, routes, ports, ext: Slab::default(), memr }
        }
        fn links(&self) -> Vec<LinkId> {
            self.net.out_links(AT).skip(1).collect()
        }
        fn kill(&mut self, link: LinkId) {
            let mut dead = vec![false; self.net.links().len()];
            dead[link.index()] = true;
            self.routes = Routes::new(&self.net, &dead);
            self.agent(link).on_link_down();
        }
        fn agent(&mut self, link: LinkId) -> &mut AnyAgent {
            self.ports[link.index()].as_mut().unwrap().agent.as_mut().unwrap()
        }
        fn packet(&mut self, flow: u32, kind: Kind, bits: u64) -> Packet {
            let mut packet =
                if kind == Kind::DATA { Packet::data(FlowId(flow), 0, 1460, 40) } else { Packet::new(FlowId(flow), kind, 40) };
            if kind != Kind::FIN {
                let (asr_bps, theta_bps, bits) = (1_000_000_000, 800_000_000, bits | 800_000_000 << 32);
                packet.set_ext(Header { asr_bps, theta_bps, bits, ..Header::default() }, &mut self.ext);
            }
            packet
        }
        /// Returns the port of a packet; the packet passes it at once.
        fn pass(&mut self, now: u64, flow: u32, kind: Kind, bits: u64) -> LinkId {
            let mut packet = self.packet(flow, kind, bits);
            let (flows, now) = (self.flows.clone(), Time(now));
            let candidates = self.routes.candidates(AT, HostId(1));
            let ports = Ports::new(&self.ports);
            let (at, from, timers, made, ext) = (AT, None, None, &mut Vec::new(), &mut self.ext);
            let mut cx = SwitchCx {
                now,
                at,
                from,
                flows: &flows,
                ext,
                net: &self.net,
                routes: &self.routes,
                ports,
                timers,
                made,
                payload_bytes: 0,
                moved: None,
            };
            let link = candidates[self.memr.decide(&mut packet, candidates, &mut cx) as usize];
            let agent = self.ports[link.index()].as_mut().unwrap().agent.as_mut().unwrap();
            let mut cx = agent::PortCx { now, flows: &flows, ext: &mut self.ext, port: &agent::PortState::NEW };
            agent.on_enqueue(&packet, &mut cx);
            agent.on_depart(&mut packet, &mut cx);
            link
        }
        fn knows(&mut self, link: LinkId, flow: u32) -> bool {
            matches!(self.agent(link), AnyAgent::Merp(port) if port.table().contains(FlowId(flow)))
        }
    }

    #[test]
    fn a_flow_keeps_its_port_until_its_fin() {
        let mut b = Bench::new(&[100, 1, 1, 1]);
        let link = b.pass(0, 0, Kind::SYN, 0);
        for kind in [Kind::SYN, DET, Kind::DATA, Kind::DATA] {
            assert_eq!(b.pass(1000, 0, kind, 0), link);
        }
        assert!(b.knows(link, 0));
        assert_eq!(b.pass(2000, 0, Kind::FIN, 0), link);
        assert!(!b.knows(link, 0) && b.memr.pins[AT.index()].is_empty());
        // After its FIN, and for a retransmitted FIN: by the hash, and no port may know the flow.
        let late = [b.pass(3000, 0, DET, 0), b.pass(3000, 0, Kind::FIN, 0)];
        assert!(late[0] == late[1] && b.memr.pins[AT.index()].is_empty());
    }

    #[test]
    fn flows_spread_over_empty_ports() {
        let mut b = Bench::new(&[10; 3]);
        let mut taken: Vec<LinkId> = (0..3).map(|f| b.pass(0, f, Kind::SYN, 0)).collect();
        taken.sort();
        assert_eq!(taken, b.links(), "each SYN sees the tables that the ones before have filled");
    }

    #[test]
    fn ties_go_by_the_hash() {
        let mut counts = [0.0; 3];
        for port in 0..3000 {
            let mut b = Bench::new(&[10]);
            b.flows[0].src_port = 1024 + 17 * port;
            let link = b.pass(0, 0, Kind::SYN, 0);
            counts[b.links().iter().position(|&l| l == link).unwrap()] += 1.0;
        }
        let chi: f64 = counts.iter().map(|c| (c - 1000.0) * (c - 1000.0) / 1000.0).sum();
        assert!(chi < 13.816, "{counts:?}: {chi}"); // 99.9 %, 2 degrees of freedom
    }

    #[test]
    fn a_dead_port_is_never_picked_and_its_flows_move() {
        let mut b = Bench::new(&[100, 100, 100, 100]);
        let first: Vec<LinkId> = (0..3).map(|f| b.pass(0, f, Kind::SYN, 0)).collect();
        b.kill(first[0]);
        let moved = b.pass(1000, 0, Kind::DATA, 0);
        assert!(moved != first[0] && b.knows(moved, 0), "DATA opens the flow at its new port");
        assert_eq!(b.pass(2000, 0, Kind::DATA, 0), moved);
        assert_eq!([b.pass(2000, 1, Kind::DATA, 0), b.pass(2000, 2, Kind::DATA, 0)], first[1..], "the others stay");
        for f in 0..4 {
            for kind in [Kind::SYN, Kind::DATA, DET, Kind::FIN] {
                assert_ne!(b.pass(3000, f, kind, 0), first[0]);
            }
        }
    }

    #[test]
    fn a_flow_that_its_port_forgot_is_routed_again() {
        let mut b = Bench::new(&[100, 1]);
        let link = b.pass(0, 0, Kind::SYN, 0);
        b.agent(link).on_link_down();
        // The link is up again, but another port is as empty: the hash decides, as at first.
        assert_eq!(b.pass(1000, 0, Kind::DATA, 0), link);
        assert!(b.knows(link, 0));
    }

    #[test]
    fn a_syn_may_ask_for_another_port() {
        let mut b = Bench::new(&[100]);
        let first = b.pass(0, 0, Kind::SYN, 0);
        let second = b.pass(1000, 0, Kind::SYN, Header::REROUTE);
        assert_ne!(second, first);
        assert_eq!([b.pass(2000, 0, Kind::DATA, 0), b.pass(2000, 0, DET, 0)], [second; 2]);
        // Back and forth, as often as the SYN requests it.
        let third = b.pass(3000, 0, Kind::SYN, Header::REROUTE);
        assert!(third != second && b.pass(4000, 0, Kind::DATA, 0) == third);
    }
}
