//! RingSteps: each member sends to the next member, step by step.

use super::messages::{Begun, Member, Messages, Step};
use super::servers;
use std::ops::Range;

/// By slice and member: operations of the member after which it has its data of the slice.
pub type ReadyAfter = Vec<Vec<u32>>;

/// RingSteps of members.
pub struct RingSteps<'a> {
    /// By channel: the members in the order of the ring.
    pub orders: &'a [Vec<u32>],
    /// By member: the blocks whose sum the member has after the reduce-scatter.
    pub blocks: &'a [Vec<u32>],
    /// Which messages wait until their senders have begun.
    pub begun: Begun,
}

impl RingSteps<'_> {
    /// Adds the steps of a reduce-scatter (0 to n-2), of an all-gather (n-1 to 2n-3) or of both. In
    /// step s, position i of a ring sends the blocks of position i-1-s, modulo n. A member adds its
    /// own data to that of a reduce-scatter after the operations in `own`. Returns the operations
    /// after which members have the sums of a reduce-scatter, or the data of an all-gather.
    pub fn add(&self, messages: &mut Messages<'_>, steps: Range<u32>, own: &ReadyAfter) -> ReadyAfter {
        let members = messages.members().len() as u32;
        let at = |slice: u32, member: u32| (slice * members + member) as usize;
        let mut ready: ReadyAfter = vec![Vec::new(); (messages.slices() * members) as usize];
        // The operations that have received what the members send in the next step.
        let mut last: Vec<Option<u32>> = vec![None; ready.len()];
        for step in steps.clone() {
            let mut next = last.clone();
            for slice in 0..messages.slices() {
                let order = &self.orders[messages.channel(slice) as usize % self.orders.len()];
                let n = order.len() as u32;
                for i in 0..n {
                    let (src, dst) = (order[i as usize], order[(i + 1) as usize % order.len()]);
                    let block = order[((i + 2 * n - 1 - step) % n) as usize];
                    let sum = step + 1 < n;
                    let mut after: Vec<u32> = last[at(slice, src)].into_iter().collect();
                    // The sum that a member has after the reduce-scatter includes its own data.
                    if step < n || after.is_empty() {
                        after.extend(&own[at(slice, src)]);
                    }
                    let blocks = &self.blocks[block as usize];
                    let received = messages.send(Step { src, dst, slice, blocks, sum, after: &after, begun: self.begun, lane: 0 });
                    next[at(slice, dst)] = Some(received);
                    if step + n >= steps.end {
                        ready[at(slice, dst)].push(received);
                    }
                }
            }
            last = next;
        }
        ready
    }
}

/// Returns by channel the order of the members in a ring.
///
/// The order is that of the ranks. Consecutive ranks of a server are rotated by the number of the
/// channel, and every other server is passed in reverse: a ring that leaves a server at rail r
/// enters the next server at rail r, as with `NCCL_CROSS_NIC=0`. With as many channels as hosts of
/// a server, each NIC sends for one ring.
pub fn orders(members: &[Member], channels: u32) -> Vec<Vec<u32>> {
    let indices: Vec<u32> = (0..members.len() as u32).collect();
    let runs: Vec<&[u32]> = indices.chunk_by(|a, b| members[*a as usize].server == members[*b as usize].server).collect();
    let order = |channel: u32| {
        let run = |(number, run): (usize, &&[u32])| {
            let mut run = run.to_vec();
            let by = channel as usize % run.len();
            run.rotate_left(by);
            if number % 2 == 1 {
                run.reverse();
            }
            run
        };
        runs.iter().enumerate().flat_map(run).collect()
    };
    (0..channels).map(order).collect()
}

/// Returns an empty list of operations for each slice and member.
pub fn nothing(messages: &Messages<'_>) -> ReadyAfter {
    vec![Vec::new(); messages.slices() as usize * messages.members().len()]
}

/// Adds the messages from the root along a ring to all other members.
pub fn chain(messages: &mut Messages<'_>, channels: u32, root: u32) {
    for (channel, mut order) in (0..).zip(orders(messages.members(), channels)) {
        let first = order.iter().position(|member| *member == root).unwrap_or(0);
        order.rotate_left(first);
        for slice in (0..messages.slices()).filter(|slice| messages.channel(*slice) == channel).collect::<Vec<_>>() {
            let mut last: Option<u32> = None;
            for pair in order.windows(2) {
                let (src, dst, after) = (pair[0], pair[1], last.into_iter().collect::<Vec<_>>());
                let step = Step { src, dst, slice, blocks: &[0], sum: false, after: &after, begun: Begun::First, lane: 0 };
                last = Some(messages.send(step));
            }
        }
    }
}

/// Adds the messages of a shift: each member sends all its data to the next member.
pub fn shift(messages: &mut Messages<'_>) {
    let n = messages.members().len() as u32;
    for (slice, src) in (0..messages.slices()).flat_map(|slice| (0..n).map(move |src| (slice, src))) {
        let dst = (src + 1) % n;
        messages.send(Step { src, dst, slice, blocks: &[src], sum: false, after: &[], begun: Begun::First, lane: 0 });
    }
}

/// Adds the messages of an all-reduce that sums within servers, then between the members at the same
/// place of all servers, and then distributes the sums within servers. All servers have the same
/// number of members.
pub fn hierarchical(messages: &mut Messages<'_>) {
    let servers = servers(messages.members());
    let (each, count) = (servers[0].len() as u32, servers.len() as u32);
    let members = messages.members().len();
    // Group j has `count` blocks, one for each server.
    let (mut groups, mut single) = (vec![Vec::new(); members], vec![Vec::new(); members]);
    for (m, server) in (0..).zip(&servers) {
        for (j, member) in (0..).zip(server) {
            groups[*member as usize] = (j * count..(j + 1) * count).collect();
            single[*member as usize] = vec![j * count + m];
        }
    }
    let within = |messages: &mut Messages<'_>, steps: Range<u32>, own: &ReadyAfter, begun: Begun| {
        let mut all = nothing(messages);
        for server in &servers {
            let rings = RingSteps { orders: std::slice::from_ref(server), blocks: &groups, begun };
            all.iter_mut().zip(rings.add(messages, steps.clone(), own)).for_each(|(all, own)| all.extend(own));
        }
        all
    };
    let none = nothing(messages);
    // Only the last step brings the finished sum of a member.
    let mut ready = within(messages, 0..each - 1, &none, Begun::First);
    ready.iter_mut().for_each(|ops| drop(ops.drain(..ops.len().saturating_sub(1))));
    if count > 1 {
        let mut all = none;
        for j in 0..each as usize {
            let order = [servers.iter().map(|server| server[j]).collect::<Vec<u32>>()];
            let rings = RingSteps { orders: &order, blocks: &single, begun: Begun::First };
            let own = rings.add(messages, 0..2 * (count - 1), &ready);
            all.iter_mut().zip(own).for_each(|(all, own)| all.extend(own));
        }
        ready = all;
    }
    within(messages, each - 1..2 * (each - 1), &ready, Begun::Implied);
}
