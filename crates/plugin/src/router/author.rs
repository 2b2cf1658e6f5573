//! The side of the author of a router: makes the table from an implementation of [`Router`].

use super::{Candidate, Hop, Network, RouterTable};
use crate::abi::{Head, OK, Own, Packet, StateBytes, Value};
use crate::author::{self, Declaration, Values, guard};
use std::ffi::c_void;
use std::slice::from_raw_parts;

/// A router. One router serves the network and keeps a `State` for each switch that decides.
pub trait Router: Sized + Send + Sync + 'static {
    /// The state of one switch.
    type State: Send + 'static;
    /// Its name and parameters.
    const DECLARATION: Declaration;
    /// Where it decides: [`AHEAD`](super::AHEAD), [`THERE`](super::THERE) or [`BOTH_WAYS`](super::BOTH_WAYS).
    const DECIDES: u32;
    /// Whether it reads the loads of ports.
    const LOADS: bool = false;
    /// The optional methods to call.
    const CALLS: Calls;
    /// Creates the router of a network. The error says which values contradict each other.
    fn create(network: &Network, values: Values<'_>) -> Result<Self, String>;
    /// Returns the state of a switch that decides for the first time.
    fn open(&self, node: u64) -> Self::State;
    /// Returns the index of the next hop for the path of a flow, which depends on the arguments only. There are
    /// at least two candidates, in rising order of links.
    fn choose(&self, _hop: &Hop, _candidates: &[Candidate]) -> u64 {
        0
    }
    /// Returns the index of the next hop of a packet. There are at least two candidates, in rising order of
    /// links.
    fn decide(&self, _state: &mut Self::State, _hop: &Hop, _packet: &Packet, _candidates: &[Candidate]) -> u64 {
        0
    }
}

/// The optional methods that the simulator calls: those that a router implements.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// [`Router::choose`].
    pub choose: bool,
    /// [`Router::decide`].
    pub decide: bool,
}

/// The type of the table.
pub type TableOf = RouterTable;

/// Returns the table of a router.
pub const fn table<R: Router>() -> RouterTable {
    let calls = R::CALLS;
    RouterTable {
        head: Head::of::<RouterTable, R, R::State>(R::DECLARATION),
        decides: R::DECIDES,
        loads: R::LOADS as u32,
        create: Some(create::<R>),
        choose: if calls.choose { Some(choose::<R>) } else { None },
        open: Some(open::<R>),
        decide: if calls.decide { Some(decide::<R>) } else { None },
    }
}

// Safety of the functions below: the simulator passes the blocks that `create` and `open` have filled,
// structures that live as long as the call, and `count` candidates.

unsafe extern "C" fn create<R: Router>(_: *const c_void, own: *mut c_void, network: *const Network, values: *const Value) -> i32 {
    unsafe { author::create(R::DECLARATION, own, values, |values| R::create(&*network, values)) }
}
unsafe extern "C" fn choose<R: Router>(own: Own, hop: *const Hop, first: *const Candidate, count: u64, index: *mut u64) -> i32 {
    guard(|| unsafe {
        *index = (*own.cast::<R>()).choose(&*hop, from_raw_parts(first, count as usize));
        OK
    })
}
unsafe extern "C" fn open<R: Router>(own: Own, state: StateBytes, node: u64) -> i32 {
    guard(|| unsafe {
        state.cast::<R::State>().write((*own.cast::<R>()).open(node));
        OK
    })
}
unsafe extern "C" fn decide<R: Router>(
    own: Own,
    state: StateBytes,
    hop: *const Hop,
    packet: *const Packet,
    first: *const Candidate,
    count: u64,
    index: *mut u64,
) -> i32 {
    guard(|| unsafe {
        let candidates = from_raw_parts(first, count as usize);
        *index = (*own.cast::<R>()).decide(&mut *state.cast(), &*hop, &*packet, candidates);
        OK
    })
}
