//! The side of the author: what transports and policies see and may do while they handle an event.

use super::Context;
use crate::abi::OK;
use crate::author::guard;
use std::ffi::c_void;
use std::marker::PhantomData;

/// What a plug-in at a host sees and may do while it handles an event, with the functions `C` of its
/// room. A call that is not allowed has no effect, and ends the run after the event.
pub struct Cx<'a, C> {
    context: *const Context<C>,
    one: PhantomData<&'a mut Context<C>>,
}

// Safety of the calls below: the context and its functions are valid while the `Cx` lives.

impl<C> Cx<'_, C> {
    /// Creates the context of a call.
    ///
    /// # Safety
    ///
    /// `context` is valid as long as the `Cx`.
    pub(crate) unsafe fn of<'a>(context: *const Context<C>) -> Cx<'a, C> {
        Cx { context, one: PhantomData }
    }
    /// Returns the functions that the plug-in may call, and their first argument.
    pub(crate) fn calls(&self) -> (&C, *mut c_void) {
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
}

/// Writes the methods of a [`Cx`] for the functions that the tables of calls of transports and policies
/// share.
macro_rules! shared_calls {
    ($calls:ty) => {
        impl $crate::host::author::Cx<'_, $calls> {
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
                self.arm($crate::host::NO_FLOW, kind, at_ps);
            }
            /// Clears the deadline of a timer of the host.
            pub fn disarm_host(&mut self, kind: u32) {
                self.disarm($crate::host::NO_FLOW, kind);
            }
            /// Returns whether all bytes of a flow that this host receives have arrived.
            pub fn has_finished(&self, flow: u32) -> bool {
                let (calls, handle) = self.calls();
                unsafe { (calls.finished)(handle, flow) == 1 }
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
            pub fn flow(&self, flow: u32) -> $crate::host::SeenFlow {
                let (calls, handle) = self.calls();
                let mut view = $crate::host::SeenFlow::NONE;
                unsafe { (calls.view)(handle, flow, &raw mut view) };
                view
            }
        }
    };
}
pub(crate) use shared_calls;

/// Runs a method of the machine in `own`.
///
/// # Safety
///
/// `own` holds an `M`, and `context` is valid.
pub(crate) unsafe fn with<M, C>(own: *mut c_void, context: *const Context<C>, run: impl FnOnce(&mut M, &mut Cx<'_, C>)) -> i32 {
    guard(|| unsafe {
        run(&mut *own.cast::<M>(), &mut Cx::of(context));
        OK
    })
}
