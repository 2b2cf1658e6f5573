//! Flows of a program in Chakra's execution traces: one file for each rank, whose nodes compute,
//! send, receive or take part in collectives.
//!
//! `path = "trace"` reads `trace.0.et`, `trace.1.et` and so on. A node starts when all nodes that
//! its control and data dependencies name have ended. Nodes of computation, memory, metadata and
//! storage take their duration. Traces of generators have operations (`num_ops`) and bytes (`tensor_size`)
//! in place of durations: such a node takes the longer of `num_ops` at `teraflops` and `tensor_size` at
//! `memory_rate`. Collectives become messages (`chakra/collective.rs`); the messages of a
//! collective are a group. Collectives and computations are tasks. The members of a process group (`pg_name`; without it, all ranks) are
//! the ranks whose files name the group. The k-th collectives of all members of a process group are
//! one collective.
//!
//! Source: mlcommons/chakra, schema/protobuf/et_def.proto. ASTRA-sim: sizes of collectives
//! (astraccl/native_collectives/collective_algorithm/Ring.cc), and times of nodes without a duration
//! (`issue_comp` in workload/Workload.cc, system/Roofline.cc).
//!
//! Model: nodes of a rank overlap unless a dependency orders them, whereas in ASTRA-sim a rank
//! computes one node at a time. Sending takes no processor time (`program.rs` has all rules). A
//! send ends when its message has arrived. A node with a duration keeps it, whereas ASTRA-sim with
//! `roofline-enabled` takes the operations of all nodes of GPUs.

mod collective;
mod trace;

use super::collectives::messages::Member;
use super::listed::{self, Hosts, Listed};
use super::program::{Act, Message, Placed, Program, Ranks};
use super::tasks::Task;
use super::{Draw, Env, MAX_TIME};
use crate::files::Files;
use crate::topology::MAX_RATE;
use base::params::Problem;
use base::registry::Meta;
use base::{Dur, Rate};
use collective::{Collective, Kind};
use std::collections::BTreeMap;
use trace::{Node, NodeType};

/// The META of this entry, for `list` and `check`.
pub const META: Meta = Meta {
    summary: "messages and collectives of Chakra's execution traces, with their dependencies",
    source: "mlcommons/chakra, schema/protobuf/et_def.proto",
    ..Meta::PLAIN
};

/// Lowest rate of the memory of a rank.
const MIN_MEMORY_RATE: Rate = Rate::from_gbps(1);

base::params! {
    /// Parameters of a program.
    pub struct Params {
        ..ranks: Ranks {}
        /// Prefix of the names of the files: `trace` for `trace.0.et`, `trace.1.et`; relative to
        /// the scenario.
        path: String = "", "";
        /// Algorithm of all-reduce, all-gather and reduce-scatter.
        algorithm: Algorithm = "ring", "ASTRA-sim: the default of its systems";
        /// Operations of a rank in a picosecond, that is tera-operations per second, for nodes without a
        /// duration; `none`: their operations take no time.
        teraflops: Option<u32> = "none" in Some(1)..=Some(100_000), "ASTRA-sim: roofline-enabled = 0", quiet;
        /// Rate of the memory of a rank, for nodes without a duration; `none`: their bytes take no time.
        memory_rate: Option<Rate> = "none" in Some(MIN_MEMORY_RATE)..=Some(MAX_RATE), "ASTRA-sim: roofline-enabled = 0", quiet;
    }
}

base::choice! {
    /// The algorithm that turns collectives into messages.
    pub enum Algorithm {
        /// Each rank sends to the next rank, step by step.
        Ring = "ring",
        /// Each rank sends to all other ranks at the same time.
        Direct = "direct",
        /// All-reduce goes up and down a binomial tree; all-gather and reduce-scatter use a ring.
        Tree = "tree",
    }
}

/// Returns the problems that depend on the rest of the scenario.
pub fn check(params: &Params, env: &Env<'_>) -> Vec<Problem> {
    listed::check::<Format>(params, env)
}

/// Flows of Chakra's execution traces.
pub type Chakra = Listed<Format>;

/// The file format.
pub struct Format;

fn name(params: &Params, rank: usize) -> String {
    format!("{}.{rank}.et", params.path)
}

impl listed::Format for Format {
    type Params = Params;
    const HINT: &'static str = "`path = \"trace\"` reads `trace.0.et`, `trace.1.et` and so on, one for each rank";
    fn path(params: &Params) -> &str {
        &params.path
    }
    fn files(params: &Params, files: &Files) -> Vec<String> {
        let further = (1..).map(|rank| name(params, rank)).take_while(|name| files.has(name));
        std::iter::once(name(params, 0)).chain(further).collect()
    }
    fn read(params: &Params, files: &Files, hosts: &Hosts<'_>) -> Result<Draw, String> {
        let names = Self::files(params, files);
        if names.len() > hosts.count() as usize && params.ranks.placement == "linear" {
            return Err(format!(
                "`{}`: the trace has {} ranks, but the network has {} hosts",
                params.path,
                names.len(),
                hosts.count()
            ));
        }
        if let Some(other) = files.numbered(&format!("{}.", params.path), ".et").into_iter().find(|name| !names.contains(name)) {
            let missing = name(params, names.len());
            return Err(format!("`{missing}` does not exist, but `{other}` does: a trace has the files of all ranks from 0 on"));
        }
        let read = |name: &String| trace::nodes(name, &files.bytes(name)?);
        let nodes = names.iter().map(read).collect::<Result<Vec<_>, String>>()?;
        let within = |why: String| format!("{}: {why}", params.path);
        let placed = params.ranks.placed(names.len(), hosts).map_err(within)?;
        let program = Reader { names: &names, nodes: &nodes, params, placed }.program()?;
        program.draw(&params.ranks, hosts, "node").map_err(within)
    }
}

/// Turns traces into a program.
struct Reader<'a> {
    names: &'a [String],
    nodes: &'a [Vec<Node>],
    params: &'a Params,
    placed: Placed,
}

/// The collectives of a process group, by rank in the order of its file.
type Group<'a> = BTreeMap<u32, Vec<&'a Node>>;

impl<'a> Reader<'a> {
    fn wrong(&self, rank: u32, node: &Node, why: impl std::fmt::Display) -> String {
        format!("{}: node {}: {why}", self.names[rank as usize], node.id)
    }

    fn all(&self) -> impl Iterator<Item = (u32, &'a Node)> {
        (0..).zip(self.nodes).flat_map(|(rank, nodes)| nodes.iter().map(move |node| (rank, node)))
    }

    fn program(&self) -> Result<Program, String> {
        let mut program = Program::new(self.nodes.len());
        // By rank and node: the first and the last operation of the node. For a collective, both do
        // nothing.
        let mut begun: BTreeMap<(u32, u64), u32> = BTreeMap::new();
        let mut ended: BTreeMap<(u32, u64), u32> = BTreeMap::new();
        let mut groups: BTreeMap<&str, Group<'_>> = BTreeMap::new();
        for (rank, node) in self.all() {
            if begun.contains_key(&(rank, node.id)) {
                return Err(self.wrong(rank, node, "is in the file twice"));
            }
            if node.kind() == NodeType::Collective {
                groups.entry(node.text("pg_name").unwrap_or("")).or_default().entry(rank).or_default().push(node);
            }
            let op = program.add(rank, self.act(rank, node)?, Vec::new(), node.id);
            begun.insert((rank, node.id), op);
            ended.insert((rank, node.id), op);
        }
        for (name, group) in &groups {
            for (number, members) in self.members(group)?.into_iter().enumerate() {
                let (rank, node) = members[0];
                let collective =
                    Collective { kind: self.kind(rank, node)?, bytes: self.bytes(rank, node)?, root: self.root(&members)? };
                for other in &members {
                    let own = (self.kind(other.0, other.1)?, self.bytes(other.0, other.1)?);
                    if own != (collective.kind, collective.bytes) {
                        let name = &self.names[rank as usize];
                        let why = format!("differs in type or size from node {} of {name}, which is the same collective", node.id);
                        return Err(self.wrong(other.0, other.1, why));
                    }
                }
                let member = |(rank, node): &(u32, &Node)| {
                    let [begin, server, slot] = [ended[&(*rank, node.id)], self.placed.server(*rank), self.placed.slot(*rank)];
                    Member { rank: *rank, begin, place: node.id, server, slot }
                };
                let taking_part: Vec<Member> = members.iter().map(member).collect();
                let moved = collective.kind.moved(collective.bytes, members.len() as u32);
                let own = if name.is_empty() { String::new() } else { format!(" {name}") };
                let name = format!("{}{own} {number}", moved.operation);
                let task = program.task(Task { name, iteration: 0, collective: Some(moved), parallelism: None });
                let ends = collective.run(self.params.algorithm, task, &taking_part, &mut program);
                for (member, end) in taking_part.iter().zip(ends) {
                    program.span(task, member.rank, member.begin, end);
                    ended.insert((member.rank, member.place), end);
                }
            }
        }
        for (rank, node) in self.all() {
            if node.kind() != NodeType::Other || self.time(rank, node)? == Dur::ZERO {
                continue;
            }
            let task = program.task(Task { name: format!("node {}", node.id), iteration: 0, collective: None, parallelism: None });
            let op = begun[&(rank, node.id)];
            program.span(task, rank, op, op);
        }
        for (rank, node) in self.all() {
            for other in node.ctrl_deps.iter().chain(&node.data_deps) {
                let Some(end) = ended.get(&(rank, *other)) else {
                    return Err(self.wrong(rank, node, format!("depends on node {other}, which does not exist")));
                };
                program.after_end(rank, begun[&(rank, node.id)], *end);
            }
        }
        Ok(program)
    }

    /// Returns the action of a node; a collective does nothing here.
    fn act(&self, rank: u32, node: &Node) -> Result<Act, String> {
        let other = |key: &str| {
            let found = u32::try_from(self.number(rank, node, key)?).ok().filter(|other| (*other as usize) < self.nodes.len());
            found.ok_or_else(|| self.wrong(rank, node, format!("its `{key}` is not a rank: the trace has {}", self.nodes.len())))
        };
        // Larger tags are reserved for collectives.
        let tag = || match node.number("comm_tag").unwrap_or(0) {
            tag if tag <= u32::MAX.into() => Ok(tag),
            tag => Err(self.wrong(rank, node, format!("its `comm_tag` is {tag}, more than {}", u32::MAX))),
        };
        match node.kind() {
            NodeType::Send => Ok(Act::Send(Message {
                to: other("comm_dst")?,
                bytes: self.bytes(rank, node)?,
                tag: tag()?,
                eager: false,
                group: None,
                channel: 0,
            })),
            NodeType::Receive => Ok(Act::Receive { from: other("comm_src")?, tag: Some(tag()?) }),
            NodeType::Collective => Ok(Act::Compute(Dur::ZERO)),
            NodeType::Other => self.time(rank, node).map(Act::Compute),
        }
    }

    /// Returns the time of a node that is neither a message nor a collective.
    fn time(&self, rank: u32, node: &Node) -> Result<Dur, String> {
        let amount = |key: &str| u128::from(node.number(key).unwrap_or(0));
        let picoseconds = if node.duration_micros > 0 {
            u128::from(node.duration_micros) * 1_000_000
        } else {
            // One operation in a picosecond is one tera-operation per second.
            let compute = self.params.teraflops.map_or(0, |teraflops| amount("num_ops") / u128::from(teraflops));
            let memory = self.params.memory_rate.map_or(0, |rate| amount("tensor_size") * 8_000_000_000_000 / u128::from(rate.0));
            compute.max(memory)
        };
        let time = u64::try_from(picoseconds).ok().map(Dur).filter(|time| *time <= MAX_TIME);
        time.ok_or_else(|| self.wrong(rank, node, format!("takes longer than {MAX_TIME}")))
    }

    fn number(&self, rank: u32, node: &Node, key: &str) -> Result<u64, String> {
        node.number(key).ok_or_else(|| self.wrong(rank, node, format!("has no attribute `{key}` that is a whole number")))
    }
    fn bytes(&self, rank: u32, node: &Node) -> Result<u64, String> {
        let barrier = node.kind() == NodeType::Collective && self.kind(rank, node)? == Kind::Barrier;
        let bytes = if barrier { 0 } else { self.number(rank, node, "comm_size")? };
        let most = super::cdf::MAX_SIZE_BYTES;
        if bytes > most { Err(self.wrong(rank, node, format!("its `comm_size` is {bytes}, more than {most}"))) } else { Ok(bytes) }
    }
    fn kind(&self, rank: u32, node: &Node) -> Result<Kind, String> {
        let number = self.number(rank, node, "comm_type")?;
        Kind::of(number).ok_or_else(|| self.wrong(rank, node, format!("its `comm_type` is {number}, which is not a collective")))
    }

    /// Returns the collectives of a group: for each, the members with their nodes, in the order of
    /// ranks.
    fn members(&self, group: &Group<'a>) -> Result<Vec<Vec<(u32, &'a Node)>>, String> {
        let most = group.values().map(Vec::len).max().unwrap_or(0);
        if let Some((rank, nodes)) = group.iter().find(|(_, nodes)| nodes.len() < most) {
            let why = format!("is the last of {} collectives of its process group, but other ranks have {most}", nodes.len());
            return Err(nodes.last().map_or(why.clone(), |node| self.wrong(*rank, node, why)));
        }
        Ok((0..most).map(|k| group.iter().map(|(rank, nodes)| (*rank, nodes[k])).collect()).collect())
    }

    /// Returns the index among the members of the root of a collective.
    fn root(&self, members: &[(u32, &Node)]) -> Result<u32, String> {
        let (rank, node) = members[0];
        let Some(root) = node.number("root_rank").or_else(|| node.number("root")) else { return Ok(0) };
        let place = members.iter().position(|(rank, _)| u64::from(*rank) == root);
        place
            .map(|place| place as u32)
            .ok_or_else(|| self.wrong(rank, node, format!("its root {root} is not a member of the process group")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Drawn;
    use super::super::testing::Bench;
    use super::*;
    use crate::files::tokens::testing::damaged;
    use trace::testing::{file, node};

    /// Returns the flows of these traces on a tree of nine hosts.
    fn attempt(traces: &[Vec<u8>], more: &[(&'static str, &str)]) -> Result<Vec<Drawn>, String> {
        let dir = tempfile::tempdir().unwrap();
        for (rank, bytes) in traces.iter().enumerate() {
            std::fs::write(dir.path().join(format!("t.{rank}.et")), bytes).unwrap();
        }
        let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
        let set = [&[("path", "t")], more].concat();
        bench.read("chakra", &set)?;
        Ok(bench.draw("chakra", &set, 1))
    }

    /// The same collective at all of `ranks` ranks, and after it a message of 9 bytes from rank 0 to rank 1.
    fn collective(ranks: usize, kind: u64, bytes: u64) -> Vec<Vec<u8>> {
        let own = |rank: usize| {
            let whole = node(1, 7, &[]).with("comm_type", kind).with("comm_size", bytes);
            let last = match rank {
                0 => node(2, 5, &[1]).with("comm_size", 9).with("comm_dst", 1).with("comm_tag", 3),
                1 => node(2, 6, &[1]).with("comm_size", 9).with("comm_src", 0).with("comm_tag", 3),
                _ => node(2, 4, &[1]),
            };
            file(&[whole, last])
        };
        (0..ranks).map(own).collect()
    }

    fn on(flow: &Drawn) -> Vec<u32> {
        flow.after.iter().flat_map(|after| &after.flows).map(|on| on.0).collect()
    }

    #[test]
    fn nodes_become_flows_and_what_they_wait_for() {
        let send = |id: u64, dst: u64| node(id, 5, &[1]).with("comm_size", 5000).with("comm_dst", dst).with("comm_tag", 7);
        let receive = node(4, 6, &[]).with("comm_src", 0).with("comm_tag", 7);
        let back = node(9, 5, &[5]).with("comm_size", 0).with("comm_dst", 0);
        let traces = [file(&[node(1, 4, &[]).takes(3), send(8, 1)]), file(&[back, receive, node(5, 4, &[4]).takes(2)])];
        let flows = attempt(&traces, &[("start", "1us")]).unwrap();
        assert_eq!((flows[0].size_bytes, flows[0].start, flows[1].size_bytes), (5000, base::Time(4_000_000), 1));
        let after = flows[1].after.as_ref().unwrap();
        assert_eq!((&after.flows, after.not_before), (&vec![(0, Dur::from_us(2))], base::Time(3_000_000)));
    }

    #[test]
    fn collectives_and_computations_are_tasks() {
        let whole = |id| node(id, 7, &[]).with("comm_type", 0).with("comm_size", 4000).named("pg_name", "dp");
        let trace = |micros| file(&[whole(1), node(2, 4, &[1]).takes(micros), whole(3)]);
        let dir = tempfile::tempdir().unwrap();
        for (rank, micros) in [(0, 7), (1, 0)] {
            std::fs::write(dir.path().join(format!("t.{rank}.et")), trace(micros)).unwrap();
        }
        let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
        let machine = bench.read("chakra", &[("path", "t")]).unwrap();
        let draw = super::super::Workload::draw(&machine, &bench.env(), &mut base::Streams::new(1)).unwrap();
        let moved = Some(super::super::tasks::Moved { operation: "all_reduce", bytes: 4000, bus_bytes: 4000 });
        let found: Vec<_> = draw.tasks.all.iter().map(|task| (task.name.as_str(), task.collective)).collect();
        assert_eq!(found, [("all_reduce dp 0", moved), ("all_reduce dp 1", moved), ("node 2", None)]);
        assert_eq!(
            draw.tasks.parts.iter().map(|part| (part.task, part.rank)).collect::<Vec<_>>(),
            [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0)]
        );
        assert!(draw.flows.iter().all(|flow| flow.group < Some(2)));
    }

    /// The times of ASTRA-sim: num_ops / min(peak, bandwidth * num_ops / tensor_size).
    #[test]
    fn nodes_without_a_duration_take_their_operations_or_their_bytes() {
        let compute = |micros| node(1, 4, &[]).takes(micros).with("num_ops", 6_000_000).with("tensor_size", 1_000_000);
        let send = node(2, 5, &[1]).with("comm_size", 9).with("comm_dst", 1);
        let start = |micros, set: &[(&'static str, &str)]| {
            attempt(&[file(&[compute(micros), send.clone()]), file(&[])], set).unwrap()[0].start.0
        };
        assert_eq!(start(0, &[]), 0);
        // 6 million operations at 2 in a picosecond; 1 MB at 1 TB/s.
        assert_eq!(start(0, &[("teraflops", "2")]), 3_000_000);
        assert_eq!(start(0, &[("memory_rate", "8000Gbps")]), 1_000_000);
        assert_eq!(start(0, &[("teraflops", "2"), ("memory_rate", "8000Gbps")]), 3_000_000);
        assert_eq!(start(0, &[("teraflops", "12"), ("memory_rate", "8000Gbps")]), 1_000_000);
        assert_eq!(start(7, &[("teraflops", "2")]), 7_000_000, "a node with a duration keeps it");
        let message = attempt(&[file(&[node(1, 4, &[]).with("num_ops", u64::MAX >> 1)])], &[("teraflops", "1")]).unwrap_err();
        assert!(message.contains("t.0.et: node 1: takes longer than"), "{message}");
    }

    #[test]
    fn an_all_reduce_in_a_ring_goes_around_twice() {
        let flows = attempt(&collective(4, 0, 4000), &[]).unwrap();
        let (last, ring) = flows.split_last().unwrap();
        assert_eq!(ring.len(), 4 * 6);
        for flow in ring {
            assert_eq!((flow.size_bytes, flow.dst.0, flow.group), (1000, (flow.src.0 + 1) % 4, Some(0)));
            let on: Vec<&Drawn> = on(flow).into_iter().map(|on| &flows[on as usize]).collect();
            assert!(on.len() <= 1 && on.iter().all(|on| on.dst == flow.src), "a step waits for the message received before");
        }
        assert_eq!(ring.iter().filter(|flow| flow.after.is_none()).count(), 4);
        assert_eq!((last.size_bytes, last.group), (9, None));
        // All flows that rank 0 has sent and received, except those that other flows of rank 0 have
        // waited for.
        let waits = on(last);
        assert!(!waits.is_empty() && waits.iter().all(|on| [flows[*on as usize].src.0, flows[*on as usize].dst.0].contains(&0)));
    }

    #[test]
    fn collectives_have_the_messages_of_their_algorithms() {
        for (kind, algorithm, messages, bytes) in [
            (0, "direct", 2 * 5 * 4, 1000),
            (0, "tree", 2 * 4, 5000),
            (1, "ring", 4, 5000),
            (2, "ring", 5 * 4, 5000),
            (2, "direct", 5 * 4, 5000),
            (3, "ring", 4, 5000),
            (4, "ring", 4, 1000),
            (5, "ring", 4, 5000),
            (6, "ring", 5 * 4, 1000),
            (7, "ring", 5 * 4, 1000),
            (8, "tree", 5 * 4, 1000),
            (9, "ring", 5 * 3, 1),
        ] {
            let flows = attempt(&collective(5, kind, 5000), &[("algorithm", algorithm)]).unwrap();
            assert_eq!(flows.len(), messages + 1, "{kind} {algorithm}");
            assert!(flows.iter().all(|flow| [bytes, 9].contains(&flow.size_bytes)), "{kind} {algorithm}");
            let last = flows.iter().find(|flow| flow.size_bytes == 9).unwrap();
            assert!(last.after.is_some(), "{kind} {algorithm}: rank 0 takes part");
        }
        // Each rank is reached from the root through at most three messages.
        let flows = attempt(&collective(8, 5, 64), &[]).unwrap();
        let mut reached: Vec<u32> = flows.iter().filter(|flow| flow.size_bytes == 64).map(|flow| flow.dst.0).collect();
        reached.sort_unstable();
        assert_eq!(reached, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn a_rank_without_a_file_is_refused_if_a_later_rank_has_one() {
        let traces = collective(4, 0, 4000);
        let read = |names: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            names.iter().zip(&traces).for_each(|(name, bytes)| std::fs::write(dir.path().join(name), bytes).unwrap());
            let bench = Bench { files: Files::new(dir.path()), ..Bench::new("single_tree", &[]) };
            bench.read("chakra", &[("path", "t")]).map(|_| ())
        };
        for (names, why) in [
            (["t.0.et", "t.1.et", "t.3.et"], "`t.2.et` does not exist, but `t.3.et` does"),
            (["t.0.et", "t.1.et", "t.02.et"], "`t.2.et` does not exist, but `t.02.et` does"),
        ] {
            let message = read(&names).unwrap_err();
            assert!(message.contains(why), "{names:?}: {message}");
        }
        // Files of other names are not part of the trace.
        assert_eq!(read(&["t.0.et", "t.1.et", "t.2.et", "u.4.et"]), Ok(()));
    }

    #[test]
    fn groups_have_their_own_members() {
        let of = |group: &str| node(1, 7, &[]).with("comm_type", 6).with("comm_size", 90).named("pg_name", group);
        let traces = ["a", "b", "a", "b"].map(|group| file(&[of(group)]));
        let mut ends: Vec<_> = attempt(&traces, &[]).unwrap().iter().map(|flow| (flow.src.0, flow.dst.0, flow.group)).collect();
        ends.sort_unstable();
        assert_eq!(ends, [(0, 2, Some(0)), (1, 3, Some(1)), (2, 0, Some(0)), (3, 1, Some(1))]);
    }

    #[test]
    fn mistakes_are_named_with_their_places() {
        let send = || node(3, 5, &[]).with("comm_size", 1).with("comm_dst", 1);
        let single = |node: trace::Node| vec![file(&[node])];
        let whole = |bytes| file(&[node(1, 7, &[]).with("comm_type", 0).with("comm_size", bytes)]);
        let cases = [
            (vec![], "cannot read the file `t.0.et`: there is no such file"),
            (vec![vec![1, 2, 3]], "t.0.et: byte 0: this is not the header of a trace"),
            (vec![[file(&[]), vec![9, 200]].concat()], "this is not a node of a trace"),
            (single(node(3, 4, &[])), "`t` has no flows"),
            (single(node(3, 0, &[])), "t.0.et: byte 8: node 3: its type is 0, but the schema has the types 1 to 7"),
            (vec![file(&[node(2, 4, &[]), node(3, 77, &[])])], "t.0.et: byte 13: node 3: its type is 77, but"),
            (vec![file(&[send()]); 10], "`t`: the trace has 10 ranks, but the network has 9 hosts"),
            (single(node(3, 4, &[7])), "t.0.et: node 3: depends on node 7, which does not exist"),
            (vec![file(&[node(3, 4, &[]), node(3, 4, &[])])], "t.0.et: node 3: is in the file twice"),
            (single(send()), "t.0.et: node 3: its `comm_dst` is not a rank: the trace has 1"),
            (single(node(3, 5, &[]).with("comm_dst", 0)), "t.0.et: node 3: has no attribute `comm_size`"),
            (single(send().with("comm_dst", 0).with("comm_tag", 1 << 40)), "its `comm_dst` is not a rank"),
            (
                vec![file(&[node(4, 6, &[]).with("comm_src", 1)]), file(&[])],
                "t: rank 0, node 4: no message with tag 0 from rank 1 is left",
            ),
            (vec![file(&[node(1, 4, &[2]), node(2, 4, &[1])])], "t: rank 0, node 1: waits for itself"),
            (single(node(3, 7, &[]).with("comm_type", 10)), "its `comm_type` is 10, which is not a collective"),
            (vec![whole(5), whole(6)], "t.1.et: node 1: differs in type or size from node 1 of t.0.et"),
            (single(node(3, 4, &[]).takes(u64::MAX)), "t.0.et: node 3: takes longer than"),
        ];
        for (traces, why) in cases {
            let message = attempt(&traces, &[]).unwrap_err();
            assert!(message.contains(why), "{why}: {message}");
        }
        let two = file(&[node(1, 7, &[]), node(2, 7, &[])].map(|node| node.with("comm_type", 9)));
        let message = attempt(&[two, file(&[node(1, 7, &[]).with("comm_type", 9)])], &[]).unwrap_err();
        assert!(
            message.contains("t.1.et: node 1: is the last of 1 collectives of its process group, but other ranks have 2"),
            "{message}"
        );
    }

    #[test]
    fn no_file_breaks_the_reader() {
        let sample = collective(3, 0, 600);
        for bytes in damaged(&sample[0]) {
            let _ = attempt(&[bytes, sample[1].clone(), sample[2].clone()], &[]);
        }
    }
}
