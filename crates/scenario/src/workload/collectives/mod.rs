//! Collectives as messages between ranks: the algorithms that workloads share.
//!
//! | operation | algorithms |
//! |---|---|
//! | all-reduce | ring, tree, recursive, hierarchical, direct |
//! | all-gather, reduce-scatter | ring, recursive, direct |
//! | all-to-all | direct, pairwise, by_rail |
//! | broadcast | ring, tree |
//! | send | direct |
//!
//! With n ranks and S bytes (the size of nccl-tests), each rank sends 2(n-1)/n S bytes in an
//! all-reduce in a ring, by recursive halving and doubling, or directly; (n-1)/n S in an all-gather, a
//! reduce-scatter and an all-to-all; at most 2S in a tree; S in a send.
//!
//! Data is cut over channels, which are parallel connections, and the data of a channel into slices
//! of messages of at most `chunk` bytes. Slices go through an algorithm independently. A message waits
//! for the data that it forwards, and for the message a window before it on the same connection.
//!
//! A rank has ended its part when it has received all messages for it and its own messages through
//! the network have arrived.

pub mod direct;
pub mod local;
pub mod messages;
pub mod planned;
pub mod recursive;
pub mod ring;
pub mod tree;

use super::program::{Program, Ranks};
use super::tasks::Moved;
use base::params::Auto;
use base::{Bytes, math};
use direct::PairContent;
use messages::{Begun, Member, Messages, SlicedData};
use std::collections::BTreeMap;

base::choice! {
    /// The algorithm of a collective.
    pub enum Algorithm {
        /// Each rank sends to the next rank, step by step; a broadcast passes from rank to rank.
        Ring = "ring",
        /// All-reduce: two binary trees between servers, with a chain in each server. Broadcast: a binomial tree.
        Tree = "tree",
        /// Recursive halving and doubling, for a power of two of ranks.
        Recursive = "recursive",
        /// Reduce-scatter within servers, rings between the ranks at the same place of all servers, all-gather
        /// within servers.
        Hierarchical = "hierarchical",
        /// Each rank sends to all ranks that need its data, at the same time.
        Direct = "direct",
        /// Each rank sends to one rank at a time.
        Pairwise = "pairwise",
        /// Within the server to the rank at the place of the receiver, then to the receiver: data stays on its rail.
        ByRail = "by_rail",
    }
}

base::choice! {
    /// The operation of a collective.
    pub enum CollectiveOp {
        /// Every rank gets the sum of the data of all ranks.
        AllReduce = "all_reduce",
        /// Every rank gets the data of all ranks.
        AllGather = "all_gather",
        /// Every rank gets its part of the sum of the data of all ranks.
        ReduceScatter = "reduce_scatter",
        /// Every rank sends a part of its data to each other rank.
        AllToAll = "all_to_all",
        /// Every rank gets the data of rank 0.
        Broadcast = "broadcast",
        /// Every rank sends its data to the next rank.
        Send = "send",
    }
}

impl CollectiveOp {
    /// Returns what a collective of S bytes moves between `ranks` ranks. Source: nccl-tests,
    /// doc/PERFORMANCE.md.
    pub fn moved(self, bytes: u64, ranks: u32) -> Moved {
        let share = |times: u32| (u128::from(bytes) * u128::from(times * (ranks - 1)) / u128::from(ranks)) as u64;
        let (operation, bus_bytes) = match self {
            CollectiveOp::AllReduce => ("all_reduce", share(2)),
            CollectiveOp::AllGather => ("all_gather", share(1)),
            CollectiveOp::ReduceScatter => ("reduce_scatter", share(1)),
            CollectiveOp::AllToAll => ("all_to_all", share(1)),
            CollectiveOp::Broadcast => ("broadcast", bytes),
            CollectiveOp::Send => ("send", bytes),
        };
        Moved { operation, bytes, bus_bytes }
    }
    /// Returns the algorithms of the operation, the default first.
    pub fn algorithms(self) -> &'static [Algorithm] {
        use Algorithm::{ByRail, Direct, Hierarchical, Pairwise, Recursive, Ring, Tree};
        match self {
            CollectiveOp::AllReduce => &[Ring, Tree, Recursive, Hierarchical, Direct],
            CollectiveOp::AllGather | CollectiveOp::ReduceScatter => &[Ring, Recursive, Direct],
            CollectiveOp::AllToAll => &[Direct, Pairwise, ByRail],
            CollectiveOp::Broadcast => &[Ring, Tree],
            CollectiveOp::Send => &[Direct],
        }
    }
}

base::params! {
    /// Parameters of workloads with collectives.
    pub struct Common {
        ..hosts: Ranks {}
        /// Number of channels, which are parallel connections; `auto`: in rings and trees, the number of
        /// ranks on a server, and 1 otherwise.
        channels: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_024), "NCCL: at least one for each NIC";
        /// Largest message.
        chunk: Bytes = "512KiB" in Bytes(1)..=Bytes(1_000_000_000_000), "NCCL: a buffer of 4 MiB in 8 steps";
        /// Number of messages of a rank to another rank on a channel that may be under way; `auto`: 1 in broadcasts
        /// and trees, 8 otherwise.
        window: Auto<u32> = "auto" in Auto::Set(1)..=Auto::Set(1_000_000), "NCCL: NCCL_STEPS is 8, in order on a connection";
    }
}

impl Common {
    /// Returns how the data of a collective is cut. `servers` are the servers of its ranks.
    pub fn cutting(&self, op: CollectiveOp, algorithm: Algorithm, servers: impl Iterator<Item = u32>) -> Cutting {
        let each = || {
            let mut ranks: BTreeMap<u32, u32> = BTreeMap::new();
            servers.for_each(|server| *ranks.entry(server).or_default() += 1);
            ranks.into_values().max().unwrap_or(1)
        };
        let channels = match (self.channels, algorithm) {
            (Auto::Set(channels), _) => channels,
            (Auto::Auto, Algorithm::Ring | Algorithm::Tree) => each().min(1_024),
            (Auto::Auto, _) => 1,
        };
        // Messages of a connection share its link, so that eight of them would all arrive late, and those that
        // forward them would wait.
        let in_order = op == CollectiveOp::Broadcast || algorithm == Algorithm::Tree;
        let window = self.window.or(if in_order { 1 } else { 8 });
        Cutting { channels, chunk: self.chunk, window: Some(window) }
    }
    /// Returns the parameters that have no effect with the values of the others.
    pub fn ignored(&self) -> Vec<&'static str> {
        let unused = [("local_rate", self.hosts.per_server == 1), ("first_host", !self.hosts.is_by_name())];
        unused.into_iter().filter(|(_, unused)| *unused).map(|(key, _)| key).collect()
    }
}

/// Divides `bytes` among `n` receivers in proportion to 1, 2^-skew, 3^-skew and so on (Zipf's law). Parts
/// are rounded down.
pub fn zipf(bytes: u64, n: usize, skew: f64) -> Vec<u64> {
    // With 32 bits after the point.
    let weight = |k: usize| math::floor(math::pow(k as f64, -skew) * (1u64 << 32) as f64) as u128;
    let weights: Vec<u128> = (1..=n).map(weight).collect();
    let total: u128 = weights.iter().sum();
    weights.into_iter().map(|weight| (u128::from(bytes) * weight / total) as u64).collect()
}

/// How data is cut into messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutting {
    /// Number of parallel connections between two ranks.
    pub channels: u32,
    /// Largest message in bytes.
    pub chunk: Bytes,
    /// Number of messages of a connection that may be under way; `None`: no limit.
    pub window: Option<u32>,
}

/// A collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The operation.
    pub op: CollectiveOp,
    /// The algorithm, one of those of the operation.
    pub algorithm: Algorithm,
    /// The size S of nccl-tests.
    pub bytes: u64,
    /// All-to-all: bytes to each member; empty: S divided by the number of members.
    pub sizes: Vec<u64>,
    /// How its data is cut.
    pub cutting: Cutting,
}

/// Returns the members of each server, in the order of their places.
pub fn servers(members: &[Member]) -> Vec<Vec<u32>> {
    let mut by_server: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (index, member) in (0..).zip(members) {
        by_server.entry(member.server).or_default().push(index);
    }
    let sorted = |mut server: Vec<u32>| {
        server.sort_by_key(|index| members[*index as usize].slot);
        server
    };
    by_server.into_values().map(sorted).collect()
}

impl Collective {
    /// Returns what is wrong with the algorithm for these members, and a hint.
    pub fn problem(&self, members: &[Member]) -> Option<(String, String)> {
        let known = self.op.algorithms();
        let word = |algorithm: &Algorithm| base::params::Param::show(algorithm);
        let name = word(&self.algorithm);
        if !known.contains(&self.algorithm) {
            let names: Vec<String> = known.iter().map(|other| format!("`{}`", word(other))).collect();
            let op = base::params::Param::show(&self.op);
            return Some((format!("`{name}` is not an algorithm of `{op}`"), format!("write one of {}", names.join(", "))));
        }
        let n = members.len();
        let alike = || {
            let servers = servers(members);
            let slots = |server: &Vec<u32>| server.iter().map(|index| members[*index as usize].slot).collect::<Vec<_>>();
            servers.iter().all(|server| slots(server) == slots(&servers[0]))
        };
        let servers_differ = || {
            let hint = "set `per_server`, and place the ranks on whole servers: `placement = \"packed\"`";
            (format!("`{name}` needs ranks at the same places of all servers"), hint.to_owned())
        };
        match self.algorithm {
            Algorithm::Recursive if !n.is_power_of_two() => {
                let below = n.next_power_of_two() / 2;
                Some((
                    format!("`{name}` needs a power of two of ranks, but there are {n}"),
                    format!("write {below} or {} ranks", 2 * below),
                ))
            }
            Algorithm::Hierarchical | Algorithm::ByRail if !alike() => Some(servers_differ()),
            _ => None,
        }
    }

    /// Returns the number of messages, those within servers included.
    pub fn messages(&self, members: &[Member]) -> u64 {
        use CollectiveOp::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter, Send};
        let n = members.len() as u64;
        let steps = || u64::from(n.max(1).ilog2());
        let between = || servers(members).len() as u64 - 1;
        let within = || n / (between() + 1) - 1;
        let each = match (self.op, self.algorithm) {
            (AllReduce, Algorithm::Recursive) => 2 * n * steps(),
            (AllReduce, Algorithm::Tree) => 4 * (n - 1),
            (AllReduce, Algorithm::Hierarchical) => 2 * n * (within() + between()),
            (AllReduce, _) => 2 * n * (n - 1),
            (AllGather | ReduceScatter, Algorithm::Recursive) => n * steps(),
            (AllToAll, Algorithm::ByRail) => n * (within() + between()),
            (AllGather | ReduceScatter | AllToAll, _) => n * (n - 1),
            (Broadcast, _) => n - 1,
            (Send, _) => {
                if n > 1 {
                    n
                } else {
                    0
                }
            }
        };
        each.saturating_mul(self.data(members).slices().into())
    }

    /// Returns the data: how many blocks, and how they are cut.
    fn data(&self, members: &[Member]) -> SlicedData {
        use CollectiveOp::{AllToAll, Broadcast, Send};
        let n = members.len() as u32;
        let blocks = match (self.op, self.algorithm) {
            (Broadcast | Send, _) => 1,
            (_, Algorithm::Tree) => 2,
            _ => n,
        };
        let even = || (0..blocks).map(|block| messages::part(self.bytes, block, blocks)).collect();
        let sizes: Vec<u64> = if self.op == AllToAll && !self.sizes.is_empty() { self.sizes.clone() } else { even() };
        // The largest message, if blocks are not cut.
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let together = match self.algorithm {
            Algorithm::Recursive => u64::from(n / 2),
            Algorithm::ByRail => u64::from(n) / servers(members).len().max(1) as u64,
            _ => 1,
        };
        let channels = self.cutting.channels;
        let most = self.cutting.chunk.0.saturating_mul(channels.into()).max(1);
        let pieces = largest.saturating_mul(together).div_ceil(most).clamp(1, u64::from(u32::MAX / channels)) as u32;
        SlicedData { sizes, channels, pieces }
    }

    /// Adds the messages of the collective to a program, as a group. Returns by member the operation
    /// that ends its part.
    pub fn add(&self, program: &mut Program, group: u32, members: &[Member]) -> Vec<u32> {
        let mut messages = Messages::new(program, group, members, self.data(members), self.cutting.window);
        self.run(&mut messages);
        messages.end()
    }

    /// Adds the messages.
    fn run(&self, messages: &mut Messages<'_>) {
        use CollectiveOp::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter, Send};
        let n = messages.members().len() as u32;
        if n < 2 {
            return;
        }
        if self.op == AllReduce {
            messages.implies_begin();
        }
        if matches!(self.algorithm, Algorithm::Ring | Algorithm::Tree) {
            // Slices of a channel pass a server one after another, at the pace of the network.
            messages.share_among(self.cutting.channels);
        }
        let nothing = ring::nothing(messages);
        match (self.op, self.algorithm) {
            (AllReduce, Algorithm::Tree) => tree::double_binary(messages),
            (AllReduce, Algorithm::Hierarchical) => ring::hierarchical(messages),
            (AllReduce | AllGather | ReduceScatter, Algorithm::Recursive) => {
                recursive::recursive(messages, self.op != AllGather, self.op != ReduceScatter);
            }
            (AllReduce | AllGather | ReduceScatter, Algorithm::Ring) => {
                let orders = ring::orders(messages.members(), self.cutting.channels);
                let blocks: Vec<Vec<u32>> = (0..n).map(|member| vec![member]).collect();
                let rings = ring::RingSteps { orders: &orders, blocks: &blocks, begun: Begun::FirstOutside };
                let first = if self.op == AllGather { n - 1 } else { 0 };
                let end = if self.op == ReduceScatter { n - 1 } else { 2 * (n - 1) };
                rings.add(messages, first..end, &nothing);
            }
            (AllReduce | AllGather | ReduceScatter, _) => {
                let mut ready = nothing;
                if self.op != AllGather {
                    ready = direct::direct(messages, PairContent::ReduceScatter, &ready);
                }
                if self.op == AllReduce {
                    // A member adds its own data.
                    let begins = messages.members().iter().map(|member| member.begin).cycle();
                    ready.iter_mut().zip(begins).for_each(|(ready, begin)| ready.push(begin));
                }
                if self.op != ReduceScatter {
                    direct::direct(messages, PairContent::AllGather, &ready);
                }
            }
            (AllToAll, Algorithm::Pairwise) => direct::pairwise(messages),
            (AllToAll, Algorithm::ByRail) => direct::by_rail(messages),
            (AllToAll, _) => drop(direct::direct(messages, PairContent::AllToAll, &nothing)),
            (Broadcast, Algorithm::Tree) => drop(tree::binomial(messages, 0, false, begins(messages))),
            (Broadcast, _) => ring::chain(messages, self.cutting.channels, 0),
            (Send, _) => ring::shift(messages),
        }
    }
}

/// Returns by slice and member the operation after which the part of the member begins.
pub fn begins(messages: &Messages<'_>) -> Vec<Vec<u32>> {
    let members = messages.members().len();
    let all = messages.members().iter().cycle().take(members * messages.slices() as usize);
    all.map(|member| vec![member.begin]).collect()
}

#[cfg(test)]
mod tests;
