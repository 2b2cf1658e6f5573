//! The outcome of a run: plain rows, ready to be written as tables.
//!
//! Times are in picoseconds from the start of the run, sizes in bytes, rates in bit/s. The crate
//! `tables` writes one row of a table per row here; it has the names and descriptions of the columns.

use crate::order::EventOrder;
use crate::parallel::cut::Uncut;
use crate::tasks::{PartRow, TaskRow};
use base::registry::Counter;
use base::{Dur, LinkId, Time};
use fabric::net::Net;
use scenario::ChosenValue;

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
    /// The tasks of programs.
    pub tasks: Vec<TaskRow>,
    /// The parts of ranks in tasks.
    pub parts: Vec<PartRow>,
    /// Totals over the run.
    pub counters: Counters,
    /// Whether the run reached its end; false if the caller stopped it.
    pub complete: bool,
    /// Why the run ended.
    pub stop_reason: StopReason,
    /// The first deadlock of PFC that was found, if any.
    pub deadlock: Option<Deadlock>,
    /// The counters per flow of the system's entries, in the order of [`FlowRow::counts`].
    pub flow_counters: Vec<NamedCounter>,
    /// The counters per port of the system's entries, in the order of [`PortRow::counts`].
    pub port_counters: Vec<NamedCounter>,
    /// The engine that simulated the flows.
    pub engine: Engine,
    /// Threads that simulated the run; 0 for an ideal schedule and for the flow engine, which cannot be
    /// divided among threads.
    pub threads: u32,
    /// Why the run used one thread although several were allowed.
    pub uncut: Option<Uncut>,
    /// The order of events; `None` for an ideal schedule and for the flow engine, which have no packets.
    pub order: Option<EventOrder>,
    /// Why the run did not use windows although they were wanted.
    pub not_windows: Option<Uncut>,
    /// The values chosen for `auto` in the parameters of the transport and the policy; none for an ideal schedule and
    /// for the flow engine, which do not use them.
    pub chosen: Vec<ChosenValue>,
    /// The failures that touched no traffic, by time.
    pub untouched: Vec<Untouched>,
}

/// A failure that touched no traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untouched {
    /// The cable or node that went down.
    pub target: String,
    /// When it went down.
    pub from_ps: u64,
    /// When it came up again; `None` if it stayed down.
    pub until_ps: Option<u64>,
}

/// The engine that simulated the flows of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The packet engine.
    #[default]
    Packet,
    /// The flow engine: fluids with max-min fair rates. The only packets it counts are those that
    /// switches made.
    Flow,
    /// An ideal schedule, which has finish times only.
    Ideal,
}

impl Engine {
    /// Returns the word in manifests and tables.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Packet => "packet",
            Engine::Flow => "flow",
            Engine::Ideal => "ideal",
        }
    }
}

/// A counter of an entry of the system, which is a column of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedCounter {
    /// The name of the entry: `homa`.
    pub entry: &'static str,
    /// The counter, as the entry's META describes it.
    pub counter: Counter,
}

impl NamedCounter {
    /// Returns the name of the column: `homa.grants`.
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
    /// The caller stopped the run.
    Stopped,
    /// Switches pause each other and none of them can ever send again.
    Deadlock,
}

impl StopReason {
    /// Returns the word in manifests.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Finished => "finished",
            StopReason::End => "end",
            StopReason::Stopped => "stopped",
            StopReason::Deadlock => "deadlock",
        }
    }
}

/// A deadlock: switches that pause each other, so that none of them can ever send again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Time at which the search found the deadlock. Searches run at a period.
    pub at_ps: u64,
    /// Ports and classes of the circle, in order. Packets waiting at the next port keep a port paused;
    /// packets waiting at the first port keep the last one paused.
    pub cycle: Vec<(u32, u8)>,
    /// Number of ports and classes that never send again: those of the circle, and others that wait for
    /// them.
    pub stuck: u64,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRow {
    /// The flow's row in the table of flows drawn before the run.
    pub flow_id: u32,
    /// The number that flows of one group share (an incast, a job).
    pub group_id: Option<u64>,
    /// Sending host, counted among hosts.
    pub src: u32,
    /// Receiving host, counted among hosts.
    pub dst: u32,
    /// The flow's workload, by index.
    pub workload: u16,
    /// Whether the flow counts in metrics of flows and groups.
    pub measured: bool,
    /// Application bytes.
    pub size_bytes: u64,
    /// Bytes on the wire of the first transmissions of the flow's data: payload and one header per packet.
    pub size_wire_bytes: u64,
    /// Time at which the application opened the flow; `None` if the flow waited for other flows and never
    /// started.
    pub start_ps: Option<u64>,
    /// Whether the flow waited for the ends of other flows.
    pub waits: bool,
    /// Time at which the NIC took the first data packet; `None` if it took none.
    pub first_tx_ps: Option<u64>,
    /// Time at which the last payload byte reached the receiver; `None` for an unfinished flow.
    pub finish_ps: Option<u64>,
    /// Completion time of the flow in an otherwise unloaded network: store and forward at line rate on
    /// a shortest path, without handshake or pacing.
    pub ideal_fct_ps: u64,
    /// Rate of the slowest link on the flow's shortest path.
    pub bottleneck_bps: u64,
    /// The flow's deadline, measured from the start of the run, if it has one.
    pub deadline_ps: Option<u64>,
    /// Whether the sender gave the flow up before the last byte arrived.
    pub terminated: bool,
    /// Links on the flow's shortest path.
    pub hops: u8,
    /// Data packets that the sender handed to its NIC, including retransmissions. Control packets are
    /// not counted.
    pub tx_packets: u64,
    /// The data packets among `tx_packets` whose bytes had been sent before.
    pub retx_packets: u64,
    /// Data packets of the flow that queues dropped; control packets are not counted.
    pub drops: u64,
    /// Packets of the flow, data and control in both directions, lost on links (at random, or because
    /// the link was down) or because a switch had no next hop.
    pub lost_link: u64,
    /// Packets of the flow, data and control in both directions, that arrived with a CE mark.
    pub marks: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Fast retransmissions.
    pub fast_retransmits: u32,
    /// Data packets that reached the receiver after a later byte of the flow.
    pub reordered: u64,
    /// Data packets that reached the receiver while earlier bytes of the flow were missing.
    pub out_of_order: u64,
    /// Gaps: how often an out-of-order packet arrived while no other packet was waiting for missing
    /// bytes.
    pub gaps: u64,
    /// Sum over all gaps of the packets from the first missing packet to the packet that opened the gap.
    pub gap_packets: u64,
    /// The packets of the first gap, counted in the same way; 0 for a flow without gaps.
    pub first_gap_packets: u64,
    /// Payload bytes that reached the receiver in the measurement window; `None` for ideal schedules, and
    /// if the run ended before the window began.
    pub window_delivered_bytes: Option<u64>,
    /// The flow's counts, one per counter of [`Outcome::flow_counters`].
    pub counts: Vec<u64>,
}

impl FlowRow {
    /// Returns a row with the data of a flow that are known before the run.
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
            waits: flow.wait.is_some(),
            deadline_ps: flow.deadline.map(|deadline| deadline.0),
            ideal_fct_ps: alone.ideal_fct.0,
            bottleneck_bps: alone.bottleneck.0,
            hops: alone.hops,
            ..FlowRow::default()
        }
    }
    /// Returns the mean out-of-order window: the packets from the first missing packet to the packet
    /// that opens the gap, averaged over gaps. `None` without gaps.
    pub fn mean_gap_packets(&self) -> Option<f64> {
        (self.gaps > 0).then(|| self.gap_packets as f64 / self.gaps as f64)
    }
    /// Returns the flow completion time: from the start to the arrival of the last payload byte at the
    /// receiver. `None` for an unfinished flow.
    pub fn fct_ps(&self) -> Option<u64> {
        Some(self.finish_ps? - self.start_ps?)
    }
    /// Returns payload divided by completion time, in bit/s. `None` for an unfinished flow.
    pub fn goodput_bps(&self) -> Option<f64> {
        self.fct_ps().map(|fct| self.size_bytes as f64 * 8e12 / fct as f64)
    }
    /// Returns completion time divided by ideal completion time; at least 1 for a flow that uses one
    /// path. `None` for an unfinished flow.
    pub fn slowdown(&self) -> Option<f64> {
        self.fct_ps().map(|fct| fct as f64 / self.ideal_fct_ps as f64)
    }
    /// Returns completion time divided by the time that the flow's wire bytes take at the bottleneck's
    /// rate (MERP, Eq. 2). `None` for an unfinished flow.
    pub fn expansion_ratio(&self) -> Option<f64> {
        let least_s = self.size_wire_bytes as f64 * 8.0 / self.bottleneck_bps as f64;
        self.fct_ps().map(|fct| fct as f64 * 1e-12 / least_s)
    }
    /// Returns whether the flow finished by its deadline; false for an unfinished flow. `None` without a
    /// deadline, or if the flow never started.
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
    /// The tier of the node: 0 for hosts, 1 for ToR switches, and so on.
    pub tier: u8,
    /// The names of both ends: `tor0->root`.
    pub name: String,
    /// Line rate.
    pub rate_bps: u64,
    /// Maximum bytes that may wait in the port's queue. A limit in packets is converted with full
    /// packets. `None`: no limit.
    pub limit_bytes: Option<u64>,
    /// Waiting bytes above which the queue marks every packet that can be marked; `None` if the queue
    /// has no such threshold.
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
    /// Packets lost on the link: at random; when the link went down, if they were waiting, in
    /// transmission or on the wire; and those sent while the link was down.
    pub lost_link: u64,
    /// Time for which the link was down.
    pub down_ps: u64,
    /// Packets that the port marked.
    pub marks: u64,
    /// Time spent transmitting.
    pub busy_ps: u64,
    /// Maximum bytes that waited at one time; the packet in transmission is not counted.
    pub max_queue_bytes: u64,
    /// Bytes waiting, averaged over the run.
    pub mean_queue_bytes: f64,
    /// Time spent transmitting in the measurement window; `None` if the run ended before the window began.
    pub window_busy_ps: Option<u64>,
    /// Bytes waiting, averaged over the measurement window; `None` if the run ended before the window began.
    pub window_mean_queue_bytes: Option<f64>,
    /// The port's counts, one per counter of [`Outcome::port_counters`].
    pub counts: Vec<u64>,
}

impl PortRow {
    /// Returns a row with the data of a port that are known before the run, and the time for which its
    /// link was down.
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
    /// The agent's name for the value.
    pub column: &'static str,
    /// The value, in the unit that the column's name ends in.
    pub value: f64,
}

/// One packet at one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketRow {
    /// Start of transmission; for a dropped packet, the time of the drop.
    pub time_ps: u64,
    /// End of transmission; for a dropped packet, the time of the drop.
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
    /// Time at which the window began.
    pub from_ps: u64,
    /// Time at which the window ended.
    pub until_ps: u64,
    /// Payload bytes that reached receivers in the window, each byte counted once.
    pub delivered_bytes: u64,
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counters {
    /// Events handled.
    pub events: u64,
    /// Transmissions of packets over links.
    pub hops: u64,
    /// Simulated time at the end.
    pub end_ps: u64,
    /// Packets that entered the network.
    pub sent_packets: u64,
    /// Packets that reached their host.
    pub delivered_packets: u64,
    /// Packets that queues dropped.
    pub dropped_packets: u64,
    /// Packets lost on links (at random, or because the link was down) or because a switch had no next
    /// hop.
    pub lost_packets: u64,
    /// The packets among `lost_packets` that were lost at a switch because it had no next hop for them, by switch. Ports do not
    /// count them.
    pub no_next_hop: Vec<(String, u64)>,
    /// The packets among `lost_packets` that belong to no flow: those of routers, and PAUSE frames.
    pub lost_own_packets: u64,
    /// Whether links or nodes of the scenario fail.
    pub fails: bool,
    /// Hash of the final counts of every flow and port: equal runs have equal digests.
    pub digest: u64,
    /// Wire bytes of first transmissions as a share of the capacity to which the load refers; `None` for
    /// workloads without a load.
    pub realised_load: Option<f64>,
    /// The load that the scenario asks for.
    pub nominal_load: Option<f64>,
    /// Packets that the router (at switches) and the policy (at hosts) created; `None` if the system
    /// creates none.
    pub made_packets: Option<u64>,
    /// Bytes of the packets that the router and the policy created.
    pub made_bytes: Option<u64>,
    /// Number of times that the controller set the path of a flow; `None` without a controller.
    pub moves: Option<u64>,
    /// The time for which neighbours paused ports, all ports together; `None` if no neighbour can.
    pub paused_ps: Option<u64>,
    /// The same of the port that was paused longest.
    pub max_paused_ps: Option<u64>,
    /// Data packets that lost their payload in queues; `None` if no queue trims packets.
    pub trimmed_packets: Option<u64>,
    /// The time from the first start of a flow to the last finish, or to the end of the run if a flow that began did not finish.
    /// A timer that expires after the last finish does not lengthen it.
    pub traffic_ps: u64,
    /// The measurement window; `None` for ideal schedules, which count nothing over time, and if the run
    /// ended before the window began.
    pub window: Option<Measured>,
}
