//! Plug-ins at hosts: what the rooms of transports and policies share.

pub mod author;
pub mod machine;

use std::ffi::c_void;

/// The flow of a timer that belongs to the host.
pub const NO_FLOW: u32 = u32::MAX;

/// Bit of a table's `uses`: packets may be marked, so that ports mark unless the scenario says otherwise.
pub const USES_MARKS: u32 = 1;
/// Bit of a table's `uses`: packets have classes, so that ports serve classes in strict order unless the
/// scenario says otherwise.
pub const USES_CLASSES: u32 = 2;
/// Bit of a table's `uses`: packets have ranks.
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

/// What a plug-in at a host sees and may do while one of its functions runs, with the functions `C` of
/// its room. It must not be used afterwards.
#[repr(C)]
#[derive(Debug)]
pub struct Context<C> {
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

/// Returns what is wrong with the sum `uses` of a table.
pub(crate) fn check_uses(uses: u32) -> Result<(), String> {
    if uses > USES_MARKS | USES_CLASSES | USES_RANKS {
        return Err(format!("its `uses` is {uses}: a sum of {USES_MARKS}, {USES_CLASSES} and {USES_RANKS} is allowed"));
    }
    Ok(())
}
