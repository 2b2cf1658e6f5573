//! The side of the author of a policy: makes the table from an implementation of [`Policy`].

use super::{PolicyCalls, PolicyContext, PolicyTable};
use crate::abi::{Head, Packet, Value};
use crate::author::{self, Declaration, Values};
use crate::host::author::{shared_calls, with};
use crate::host::{self, Endpoint, NO_FLOW, Sample};
use std::ffi::c_void;

/// A policy: the machine of one host between its transport and its NIC.
pub trait Policy: Sized + Send + 'static {
    /// Its name, parameters and counters.
    const DECLARATION: Declaration;
    /// What packets get: a sum of [`USES_MARKS`](crate::host::USES_MARKS),
    /// [`USES_CLASSES`](crate::host::USES_CLASSES) and [`USES_RANKS`](crate::host::USES_RANKS).
    const USES: u32;
    /// Creates the policy of a host. The error says which values contradict each other.
    fn create(endpoint: &Endpoint, values: Values<'_>) -> Result<Self, String>;
    /// Called when the NIC takes a packet of this host: may set its class, its rank and
    /// [`Packet::ECT`].
    fn on_send(&mut self, packet: &mut Packet, cx: &mut Cx<'_>);
    /// Called when a packet reaches this host, before the transport sees it.
    fn on_receive(&mut self, _packet: &Packet, _cx: &mut Cx<'_>) {}
    /// Called when the application opens a flow at this host, before the transport opens it.
    fn on_open(&mut self, _flow: u32, _cx: &mut Cx<'_>) {}
    /// Called when the sender of a flow, at this host, counts a retransmission timeout.
    fn on_timeout(&mut self, _flow: u32, _cx: &mut Cx<'_>) {}
    /// Called when the last byte of a flow has arrived at this host.
    fn on_finish(&mut self, _flow: u32, _cx: &mut Cx<'_>) {}
    /// Called when a flow that this host sends is closed or was given up. Its timers end after the call.
    fn on_close(&mut self, _flow: u32, _cx: &mut Cx<'_>) {}
    /// Called when a timer is due: a flow's, or the host's with `None`. It is disarmed before the call.
    fn on_timer(&mut self, _kind: u32, _flow: Option<u32>, _cx: &mut Cx<'_>) {}
}

/// What a policy sees and may do while it handles an event. See [`PolicyCalls`].
pub type Cx<'a> = host::author::Cx<'a, PolicyCalls>;

shared_calls!(PolicyCalls);

// Safety of the calls below: the functions are valid while the `Cx` lives.

impl Cx<'_> {
    /// Gives up a flow that this host sends, after the event. Has no effect if it is not open.
    pub fn terminate(&mut self, flow: u32) {
        let (calls, handle) = self.calls();
        unsafe { (calls.terminate)(handle, flow) };
    }
    /// Returns the transport's sample of a flow that this host sends: zeros if it is not open.
    pub fn sample(&self, flow: u32) -> Sample {
        let (calls, handle) = self.calls();
        let mut sample = Sample::default();
        unsafe { (calls.sample)(handle, flow, &raw mut sample) };
        sample
    }
}

/// The type of the table.
pub type TableOf = PolicyTable;

/// Returns the table of a policy.
pub const fn table<P: Policy>() -> PolicyTable {
    PolicyTable {
        head: Head::of::<PolicyTable, P, ()>(P::DECLARATION),
        uses: P::USES,
        reserved: 0,
        create: Some(create::<P>),
        on_send: Some(on_send::<P>),
        on_receive: Some(on_receive::<P>),
        on_open: Some(on_open::<P>),
        on_timeout: Some(on_timeout::<P>),
        on_finish: Some(on_finish::<P>),
        on_close: Some(on_close::<P>),
        on_timer: Some(on_timer::<P>),
    }
}

// Safety of the functions below: the simulator passes the block that `create` has filled, which
// nothing else uses, and structures that live as long as the call.

unsafe extern "C" fn create<P: Policy>(_: *const c_void, own: *mut c_void, endpoint: *const Endpoint, values: *const Value) -> i32 {
    unsafe { author::create(P::DECLARATION, own, values, |values| P::create(&*endpoint, values)) }
}
unsafe extern "C" fn on_send<P: Policy>(own: *mut c_void, cx: *const PolicyContext, packet: *mut Packet) -> i32 {
    unsafe { with::<P, _>(own, cx, |policy, cx| policy.on_send(&mut *packet, cx)) }
}
unsafe extern "C" fn on_receive<P: Policy>(own: *mut c_void, cx: *const PolicyContext, packet: *const Packet) -> i32 {
    unsafe { with::<P, _>(own, cx, |policy, cx| policy.on_receive(&*packet, cx)) }
}
unsafe extern "C" fn on_open<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P, _>(own, cx, |policy, cx| policy.on_open(flow, cx)) }
}
unsafe extern "C" fn on_timeout<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P, _>(own, cx, |policy, cx| policy.on_timeout(flow, cx)) }
}
unsafe extern "C" fn on_finish<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P, _>(own, cx, |policy, cx| policy.on_finish(flow, cx)) }
}
unsafe extern "C" fn on_close<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P, _>(own, cx, |policy, cx| policy.on_close(flow, cx)) }
}
unsafe extern "C" fn on_timer<P: Policy>(own: *mut c_void, cx: *const PolicyContext, kind: u32, flow: u32) -> i32 {
    unsafe { with::<P, _>(own, cx, |policy, cx| policy.on_timer(kind, (flow != NO_FLOW).then_some(flow), cx)) }
}
