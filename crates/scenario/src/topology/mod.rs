//! Room: topologies. Each builds the network of a run: hosts, switches, cables.
//!
//! Hosts come first and are `h0`, `h1`, ...; the ports of a node are numbered from those to hosts
//! upwards. All cables are full duplex.

use crate::files::Files;
use base::{Dur, Fraction, Rate};
use fabric::net::NetBuilder;

/// A topology.
pub trait Topology {
    /// Returns the size of the network.
    fn size(&self) -> Size;
    /// Adds nodes and cables to `net`. Called only if the size is within the memory limit.
    fn build(&self, net: &mut NetBuilder);
    /// Returns the files that the topology reads.
    fn files(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The size of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Number of hosts.
    pub hosts: u64,
    /// Number of switches.
    pub switches: u64,
    /// Number of cables.
    pub cables: u64,
}

/// The environment of a topology.
#[derive(Clone, Copy)]
pub struct Env<'a> {
    /// The files of the scenario.
    pub files: &'a Files,
}

/// Lowest link rate allowed. Below it, a packet takes more than a second.
pub const MIN_RATE: Rate = Rate(10_000);
/// Highest link rate allowed.
pub const MAX_RATE: Rate = Rate(100_000_000_000_000);
/// Shortest propagation delay allowed. Without delay, cause and effect would have the same time.
pub const MIN_DELAY: Dur = Dur(1);
/// Longest propagation delay allowed.
pub const MAX_DELAY: Dur = Dur::from_secs(10);

/// Highest loss probability of a link. With a higher loss, a flow would never end.
pub const MAX_LOSS: Fraction = Fraction(500_000_000);
/// Longest processing delay of a host.
pub const MAX_HOST_DELAY: Dur = Dur::from_secs(1);

base::params! {
    /// Parameters of the cables of every topology.
    pub struct Cables {
        /// Probability that a link loses a packet, independently for each packet.
        loss: Fraction = "0" in Fraction(0)..=MAX_LOSS, "cables lose next to nothing", quiet;
        /// Time that a host takes to process a packet; added to the delay of both directions of
        /// every host's cable.
        host_delay: Dur = "0ps" in Dur(0)..=MAX_HOST_DELAY, "only the delay of links", quiet;
    }
}

impl Cables {
    /// Applies these values to all cables that are added to the network after this call.
    pub fn set(&self, net: &mut NetBuilder) {
        net.set_loss(self.loss);
        net.set_host_delay(self.host_delay);
    }
}

mod edges;
pub(crate) mod memory;

pub mod chain;
pub mod dumbbell;
pub mod fat_tree;
pub mod file;
pub mod graph;
pub mod hpcc;
pub mod htsim;
pub mod leaf_spine;
pub mod rail;
pub mod single_tree;
pub mod star;
pub mod three_tier;

base::registry! {
    room AnyTopology: Topology, env Env<'_>;
    named "topology", "topologies", "topology": "how nodes are connected";
    entries {
        single_tree: SingleTree,
        star: Star,
        dumbbell: Dumbbell,
        chain: Chain,
        leaf_spine: LeafSpine,
        fat_tree: FatTree,
        three_tier: ThreeTier,
        rail: Rail,
        file: File,
        graph: Graph,
        hpcc: Hpcc,
        htsim: Htsim,
    }
    methods {
        fn size(&self) -> Size;
        fn build(&self, net: &mut NetBuilder);
        fn files(&self) -> Vec<String>;
    }
}

/// For the tests of the room's files.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use base::LinkId;
    use fabric::net::Net;

    /// Builds `kind` with its defaults, except the parameters in `set`.
    pub fn build(kind: &str, set: &[(&'static str, &str)]) -> Net {
        struct Given<'a>(&'a [(&'static str, &'a str)]);
        impl base::params::Reader for Given<'_> {
            fn get(&mut self, key: &'static str) -> Option<base::params::Raw> {
                self.0.iter().find(|(k, _)| *k == key).map(|(_, v)| base::params::Raw::Str((*v).to_owned()))
            }
            fn fail(&mut self, key: &'static str, message: String) {
                panic!("{key}: {message}");
            }
        }
        let files = Files::default();
        let env = Env { files: &files };
        let params = AnyParams::read(kind, &mut Given(set)).expect("a kind of the room");
        assert_eq!(params.check(&env), []);
        let machine = params.build(&env);
        let mut builder = NetBuilder::default();
        machine.build(&mut builder);
        let net = builder.build();
        let size = machine.size();
        let hosts = net.hosts().len() as u64;
        let built = Size { hosts, switches: net.nodes().len() as u64 - hosts, cables: net.links().len() as u64 / 2 };
        assert_eq!(size, built, "the announced size of {kind}");
        net
    }
    /// Returns the links as text: `h0->tor0 1Gbps 10us`.
    pub fn links(net: &Net) -> Vec<String> {
        let show = |(i, l): (usize, &fabric::net::Link)| format!("{} {} {}", net.link_name(LinkId(i as u32)), l.rate, l.delay);
        net.links().iter().enumerate().map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topology_has_losses_and_delays_of_hosts() {
        for entry in ENTRIES.iter().filter(|entry| entry.fields.iter().all(|field| field.name != "path")) {
            let [plain, set] = [&[][..], &[("loss", "0.01"), ("host_delay", "20us")]].map(|set| testing::build(entry.name, set));
            for (before, link) in plain.links().iter().zip(set.links()) {
                let hosts = [link.from, link.to].iter().filter(|node| set.host(**node).is_some()).count() as u64;
                let expected = (Fraction(10_000_000), before.delay + Dur::from_us(20) * hosts);
                assert_eq!((before.loss, (link.loss, link.delay)), (Fraction(0), expected), "{}", entry.name);
            }
        }
    }

    /// The default must equal the value as `show` prints it.
    #[test]
    fn quiet_parameters_are_left_out_at_their_defaults() {
        let shown = base::params::Params::show(&<Cables as base::params::Params>::defaults());
        let fields = <Cables as base::params::Params>::FIELDS;
        assert!(shown.iter().zip(fields).all(|((_, value), field)| field.leaves_out(value)), "{shown:?}");
    }
}
