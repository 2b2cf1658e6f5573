//! A small simulated network: hosts, ports with agents and strict priority, wires. ACKs return over
//! a separate path that is never busy.

use super::{Merp, Params};
use crate::agent::{Agent, Env, PortCx, PortState};
use base::params::Params as _;
use base::{Dur, FlowId, HostId, LinkId, NodeId, Rate, Slab, Time};
use proto::flow::Flow;
use proto::kit::script::{self, Script};
use proto::packet::Ext;
use proto::transport::merp as host;
use proto::{Kind, Packet};
use std::collections::{BTreeMap, VecDeque};

/// Delay of every wire.
pub const DELAY: Dur = Dur::from_us(10);

pub struct Port {
    pub agent: Merp,
    queue: [VecDeque<(usize, Packet)>; 4],
    busy: bool,
}

enum Event {
    Open(FlowId),
    /// At a port, given by its index on the flow's path.
    Port(usize, Packet),
    Free(usize),
    Host(HostId, Packet),
}

/// Decides whether a packet is lost on the wire after the NIC, or on the return path.
pub type Lose = Box<dyn FnMut(Time, &Packet) -> bool>; // Each test brings its own.

pub struct Line {
    pub now: Time,
    pub ports: Vec<Port>,
    pub hosts: Vec<Script<host::Merp>>,
    pub ext: Slab<Ext>,
    /// Starts of service: time, port, packet.
    pub departures: Vec<(Time, usize, Packet)>,
    pub lose: Lose,
    flows: Vec<Flow>,
    paths: Vec<Vec<usize>>,
    events: BTreeMap<(Time, u64), Event>,
    count: u64,
    rate: Rate,
}

/// Flows given by (start, packets of 1500 bytes, ports on the path). The first port is the NIC of
/// the flow's source; flows with the same first port have the same source. All have different
/// receivers.
pub fn line(flows: &[(Dur, u64, &[usize])], params: &Params, hosts: &host::Params) -> Line {
    let rate = Rate::from_gbps(1);
    let count = flows.iter().flat_map(|f| f.2).max().expect("a port") + 1;
    let port = |i: usize| {
        let env = Env {
            link: LinkId(i as u32),
            node: NodeId(0),
            rate,
            nic_rate: rate,
            header_bytes: 40,
            host_port: false,
            given: base::Given::none(),
        };
        Port { agent: Merp::new(params, &env), queue: Default::default(), busy: false }
    };
    let per_hop = |path: &[usize]| Dur((22_000_000 + 10_320_000) * path.len() as u64);
    let metas: Vec<Flow> = flows
        .iter()
        .enumerate()
        .map(|(i, (start, packets, path))| Flow {
            src: HostId(path[0] as u32),
            dst: HostId((count + i) as u32),
            start: Time::ZERO + *start,
            rtt: per_hop(path),
            ..script::flow(i as u32, packets * 1460)
        })
        .collect();
    let host = |h: usize| Script::new(host::Merp::new(hosts, &script::env()), metas.clone()).at_host(h as u32);
    let mut line = Line {
        now: Time::ZERO,
        ports: (0..count).map(port).collect(),
        hosts: (0..count + flows.len()).map(host).collect(),
        ext: Slab::default(),
        departures: Vec::new(),
        lose: Box::new(|_, _| false),
        paths: flows.iter().map(|f| f.2.to_vec()).collect(),
        flows: metas.clone(),
        events: BTreeMap::new(),
        count: 0,
        rate,
    };
    for flow in &metas {
        line.at(flow.start, Event::Open(flow.id));
    }
    line
}

/// Like [`line`], with all parameters at their defaults.
pub fn plain_line(flows: &[(Dur, u64, &[usize])]) -> Line {
    line(flows, &Params::defaults(), &host::Params::defaults())
}

impl Line {
    fn at(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.count), event);
        self.count += 1;
    }
    /// Runs until no event is left, or until `until`.
    pub fn run(&mut self, until: Time) {
        loop {
            let event = self.events.first_key_value().map_or(Time::MAX, |(key, _)| key.0);
            let wake = self.hosts.iter().map(Script::next_wake).min().expect("hosts");
            if event.min(wake) > until || event.min(wake) == Time::MAX {
                return;
            }
            self.now = event.min(wake);
            if event <= wake {
                let (_, event) = self.events.pop_first().expect("seen above");
                self.handle(event);
            } else {
                let h = self.hosts.iter().position(|h| h.next_wake() == wake).expect("seen above");
                let now = self.now;
                self.host(h, |script| script.advance(now));
            }
        }
    }
    fn handle(&mut self, event: Event) {
        match event {
            Event::Open(flow) => self.host(self.flows[flow.index()].src.index(), |script| script.open(flow.0)),
            Event::Host(h, packet) => {
                self.host(h.index(), |script| script.packet(packet));
                self.free(&packet);
            }
            Event::Port(leg, mut packet) => {
                let port = self.paths[packet.flow.index()][leg];
                let mut cx = PortCx { now: self.now, flows: &self.flows, ext: &mut self.ext, port: &PortState::NEW };
                self.ports[port].agent.on_arrive(&mut packet, &mut cx);
                self.ports[port].agent.on_enqueue(&packet, &mut cx);
                self.ports[port].queue[packet.prio as usize].push_back((leg, packet));
                if !self.ports[port].busy {
                    self.serve(port);
                }
            }
            Event::Free(port) => {
                self.ports[port].busy = false;
                self.serve(port);
            }
        }
    }
    fn serve(&mut self, port: usize) {
        let Some((leg, mut packet)) = self.ports[port].queue.iter_mut().find_map(VecDeque::pop_front) else { return };
        self.ports[port].busy = true;
        let mut cx = PortCx { now: self.now, flows: &self.flows, ext: &mut self.ext, port: &PortState::NEW };
        self.ports[port].agent.on_depart(&mut packet, &mut cx);
        self.departures.push((self.now, port, packet));
        let end = self.now + self.rate.tx_time(packet.wire_len.into());
        self.at(end, Event::Free(port));
        let leg = leg + 1;
        if leg == 1 && (self.lose)(self.now, &packet) {
            self.free(&packet);
        } else if leg < self.paths[packet.flow.index()].len() {
            self.at(end + DELAY, Event::Port(leg, packet));
        } else {
            self.at(end + DELAY, Event::Host(self.flows[packet.flow.index()].dst, packet));
        }
    }
    fn host(&mut self, h: usize, act: impl FnOnce(&mut Script<host::Merp>) -> Vec<Packet>) {
        let script = &mut self.hosts[h];
        script.now = self.now;
        std::mem::swap(&mut script.ext, &mut self.ext);
        let sent = act(script);
        std::mem::swap(&mut script.ext, &mut self.ext);
        for packet in sent {
            let flow = &self.flows[packet.flow.index()];
            let hops = self.paths[packet.flow.index()].len() as u64;
            if flow.src.index() == h {
                self.at(self.now, Event::Port(0, packet));
            } else if (self.lose)(self.now, &packet) {
                self.free(&packet);
            } else {
                let back = (self.rate.tx_time(packet.wire_len.into()) + DELAY) * hops;
                self.at(self.now + back, Event::Host(flow.src, packet));
            }
        }
    }
    fn free(&mut self, packet: &Packet) {
        if packet.has(Packet::EXT) {
            self.ext.remove(packet.ext());
        }
    }
    /// Returns when the last payload byte of a flow arrived; `Time::MAX` if none has.
    pub fn finish(&self, flow: usize) -> Time {
        self.hosts[self.flows[flow].dst.index()].table.get(FlowId(flow as u32)).finish
    }
    /// Returns the sender's counters if the flow's sender is done.
    pub fn closed(&self, flow: usize) -> Option<proto::FlowStats> {
        let record = self.hosts[self.flows[flow].src.index()].table.get(FlowId(flow as u32));
        record.closed.then_some(record.stats)
    }
    /// Returns the starts of service of a flow's DATA at a port.
    pub fn data_at(&self, port: usize, flow: u32) -> Vec<Time> {
        let of = |(_, p, packet): &&(Time, usize, Packet)| *p == port && packet.flow.0 == flow && packet.kind == Kind::DATA;
        self.departures.iter().filter(of).map(|d| d.0).collect()
    }
    /// Checks that everything is done: all flows finished and closed, all tables and the slab
    /// empty.
    pub fn assert_clean(&self) {
        for i in 0..self.flows.len() {
            assert!(self.finish(i) < Time::MAX, "flow {i} unfinished");
            assert!(self.closed(i).is_some(), "flow {i} not closed");
        }
        for (i, port) in self.ports.iter().enumerate() {
            assert_eq!(port.agent.table().iter().count(), 0, "port {i}");
        }
        assert!(self.ext.is_empty(), "{} header blocks leaked", self.ext.len());
    }
}
