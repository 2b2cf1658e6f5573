//! One collective operation, repeated: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast
//! or send. The messages of ranks are flows that wait for the messages that they forward.
//!
//! | algorithm | messages between n ranks, size S as in nccl-tests |
//! |---|---|
//! | `ring` | all-reduce: 2(n-1) steps of S/n to the next rank; all-gather, reduce-scatter: n-1 steps; broadcast: S from rank to rank |
//! | `tree` | all-reduce: halves of S up and down two binary trees of servers, with a chain in each server; broadcast: S down a binomial tree |
//! | `recursive` | exchanges of S/2, S/4, ... S/n with ranks n/2, n/4, ... 1 away (reduce-scatter), and back (all-gather) |
//! | `hierarchical` | reduce-scatter in a ring within each server of k ranks, k rings of S/k between servers, one for each place, and all-gather in a ring within each server |
//! | `direct` | S/n to each other rank at once; all-reduce: twice; send: S to the next rank |
//! | `pairwise` | all-to-all: S/n to one rank at a time |
//! | `by_rail` | all-to-all: within the server to the rank at the place of the receiver, then k S/n to each rank at this place of other servers |
//!
//! Data is cut over `channels`, and the data of a channel into messages of at most `chunk` bytes,
//! which go through the algorithm independently: a message waits only for the data that it forwards,
//! and for the message `window` places before it from its rank to the same rank on its channel.
//!
//! Rings follow the order of the ranks. On channel c, consecutive ranks of a server are rotated by c
//! places, and every other server is passed in reverse, so that a ring leaves a server and enters the
//! next at the same rail. With as many channels as ranks of a server, each NIC sends for one ring.
//!
//! In the next iteration a rank begins when its part of this iteration has ended, plus `compute`: when
//! it has received all its data, and its own messages have arrived. An iteration is a group.
//!
//! Source: NCCL (rings, channels, chunks and windows: `calcCollChunking` in src/enqueue.cc, `DEFAULT_BUFFSIZE` in
//! src/init.cc, `NCCL_STEPS` in src/include/device.h; double binary trees since 2.4: src/graph/trees.cc, Sanders,
//! Speck and Träff 2009; rails: PXN since 2.12); Thakur, Rabenseifner and Gropp,
//! "Optimization of Collective Communication Operations in MPICH", IJHPCA 2005 (recursive, pairwise); sizes:
//! nccl-tests, doc/PERFORMANCE.md.
//!
//! Model: sums take no time, and neither do copies. Messages within a server take their bytes over a
//! share of `local_rate`: in rings and trees, the channels of a rank share it equally; in other
//! algorithms, all messages that a rank sends within its server in a step. There is no other
//! contention inside a server, and no window within it. In a ring, a rank forwards data within its server also
//! before it has begun. The protocols LL and LL128 of NCCL, which
//! send small messages with flags, are not modelled.
//!
//! Assumed: a message has at most one of the eight steps of a buffer, whereas NCCL's rings send two steps at
//! a time, except in a broadcast (`ALLREDUCE_SLICESTEPS` in src/include/collectives.h): give `chunk = "1MiB"` and
//! `window = 4`. NCCL sends the messages of a channel in order, one after another; here they are flows that
//! share the link. Where ranks forward messages along a chain (broadcasts, trees), a window above 1 delays all
//! of them, unless the transport sends messages to a peer in order (`connections = "peer"`, `queue_pairs = "peer"`).
//! A rank has ended when its own messages have arrived, so that it may use their buffers again.
//! In `pairwise`, the next message of a slice is sent when the messages before it, in both directions,
//! have arrived. With `skew`, the data of an all-to-all is divided in proportion to k^-skew, where k is
//! the popularity of the receiver; all ranks agree on the popularity, which is drawn at random.

use super::collectives::messages::Member;
use super::collectives::planned::{PlanFlows, PlannedFlows};
use super::collectives::{self, Algorithm, CollectiveOp, Common, zipf};
use super::listed::{Hosts, once};
use super::program::{Act, Placed, Program};
use super::tasks::Task;
use super::{Draw, Env, MAX_TIME};
use base::params::{Auto, Param as _, Problem};
use base::registry::Meta;
use base::{Bytes, Dur, Rng};
use std::sync::Arc;

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "an all-reduce, all-gather, reduce-scatter, all-to-all, broadcast or send, repeated",
    source: "NCCL; Thakur et al., IJHPCA 2005; Sanders et al. 2009",
    ..Meta::PLAIN
};

base::params! {
    /// Parameters of a collective.
    pub struct Params {
        ..common: Common {}
        /// The operation.
        op: CollectiveOp = "all_reduce", "the gradients of data-parallel training";
        /// The algorithm; `auto`: `ring` if the operation has it, or else `direct`.
        algorithm: Auto<Algorithm> = "auto", "NCCL: rings for large messages";
        /// The size S of nccl-tests: of the data that a rank has before a reduction or a broadcast, or
        /// after an all-gather; all-to-all: of the data of a rank for all ranks.
        bytes: Bytes = "" in Bytes(1)..=Bytes(1_000_000_000_000), "";
        /// Number of ranks; `auto`: all hosts of `placement`.
        ranks: Auto<u32> = "auto" in Auto::Set(2)..=Auto::Set(1_000_000), "every host takes part";
        /// Exponent of Zipf's law for the popularity of receivers in an all-to-all; 0: all alike.
        skew: f64 = "0" in 0.0..=10.0, "experts with equal load";
        /// Number of repetitions.
        iterations: u32 = "1" in 1..=1_000_000, "one operation";
        /// Time that each rank computes between two repetitions.
        compute: Dur = "0s" in Dur::ZERO..=MAX_TIME, "nccl-tests: one after another";
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    let flows = match PlacedCollective::new(params, env) {
        Ok(_) => Collective::new(params, env).draw,
        Err(problem) => return vec![problem],
    };
    let problem = |message| Problem { key: "iterations", message, hint: "use fewer iterations or ranks".to_owned() };
    flows.err().map(problem).into_iter().collect()
}

/// What follows from the parameters before any message is planned.
struct PlacedCollective<'a> {
    params: &'a Params,
    placed: Placed,
}

impl<'a> PlacedCollective<'a> {
    /// Places the ranks, and checks that they can run the collective.
    fn new(params: &'a Params, env: &Env<'_>) -> Result<Self, Problem> {
        let problem = |key, message: String, hint: &str| Err(Problem { key, message, hint: hint.to_owned() });
        let mut placed = match params.common.hosts.placed(params.ranks.or(0) as usize, &Hosts::of(env)) {
            Ok(placed) => placed,
            Err(message) => return problem("placement", message, "use fewer ranks, or a larger network"),
        };
        if let Auto::Set(ranks) = params.ranks {
            placed.hosts.truncate(ranks as usize);
        }
        let planned = PlacedCollective { params, placed };
        let (placed, n) = (&planned.placed, planned.placed.hosts.len() as u32);
        if n < 2 {
            let message = format!("a collective needs two ranks, but `placement` has hosts for {n}");
            return problem("ranks", message, "place more ranks");
        }
        let (collective, members) = (planned.collective(Vec::new()), members(placed, n));
        if let Some((message, hint)) = collective.problem(&members) {
            return problem("algorithm", message, &hint);
        }
        if (1..n).all(|rank| placed.server(rank) == placed.server(0)) {
            let message = format!("all {n} ranks are on one server, so that no message enters the network");
            return problem("ranks", message, "place ranks on several servers, or lower `per_server`");
        }
        let messages = collective.messages(&members).saturating_mul(params.iterations.into());
        if let Err(message) = env.fit(messages) {
            return problem("chunk", message, "raise `chunk`, or use fewer channels, iterations or ranks");
        }
        Ok(planned)
    }
    fn collective(&self, sizes: Vec<u64>) -> collectives::Collective {
        let p = self.params;
        let algorithm = p.algorithm.or(p.op.algorithms()[0]);
        let cutting = p.common.cutting(p.op, algorithm, (0..self.placed.hosts.len() as u32).map(|rank| self.placed.server(rank)));
        collectives::Collective { op: p.op, algorithm, bytes: p.bytes.0, sizes, cutting }
    }
    /// Returns the program of the ranks.
    fn program(&self, collective: &collectives::Collective) -> Program {
        let n = self.placed.hosts.len() as u32;
        let mut program = Program::new(n as usize);
        let mut members = members(&self.placed, n);
        let mut ends: Vec<u32> = Vec::new();
        let moved = collective.op.moved(collective.bytes, n);
        for iteration in 0..self.params.iterations {
            let computes = self.params.compute > Dur::ZERO && iteration > 0;
            let computation = Task { name: "compute".to_owned(), iteration, collective: None, parallelism: None };
            let computation = computes.then(|| program.task(computation));
            for (i, member) in members.iter_mut().enumerate() {
                let mut after: Vec<u32> = ends.get(i).copied().into_iter().collect();
                if let Some(task) = computation {
                    let op = program.add(member.rank, Act::Compute(self.params.compute), after, 0);
                    program.span(task, member.rank, op, op);
                    after = vec![op];
                }
                member.begin = program.add(member.rank, Act::Compute(Dur::ZERO), after, 0);
            }
            let task = program.task(Task { name: collective.op.show(), iteration, collective: Some(moved), parallelism: None });
            ends = collective.add(&mut program, task, &members);
            members.iter().zip(&ends).for_each(|(member, end)| program.span(task, member.rank, member.begin, *end));
        }
        program
    }
}

/// Returns ranks 0 to n-1 as members, which begin with their first operation.
fn members(placed: &Placed, n: u32) -> Vec<Member> {
    let member = |rank| Member { rank, begin: 0, place: 0, server: placed.server(rank), slot: placed.slot(rank) };
    (0..n).map(member).collect()
}

/// A collective.
pub type Collective = PlannedFlows<Params>;

impl PlanFlows for Params {
    fn plan(&self, env: &Env<'_>, popularity: Option<&mut Rng>) -> Result<Arc<Draw>, String> {
        let job = PlacedCollective::new(self, env).map_err(|problem| problem.message)?;
        let n = job.placed.hosts.len();
        let mut sizes = Vec::new();
        if self.skew > 0.0 && self.op == CollectiveOp::AllToAll {
            sizes = zipf(self.bytes.0, n, self.skew);
            if let Some(rng) = popularity {
                // Fisher-Yates shuffle.
                (1..n).rev().for_each(|i| sizes.swap(i, rng.below(i as u64 + 1) as usize));
            }
        }
        let collective = job.collective(sizes);
        let draw = || job.program(&collective).draw(&self.common.hosts, &Hosts::of(env), "operation");
        once("collective", &(self, &collective.sizes), env, draw, "collective")
    }
    fn ignored(&self) -> Vec<&'static str> {
        let unused = [("skew", self.op != CollectiveOp::AllToAll), ("compute", self.iterations == 1)];
        let unused = unused.into_iter().filter(|(_, unused)| *unused).map(|(key, _)| key);
        unused.chain(self.common.ignored()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Drawn;
    use super::super::testing::Bench;
    use super::*;
    use std::collections::BTreeSet;

    type Set<'a> = &'a [(&'static str, &'a str)];

    fn bench(hosts: &str) -> Bench {
        Bench::new("star", &[("hosts", hosts)])
    }
    fn draw(bench: &Bench, set: Set<'_>) -> Vec<Drawn> {
        bench.draw("collective", set, 1)
    }

    #[test]
    fn a_ring_repeats_after_the_time_to_compute() {
        let set = [("bytes", "4KB"), ("iterations", "2"), ("compute", "3us"), ("start", "1us")];
        let flows = draw(&bench("4"), &set);
        assert_eq!(flows.len(), 2 * 4 * 6);
        for flow in &flows {
            assert_eq!((flow.dst.0, flow.size_bytes), ((flow.src.0 + 1) % 4, 1000));
            let on: Vec<(&Drawn, Dur)> =
                flow.after.iter().flat_map(|after| &after.flows).map(|(on, delay)| (&flows[*on as usize], *delay)).collect();
            // In a step, a rank waits for the message that it forwards. In the second iteration, it also waits for the messages
            // that it has sent and received in the first.
            for (on, delay) in &on {
                let same = on.group == flow.group;
                assert_eq!(*delay, if same { Dur::ZERO } else { Dur::from_us(3) });
                assert!(on.dst == flow.src || !same && on.src == flow.src);
            }
            assert!(on.iter().filter(|(on, _)| on.group == flow.group).count() <= 1);
            assert!(flow.after.is_some() || (flow.start, flow.group) == (base::Time(1_000_000), Some(0)));
        }
        assert_eq!(flows.iter().filter(|flow| flow.after.is_none()).count(), 4);
        let ring = |set: Set<'_>| draw(&bench("4"), set).len();
        // Messages of 500 bytes on two channels, cut into at most 100 bytes.
        assert_eq!(ring(&[("bytes", "4KB"), ("channels", "2"), ("chunk", "100B")]), 24 * 2 * 5);
        assert_eq!(ring(&[("bytes", "4KB"), ("ranks", "3"), ("first_host", "h1")]), 3 * 4);
    }

    /// Returns the mean number of waits for each flow.
    fn mean_waits(n: &str, set: Set<'_>) -> f64 {
        let [flows, waits] = bench(n).count("collective", set);
        waits as f64 / flows as f64
    }

    /// The same bounds for few and many ranks.
    #[test]
    fn a_flow_waits_for_a_few_flows() {
        let common = [("bytes", "64KB"), ("channels", "2"), ("chunk", "1KB"), ("window", "4")];
        for (op, algorithm, most) in [
            ("all_reduce", "ring", 2.0),
            ("all_reduce", "tree", 4.0),
            ("all_reduce", "hierarchical", 2.0),
            ("all_gather", "ring", 2.0),
            ("reduce_scatter", "ring", 2.0),
            ("all_to_all", "pairwise", 2.0),
            ("all_to_all", "direct", 1.0),
            ("broadcast", "ring", 2.0),
            ("broadcast", "tree", 2.0),
            ("send", "direct", 1.0),
        ] {
            for n in ["8", "64"] {
                let set = [&common[..], &[("op", op), ("algorithm", algorithm)]].concat();
                let mean = mean_waits(n, &set);
                assert!(mean <= most, "{op} {algorithm} {n}: {mean}");
            }
        }
        for (algorithm, most) in [("ring", 3.0), ("tree", 9.0), ("hierarchical", 3.0)] {
            for n in ["8", "64"] {
                let mean = mean_waits(n, &[("bytes", "64KB"), ("algorithm", algorithm), ("iterations", "3")]);
                assert!(mean <= most, "{algorithm} {n}: {mean} in three iterations");
            }
        }
        // A sum has data of all steps before.
        for n in ["8", "64"] {
            let mean = mean_waits(n, &[("bytes", "64KB"), ("algorithm", "recursive")]);
            assert!(mean <= 1.5 * 6.0, "recursive {n}: {mean}");
        }
    }

    #[test]
    fn messages_within_servers_are_not_flows() {
        let servers = [("bytes", "64KB"), ("per_server", "4"), ("local_rate", "800Gbps"), ("chunk", "64KB")];
        let of = |more: Set<'_>| draw(&bench("16"), &[&servers, more].concat());
        // Four rings of four servers, with S/4 each.
        let flows = of(&[("algorithm", "hierarchical")]);
        assert_eq!(flows.len(), 4 * 4 * 6);
        for flow in &flows {
            assert_eq!((flow.src.0 % 4, (flow.src.0 + 4) % 16, flow.size_bytes), (flow.dst.0 % 4, flow.dst.0, 4000));
        }
        // Three steps of 16 KB at 800 Gb/s come first.
        let first: BTreeSet<u64> = flows.iter().filter(|flow| flow.after.is_none()).map(|flow| flow.start.0).collect();
        assert_eq!(first, BTreeSet::from([3 * 160_000]));
        // In a ring on each of four channels, one of four messages leaves its server, on the rail of its channel.
        let flows = of(&[]);
        assert_eq!(flows.len(), 4 * 4 * 30);
        let pairs: BTreeSet<(u32, u32)> = flows.iter().map(|flow| (flow.src.0, flow.dst.0)).collect();
        assert!(pairs.len() == 16 && pairs.iter().all(|(src, dst)| src % 4 == dst % 4), "{pairs:?}");
        assert!(flows.iter().flat_map(|flow| &flow.after).all(|after| after.flows.len() <= 2));
        // By rail: 4 * S/16 to each of three servers.
        let flows = of(&[("op", "all_to_all"), ("algorithm", "by_rail")]);
        assert_eq!(flows.len(), 16 * 3);
        assert!(flows.iter().all(|flow| flow.src.0 % 4 == flow.dst.0 % 4 && flow.size_bytes == 16_000));
    }

    #[test]
    fn popular_receivers_get_more() {
        // 2^32 / 3 is rounded down.
        assert_eq!(zipf(1100, 3, 1.0), [600, 300, 199]);
        let of = |seed| {
            let set = [("bytes", "1MB"), ("op", "all_to_all"), ("skew", "1")];
            let mut to = vec![0; 8];
            bench("8").draw("collective", &set, seed).iter().for_each(|flow| to[flow.dst.0 as usize] += flow.size_bytes);
            to.into_iter().map(|bytes| bytes / 7).collect::<Vec<u64>>()
        };
        let [first, second] = [of(1), of(2)];
        assert_ne!(first, second);
        let sorted = |mut sizes: Vec<u64>| {
            sizes.sort_unstable_by(|a, b| b.cmp(a));
            sizes
        };
        assert_eq!(sorted(first), zipf(1_000_000, 8, 1.0));
        assert_eq!(sorted(second), zipf(1_000_000, 8, 1.0));
    }

    #[test]
    fn what_cannot_run_is_refused() {
        let refused = |set: Set<'_>| bench("6").read("collective", &[&[("bytes", "1MB")], set].concat()).err().unwrap();
        let cases: [(Set<'_>, &str); 7] = [
            (&[("ranks", "7")], "placement: the program has 7 ranks, but `placement` has hosts for 6"),
            (&[("placement", "h5")], "ranks: a collective needs two ranks, but `placement` has hosts for 1"),
            (&[("algorithm", "recursive")], "algorithm: `recursive` needs a power of two of ranks, but there are 6"),
            (&[("op", "all_to_all"), ("algorithm", "ring")], "algorithm: `ring` is not an algorithm of `all_to_all`"),
            (
                &[("algorithm", "hierarchical"), ("per_server", "4")],
                "algorithm: `hierarchical` needs ranks at the same places of all servers",
            ),
            (&[("per_server", "6")], "ranks: all 6 ranks are on one server, so that no message enters the network"),
            (&[("iterations", "100000")], "chunk: the ranks send more than 4000000 messages, which do not fit into memory"),
        ];
        for (set, why) in cases {
            assert_eq!(refused(set), why);
        }
        let ignored = |set: Set<'_>| {
            let params = bench("6").read("collective", &[&[("bytes", "1MB")], set].concat());
            let super::super::AnyWorkload::Collective(made) = params.unwrap() else { panic!("another entry") };
            Collective::ignored(&made.params)
        };
        assert_eq!(ignored(&[]), ["skew", "compute", "local_rate"]);
        assert_eq!(ignored(&[("op", "all_to_all"), ("placement", "h0 h1"), ("iterations", "2")]), ["local_rate", "first_host"]);
    }
}
