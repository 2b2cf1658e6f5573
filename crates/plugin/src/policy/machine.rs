//! The side of the simulator: the policy of a host, and the functions that it may call.

use super::{OfFlow, PolicyCalls, PolicyTable};
use crate::abi::{FAILED, Packet, Value};
use crate::host::machine::{HostMachine, HostServices, arm, count, disarm, finished, random, state, status, terminate, view};
use crate::host::{Endpoint, Sample};
use crate::library::{Failure, Library};
use std::ffi::c_void;

/// The functions of the simulator behind [`PolicyCalls`].
pub trait PolicyServices: HostServices {
    /// See [`PolicyCalls::sample`].
    fn sample(&mut self, flow: u32) -> Option<Sample>;

    /// The functions for plug-ins.
    const CALLS: &'static PolicyCalls = &PolicyCalls {
        arm: arm::<Self>,
        disarm: disarm::<Self>,
        terminate: terminate::<Self>,
        finished: finished::<Self>,
        sample: sample::<Self>,
        count: count::<Self>,
        random: random::<Self>,
        view: view::<Self>,
        state: state::<Self>,
    };
}

// Safety: as in `host::machine`.
unsafe extern "C" fn sample<S: PolicyServices>(handle: *mut c_void, flow: u32, to: *mut Sample) -> i32 {
    let sample = unsafe { &mut *handle.cast::<S>() }.sample(flow);
    status(sample.map(|sample| unsafe { to.write(sample) }))
}

/// The event of a flow that a policy is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`PolicyTable::on_open`].
    Open,
    /// [`PolicyTable::on_timeout`].
    Timeout,
    /// [`PolicyTable::on_finish`].
    Finish,
    /// [`PolicyTable::on_close`].
    Close,
}

/// The policy of a host.
pub type Machine = HostMachine<PolicyTable>;

// Safety of the calls below: the table was checked, `own` was filled by `create` of the same plug-in, and
// `S::CALLS` are the functions for an `S`.

impl Machine {
    /// Creates the policy of a host. There is a value for each parameter. The library must be a
    /// policy.
    pub fn new(library: &'static Library, endpoint: &Endpoint, values: &[Value]) -> Result<Machine, Failure> {
        let (table, own) = library.create(|table: &PolicyTable| table.create, endpoint, values)?;
        Ok(HostMachine { library, table, own })
    }
    /// Calls `on_send`.
    #[inline(always)]
    pub fn on_send<S: PolicyServices>(&mut self, services: &mut S, packet: &mut Packet) {
        let function = self.table.on_send;
        self.call(services, S::CALLS, "on_send", |own, cx| function.map_or(FAILED, |on_send| unsafe { on_send(own, cx, packet) }));
    }
    /// Returns whether the plug-in has `on_receive`.
    #[inline(always)]
    pub fn has_on_receive(&self) -> bool {
        self.table.on_receive.is_some()
    }
    /// Calls `on_receive`.
    pub fn on_receive<S: PolicyServices>(&mut self, services: &mut S, packet: &Packet) {
        if let Some(on_receive) = self.table.on_receive {
            self.call(services, S::CALLS, "on_receive", |own, cx| unsafe { on_receive(own, cx, packet) });
        }
    }
    /// Calls the function for an event of a flow.
    pub fn on_event<S: PolicyServices>(&mut self, services: &mut S, event: Event, flow: u32) {
        let (name, function): (_, OfFlow) = match event {
            Event::Open => ("on_open", self.table.on_open),
            Event::Timeout => ("on_timeout", self.table.on_timeout),
            Event::Finish => ("on_finish", self.table.on_finish),
            Event::Close => ("on_close", self.table.on_close),
        };
        if let Some(function) = function {
            self.call(services, S::CALLS, name, |own, cx| unsafe { function(own, cx, flow) });
        }
    }
    /// Calls `on_timer`.
    pub fn on_timer<S: PolicyServices>(&mut self, services: &mut S, kind: u32, flow: u32) {
        if let Some(on_timer) = self.table.on_timer {
            self.call(services, S::CALLS, "on_timer", |own, cx| unsafe { on_timer(own, cx, kind, flow) });
        }
    }
}
