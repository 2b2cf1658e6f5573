//! Messages from each member to each other member.

use super::messages::{Begun, Messages, Step};
use super::servers;

/// The content of the messages between members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PairContent {
    /// The block of the receiver, which it adds to its own data.
    ReduceScatter,
    /// The block of the sender.
    AllGather,
    /// The block of sender and receiver.
    AllToAll,
}

impl PairContent {
    fn block(self, n: u32, src: u32, dst: u32) -> u32 {
        match self {
            PairContent::ReduceScatter => dst,
            PairContent::AllGather => src,
            PairContent::AllToAll => src * n + dst,
        }
    }
}

/// Adds a message from each member to each other member, all at the same time. A member begins with
/// the member after it. A member sends after the operations in `first`, by slice and member, which imply
/// that it has begun. Returns the operations that receive, by slice and member.
pub fn direct(messages: &mut Messages<'_>, exchange: PairContent, first: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let n = messages.members().len() as u32;
    let sum = exchange == PairContent::ReduceScatter;
    let mut ready: Vec<Vec<u32>> = vec![Vec::new(); (messages.slices() * n) as usize];
    let members = messages.members();
    let near = |src: u32| members.iter().filter(|member| member.server == members[src as usize].server).count() as u32 - 1;
    let near: Vec<u32> = (0..n).map(near).collect();
    let slices = messages.slices();
    for slice in 0..slices {
        for (src, by) in (0..n).flat_map(|src| (1..n).map(move |by| (src, by))) {
            messages.share_among(near[src as usize] * slices);
            let dst = (src + by) % n;
            let (blocks, after) = (&[exchange.block(n, src, dst)], &first[(slice * n + src) as usize]);
            let (begun, lane) = (Begun::Implied, u32::from(!sum));
            let received = messages.send(Step { src, dst, slice, blocks, sum, after, begun, lane });
            ready[(slice * n + dst) as usize].push(received);
        }
    }
    ready
}

/// Adds the messages of an all-to-all in which a member exchanges data with one other member at a
/// time: in step s it sends to the member s positions ahead and receives from the member s positions
/// behind. The next step of a slice begins when both messages have arrived.
pub fn pairwise(messages: &mut Messages<'_>) {
    let n = messages.members().len() as u32;
    let mut ready: Vec<Vec<u32>> = vec![Vec::new(); (messages.slices() * n) as usize];
    for by in 1..n {
        let mut next = vec![Vec::new(); ready.len()];
        for (slice, src) in (0..messages.slices()).flat_map(|slice| (0..n).map(move |src| (slice, src))) {
            let dst = (src + by) % n;
            let (blocks, after) = (&[PairContent::AllToAll.block(n, src, dst)], &ready[(slice * n + src) as usize]);
            let step = Step { src, dst, slice, blocks, sum: false, after, begun: Begun::Implied, lane: 0 };
            let [sent, received] = messages.send_and_receive(step);
            next[(slice * n + src) as usize].push(sent);
            next[(slice * n + dst) as usize].push(received);
        }
        ready = next;
    }
}

/// Adds the messages of an all-to-all that stay on rails: a member first sends the data for a place
/// to the member of its server at this place, which sends the data of its whole server to the members
/// at its place of other servers. All servers have the same number of members.
pub fn by_rail(messages: &mut Messages<'_>) {
    let servers = servers(messages.members());
    let n = messages.members().len() as u32;
    let (each, count) = (servers[0].len(), servers.len());
    let block = |src: u32, dst: u32| PairContent::AllToAll.block(n, src, dst);
    messages.share_among((each as u32 - 1) * messages.slices());
    for slice in 0..messages.slices() {
        let mut ready: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
        for (server, from) in servers.iter().flat_map(|server| server.iter().map(move |from| (server, *from))) {
            for (place, to) in server.iter().enumerate().filter(|(_, to)| **to != from) {
                let blocks: Vec<u32> = servers.iter().map(|other| block(from, other[place])).collect();
                let step =
                    Step { src: from, dst: *to, slice, blocks: &blocks, sum: false, after: &[], begun: Begun::First, lane: 0 };
                ready[*to as usize].push(messages.send(step));
            }
        }
        for (own, place) in (0..count).flat_map(|own| (0..each).map(move |place| (own, place))) {
            let src = servers[own][place];
            for other in (1..count).map(|by| &servers[(own + by) % count]) {
                let dst = other[place];
                let blocks: Vec<u32> = servers[own].iter().map(|from| block(*from, dst)).collect();
                let after = &ready[src as usize];
                messages.send(Step { src, dst, slice, blocks: &blocks, sum: false, after, begun: Begun::First, lane: 0 });
            }
        }
    }
}
