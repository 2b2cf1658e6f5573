//! Flows: the metadata of each flow, and the samples and counts of its sender.

use base::{Dur, FlowId, HostId, JoinId, Rate, Time};

/// The metadata of a flow, drawn before the run. Both ends and every switch may look it up by the
/// id in a packet. A protocol that must not know the size does not read it, and says so under
/// `Model:` in its file.
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
    /// When the application opens it; for a waiting flow, `Time::MAX` until the time is known.
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
    /// Number of switches on its shortest path.
    pub switches: u8,
    /// Whether the flow counts in metrics of flows. It has no effect on the run.
    pub measured: bool,
    /// What the flow waits for, if its start depends on the ends of other flows.
    pub wait: Option<Box<Wait>>,
}

/// The conditions under which the application opens a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The flows that must have ended, each with the time from its end to the start. A flow ends at
    /// its receiver with its last byte, or at its sender when the sender gives it up. Between two
    /// hosts the time is at least the unloaded latency of a bare header.
    pub on: Vec<(FlowId, Dur)>,
    /// The joins of the flow's source that must have happened, each with the time from the join to
    /// the start. There is at least one flow or join.
    pub joins: Vec<(JoinId, Dur)>,
    /// Earliest start of the flow.
    pub not_before: Time,
    /// Time after the start of one of these flows at which its receiver gives up on it: the flow
    /// then counts as ended, but continues.
    pub give_up_after: Option<Dur>,
    /// Time from the start to the deadline, if the flow has a deadline.
    pub allowed: Option<Dur>,
}

impl Wait {
    /// Creates the wait of a flow that starts `delay` after the last end of these flows.
    pub fn new(on: &[FlowId], delay: Dur) -> Wait {
        let on = on.iter().map(|flow| (*flow, delay)).collect();
        Wait { on, joins: Vec::new(), not_before: Time::ZERO, give_up_after: None, allowed: None }
    }
}

/// A moment of a host at which several flows have ended, each plus a delay. Flows and other joins of
/// the host may wait for it, so that long lists of ends are not repeated.
///
/// A wait for a join has the effect of a wait for each of its ends, and for each end of its joins,
/// with the sum of the delays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// The host. Only its flows and its joins may wait for the join.
    pub host: HostId,
    /// The flows that must have ended, each with a delay.
    pub on: Vec<(FlowId, Dur)>,
    /// Joins of the same host that must have happened, each with a delay. They have lower ids.
    pub joins: Vec<(JoinId, Dur)>,
}

/// The time of a join, or of the end of a flow for a host.
///
/// Delays begin with the end, not when the host learns of the end. Therefore there are two times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinTime {
    /// The latest of the ends, each plus its delays.
    pub at: Time,
    /// The time at which the host has learned of all ends.
    pub known: Time,
}

impl JoinTime {
    /// Returns the start of a flow of the host that waits for the join for `delay`.
    pub fn after(self, delay: Dur) -> Time {
        self.at.after(delay).max(self.known)
    }
    /// Returns the time of a join that also waits for another end or join for `delay`.
    pub fn and(self, other: JoinTime, delay: Dur) -> JoinTime {
        JoinTime { at: self.at.max(other.at.after(delay)), known: self.known.max(other.known) }
    }
}

impl Flow {
    /// Returns the source and the destination of the flow's packets; with `back`, of those in the
    /// reverse direction.
    #[inline]
    pub fn ends(&self, back: bool) -> (HostId, HostId) {
        if back { (self.dst, self.src) } else { (self.src, self.dst) }
    }
    /// Returns the wire bytes of `payload` bytes in packets of at most `mss` payload and `header`
    /// header bytes.
    pub fn wire_bytes(payload: u64, mss: u64, header: u64) -> u64 {
        payload + payload.div_ceil(mss) * header
    }
}

/// The counts of a flow at its sender, up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowStats {
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast retransmits.
    pub fast_retransmits: u32,
}

/// The state of an open flow at its sender, for time series and policies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Congestion window in bytes; zero if the protocol has none.
    pub cwnd_bytes: u64,
    /// Slow-start threshold in bytes; zero if the protocol has none.
    pub ssthresh_bytes: u64,
    /// Smoothed round trip; zero before the first sample and if the protocol measures none
    /// (pFabric).
    pub srtt: Dur,
    /// Rate at which the flow may send data; zero while it is paused and if the protocol sets no
    /// rate.
    pub rate: Rate,
    /// Payload bytes that are sent and not acknowledged, without those that count as lost.
    pub in_flight_bytes: u64,
}
