//! What a run leaves behind: plain rows, ready to be written as tables.
//!
//! Times are picoseconds from the start of the run, sizes bytes, rates bit/s. Column names and descriptions of the files are in the
//! crate `tables`, which maps these rows one to one.

/// Everything that a run reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// All flows, by id, finished or not.
    pub flows: Vec<FlowRow>,
    /// All egress ports, by id, host NICs included.
    pub ports: Vec<PortRow>,
    /// Time series, by time, if the scenario asks for them.
    pub samples: Vec<SampleRow>,
    /// The packet trace, by time and port, if the scenario asks for it.
    pub packets: Vec<PacketRow>,
    /// Totals.
    pub counters: Counters,
    /// The run went to its end; false when it was stopped from outside.
    pub complete: bool,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// A fluid schedule gave it: there were no packets to count.
    pub ideal: bool,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// All flows have finished and their senders are done.
    #[default]
    Finished,
    /// The latest end that the scenario allows was reached.
    End,
    /// Stopped from outside.
    Stopped,
}

impl StopReason {
    /// The word in manifests.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Finished => "finished",
            StopReason::End => "end",
            StopReason::Stopped => "stopped",
        }
    }
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRow {
    /// Its row in the table of flows drawn before the run.
    pub flow_id: u32,
    /// Flows that belong together (an incast, a job).
    pub group_id: Option<u64>,
    /// Sending host, counted among hosts.
    pub src: u32,
    /// Receiving host, counted among hosts.
    pub dst: u32,
    /// The workload it comes from, by index.
    pub workload: u16,
    /// Application bytes.
    pub size_bytes: u64,
    /// Bytes on the wire of the first transmissions of its data: payload and one header per packet.
    pub size_wire_bytes: u64,
    /// When the application opened it.
    pub start_ps: u64,
    /// When its first packet began to be transmitted.
    pub first_tx_ps: Option<u64>,
    /// When its last payload byte reached the receiver.
    pub finish_ps: Option<u64>,
    /// Completion time of the flow alone: store and forward at line rate on its shortest path, no handshake, no pacing.
    pub ideal_fct_ps: u64,
    /// Rate of the slowest link on its shortest path.
    pub bottleneck_bps: u64,
    /// When it should have finished, if it has a deadline; from the start of the run.
    pub deadline_ps: Option<u64>,
    /// Its sender gave it up before it had finished.
    pub terminated: bool,
    /// Links on its shortest path.
    pub hops: u8,
    /// Packets that its sender handed to the NIC, control and retransmissions included.
    pub tx_packets: u64,
    /// Data packets of them that carried bytes sent before.
    pub retx_packets: u64,
    /// Packets of the flow, both directions, that queues dropped.
    pub drops: u64,
    /// Packets of the flow, both directions, lost to dead links or for want of any path.
    pub lost_link: u64,
    /// Packets of the flow, both directions, that arrived marked.
    pub marks: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast retransmits.
    pub fast_retransmits: u32,
    /// Data packets that reached the receiver after a later byte.
    pub reordered: u64,
}

impl FlowRow {
    /// What is known of a flow before it is run.
    pub(crate) fn of(flow: &proto::Flow) -> FlowRow {
        FlowRow {
            flow_id: flow.id.0,
            group_id: (flow.group != u64::MAX).then_some(flow.group),
            src: flow.src.0,
            dst: flow.dst.0,
            workload: flow.workload,
            size_bytes: flow.size_bytes,
            size_wire_bytes: flow.size_wire_bytes,
            start_ps: flow.start.0,
            deadline_ps: flow.deadline.map(|deadline| deadline.0),
            ..FlowRow::default()
        }
    }
    /// Flow completion time: from the start to the last payload byte at the receiver. `None` when unfinished.
    pub fn fct_ps(&self) -> Option<u64> {
        self.finish_ps.map(|finish| finish - self.start_ps)
    }
    /// Completion time over that of the flow alone; never below 1 for a flow that keeps to one path.
    pub fn slowdown(&self) -> Option<f64> {
        self.fct_ps().map(|fct| fct as f64 / self.ideal_fct_ps as f64)
    }
    /// Completion time over the time that the flow's wire bytes take at the bottleneck's rate (MERP, Eq. 2).
    pub fn expansion_ratio(&self) -> Option<f64> {
        let least_s = self.size_wire_bytes as f64 * 8.0 / self.bottleneck_bps as f64;
        self.fct_ps().map(|fct| fct as f64 * 1e-12 / least_s)
    }
    /// Whether it finished by its deadline; an unfinished flow has not. `None` without a deadline.
    pub fn deadline_met(&self) -> Option<bool> {
        self.deadline_ps.map(|deadline| self.finish_ps.is_some_and(|finish| finish <= deadline))
    }
}

/// One egress port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortRow {
    /// Its link.
    pub port_id: u32,
    /// The node it belongs to.
    pub node: u32,
    /// The node at the far end.
    pub peer: u32,
    /// The tier of its node: hosts 0, ToR switches 1, and so on up.
    pub tier: u8,
    /// Both ends by name: `tor0->root`.
    pub name: String,
    /// Line rate.
    pub rate_bps: u64,
    /// Packets transmitted.
    pub tx_packets: u64,
    /// Their bytes.
    pub tx_bytes: u64,
    /// Packets dropped by the queue.
    pub drops: u64,
    /// Their bytes.
    pub drop_bytes: u64,
    /// Packets lost with the link: they waited, were in transmission or on the wire when it went down, or came while it was.
    pub lost_link: u64,
    /// How long the link was down.
    pub down_ps: u64,
    /// Packets marked.
    pub marks: u64,
    /// Time spent transmitting.
    pub busy_ps: u64,
    /// Most bytes that waited, without the packet in transmission.
    pub max_queue_bytes: u64,
    /// Bytes waiting, averaged over the run.
    pub mean_queue_bytes: f64,
}

/// One value of a time series.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRow {
    /// When.
    pub time_ps: u64,
    /// The port (`port.*`) or the flow (`flow.*`).
    pub entity: u32,
    /// `port.queue_bytes`, `port.utilisation`, `flow.rate_bps` or `flow.cwnd_bytes`.
    pub metric: &'static str,
    /// The value, in the unit that the metric's name ends in; utilisation is a fraction.
    pub value: f64,
}

/// One packet at one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Start of transmission; for a dropped packet, when it fell.
    pub time_ps: u64,
    /// End of transmission; for a dropped packet, the same moment.
    pub end_ps: u64,
    /// The port.
    pub port_id: u32,
    /// The protocol's name of its kind: `data`, `ack`.
    pub kind: &'static str,
    /// The flow.
    pub flow_id: u32,
    /// Offset of its payload in the flow, or the cumulative acknowledgement.
    pub offset: u64,
    /// Bytes on the wire.
    pub size_bytes: u32,
    /// The queue dropped it, or it was lost with the link.
    pub dropped: bool,
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Events handled.
    pub events: u64,
    /// Packets moved over a link.
    pub hops: u64,
    /// Simulated time at the end.
    pub end_ps: u64,
    /// Packets that entered the network.
    pub sent_packets: u64,
    /// Packets that reached their host.
    pub delivered_packets: u64,
    /// Packets that queues dropped.
    pub dropped_packets: u64,
    /// Packets lost to dead links or for want of any path.
    pub lost_packets: u64,
    /// Folds every event of the run: equal runs have equal digests.
    pub digest: u64,
    /// Wire bytes of first transmissions over what the reference of the load could carry, if the workload has one.
    pub realised_load: Option<f64>,
}
