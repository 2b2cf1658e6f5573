//! Each algorithm is executed with symbols instead of data: the contributions of ranks move along the
//! messages, in several orders that the dependencies allow.

use super::*;
use crate::workload::program::Act;
use base::{Dur, Rng};
use messages::Content;

/// Returns members of ranks 0, 1, 2 and so on, on these servers, each with an operation to begin.
fn members(program: &mut Program, servers: &[u32]) -> Vec<Member> {
    let slot = |rank: usize| servers[..rank].iter().filter(|server| **server == servers[rank]).count() as u32;
    let member = |(rank, server): (usize, &u32)| {
        let begin = program.add(rank as u32, Act::Compute(Dur::ZERO), Vec::new(), 0);
        Member { rank: rank as u32, begin, place: 0, server: *server, slot: slot(rank) }
    };
    servers.iter().enumerate().map(member).collect()
}

/// Which of the operations that may run next run first: those with the lowest number.
type Priority = fn(&Act, is_begin: bool, is_end: bool) -> u32;

const PRIORITIES: [Priority; 4] = [
    |_, _, _| 0,
    // Messages are received as late as possible.
    |act, _, _| u32::from(matches!(act, Act::Receive { .. })),
    // Members begin as late as possible.
    |_, is_begin, _| u32::from(is_begin),
    // Members end as early as possible, and messages are received as late as possible.
    |act, _, is_end| if is_end { 0 } else { 1 + u32::from(matches!(act, Act::Receive { .. })) },
];

/// A collective that is executed with sets of ranks as data.
struct Execution<'a> {
    collective: &'a Collective,
    n: u32,
    slices: u32,
    contents: &'a BTreeMap<u64, Content>,
    /// By rank, block and slice: the ranks whose data is in it, as bits.
    data: Vec<BTreeMap<(u32, u32), u32>>,
    sent: BTreeMap<u64, Vec<u32>>,
}

impl Execution<'_> {
    fn all(&self) -> u32 {
        ((1u64 << self.n) - 1) as u32
    }
    /// Sets the data at the beginning.
    fn begin(&mut self) {
        let (n, slices) = (self.n, self.slices);
        let blocks = if self.collective.algorithm == Algorithm::Tree { 2 } else { n };
        for rank in 0..n {
            let own: Vec<u32> = match self.collective.op {
                CollectiveOp::AllReduce | CollectiveOp::ReduceScatter => (0..blocks).collect(),
                CollectiveOp::AllGather | CollectiveOp::Send => vec![rank],
                CollectiveOp::AllToAll => (rank * n..rank * n + n).collect(),
                CollectiveOp::Broadcast => (0..1).filter(|_| rank == 0).collect(),
            };
            let of = own.into_iter().flat_map(|block| (0..slices).map(move |slice| ((block, slice), 1 << rank)));
            self.data.push(of.collect());
        }
    }
    /// Returns whether a rank has the result, or `None` if it has what it may not have.
    fn is_done(&self, rank: u32) -> bool {
        let n = self.n;
        let blocks = if self.collective.algorithm == Algorithm::Tree { 2 } else { n };
        let wanted: Vec<(u32, u32)> = match self.collective.op {
            CollectiveOp::AllReduce => (0..blocks).map(|block| (block, self.all())).collect(),
            CollectiveOp::ReduceScatter => vec![(rank, self.all())],
            CollectiveOp::AllGather => (0..n).map(|block| (block, 1 << block)).collect(),
            CollectiveOp::AllToAll => (0..n).map(|src| (src * n + rank, 1 << src)).collect(),
            CollectiveOp::Broadcast => vec![(0, 1)],
            CollectiveOp::Send => vec![((rank + n - 1) % n, 1 << ((rank + n - 1) % n))],
        };
        let has =
            |(block, set): (u32, u32)| (0..self.slices).all(|slice| self.data[rank as usize].get(&(block, slice)) == Some(&set));
        wanted.into_iter().all(has)
    }
    fn send(&mut self, rank: u32, tag: u64) {
        let content = &self.contents[&tag];
        let own = |block: &u32| self.data[rank as usize].get(&(*block, content.slice)).copied();
        let what = || format!("{:?}: rank {rank} sends {content:?}", self.collective);
        let sets: Vec<u32> = content.blocks.iter().map(|block| own(block).unwrap_or_else(|| panic!("{}", what()))).collect();
        if self.collective.op == CollectiveOp::AllReduce && !content.sum {
            assert!(sets.iter().all(|set| *set == self.all()), "{}: not the whole sum", what());
        }
        self.sent.insert(tag, sets);
    }
    fn receive(&mut self, rank: u32, tag: u64) {
        let content = &self.contents[&tag];
        for (block, set) in content.blocks.iter().zip(&self.sent[&tag]) {
            let own = self.data[rank as usize].entry((*block, content.slice)).or_default();
            assert!(!content.sum || *own & set == 0, "{:?}: rank {rank} counts data twice: {content:?}", self.collective);
            *own = if content.sum { *own | set } else { *set };
        }
    }
}

/// Executes a collective in all orders of [`PRIORITIES`]. Without servers of several ranks, a rank
/// must have the result when it has ended, and with a window it may send only after it has begun.
fn execute(collective: &Collective, servers: &[u32], seed: u64) {
    let n = servers.len();
    let mut program = Program::new(n);
    let members = members(&mut program, servers);
    let data = collective.data(&members);
    let slices = data.slices();
    let mut messages = Messages::new(&mut program, 0, &members, data, collective.cutting.window);
    messages.contents = Some(BTreeMap::new());
    collective.run(&mut messages);
    let contents = messages.contents.take().unwrap();
    let ends = messages.end();
    assert_eq!(contents.len() as u64, collective.messages(&members), "{collective:?}");
    let network = servers.iter().enumerate().all(|(i, server)| !servers[..i].contains(server));

    let ops = program.listed();
    let mut numbers: Vec<BTreeMap<u32, usize>> = vec![BTreeMap::new(); n];
    ops.iter().enumerate().for_each(|(i, (rank, op, ..))| numbers[*rank as usize].extend([(*op, i)]));
    let mut sends: BTreeMap<u64, usize> = BTreeMap::new();
    let mut receives: BTreeMap<u64, usize> = BTreeMap::new();
    for (i, (_, _, act, _)) in ops.iter().enumerate() {
        match act {
            Act::Send(message) => sends.extend([(message.tag, i)]),
            Act::Receive { tag, .. } => receives.extend([(tag.unwrap(), i)]),
            Act::Compute(_) => (),
        }
    }
    let needs = |i: usize| {
        let (rank, _, act, after) = &ops[i];
        let own = after.iter().map(|op| numbers[*rank as usize][op]);
        // A send that is not eager ends when its message has been received.
        let own = own.map(|op| match ops[op].2 {
            Act::Send(message) if !message.eager => receives[&message.tag],
            _ => op,
        });
        let sent = if let Act::Receive { tag: Some(tag), .. } = act { Some(sends[tag]) } else { None };
        own.chain(sent).collect::<Vec<usize>>()
    };
    for (order, priority) in PRIORITIES.iter().enumerate() {
        let mut rng = Rng::stream(seed, "orders", &[order as u64]);
        let mut run = Execution { collective, n: n as u32, slices, contents: &contents, data: Vec::new(), sent: BTreeMap::new() };
        run.begin();
        let mut missing: Vec<usize> = (0..ops.len()).map(|i| needs(i).len()).collect();
        let mut next: Vec<Vec<usize>> = vec![Vec::new(); ops.len()];
        (0..ops.len()).for_each(|i| needs(i).into_iter().for_each(|needed| next[needed].push(i)));
        let mut ready: BTreeMap<(u32, u64), usize> = BTreeMap::new();
        let mut has_begun = vec![false; n];
        let mut put = |ready: &mut BTreeMap<(u32, u64), usize>, i: usize| {
            let (rank, op, act, _) = &ops[i];
            let first = priority(act, *op == members[*rank as usize].begin, *op == ends[*rank as usize]);
            ready.insert((first, rng.bits()), i);
        };
        (0..ops.len()).filter(|i| missing[*i] == 0).for_each(|i| put(&mut ready, i));
        let mut count = 0;
        while let Some((_, i)) = ready.pop_first() {
            count += 1;
            let (rank, op, act, _) = ops[i];
            match act {
                Act::Send(message) => {
                    let may = !network || collective.cutting.window.is_none() || has_begun[rank as usize];
                    assert!(may, "{collective:?}: rank {rank} has not begun");
                    run.send(rank, message.tag);
                }
                Act::Receive { tag, .. } => run.receive(rank, tag.unwrap()),
                Act::Compute(_) if op == members[rank as usize].begin => has_begun[rank as usize] = true,
                Act::Compute(_) => {
                    assert!(!network || run.is_done(rank), "{collective:?}: rank {rank} ends too early");
                    assert!(!network || has_begun[rank as usize], "{collective:?}: rank {rank} ends before it begins");
                }
            }
            for &after in &next[i] {
                missing[after] -= 1;
                if missing[after] == 0 {
                    put(&mut ready, after);
                }
            }
        }
        assert_eq!(count, ops.len(), "{collective:?}: operations wait for each other");
        assert!((0..n as u32).all(|rank| run.is_done(rank)), "{collective:?} on {servers:?}: not the result");
    }
}

/// Returns collectives of all operations and algorithms that these members allow.
fn all(members: &[Member], bytes: u64, cutting: Cutting) -> Vec<Collective> {
    use CollectiveOp::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter, Send};
    let of = |op: CollectiveOp| {
        op.algorithms().iter().map(move |algorithm| Collective { op, algorithm: *algorithm, bytes, sizes: Vec::new(), cutting })
    };
    let every = [AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Send].into_iter().flat_map(of);
    every.filter(|collective| collective.problem(members).is_none()).collect()
}

#[test]
fn every_algorithm_has_its_result() {
    let cuttings = [(1, 1 << 40, Some(1)), (1, 1 << 40, None), (2, 300, Some(2)), (3, 100, Some(3)), (1, 70, None)];
    for n in 2..=17u32 {
        let packed = |each: u32| (0..n).map(|rank| rank / each).collect::<Vec<u32>>();
        let turns = |servers: u32| (0..n).map(|rank| rank % servers).collect::<Vec<u32>>();
        let uneven = (0..n).map(|rank| rank.checked_ilog2().unwrap_or(0)).collect();
        let servers = [packed(1), packed(2), packed(4), packed(n), turns(3.min(n)), uneven];
        for (case, servers) in servers.iter().enumerate() {
            let members = members(&mut Program::new(n as usize), servers);
            // All ways to cut data for few ranks, and one way for many.
            for (number, (channels, chunk, window)) in cuttings.into_iter().enumerate() {
                if n > 7 && number != (case + n as usize) % cuttings.len() {
                    continue;
                }
                let cutting = Cutting { channels, chunk: Bytes(chunk), window };
                for collective in all(&members, 1200.min(u64::from(n) * 120), cutting) {
                    execute(&collective, servers, 1);
                }
            }
        }
    }
}

/// Returns by rank the bytes that it sends through the network and within its server.
fn sent(collective: &Collective, servers: &[u32]) -> Vec<[u64; 2]> {
    let mut program = Program::new(servers.len());
    let members = members(&mut program, servers);
    collective.add(&mut program, 0, &members);
    let mut sent = vec![[0; 2]; servers.len()];
    for (rank, _, act, _) in program.listed() {
        if let Act::Send(message) = act {
            let local = servers[rank as usize] == servers[message.to as usize];
            sent[rank as usize][usize::from(local)] += message.bytes;
        }
    }
    sent
}

#[test]
fn ranks_send_the_bytes_of_closed_forms() {
    use CollectiveOp::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter, Send};
    for n in [2u64, 4, 6, 8, 16] {
        for (channels, chunk, window) in [(1, 1 << 40, None), (2, 1000, Some(3))] {
            let cutting = Cutting { channels, chunk: Bytes(chunk), window };
            let bytes = n * 4800;
            let of = |op, algorithm, each: u64| {
                let servers: Vec<u32> = (0..n).map(|rank| (rank / each) as u32).collect();
                sent(&Collective { op, algorithm, bytes, sizes: Vec::new(), cutting }, &servers)
            };
            let same = |op, algorithm, of_rank: u64| assert!(of(op, algorithm, 1).iter().all(|sent| *sent == [of_rank, 0]));
            let rest = bytes / n * (n - 1);
            let power = [Algorithm::Recursive].into_iter().filter(|_| n.is_power_of_two());
            for algorithm in [Algorithm::Ring, Algorithm::Direct].into_iter().chain(power) {
                same(AllReduce, algorithm, 2 * rest);
                same(AllGather, algorithm, rest);
                same(ReduceScatter, algorithm, rest);
            }
            same(AllReduce, Algorithm::Hierarchical, 2 * rest);
            CollectiveOp::AllToAll.algorithms().iter().for_each(|algorithm| same(AllToAll, *algorithm, rest));
            same(Send, Algorithm::Direct, bytes);
            // Both trees have n-1 edges, with half of the data up and down each edge.
            let total = |sent: Vec<[u64; 2]>| sent.iter().map(|sent| sent[0]).sum::<u64>();
            assert_eq!(total(of(AllReduce, Algorithm::Tree, 1)), 2 * (n - 1) * bytes);
            for algorithm in [Algorithm::Ring, Algorithm::Tree] {
                assert_eq!(total(of(Broadcast, algorithm, 1)), (n - 1) * bytes);
            }
            // Within a server, the slices share the rate: the message of each takes the time of all.
            let slices = |largest: u64| u64::from(channels) * largest.div_ceil(chunk * u64::from(channels));
            // Servers of two ranks: half of the sum of a server goes around between n/2 servers.
            let half = bytes / 2;
            let between = 2 * half / (n / 2) * (n / 2 - 1);
            assert!(of(AllReduce, Algorithm::Hierarchical, 2).iter().all(|sent| *sent == [between, 2 * half * slices(4800)]));
            // To the other rank of the server its data for all servers; from both ranks to the other servers.
            let part = bytes / n;
            assert!(
                of(AllToAll, Algorithm::ByRail, 2)
                    .iter()
                    .all(|sent| *sent == [(n / 2 - 1) * 2 * part, n / 2 * part * slices(2 * part)])
            );
        }
    }
}

#[test]
fn messages_have_at_most_a_chunk_and_slices_differ_by_a_byte() {
    let cutting = Cutting { channels: 3, chunk: Bytes(100), window: Some(2) };
    for n in [3u32, 8] {
        let servers: Vec<u32> = (0..n).collect();
        let mut program = Program::new(n as usize);
        let members = members(&mut program, &servers);
        for collective in all(&members, 10_007, cutting) {
            let mut program = Program::new(n as usize);
            let members = self::members(&mut program, &servers);
            collective.add(&mut program, 0, &members);
            let bytes = |act: &Act| if let Act::Send(message) = act { Some(message.bytes) } else { None };
            let bytes: Vec<u64> = program.listed().into_iter().filter_map(|(_, _, act, _)| bytes(act)).collect();
            // A message has slices of up to n/2 blocks, each rounded.
            assert!(bytes.iter().all(|bytes| *bytes <= 100 + u64::from(n / 2)), "{collective:?}: {bytes:?}");
        }
    }
}

#[test]
fn a_node_is_a_leaf_in_one_of_both_trees() {
    for n in 1..200u32 {
        let trees = [tree::parents(n, false), tree::parents(n, true)];
        let children = |tree: usize, node: u32| trees[tree].iter().filter(|parent| **parent == Some(node)).count();
        for node in 0..n {
            let both = [children(0, node), children(1, node)];
            assert!(both.iter().all(|children| *children <= 2), "{n}: {node}");
            // With an odd number of nodes, only node 0, the root of the first tree, is inner in both.
            assert!(both.contains(&0) || n % 2 == 1 && both.iter().sum::<usize>() <= 3, "{n}: {node} has {both:?}");
        }
        for parents in &trees {
            assert_eq!(parents.iter().filter(|parent| parent.is_none()).count(), 1);
            let depth = |mut node: u32| {
                let mut depth = 0;
                while let Some(parent) = parents[node as usize] {
                    (node, depth) = (parent, depth + 1);
                }
                depth
            };
            assert!((0..n).all(|node| depth(node) <= n.ilog2() + 1), "{n}");
        }
    }
    // NCCL's example for 14 nodes: 8 is the child of the root 0, and has the children 4 and 12.
    let first = tree::parents(14, false);
    assert_eq!([8, 4, 12, 2, 6, 10, 13, 1].map(|node| first[node]), [0, 8, 8, 4, 4, 12, 12, 2].map(Some));
}

#[test]
fn rings_of_channels_use_all_rails() {
    let servers: Vec<u32> = (0..16).map(|rank| rank / 4).collect();
    let members = members(&mut Program::new(16), &servers);
    let orders = ring::orders(&members, 4);
    assert_eq!(orders[0], [0, 1, 2, 3, 7, 6, 5, 4, 8, 9, 10, 11, 15, 14, 13, 12]);
    assert_eq!(orders[1], [1, 2, 3, 0, 4, 7, 6, 5, 9, 10, 11, 8, 12, 15, 14, 13]);
    let mut senders = Vec::new();
    for order in &orders {
        for (from, to) in order.iter().zip(order.iter().cycle().skip(1)).map(|(from, to)| (*from as usize, *to as usize)) {
            if servers[from] != servers[to] {
                assert_eq!(members[from].slot, members[to].slot, "a ring changes its rail in a server only");
                senders.push(from);
            }
        }
    }
    senders.sort_unstable();
    assert_eq!(senders, (0..16).collect::<Vec<_>>(), "each NIC sends for one ring");
    // Ranks in turn over servers are not in one server after another: the ring follows the ranks.
    let turns: Vec<u32> = (0..16).map(|rank| rank % 4).collect();
    let members = self::members(&mut Program::new(16), &turns);
    assert_eq!(ring::orders(&members, 2)[1], (0..16).collect::<Vec<u32>>());
}

#[test]
fn algorithms_say_what_they_need() {
    let problem = |op, algorithm, servers: &[u32]| {
        let cutting = Cutting { channels: 1, chunk: Bytes(1000), window: None };
        let members = members(&mut Program::new(servers.len()), servers);
        Collective { op, algorithm, bytes: 1, sizes: Vec::new(), cutting }.problem(&members)
    };
    let none = problem(CollectiveOp::Send, Algorithm::Ring, &[0, 1]).unwrap();
    assert_eq!((none.0.as_str(), none.1.as_str()), ("`ring` is not an algorithm of `send`", "write one of `direct`"));
    let odd = problem(CollectiveOp::AllGather, Algorithm::Recursive, &[0, 1, 2, 3, 4, 5]).unwrap();
    let message = "`recursive` needs a power of two of ranks, but there are 6";
    assert_eq!((odd.0.as_str(), odd.1.as_str()), (message, "write 4 or 8 ranks"));
    let uneven = problem(CollectiveOp::AllReduce, Algorithm::Hierarchical, &[0, 0, 1]).unwrap();
    assert_eq!(uneven.0, "`hierarchical` needs ranks at the same places of all servers");
    assert_eq!(problem(CollectiveOp::AllToAll, Algorithm::ByRail, &[0, 1, 0, 1]), None);
}

/// The factors are those of nccl-tests, doc/PERFORMANCE.md.
#[test]
fn bus_bandwidth_counts_what_each_rank_has_to_move() {
    let of = |op: CollectiveOp| op.moved(800, 8).bus_bytes;
    assert_eq!(of(CollectiveOp::AllReduce), 1400);
    assert_eq!([CollectiveOp::AllGather, CollectiveOp::ReduceScatter, CollectiveOp::AllToAll].map(of), [700; 3]);
    assert_eq!([CollectiveOp::Broadcast, CollectiveOp::Send].map(of), [800; 2]);
}
