//! The side of the simulator: a host of a plug-in, and the functions that it may call.

use super::{Context, Delivery, Endpoint, NOTHING, Sample, SeenFlow, TransportCalls, TransportTable};
use crate::abi::{FAILED, OK, Packet, Value};
use crate::block::Block;
use crate::library::{Failure, Library};
use std::ffi::c_void;
use std::ptr;

/// The functions of the simulator behind [`TransportCalls`]. They must not panic: a call that is not
/// allowed is recorded, returns `None`, and has no other effect.
pub trait Services: Sized {
    /// See [`TransportCalls::arm`].
    fn arm(&mut self, flow: u32, kind: u32, at_ps: u64) -> Option<()>;
    /// See [`TransportCalls::disarm`].
    fn disarm(&mut self, flow: u32, kind: u32) -> Option<()>;
    /// See [`TransportCalls::control`].
    fn control(&mut self, packet: &Packet) -> Option<()>;
    /// See [`TransportCalls::deliver`].
    fn deliver(&mut self, flow: u32, offset: u64, length: u64) -> Option<Delivery>;
    /// See [`TransportCalls::finished`].
    fn finished(&mut self, flow: u32) -> Option<bool>;
    /// See [`TransportCalls::close`].
    fn close(&mut self, flow: u32) -> Option<()>;
    /// See [`TransportCalls::terminate`].
    fn terminate(&mut self, flow: u32) -> Option<()>;
    /// See [`TransportCalls::timeout`].
    fn timeout(&mut self, flow: u32) -> Option<()>;
    /// See [`TransportCalls::fast_retransmit`].
    fn fast_retransmit(&mut self, flow: u32) -> Option<()>;
    /// See [`TransportCalls::count`].
    fn count(&mut self, flow: u32, counter: u32, more: u64) -> Option<()>;
    /// See [`TransportCalls::random`].
    fn random(&mut self) -> u64;
    /// See [`TransportCalls::view`].
    fn view(&mut self, flow: u32) -> Option<SeenFlow>;
    /// See [`TransportCalls::payload`].
    fn payload(&mut self, flow: u32, offset: u64) -> Option<u64>;
    /// See [`TransportCalls::state`]. Blocks do not move, and are not dropped while a function of the
    /// plug-in runs.
    fn state(&mut self, flow: u32) -> Option<&Block>;
    /// Returns the current time and this host.
    fn here(&self) -> (u64, u32);
    /// Takes the first call that was not allowed, if there is one.
    fn wrong(&mut self) -> Option<String>;

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

// Safety of the functions below: `handle` is the exclusive reference that `Machine::call` was given,
// and nothing else uses it while a function of the plug-in runs. The plug-in passes structures that
// live as long as the call.

fn status(done: Option<()>) -> i32 {
    done.map_or(FAILED, |()| OK)
}

unsafe extern "C" fn arm<S: Services>(handle: *mut c_void, flow: u32, kind: u32, at_ps: u64) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.arm(flow, kind, at_ps))
}
unsafe extern "C" fn disarm<S: Services>(handle: *mut c_void, flow: u32, kind: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.disarm(flow, kind))
}
unsafe extern "C" fn control<S: Services>(handle: *mut c_void, packet: *const Packet) -> i32 {
    status(unsafe { (*handle.cast::<S>()).control(&*packet) })
}
unsafe extern "C" fn deliver<S: Services>(handle: *mut c_void, flow: u32, offset: u64, length: u64, to: *mut Delivery) -> i32 {
    let delivery = unsafe { &mut *handle.cast::<S>() }.deliver(flow, offset, length);
    if !to.is_null() {
        unsafe { to.write(delivery.unwrap_or_default()) };
    }
    status(delivery.map(|_| ()))
}
unsafe extern "C" fn finished<S: Services>(handle: *mut c_void, flow: u32) -> i32 {
    unsafe { &mut *handle.cast::<S>() }.finished(flow).map_or(FAILED, i32::from)
}
unsafe extern "C" fn close<S: Services>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.close(flow))
}
unsafe extern "C" fn terminate<S: Services>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.terminate(flow))
}
unsafe extern "C" fn timeout<S: Services>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.timeout(flow))
}
unsafe extern "C" fn fast_retransmit<S: Services>(handle: *mut c_void, flow: u32) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.fast_retransmit(flow))
}
unsafe extern "C" fn count<S: Services>(handle: *mut c_void, flow: u32, counter: u32, more: u64) -> i32 {
    status(unsafe { &mut *handle.cast::<S>() }.count(flow, counter, more))
}
unsafe extern "C" fn random<S: Services>(handle: *mut c_void) -> u64 {
    unsafe { &mut *handle.cast::<S>() }.random()
}
unsafe extern "C" fn view<S: Services>(handle: *mut c_void, flow: u32, to: *mut SeenFlow) -> i32 {
    let view = unsafe { &mut *handle.cast::<S>() }.view(flow);
    status(view.map(|view| unsafe { to.write(view) }))
}
unsafe extern "C" fn payload<S: Services>(handle: *mut c_void, flow: u32, offset: u64) -> u64 {
    unsafe { &mut *handle.cast::<S>() }.payload(flow, offset).unwrap_or(0)
}
unsafe extern "C" fn state<S: Services>(handle: *mut c_void, flow: u32) -> *mut c_void {
    unsafe { &mut *handle.cast::<S>() }.state(flow).map_or(ptr::null_mut(), Block::at)
}

/// Creates the state of a flow at a host, filled with zeros.
pub fn new_state(table: &TransportTable) -> Block {
    let mut state = Block::new(table.head.state_size);
    state.ends_with(table.head.close);
    state
}

/// A host.
pub struct Machine {
    library: &'static Library,
    table: &'static TransportTable,
    own: Block,
}

// Safety of the calls below: the table was checked, and `own` was filled by `create` of the same
// plug-in.

impl Machine {
    /// Creates a host. There is a value for each parameter. The library must be a transport.
    pub fn new(library: &'static Library, endpoint: &Endpoint, values: &[Value]) -> Result<Machine, Failure> {
        assert_eq!(values.len(), library.parameters.len(), "a value for each parameter");
        let table = library.table::<TransportTable>().map_err(|why| library.wrong("create", why))?;
        let mut own = Block::new(table.head.own_size);
        let status = table
            .create
            .map_or(FAILED, |create| unsafe { create(table.head.context, own.at(), ptr::from_ref(endpoint), values.as_ptr()) });
        if status != OK {
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
    fn call<S: Services>(
        &self,
        services: &mut S,
        function: &'static str,
        run: impl FnOnce(*mut c_void, *const Context) -> i32,
    ) -> i32 {
        let (now_ps, host) = services.here();
        let handle = ptr::from_mut(&mut *services).cast();
        let cx = Context { now_ps, calls: S::CALLS, handle, host, reserved: 0 };
        let status = run(self.own.at(), &raw const cx);
        if let Some(why) = services.wrong() {
            self.refuse(function, why);
        }
        if status != OK && (status != NOTHING || function != "poll") {
            self.library.failure(function).raise();
        }
        status
    }
    /// Calls `on_flow`.
    pub fn on_flow(&mut self, services: &mut impl Services, flow: u32) {
        let function = self.table.on_flow;
        self.call(services, "on_flow", |own, cx| function.map_or(FAILED, |on_flow| unsafe { on_flow(own, cx, flow) }));
    }
    /// Calls `on_packet`.
    #[inline(always)]
    pub fn on_packet(&mut self, services: &mut impl Services, packet: &Packet) {
        let function = self.table.on_packet;
        self.call(services, "on_packet", |own, cx| function.map_or(FAILED, |on_packet| unsafe { on_packet(own, cx, packet) }));
    }
    /// Calls `on_timer`.
    pub fn on_timer(&mut self, services: &mut impl Services, kind: u32, flow: u32) {
        let function = self.table.on_timer;
        self.call(services, "on_timer", |own, cx| function.map_or(FAILED, |on_timer| unsafe { on_timer(own, cx, kind, flow) }));
    }
    /// Calls `poll`. Returns the packet.
    #[inline(always)]
    pub fn poll(&mut self, services: &mut impl Services) -> Option<Packet> {
        let mut packet = Packet::EMPTY;
        let function = self.table.poll;
        let status =
            self.call(services, "poll", |own, cx| function.map_or(FAILED, |poll| unsafe { poll(own, cx, &raw mut packet) }));
        (status == OK).then_some(packet)
    }
    /// Calls `give_up`.
    pub fn give_up(&mut self, services: &mut impl Services, flow: u32) {
        let function = self.table.give_up;
        self.call(services, "give_up", |own, cx| function.map_or(FAILED, |give_up| unsafe { give_up(own, cx, flow) }));
    }
    /// Calls `sample`. All values are 0 without it.
    pub fn sample(&self, state: Option<&Block>, flow: u32) -> Sample {
        let mut sample = Sample::default();
        if let Some(function) = self.table.sample {
            let state = state.map_or(ptr::null(), |block| block.at().cast_const());
            if unsafe { function(self.own.at(), state, flow, &raw mut sample) } != OK {
                self.library.failure("sample").raise();
            }
        }
        sample
    }
}
