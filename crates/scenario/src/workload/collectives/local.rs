//! Collectives of the ranks of one server.

use super::Collective;
use super::messages::Member;
use crate::workload::collectives::CollectiveOp;
use crate::workload::program::{Act, Message, Program};
use base::Dur;

impl Collective {
    /// Returns the bytes that a member sends in a ring, or directly, which take the time of the collective
    /// within a server.
    fn bytes_of_member(&self, n: u64) -> u64 {
        let rest = (u128::from(self.bytes) * u128::from(n - 1) / u128::from(n)) as u64;
        match self.op {
            CollectiveOp::AllReduce => 2 * rest,
            CollectiveOp::AllGather | CollectiveOp::ReduceScatter | CollectiveOp::AllToAll => rest,
            CollectiveOp::Broadcast | CollectiveOp::Send => self.bytes,
        }
    }

    /// Adds the collective of members of one server to a program, as a group. It begins when the last
    /// member begins, and ends for all members when the bytes of a member have passed. Returns by member
    /// the operation that ends its part.
    ///
    /// This takes two messages for each member, so that programs with many such collectives stay small.
    pub fn add_within_server(&self, program: &mut Program, group: u32, members: &[Member]) -> Vec<u32> {
        let bytes = self.bytes_of_member(members.len() as u64);
        let first = members[0];
        let mut tag = (u64::from(group) + 1) << 32;
        let mut pass = |program: &mut Program, from: &Member, to: &Member, bytes: u64, after: u32| {
            tag += 1;
            let message = Message { to: to.rank, bytes, tag, eager: true, group: Some(group), channel: 0 };
            program.add(from.rank, Act::Send(message), vec![after], from.place);
            program.add(to.rank, Act::Receive { from: from.rank, tag: Some(tag) }, Vec::new(), to.place)
        };
        let mut all = vec![first.begin];
        all.extend(members[1..].iter().map(|member| pass(program, member, &first, 0, member.begin)));
        let all = program.add(first.rank, Act::Compute(Dur::ZERO), all, first.place);
        // The first member sends the bytes to itself, and tells the others at once when they have passed.
        let passed = pass(program, &first, &first, bytes, all);
        let others: Vec<u32> = members[1..].iter().map(|member| pass(program, &first, member, 0, passed)).collect();
        std::iter::once(passed).chain(others).collect()
    }
}
