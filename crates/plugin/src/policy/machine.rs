//! The side of the simulator: the policy of a host, and the functions that it may call.

use super::{OfFlow, PolicyCalls, PolicyContext, PolicyTable};
use crate::abi::{FAILED, OK, Packet, Value};
use crate::block::Block;
use crate::library::{Failure, Library};
use crate::transport::{Endpoint, Sample, SeenFlow};
use std::ffi::c_void;
use std::ptr;

/// The functions of the simulator behind [`PolicyCalls`]. They must not panic: a call that is not
/// allowed is recorded, returns `None`, and has no other effect.
pub trait PolicyServices: Sized {
    /// See [`PolicyCalls::arm`].
    fn arm(&mut self, flow: u32, kind: u32, at_ps: u64) -> Option<()>;
    /// See [`PolicyCalls::disarm`].
    fn disarm(&mut self, flow: u32, kind: u32) -> Option<()>;
    /// See [`PolicyCalls::terminate`].
    fn terminate(&mut self, flow: u32) -> Option<()>;
    /// See [`PolicyCalls::finished`].
    fn finished(&mut self, flow: u32) -> Option<bool>;
    /// See [`PolicyCalls::sample`].
    fn sample(&mut self, flow: u32) -> Option<Sample>;
    /// See [`PolicyCalls::count`].
    fn count(&mut self, flow: u32, counter: u32, more: u64) -> Option<()>;
    /// See [`PolicyCalls::random`].
    fn random(&mut self) -> u64;
    /// See [`PolicyCalls::view`].
    fn view(&mut self, flow: u32) -> Option<SeenFlow>;
    /// See [`PolicyCalls::state`]. Blocks do not move, and are not dropped while a function of the
    /// plug-in runs.
    fn state(&mut self, flow: u32) -> Option<&Block>;
    /// Returns the current time and this host.
    fn here(&self) -> (u64, u32);
    /// Takes the first call that was not allowed, if there is one.
    fn wrong(&mut self) -> Option<String>;

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

// Safety of the functions below: `handle` is the exclusive reference that `Machine::call` was given,
// and nothing else uses it while a function of the plug-in runs. The plug-in passes structures that
// live as long as the call.

fn status(done: Option<()>) -> i32 {
    done.map_or(FAILED, |()| OK)
}

unsafe extern "C" fn arm<S: PolicyServices>(handle: *mut c_void, flow: u32, kind: u32, at_ps: u64) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.arm(flow, kind, at_ps))
}
unsafe extern "C" fn disarm<S: PolicyServices>(handle: *mut c_void, flow: u32, kind: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.disarm(flow, kind))
}
unsafe extern "C" fn terminate<S: PolicyServices>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.terminate(flow))
}
unsafe extern "C" fn finished<S: PolicyServices>(handle: *mut c_void, flow: u32) -> i32 {
    unsafe { &mut *handle.cast::<S>() }.finished(flow).map_or(FAILED, i32::from)
}
unsafe extern "C" fn sample<S: PolicyServices>(handle: *mut c_void, flow: u32, to: *mut Sample) -> i32 {
    let sample = unsafe { &mut *handle.cast::<S>() }.sample(flow);
    status(sample.map(|sample| unsafe { to.write(sample) }))
}
unsafe extern "C" fn count<S: PolicyServices>(handle: *mut c_void, flow: u32, counter: u32, more: u64) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.count(flow, counter, more))
}
unsafe extern "C" fn random<S: PolicyServices>(handle: *mut c_void) -> u64 {
    unsafe { &mut *handle.cast::<S>() }.random()
}
unsafe extern "C" fn view<S: PolicyServices>(handle: *mut c_void, flow: u32, to: *mut SeenFlow) -> i32 {
    let view = unsafe { &mut *handle.cast::<S>() }.view(flow);
    status(view.map(|view| unsafe { to.write(view) }))
}
unsafe extern "C" fn state<S: PolicyServices>(handle: *mut c_void, flow: u32) -> *mut c_void {
    unsafe { &mut *handle.cast::<S>() }.state(flow).map_or(ptr::null_mut(), Block::at)
}

/// Creates the state of a flow at a host, filled with zeros.
pub fn new_state(table: &PolicyTable) -> Block {
    let mut state = Block::new(table.head.state_size);
    state.ends_with(table.head.close);
    state
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
pub struct Machine {
    library: &'static Library,
    table: &'static PolicyTable,
    own: Block,
}

// Safety of the calls below: the table was checked, and `own` was filled by `create` of the same
// plug-in.

impl Machine {
    /// Creates the policy of a host. There is a value for each parameter. The library must be a
    /// policy.
    pub fn new(library: &'static Library, endpoint: &Endpoint, values: &[Value]) -> Result<Machine, Failure> {
        assert_eq!(values.len(), library.parameters.len(), "a value for each parameter");
        let table = library.table::<PolicyTable>().map_err(|why| library.wrong("create", why))?;
        let mut own = Block::new(table.head.own_size);
        let create = |create: unsafe extern "C" fn(_, _, _, _) -> i32| unsafe {
            create(table.head.context, own.at(), ptr::from_ref(endpoint), values.as_ptr())
        };
        if table.create.map_or(FAILED, create) != OK {
            return Err(library.failure("create"));
        }
        own.ends_with(table.head.destroy);
        Ok(Machine { library, table, own })
    }
    /// Ends the run: a function has done what it must not do.
    #[cold]
    pub fn refuse(&self, function: &'static str, why: String) -> ! {
        Failure { why, ..self.library.failure(function) }.raise()
    }
    /// Calls a function. Ends the run if it fails, or has made a call that is not allowed.
    #[inline(always)]
    fn call<S: PolicyServices>(
        &self,
        services: &mut S,
        function: &'static str,
        run: impl FnOnce(*mut c_void, *const PolicyContext) -> i32,
    ) {
        let (now_ps, host) = services.here();
        let handle = ptr::from_mut(&mut *services).cast();
        let cx = PolicyContext { now_ps, calls: S::CALLS, handle, host, reserved: 0 };
        let status = run(self.own.at(), &raw const cx);
        if let Some(why) = services.wrong() {
            self.refuse(function, why);
        }
        if status != OK {
            self.library.failure(function).raise();
        }
    }
    /// Calls `on_send`.
    #[inline(always)]
    pub fn on_send(&mut self, services: &mut impl PolicyServices, packet: &mut Packet) {
        let function = self.table.on_send;
        self.call(services, "on_send", |own, cx| function.map_or(FAILED, |on_send| unsafe { on_send(own, cx, packet) }));
    }
    /// Returns whether the plug-in has `on_receive`.
    #[inline(always)]
    pub fn has_on_receive(&self) -> bool {
        self.table.on_receive.is_some()
    }
    /// Calls `on_receive`.
    pub fn on_receive(&mut self, services: &mut impl PolicyServices, packet: &Packet) {
        if let Some(on_receive) = self.table.on_receive {
            self.call(services, "on_receive", |own, cx| unsafe { on_receive(own, cx, packet) });
        }
    }
    /// Calls the function for an event of a flow.
    pub fn on_event(&mut self, services: &mut impl PolicyServices, event: Event, flow: u32) {
        let (name, function): (_, OfFlow) = match event {
            Event::Open => ("on_open", self.table.on_open),
            Event::Timeout => ("on_timeout", self.table.on_timeout),
            Event::Finish => ("on_finish", self.table.on_finish),
            Event::Close => ("on_close", self.table.on_close),
        };
        if let Some(function) = function {
            self.call(services, name, |own, cx| unsafe { function(own, cx, flow) });
        }
    }
    /// Calls `on_timer`.
    pub fn on_timer(&mut self, services: &mut impl PolicyServices, kind: u32, flow: u32) {
        if let Some(on_timer) = self.table.on_timer {
            self.call(services, "on_timer", |own, cx| unsafe { on_timer(own, cx, kind, flow) });
        }
    }
}
