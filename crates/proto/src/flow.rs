//! Flows: what is known of each before the run, and what both ends report of it.

use base::{Dur, FlowId, HostId, Rate, Time};

/// A flow as drawn before the run: its metadata, which both ends and every switch may look up by the id in a packet. A protocol
/// that must not know the size does not read it, and says so under `Model:` in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its row in the flow table.
    pub id: FlowId,
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Application bytes.
    pub size_bytes: u64,
    /// Bytes on the wire: payload and one header per packet.
    pub size_wire_bytes: u64,
    /// When the application opens it.
    pub start: Time,
    /// When it should have finished, if it has a deadline.
    pub deadline: Option<Time>,
    /// Flows that belong together (an incast, a job); `u64::MAX` for none.
    pub group: u64,
    /// The workload it comes from, by index.
    pub workload: u16,
    /// TCP source port, input to the ECMP hash.
    pub src_port: u16,
    /// Unloaded round trip on its shortest path: a full packet out, a bare header back.
    pub rtt: Dur,
    /// Rate of the slowest link on its shortest path.
    pub bottleneck: Rate,
}

impl Flow {
    /// Wire bytes of `payload` bytes in packets of at most `mss` payload and `header` header bytes.
    pub fn wire_bytes(payload: u64, mss: u64, header: u64) -> u64 {
        payload + payload.div_ceil(mss) * header
    }
}

/// What a sender reports of a flow when its own state is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast retransmits.
    pub fast_retransmits: u32,
}

/// What a transport shows of a flow for time series and policies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Congestion window in bytes, zero where there is none.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes, zero where there is none.
    pub ssthresh_bytes: u64,
    /// Smoothed round trip.
    pub srtt: Dur,
    /// Sending rate, zero where the window alone paces.
    pub rate: Rate,
    /// Bytes sent and not acknowledged.
    pub in_flight_bytes: u64,
}
