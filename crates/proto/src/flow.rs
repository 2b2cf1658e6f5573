//! Flows: the metadata of each flow, and what its ends report.

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
    /// When the application opens it; of a flow that waits: `Time::MAX` until that is known.
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
    /// Whether it counts in metrics of flows. Nothing that acts in a run reads this.
    pub measured: bool,
    /// What it waits for, if its start depends on the ends of other flows.
    pub wait: Option<Box<Wait>>,
}

/// What a flow waits for before its application opens it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The flows that must have ended, at least one, each with the time from its end to the start. A flow ends at its receiver with its last
    /// byte, or at its sender that gives it up. Between two hosts the time is at least the unloaded latency of a bare header.
    pub on: Vec<(FlowId, Dur)>,
    /// The flow starts no sooner.
    pub not_before: Time,
    /// From the start of one of these flows to the time at which its receiver gives up on it: such a flow counts as ended, and goes on.
    pub give_up_after: Option<Dur>,
    /// From the start to the deadline, if it has one.
    pub allowed: Option<Dur>,
}

impl Wait {
    /// A flow that starts a delay after the last end of these flows.
    pub fn new(on: &[FlowId], delay: Dur) -> Wait {
        Wait { on: on.iter().map(|flow| (*flow, delay)).collect(), not_before: Time::ZERO, give_up_after: None, allowed: None }
    }
}

impl Flow {
    /// Where packets come from and where they go: those from its source, or with `back` those that come back.
    #[inline]
    pub fn ends(&self, back: bool) -> (HostId, HostId) {
        if back { (self.dst, self.src) } else { (self.src, self.dst) }
    }
    /// Wire bytes of `payload` bytes in packets of at most `mss` payload and `header` header bytes.
    pub fn wire_bytes(payload: u64, mss: u64, header: u64) -> u64 {
        payload + payload.div_ceil(mss) * header
    }
}

/// What a sender counts of a flow, as it happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast retransmits.
    pub fast_retransmits: u32,
}

/// What a transport shows of an open flow that the host sends, for time series and policies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Congestion window in bytes, zero where there is none.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes, zero where there is none.
    pub ssthresh_bytes: u64,
    /// Smoothed round trip, zero before the first sample and where the protocol measures none (pFabric).
    pub srtt: Dur,
    /// Rate that the flow may send its data at, zero while it is paused and where the protocol sets no rate.
    pub rate: Rate,
    /// Bytes of payload sent and not acknowledged, without those that count as lost.
    pub in_flight_bytes: u64,
}
