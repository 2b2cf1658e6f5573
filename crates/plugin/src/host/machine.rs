//! The side of the simulator: the machine of a plug-in at a host, and the functions that transports and
//! policies may call.

use super::{Context, SeenFlow};
use crate::abi::{FAILED, Head, OK};
use crate::block::Block;
use crate::library::Library;
use std::ffi::c_void;
use std::ptr;

/// The functions of the simulator that plug-ins at hosts may call, as
/// [`TransportCalls`](crate::transport::TransportCalls) and [`PolicyCalls`](crate::policy::PolicyCalls)
/// describe them. They must not panic: a call that is not allowed is recorded, returns `None`, and has
/// no other effect.
pub trait HostServices: Sized {
    /// Sets the deadline of a timer.
    fn arm(&mut self, flow: u32, kind: u32, at_ps: u64) -> Option<()>;
    /// Clears the deadline of a timer.
    fn disarm(&mut self, flow: u32, kind: u32) -> Option<()>;
    /// Returns whether all bytes of a flow have arrived.
    fn finished(&mut self, flow: u32) -> Option<bool>;
    /// Gives up a flow.
    fn terminate(&mut self, flow: u32) -> Option<()>;
    /// Adds to a declared counter of a flow.
    fn count(&mut self, flow: u32, counter: u32, more: u64) -> Option<()>;
    /// Returns 64 random bits.
    fn random(&mut self) -> u64;
    /// Describes a flow.
    fn view(&mut self, flow: u32) -> Option<SeenFlow>;
    /// Returns the state of a flow. Blocks do not move, and are not dropped while a function of the
    /// plug-in runs.
    fn state(&mut self, flow: u32) -> Option<&Block>;
    /// Returns the current time and this host.
    fn here(&self) -> (u64, u32);
    /// Returns the place for the first call that was not allowed.
    fn wrong(&mut self) -> &mut Option<String>;
    /// Runs a call, or records why it is not allowed. The error completes a sentence.
    fn allowed<T>(&mut self, call: &str, run: impl FnOnce(&mut Self) -> Result<T, String>) -> Option<T> {
        match run(self) {
            Ok(value) => Some(value),
            Err(why) => {
                self.wrong().get_or_insert_with(|| format!("it calls `{call}`, but {why}"));
                None
            }
        }
    }
}

// Safety of the functions below: `handle` is the exclusive reference that `HostMachine::call` was given,
// and nothing else uses it while a function of the plug-in runs. The plug-in passes structures that
// live as long as the call.

pub(crate) fn status(done: Option<()>) -> i32 {
    done.map_or(FAILED, |()| OK)
}

pub(crate) unsafe extern "C" fn arm<S: HostServices>(handle: *mut c_void, flow: u32, kind: u32, at_ps: u64) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.arm(flow, kind, at_ps))
}
pub(crate) unsafe extern "C" fn disarm<S: HostServices>(handle: *mut c_void, flow: u32, kind: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.disarm(flow, kind))
}
pub(crate) unsafe extern "C" fn finished<S: HostServices>(handle: *mut c_void, flow: u32) -> i32 {
    unsafe { &mut *handle.cast::<S>() }.finished(flow).map_or(FAILED, i32::from)
}
pub(crate) unsafe extern "C" fn terminate<S: HostServices>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.terminate(flow))
}
pub(crate) unsafe extern "C" fn count<S: HostServices>(handle: *mut c_void, flow: u32, counter: u32, more: u64) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.count(flow, counter, more))
}
pub(crate) unsafe extern "C" fn random<S: HostServices>(handle: *mut c_void) -> u64 {
    unsafe { &mut *handle.cast::<S>() }.random()
}
pub(crate) unsafe extern "C" fn view<S: HostServices>(handle: *mut c_void, flow: u32, to: *mut SeenFlow) -> i32 {
    let view = unsafe { &mut *handle.cast::<S>() }.view(flow);
    status(view.map(|view| unsafe { to.write(view) }))
}
pub(crate) unsafe extern "C" fn state<S: HostServices>(handle: *mut c_void, flow: u32) -> *mut c_void {
    unsafe { &mut *handle.cast::<S>() }.state(flow).map_or(ptr::null_mut(), Block::at)
}

/// Creates the state of a flow at a host, filled with zeros.
pub fn new_state(head: &Head) -> Block {
    let mut state = Block::new(head.state_size);
    state.ends_with(head.close);
    state
}

/// The machine of a plug-in with the table `T` at a host.
pub struct HostMachine<T: 'static> {
    pub(crate) library: &'static Library,
    pub(crate) table: &'static T,
    pub(crate) own: Block,
}

impl<T> HostMachine<T> {
    /// Ends the run: a function has done what it must not do.
    #[cold]
    pub fn refuse(&self, function: &'static str, why: String) -> ! {
        self.library.wrong(function, why).raise()
    }
    /// Ends the run: a function has failed.
    #[cold]
    pub(crate) fn fail(&self, function: &'static str) -> ! {
        self.library.failure(function).raise()
    }
    /// Calls a function that may call `calls`, the functions for `services`. Ends the run if it has made a
    /// call that is not allowed. Returns its result.
    #[inline(always)]
    pub(crate) fn status<C>(
        &self,
        services: &mut impl HostServices,
        calls: &'static C,
        function: &'static str,
        run: impl FnOnce(*mut c_void, *const Context<C>) -> i32,
    ) -> i32 {
        let (now_ps, host) = services.here();
        let handle = ptr::from_mut(&mut *services).cast();
        let cx = Context { now_ps, calls, handle, host, reserved: 0 };
        let status = run(self.own.at(), &raw const cx);
        if let Some(why) = services.wrong().take() {
            self.refuse(function, why);
        }
        status
    }
    /// As [`status`](HostMachine::status). Ends the run if the function fails.
    #[inline(always)]
    pub(crate) fn call<C>(
        &self,
        services: &mut impl HostServices,
        calls: &'static C,
        function: &'static str,
        run: impl FnOnce(*mut c_void, *const Context<C>) -> i32,
    ) {
        if self.status(services, calls, function, run) != OK {
            self.fail(function);
        }
    }
}
