//! Plug-ins: a router from a file that is loaded at run time.
//!
//! The file `path` is a shared library or a module of WebAssembly with a table of functions; its own parameters follow `path`.
//! docs/plugins.md explains how to write one. `path = "example"` is the plug-in that flowloom contains:
//! packet spraying in turn.
//!
//! Source: the plug-in.
//!
//! Model: the plug-in chooses among the live next hops of shortest paths, for the path of a flow or for a
//! packet at a switch. It has no timers, no packets of its own, and does not hold packets.
//!
//! Assumed:
//! - Without a function that plans paths, they are planned as by `ecmp` with its default parameters.
//! - A packet whose switch has one next hop takes it without a call of the plug-in.
//! - A state belongs to a switch, or to a host with several NICs, and is created when it decides first.

use super::{Decides, Duties, Env, PortAccess, PortLoad, Router, SwitchCx, ecmp};
use crate::paths::FiveTuple;
use ::plugin::abi::NEVER;
use ::plugin::block::Block;
use ::plugin::library::{Failure, Library};
use ::plugin::router::machine::Chooser;
use ::plugin::router::{self, AHEAD, Candidate, Hop, RouterTable, THERE};
use base::params::{Params as _, Problem};
use base::plugins::{PluginParams, RoomParams, problem};
use base::registry::{Entry, Meta, PluginRoom};
use base::{LinkId, NodeId, Rate};
use proto::{Packet, plugins};

/// The description of this entry, for `list`, `explain` and `check`.
pub const META: Meta = Meta {
    summary: "a router from a file: a shared library or a module of WebAssembly",
    source: "the plug-in",
    implies: &[("router.path", ::plugin::library::EXAMPLE_FILE)],
    packets_only: "the plug-in decides on single packets",
    plugin: Some(PluginRoom { entry, example: Library::example_router }),
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of all plug-ins.
    pub struct Common {
        /// The file of the plug-in, relative to the folder of the scenario: a shared library or a module of WebAssembly; `example`:
        /// the plug-in that flowloom contains.
        path: String = "", "";
    }
}

impl RoomParams for Common {
    fn example() -> &'static Library {
        Library::example_router()
    }
}

/// Parameters of a plug-in.
pub type Params = PluginParams<Common>;

/// Makes the entry of a plug-in. The error completes a sentence about the plug-in.
fn entry(library: &'static Library) -> Result<Entry, String> {
    library.table::<RouterTable>()?;
    let plain =
        Entry { name: "plugin", meta: &META, fields: Common::FIELDS, text: include_str!("plugin.rs"), machine: None, plugin: None };
    base::plugins::entry(plain, META, library)
}

/// Returns the contradictions between parameters that the plug-in reports.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    chooser(params, env).err().map(problem).into_iter().collect()
}

fn chooser(params: &Params, env: &Env<'_>) -> Result<Chooser, Failure> {
    let network = router::Network {
        nodes: env.net.nodes().len() as u64,
        links: env.net.links().len() as u64,
        hosts: env.net.hosts().len() as u64,
        max_rtt_ps: env.max_rtt.0,
        seed: env.seed,
    };
    Chooser::new(params.own.library(), &network, &params.own.values())
}

/// The router of a plug-in, with the states of all switches.
pub struct Plugin {
    /// The functions of the plug-in, or why its router could not be created: then a run fails with the first
    /// choice.
    chooser: Result<Chooser, Failure>,
    /// Hashes five-tuples, and plans paths if the plug-in does not.
    ecmp: ecmp::Ecmp,
    /// Whether the plug-in reads the loads of ports.
    loads: bool,
    /// The rates of links.
    rates: Vec<Rate>,
    /// The states of nodes that have decided.
    states: Vec<Option<Block>>,
    /// The candidates of the current choice: a buffer.
    candidates: Vec<Candidate>,
}

impl Plugin {
    /// Returns the router of a network.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Plugin {
            chooser: chooser(params, env),
            ecmp: ecmp::Ecmp::new(&ecmp::Params::defaults(), env),
            loads: Self::duties(params, env).ports == PortAccess::Measures,
            rates: env.net.links().iter().map(|link| link.rate).collect(),
            states: (0..env.net.nodes().len()).map(|_| None).collect(),
            candidates: Vec::new(),
        }
    }
    /// Returns the duties that the table of the plug-in declares.
    pub fn duties(params: &Params, _env: &Env<'_>) -> Duties {
        let table = params.own.library().table::<RouterTable>();
        let (decides, loads) = table.map_or((AHEAD, 0), |table| (table.decides, table.loads));
        let decides = match decides {
            AHEAD => return Duties::PLAN,
            THERE => Decides::There,
            _ => Decides::BothWays,
        };
        let ports = if loads != 0 { PortAccess::Measures } else { PortAccess::None };
        Duties { decides, ports, ..Duties::PLAN }
    }
    #[inline(always)]
    fn hop(&self, at: NodeId, path: &FiveTuple) -> Hop {
        Hop {
            now_ps: NEVER,
            node: at.0.into(),
            flow: NEVER,
            src: path.src,
            dst: path.dst,
            src_port: path.src_port.into(),
            dst_port: path.dst_port.into(),
            protocol: path.protocol.into(),
            hash: self.ecmp.hash(path),
        }
    }
    /// Fills the buffer of candidates.
    #[inline(always)]
    fn set(&mut self, links: &[LinkId], load: impl Fn(usize) -> PortLoad) {
        self.candidates.clear();
        self.candidates.extend(links.iter().enumerate().map(|(index, link)| {
            let (rate, PortLoad { waiting_bytes, busy }) = (self.rates[link.index()], load(index));
            Candidate { link: link.0.into(), rate_bps: rate.0, waiting: waiting_bytes, busy: busy.into(), reserved: 0 }
        }));
    }
}

/// Returns the functions of the plug-in. Ends the run if its router could not be created.
#[inline(always)]
fn functions(chooser: &Result<Chooser, Failure>) -> &Chooser {
    match chooser {
        Ok(chooser) => chooser,
        Err(failure) => failure.clone().raise(),
    }
}

impl Router for Plugin {
    fn choose(&mut self, at: NodeId, path: &FiveTuple, candidates: &[LinkId]) -> u32 {
        let hop = self.hop(at, path);
        self.set(candidates, |_| PortLoad::default());
        match functions(&self.chooser).choose(&hop, &self.candidates) {
            Some(index) => index as u32,
            None => self.ecmp.choose(at, path, candidates),
        }
    }
    fn decide(&mut self, packet: &mut Packet, candidates: &[LinkId], cx: &mut SwitchCx<'_>) -> u32 {
        if candidates.len() == 1 {
            return 0;
        }
        let tuple = cx.tuple(packet);
        let hop = Hop { now_ps: cx.now.0, flow: packet.flow.0.into(), ..self.hop(cx.at, &tuple) };
        match self.loads {
            true => self.set(candidates, |index| cx.ports.load(index)),
            false => self.set(candidates, |_| PortLoad::default()),
        }
        let Plugin { chooser, states, candidates: shown, .. } = self;
        let chooser = functions(chooser);
        let state = states[cx.at.index()].get_or_insert_with(|| chooser.open(hop.node));
        match chooser.decide(state, &hop, &plugins::shown(packet), shown) {
            Some(index) => index as u32,
            None => self.choose(cx.at, &tuple, candidates),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Net, NetBuilder};
    use crate::router::Ports;
    use crate::routes::Routes;
    use ::plugin::abi::{self, Parameter, Type};
    use ::plugin::library::Code;
    use ::plugin::router::Calls;
    use ::plugin::{Declaration, Values};
    use base::params::{Raw, Reader};
    use base::plugins::Own;
    use base::{Dur, FlowId, HostId, Slab, Time};
    use proto::Flow;
    use proto::kit::script;
    use proto::packet::Ext;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Plans by the source port, and decides by the flow and the number of decisions of the switch.
    struct Recorder(u64);

    impl ::plugin::router::Router for Recorder {
        type State = (u64, u64);
        const DECLARATION: Declaration = Declaration {
            parameters: &[Parameter::new(Type::Integer, c"index", c"0", c"Added to every index.")],
            ..Declaration::new(c"recorder", c"Counts decisions")
        };
        const DECIDES: u32 = router::BOTH_WAYS;
        const LOADS: bool = true;
        const CALLS: Calls = Calls { choose: true, decide: true };
        fn create(network: &router::Network, values: Values<'_>) -> Result<Self, String> {
            // Two switches, two hosts; 4 and 2 cables.
            assert_eq!((network.nodes, network.links, network.hosts, network.seed), (4, 12, 2, 7));
            if values.integer(0) == 13 { Err("13 is unlucky".to_owned()) } else { Ok(Recorder(values.integer(0))) }
        }
        fn open(&self, node: u64) -> (u64, u64) {
            (node, 0)
        }
        fn choose(&self, hop: &Hop, candidates: &[Candidate]) -> u64 {
            assert_eq!((hop.now_ps, hop.flow, hop.protocol), (NEVER, NEVER, 6));
            assert!(candidates.iter().all(|candidate| candidate.waiting == 0 && candidate.busy == 0));
            u64::from(hop.src_port) % candidates.len() as u64 + self.0
        }
        fn decide(&self, state: &mut (u64, u64), hop: &Hop, packet: &abi::Packet, candidates: &[Candidate]) -> u64 {
            assert_eq!((state.0, hop.flow), (hop.node, packet.flow.into()));
            assert_eq!((hop.now_ps, hop.dst_port), (5, 5001));
            for (i, candidate) in candidates.iter().enumerate() {
                let i = i as u64;
                let wanted =
                    Candidate { link: i, rate_bps: 1_000_000_000 * (i + 1), waiting: 100 * i, busy: (i % 2) as u32, reserved: 0 };
                assert_eq!(*candidate, wanted);
            }
            state.1 += 1;
            (state.1 - 1) % candidates.len() as u64 + self.0
        }
    }

    fn library(change: impl FnOnce(&mut RouterTable)) -> Result<&'static Library, String> {
        let mut table = router::author::table::<Recorder>();
        change(&mut table);
        let table: *const RouterTable = Box::leak(Box::new(table));
        // Safety: a table of this test.
        #[allow(unsafe_code)]
        let library = unsafe { Library::new(table.cast(), "recorder.so", "", Code::Native) }?;
        Ok(Box::leak(Box::new(library)))
    }

    /// Reads the parameter of [`Recorder`].
    struct Index(i64);

    impl Reader for Index {
        fn get(&mut self, key: &'static str) -> Option<Raw> {
            (key == "index").then_some(Raw::Int(self.0))
        }
        fn fail(&mut self, key: &'static str, message: String) {
            panic!("{key}: {message}");
        }
    }

    fn params(library: &'static Library, index: i64) -> Params {
        Params { common: Common { path: "recorder.so".to_owned() }, own: Own::read(library, &mut Index(index)) }
    }

    /// Two switches with four cables of 1 to 4 Gb/s between them, and a host at each.
    fn net() -> Net {
        let mut b = NetBuilder::default();
        let (s, t) = (b.switch("s", 1), b.switch("t", 1));
        for gbps in 1..=4 {
            b.cable(s, t, Rate::from_gbps(gbps), Dur::from_us(1));
        }
        for (name, switch) in [("h0", s), ("h1", t)] {
            let host = b.host(name, None);
            b.cable(host, switch, Rate::from_gbps(1), Dur::from_us(1));
        }
        b.build()
    }

    struct Bench {
        net: Net,
        routes: Routes,
        router: Plugin,
    }

    fn bench(library: &'static Library, index: i64) -> Bench {
        let net = net();
        let routes = Routes::new(&net, &[]);
        let env = Env { net: &net, routes: &routes, seed: 7, max_rtt: Dur::from_us(100), given: base::Given::none() };
        let router = Plugin::new(&params(library, index), &env);
        Bench { net, routes, router }
    }

    impl Bench {
        fn decide(&mut self, at: u32, flow: u32, count: u32) -> u32 {
            let Bench { net, routes, router } = self;
            let flows: Vec<Flow> = (0..2).map(|n| Flow { src: HostId(0), dst: HostId(1), ..script::flow(n, 1460) }).collect();
            let load = |i: u64| PortLoad { waiting_bytes: 100 * i, busy: i % 2 == 1 };
            let loads: Vec<PortLoad> = (0..4).map(load).collect();
            let mut cx = SwitchCx {
                now: Time(5),
                at: NodeId(at),
                from: None,
                flows: &flows,
                ext: &mut Slab::<Ext>::default(),
                net,
                routes,
                ports: Ports::new(&[]).with_loads(&loads),
                timers: None,
                made: &mut Vec::new(),
                payload_bytes: 0,
                moved: None,
            };
            let candidates: Vec<LinkId> = (0..count).map(LinkId).collect();
            router.decide(&mut Packet::data(FlowId(flow), 0, 1460, 40), &candidates, &mut cx)
        }
        fn choose(&mut self, src_port: u16) -> u32 {
            let tuple = FiveTuple { src: 1, dst: 2, protocol: 6, src_port, dst_port: 5001 };
            self.router.choose(NodeId(0), &tuple, &[0, 1, 2, 3].map(LinkId))
        }
    }

    fn failure<T>(run: impl FnOnce() -> T) -> String {
        let panic = catch_unwind(AssertUnwindSafe(run)).map(|_| ()).expect_err("a failure");
        panic.downcast::<Failure>().expect("a failure of a plug-in").to_string()
    }

    #[test]
    fn each_switch_has_a_state_and_sees_rates_and_loads() {
        let mut b = bench(library(|_| {}).unwrap(), 0);
        assert_eq!([0, 1, 0, 0, 1].map(|at| b.decide(at, at, 4)), [0, 0, 1, 2, 1]);
        // A single next hop is no decision.
        assert_eq!((b.decide(0, 0, 1), b.decide(0, 0, 4)), (0, 3));
    }

    #[test]
    fn paths_are_planned_without_a_state() {
        let mut b = bench(library(|_| {}).unwrap(), 0);
        assert_eq!([0, 1, 2, 7, 8].map(|port| b.choose(port)), [0, 1, 2, 3, 0]);
        assert!(b.router.states.iter().all(Option::is_none));
        // Without the function, as ecmp, whose hash a plug-in sees.
        let mut b = bench(library(|table| table.choose = None).unwrap(), 0);
        let mut ecmp = ecmp::Ecmp::new(
            &ecmp::Params::defaults(),
            &Env { net: &b.net, routes: &b.routes, seed: 7, max_rtt: Dur::ZERO, given: base::Given::none() },
        );
        let tuple = |src_port| FiveTuple { src: 1, dst: 2, protocol: 6, src_port, dst_port: 5001 };
        let wanted: Vec<u32> = (0..50).map(|port| ecmp.choose(NodeId(0), &tuple(port), &[0, 1, 2, 3].map(LinkId))).collect();
        assert_eq!((0..50).map(|port| b.choose(port)).collect::<Vec<_>>(), wanted);
        assert_eq!(b.router.hop(NodeId(3), &tuple(9)).hash, ecmp.hash(&tuple(9)));
    }

    #[test]
    fn duties_are_those_of_the_table() {
        let net = net();
        let routes = Routes::new(&net, &[]);
        let env = Env { net: &net, routes: &routes, seed: 7, max_rtt: Dur::ZERO, given: base::Given::none() };
        let of = |change: fn(&mut RouterTable)| Plugin::duties(&params(library(change).unwrap(), 0), &env);
        let (both, there) = (Decides::BothWays, Decides::There);
        assert_eq!(of(|_| {}), Duties { decides: both, ports: PortAccess::Measures, ..Duties::PLAN });
        assert_eq!(of(|table| table.loads = 0), Duties { decides: both, ..Duties::PLAN });
        assert_eq!(of(|table| (table.loads, table.decides) = (0, THERE)), Duties { decides: there, ..Duties::PLAN });
        assert_eq!(of(|table| table.decides = AHEAD), Duties::PLAN);
    }

    #[test]
    fn indices_without_a_candidate_end_the_run() {
        let start = "the plug-in `recorder` (`recorder.so`) failed in ";
        let mut b = bench(library(|_| {}).unwrap(), 4);
        assert_eq!(failure(|| b.decide(0, 0, 4)), format!("{start}`decide`: there is no next hop 4: there are 4"));
        assert_eq!(failure(|| b.choose(3)), format!("{start}`choose`: there is no next hop 7: there are 4"));
        extern "C" fn fails(_: abi::Own, _: abi::StateBytes, _: u64) -> i32 {
            5
        }
        let mut b = bench(library(|table| table.open = Some(fails)).unwrap(), 0);
        assert!(failure(|| b.decide(0, 0, 4)).starts_with(&format!("{start}`open`")));
        // Its machine cannot be created: the run fails with the first choice, `check` before.
        let mut b = bench(library(|_| {}).unwrap(), 13);
        assert_eq!(failure(|| b.choose(3)), format!("{start}`create`: 13 is unlucky"));
        let env = Env { net: &b.net, routes: &b.routes, seed: 7, max_rtt: Dur::ZERO, given: base::Given::none() };
        let problems = check(&params(library(|_| {}).unwrap(), 13), &env);
        assert!(problems.len() == 1 && problems[0].key == "path", "{problems:?}");
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        let refused = |change: fn(&mut RouterTable)| library(change).unwrap_err();
        assert_eq!(refused(|table| table.decides = 3), "its `decides` is 3: 0 to 2 are allowed");
        assert_eq!(refused(|table| (table.decides, table.choose) = (AHEAD, None)), "it has no function `choose`, and plans paths");
        assert_eq!(refused(|table| table.decide = None), "it has no function `decide`, and decides at switches");
        assert_eq!(refused(|table| table.create = None), "it has no function `create`, but a router of some size");
        assert!(refused(|table| table.head.sizes[2] = 1).starts_with("its `flowloom_candidate` has 1 bytes"));
        assert!(refused(|table| table.head.knows = 1).starts_with("a router has no counters"));
        let message = entry(Library::example()).unwrap_err();
        assert_eq!(message, "it is congestion control, a `transport`, and not for this part of a system");
    }
}
