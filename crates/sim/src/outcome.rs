//! The outcome of a run: plain rows, ready to be written as tables.
//!
//! Times are in picoseconds from the start of the run, sizes in bytes, rates in bit/s. Names and descriptions of the columns are in the
//! crate `tables`, which maps these rows one to one.

use crate::parallel::cut::Uncut;
use base::registry::Counter;
use base::{Dur, LinkId, Time};
use fabric::net::Net;
use proto::flow::Wait;

/// Everything that a run reports.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// All flows, by id, finished or not.
    pub flows: Vec<FlowRow>,
    /// All egress ports, by id, host NICs included.
    pub ports: Vec<PortRow>,
    /// Time series, by time, if the scenario asks for them.
    pub samples: Vec<SampleRow>,
    /// The tables of agents, by time, port and flow, if the scenario asks for them.
    pub agents: Vec<AgentRow>,
    /// The packet trace, by time and port, if the scenario asks for it.
    pub packets: Vec<PacketRow>,
    /// Totals.
    pub counters: Counters,
    /// Whether the run went to its end; false if it was stopped from outside.
    pub complete: bool,
    /// Why the run ended.
    pub stop_reason: StopReason,
    /// Switches that wait for each other for ever, if any were found.
    pub deadlock: Option<Deadlock>,
    /// The counters per flow of the system's entries, in the order of [`FlowRow::counts`].
    pub flow_counters: Vec<NamedCounter>,
    /// The counters per port of the system's entries, in the order of [`PortRow::counts`].
    pub port_counters: Vec<NamedCounter>,
    /// What moved the flows.
    pub engine: Engine,
    /// Threads that ran it; 0 of an ideal schedule and of the flow engine, which no thread can share.
    pub threads: u32,
    /// Why one thread ran all of it, if it was not to be so.
    pub uncut: Option<Uncut>,
}

/// What moved the flows of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The packet engine.
    #[default]
    Packet,
    /// The flow engine: fluids with max-min fair rates. There were no packets to count but those that switches made.
    Flow,
    /// An ideal schedule, which has finish times and nothing else.
    Ideal,
}

impl Engine {
    /// The word in manifests and tables.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Packet => "packet",
            Engine::Flow => "flow",
            Engine::Ideal => "ideal",
        }
    }
}

/// A counter of an entry of the system: a column of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCounter {
    /// The name of the entry: `homa`.
    pub entry: &'static str,
    /// The counter, as the entry's META describes it.
    pub counter: Counter,
}

impl NamedCounter {
    /// The name of the column: `homa.grants`.
    pub fn column(&self) -> String {
        format!("{}.{}", self.entry, self.counter.name)
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// All flows have finished and all senders have closed.
    #[default]
    Finished,
    /// The run reached the scenario's `end`.
    End,
    /// Stopped from outside.
    Stopped,
    /// Switches wait for each other for ever.
    Deadlock,
}

impl StopReason {
    /// The word in manifests.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Finished => "finished",
            StopReason::End => "end",
            StopReason::Stopped => "stopped",
            StopReason::Deadlock => "deadlock",
        }
    }
}

/// Switches that wait for each other for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// When it was noticed.
    pub at_ps: u64,
    /// Ports and classes, in order: each is held back by what waits at the next one, and the last by what waits at the first.
    pub cycle: Vec<(u32, u8)>,
    /// Ports and classes that never send again: those, and others that wait for them.
    pub stuck: u64,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRow {
    /// The flow's row in the table of flows drawn before the run.
    pub flow_id: u32,
    /// The number shared by flows that belong together (an incast, a job).
    pub group_id: Option<u64>,
    /// Sending host, counted among hosts.
    pub src: u32,
    /// Receiving host, counted among hosts.
    pub dst: u32,
    /// The flow's workload, by index.
    pub workload: u16,
    /// Whether it counts in metrics of flows and groups.
    pub measured: bool,
    /// Application bytes.
    pub size_bytes: u64,
    /// Bytes on the wire of the first transmissions of the flow's data: payload and one header per packet.
    pub size_wire_bytes: u64,
    /// When the application opened the flow; `None` if the flow waited for other flows and never started.
    pub start_ps: Option<u64>,
    /// The flows for whose ends the flow waited, if it did.
    pub wait: Option<Box<Wait>>,
    /// When the first data packet was handed to the NIC; `None` if none was.
    pub first_tx_ps: Option<u64>,
    /// When the last payload byte reached the receiver.
    pub finish_ps: Option<u64>,
    /// Completion time of the flow alone in the network: store and forward at line rate on a shortest path, no handshake, no pacing.
    pub ideal_fct_ps: u64,
    /// Rate of the slowest link on the flow's shortest path.
    pub bottleneck_bps: u64,
    /// The flow's deadline, if it has one, from the start of the run.
    pub deadline_ps: Option<u64>,
    /// Whether the sender gave the flow up before the last byte arrived.
    pub terminated: bool,
    /// Links on the flow's shortest path.
    pub hops: u8,
    /// Data packets that the sender handed to its NIC, retransmissions included, control packets not.
    pub tx_packets: u64,
    /// Data packets among `tx_packets` with bytes that had been sent before.
    pub retx_packets: u64,
    /// Data packets of the flow that queues dropped; control packets are not counted.
    pub drops: u64,
    /// Packets of the flow, data and control in both directions, lost at dead links or because a switch had no next hop.
    pub lost_link: u64,
    /// Packets of the flow, data and control in both directions, that arrived marked.
    pub marks: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast retransmissions.
    pub fast_retransmits: u32,
    /// Data packets that reached the receiver after a later byte of the flow.
    pub reordered: u64,
    /// Data packets that reached the receiver while bytes before theirs were missing.
    pub out_of_order: u64,
    /// How often such a packet came while none was waiting for missing bytes: a gap opened.
    pub gaps: u64,
    /// Over all gaps, the packets from the first one missing to the one that opened the gap.
    pub gap_packets: u64,
    /// The same of the first gap; 0 of a flow without gaps.
    pub first_gap_packets: u64,
    /// Payload bytes that reached the receiver in the measurement window; `None` if the run ended before the window began, and of ideals.
    pub window_delivered_bytes: Option<u64>,
    /// The counts of the flow, one per counter of [`Outcome::flow_counters`].
    pub counts: Vec<u64>,
}

impl FlowRow {
    /// A row with the data of a flow that is known before the run.
    pub(crate) fn of(flow: &proto::Flow, alone: &scenario::Unloaded) -> FlowRow {
        FlowRow {
            flow_id: flow.id.0,
            group_id: (flow.group != u64::MAX).then_some(flow.group),
            src: flow.src.0,
            dst: flow.dst.0,
            workload: flow.workload,
            measured: flow.measured,
            size_bytes: flow.size_bytes,
            size_wire_bytes: flow.size_wire_bytes,
            start_ps: (flow.start != Time::MAX).then_some(flow.start.0),
            wait: flow.wait.clone(),
            deadline_ps: flow.deadline.map(|deadline| deadline.0),
            ideal_fct_ps: alone.ideal_fct.0,
            bottleneck_bps: alone.bottleneck.0,
            hops: alone.hops,
            ..FlowRow::default()
        }
    }
    /// The mean out-of-order window: packets from the first one missing to the one that opens the gap. `None` without gaps.
    pub fn mean_gap_packets(&self) -> Option<f64> {
        (self.gaps > 0).then(|| self.gap_packets as f64 / self.gaps as f64)
    }
    /// Flow completion time: from the start to the last payload byte at the receiver. `None` when unfinished.
    pub fn fct_ps(&self) -> Option<u64> {
        Some(self.finish_ps? - self.start_ps?)
    }
    /// Payload over completion time, in bit/s. `None` when unfinished.
    pub fn goodput_bps(&self) -> Option<f64> {
        self.fct_ps().map(|fct| self.size_bytes as f64 * 8e12 / fct as f64)
    }
    /// Completion time over the ideal completion time; at least 1 for a flow that uses one path.
    pub fn slowdown(&self) -> Option<f64> {
        self.fct_ps().map(|fct| fct as f64 / self.ideal_fct_ps as f64)
    }
    /// Completion time over the time that the flow's wire bytes take at the bottleneck's rate (MERP, Eq. 2).
    pub fn expansion_ratio(&self) -> Option<f64> {
        let least_s = self.size_wire_bytes as f64 * 8.0 / self.bottleneck_bps as f64;
        self.fct_ps().map(|fct| fct as f64 * 1e-12 / least_s)
    }
    /// Whether the flow finished by its deadline; false for an unfinished flow. `None` without a deadline, or if the flow never started.
    pub fn deadline_met(&self) -> Option<bool> {
        self.start_ps?;
        self.deadline_ps.map(|deadline| self.finish_ps.is_some_and(|finish| finish <= deadline))
    }
}

/// One egress port.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortRow {
    /// The port's link.
    pub port_id: u32,
    /// The node that sends through the port.
    pub node: u32,
    /// The node at the far end.
    pub peer: u32,
    /// The tier of the node: hosts 0, ToR switches 1, and so on up.
    pub tier: u8,
    /// Both ends by name: `tor0->root`.
    pub name: String,
    /// Line rate.
    pub rate_bps: u64,
    /// Most bytes that may wait in its queue, in full packets where the limit counts packets; `None`: no limit.
    pub limit_bytes: Option<u64>,
    /// Waiting bytes above which the queue marks every packet that can be marked; `None`: it never marks.
    pub mark_bytes: Option<u64>,
    /// Packets transmitted, data and control.
    pub tx_packets: u64,
    /// Bytes of the packets transmitted.
    pub tx_bytes: u64,
    /// Packets dropped by the queue: the sum of the next four counts.
    pub drops: u64,
    /// Data packets dropped by the queue.
    pub data_drops: u64,
    /// Credits dropped by the queue.
    pub credit_drops: u64,
    /// Headers of trimmed packets dropped by the queue.
    pub trimmed_drops: u64,
    /// ACKs and other control packets dropped by the queue.
    pub control_drops: u64,
    /// Bytes of the packets dropped by the queue.
    pub drop_bytes: u64,
    /// Packets lost on the link: at random, or waiting, in transmission or on the wire when it went down, and sent while it was down.
    pub lost_link: u64,
    /// How long the link was down.
    pub down_ps: u64,
    /// Packets marked.
    pub marks: u64,
    /// Time spent transmitting.
    pub busy_ps: u64,
    /// Largest number of bytes that waited at one time; the packet in transmission is not counted.
    pub max_queue_bytes: u64,
    /// Bytes waiting, averaged over the run.
    pub mean_queue_bytes: f64,
    /// Time spent transmitting in the measurement window; `None` if the run ended before the window began.
    pub window_busy_ps: Option<u64>,
    /// Bytes waiting, averaged over the measurement window.
    pub window_mean_queue_bytes: Option<f64>,
    /// The counts of the port, one per counter of [`Outcome::port_counters`].
    pub counts: Vec<u64>,
}

impl PortRow {
    /// A row with what the network tells of a port, whose link was `down` for so long.
    pub(crate) fn of(net: &Net, id: LinkId, down: Dur) -> PortRow {
        let link = net.link(id);
        PortRow {
            port_id: id.0,
            node: link.from.0,
            peer: link.to.0,
            tier: net.node(link.from).tier,
            name: net.link_name(id),
            rate_bps: link.rate.0,
            down_ps: down.0,
            ..PortRow::default()
        }
    }
}

/// One value of a time series.
#[derive(Clone, Debug, PartialEq)]
pub struct SampleRow {
    /// Time of the sample.
    pub time_ps: u64,
    /// The port (`port.*`), the flow (`flow.*`) or the node (`switch.*`).
    pub entity: u32,
    /// `port.queue_bytes`, `port.utilisation`, `flow.rate_bps`, `flow.cwnd_bytes`, `flow.ssthresh_bytes`, `flow.srtt_s`,
    /// `switch.made_packets` or `switch.taken_packets`.
    pub metric: &'static str,
    /// The value, in the unit that the metric's name ends in; utilisation is a fraction.
    pub value: f64,
}

/// One value of a flow in the table of a port's agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRow {
    /// Time of the sample.
    pub time_ps: u64,
    /// The port.
    pub port_id: u32,
    /// The flow.
    pub flow_id: u32,
    /// What the value is, as the agent names it.
    pub column: &'static str,
    /// The value, in the unit that the column's name ends in.
    pub value: f64,
}

/// One packet at one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Start of transmission; of a dropped packet, when it was dropped.
    pub time_ps: u64,
    /// End of transmission; of a dropped packet, when it was dropped.
    pub end_ps: u64,
    /// The port.
    pub port_id: u32,
    /// The kind of packet, as the protocol names it: `data`, `ack`.
    pub kind: &'static str,
    /// The flow.
    pub flow_id: u32,
    /// Offset of the payload in the flow, or the cumulative acknowledgement.
    pub offset: u64,
    /// Bytes on the wire.
    pub size_bytes: u32,
    /// The priority class that the packet carries.
    pub class: u8,
    /// Whether the packet was dropped by the queue or lost on the link.
    pub dropped: bool,
}

/// The measurement window of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// Where it began.
    pub from_ps: u64,
    /// Where it ended.
    pub until_ps: u64,
    /// Payload bytes that reached receivers in it, each counted once.
    pub delivered_bytes: u64,
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
    /// Packets lost at dead links or because a switch had no next hop.
    pub lost_packets: u64,
    /// Hash of the final counts of every flow and port: equal runs have equal digests.
    pub digest: u64,
    /// Wire bytes of first transmissions as a share of the capacity to which the load refers; `None` without a load.
    pub realised_load: Option<f64>,
    /// The share that the scenario asks for.
    pub nominal_load: Option<f64>,
    /// Packets that switches (by the router) and hosts (by the policy) made of their own; `None` if the system makes none.
    pub made_packets: Option<u64>,
    /// Bytes of these packets.
    pub made_bytes: Option<u64>,
    /// How often the controller set the path of a flow; `None` without a controller.
    pub moves: Option<u64>,
    /// The measurement window; `None` if the run ended before the window began, and of ideals, which count nothing over time.
    pub window: Option<Measured>,
}
