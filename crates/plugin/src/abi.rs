//! The table of functions that a plug-in exports, and the structures that its functions take.
//! `include/flowloom.h` declares the same for C; a test compares sizes and offsets.
//!
//! Times are in picoseconds, sizes in bytes, rates in bit/s, fractions in parts per billion. All
//! structures consist of words of 64 bits, pointers, and pairs of words of 32 bits, so that they
//! have no padding.

use std::ffi::{c_char, c_void};

/// The version of this table. A plug-in of another version is refused.
pub const VERSION: u32 = 1;

/// The name of the function that a plug-in exports, which returns its table.
pub const SYMBOL: &str = "flowloom_plugin";

/// The number of a room: congestion control on the TCP machine.
pub const CONGESTION: u32 = 1;

/// Result of a function: done.
pub const OK: i32 = 0;
/// Result of `on_mark`: the mark has no effect, and `on_ack` is to be called.
pub const NO_EFFECT: i32 = 1;
/// Result of a function: the plug-in has failed, and the point of the scenario ends with an error.
pub const FAILED: i32 = -1;

/// A time that does not exist: no deadline, no round-trip sample.
pub const NEVER: u64 = u64::MAX;

/// The configuration of a host.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// SMSS: payload of a full segment.
    pub smss: u64,
    /// Header of every packet.
    pub header: u64,
    /// Initial window in bytes.
    pub init_window: u64,
    /// Largest rate of one flow: the rate of the host's NIC.
    pub nic_rate_bps: u64,
    /// Longest unloaded round trip of the network.
    pub max_rtt_ps: u64,
}

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

/// The window of a flow, in bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window.
    pub cwnd: u64,
    /// Slow-start threshold; `u64::MAX` before the first loss.
    pub ssthresh: u64,
}

/// An acknowledgment of new data.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The current time.
    pub now_ps: u64,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// Bytes that slow start adds to the window for them.
    pub slow_start: u64,
    /// The first byte not yet acknowledged.
    pub snd_una: u64,
    /// The next byte to send.
    pub snd_nxt: u64,
    /// Smoothed round trip, this ACK's sample included.
    pub srtt_ps: u64,
    /// The round-trip sample of this ACK; [`NEVER`] if it gives none.
    pub rtt_ps: u64,
    /// Time that the ACK has waited at this host.
    pub waited_ps: u64,
    /// Not zero if the ACK echoes a mark.
    pub ece: u32,
    /// Not zero if the window limits the sender, so that it may grow.
    pub window_limited: u32,
}

impl Ack {
    /// No acknowledgment.
    pub const NONE: Ack = Ack {
        now_ps: 0,
        acked: 0,
        slow_start: 0,
        snd_una: 0,
        snd_nxt: 0,
        srtt_ps: 0,
        rtt_ps: NEVER,
        waited_ps: 0,
        ece: 0,
        window_limited: 0,
    };
}

/// Cause of a loss: three duplicate ACKs.
pub const DUPLICATES: u32 = 0;
/// Cause of a loss: the retransmission timer.
pub const TIMEOUT: u32 = 1;

/// A loss.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// FlightSize: bytes sent and not acknowledged.
    pub flight: u64,
    /// How the loss was found: [`DUPLICATES`] or [`TIMEOUT`].
    pub cause: u32,
    /// Not zero if a mark has cut the window since the lost segment was sent.
    pub after_mark: u32,
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

/// Bit of [`Table::knows`]: the size of a flow before its bytes are sent.
pub const KNOWS_SIZE: u32 = 1;
/// Bit of [`Table::knows`]: the deadline of a flow.
pub const KNOWS_DEADLINE: u32 = 2;

/// The block of bytes of a host's controller, which does not change after `create`.
pub type Own = *const c_void;
/// The block of bytes of a flow.
pub type StateBytes = *mut c_void;

/// The table of a congestion controller on the TCP machine.
///
/// The functions may be called on several threads at once, but for one host on one thread at a
/// time. `own` and `state` are blocks that the simulator owns, aligned to 16 bytes and filled with
/// zeros before `create` and `open`. A function returns [`OK`] or [`FAILED`]. The functions after
/// `on_loss` are optional.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// [`VERSION`].
    pub version: u32,
    /// [`CONGESTION`].
    pub room: u32,
    /// Size of this structure.
    pub size: u32,
    /// Size of [`Parameter`].
    pub parameter_size: u32,
    /// Size of [`Counter`].
    pub counter_size: u32,
    /// Size of [`Host`].
    pub host_size: u32,
    /// Size of [`Flow`].
    pub flow_size: u32,
    /// Size of [`Window`].
    pub window_size: u32,
    /// Size of [`Ack`].
    pub ack_size: u32,
    /// Size of [`Loss`].
    pub loss_size: u32,
    /// How connections use ECN: 0 not, 1 as RFC 3168, 2 exactly, as RFC 8257.
    pub ecn: u32,
    /// What the controller knows of a flow in advance: a sum of [`KNOWS_SIZE`] and
    /// [`KNOWS_DEADLINE`].
    pub knows: u32,
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
    /// Bytes of the controller of a host.
    pub own_size: u64,
    /// Bytes of the state of a flow.
    pub state_size: u64,
    /// Passed to `create`.
    pub context: *const c_void,
    /// Fills the block of a host's controller. `values` has a value for each parameter. Fails if
    /// the values contradict each other.
    pub create:
        Option<unsafe extern "C" fn(context: *const c_void, own: *mut c_void, host: *const Host, values: *const Value) -> i32>,
    /// Fills the state of a flow that opens.
    pub open: Option<unsafe extern "C" fn(Own, StateBytes, *const Flow) -> i32>,
    /// Acknowledgment of new data outside recovery, unless a mark cuts the window: may change the
    /// window.
    pub on_ack: Option<unsafe extern "C" fn(Own, StateBytes, *mut Window, *const Ack) -> i32>,
    /// A segment is lost: sets the new slow-start threshold.
    pub on_loss: Option<unsafe extern "C" fn(Own, StateBytes, *const Window, *const Loss, ssthresh: *mut u64) -> i32>,
    /// The first mark since the data of the last cut was acknowledged: sets the new window, or
    /// returns [`NO_EFFECT`].
    pub on_mark: Option<unsafe extern "C" fn(Own, StateBytes, *const Window, *const Ack, cwnd: *mut u64) -> i32>,
    /// Every acknowledgment of new data, in recovery or not, before the functions above.
    pub on_feedback: Option<unsafe extern "C" fn(Own, StateBytes, *const Ack) -> i32>,
    /// Before `on_loss`, and when the timer expires again for the same segment.
    pub before_loss: Option<unsafe extern "C" fn(Own, StateBytes, cause: u32, now_ps: u64) -> i32>,
    /// A segment is handed to the NIC; `sent` bytes of the flow, the segment included, were sent at
    /// least once.
    pub on_sent: Option<unsafe extern "C" fn(Own, StateBytes, now_ps: u64, sent: u64) -> i32>,
    /// Sets the largest number of bytes in flight, independent of the window.
    pub most: Option<unsafe extern "C" fn(Own, *const c_void, most: *mut u64) -> i32>,
    /// Sets the earliest departure of the next segment.
    pub not_before: Option<unsafe extern "C" fn(Own, *const c_void, srtt_ps: u64, at_ps: *mut u64) -> i32>,
    /// The flow continues the connection of a flow that has ended with the state `before`.
    pub inherit: Option<unsafe extern "C" fn(Own, StateBytes, before: *const c_void) -> i32>,
    /// Returns the counters of a flow: totals that never decrease.
    pub count: Option<unsafe extern "C" fn(Own, *const c_void) -> *const u64>,
    /// Ends the state of a flow.
    pub close: Option<unsafe extern "C" fn(StateBytes)>,
    /// Ends the controller of a host.
    pub destroy: Option<unsafe extern "C" fn(*mut c_void)>,
    /// Returns why the last function on this thread has failed, or null.
    pub failure: Option<unsafe extern "C" fn() -> *const c_char>,
}

// Safety: a table is constant, and its functions may be called on any thread.
unsafe impl Sync for Table {}
unsafe impl Send for Table {}
// Safety: constants.
unsafe impl Sync for Parameter {}
unsafe impl Sync for Counter {}
