//! The side of the author of a congestion controller: makes the table from an implementation of
//! [`Congestion`].

use super::{Ack, CongestionTable, Host, Loss, NO_EFFECT, Window};
use crate::abi::{Flow, Head, OK, Own, StateBytes, Value};
use crate::author::{self, Declaration, Values, guard};
use std::ffi::c_void;

/// A congestion controller on the TCP machine. One controller serves all flows of a host and keeps
/// a `State` for each. The machine handles recovery, timers, the handshake and ACKs: between a loss
/// and the end of recovery only the machine changes the window, and marks cut a window at most once.
pub trait Congestion: Sized + Send + Sync + 'static {
    /// The state of one flow.
    type State: Send + 'static;
    /// Its name, parameters and counters.
    const DECLARATION: Declaration;
    /// How its connections use ECN: 0 not, 1 as RFC 3168, 2 exactly, as RFC 8257.
    const ECN: u32 = 0;
    /// Whether it keeps nothing outside of its controllers and states, in variables of the program. The hosts of a part of a run then share
    /// an instance of WebAssembly, which is faster. If it does keep something there, results depend on the number of threads.
    const SHARES: bool = false;
    /// The optional methods to call.
    const CALLS: Calls = Calls::ALL;
    /// Creates the controller of a host. The error says which values contradict each other.
    fn create(host: &Host, values: Values<'_>) -> Result<Self, String>;
    /// Returns the state of a flow that opens now.
    fn open(&self, flow: &Flow) -> Self::State;
    /// Called when a flow continues the connection of an earlier flow to the same host, which has
    /// ended with the state `before`.
    fn inherit(&self, _state: &mut Self::State, _before: &Self::State) {}
    /// Called for every acknowledgment of new data, in recovery or not. If [`Ack::may_change`] is
    /// set, it may change the window; other changes have no effect.
    fn on_ack(&self, state: &mut Self::State, window: &mut Window, ack: &Ack);
    /// Called when an ACK outside recovery echoes the first mark since the data of the last cut was
    /// acknowledged, after [`Congestion::on_ack`]. Returns the new window in bytes; the slow-start
    /// threshold follows it. With `None` the mark has no effect.
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
    pub const ALL: Calls = Calls { on_mark: true, before_loss: true, on_sent: true, most: true, not_before: true, inherit: true };
    /// No optional methods.
    pub const NONE: Calls =
        Calls { on_mark: false, before_loss: false, on_sent: false, most: false, not_before: false, inherit: false };
}

/// The type of the table.
pub type TableOf = CongestionTable;

/// Returns the table of a controller.
pub const fn table<C: Congestion>() -> CongestionTable {
    let calls = C::CALLS;
    CongestionTable {
        head: Head::of::<CongestionTable, C, C::State>(C::DECLARATION),
        ecn: C::ECN,
        shares: C::SHARES as u32,
        create: Some(create::<C>),
        open: Some(open::<C>),
        on_ack: Some(on_ack::<C>),
        on_loss: Some(on_loss::<C>),
        on_mark: if calls.on_mark { Some(on_mark::<C>) } else { None },
        before_loss: if calls.before_loss { Some(before_loss::<C>) } else { None },
        on_sent: if calls.on_sent { Some(on_sent::<C>) } else { None },
        most: if calls.most { Some(most::<C>) } else { None },
        not_before: if calls.not_before { Some(not_before::<C>) } else { None },
        inherit: if calls.inherit { Some(inherit::<C>) } else { None },
        count: if C::DECLARATION.counters.is_empty() { None } else { Some(count::<C>) },
    }
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have
// filled, and structures that live as long as the call.

unsafe extern "C" fn create<C: Congestion>(_: *const c_void, own: *mut c_void, host: *const Host, values: *const Value) -> i32 {
    unsafe { author::create(C::DECLARATION, own, values, |values| C::create(&*host, values)) }
}
unsafe extern "C" fn open<C: Congestion>(own: Own, state: StateBytes, flow: *const Flow) -> i32 {
    guard(|| unsafe {
        state.cast::<C::State>().write((*own.cast::<C>()).open(&*flow));
        OK
    })
}
unsafe extern "C" fn on_ack<C: Congestion>(own: Own, state: StateBytes, window: *mut Window, ack: *const Ack) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).on_ack(&mut *state.cast(), &mut *window, &*ack);
        OK
    })
}
unsafe extern "C" fn on_loss<C: Congestion>(
    own: Own,
    state: StateBytes,
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
    own: Own,
    state: StateBytes,
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
unsafe extern "C" fn before_loss<C: Congestion>(own: Own, state: StateBytes, cause: u32, now_ps: u64) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).before_loss(&mut *state.cast(), cause, now_ps);
        OK
    })
}
unsafe extern "C" fn on_sent<C: Congestion>(own: Own, state: StateBytes, now_ps: u64, sent: u64) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).on_sent(&mut *state.cast(), now_ps, sent);
        OK
    })
}
unsafe extern "C" fn most<C: Congestion>(own: Own, state: *const c_void, most: *mut u64) -> i32 {
    guard(|| unsafe {
        *most = (*own.cast::<C>()).most(&*state.cast());
        OK
    })
}
unsafe extern "C" fn not_before<C: Congestion>(own: Own, state: *const c_void, srtt_ps: u64, at_ps: *mut u64) -> i32 {
    guard(|| unsafe {
        *at_ps = (*own.cast::<C>()).not_before(&*state.cast(), srtt_ps);
        OK
    })
}
unsafe extern "C" fn inherit<C: Congestion>(own: Own, state: StateBytes, before: *const c_void) -> i32 {
    guard(|| unsafe {
        (*own.cast::<C>()).inherit(&mut *state.cast(), &*before.cast());
        OK
    })
}
unsafe extern "C" fn count<C: Congestion>(_: Own, state: *const c_void) -> *const u64 {
    let counters = C::counters(unsafe { &*state.cast() });
    if counters.len() < C::DECLARATION.counters.len() { std::ptr::null() } else { counters.as_ptr() }
}
