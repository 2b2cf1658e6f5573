//! The side of the author of a policy: makes the table from an implementation of [`Policy`].

use super::{PolicyCalls, PolicyContext, PolicyTable};
use crate::abi::{Head, OK, Packet, Value};
use crate::author::{self, Declaration, Values, guard};
use crate::transport::{Endpoint, NO_FLOW, Sample, SeenFlow};
use std::ffi::c_void;
use std::marker::PhantomData;

/// A policy: the machine of one host between its transport and its NIC.
pub trait Policy: Sized + Send + 'static {
    /// Its name, parameters and counters.
    const DECLARATION: Declaration;
    /// What packets get: a sum of [`USES_MARKS`](crate::transport::USES_MARKS),
    /// [`USES_CLASSES`](crate::transport::USES_CLASSES) and [`USES_RANKS`](crate::transport::USES_RANKS).
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

/// What a policy sees and may do while it handles an event. See [`PolicyCalls`]. A call that is not
/// allowed has no effect, and ends the run after the event.
pub struct Cx<'a> {
    context: *const PolicyContext,
    one: PhantomData<&'a mut PolicyContext>,
}

// Safety of the calls below: the context and its functions are valid while the `Cx` lives.

impl Cx<'_> {
    /// Creates the context of a call.
    ///
    /// # Safety
    ///
    /// `context` is valid as long as the `Cx`.
    unsafe fn of<'a>(context: *const PolicyContext) -> Cx<'a> {
        Cx { context, one: PhantomData }
    }
    fn calls(&self) -> (&PolicyCalls, *mut c_void) {
        unsafe { (&*(*self.context).calls, (*self.context).handle) }
    }
    /// Returns the current time in picoseconds.
    pub fn now(&self) -> u64 {
        unsafe { (*self.context).now_ps }
    }
    /// Returns the number of this host.
    pub fn host(&self) -> u32 {
        unsafe { (*self.context).host }
    }
    /// Sets the deadline of a timer of a flow; an earlier setting is replaced. Kinds are below 4.
    pub fn arm(&mut self, flow: u32, kind: u32, at_ps: u64) {
        let (calls, handle) = self.calls();
        unsafe { (calls.arm)(handle, flow, kind, at_ps) };
    }
    /// Clears the deadline of a timer of a flow.
    pub fn disarm(&mut self, flow: u32, kind: u32) {
        let (calls, handle) = self.calls();
        unsafe { (calls.disarm)(handle, flow, kind) };
    }
    /// Sets the deadline of a timer of the host.
    pub fn arm_host(&mut self, kind: u32, at_ps: u64) {
        self.arm(NO_FLOW, kind, at_ps);
    }
    /// Clears the deadline of a timer of the host.
    pub fn disarm_host(&mut self, kind: u32) {
        self.disarm(NO_FLOW, kind);
    }
    /// Gives up a flow that this host sends, after the event. Has no effect if it is not open.
    pub fn terminate(&mut self, flow: u32) {
        let (calls, handle) = self.calls();
        unsafe { (calls.terminate)(handle, flow) };
    }
    /// Returns whether all bytes of a flow that this host receives have arrived.
    pub fn has_finished(&self, flow: u32) -> bool {
        let (calls, handle) = self.calls();
        unsafe { (calls.finished)(handle, flow) == 1 }
    }
    /// Returns the transport's sample of a flow that this host sends: zeros if it is not open.
    pub fn sample(&self, flow: u32) -> Sample {
        let (calls, handle) = self.calls();
        let mut sample = Sample::default();
        unsafe { (calls.sample)(handle, flow, &raw mut sample) };
        sample
    }
    /// Adds to a declared counter of a flow, at most 2^32 at a time.
    pub fn count(&mut self, flow: u32, counter: u32, more: u64) {
        let (calls, handle) = self.calls();
        unsafe { (calls.count)(handle, flow, counter, more) };
    }
    /// Returns 64 random bits, which depend only on the seed of the run and the host.
    pub fn random(&mut self) -> u64 {
        let (calls, handle) = self.calls();
        unsafe { (calls.random)(handle) }
    }
    /// Describes a flow.
    pub fn flow(&self, flow: u32) -> SeenFlow {
        let (calls, handle) = self.calls();
        let mut view = SeenFlow::NONE;
        unsafe { (calls.view)(handle, flow, &raw mut view) };
        view
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
/// Runs a method of the policy in `own`.
///
/// # Safety
///
/// `own` holds a `P`, and `cx` is valid.
unsafe fn with<P: Policy>(own: *mut c_void, cx: *const PolicyContext, run: impl FnOnce(&mut P, &mut Cx<'_>)) -> i32 {
    guard(|| unsafe {
        run(&mut *own.cast::<P>(), &mut Cx::of(cx));
        OK
    })
}
unsafe extern "C" fn on_send<P: Policy>(own: *mut c_void, cx: *const PolicyContext, packet: *mut Packet) -> i32 {
    unsafe { with::<P>(own, cx, |policy, cx| policy.on_send(&mut *packet, cx)) }
}
unsafe extern "C" fn on_receive<P: Policy>(own: *mut c_void, cx: *const PolicyContext, packet: *const Packet) -> i32 {
    unsafe { with::<P>(own, cx, |policy, cx| policy.on_receive(&*packet, cx)) }
}
unsafe extern "C" fn on_open<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P>(own, cx, |policy, cx| policy.on_open(flow, cx)) }
}
unsafe extern "C" fn on_timeout<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P>(own, cx, |policy, cx| policy.on_timeout(flow, cx)) }
}
unsafe extern "C" fn on_finish<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P>(own, cx, |policy, cx| policy.on_finish(flow, cx)) }
}
unsafe extern "C" fn on_close<P: Policy>(own: *mut c_void, cx: *const PolicyContext, flow: u32) -> i32 {
    unsafe { with::<P>(own, cx, |policy, cx| policy.on_close(flow, cx)) }
}
unsafe extern "C" fn on_timer<P: Policy>(own: *mut c_void, cx: *const PolicyContext, kind: u32, flow: u32) -> i32 {
    unsafe { with::<P>(own, cx, |policy, cx| policy.on_timer(kind, (flow != NO_FLOW).then_some(flow), cx)) }
}
