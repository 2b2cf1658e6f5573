//! The side of the simulator: a host of a plug-in, and the functions that it may call.

use super::{Delivery, Endpoint, NOTHING, Sample, TransportCalls, TransportTable};
use crate::abi::{FAILED, OK, Packet, Value};
use crate::block::Block;
use crate::host::machine::{HostMachine, HostServices, arm, count, disarm, finished, random, state, status, terminate, view};
use crate::library::{Failure, Library};
use std::ffi::c_void;
use std::ptr;

/// The functions of the simulator behind [`TransportCalls`].
pub trait TransportServices: HostServices {
    /// See [`TransportCalls::control`].
    fn control(&mut self, packet: &Packet) -> Option<()>;
    /// See [`TransportCalls::deliver`].
    fn deliver(&mut self, flow: u32, offset: u64, length: u64) -> Option<Delivery>;
    /// See [`TransportCalls::close`].
    fn close(&mut self, flow: u32) -> Option<()>;
    /// See [`TransportCalls::timeout`].
    fn timeout(&mut self, flow: u32) -> Option<()>;
    /// See [`TransportCalls::fast_retransmit`].
    fn fast_retransmit(&mut self, flow: u32) -> Option<()>;
    /// See [`TransportCalls::payload`].
    fn payload(&mut self, flow: u32, offset: u64) -> Option<u64>;

    /// The functions for plug-ins.
    const CALLS: &'static TransportCalls = &TransportCalls {
        arm: arm::<Self>,
        disarm: disarm::<Self>,
        control: control::<Self>,
        deliver: deliver::<Self>,
        finished: finished::<Self>,
        close: close::<Self>,
        terminate: terminate::<Self>,
        timeout: timeout::<Self>,
        fast_retransmit: fast_retransmit::<Self>,
        count: count::<Self>,
        random: random::<Self>,
        view: view::<Self>,
        payload: payload::<Self>,
        state: state::<Self>,
    };
}

// Safety of the functions below: as in `host::machine`.

unsafe extern "C" fn control<S: TransportServices>(handle: *mut c_void, packet: *const Packet) -> i32 {
    status(unsafe { (*handle.cast::<S>()).control(&*packet) })
}
unsafe extern "C" fn deliver<S: TransportServices>(
    handle: *mut c_void,
    flow: u32,
    offset: u64,
    length: u64,
    to: *mut Delivery,
) -> i32 {
    let delivery = unsafe { &mut *handle.cast::<S>() }.deliver(flow, offset, length);
    if !to.is_null() {
        unsafe { to.write(delivery.unwrap_or_default()) };
    }
    status(delivery.map(|_| ()))
}
unsafe extern "C" fn close<S: TransportServices>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.close(flow))
}
unsafe extern "C" fn timeout<S: TransportServices>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.timeout(flow))
}
unsafe extern "C" fn fast_retransmit<S: TransportServices>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.fast_retransmit(flow))
}
unsafe extern "C" fn payload<S: TransportServices>(handle: *mut c_void, flow: u32, offset: u64) -> u64 {
    unsafe { &mut *handle.cast::<S>() }.payload(flow, offset).unwrap_or(0)
}

/// A host.
pub type Machine = HostMachine<TransportTable>;

// Safety of the calls below: the table was checked, `own` was filled by `create` of the same plug-in, and
// `S::CALLS` are the functions for an `S`.

impl Machine {
    /// Creates a host. There is a value for each parameter. The library must be a transport.
    pub fn new(library: &'static Library, endpoint: &Endpoint, values: &[Value]) -> Result<Machine, Failure> {
        let (table, own) = library.create(|table: &TransportTable| table.create, endpoint, values)?;
        Ok(HostMachine { library, table, own })
    }
    /// Calls `on_flow`.
    pub fn on_flow<S: TransportServices>(&mut self, services: &mut S, flow: u32) {
        let function = self.table.on_flow;
        self.call(services, S::CALLS, "on_flow", |own, cx| function.map_or(FAILED, |on_flow| unsafe { on_flow(own, cx, flow) }));
    }
    /// Calls `on_packet`.
    #[inline(always)]
    pub fn on_packet<S: TransportServices>(&mut self, services: &mut S, packet: &Packet) {
        let function = self.table.on_packet;
        self.call(services, S::CALLS, "on_packet", |own, cx| {
            function.map_or(FAILED, |on_packet| unsafe { on_packet(own, cx, packet) })
        });
    }
    /// Calls `on_timer`.
    pub fn on_timer<S: TransportServices>(&mut self, services: &mut S, kind: u32, flow: u32) {
        let function = self.table.on_timer;
        self.call(services, S::CALLS, "on_timer", |own, cx| {
            function.map_or(FAILED, |on_timer| unsafe { on_timer(own, cx, kind, flow) })
        });
    }
    /// Calls `poll`. Returns the packet.
    #[inline(always)]
    pub fn poll<S: TransportServices>(&mut self, services: &mut S) -> Option<Packet> {
        let mut packet = Packet::EMPTY;
        let function = self.table.poll;
        let status = self.status(services, S::CALLS, "poll", |own, cx| {
            function.map_or(FAILED, |poll| unsafe { poll(own, cx, &raw mut packet) })
        });
        match status {
            OK => Some(packet),
            NOTHING => None,
            _ => self.fail("poll"),
        }
    }
    /// Calls `give_up`.
    pub fn give_up<S: TransportServices>(&mut self, services: &mut S, flow: u32) {
        let function = self.table.give_up;
        self.call(services, S::CALLS, "give_up", |own, cx| function.map_or(FAILED, |give_up| unsafe { give_up(own, cx, flow) }));
    }
    /// Calls `sample`. All values are 0 without it.
    pub fn sample(&self, state: Option<&Block>, flow: u32) -> Sample {
        let mut sample = Sample::default();
        if let Some(function) = self.table.sample {
            let state = state.map_or(ptr::null(), |block| block.at().cast_const());
            if unsafe { function(self.own.at(), state, flow, &raw mut sample) } != OK {
                self.fail("sample");
            }
        }
        sample
    }
}
