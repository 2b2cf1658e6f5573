//! Plug-ins: a policy from a file that is loaded at run time.
//!
//! The file `path` is a shared library or a module of WebAssembly with a table of functions. docs/plugins.md explains how to write
//! it. `path = "example"` is the plug-in that flowloom contains: PIAS.
//!
//! Source: the plug-in.
//!
//! Model: the plug-in sees every packet that its host sends and receives, timeouts and both ends of
//! flows. It sets the class, the rank and ECT of the packets that its host sends, has timers, and may
//! give up flows.
//!
//! Assumed:
//! - A plug-in has no packets and no header of its own, and does not choose paths.
//! - It sets ranks only if it declares them. Other changes of a packet end the run.
//! - Where a host asks the flow with the best class (`nic.kind = "pull"`), the next packet of a flow counts as one of the class and rank of its last packet, since a plug-in
//!   chooses both when the packet is sent.

use super::{Cx, Policy, Urgency};
use crate::contract::Env;
use crate::packet::Packet;
use crate::plugins::{self, Caller, MOST_COUNTED, NEVER_DUE};
use ::plugin::abi;
use ::plugin::block::Block;
use ::plugin::host::machine::{HostServices, new_state};
use ::plugin::host::{Sample, SeenFlow, USES_CLASSES, USES_MARKS, USES_RANKS};
use ::plugin::library::{EXAMPLE_FILE, Failure, Library};
use ::plugin::policy::PolicyTable;
use ::plugin::policy::machine::{Event, Machine, PolicyServices};
use base::params::{Params as _, Problem};
use base::plugins::{PluginParams, RoomParams, problem};
use base::registry::{Entry, Meta, Needs, PluginRoom};
use base::{FlowId, FlowMap, Time, TimerKey};
use std::ops::Range;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "a policy from a file: a shared library or a module of WebAssembly",
    source: "the plug-in",
    implies: &[("policy.path", EXAMPLE_FILE), ("qdisc.kind", "strict"), ("qdisc.classes", "8")],
    packets_only: "it changes packets",
    plugin: Some(PluginRoom { entry, example: Library::example_policy }),
    host: "that of the plug-in's source",
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
        Library::example_policy()
    }
}

/// Parameters of a plug-in.
pub type Params = PluginParams<Common>;

/// Makes the entry of a plug-in. The error completes a sentence about the plug-in.
fn entry(library: &'static Library) -> Result<Entry, String> {
    let table = library.table::<PolicyTable>()?;
    let uses = |bit| table.uses & bit != 0;
    let implies: &[(&str, &str)] = match (uses(USES_CLASSES), uses(USES_MARKS)) {
        (false, false) => &[],
        (false, true) => &[("qdisc.kind", "ecn_threshold")],
        (true, false) => &[("qdisc.kind", "strict"), ("qdisc.classes", "8")],
        (true, true) => &[("qdisc.kind", "strict"), ("qdisc.classes", "8"), ("qdisc.mark", "auto")],
    };
    let needs = Needs { marks: uses(USES_MARKS), deadlines: library.knows_deadline(), ..META.needs };
    let meta = Meta { needs, implies, ranks: uses(USES_RANKS), classes: uses(USES_CLASSES) || uses(USES_RANKS), ..META };
    let plain =
        Entry { name: "plugin", meta: &META, fields: Common::FIELDS, text: include_str!("plugin.rs"), machine: None, plugin: None };
    base::plugins::entry(plain, meta, library)
}

/// Returns the contradictions between parameters that the plug-in reports.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    machine(params, env).err().map(problem).into_iter().collect()
}

fn machine(params: &Params, env: &Env<'_>) -> Result<Machine, Failure> {
    Machine::new(params.own.library(), &plugins::endpoint(env), &params.own.values())
}

/// The policy of one host.
pub struct Plugin {
    /// Its functions, or why it could not be created: then a run fails with its first event.
    machine: Result<Machine, Failure>,
    kept: Kept,
}

/// What the simulator keeps for a host of a plug-in.
struct Kept {
    library: &'static Library,
    table: &'static PolicyTable,
    /// The states of flows at this host. Blocks do not move.
    states: FlowMap<Box<Block>>,
    /// By flow that this host sends: class and rank of its last data packet.
    last: FlowMap<Urgency>,
}

impl Plugin {
    /// Creates a host without flows.
    pub fn new(params: &Params, env: &Env<'_>) -> Self {
        let library = params.own.library();
        let table = library.table::<PolicyTable>().expect("refused when the scenario was read");
        Plugin::of(machine(params, env), library, table)
    }
    fn of(machine: Result<Machine, Failure>, library: &'static Library, table: &'static PolicyTable) -> Plugin {
        Plugin { machine, kept: Kept { library, table, states: FlowMap::default(), last: FlowMap::default() } }
    }
    /// Returns the machine, and the functions that it may call.
    #[inline(always)]
    fn with<'x, 'a>(&'x mut self, cx: &'x mut Cx<'a>) -> (&'x mut Machine, Access<'x, 'a>) {
        let machine = match &mut self.machine {
            Ok(machine) => machine,
            Err(failure) => failure.clone().raise(),
        };
        (machine, Access { kept: &mut self.kept, cx, wrong: None })
    }
    fn on_event(&mut self, event: Event, flow: FlowId, cx: &mut Cx<'_>) {
        let (machine, mut access) = self.with(cx);
        machine.on_event(&mut access, event, flow.0);
    }
}

impl Policy for Plugin {
    fn on_open(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.on_event(Event::Open, flow, cx);
    }
    #[inline]
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) {
        let before = plugins::shown_to_host(packet);
        let mut after = before;
        let (machine, mut access) = self.with(cx);
        machine.on_send(&mut access, &mut after);
        let abi::Packet { prio, rank, flags, .. } = after;
        let allowed = abi::Packet { prio, rank, flags: before.flags & !Packet::ECT | flags & Packet::ECT, ..before };
        if after != allowed {
            machine.refuse("on_send", format!("it changes more of a packet of flow {} than class, rank and ECT", before.flow));
        }
        if rank != before.rank && access.kept.table.uses & USES_RANKS == 0 {
            machine.refuse("on_send", format!("it sets the rank {rank}, but `uses` does not declare ranks"));
        }
        packet.prio = prio;
        packet.flags = packet.flags & !Packet::ECT | flags & Packet::ECT;
        if rank != before.rank {
            packet.rank = rank;
        }
        if packet.payload > 0 {
            self.kept.last.insert(packet.flow, Urgency { prio, rank });
        }
    }
    /// A plug-in sets classes when the NIC takes a packet: the next packet counts as the last one.
    fn urgency(&self, flow: FlowId, _bytes: Range<u64>, _cx: &Cx<'_>) -> Urgency {
        self.kept.last.get(flow).copied().unwrap_or_default()
    }
    #[inline]
    fn on_receive(&mut self, packet: &mut Packet, cx: &mut Cx<'_>) -> bool {
        let (machine, mut access) = self.with(cx);
        if machine.has_on_receive() {
            machine.on_receive(&mut access, &plugins::shown_to_host(packet));
        }
        true
    }
    fn on_timeout(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.on_event(Event::Timeout, flow, cx);
    }
    fn on_finish(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.on_event(Event::Finish, flow, cx);
    }
    fn on_close(&mut self, flow: FlowId, cx: &mut Cx<'_>) {
        self.on_event(Event::Close, flow, cx);
        self.kept.states.remove(flow);
        cx.forget(flow);
    }
    fn on_timer(&mut self, key: TimerKey, cx: &mut Cx<'_>) {
        let (machine, mut access) = self.with(cx);
        machine.on_timer(&mut access, key.kind.into(), key.flow.0);
    }
}

/// What a function of the plug-in may do while it runs.
struct Access<'x, 'a> {
    kept: &'x mut Kept,
    cx: &'x mut Cx<'a>,
    /// The first call that was not allowed.
    wrong: Option<String>,
}

impl<'a> Access<'_, 'a> {
    fn caller(&self) -> Caller<'a> {
        Caller { library: self.kept.library, host: self.cx.host, flows: self.cx.flows }
    }
}

impl HostServices for Access<'_, '_> {
    fn arm(&mut self, flow: u32, kind: u32, at_ps: u64) -> Option<()> {
        self.allowed("arm", |own| {
            let (flow, kind) = own.caller().timer(flow, kind)?;
            if at_ps >= NEVER_DUE {
                own.cx.disarm(flow, kind)
            } else {
                own.cx.arm(flow, kind, Time(at_ps))
            }
            Ok(())
        })
    }
    fn disarm(&mut self, flow: u32, kind: u32) -> Option<()> {
        self.allowed("disarm", |own| {
            let (flow, kind) = own.caller().timer(flow, kind)?;
            own.cx.disarm(flow, kind);
            Ok(())
        })
    }
    fn terminate(&mut self, flow: u32) -> Option<()> {
        self.allowed("terminate", |own| {
            let found = plugins::may_be_given_up(own.caller().sent(flow)?)?;
            own.cx.terminate(found.id);
            Ok(())
        })
    }
    fn finished(&mut self, flow: u32) -> Option<bool> {
        self.allowed("finished", |own| Ok(own.cx.has_finished(own.caller().received(flow)?.id)))
    }
    fn count(&mut self, flow: u32, counter: u32, more: u64) -> Option<()> {
        self.allowed("count", |own| {
            let (flow, counter) = own.caller().counter(flow, counter)?;
            own.cx.count(flow, counter, more.min(MOST_COUNTED));
            Ok(())
        })
    }
    fn random(&mut self) -> u64 {
        self.cx.rng.bits()
    }
    fn view(&mut self, flow: u32) -> Option<SeenFlow> {
        self.allowed("view", |own| own.caller().view(flow))
    }
    fn state(&mut self, flow: u32) -> Option<&Block> {
        let table = self.kept.table;
        let flow = self.allowed("state", |own| {
            if table.head.state_size == 0 {
                return Err("its `state_size` is 0".to_owned());
            }
            Ok(own.caller().flow(flow)?.id)
        })?;
        Some(self.kept.states.or_insert_with(flow, || Box::new(new_state(&table.head))))
    }
    fn here(&self) -> (u64, u32) {
        (self.cx.now.0, self.cx.host.0)
    }
    fn wrong(&mut self) -> &mut Option<String> {
        &mut self.wrong
    }
}

impl PolicyServices for Access<'_, '_> {
    fn sample(&mut self, flow: u32) -> Option<Sample> {
        self.allowed("sample", |own| {
            let sample = own.cx.sample(own.caller().sent(flow)?.id).unwrap_or_default();
            Ok(Sample {
                cwnd: sample.cwnd_bytes,
                ssthresh: sample.ssthresh_bytes,
                srtt_ps: sample.srtt.0,
                rate_bps: sample.rate.0,
                in_flight: sample.in_flight_bytes,
            })
        })
    }
}

#[cfg(test)]
mod tests;
