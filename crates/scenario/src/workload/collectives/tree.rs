//! Trees: double binary trees, and binomial trees.

use super::messages::{Begun, Messages, Step};
use super::servers;

/// Adds the messages of an all-reduce over two binary trees. Each tree sums one half of the data at
/// its root and distributes the sum.
///
/// The nodes of the trees are servers. The members of a server are a chain to the member that sends
/// to other servers: on channel c, the member at place c of the server.
pub fn double_binary(messages: &mut Messages<'_>) {
    let servers = servers(messages.members());
    for slice in 0..messages.slices() {
        let chains: Vec<Vec<u32>> = servers
            .iter()
            .map(|server| {
                let mut chain = server.clone();
                chain.rotate_left(messages.channel(slice) as usize % server.len());
                chain
            })
            .collect();
        for tree in 0..2 {
            let parents = parents(servers.len() as u32, tree == 1);
            both_ways(messages, slice, tree, &chains, &parents);
        }
    }
}

/// Adds the messages of a slice up and down one tree.
fn both_ways(messages: &mut Messages<'_>, slice: u32, tree: u32, chains: &[Vec<u32>], parents: &[Option<u32>]) {
    let order = from_root(parents);
    let root = chains[order[0] as usize][0];
    let mut send = |src: u32, dst: u32, sum: bool, after: &[u32]| {
        // Both trees, and both directions, have connections of their own.
        let lane = 2 * tree + u32::from(!sum);
        // The root adds its own data to what it distributes.
        let begun = if sum || src == root { Begun::First } else { Begun::Implied };
        messages.send(Step { src, dst, slice, blocks: &[tree], sum, after, begun, lane })
    };
    // By node: the operations that receive from its children and along its chain.
    let mut received: Vec<Vec<u32>> = vec![Vec::new(); chains.len()];
    for &node in order.iter().rev() {
        let chain = &chains[node as usize];
        let mut last: Option<u32> = None;
        for pair in chain.windows(2).rev() {
            last = Some(send(pair[1], pair[0], true, &last.into_iter().collect::<Vec<_>>()));
        }
        received[node as usize].extend(last);
        if let Some(parent) = parents[node as usize] {
            let arrived = send(chain[0], chains[parent as usize][0], true, &received[node as usize]);
            received[parent as usize].push(arrived);
            received[node as usize].clear();
        }
    }
    for &node in &order {
        let chain = &chains[node as usize];
        if let Some(parent) = parents[node as usize] {
            let from = &received[parent as usize];
            received[node as usize] = vec![send(chains[parent as usize][0], chain[0], false, from)];
        }
        let mut last = received[node as usize].clone();
        for pair in chain.windows(2) {
            last = vec![send(pair[0], pair[1], false, &last)];
        }
    }
}

/// Returns by node its parent in a binary tree of `n` nodes, and `None` for the root.
///
/// In the first tree, node 0 is the root, and its only child is the largest power of two below n.
/// The parent of any other node with lowest bit b has this bit cleared and the bit 2b set; if there
/// is no such node, only the bit cleared. Nodes with an odd number are leaves. In the second tree,
/// the numbers of the nodes are reversed (n is even) or shifted by one (n is odd), so that a node is a
/// leaf in one of both trees.
pub fn parents(n: u32, second: bool) -> Vec<Option<u32>> {
    let parent = |node: u32| {
        let bit = 1 << node.trailing_zeros().min(31);
        match node {
            0 => None,
            _ if (node ^ bit | bit << 1) < n => Some(node ^ bit | bit << 1),
            _ => Some(node ^ bit),
        }
    };
    let of = |node: u32| match (second, n % 2) {
        (false, _) => parent(node),
        (true, 0) => parent(n - 1 - node).map(|parent| n - 1 - parent),
        (true, _) => parent((node + n - 1) % n).map(|parent| (parent + 1) % n),
    };
    (0..n).map(of).collect()
}

/// Returns the nodes of a tree, each after its parent.
fn from_root(parents: &[Option<u32>]) -> Vec<u32> {
    let mut children: Vec<Vec<u32>> = vec![Vec::new(); parents.len()];
    let mut order = Vec::with_capacity(parents.len());
    for (node, parent) in (0..).zip(parents) {
        match parent {
            Some(parent) => children[*parent as usize].push(node),
            None => order.push(node),
        }
    }
    let mut done = 0;
    while let Some(node) = order.get(done) {
        order.extend(children[*node as usize].clone());
        done += 1;
    }
    order
}

/// Adds the messages along a binomial tree, from all members to the root (`up`) or from the root to
/// all members. A member sends after the operations in `first`, by slice and member, and after it has
/// received all its messages. Returns these operations.
pub fn binomial(messages: &mut Messages<'_>, root: u32, up: bool, first: Vec<Vec<u32>>) -> Vec<Vec<u32>> {
    let n = messages.members().len() as u32;
    let mut ready = first;
    let mut steps: Vec<u32> = std::iter::successors(Some(1), |step| Some(2 * step)).take_while(|step| *step < n).collect();
    if !up {
        steps.reverse();
    }
    for step in steps {
        for slice in 0..messages.slices() {
            for upper in (0..n).step_by(2 * step as usize).filter(|upper| upper + step < n) {
                let (upper, lower) = ((upper + root) % n, (upper + step + root) % n);
                let (src, dst) = if up { (lower, upper) } else { (upper, lower) };
                let [from, to] = [src, dst].map(|member| (slice * n + member) as usize);
                let (after, lane) = (&ready[from], u32::from(!up));
                let begun = Begun::Implied;
                let received = messages.send(Step { src, dst, slice, blocks: &[0], sum: up, after, begun, lane });
                ready[to].push(received);
            }
        }
    }
    ready
}
