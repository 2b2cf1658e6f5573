//! Room: policies. The table of functions, and the structures that they take.

pub mod author;
pub mod example;
pub mod machine;

use crate::abi::{Create, Head, Packet, RoomTable};
use crate::host::{Context, Endpoint, Sample, SeenFlow, check_uses};
use std::ffi::c_void;

pub use author::{Cx, Policy};

/// The number of the room.
pub const POLICY: u32 = 5;

/// The functions of the simulator that a policy may call while one of its functions runs. Each takes
/// the [`Context::handle`]. A call that is not allowed has no effect, and ends the run when the function
/// of the plug-in returns; it returns [`FAILED`](crate::abi::FAILED), 0 or null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PolicyCalls {
    /// Sets the deadline of a timer of a flow, or of the host with
    /// [`NO_FLOW`](crate::host::NO_FLOW); an earlier setting is replaced. The policy's timers are
    /// not those of the transport. Kinds are numbers below 4. A deadline in the past is due now; one
    /// that is 2^63 picoseconds or more never comes.
    pub arm: unsafe extern "C" fn(*mut c_void, flow: u32, kind: u32, at_ps: u64) -> i32,
    /// Clears the deadline of a timer.
    pub disarm: unsafe extern "C" fn(*mut c_void, flow: u32, kind: u32) -> i32,
    /// Gives up a flow with a deadline that this host sends, after the current function. Has no effect
    /// if the flow is not open.
    pub terminate: unsafe extern "C" fn(*mut c_void, flow: u32) -> i32,
    /// Returns 1 if all bytes of a flow that this host receives have arrived, and 0 otherwise.
    pub finished: unsafe extern "C" fn(*mut c_void, flow: u32) -> i32,
    /// Fills the transport's sample of a flow that this host sends: zeros if it is not open.
    pub sample: unsafe extern "C" fn(*mut c_void, flow: u32, *mut Sample) -> i32,
    /// Adds to a declared counter of a flow, at most 2^32 at a time.
    pub count: unsafe extern "C" fn(*mut c_void, flow: u32, counter: u32, more: u64) -> i32,
    /// Returns 64 random bits, which depend only on the seed of the run and the host.
    pub random: unsafe extern "C" fn(*mut c_void) -> u64,
    /// Describes a flow.
    pub view: unsafe extern "C" fn(*mut c_void, flow: u32, *mut SeenFlow) -> i32,
    /// Returns the state that this host has for a flow, [`Head::state_size`] bytes that are zero at
    /// the first call. It stays where it is until `on_close` has returned, at the host that sends the
    /// flow, and to the end of the run at the other host.
    pub state: unsafe extern "C" fn(*mut c_void, flow: u32) -> *mut c_void,
}

/// What a policy sees and may do while one of its functions runs. It must not be used afterwards.
pub type PolicyContext = Context<PolicyCalls>;

/// A function about a flow.
pub type OfFlow = Option<unsafe extern "C" fn(*mut c_void, *const PolicyContext, flow: u32) -> i32>;

/// The table of a policy. A machine of the room is the policy of a host. States are those of
/// [`PolicyCalls::state`]. The functions after `on_send` are optional.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PolicyTable {
    /// The common part.
    pub head: Head,
    /// What packets get: a sum of [`USES_MARKS`](crate::host::USES_MARKS),
    /// [`USES_CLASSES`](crate::host::USES_CLASSES) and [`USES_RANKS`](crate::host::USES_RANKS).
    pub uses: u32,
    /// Zero.
    pub reserved: u32,
    /// Fills the block of a host. `values` has a value for each parameter. Fails if the values
    /// contradict each other.
    pub create: Create<Endpoint>,
    /// The NIC takes a packet of this host: may set its class, its rank and ECT.
    pub on_send: Option<unsafe extern "C" fn(*mut c_void, *const PolicyContext, *mut Packet) -> i32>,
    /// A packet has reached this host, before the transport sees it.
    pub on_receive: Option<unsafe extern "C" fn(*mut c_void, *const PolicyContext, *const Packet) -> i32>,
    /// The application opens a flow at this host, before the transport opens it.
    pub on_open: OfFlow,
    /// The sender of a flow, at this host, counts a retransmission timeout.
    pub on_timeout: OfFlow,
    /// The last byte of a flow has arrived at this host.
    pub on_finish: OfFlow,
    /// A flow that this host sends is closed or was given up. Its timers and its state end after the
    /// call. Its packets in flight may still arrive and be answered.
    pub on_close: OfFlow,
    /// A timer is due. It is disarmed before the call.
    pub on_timer: Option<unsafe extern "C" fn(*mut c_void, *const PolicyContext, kind: u32, flow: u32) -> i32>,
}

// Safety: a table is constant, and its functions may be called on any thread.
unsafe impl Sync for PolicyTable {}
unsafe impl Send for PolicyTable {}

// Safety: `repr(C)`, and the head comes first.
unsafe impl RoomTable for PolicyTable {
    const ROOM: u32 = POLICY;
    const STRUCTURES: &'static [(&'static str, usize)] = &[
        ("endpoint", size_of::<Endpoint>()),
        ("seen_flow", size_of::<SeenFlow>()),
        ("packet", size_of::<Packet>()),
        ("sample", size_of::<Sample>()),
        ("policy_context", size_of::<PolicyContext>()),
        ("policy_calls", size_of::<PolicyCalls>()),
    ];
    fn check(&self) -> Result<(), String> {
        for (name, present) in [("create", self.create.is_some()), ("on_send", self.on_send.is_some())] {
            if !present {
                return Err(format!("it has no function `{name}`"));
            }
        }
        check_uses(self.uses)
    }
}
