//! Room: workloads. Each draws its flows before the run, from the network and the seed alone, so that all systems see the same.
//!
//! Streams, with the workload's index: `workload/arrivals`, `workload/sizes`, `workload/pairs`, `workload/ports`.

use crate::files::Files;
use base::{Dur, HostId, Offered, Rate, Streams, Time};
use fabric::net::Net;

pub mod after;
pub mod cdf;
pub mod hosts;
pub mod listed;
pub mod load;
pub mod pairs;
pub mod program;
pub mod size;
pub mod sizes;

use load::OfferedTraffic;
use size::{Packets, Unit};

/// A workload.
pub trait Workload {
    /// Draws its flows, in any order. The error is a sentence.
    fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Vec<Drawn>, String>;
    /// Of an open loop that goes on as it began: the flows that it would draw between two times outside its own, from streams of this name.
    /// `None`: it has an end of its own, or waits for what its flows do.
    fn arrivals(&self, _env: &Env<'_>, _streams: &mut Streams, _when: &Outside) -> Result<Option<Vec<Drawn>>, String> {
        Ok(None)
    }
    /// How many flows it has at most.
    fn flows(&self) -> u64;
    /// The files that it reads.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
    /// What its load refers to: the reference rate and the start of its arrivals. `None`: it has no load.
    fn reference(&self, _env: &Env<'_>) -> Option<(Rate, Time)> {
        None
    }
    /// What it offers between hosts on average. `None`: its flows come once and have no rate.
    fn traffic(&self, _env: &Env<'_>) -> Option<OfferedTraffic> {
        None
    }
    /// The workload until whose last start it goes on, if it names one.
    fn until_workload(&self) -> Option<&str> {
        None
    }
    /// How many of its flows reach one host at once. `None`: as many as chance has it.
    fn fan_in(&self, _env: &Env<'_>) -> Option<FanIn> {
        None
    }
    /// Whether it draws deadlines itself, for some flow at least: a law of deadlines may give them to all others.
    fn deadlines(&self, _env: &Env<'_>) -> bool {
        false
    }
    /// Its load and its size law, for parts that set themselves by them. Without sizes when its files cannot be read.
    fn offered(&self, env: &Env<'_>) -> Offered;
}

/// Flows that reach one host at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FanIn {
    /// How many.
    pub flows: u64,
    /// Application bytes of the largest.
    pub size_bytes: u64,
    /// Time over which they start.
    pub spread: Dur,
}

/// A flow as a workload draws it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// Sending host.
    pub src: HostId,
    /// Receiving host, another one.
    pub dst: HostId,
    /// Application bytes, at least 1.
    pub size_bytes: u64,
    /// When the application opens it; of no meaning for a flow that waits.
    pub start: Time,
    /// When it should have finished; for a flow that waits, counted from its start.
    pub deadline: Option<Time>,
    /// Flows that belong together, within the workload.
    pub group: Option<u32>,
    /// The flows that it waits for, if it does.
    pub after: Option<After>,
}

/// What a flow waits for before it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct After {
    /// Other flows of the workload by their place in the drawing, at least one, each with the time from its end to the start.
    pub flows: Vec<(u32, Dur)>,
    /// The flow starts no sooner.
    pub not_before: Time,
    /// From the start of one of these flows to the time at which it counts as ended for this flow, if it has not ended by then.
    pub give_up_after: Option<Dur>,
}

impl After {
    /// A flow that starts a delay after the last end of these flows.
    pub fn new(flows: &[u32], delay: Dur) -> After {
        After { flows: flows.iter().map(|flow| (*flow, delay)).collect(), not_before: Time::ZERO, give_up_after: None }
    }
}

/// A time outside the arrivals of a workload: before them, on a clock that begins then, or behind them.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// Part of the names of the random streams.
    pub name: &'static str,
    /// Where it begins.
    pub from: Time,
    /// Where it ends.
    pub until: Time,
}

/// What a workload knows of its run.
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
    /// The workload's number in the scenario.
    pub index: u64,
    /// The last starts of the workloads that are drawn, by name.
    pub last_starts: &'a [(String, Time)],
}

/// No flow starts later, and no run ends later: 11.5 days.
pub const MAX_TIME: Dur = Dur::from_secs(1_000_000);

impl Env<'_> {
    /// The last start of another workload, if that workload is drawn.
    fn last_start(&self, name: &str) -> Option<Time> {
        self.last_starts.iter().find(|(known, _)| known == name).map(|(_, start)| *start)
    }
    /// Application bytes of a size given in `unit`.
    fn payload(&self, size: u64, unit: Unit) -> u64 {
        self.packets.payload(size, unit)
    }
}

pub mod chakra;
pub mod goal;
pub mod hpcc;
pub mod htsim;
pub mod incast;
pub mod long;
pub mod poisson;
pub mod requests;
pub mod shuffle;
pub mod table;
pub mod yaps;

base::registry! {
    room AnyWorkload: Workload, env Env<'_>;
    named "workload", "workloads", "workload": "which flows there are";
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
    }
    methods {
        fn draw(&self, env: &Env<'_>, streams: &mut Streams) -> Result<Vec<Drawn>, String>;
        fn arrivals(&self, env: &Env<'_>, streams: &mut Streams, when: &Outside) -> Result<Option<Vec<Drawn>>, String>;
        fn flows(&self) -> u64;
        fn files(&self) -> Vec<String>;
        fn reference(&self, env: &Env<'_>) -> Option<(Rate, Time)>;
        fn traffic(&self, env: &Env<'_>) -> Option<OfferedTraffic>;
        fn until_workload(&self) -> Option<&str>;
        fn fan_in(&self, env: &Env<'_>) -> Option<FanIn>;
        fn deadlines(&self, env: &Env<'_>) -> bool;
        fn offered(&self, env: &Env<'_>) -> Offered;
    }
    statics {
        /// Parameters that have no effect beside the others.
        fn ignored() -> Vec<&'static str>;
    }
}

/// For the tests of the room's files.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::topology::testing::build;
    use base::params::{Raw, Reader};

    /// What a workload makes on a network.
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
            Env { net: &self.net, packets, end: None, files: &self.files, index: 0, last_starts: &[] }
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
        pub fn draw(&self, kind: &str, set: &[(&'static str, &str)], seed: u64) -> Vec<Drawn> {
            let machine = self.read(kind, set).unwrap();
            let flows = machine.draw(&self.env(), &mut Streams::new(seed)).unwrap();
            let Offered { sizes, .. } = machine.offered(&self.env());
            assert!(sizes.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1) && sizes.last().unwrap().1 == 1.0, "{sizes:?}");
            assert!(flows.iter().all(|f| sizes[0].0 <= f.size_bytes), "{sizes:?}");
            assert!(flows.len() as u64 <= machine.flows());
            assert!(flows.iter().all(|f| f.src != f.dst && f.size_bytes > 0));
            flows
        }
    }
}
