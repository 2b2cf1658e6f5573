//! The side of the author: makes the table of functions from an implementation of [`Congestion`].
//! A panic does not leave the plug-in: the function returns that it has failed.

use crate::abi::{
    self, Ack, CONGESTION, Counter, FAILED, Flow, Host, Loss, NO_EFFECT, OK, Parameter, Table, Type, VERSION, Value, Window,
};
use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A congestion controller on the TCP machine. One controller serves all flows of a host and keeps
/// a `State` for each. The machine handles recovery, timers, the handshake and ACKs: between a loss
/// and the end of recovery only the machine changes the window, and marks cut a window at most once.
pub trait Congestion: Sized + Send + Sync + 'static {
    /// The state of one flow.
    type State: Send + 'static;
    /// Its name, parameters and counters.
    const DECLARATION: Declaration;
    /// Creates the controller of a host. The error says which values contradict each other.
    fn create(host: &Host, values: Values<'_>) -> Result<Self, String>;
    /// Returns the state of a flow that opens now.
    fn open(&self, flow: &Flow) -> Self::State;
    /// Called when a flow continues the connection of an earlier flow to the same host, which has
    /// ended with the state `before`.
    fn inherit(&self, _state: &mut Self::State, _before: &Self::State) {}
    /// Called for every acknowledgment of new data, in recovery or not, before all other methods.
    fn on_feedback(&self, _state: &mut Self::State, _ack: &Ack) {}
    /// Called for an acknowledgment of new data outside recovery, unless a mark cuts the window:
    /// may change the window.
    fn on_ack(&self, state: &mut Self::State, window: &mut Window, ack: &Ack);
    /// Called when an ACK outside recovery echoes the first mark since the data of the last cut was
    /// acknowledged. Returns the new window in bytes; the slow-start threshold follows it. With
    /// `None` the mark has no effect, and [`Congestion::on_ack`] is called.
    fn on_mark(&self, _state: &mut Self::State, _window: &Window, _ack: &Ack) -> Option<u64> {
        None
    }
    /// Called before [`Congestion::on_loss`], and when the timer expires again for the same segment.
    fn before_loss(&self, _state: &mut Self::State, _cause: u32, _now_ps: u64) {}
    /// Called when a segment is found lost. Returns the new slow-start threshold in bytes.
    fn on_loss(&self, state: &mut Self::State, window: &Window, loss: &Loss) -> u64;
    /// Called when a segment is handed to the NIC. `sent` bytes of the flow, the segment included,
    /// were sent at least once.
    fn on_sent(&self, _state: &mut Self::State, _now_ps: u64, _sent: u64) {}
    /// Returns the largest number of bytes in flight, independent of the window.
    fn most(&self, _state: &Self::State) -> u64 {
        u64::MAX
    }
    /// Returns the earliest departure of the next segment.
    fn not_before(&self, _state: &Self::State, _srtt_ps: u64) -> u64 {
        0
    }
    /// Returns the totals of the declared counters, which never decrease.
    fn counters(_state: &Self::State) -> &[u64] {
        &[]
    }
}

/// The optional methods that the simulator calls: those that a controller implements. A method that
/// is not called costs nothing.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// [`Congestion::on_feedback`].
    pub on_feedback: bool,
    /// [`Congestion::on_mark`].
    pub on_mark: bool,
    /// [`Congestion::before_loss`].
    pub before_loss: bool,
    /// [`Congestion::on_sent`].
    pub on_sent: bool,
    /// [`Congestion::most`].
    pub most: bool,
    /// [`Congestion::not_before`].
    pub not_before: bool,
    /// [`Congestion::inherit`].
    pub inherit: bool,
}

impl Calls {
    /// All optional methods.
    pub const ALL: Calls =
        Calls { on_feedback: true, on_mark: true, before_loss: true, on_sent: true, most: true, not_before: true, inherit: true };
    /// No optional methods.
    pub const NONE: Calls = Calls {
        on_feedback: false,
        on_mark: false,
        before_loss: false,
        on_sent: false,
        most: false,
        not_before: false,
        inherit: false,
    };
}

/// What a plug-in declares.
#[derive(Clone, Copy, Debug)]
pub struct Declaration {
    /// The name of the protocol: lower case letters, digits and `_`.
    pub name: &'static CStr,
    /// One line about it.
    pub summary: &'static CStr,
    /// Paper or RFC.
    pub source: &'static CStr,
    /// How connections use ECN: 0 not, 1 as RFC 3168, 2 exactly, as RFC 8257.
    pub ecn: u32,
    /// What the controller knows of a flow in advance: [`abi::KNOWS_SIZE`], [`abi::KNOWS_DEADLINE`].
    pub knows: u32,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Its counters.
    pub counters: &'static [Counter],
    /// The optional methods to call.
    pub calls: Calls,
}

impl Declaration {
    /// Creates a declaration without parameters and counters, without ECN, with all calls.
    pub const fn new(name: &'static CStr, summary: &'static CStr) -> Declaration {
        Declaration { name, summary, source: c"a plug-in", ecn: 0, knows: 0, parameters: &[], counters: &[], calls: Calls::ALL }
    }
}

impl Parameter {
    /// Declares a parameter.
    pub const fn new(kind: Type, name: &'static CStr, default: &'static CStr, about: &'static CStr) -> Parameter {
        Parameter {
            name: name.as_ptr(),
            default_text: default.as_ptr(),
            lowest: std::ptr::null(),
            highest: std::ptr::null(),
            source: c"the plug-in".as_ptr(),
            about: about.as_ptr(),
            kind: kind as u32,
            reserved: 0,
        }
    }
    /// Sets the range.
    pub const fn range(mut self, lowest: &'static CStr, highest: &'static CStr) -> Parameter {
        (self.lowest, self.highest) = (lowest.as_ptr(), highest.as_ptr());
        self
    }
    /// Sets the source of the default.
    pub const fn source(mut self, source: &'static CStr) -> Parameter {
        self.source = source.as_ptr();
        self
    }
}

impl Counter {
    /// Declares a counter.
    pub const fn new(name: &'static CStr, unit: &'static CStr, about: &'static CStr) -> Counter {
        Counter { name: name.as_ptr(), unit: unit.as_ptr(), about: about.as_ptr() }
    }
}

/// The values of the parameters, in their order.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a>(pub &'a [Value]);

impl Values<'_> {
    /// Returns a whole number, fraction, time, size or rate. Panics if there is no such parameter.
    pub fn integer(&self, index: usize) -> u64 {
        self.0[index].0
    }
    /// Returns a number.
    pub fn number(&self, index: usize) -> f64 {
        f64::from_bits(self.0[index].0)
    }
    /// Returns a flag.
    pub fn flag(&self, index: usize) -> bool {
        self.0[index].0 != 0
    }
}

/// Exports the table of a controller under the name that the simulator looks for.
#[macro_export]
macro_rules! export {
    ($controller:ty) => {
        /// Returns the table of the plug-in.
        #[unsafe(no_mangle)]
        pub extern "C" fn flowloom_plugin() -> *const $crate::Table {
            static TABLE: $crate::Table = $crate::Table::of::<$controller>();
            &raw const TABLE
        }
    };
}

impl Table {
    /// Returns the table of a controller.
    pub const fn of<C: Congestion>() -> Table {
        const { assert!(align_of::<C>() <= 16 && align_of::<C::State>() <= 16, "blocks are aligned to 16 bytes") };
        let declared = C::DECLARATION;
        let calls = declared.calls;
        Table {
            version: VERSION,
            room: CONGESTION,
            size: size_of::<Table>() as u32,
            parameter_size: size_of::<Parameter>() as u32,
            counter_size: size_of::<Counter>() as u32,
            host_size: size_of::<Host>() as u32,
            flow_size: size_of::<Flow>() as u32,
            window_size: size_of::<Window>() as u32,
            ack_size: size_of::<Ack>() as u32,
            loss_size: size_of::<Loss>() as u32,
            ecn: declared.ecn,
            knows: declared.knows,
            name: declared.name.as_ptr(),
            summary: declared.summary.as_ptr(),
            source: declared.source.as_ptr(),
            parameters: declared.parameters.as_ptr(),
            parameter_count: declared.parameters.len() as u64,
            counters: declared.counters.as_ptr(),
            counter_count: declared.counters.len() as u64,
            own_size: size_of::<C>() as u64,
            state_size: size_of::<C::State>() as u64,
            context: std::ptr::null(),
            create: Some(create::<C>),
            open: Some(open::<C>),
            on_ack: Some(on_ack::<C>),
            on_loss: Some(on_loss::<C>),
            on_mark: if calls.on_mark { Some(on_mark::<C>) } else { None },
            on_feedback: if calls.on_feedback { Some(on_feedback::<C>) } else { None },
            before_loss: if calls.before_loss { Some(before_loss::<C>) } else { None },
            on_sent: if calls.on_sent { Some(on_sent::<C>) } else { None },
            most: if calls.most { Some(most::<C>) } else { None },
            not_before: if calls.not_before { Some(not_before::<C>) } else { None },
            inherit: if calls.inherit { Some(inherit::<C>) } else { None },
            count: if declared.counters.is_empty() { None } else { Some(count::<C>) },
            close: if std::mem::needs_drop::<C::State>() { Some(close::<C>) } else { None },
            destroy: if std::mem::needs_drop::<C>() { Some(destroy::<C>) } else { None },
            failure: Some(failure),
        }
    }
}

thread_local! {
    /// Why the last function on this thread has failed.
    static FAILURE: RefCell<CString> = RefCell::new(CString::default());
}

unsafe extern "C" fn failure() -> *const c_char {
    // The text lives until the next failure on this thread.
    FAILURE.with(|text| text.borrow().as_ptr())
}

fn fail(why: &str) -> i32 {
    let text = CString::new(why.replace('\0', " ")).unwrap_or_default();
    FAILURE.with(|known| *known.borrow_mut() = text);
    FAILED
}

fn words(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (None, Some(text)) => text,
        (None, None) => "a panic",
    }
}

/// Runs a function of the plug-in. A panic becomes a failure.
#[inline(always)]
fn guard(run: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| fail(words(&*panic)))
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have
// filled, and structures that live as long as the call.

unsafe extern "C" fn create<C: Congestion>(_: *const c_void, own: *mut c_void, host: *const Host, values: *const Value) -> i32 {
    guard(|| {
        let count = C::DECLARATION.parameters.len();
        let values = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(values, count) } };
        match C::create(unsafe { &*host }, Values(values)) {
            Ok(controller) => {
                unsafe { own.cast::<C>().write(controller) };
                OK
            }
            Err(why) => fail(&why),
        }
    })
}
unsafe extern "C" fn open<C: Congestion>(own: abi::Own, state: abi::StateBytes, flow: *const Flow) -> i32 {
    guard(|| unsafe {
        state.cast::<C::State>().write((*own.cast::<C>()).open(&*flow));
        OK
    })
}
unsafe extern "C" fn on_ack<C: Congestion>(own: abi::Own, state: abi::StateBytes, window: *mut Window, ack: *const Ack) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).on_ack(&mut *state.cast(), &mut *window, &*ack);
        OK
    })
}
unsafe extern "C" fn on_loss<C: Congestion>(
    own: abi::Own,
    state: abi::StateBytes,
    window: *const Window,
    loss: *const Loss,
    ssthresh: *mut u64,
) -> i32 {
    guard(|| unsafe {
        *ssthresh = (*own.cast::<C>()).on_loss(&mut *state.cast(), &*window, &*loss);
        OK
    })
}
unsafe extern "C" fn on_mark<C: Congestion>(
    own: abi::Own,
    state: abi::StateBytes,
    window: *const Window,
    ack: *const Ack,
    cwnd: *mut u64,
) -> i32 {
    guard(|| unsafe {
        match (*own.cast::<C>()).on_mark(&mut *state.cast(), &*window, &*ack) {
            Some(cut) => {
                *cwnd = cut;
                OK
            }
            None => NO_EFFECT,
        }
    })
}
unsafe extern "C" fn on_feedback<C: Congestion>(own: abi::Own, state: abi::StateBytes, ack: *const Ack) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).on_feedback(&mut *state.cast(), &*ack);
        OK
    })
}
unsafe extern "C" fn before_loss<C: Congestion>(own: abi::Own, state: abi::StateBytes, cause: u32, now_ps: u64) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).before_loss(&mut *state.cast(), cause, now_ps);
        OK
    })
}
unsafe extern "C" fn on_sent<C: Congestion>(own: abi::Own, state: abi::StateBytes, now_ps: u64, sent: u64) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).on_sent(&mut *state.cast(), now_ps, sent);
        OK
    })
}
unsafe extern "C" fn most<C: Congestion>(own: abi::Own, state: *const c_void, most: *mut u64) -> i32 {
    guard(|| unsafe {
        *most = (*own.cast::<C>()).most(&*state.cast());
        OK
    })
}
unsafe extern "C" fn not_before<C: Congestion>(own: abi::Own, state: *const c_void, srtt_ps: u64, at_ps: *mut u64) -> i32 {
    guard(|| unsafe {
        *at_ps = (*own.cast::<C>()).not_before(&*state.cast(), srtt_ps);
        OK
    })
}
unsafe extern "C" fn inherit<C: Congestion>(own: abi::Own, state: abi::StateBytes, before: *const c_void) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).inherit(&mut *state.cast(), &*before.cast());
        OK
    })
}
unsafe extern "C" fn count<C: Congestion>(_: abi::Own, state: *const c_void) -> *const u64 {
    let counters = C::counters(unsafe { &*state.cast() });
    if counters.len() < C::DECLARATION.counters.len() { std::ptr::null() } else { counters.as_ptr() }
}
unsafe extern "C" fn close<C: Congestion>(state: abi::StateBytes) {
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { state.cast::<C::State>().drop_in_place() }));
}
unsafe extern "C" fn destroy<C: Congestion>(own: *mut c_void) {
    let _ = catch_unwind(AssertUnwindSafe(|| unsafe { own.cast::<C>().drop_in_place() }));
}
