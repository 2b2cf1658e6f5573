//! The parts that the tables of all rooms have in common: their head, parameters, counters and
//! results. `include/flowloom.h` declares the same for C; a test compares sizes and offsets.
//!
//! Times are in picoseconds, sizes in bytes, rates in bit/s, fractions in parts per billion. All
//! structures consist of words of 64 bits, pointers, and pairs of words of 32 bits, so that they
//! have no padding.

use std::ffi::{c_char, c_void};

/// The version of the tables. A plug-in of another version is refused.
pub const VERSION: u32 = 1;

/// The name of the function that a plug-in exports, which returns the [`Head`] of its table.
pub const SYMBOL: &str = "flowloom_plugin";

/// Result of a function: done.
pub const OK: i32 = 0;
/// Result of a function: the plug-in has failed, and the point of the scenario ends with an error.
pub const FAILED: i32 = -1;

/// A time that does not exist: no deadline, no round-trip sample.
pub const NEVER: u64 = u64::MAX;

/// A flow when it opens.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its number in the run.
    pub number: u64,
    /// Application bytes; 0 unless the plug-in declares that it knows sizes.
    pub size: u64,
    /// When it opens.
    pub start_ps: u64,
    /// When it should have finished; [`NEVER`] without a deadline, and unless the plug-in declares
    /// that it knows deadlines.
    pub deadline_ps: u64,
}

/// The type of a parameter, and how its value is passed.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A whole number.
    Integer = 0,
    /// A number, passed as a `double`.
    Number = 1,
    /// A fraction like `0.8`, passed in parts per billion.
    Fraction = 2,
    /// A time like `10us`, passed in picoseconds.
    Time = 3,
    /// A size like `150KB`, passed in bytes.
    Size = 4,
    /// A rate like `10Gbps`, passed in bit/s.
    Rate = 5,
    /// `true` or `false`, passed as 1 or 0.
    Flag = 6,
}

/// A parameter that a scenario may set. Texts end with a zero byte.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its key in a scenario.
    pub name: *const c_char,
    /// Its default as a scenario writes it.
    pub default_text: *const c_char,
    /// The smallest value, or null.
    pub lowest: *const c_char,
    /// The largest value, or null.
    pub highest: *const c_char,
    /// Source of the default.
    pub source: *const c_char,
    /// A sentence that describes it.
    pub about: *const c_char,
    /// A [`Type`].
    pub kind: u32,
    /// Zero.
    pub reserved: u32,
}

/// A counter, which becomes a column of the tables. Texts end with a zero byte.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The name of the column, after the name of the transport.
    pub name: *const c_char,
    /// Its unit: `packets`, `B`.
    pub unit: *const c_char,
    /// A sentence that describes it.
    pub about: *const c_char,
}

/// The value of a parameter: a whole number, or the bits of a `double`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value(pub u64);

/// Bit of [`Head::knows`]: the size of a flow before its bytes are sent.
pub const KNOWS_SIZE: u32 = 1;
/// Bit of [`Head::knows`]: the deadline of a flow.
pub const KNOWS_DEADLINE: u32 = 2;

/// A packet. Times, the path and the route are set by the simulator.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When its last bit has reached this node.
    pub arrival_ps: u64,
    /// When it was handed to the NIC.
    pub sent_ps: u64,
    /// First payload byte within the flow, or the cumulative acknowledgment.
    pub offset: u64,
    /// The protocol's header.
    pub words: [u64; 2],
    /// The number of its flow.
    pub flow: u32,
    /// Priority number of rank-ordered queues: smaller goes first.
    pub rank: u32,
    /// Bytes on the wire, headers included.
    pub wire_len: u16,
    /// Application bytes.
    pub payload: u16,
    /// Reserved.
    pub path_tag: u16,
    /// Its kind: [`Packet::DATA`] and so on.
    pub kind: u8,
    /// Class of strict-priority queues: 0 is served first.
    pub prio: u8,
    /// [`Packet::ECT`] and so on.
    pub flags: u16,
    /// Reserved.
    pub route: [u8; 6],
}

impl Packet {
    /// Kind: application data.
    pub const DATA: u8 = 0;
    /// Kind: acknowledgment.
    pub const ACK: u8 = 1;
    /// Kind: opens a connection.
    pub const SYN: u8 = 2;
    /// Kind: answers a SYN.
    pub const SYNACK: u8 = 3;
    /// Kind: data whose payload a port has cut off.
    pub const TRIMMED: u8 = 8;
    /// The first of a transport's own kinds.
    pub const OWN: u8 = 16;
    /// The first of a policy's own kinds.
    pub const POLICY: u8 = 128;
    /// Flag: a queue may mark the packet instead of dropping it.
    pub const ECT: u16 = 0b10;
    /// Flags: a queue has marked the packet. Includes [`Packet::ECT`].
    pub const CE: u16 = 0b11;
    /// Flag, on an ACK: the receiver has seen a mark.
    pub const ECE: u16 = 1 << 2;
    /// Flag: the payload was sent before.
    pub const RETX: u16 = 1 << 4;
    /// Flag: the packet goes from the flow's destination to its source. Set by the simulator.
    pub const BACK: u16 = 1 << 6;
}

/// The block of bytes of a machine, in functions that do not change it.
pub type Own = *const c_void;
/// The block of bytes of a state.
pub type StateBytes = *mut c_void;
/// The function that fills the block of a machine, which belongs to an `A`. `values` has a value for each
/// parameter.
pub type Create<A> =
    Option<unsafe extern "C" fn(context: *const c_void, own: *mut c_void, about: *const A, values: *const Value) -> i32>;

/// The most structures that the functions of a room take.
pub const MOST_STRUCTURES: usize = 8;

/// The head of every table. The functions of the room follow it.
///
/// The simulator owns two kinds of blocks of bytes: one for each machine of the room (the controller
/// or transport of a host, the queue of a port), and one for each state that the machine keeps (that
/// of a flow). They are aligned to 16 bytes and filled with zeros before the function that creates
/// them, and may move between calls. The functions may be called on several threads at once, but for
/// one machine on one thread at a time. A function returns [`OK`] or [`FAILED`], unless its room
/// gives it other results.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// [`VERSION`].
    pub version: u32,
    /// The number of the room.
    pub room: u32,
    /// Size of the whole table.
    pub size: u32,
    /// Size of [`Parameter`].
    pub parameter_size: u32,
    /// Size of [`Counter`].
    pub counter_size: u32,
    /// What the plug-in knows of a flow in advance: a sum of [`KNOWS_SIZE`] and [`KNOWS_DEADLINE`].
    pub knows: u32,
    /// Sizes of the structures that the functions of the room take, followed by zeros.
    pub sizes: [u32; MOST_STRUCTURES],
    /// The name of the protocol.
    pub name: *const c_char,
    /// One line about it.
    pub summary: *const c_char,
    /// Paper or RFC.
    pub source: *const c_char,
    /// Its parameters.
    pub parameters: *const Parameter,
    /// Number of parameters.
    pub parameter_count: u64,
    /// Its counters.
    pub counters: *const Counter,
    /// Number of counters.
    pub counter_count: u64,
    /// Bytes of a machine.
    pub own_size: u64,
    /// Bytes of a state.
    pub state_size: u64,
    /// Passed to `create`.
    pub context: *const c_void,
    /// Ends a state.
    pub close: Option<unsafe extern "C" fn(StateBytes)>,
    /// Ends a machine.
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Returns why the last function on this thread has failed, or null.
    pub failure: Option<unsafe extern "C" fn() -> *const c_char>,
}

// Safety: a head is constant, and its functions may be called on any thread.
unsafe impl Sync for Head {}
unsafe impl Send for Head {}
// Safety: constants.
unsafe impl Sync for Parameter {}
unsafe impl Sync for Counter {}

/// The table of a room: a structure that begins with the [`Head`].
///
/// # Safety
///
/// The type is `repr(C)`, its first field is a [`Head`], and all zeros and pointers in it may be copied.
pub unsafe trait RoomTable: Copy + 'static {
    /// The number of the room.
    const ROOM: u32;
    /// The structures that its functions take: the names in C, after `flowloom_`, and their sizes.
    const STRUCTURES: &'static [(&'static str, usize)];
    /// Returns what is wrong with the functions and numbers of the room, as the end of a sentence.
    fn check(&self) -> Result<(), String>;
}

/// Returns the sizes of a room's structures, for [`Head::sizes`].
pub const fn sizes_of<T: RoomTable>() -> [u32; MOST_STRUCTURES] {
    let mut sizes = [0; MOST_STRUCTURES];
    let mut at = 0;
    while at < T::STRUCTURES.len() {
        sizes[at] = T::STRUCTURES[at].1 as u32;
        at += 1;
    }
    sizes
}
