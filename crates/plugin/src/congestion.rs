//! Room: congestion control on the TCP machine. The table of functions, and the structures that they
//! take.

pub mod author;
pub mod controller;
pub mod example;

use crate::abi::{Flow, Head, Own, RoomTable, StateBytes, Value};
use std::ffi::c_void;

pub use author::{Calls, Congestion};

/// The number of the room.
pub const CONGESTION: u32 = 1;

/// Result of `on_mark`: the mark has no effect.
pub const NO_EFFECT: i32 = 1;

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
    /// Bytes that slow start adds to the window for them: at most one segment (RFC 5681 eq. 2), unless an option allows more.
    pub slow_start: u64,
    /// The first byte not yet acknowledged.
    pub snd_una: u64,
    /// The next byte to send.
    pub snd_nxt: u64,
    /// Smoothed round trip, this ACK's sample included.
    pub srtt_ps: u64,
    /// The round-trip sample of this ACK; [`NEVER`](crate::abi::NEVER) for a segment that was sent twice.
    pub rtt_ps: u64,
    /// Time between the arrival of the ACK at this host and now: longer than zero if the host has a receiver.
    pub waited_ps: u64,
    /// Whether the ACK echoes a mark; never without ECN.
    pub ece: bool,
    /// Whether the window limits the sender, so that it may grow.
    pub window_limited: bool,
    /// Whether `on_ack` may change the window: not in recovery, and not if `on_mark` follows.
    pub may_change: bool,
    /// Zero.
    pub reserved: [u8; 5],
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
        rtt_ps: crate::abi::NEVER,
        waited_ps: 0,
        ece: false,
        window_limited: false,
        may_change: false,
        reserved: [0; 5],
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
    /// Whether a mark has cut the window since the lost segment was sent.
    pub after_mark: bool,
    /// Zero.
    pub reserved: [u8; 3],
}

/// The table of a congestion controller on the TCP machine. A machine of the room is the controller of
/// a host; a state belongs to a flow. The functions after `on_loss` are optional.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct CongestionTable {
    /// The common part.
    pub head: Head,
    /// How connections use ECN: 0 not, 1 as RFC 3168, 2 exactly, as RFC 8257.
    pub ecn: u32,
    /// 1: it keeps nothing outside of its blocks, in variables of the program, and does not compute with addresses, so that the hosts of a
    /// part of a run may share an instance of WebAssembly; 0 otherwise.
    pub shares: u32,
    /// Fills the block of a host's controller. `values` has a value for each parameter. Fails if
    /// the values contradict each other.
    pub create:
        Option<unsafe extern "C" fn(context: *const c_void, own: *mut c_void, host: *const Host, values: *const Value) -> i32>,
    /// Fills the state of a flow that opens.
    pub open: Option<unsafe extern "C" fn(Own, StateBytes, *const Flow) -> i32>,
    /// Every acknowledgment of new data. If [`Ack::may_change`] is set, the function may change
    /// the window; other changes have no effect.
    pub on_ack: Option<unsafe extern "C" fn(Own, StateBytes, *mut Window, *const Ack) -> i32>,
    /// A segment is lost: sets the new slow-start threshold.
    pub on_loss: Option<unsafe extern "C" fn(Own, StateBytes, *const Window, *const Loss, ssthresh: *mut u64) -> i32>,
    /// The first mark since the data of the last cut was acknowledged, after `on_ack`: sets the new
    /// window, or returns [`NO_EFFECT`], and the window stays.
    pub on_mark: Option<unsafe extern "C" fn(Own, StateBytes, *const Window, *const Ack, cwnd: *mut u64) -> i32>,
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
}

// Safety: a table is constant, and its functions may be called on any thread.
unsafe impl Sync for CongestionTable {}
unsafe impl Send for CongestionTable {}

// Safety: `repr(C)`, and the head comes first.
unsafe impl RoomTable for CongestionTable {
    const ROOM: u32 = CONGESTION;
    const STRUCTURES: &'static [(&'static str, usize)] = &[
        ("host", size_of::<Host>()),
        ("flow", size_of::<Flow>()),
        ("window", size_of::<Window>()),
        ("ack", size_of::<Ack>()),
        ("loss", size_of::<Loss>()),
    ];
    fn check(&self) -> Result<(), String> {
        let needed = [("open", self.open.is_some()), ("on_ack", self.on_ack.is_some()), ("on_loss", self.on_loss.is_some())];
        if let Some((name, _)) = needed.into_iter().find(|(_, present)| !present) {
            return Err(format!("it has no function `{name}`"));
        }
        if self.create.is_none() && self.head.own_size > 0 {
            return Err("it has no function `create`, but a controller of some size".to_owned());
        }
        if self.ecn > 2 {
            return Err(format!("its `ecn` is {}: 0, 1 or 2 are allowed", self.ecn));
        }
        if self.shares > 1 {
            return Err(format!("its `shares` is {}: 0 or 1 are allowed", self.shares));
        }
        if self.head.counter_count > 0 && self.count.is_none() {
            return Err("it declares counters, but has no function `count`".to_owned());
        }
        Ok(())
    }
}
