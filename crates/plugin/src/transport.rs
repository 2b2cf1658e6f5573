//! Room: transports. The table of functions, and the structures that they take.

pub mod author;
pub mod example;
pub mod machine;

use crate::abi::{Head, Own, Packet, RoomTable, Value};
use std::ffi::c_void;

pub use author::{Cx, Transport};

/// The number of the room.
pub const TRANSPORT: u32 = 2;

/// The flow of a timer that belongs to the host.
pub const NO_FLOW: u32 = u32::MAX;

/// Result of `poll`: there is no packet to send.
pub const NOTHING: i32 = 1;

/// Bit of [`TransportTable::uses`]: packets may be marked, so that ports mark unless the scenario says
/// otherwise.
pub const USES_MARKS: u32 = 1;
/// Bit of [`TransportTable::uses`]: packets have classes, so that ports serve classes in strict order
/// unless the scenario says otherwise.
pub const USES_CLASSES: u32 = 2;
/// Bit of [`TransportTable::uses`]: packets have ranks.
pub const USES_RANKS: u32 = 4;

/// The configuration of a host and of its network.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Largest packet on the wire, headers included.
    pub mtu: u64,
    /// Header of every packet; also the size of a packet without payload.
    pub header: u64,
    /// Largest rate of one flow: the rate of the host's NIC.
    pub nic_rate_bps: u64,
    /// Largest rate at which the host sends or receives: the sum of the rates of its NICs.
    pub host_rate_bps: u64,
    /// Longest unloaded round trip of the network.
    pub max_rtt_ps: u64,
    /// Number of classes at the ports of switches; 8 if their queue discipline does not set it.
    pub classes: u64,
}

/// A flow and its ends.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenFlow {
    /// Its number in the run.
    pub number: u64,
    /// Application bytes; 0 unless the plug-in declares that it knows sizes.
    pub size: u64,
    /// When it opens.
    pub start_ps: u64,
    /// When it should have finished; [`NEVER`](crate::abi::NEVER) without a deadline, and unless the
    /// plug-in declares that it knows deadlines.
    pub deadline_ps: u64,
    /// The sending host.
    pub source: u32,
    /// The receiving host.
    pub destination: u32,
}

impl SeenFlow {
    /// No flow.
    pub const NONE: SeenFlow = SeenFlow { number: 0, size: 0, start_ps: 0, deadline_ps: 0, source: 0, destination: 0 };
}

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

/// The state of an open flow at its sender. Values that the protocol does not have are 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes.
    pub ssthresh: u64,
    /// Smoothed round trip.
    pub srtt_ps: u64,
    /// Rate at which the flow may send data.
    pub rate_bps: u64,
    /// Payload bytes that are sent and not acknowledged.
    pub in_flight: u64,
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

/// What a transport sees and may do while one of its functions runs, with the functions `C` that it may
/// call. It must not be used afterwards.
#[repr(C)]
#[derive(Debug)]
pub struct Context<C = TransportCalls> {
    /// The current time.
    pub now_ps: u64,
    /// The functions that it may call.
    pub calls: *const C,
    /// Passed to them.
    pub handle: *mut c_void,
    /// The number of this host.
    pub host: u32,
    /// Zero.
    pub reserved: u32,
}

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
    pub create: Option<
        unsafe extern "C" fn(context: *const c_void, own: *mut c_void, endpoint: *const Endpoint, values: *const Value) -> i32,
    >,
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
        let all = USES_MARKS | USES_CLASSES | USES_RANKS;
        if self.uses > all {
            return Err(format!("its `uses` is {}: a sum of {USES_MARKS}, {USES_CLASSES} and {USES_RANKS} is allowed", self.uses));
        }
        Ok(())
    }
}
