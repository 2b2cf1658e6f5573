//! Room: queue disciplines. The table of functions, and the structures that they take.
//!
//! The simulator keeps the packets of a port, in up to [`MOST_QUEUES`] queues. The plug-in decides
//! whether an arriving packet is admitted, in which queue and at which rank it waits, and which queue
//! sends next.

pub mod author;
pub mod example;
pub mod machine;

use crate::abi::{Head, Packet, RoomTable, Value};
use std::ffi::c_void;

pub use author::{Calls, Qdisc, Verdict, Waiting};

/// The number of the room.
pub const QDISC: u32 = 3;

/// The most queues of a port.
pub const MOST_QUEUES: u32 = 64;

/// Result of `enqueue`: the packet is dropped.
pub const DROP: i32 = 2;
/// Result of `enqueue`: the packet of data loses its payload, and is admitted.
pub const TRIM: i32 = 3;
/// Result of `evict`: no packet is dropped.
pub const NONE: i32 = 4;
/// Result of `on_dequeue`: the packet is marked if it is ECN-capable.
pub const MARK: i32 = 5;

/// A limit that does not exist.
pub const UNLIMITED: u64 = u64::MAX;

/// The port of a discipline.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Line rate.
    pub rate_bps: u64,
    /// Largest packet on the wire.
    pub mtu: u64,
    /// Longest unloaded round trip of the network.
    pub max_rtt_ps: u64,
    /// Most packets that may wait; [`UNLIMITED`] without a limit in packets.
    pub limit_packets: u64,
    /// Most bytes that may wait; [`UNLIMITED`] without a limit in bytes.
    pub limit_bytes: u64,
    /// The number of its link.
    pub link: u64,
    /// Seed of the run. With the number of the link, it is the seed of the random numbers of a port.
    pub seed: u64,
    /// Not zero if the port is a host's NIC.
    pub host_port: u32,
    /// Zero.
    pub reserved: u32,
}

/// The packets in one queue of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Bytes that wait.
    pub bytes: u64,
    /// Packets that wait.
    pub packets: u32,
    /// Bytes of the first packet on the wire; 0 if the queue is empty.
    pub first: u32,
}

/// The packets that wait at a port.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct View {
    /// Packets in all queues.
    pub packets: u64,
    /// Bytes in all queues.
    pub bytes: u64,
    /// The queues: as many as the table says.
    pub queues: *const Queue,
}

/// Where an admitted packet waits.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Its rank in the queue: smaller ranks are sent first, equal ranks in the order of arrival.
    pub rank: u64,
    /// The number of the queue.
    pub queue: u32,
    /// With [`TRIM`]: the most bytes that stay on the wire.
    pub trim_to: u32,
    /// Not zero: the packet is marked if it is ECN-capable.
    pub mark: u32,
    /// Zero.
    pub reserved: u32,
}

/// The table of a queue discipline. A machine of the room is the discipline of a port; there are no
/// states. The functions after `enqueue` are optional.
///
/// Ports are served when the simulator needs to know about them: `now_ps` of a function is the time of
/// its cause, which may be earlier than the current event of the simulator, but never decreases for one
/// port. The view then has the packets that waited at that time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct QdiscTable {
    /// The common part.
    pub head: Head,
    /// Number of queues of a port: 1 to [`MOST_QUEUES`].
    pub queues: u32,
    /// Not zero if the discipline may mark packets. Otherwise its marks have no effect.
    pub marks: u32,
    /// Fills the block of a port's discipline. `values` has a value for each parameter. Fails if the
    /// values contradict each other.
    pub create:
        Option<unsafe extern "C" fn(context: *const c_void, own: *mut c_void, port: *const Port, values: *const Value) -> i32>,
    /// A packet arrives that does not start at once; `view` does not have it. Sets its place, and returns
    /// [`OK`](crate::abi::OK), [`TRIM`] or [`DROP`].
    pub enqueue: Option<
        unsafe extern "C" fn(own: *mut c_void, now_ps: u64, view: *const View, packet: *const Packet, place: *mut Place) -> i32,
    >,
    /// The port is free: sets the queue that sends its first packet. Without this function, it is the
    /// first queue that has packets.
    pub dequeue: Option<unsafe extern "C" fn(own: *mut c_void, now_ps: u64, view: *const View, queue: *mut u32) -> i32>,
    /// A packet was admitted. Sets the queue whose last packet is dropped, and is called again, or
    /// returns [`NONE`].
    pub evict: Option<unsafe extern "C" fn(own: *mut c_void, now_ps: u64, view: *const View, queue: *mut u32) -> i32>,
    /// A packet leaves its queue; `view` does not have it any more. Returns
    /// [`OK`](crate::abi::OK) or [`MARK`].
    pub on_dequeue: Option<unsafe extern "C" fn(own: *mut c_void, now_ps: u64, view: *const View, packet: *const Packet) -> i32>,
    /// A packet finds the port idle, and is sent without waiting.
    pub on_pass: Option<unsafe extern "C" fn(own: *mut c_void, now_ps: u64, packet: *const Packet) -> i32>,
    /// Returns the counters of a port: totals that never decrease.
    pub count: Option<unsafe extern "C" fn(own: *const c_void) -> *const u64>,
}

// Safety: a table is constant, and its functions may be called on any thread.
unsafe impl Sync for QdiscTable {}
unsafe impl Send for QdiscTable {}

// Safety: `repr(C)`, and the head comes first.
unsafe impl RoomTable for QdiscTable {
    const ROOM: u32 = QDISC;
    const STRUCTURES: &'static [(&'static str, usize)] = &[
        ("port", size_of::<Port>()),
        ("queue", size_of::<Queue>()),
        ("view", size_of::<View>()),
        ("place", size_of::<Place>()),
        ("packet", size_of::<Packet>()),
    ];
    fn check(&self) -> Result<(), String> {
        if self.enqueue.is_none() {
            return Err("it has no function `enqueue`".to_owned());
        }
        if self.create.is_none() && self.head.own_size > 0 {
            return Err("it has no function `create`, but a discipline of some size".to_owned());
        }
        if self.queues == 0 || self.queues > MOST_QUEUES {
            return Err(format!("its `queues` is {}: 1 to {MOST_QUEUES} are allowed", self.queues));
        }
        if self.head.counter_count > 0 && self.count.is_none() {
            return Err("it declares counters, but has no function `count`".to_owned());
        }
        if self.head.knows > 0 || self.head.state_size > 0 {
            return Err("a queue discipline has no flows: its `knows` and `state_size` must be 0".to_owned());
        }
        Ok(())
    }
}
