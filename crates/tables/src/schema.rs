//! The definition of every column of every table: name, unit, description and how its value is read. The type, and whether
//! the column may be null, follow from the accessor, so that no table can differ from its description.

use crate::rank_times::RankTime;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};
use sim::outcome::{AgentRow, FlowRow, NamedCounter, PacketRow, PortRow, SampleRow};
use sim::tasks::{Parallelism, PartRow, TaskRow};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Version of the layout of run folders. It is raised when a reader of the previous version would
/// misread a folder. 8: the columns of ports do not count packets that wait when the run ends.
pub const SCHEMA_VERSION: u32 = 8;

/// Version of the layout of tables. Each table has it in its metadata.
const TABLES_VERSION: u32 = 7;

/// The tables of a point, by name.
pub const POINT_TABLES: [&str; 8] =
    [FLOWS.name, PORTS.name, TASKS.name, PARTS.name, RANK_TIMES.name, SAMPLES.name, AGENTS.name, PACKETS.name];

/// The tables over all points of a run, by name.
pub const RUN_TABLES: [&str; 2] = ["points", "summary"];

/// Returns the name of a table's file.
pub fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}

/// A table: columns over rows of one type.
pub struct Table<R: 'static> {
    /// The name of the table, and of its file without the suffix.
    pub name: &'static str,
    /// A description that says what a row is.
    pub about: &'static str,
    /// The columns in order.
    pub columns: &'static [Column<R>],
    /// Returns the counters of the system's entries for a row. They are columns after the others
    /// and differ between systems.
    pub counts: fn(&R) -> &[u64],
}

/// The column of a counter of one of the system's entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterColumn {
    /// The name of the entry and the name of the counter: `homa.grants`.
    pub name: String,
    /// The unit, or empty.
    pub unit: String,
    /// A description of what is counted.
    pub about: String,
}

impl CounterColumn {
    /// Returns the columns of counters.
    pub fn all(counters: &[NamedCounter]) -> Vec<CounterColumn> {
        let column = |c: &NamedCounter| CounterColumn {
            name: c.column(),
            unit: c.counter.unit.to_owned(),
            about: c.counter.about.to_owned(),
        };
        counters.iter().map(column).collect()
    }
    /// Returns the Arrow field of the column.
    pub fn field(&self, nullable: bool) -> Field {
        field(&self.name, DataType::UInt64, nullable, &self.unit, &self.about)
    }
}

/// A column.
pub struct Column<R> {
    /// The name, which ends in the unit.
    pub name: &'static str,
    /// The unit, or empty.
    pub unit: &'static str,
    /// The description.
    pub about: fn() -> String,
    /// How the value is read from a row. This also decides the type.
    pub get: Get<R>,
}

/// How a column is read from a row.
pub enum Get<R> {
    /// An unsigned integer of 8 bits.
    U8(fn(&R) -> u8),
    /// An unsigned integer of 32 bits.
    U32(fn(&R) -> u32),
    /// An unsigned integer of 64 bits.
    U64(fn(&R) -> u64),
    /// An unsigned integer of 64 bits, or null.
    OptU64(fn(&R) -> Option<u64>),
    /// A time in picoseconds. It is signed in the file, so that differences of columns never wrap.
    Ps(fn(&R) -> u64),
    /// A time in picoseconds, or null.
    OptPs(fn(&R) -> Option<u64>),
    /// A floating-point number.
    F64(fn(&R) -> f64),
    /// A floating-point number, or null.
    OptF64(fn(&R) -> Option<f64>),
    /// A boolean.
    Bool(fn(&R) -> bool),
    /// A boolean, or null.
    OptBool(fn(&R) -> Option<bool>),
    /// One of a few words.
    Word(fn(&R) -> &str),
    /// An index into the list of words that is given with the rows.
    Listed(fn(&R) -> usize),
}

impl<R> Column<R> {
    /// Returns the Arrow type of the column and whether it may be null.
    pub fn data_type(&self) -> (DataType, bool) {
        match self.get {
            Get::U8(_) => (DataType::UInt8, false),
            Get::U32(_) => (DataType::UInt32, false),
            Get::U64(_) => (DataType::UInt64, false),
            Get::OptU64(_) => (DataType::UInt64, true),
            Get::Ps(_) => (DataType::Int64, false),
            Get::OptPs(_) => (DataType::Int64, true),
            Get::F64(_) => (DataType::Float64, false),
            Get::OptF64(_) => (DataType::Float64, true),
            Get::Bool(_) => (DataType::Boolean, false),
            Get::OptBool(_) => (DataType::Boolean, true),
            Get::Word(_) | Get::Listed(_) => (words(), false),
        }
    }
}

impl<R> Table<R> {
    /// Returns the path of the table's file in a point's folder.
    pub fn file(&self, dir: &Path) -> PathBuf {
        dir.join(file_name(self.name))
    }
    /// Returns the fields of the columns that every system has, with descriptions and units as
    /// metadata.
    pub fn fields(&self) -> Vec<Field> {
        let own = |column: &Column<R>| {
            let (ty, nullable) = column.data_type();
            field(column.name, ty, nullable, column.unit, &(column.about)())
        };
        self.columns.iter().map(own).collect()
    }
    /// Returns the schema of the table for a system with these counters.
    pub fn schema(&self, counters: &[CounterColumn]) -> SchemaRef {
        let mut fields = self.fields();
        fields.extend(counters.iter().map(|counter| counter.field(false)));
        schema(fields, self.about)
    }
}

/// Returns the Arrow type of columns with few different words.
pub fn words() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Returns a field with its description and unit as metadata.
pub fn field(name: &str, ty: DataType, nullable: bool, unit: &str, about: &str) -> Field {
    let mut metadata = BTreeMap::from([("description".to_owned(), about.to_owned())]);
    if !unit.is_empty() {
        metadata.insert("unit".to_owned(), unit.to_owned());
    }
    Field::new(name, ty, nullable).with_metadata(metadata.into_iter().collect())
}

/// Returns a schema with its description and the version of the layout of tables as metadata.
pub fn schema(fields: Vec<Field>, about: &str) -> SchemaRef {
    let version = ("flowloom.schema_version".to_owned(), TABLES_VERSION.to_string());
    let metadata = [("description".to_owned(), about.to_owned()), version];
    Arc::new(Schema::new(fields).with_metadata(metadata.into_iter().collect()))
}

macro_rules! table {
    ($(#[$doc:meta])* $id:ident: $row:ty = $name:literal, $about:literal, $counts:expr;
     $($column:ident [$unit:literal] $about_column:expr => $get:ident($f:expr);)*) => {
        $(#[$doc])*
        pub const $id: Table<$row> = Table {
            name: $name,
            about: $about,
            columns: &[$(Column { name: stringify!($column), unit: $unit, about: || $about_column.into(), get: Get::$get($f) }),*],
            counts: $counts,
        };
    };
}

table! {
    /// The flows of a point.
    FLOWS: FlowRow = "flows", "one row per flow, finished or not, in the order of their starts", |r| &r.counts;
    flow_id [""] "the flow's number: its index among the flows drawn before the run, which are the same for all systems" => U32(|r| r.flow_id);
    group_id [""] "number of the flow's group, such as an incast or a job; null: the flow is in no group" => OptU64(|r| r.group_id);
    workload [""] "name of the flow's workload in the scenario" => Listed(|r| usize::from(r.workload));
    measured [""] "whether the flow counts in metrics; it does not if it was already open at a start in the steady state, if it only keeps up the load after the last flow that counts, or if it starts outside the measurement window" => Bool(|r| r.measured);
    src [""] "number of the sending host among the hosts, from 0" => U32(|r| r.src);
    dst [""] "number of the receiving host among the hosts, from 0" => U32(|r| r.dst);
    size_bytes ["bytes"] "application bytes" => U64(|r| r.size_bytes);
    size_wire_bytes ["bytes"] "bytes on the wire of the first transmissions of the flow's data, headers included" => U64(|r| r.size_wire_bytes);
    start_ps ["ps"] "when the application opened the flow, from the start of the run; null: never, because a flow that it waits for did not end" => OptPs(|r| r.start_ps);
    first_tx_ps ["ps"] "when the first data packet was handed to the NIC, from the start of the run; null: no data packet was sent" => OptPs(|r| r.first_tx_ps);
    finish_ps ["ps"] "when the last payload byte reached the receiver, from the start of the run; null: unfinished" => OptPs(|r| r.finish_ps);
    fct_ps ["ps"] "flow completion time, finish_ps - start_ps; null: unfinished" => OptPs(FlowRow::fct_ps);
    ideal_fct_ps ["ps"] "completion time that the flow would have alone in the network: its packets are stored and forwarded at line rate on one shortest path, over one NIC, without handshake or pacing" => Ps(|r| r.ideal_fct_ps);
    bottleneck_bps ["bps"] "rate of the slowest link on the flow's shortest path" => U64(|r| r.bottleneck_bps);
    slowdown [""] "fct_ps / ideal_fct_ps, at least 1 on one path; null: unfinished" => OptF64(FlowRow::slowdown);
    expansion_ratio [""] "fct_ps over the transmission time of size_wire_bytes at bottleneck_bps (MERP, Eq. 2); null: unfinished" => OptF64(FlowRow::expansion_ratio);
    goodput_bps ["bps"] "size_bytes over fct_ps; null: unfinished" => OptF64(FlowRow::goodput_bps);
    deadline_ps ["ps"] "deadline of the flow, from the start of the run; null: no deadline" => OptPs(|r| r.deadline_ps);
    deadline_met [""] "whether the flow finished by its deadline; null: no deadline" => OptBool(FlowRow::deadline_met);
    terminated [""] "whether the sender gave up the flow before the last byte arrived (early termination)" => Bool(|r| r.terminated);
    hops [""] "number of links on the flow's shortest path" => U8(|r| r.hops);
    tx_packets ["packets"] "data packets that the sender handed to its NIC, retransmissions included; ACKs and other control packets are not counted" => U64(|r| r.tx_packets);
    retx_packets ["packets"] "data packets that the sender handed to its NIC with bytes that it had sent before" => U64(|r| r.retx_packets);
    drops ["packets"] "data packets of the flow that queues dropped; ACKs and other control packets are not counted" => U64(|r| r.drops);
    lost_link ["packets"] "packets of the flow, data and control in both directions, that were lost on links (to failures or at random) or because there was no path" => U64(|r| r.lost_link);
    marks ["packets"] "packets of the flow, data and control in both directions, that arrived with an ECN mark" => U64(|r| r.marks);
    timeouts [""] "retransmission timeouts" => U32(|r| r.timeouts);
    fast_retransmits [""] "fast retransmissions" => U32(|r| r.fast_retransmits);
    reordered ["packets"] "data packets that reached the receiver after a later byte of the flow" => U64(|r| r.reordered);
    out_of_order ["packets"] "data packets that reached the receiver while bytes before theirs were missing, also if it dropped them" => U64(|r| r.out_of_order);
    gaps [""] "gaps in the byte stream at the receiver: how often an out-of-order packet arrived while no other was waiting for missing bytes" => U64(|r| r.gaps);
    mean_gap_packets ["packets"] "out-of-order window: number of packets from the first missing packet to the packet that opened the gap, mean over gaps; null: no gaps" => OptF64(FlowRow::mean_gap_packets);
    first_gap_packets ["packets"] "out-of-order window of the first gap; 0: no gaps" => U64(|r| r.first_gap_packets);
    window_delivered_bytes ["bytes"] "payload that reached the receiver in the measurement window, each byte once; null: the run ended before the window began" => OptU64(|r| r.window_delivered_bytes);
}

table! {
    /// The egress ports of a point.
    PORTS: PortRow = "ports", "one row per egress port, host NICs included", |r| &r.counts;
    port_id [""] "the port's number, which is the number of its directed link in the network" => U32(|r| r.port_id);
    node [""] "number of the node that sends through the port" => U32(|r| r.node);
    peer [""] "number of the node at the other end of the link" => U32(|r| r.peer);
    tier [""] "tier of the node: 0 for hosts, 1 for ToR switches, and so on" => U8(|r| r.tier);
    name [""] "names of both nodes, such as tor0->root" => Word(|r| &r.name);
    rate_bps ["bps"] "line rate" => U64(|r| r.rate_bps);
    limit_bytes ["bytes"] "limit of the queue; a limit in packets is converted with full packets; null: no limit" => OptU64(|r| r.limit_bytes);
    mark_bytes ["bytes"] "queue length above which the queue marks every packet that can be marked; null: the queue never marks" => OptU64(|r| r.mark_bytes);
    tx_packets ["packets"] "packets whose transmission began, data and control" => U64(|r| r.tx_packets);
    tx_bytes ["bytes"] "bytes of the packets in tx_packets" => U64(|r| r.tx_bytes);
    drops ["packets"] "packets dropped by the queue: the sum of data_drops, credit_drops, trimmed_drops and control_drops" => U64(|r| r.drops);
    data_drops ["packets"] "data packets dropped by the queue" => U64(|r| r.data_drops);
    credit_drops ["packets"] "credits dropped by the queue, which is how ExpressPass and its relatives share a link" => U64(|r| r.credit_drops);
    trimmed_drops ["packets"] "trimmed packets (headers without payload) dropped by the queue" => U64(|r| r.trimmed_drops);
    control_drops ["packets"] "ACKs and other control packets dropped by the queue" => U64(|r| r.control_drops);
    drop_bytes ["bytes"] "bytes of the packets dropped by the queue" => U64(|r| r.drop_bytes);
    lost_link ["packets"] "packets lost on the link: at random; because they were queued, in transmission or on the wire when the link went down; or because they were sent while it was down" => U64(|r| r.lost_link);
    down_ps ["ps"] "time that the link was down" => Ps(|r| r.down_ps);
    marks ["packets"] "packets marked by the queue" => U64(|r| r.marks);
    busy_ps ["ps"] "time spent transmitting" => Ps(|r| r.busy_ps);
    max_queue_bytes ["bytes"] "largest queue length; the packet in transmission is not counted" => U64(|r| r.max_queue_bytes);
    mean_queue_bytes ["bytes"] "length of the queue, averaged over the run" => F64(|r| r.mean_queue_bytes);
    window_busy_ps ["ps"] "time spent transmitting in the measurement window; null: the run ended before the window began" => OptPs(|r| r.window_busy_ps);
    window_mean_queue_bytes ["bytes"] "length of the queue, averaged over the measurement window" => OptF64(|r| r.window_mean_queue_bytes);
}

table! {
    /// The tasks of a point.
    TASKS: TaskRow = "tasks", "one row per task of a program, such as the computation of a layer or a collective; only with workloads that have tasks", |_| &[];
    group_id [""] "number of the task, and of the group of its flows" => U64(|r| r.group_id);
    workload [""] "name of the task's workload in the scenario" => Listed(|r| usize::from(r.workload));
    name [""] "name of the task" => Word(|r| &r.name);
    iteration [""] "number of the iteration of the job, from 0" => U32(|r| r.iteration);
    operation [""] "operation of the collective, such as all_reduce; compute: the task is a computation" => Word(|r| r.collective.map_or("compute", |moved| moved.operation));
    parallelism [""] "parallelism of a job for which the ranks communicate: tensor, expert, data or pipeline; none: a computation, or a task of another workload" => Word(|r| r.parallelism.map_or("none", Parallelism::name));
    size_bytes ["bytes"] "size of the collective as nccl-tests define it; null: a computation" => OptU64(|r| r.collective.map(|moved| moved.bytes));
    parts [""] "ranks that take part" => U32(|r| r.parts);
    flows [""] "messages through the network" => U64(|r| r.flows);
    start_ps ["ps"] "when the first rank began, from the start of the run; null: no rank began" => OptPs(|r| r.start_ps);
    first_finish_ps ["ps"] "when the first rank ended its part; null: no rank did" => OptPs(|r| r.first_finish_ps);
    finish_ps ["ps"] "when the last rank ended its part; null: a rank did not" => OptPs(|r| r.finish_ps);
    time_ps ["ps"] "time of the task, finish_ps - start_ps" => OptPs(TaskRow::time_ps);
    last_rank [""] "the rank that ended last, or did not end" => U32(|r| r.last_rank);
    algorithm_bandwidth_bps ["bps"] "size_bytes over time_ps (nccl-tests: algbw); null: a computation, within servers, or unfinished" => OptF64(TaskRow::algorithm_bandwidth_bps);
    bus_bandwidth_bps ["bps"] "what each rank has to move at least, over time_ps (nccl-tests: busbw), to be compared with the rate of a link; null: a computation, within servers, or unfinished" => OptF64(TaskRow::bus_bandwidth_bps);
}

table! {
    /// The parts of ranks in the tasks of a point.
    PARTS: PartRow = "parts", "the time line of programs, one row per task and rank that takes part; only with workloads that have tasks", |_| &[];
    group_id [""] "number of the task" => U64(|r| r.group_id);
    workload [""] "name of the task's workload in the scenario" => Listed(|r| usize::from(r.workload));
    rank [""] "the rank" => U32(|r| r.rank);
    host [""] "number of the rank's host among the hosts, from 0" => U32(|r| r.host);
    start_ps ["ps"] "when the rank began its part, from the start of the run; null: it did not" => OptPs(|r| r.start_ps);
    finish_ps ["ps"] "when the rank ended its part; null: it did not" => OptPs(|r| r.finish_ps);
}

table! {
    /// How the ranks of the jobs of a point spend their time.
    RANK_TIMES: RankTime = "rank_times", "how ranks spend the time of a job, one row per rank for the job and one for each iteration; all times but `time_ps` add up to it exactly; only with workloads whose ranks compute", |_| &[];
    workload [""] "name of the job's workload in the scenario" => Listed(|r| usize::from(r.workload));
    iteration [""] "number of the iteration of the job, from 0; null: the whole job" => OptU64(|r| r.iteration.map(u64::from));
    rank [""] "the rank" => U32(|r| r.rank);
    time_ps ["ps"] "time of the job or the iteration, from the first start of a task to the last end, or to the end of the run if a task is unfinished" => Ps(|r| r.time_ps);
    computation_ps ["ps"] "time in which the rank computes, without the collectives of tensor and expert groups for which its passes wait" => Ps(|r| r.computation_ps);
    tensor_ps ["ps"] "time in collectives of its tensor group" => Ps(|r| r.tensor_ps);
    expert_ps ["ps"] "time in collectives of its expert group" => Ps(|r| r.expert_ps);
    data_ps ["ps"] "time in collectives of its data group without computing" => Ps(|r| r.data_ps);
    pipeline_ps ["ps"] "time in which messages from or to another stage of the pipeline are under way and the rank does nothing else" => Ps(|r| r.pipeline_ps);
    other_ps ["ps"] "time in collectives of other kinds without computing" => Ps(|r| r.other_ps);
    bubble_ps ["ps"] "idle time before a message from or to another stage, before the first work and after the last" => Ps(|r| r.bubble_ps);
    waiting_ps ["ps"] "idle time otherwise" => Ps(|r| r.waiting_ps);
}

table! {
    /// The time series of a point.
    SAMPLES: SampleRow = "samples", "time series, one row per value; only with [sample] in the scenario", |_| &[];
    time_ps ["ps"] "time of the sample, from the start of the run" => Ps(|r| r.time_ps);
    entity [""] "the port (metrics port.*), the flow (metrics flow.*) or the node (metrics switch.*)" => U32(|r| r.entity);
    metric [""] "port.queue_bytes, port.utilisation, flow.rate_bps, flow.cwnd_bytes, flow.ssthresh_bytes, flow.srtt_s, switch.made_packets or switch.taken_packets; the last four only where a value exists" => Word(|r| r.metric);
    value [""] "the value, in the unit that ends the metric's name; utilisation is a fraction of the line rate" => F64(|r| r.value);
}

table! {
    /// The tables of the agents of a point.
    AGENTS: AgentRow = "agents", "state that agents at ports keep for each flow, one row per value; only with agents = true in [sample]", |_| &[];
    time_ps ["ps"] "time of the sample, from the start of the run" => Ps(|r| r.time_ps);
    port_id [""] "the port" => U32(|r| r.port_id);
    flow_id [""] "the flow" => U32(|r| r.flow_id);
    column [""] shown_by_agents() => Word(|r| r.column);
    value [""] "the value, in the unit that ends the name in `column`; paused: 1 or 0" => F64(|r| r.value);
}

/// Describes the values that agents keep for each flow, by agent.
fn shown_by_agents() -> String {
    let value = |(name, note): &(&str, &str)| if note.is_empty() { (*name).to_owned() } else { format!("{name} ({note})") };
    let values = |shows: &[(&str, &str)]| shows.iter().map(value).collect::<Vec<_>>().join(", ");
    let agents = fabric::agent::ENTRIES.iter().filter(|agent| !agent.meta.shows.is_empty());
    agents.map(|agent| format!("{}: {}", agent.name, values(agent.meta.shows))).collect::<Vec<_>>().join("; ")
}

table! {
    /// The packet trace of a point.
    PACKETS: PacketRow = "packets", "packet trace, one row per packet and port; only with packets = true in [sample]", |_| &[];
    time_ps ["ps"] "start of transmission; for a dropped packet, the time of the drop" => Ps(|r| r.time_ps);
    end_ps ["ps"] "end of transmission; for a dropped packet, the time of the drop" => Ps(|r| r.end_ps);
    port_id [""] "the port" => U32(|r| r.port_id);
    kind [""] "kind of packet in the protocol's terms, such as data or ack" => Word(|r| r.kind);
    flow_id [""] "the flow" => U32(|r| r.flow_id);
    offset ["bytes"] "offset of the payload in the flow; for an ACK, the cumulative acknowledgement" => U64(|r| r.offset);
    size_bytes ["bytes"] "bytes on the wire" => U32(|r| r.size_bytes);
    class [""] "priority class of the packet; 0 is the highest, and the class of every packet if nothing sets classes" => U8(|r| r.class);
    dropped [""] "whether the packet was dropped by the queue or lost on the link" => Bool(|r| r.dropped);
}

/// A column that is computed from points, not read from rows of the simulator.
pub struct Note {
    /// The name.
    pub name: &'static str,
    /// The Arrow type.
    pub ty: fn() -> DataType,
    /// Whether it may be null.
    pub nullable: bool,
    /// The unit, or empty.
    pub unit: &'static str,
    /// The description.
    pub about: &'static str,
}

impl Note {
    /// Returns the Arrow field of the column.
    pub fn field(&self) -> Field {
        field(self.name, (self.ty)(), self.nullable, self.unit, self.about)
    }
}

macro_rules! notes {
    ($(#[$doc:meta])* $id:ident { $($name:ident: $ty:expr, $nullable:literal, $unit:literal, $about:literal;)* }) => {
        $(#[$doc])*
        pub const $id: &[Note] = &[$(
            Note { name: stringify!($name), ty: || $ty, nullable: $nullable, unit: $unit, about: $about }
        ),*];
    };
}

notes! {
    /// The first columns of every table that is read from a run folder; the swept keys follow.
    KEYS {
        point: words(), false, "", "the point (one system, one value of every swept key, one seed), by the name of its folder";
        system: words(), false, "", "the system's label";
        seed: DataType::UInt64, false, "", "the seed";
    }
}
notes! {
    /// The rest of the table of points, after the keys.
    POINTS {
        state: words(), false, "", "done, or interrupted (stopped from outside, and not part of any summary)";
        ideal: DataType::Boolean, false, "", "whether the point is an ideal schedule of the same flows, without packets; metrics that count packets are then null";
        engine: words(), false, "", "how the flows were simulated: packet (packet by packet); flow (as fluids with max-min fair rates, so metrics of packets and queues are null); ideal (by an ideal schedule)";
        stop_reason: words(), false, "", "why the run ended: finished (all flows have finished), end (the end time of the scenario was reached), stopped (from outside), deadlock (switches pause each other and will never send again)";
        deadlock: DataType::Utf8, true, "", "the cycle of ports that pause each other and will never send again, and when it was detected; null: no deadlock";
        untouched: DataType::Utf8, true, "", "failures that touched no traffic: the links that went down lost no packet and were on no shortest path of a flow that was open while they were down; null: none";
        no_next_hop: DataType::Utf8, true, "", "packets lost at switches that had no next hop for them, by switch: `rack0_0: 11985`; ports do not count them. Summed over the flows of flows.parquet, lost_link is its sum over the ports, plus these, less the packets lost that belong to no flow (`lost_own_packets` in the manifest: those of routers, PAUSE frames); null: none";
        flows: DataType::UInt64, false, "", "flows of the point that began";
        unfinished: DataType::UInt64, false, "", "flows that had not finished at the end of the run";
        end_ps: DataType::Int64, false, "ps", "simulated time at the end";
        not_measured: DataType::UInt64, false, "", "flows that count in no metric: already open at a start in the steady state, started after the last flow that counts, or started outside the measurement window";
        window_from_ps: DataType::Int64, true, "ps", "start of the measurement window; null: the run ended before the window began, or the point is an ideal schedule";
        window_until_ps: DataType::Int64, true, "ps", "end of the measurement window; null as for window_from_ps";
        events: DataType::UInt64, false, "", "events handled";
        hops: DataType::UInt64, false, "", "packets moved over a link";
        digest: DataType::Utf8, false, "", "hash of the counts of all flows and ports at the end of the run; equal runs have equal digests";
        flows_hash: DataType::Utf8, false, "", "hash of the flows drawn before the run; all systems of a comparison have the same hash";
    }
}
notes! {
    /// The rest of the table of metrics per point, after the keys.
    PER_SEED {
        metric: words(), false, "", "the metric";
        unit: words(), false, "", "the metric's unit, or empty";
        value: DataType::Float64, true, "", "the metric's value at the point; null if it has none, such as a mean over no flows";
    }
}
notes! {
    /// The workload of a row, in tables that have rows for each workload.
    WORKLOAD {
        workload: words(), true, "", "the workload to which the metric is restricted; null: all flows";
    }
}
notes! {
    /// The rest of the summary over seeds, after `system` and the swept keys.
    SUMMARY {
        metric: words(), false, "", "the metric";
        unit: words(), false, "", "the metric's unit, or empty";
        seeds: DataType::UInt32, false, "", "number of seeds at which the metric has a value";
        mean: DataType::Float64, true, "", "mean over these seeds";
        lowest: DataType::Float64, true, "", "smallest value of these seeds";
        highest: DataType::Float64, true, "", "largest value of these seeds";
        ci95_low: DataType::Float64, true, "", "lower end of the 95 % confidence interval of the mean, Student's t; null with fewer than 2 seeds";
        ci95_high: DataType::Float64, true, "", "upper end of this interval";
    }
}
notes! {
    /// The rest of the table by flow size, after `system` and the swept keys.
    BY_SIZE {
        bin: DataType::UInt32, false, "", "number of the size bin, from the smallest sizes; all bins have nearly the same number of flows";
        min_size_bytes: DataType::UInt64, false, "bytes", "smallest flow of the bin, over all seeds";
        median_size_bytes: DataType::UInt64, false, "bytes", "median flow size of the bin";
        max_size_bytes: DataType::UInt64, false, "bytes", "largest flow of the bin";
        quantity: words(), false, "", "slowdown or fct_s";
        unit: words(), false, "", "the quantity's unit, or empty";
        statistic: words(), false, "", "mean, p50, p95 or p99, over the flows of the bin that finished";
        seeds: DataType::UInt32, false, "", "number of seeds at which flows of the bin finished";
        mean: DataType::Float64, true, "", "the statistic, mean over these seeds";
        ci95_low: DataType::Float64, true, "", "lower end of the 95 % confidence interval of the mean, Student's t; null with fewer than 2 seeds";
        ci95_high: DataType::Float64, true, "", "upper end of this interval";
        flows: DataType::UInt64, false, "", "flows of the bin that finished, over all seeds";
        rests_on: DataType::UInt64, false, "", "flows whose value is at least the quantile; for a mean, all flows. In figures, a quantile with fewer than 10 of these flows has a hollow marker";
    }
}
notes! {
    /// The rest of the table of statistics of time series, after the keys.
    SERIES {
        metric: words(), false, "", "the sampled quantity";
        entity: DataType::UInt32, false, "", "the port (metrics port.*), the flow (metrics flow.*) or the node (metrics switch.*)";
        samples: DataType::UInt64, false, "", "samples in the measurement window";
        mean: DataType::Float64, true, "", "mean of the samples, in their unit";
        p50: DataType::Float64, true, "", "median of the samples";
        p95: DataType::Float64, true, "", "95th percentile of the samples";
        p99: DataType::Float64, true, "", "99th percentile of the samples";
        max: DataType::Float64, true, "", "the largest sample";
    }
}
notes! {
    /// The rest of the table of groups of flows, after the keys.
    GROUPS {
        group_id: DataType::UInt64, false, "", "number of the group";
        flows: DataType::UInt64, false, "", "flows of the group that began";
        unfinished: DataType::UInt64, false, "", "flows of the group that began and did not finish";
        start_ps: DataType::Int64, false, "ps", "first start of a flow of the group";
        finish_ps: DataType::Int64, true, "ps", "last finish of a flow of the group; null: a flow did not finish";
        fct_ps: DataType::Int64, true, "ps", "completion time of the group, finish_ps - start_ps; null: a flow did not finish";
        goodput_bps: DataType::Float64, true, "bps", "payload of the group over its completion time; null: a flow did not finish";
    }
}
notes! {
    /// The rest of the comparison of systems, after the swept keys.
    COMPARE {
        system_a: words(), false, "", "a system's label";
        system_b: words(), false, "", "another system's label";
        seeds: DataType::UInt32, false, "", "number of seeds at which flows finished in both systems";
        flows: DataType::UInt64, false, "", "flows that finished in both systems, over all seeds";
        only_a: DataType::UInt64, false, "", "flows that finished only in system a";
        only_b: DataType::UInt64, false, "", "flows that finished only in system b";
        b_faster: DataType::Float64, true, "", "share of the paired flows that finished earlier in b, mean over seeds";
        median_fct_ratio: DataType::Float64, true, "", "median of fct(b) / fct(a) over paired flows (of the middle two, the geometric mean), geometric mean over seeds";
        mean_fct_ratio: DataType::Float64, true, "", "geometric mean of fct(b) / fct(a) over paired flows and over seeds: with the systems swapped, the reciprocal";
        ci95_low: DataType::Float64, true, "", "lower end of the 95 % confidence interval of mean_fct_ratio over seeds, Student's t of the logarithms; null with fewer than 2 seeds";
        ci95_high: DataType::Float64, true, "", "upper end of this interval";
        p_holm: DataType::Float64, true, "", "two-sided p-value of the hypothesis that mean_fct_ratio is 1, over seeds, corrected by Holm's method for the number of rows; null with fewer than 2 seeds";
        more_seeds: DataType::UInt32, true, "", "if the interval of mean_fct_ratio holds 1: how many more seeds would separate the systems if mean m and standard deviation s of the logarithms stay: the smallest N above the number of seeds for which t(0.975, N - 1) s / sqrt(N) < |m|, less that number; 1000: 1000 or more";
        ratio_of_means: DataType::Float64, true, "", "mean of fct(b) over mean of fct(a), both over the paired flows, geometric mean over seeds: long flows decide it";
        of_means_ci95_low: DataType::Float64, true, "", "lower end of the 95 % confidence interval of ratio_of_means over seeds; null with fewer than 2 seeds";
        of_means_ci95_high: DataType::Float64, true, "", "upper end of this interval";
        p99_slowdown_ratio: DataType::Float64, true, "", "99th percentile of the slowdown of the paired flows in b over that in a, geometric mean over seeds";
        p99_ci95_low: DataType::Float64, true, "", "lower end of the 95 % interval of p99_slowdown_ratio, by bootstrap of seeds and of pairs of flows; null if a seed has fewer than 200 pairs";
        p99_ci95_high: DataType::Float64, true, "", "upper end of this interval";
        miss_rate_a: DataType::Float64, true, "", "share of the flows with a deadline that did not finish by it in system a, mean over seeds; null without deadlines";
        miss_rate_b: DataType::Float64, true, "", "share of the flows with a deadline that did not finish by it in system b, mean over seeds; null without deadlines";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::METRICS;

    #[test]
    fn names_are_unique_and_end_in_their_unit() {
        fn check<'a>(columns: impl Iterator<Item = (&'a str, &'a str)>) {
            let mut seen = std::collections::BTreeSet::new();
            for (name, unit) in columns {
                assert!(seen.insert(name), "{name} twice");
                let ending = match unit {
                    "ps" => "_ps",
                    "bytes" if name != "offset" => "_bytes",
                    "bps" => "_bps",
                    "s" => "_s",
                    _ => "",
                };
                assert!(name.ends_with(ending), "{name} is in {unit}");
            }
        }
        check(FLOWS.columns.iter().map(|c| (c.name, c.unit)));
        check(PORTS.columns.iter().map(|c| (c.name, c.unit)));
        check(SAMPLES.columns.iter().map(|c| (c.name, c.unit)));
        check(PACKETS.columns.iter().map(|c| (c.name, c.unit)));
        for notes in [KEYS, POINTS, PER_SEED, SUMMARY, BY_SIZE, SERIES, GROUPS, COMPARE] {
            check(notes.iter().map(|n| (n.name, n.unit)));
        }
        check(METRICS.iter().map(|m| (m.name, m.unit)));
    }
}
