//! Plug-ins: a protocol from a file that is loaded at run time.
//!
//! The file `path` is a shared library or a module of WebAssembly with a table of functions, or a
//! Python file with a class. It is a congestion controller on the TCP machine, or, unless it is in Python, a
//! whole transport. The parameters of a controller follow those of the TCP machine; a whole transport has only its
//! own. docs/plugins.md explains how to write both. `path = "example"` is a controller that flowloom
//! contains: DCTCP. `path = "example_transport"` is a transport that flowloom contains: its receivers
//! ask for packets.
//!
//! Source: the plug-in.
//!
//! Model: for a controller, that of `kit/tcp`. The plug-in decides how the window grows and how far it
//! is cut, what may be in flight, and when the next segment may leave. It has no part at the receiver,
//! and no record of deliveries. A whole transport decides which packets hosts send, and when.
//!
//! Assumed:
//! - A window, a threshold and a limit of bytes in flight are at least one segment and at most 2^48
//!   bytes, whatever the plug-in returns; the threshold before the first loss is infinite.
//! - A departure is at most one second after the last call of the plug-in for the flow, and not in
//!   the past.
//! - A whole transport sends the bytes of an open flow from its source, and control packets from both
//!   ends. It may set the class of a packet, ECT, ECE and, if it declares ranks, the rank; it cannot choose
//!   paths. It delivers payload only while it handles the packet that carries it.
//! - Packets that reach the sender of a closed flow are ignored.

use crate::contract::{Bursts, Cx, Env, Timers, Transport};
use crate::flow::Sample;
use crate::kit::tcp::{Ecn, Options, Tcp};
use crate::packet::Packet;
use crate::plugins;
use crate::turns::RoundRobin;
use ::plugin::congestion::controller::Controller;
use ::plugin::congestion::{self, CongestionTable};
use ::plugin::library::{Failure, Functions, Library};
use ::plugin::transport::machine::Machine;
use ::plugin::transport::{TransportTable, USES_CLASSES, USES_MARKS, USES_RANKS};
use base::params::{Params as _, Problem};
use base::plugins::{PluginParams, RoomParams, problem};
use base::registry::{Entry, FILE, Meta, Needs, PluginRoom};
use base::{FlowId, TimerKey};
use controller::{Foreign, More};
use std::ops::Range;
use whole::Whole;

mod controller;
mod whole;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "a protocol from a file: a congestion controller or a whole transport",
    source: "the plug-in",
    needs: Needs { least_limit: 1.0, ..Needs::NONE },
    implies: &[("transport.path", ::plugin::library::EXAMPLE_FILE), ("qdisc.kind", "ecn_threshold")],
    plugin: Some(PluginRoom { entry, example: Library::example }),
    host: "that of the plug-in's source",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of all plug-ins.
    pub struct Common {
        ..tcp: Options {}
        /// The file of the plug-in, relative to the folder of the scenario: a shared library, a module of WebAssembly or a Python file; `example`,
        /// `example_transport`: the plug-ins that flowloom contains. Whole transports have no other parameters of this list.
        path: String = "", "";
    }
}

impl RoomParams for Common {
    fn example() -> &'static Library {
        Library::example()
    }
    fn has(library: &Library, name: &str) -> bool {
        of_tcp(library) || name == FILE
    }
}

/// Parameters of a plug-in.
pub type Params = PluginParams<Common>;

/// Returns whether a plug-in is a controller on the TCP machine.
fn of_tcp(library: &Library) -> bool {
    matches!(library.functions, Functions::Congestion(_))
}

/// Makes the entry of a plug-in. The error completes a sentence about the plug-in.
fn entry(library: &'static Library) -> Result<Entry, String> {
    let (meta, fields, machine) = if let Functions::Transport(table) = &library.functions {
        let path = Common::FIELDS.iter().position(|field| field.name == FILE).expect("a field of all plug-ins");
        (of_transports(table), &Common::FIELDS[path..=path], None)
    } else {
        (of_controllers(library.table()?), Common::FIELDS, Some(crate::kit::tcp::TEXT))
    };
    let meta = Meta { needs: Needs { deadlines: library.knows_deadline(), ..meta.needs }, ..meta };
    let plain = Entry { name: "plugin", meta: &META, fields, text: include_str!("plugin.rs"), machine, plugin: None };
    base::plugins::entry(plain, meta, library)
}

/// Returns the META of a controller.
fn of_controllers(table: &CongestionTable) -> Meta {
    let marks = table.ecn != 0;
    Meta { needs: Needs { marks, ..META.needs }, implies: if marks { META.implies } else { &[] }, ..META }
}

/// Returns the META of a whole transport.
fn of_transports(table: &TransportTable) -> Meta {
    let uses = |bit| table.uses & bit != 0;
    let implies: &[(&str, &str)] = match (uses(USES_CLASSES), uses(USES_MARKS)) {
        (false, false) => &[],
        (false, true) => &[("qdisc.kind", "ecn_threshold")],
        (true, false) => &[("qdisc.kind", "strict"), ("qdisc.classes", "8")],
        (true, true) => &[("qdisc.kind", "strict"), ("qdisc.classes", "8"), ("qdisc.mark", "auto")],
    };
    let packets_only = "its hosts decide which packets are sent";
    Meta { needs: Needs { marks: uses(USES_MARKS), ..Needs::NONE }, ranks: uses(USES_RANKS), implies, packets_only, ..META }
}

/// Returns the contradictions between parameters: those that the plug-in reports too.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let (mut problems, failure) = match of_tcp(params.own.library()) {
        true => (params.common.tcp.check(), controller(params, env).err()),
        false => (Vec::new(), machine(params, env).err()),
    };
    problems.extend(failure.map(problem));
    problems
}

fn controller(params: &Params, env: &Env<'_>) -> Result<Controller, Failure> {
    let config = params.common.tcp.config(env);
    let host = congestion::Host {
        smss: config.smss,
        header: config.header.into(),
        init_window: config.init_window,
        nic_rate_bps: env.nic_rate.0,
        max_rtt_ps: env.max_rtt.0,
    };
    Controller::new(params.own.library(), &host, &params.own.values())
}

fn machine(params: &Params, env: &Env<'_>) -> Result<Machine, Failure> {
    Machine::new(params.own.library(), &plugins::endpoint(env), &params.own.values())
}

/// The machine of one host.
#[allow(clippy::large_enum_variant, reason = "a box would cost time for every packet")]
pub enum Plugin {
    /// A controller on the TCP machine that uses ECN exactly and has no counters and no functions for every segment. A choice among two
    /// variants is a comparison; among more, it is a jump through a table for every packet.
    Plain(Tcp<Foreign<()>>),
    /// Another machine.
    Other(Box<Other>),
}

/// A machine that is not plain.
#[allow(clippy::large_enum_variant, reason = "it is in a box")]
pub enum Other {
    /// A controller on the TCP machine.
    Controller(Tcp<Foreign<Option<Box<More>>>>),
    /// A whole transport.
    Whole(Whole),
    /// A plug-in that could not be created: a run fails with its first flow.
    Failed(Failed),
}

impl Plugin {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        Self::create(params, env).unwrap_or_else(|failure| Plugin::Other(Box::new(Other::Failed(Failed(failure)))))
    }
    fn create(params: &Params, env: &Env<'_>) -> Result<Self, Failure> {
        let library = params.own.library();
        let other = match &library.functions {
            Functions::Congestion(table) => {
                let (config, controller) = (params.common.tcp.config(env), controller(params, env)?);
                let ecn = [Ecn::Off, Ecn::Classic, Ecn::Exact][table.ecn as usize];
                if ecn == Ecn::Exact && !controller.has_more() {
                    return Ok(Plugin::Plain(Tcp::with(config, Foreign::new(controller, ecn))));
                }
                Other::Controller(Tcp::with(config, Foreign::new(controller, ecn)))
            }
            Functions::Transport(table) => Other::Whole(Whole::new(machine(params, env)?, library, table, env)),
            _ => unreachable!("refused when the scenario was read"),
        };
        Ok(Plugin::Other(Box::new(other)))
    }
}

/// Implements [`Transport`] for an enum of machines.
macro_rules! one_of {
    ($machine:ident: $($variant:ident),+) => {
        impl Transport for $machine {
            fn on_flow(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
                match self { $($machine::$variant(machine) => machine.on_flow(flow, cx)),+ }
            }
            #[inline(always)]
            fn on_packet(&mut self, packet: &Packet, cx: &mut Cx<'_>) {
                match self { $($machine::$variant(machine) => machine.on_packet(packet, cx)),+ }
            }
            fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
                match self { $($machine::$variant(machine) => machine.on_timer(key, cx)),+ }
            }
            #[inline(always)]
            fn poll_transmit(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
                match self { $($machine::$variant(machine) => machine.poll_transmit(cx)),+ }
            }
            fn turns(&mut self) -> Option<&mut RoundRobin> {
                match self { $($machine::$variant(machine) => machine.turns()),+ }
            }
            fn next_of(&self, turn: FlowId) -> Option<(FlowId, Range<u64>)> {
                match self { $($machine::$variant(machine) => machine.next_of(turn)),+ }
            }
            fn remove_sender(&mut self, flow: FlowId) -> bool {
                match self { $($machine::$variant(machine) => machine.remove_sender(flow)),+ }
            }
            fn give_up(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
                match self { $($machine::$variant(machine) => machine.give_up(flow, cx)),+ }
            }
            fn on_path(&mut self, flow: FlowId, path: u16, alive: bool, cx: &mut Cx<'_>) {
                match self { $($machine::$variant(machine) => machine.on_path(flow, path, alive, cx)),+ }
            }
            fn sample(&self, flow: FlowId) -> Option<Sample> {
                match self { $($machine::$variant(machine) => machine.sample(flow)),+ }
            }
            fn timers(&self) -> Timers {
                match self { $($machine::$variant(machine) => machine.timers()),+ }
            }
            fn bursts(&self) -> Bursts {
                match self { $($machine::$variant(machine) => machine.bursts()),+ }
            }
        }
    };
}

one_of!(Plugin: Plain, Other);
one_of!(Other: Controller, Whole, Failed);

/// The machine of a plug-in that could not be created.
pub struct Failed(Failure);

impl Transport for Failed {
    fn on_flow(&mut self, _: FlowId, _: &mut Cx<'_>) {
        self.0.clone().raise()
    }
    fn on_packet(&mut self, _: &Packet, _: &mut Cx<'_>) {
        self.0.clone().raise()
    }
    fn on_timer(&mut self, _: TimerKey, _: &mut Cx<'_>) {}
    fn poll_transmit(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        None
    }
    fn remove_sender(&mut self, _: FlowId) -> bool {
        false
    }
    fn sample(&self, _: FlowId) -> Option<Sample> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::script;
    use base::params::{Raw, Reader};

    /// Reads the parameters of the whole transport that flowloom contains.
    struct OfTransport(&'static str, &'static str);

    impl Reader for OfTransport {
        fn get(&mut self, key: &'static str) -> Option<Raw> {
            (key == self.0).then(|| Raw::Str(self.1.to_owned()))
        }
        fn plugin(&self) -> Option<&'static Library> {
            Some(Library::example_transport())
        }
        fn fail(&mut self, _: &'static str, _: String) {}
    }

    #[test]
    fn a_whole_transport_has_no_parameters_of_the_tcp_machine() {
        let made = entry(Library::example_transport()).unwrap();
        assert_eq!(made.fields.iter().map(|field| field.name).collect::<Vec<_>>(), ["path", "timeout", "window"]);
        assert_eq!((made.machine, made.meta.knows, made.meta.implies.len()), (None, &["size"][..], 0));
        let params = Params::read(&mut OfTransport("timeout", "2ms"));
        let shown = params.show();
        assert_eq!((shown[2].0, shown[2].1.as_str()), ("window", "1"));
        assert_eq!((shown.len(), shown[1].1.as_str()), (3, "2ms"));
        let Plugin::Other(other) = Plugin::new(&params, &script::env()) else { panic!("a whole transport") };
        assert!(matches!(*other, Other::Whole(_)) && check(&params, &script::env()).is_empty());
        let tcp = Params::defaults();
        assert!(matches!(Plugin::new(&tcp, &script::env()), Plugin::Plain(_)) && tcp.show().len() > 9);
        assert_eq!(entry(Library::example_policy()).unwrap_err(), "it is a policy, and not for this part of a system");
    }

    #[test]
    fn the_entry_of_a_whole_transport_says_what_its_packets_carry() {
        let Functions::Transport(table) = &Library::example_transport().functions else { panic!("a whole transport") };
        let of = |uses| of_transports(&TransportTable { uses, ..*table });
        // (marks, ranks, the queue discipline that is implied)
        let says = |uses| (of(uses).needs.marks, of(uses).ranks, of(uses).implies.first().map(|(_, value)| *value));
        assert_eq!(says(0), (false, false, None));
        assert_eq!(says(USES_MARKS), (true, false, Some("ecn_threshold")));
        assert_eq!(says(USES_CLASSES | USES_RANKS), (false, true, Some("strict")));
        assert!(of(USES_CLASSES | USES_MARKS).implies.contains(&("qdisc.mark", "auto")));
        assert!(!of(0).packets_only.is_empty());
    }
}
