//! Room: transports. The table of functions, and the structures that they take.

pub mod author;
pub mod example;
pub mod machine;

use crate::abi::{Create, Head, Own, Packet, RoomTable};
use crate::host::{self, check_uses};
use std::ffi::c_void;

pub use crate::host::{Endpoint, NO_FLOW, Sample, SeenFlow, USES_CLASSES, USES_MARKS, USES_RANKS};
pub use author::{Cx, Transport};

/// The number of the room.
pub const TRANSPORT: u32 = 2;

/// Result of `poll`: there is no packet to send.
pub const NOTHING: i32 = 1;

/// The effect of the arrival of payload.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// All bytes below have arrived: the cumulative acknowledgment.
    pub next: u64,
    /// Bytes that had not arrived before.
    pub new_bytes: u64,
    /// The contiguous range of arrived bytes around them: its start.
    pub block_start: u64,
    /// Its end.
    pub block_end: u64,
}

/// The functions of the simulator that a transport may call while one of its functions runs. Each
/// takes the [`Context::handle`]. A call that is not allowed has no effect, and ends the run when the
/// function of the plug-in returns; it returns [`FAILED`](crate::abi::FAILED), 0 or null.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TransportCalls {
    /// Sets the deadline of a timer of a flow, or of the host with [`NO_FLOW`]; an earlier setting is
    /// replaced. Kinds are numbers below 4. A deadline in the past is due now; one that is 2^63
    /// picoseconds or more never comes.
    pub arm: unsafe extern "C" fn(*mut c_void, flow: u32, kind: u32, at_ps: u64) -> i32,
    /// Clears the deadline of a timer.
    pub disarm: unsafe extern "C" fn(*mut c_void, flow: u32, kind: u32) -> i32,
    /// Sends a packet before all packets of `poll`.
    pub control: unsafe extern "C" fn(*mut c_void, *const Packet) -> i32,
    /// Delivers payload to the application, while `on_packet` handles the packet of data that
    /// carries it.
    pub deliver: unsafe extern "C" fn(*mut c_void, flow: u32, offset: u64, length: u64, *mut Delivery) -> i32,
    /// Returns 1 if all bytes of a flow that this host receives have arrived, and 0 otherwise.
    pub finished: unsafe extern "C" fn(*mut c_void, flow: u32) -> i32,
    /// Ends the host's part of a flow: clears its timers and ends its state. At its sender the flow
    /// closes, and later packets of the flow are not passed to the plug-in.
    pub close: unsafe extern "C" fn(*mut c_void, flow: u32) -> i32,
    /// As `close`, for a flow with a deadline that its sender gives up.
    pub terminate: unsafe extern "C" fn(*mut c_void, flow: u32) -> i32,
    /// Counts a retransmission timeout of a flow that this host sends.
    pub timeout: unsafe extern "C" fn(*mut c_void, flow: u32) -> i32,
    /// Counts a fast retransmit of a flow that this host sends.
    pub fast_retransmit: unsafe extern "C" fn(*mut c_void, flow: u32) -> i32,
    /// Adds to a declared counter of a flow.
    pub count: unsafe extern "C" fn(*mut c_void, flow: u32, counter: u32, more: u64) -> i32,
    /// Returns 64 random bits, which depend only on the seed of the run and the host.
    pub random: unsafe extern "C" fn(*mut c_void) -> u64,
    /// Describes a flow.
    pub view: unsafe extern "C" fn(*mut c_void, flow: u32, *mut SeenFlow) -> i32,
    /// Returns the payload of the packet that begins at this byte of a flow that this host sends: a
    /// full packet, less at the end of the flow, and 0 from there on.
    pub payload: unsafe extern "C" fn(*mut c_void, flow: u32, offset: u64) -> u64,
    /// Returns the state that this host has for a flow, [`Head::state_size`] bytes that are zero at
    /// the first call. It stays where it is until the flow closes at this host.
    pub state: unsafe extern "C" fn(*mut c_void, flow: u32) -> *mut c_void,
}

/// What a transport sees and may do while one of its functions runs. It must not be used afterwards.
pub type Context = host::Context<TransportCalls>;

/// The table of a transport. A machine of the room is a host, with all its flows. States are those of
/// [`TransportCalls::state`]. The functions after `give_up` are optional.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct TransportTable {
    /// The common part.
    pub head: Head,
    /// What packets carry: a sum of [`USES_MARKS`], [`USES_CLASSES`] and [`USES_RANKS`].
    pub uses: u32,
    /// Zero.
    pub reserved: u32,
    /// Fills the block of a host. `values` has a value for each parameter. Fails if the values
    /// contradict each other.
    pub create: Create<Endpoint>,
    /// The application opens a flow at this host.
    pub on_flow: Option<unsafe extern "C" fn(*mut c_void, *const Context, flow: u32) -> i32>,
    /// A packet has reached this host.
    pub on_packet: Option<unsafe extern "C" fn(*mut c_void, *const Context, *const Packet) -> i32>,
    /// A timer is due. It is disarmed before the call.
    pub on_timer: Option<unsafe extern "C" fn(*mut c_void, *const Context, kind: u32, flow: u32) -> i32>,
    /// The NIC can take a packet: fills it, or returns [`NOTHING`]. Then it is called again after
    /// another function.
    pub poll: Option<unsafe extern "C" fn(*mut c_void, *const Context, *mut Packet) -> i32>,
    /// The host's policy gives up a flow that this host sends: the function forgets it. The flow closes
    /// after the call.
    pub give_up: Option<unsafe extern "C" fn(*mut c_void, *const Context, flow: u32) -> i32>,
    /// Fills the sample of an open flow that this host sends. `state` is null if the flow has none.
    pub sample: Option<unsafe extern "C" fn(Own, state: *const c_void, flow: u32, *mut Sample) -> i32>,
}

// Safety: a table is constant, and its functions may be called on any thread.
unsafe impl Sync for TransportTable {}
unsafe impl Send for TransportTable {}

// Safety: `repr(C)`, and the head comes first.
unsafe impl RoomTable for TransportTable {
    const ROOM: u32 = TRANSPORT;
    const STRUCTURES: &'static [(&'static str, usize)] = &[
        ("endpoint", size_of::<Endpoint>()),
        ("seen_flow", size_of::<SeenFlow>()),
        ("packet", size_of::<Packet>()),
        ("delivery", size_of::<Delivery>()),
        ("sample", size_of::<Sample>()),
        ("context", size_of::<Context>()),
        ("transport_calls", size_of::<TransportCalls>()),
    ];
    fn check(&self) -> Result<(), String> {
        let needed = [
            ("create", self.create.is_some()),
            ("on_flow", self.on_flow.is_some()),
            ("on_packet", self.on_packet.is_some()),
            ("on_timer", self.on_timer.is_some()),
            ("poll", self.poll.is_some()),
            ("give_up", self.give_up.is_some()),
        ];
        if let Some((name, _)) = needed.into_iter().find(|(_, present)| !present) {
            return Err(format!("it has no function `{name}`"));
        }
        check_uses(self.uses)
    }
}
