//! Recursive halving and doubling, for a power of two of members.

use super::messages::{Begun, Messages, Step};

/// Adds the messages of a reduce-scatter by recursive halving (`halving`), of an all-gather by
/// recursive doubling (`doubling`), or of both.
///
/// In a step with distance d, members whose numbers differ in the bit d exchange data. Halving
/// begins with d = n/2: each member sends the half of its sums that it does not keep. Doubling
/// begins with d = 1: each member sends all blocks that it has.
pub fn recursive(messages: &mut Messages<'_>, halving: bool, doubling: bool) {
    let n = messages.members().len() as u32;
    let up: Vec<u32> = std::iter::successors(Some(1), |d| Some(2 * d)).take_while(|d| *d < n).collect();
    let down = up.iter().rev().filter(|_| halving).map(|d| (*d, true));
    let steps = down.chain(up.iter().filter(|_| doubling).map(|d| (*d, false)));
    // By slice and member: what it has received. Sums have data of every step so far.
    let mut ready: Vec<Vec<u32>> = vec![Vec::new(); (messages.slices() * n) as usize];
    for (d, sum) in steps {
        let mut received = Vec::with_capacity(ready.len());
        for (slice, src) in (0..messages.slices()).flat_map(|slice| (0..n).map(move |src| (slice, src))) {
            let dst = src ^ d;
            // The blocks whose numbers are those of a member except for the bits below d.
            let first = if sum { dst & !(d - 1) } else { src & !(d - 1) };
            let blocks: Vec<u32> = (first..first + d).collect();
            let after = &ready[(slice * n + src) as usize];
            let step = Step { src, dst, slice, blocks: &blocks, sum, after, begun: Begun::First, lane: u32::from(!sum) };
            received.push((slice * n + dst, messages.send(step)));
        }
        received.into_iter().for_each(|(at, op)| ready[at as usize].push(op));
    }
}
