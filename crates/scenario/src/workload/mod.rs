//! Room: workloads. A workload draws its flows before the run. They depend only on the network and
//! the seed, so that all systems see the same flows.
//!
//! Random streams, by index of the workload: `workload/arrivals`, `workload/sizes`,
//! `workload/pairs`, `workload/ports`.

use crate::files::Files;
use crate::memory::Memory;
use base::{Dur, HostId, Offered, Rate, Streams, Time};
use fabric::net::Net;

pub mod after;
pub mod cdf;
pub mod collectives;
pub mod hosts;
pub mod listed;
pub mod load;
pub mod pairs;
pub mod program;
pub mod size;
pub mod sizes;
pub mod tasks;

use load::OfferedTraffic;
use size::{Packets, Unit};
use tasks::Tasks;

/// A workload.
pub trait Workload {
    /// Draws the flows, and the tasks of a program. The error is a complete message.
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String>;
    /// Draws the flows of an open loop between two times outside its own arrivals, from the random
    /// streams in `when`. Returns `None` if the workload sets its own start or end, or if its
    /// arrivals depend on its flows.
    fn arrivals(&self, _env: &Env<'_>, _streams: &mut Streams, _when: &Outside) -> Result<Option<Vec<Drawn>>, String> {
        Ok(None)
    }
    /// Returns the flows of a workload that plans them without random numbers, or whose random numbers
    /// change only the sizes of flows.
    fn planned(&self) -> Option<&[Drawn]> {
        None
    }
    /// Returns the maximum number of flows.
    fn flows(&self) -> u64;
    /// Returns the files that the workload reads.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns the reference rate of the load and the start of the arrivals, or `None` if the
    /// workload has no load.
    fn reference(&self, _env: &Env<'_>) -> Option<(Rate, Time)> {
        None
    }
    /// Returns the average traffic that the workload offers between hosts, or `None` if its flows
    /// come once and have no rate.
    fn traffic(&self, _env: &Env<'_>) -> Option<OfferedTraffic> {
        None
    }
    /// Returns the hosts that the workload picks at random, or `None` if its flows are between the
    /// same hosts with every seed.
    fn picks(&self, _env: &Env<'_>) -> Option<Picks> {
        None
    }
    /// Returns the name of the workload whose last flow start ends this workload, if `until` names
    /// a workload.
    fn until_workload(&self) -> Option<&str> {
        None
    }
    /// Returns whether flows that wait for others soon follow flows whose starts are known before the
    /// run, like answers to requests that are sent at an interval. Otherwise a workload with flows that
    /// wait is a program, and only its end ends the default measurement window.
    fn clocked(&self) -> bool {
        false
    }
    /// Returns the number of flows that reach one host at the same time, or `None` if this number
    /// is random.
    fn fan_in(&self, _env: &Env<'_>) -> Option<FanIn> {
        None
    }
    /// Returns whether the workload itself gives at least one flow a deadline. A law of deadlines
    /// may add deadlines to the other flows.
    fn deadlines(&self, _env: &Env<'_>) -> bool {
        false
    }
    /// Returns the load and the size law, for parts whose parameters depend on them. Without sizes
    /// if a file cannot be read.
    fn offered(&self, env: &Env<'_>) -> Offered;
}

/// The hosts that a workload picks at random: any of the sources may send to any other host among the
/// targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picks {
    /// Hosts that may send.
    pub sources: Vec<HostId>,
    /// Hosts that may receive.
    pub targets: Vec<HostId>,
    /// Whether a source sends only to hosts at other switches.
    pub across: bool,
}

impl Picks {
    /// Returns the picks of a workload that may pick any pair of hosts.
    fn all(env: &Env<'_>) -> Picks {
        let hosts: Vec<HostId> = (0..env.net.hosts().len() as u32).map(HostId).collect();
        Picks { sources: hosts.clone(), targets: hosts, across: false }
    }
}

/// Flows that reach one host at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanIn {
    /// Number of flows.
    pub flows: u64,
    /// Application bytes of the largest flow.
    pub size_bytes: u64,
    /// Time over which the flows start.
    pub spread: Dur,
}

/// The flows of a workload, and the tasks of its program if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draw {
    /// The flows, in any order.
    pub flows: Vec<Drawn>,
    /// The joins for which flows wait. A join waits only for joins before it.
    pub joins: Vec<DrawnJoin>,
    /// The tasks.
    pub tasks: Tasks,
}

impl From<Vec<Drawn>> for Draw {
    fn from(flows: Vec<Drawn>) -> Draw {
        Draw { flows, ..Draw::default() }
    }
}

/// A flow as a workload draws it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Sending host.
    pub src: HostId,
    /// Receiving host, different from the sending host.
    pub dst: HostId,
    /// Application bytes, at least 1.
    pub size_bytes: u64,
    /// Time at which the application opens the flow; not used for a flow that waits.
    pub start: Time,
    /// Time at which the flow should have finished; for a flow that waits, counted from its start.
    pub deadline: Option<Time>,
    /// Number of the group that the flow belongs to, within the workload.
    pub group: Option<u32>,
    /// Number of the connection from the source to the destination that the flow uses, within the
    /// workload. The flows of a connection have one source port; `None`: a port of its own.
    pub connection: Option<u32>,
    /// The flows that this flow waits for, if any.
    pub after: Option<Box<After>>,
}

/// The condition for the start of a flow that waits, or a moment of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Other flows of the workload by index, each with the time from its end to the start of the
    /// waiting flow.
    pub flows: Vec<(u32, Dur)>,
    /// Joins of the workload by index, each with the time from the join to the start. A flow that
    /// waits has at least one flow or join.
    pub joins: Vec<(u32, Dur)>,
    /// Earliest start of the waiting flow.
    pub not_before: Time,
    /// Age at which a flow that has not ended counts as ended for the waiting flow.
    pub give_up_after: Option<Dur>,
}

impl After {
    /// Creates the condition of a flow that starts `delay` after all these flows have ended.
    pub fn new(flows: &[u32], delay: Dur) -> After {
        let flows = flows.iter().map(|flow| (*flow, delay)).collect();
        After { flows, joins: Vec::new(), not_before: Time::ZERO, give_up_after: None }
    }
}

/// A join of a workload: see [`proto::flow::Join`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrawnJoin {
    /// The host of the join.
    pub host: HostId,
    /// Flows by index, each with the delay after its end.
    pub flows: Vec<(u32, Dur)>,
    /// Earlier joins of the same host by index, each with a delay.
    pub joins: Vec<(u32, Dur)>,
}

/// A time span outside the arrivals of a workload: before them, on a clock of its own, or after them.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// Prefix of the names of the random streams.
    pub name: &'static str,
    /// Start of the span.
    pub from: Time,
    /// End of the span.
    pub until: Time,
}

/// The environment of a workload.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The network.
    pub net: &'a Net,
    /// Sizes of packets.
    pub packets: Packets,
    /// Latest end of the run.
    pub end: Option<Time>,
    /// The files of the scenario.
    pub files: &'a Files,
    /// Index of the workload in the scenario.
    pub index: u64,
    /// Last flow start of each workload that is already drawn, by name.
    pub last_starts: &'a [(String, Time)],
    /// Limit of the memory of the plan of a program.
    pub memory: Memory,
}

/// Latest start of a flow and latest end of a run: 11.5 days.
pub const MAX_TIME: Dur = base::units::LARGEST.0;

/// Maximum number of messages of a program.
const MOST_MESSAGES: u64 = 4_000_000;

/// Bytes of memory that a message of a program needs while the program is planned, as measured.
const MESSAGE_BYTES: u64 = 2_800;

impl Env<'_> {
    /// Returns an error if the messages of a program do not fit into memory.
    pub fn fit(&self, messages: u64) -> Result<(), String> {
        let most = MOST_MESSAGES.min(self.memory.bytes / MESSAGE_BYTES);
        let limit = if most < MOST_MESSAGES { format!(": {}", self.memory) } else { String::new() };
        if messages <= most {
            return Ok(());
        }
        Err(format!("the ranks send more than {most} messages, which do not fit into memory{limit}"))
    }
    /// Returns the last flow start of another workload, if that workload is already drawn.
    fn last_start(&self, name: &str) -> Option<Time> {
        self.last_starts.iter().find(|(known, _)| known == name).map(|(_, start)| *start)
    }
    /// Converts a size in `unit` to application bytes.
    fn payload(&self, size: u64, unit: Unit) -> u64 {
        self.packets.payload(size, unit)
    }
}

pub mod chakra;
pub mod collective;
pub mod goal;
pub mod hpcc;
pub mod htsim;
pub mod incast;
pub mod long;
pub mod poisson;
pub mod requests;
pub mod shuffle;
pub mod table;
pub mod training;
pub mod yaps;

base::registry! {
    room AnyWorkload: Workload, env Env<'_>;
    named "workload", "workloads", "workload": "which flows hosts send";
    entries {
        poisson: Poisson,
        incast: Incast,
        long: Long,
        requests: Requests,
        shuffle: Shuffle,
        table: Table,
        hpcc: Hpcc,
        htsim: Htsim,
        yaps: Yaps,
        goal: Goal,
        chakra: Chakra,
        collective: Collective,
        training: Training,
    }
    methods {
        fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Draw, String>;
        fn arrivals(&self, env: &Env<'_>, streams: &mut Streams, when: &Outside) -> Result<Option<Vec<Drawn>>, String>;
        fn planned(&self) -> Option<&[Drawn]>;
        fn flows(&self) -> u64;
        fn files(&self) -> Vec<String>;
        fn reference(&self, env: &Env<'_>) -> Option<(Rate, Time)>;
        fn traffic(&self, env: &Env<'_>) -> Option<OfferedTraffic>;
        fn picks(&self, env: &Env<'_>) -> Option<Picks>;
        fn until_workload(&self) -> Option<&str>;
        fn clocked(&self) -> bool;
        fn fan_in(&self, env: &Env<'_>) -> Option<FanIn>;
        fn deadlines(&self, env: &Env<'_>) -> bool;
        fn offered(&self, env: &Env<'_>) -> Offered;
    }
    statics {
        /// Returns the parameters that have no effect with the values of the others.
        fn ignored() -> Vec<&'static str>;
    }
}

/// For the tests of the room's files.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::topology::testing::build;
    use base::params::{Raw, Reader};
    use std::collections::BTreeMap;
    use std::mem::take;

    /// Returns the flows, each with the ends of its joins in its own list.
    fn without_joins(Draw { mut flows, joins, .. }: Draw) -> Vec<Drawn> {
        let mut lists: Vec<Vec<(u32, Dur)>> = Vec::with_capacity(joins.len());
        let add = |list: &mut Vec<(u32, Dur)>, on: &[(u32, Dur)], lists: &[Vec<(u32, Dur)>]| {
            let ends = on.iter().flat_map(|(join, delay)| lists[*join as usize].iter().map(|(flow, gap)| (*flow, *gap + *delay)));
            let all: BTreeMap<u32, Dur> = ends.chain(list.iter().copied()).fold(BTreeMap::new(), |mut all, (flow, delay)| {
                let longest = all.entry(flow).or_insert(delay);
                *longest = delay.max(*longest);
                all
            });
            *list = all.into_iter().collect();
        };
        for mut join in joins {
            add(&mut join.flows, &join.joins, &lists);
            lists.push(join.flows);
        }
        for after in flows.iter_mut().filter_map(|flow| flow.after.as_mut()).filter(|after| !after.joins.is_empty()) {
            add(&mut after.flows, &take(&mut after.joins), &lists);
        }
        flows
    }

    /// A network and files to draw workloads on.
    pub struct Bench {
        pub net: Net,
        pub files: Files,
    }

    impl Bench {
        pub fn new(topology: &str, set: &[(&'static str, &str)]) -> Bench {
            Bench { net: build(topology, set), files: Files::default() }
        }
        pub fn env(&self) -> Env<'_> {
            let packets = Packets { mtu: 1500, header: 40 };
            Env { net: &self.net, packets, end: None, files: &self.files, index: 0, last_starts: &[], memory: Memory::UNLIMITED }
        }
        pub fn read(&self, kind: &str, set: &[(&'static str, &str)]) -> Result<AnyWorkload, String> {
            struct Given<'a>(&'a [(&'static str, &'a str)], Vec<String>);
            impl Reader for Given<'_> {
                fn get(&mut self, key: &'static str) -> Option<Raw> {
                    self.0.iter().find(|(k, _)| *k == key).map(|(_, v)| Raw::Str((*v).to_owned()))
                }
                fn fail(&mut self, key: &'static str, message: String) {
                    self.1.push(format!("{key}: {message}"));
                }
            }
            let mut given = Given(set, Vec::new());
            let params = AnyParams::read(kind, &mut given).expect("a kind of the room");
            let found = params.check(&self.env()).into_iter().map(|p| format!("{}: {}", p.key, p.message));
            given.1.extend(found);
            if given.1.is_empty() { Ok(params.build(&self.env())) } else { Err(given.1.join("\n")) }
        }
        /// Returns the flows of a workload, each with all ends for which it waits.
        pub fn draw(&self, kind: &str, set: &[(&'static str, &str)], seed: u64) -> Vec<Drawn> {
            without_joins(self.draw_all(kind, set, seed))
        }
        /// Returns the number of flows of a workload and the number of waits of its flows and joins.
        pub fn count(&self, kind: &str, set: &[(&'static str, &str)]) -> [usize; 2] {
            let Draw { flows, joins, .. } = self.draw_all(kind, set, 1);
            let of_flows = flows.iter().flat_map(|flow| &flow.after).map(|after| after.flows.len() + after.joins.len());
            let waits = of_flows.chain(joins.iter().map(|join| join.flows.len() + join.joins.len())).sum();
            [flows.len(), waits]
        }
        fn draw_all(&self, kind: &str, set: &[(&'static str, &str)], seed: u64) -> Draw {
            let machine = self.read(kind, set).unwrap();
            let draw = machine.draw(&self.env(), &mut Streams::new(seed)).unwrap();
            let flows = &draw.flows;
            let Offered { sizes, .. } = machine.offered(&self.env());
            assert!(sizes.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) && sizes.last().unwrap().1 == 1.0, "{sizes:?}");
            assert!(flows.iter().all(|f| sizes[0].0 <= f.size_bytes), "{sizes:?}");
            assert!(flows.len() as u64 <= machine.flows());
            assert!(flows.iter().all(|f| f.src != f.dst && f.size_bytes > 0));
            draw
        }
    }
}
