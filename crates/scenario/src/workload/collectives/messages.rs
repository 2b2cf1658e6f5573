//! The messages of a collective, as operations of a program.

use crate::workload::program::{Act, Message, Program};
use base::Dur;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A rank that takes part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its rank.
    pub rank: u32,
    /// The operation of the rank after which its part begins.
    pub begin: u32,
    /// The place of its part in a file, for error messages.
    pub place: u64,
    /// Number of its server.
    pub server: u32,
    /// Its place in the server.
    pub slot: u32,
}

/// The data of a collective: blocks, each cut into slices. The slices of a block go through an
/// algorithm independently of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlicedData {
    /// Sizes of blocks 0, 1, 2 and so on in bytes; after the last size, the first size follows.
    pub sizes: Vec<u64>,
    /// Number of channels: parallel connections between two members.
    pub channels: u32,
    /// Number of slices of a block on one channel. They follow one another.
    pub pieces: u32,
}

/// Returns the size of part `part` of `bytes` bytes that are cut into `parts` parts of equal size,
/// except for a byte.
pub fn part(bytes: u64, part: u32, parts: u32) -> u64 {
    let end = |part: u32| (u128::from(bytes) * u128::from(part) / u128::from(parts)) as u64;
    end(part + 1) - end(part)
}

impl SlicedData {
    /// Returns the number of slices of a block.
    pub fn slices(&self) -> u32 {
        self.channels * self.pieces
    }
    /// Returns the channel of a slice.
    pub fn channel(&self, slice: u32) -> u32 {
        slice / self.pieces
    }
    fn bytes(&self, blocks: &[u32], slice: u32) -> u64 {
        let size = |block: &u32| self.sizes[*block as usize % self.sizes.len()];
        blocks.iter().map(|block| part(size(block), slice, self.slices())).sum()
    }
}

/// A message of a collective.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// Index of the member that sends.
    pub src: u32,
    /// Index of the member that receives.
    pub dst: u32,
    /// The slice of the blocks.
    pub slice: u32,
    /// The blocks. The message has one slice of each.
    pub blocks: &'a [u32],
    /// Whether the receiver adds the data to its own data, rather than replacing it.
    pub sum: bool,
    /// Operations of the sender that must end before: those that receive what it forwards.
    pub after: &'a [u32],
    /// Whether it waits until the sender has begun its part.
    pub begun: Begun,
    /// Number of the connection, if there are several from the sender to the receiver on a channel.
    pub lane: u32,
}

/// Which messages wait until their sender has begun its part. Messages without `after` always do.
///
/// In the network, these are the messages of the first window of a connection: later messages of
/// the connection wait for these messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begun {
    /// In the network, those of the first window; within a server, all.
    First,
    /// In the network, those of the first window; within a server, none.
    FirstOutside,
    /// None: the operations in `after` imply it.
    Implied,
}

/// What a message carries, for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The blocks.
    pub blocks: Vec<u32>,
    /// The slice of the blocks.
    pub slice: u32,
    /// Whether the receiver adds the data to its own data.
    pub sum: bool,
}

/// Bytes of the longest message within a server. At the lowest rate it takes 92 days.
const MOST_LOCAL_BYTES: u64 = 1_000_000_000_000_000;

/// Adds the messages of a collective to a program.
pub struct Messages<'a> {
    program: &'a mut Program,
    group: u32,
    members: &'a [Member],
    data: SlicedData,
    /// Number of messages from a member to another member on a channel that may be under way.
    window: Option<u32>,
    /// By sender, receiver and connection: the last sends, and the last receives, up to a window. Empty
    /// without a window.
    recent: BTreeMap<[u32; 3], [VecDeque<u32>; 2]>,
    /// By member: the operations that must end before its part has ended.
    ends: Vec<BTreeSet<u32>>,
    /// Number of messages of a member within its server at the same time.
    sharing: u64,
    /// Whether results that a member receives imply that the member has begun.
    implied: bool,
    /// Number of messages so far. Each message has its own tag.
    count: u64,
    /// What the messages carry, by tag, if asked for.
    pub contents: Option<BTreeMap<u64, Content>>,
}

impl<'a> Messages<'a> {
    /// Creates a collective without messages. `group` is the number of its group and its tags.
    pub fn new(program: &'a mut Program, group: u32, members: &'a [Member], data: SlicedData, window: Option<u32>) -> Self {
        let ends = members.iter().map(|member| BTreeSet::from([member.begin])).collect();
        let sharing = data.slices().into();
        Messages {
            program,
            group,
            members,
            data,
            window,
            recent: BTreeMap::new(),
            ends,
            implied: false,
            sharing,
            count: 0,
            contents: None,
        }
    }
    /// Declares that the members receive results that include their own data, so that a member that
    /// has its results has begun. Without a window, members may forward data before they begin.
    pub fn implies_begin(&mut self) {
        self.implied = self.window.is_some();
    }
    /// Sets the number of messages that each member sends within its server at the same time. They share
    /// the rate of the server equally. At first, it is the number of slices.
    pub fn share_among(&mut self, messages: u32) {
        self.sharing = messages.into();
    }
    /// Returns the members.
    pub fn members(&self) -> &'a [Member] {
        self.members
    }
    /// Returns the number of slices of each block.
    pub fn slices(&self) -> u32 {
        self.data.slices()
    }
    /// Returns the channel of a slice.
    pub fn channel(&self, slice: u32) -> u32 {
        self.data.channel(slice)
    }

    /// Adds a message. Returns the operation of its receiver that receives the message.
    pub fn send(&mut self, step: Step<'_>) -> u32 {
        self.send_and_receive(step)[1]
    }
    /// Adds a message. Returns the operation of its sender that sends the message, and the operation of
    /// its receiver that receives it.
    ///
    /// A message within a server does not hold up its sender, and no window limits it.
    pub fn send_and_receive(&mut self, step: Step<'_>) -> [u32; 2] {
        let [src, dst] = [step.src, step.dst].map(|member| self.members[member as usize]);
        let local = src.server == dst.server;
        // Tags of other messages are below 2^32, tags of collectives above.
        let tag = (u64::from(self.group) + 1) << 32 | self.count;
        self.count += 1;
        if let Some(contents) = &mut self.contents {
            contents.insert(tag, Content { blocks: step.blocks.to_vec(), slice: step.slice, sum: step.sum });
        }
        let mut bytes = self.data.bytes(step.blocks, step.slice);
        if local {
            // It takes as long as all messages with which it shares the rate.
            bytes = bytes.saturating_mul(self.sharing).min(MOST_LOCAL_BYTES);
        }
        let channel = self.data.channel(step.slice) << 2 | step.lane;
        let connection = [step.src, step.dst, channel];
        let mut recent = self.window.map(|window| (window as usize, self.recent.entry(connection).or_default()));
        let before = match &mut recent {
            Some((window, [sent, _])) if !local && sent.len() == *window => sent.pop_front(),
            _ => None,
        };
        let mut after = Vec::with_capacity(step.after.len() + 1);
        after.extend(step.after.iter().copied().chain(before));
        // The window is not full yet. Without a window, the algorithm alone orders messages.
        let first = recent.is_some() && before.is_none();
        let waits = match step.begun {
            Begun::First => local || first,
            Begun::FirstOutside => !local && first,
            Begun::Implied => false,
        };
        if waits || after.is_empty() {
            after.push(src.begin);
        }
        let message = Message { to: dst.rank, bytes, tag, eager: local, group: Some(self.group), channel };
        if !local {
            // The send ends after them.
            for op in &after {
                self.ends[step.src as usize].remove(op);
            }
        }
        let send = self.program.add(src.rank, Act::Send(message), after, src.place);
        // Receives are posted from the start.
        let receive = self.program.add(dst.rank, Act::Receive { from: src.rank, tag: Some(tag) }, Vec::new(), dst.place);
        if !local {
            self.ends[step.src as usize].insert(send);
        }
        let ends = &mut self.ends[step.dst as usize];
        if let Some((window, [sent, received])) = recent {
            if !local {
                sent.push_back(send);
            }
            // In the network, this message waits for the end of that message. Within a server, messages
            // of a connection carry data that has arrived in this order.
            if received.len() == window
                && let Some(old) = received.pop_front()
            {
                ends.remove(&old);
            }
            received.push_back(receive);
        }
        ends.insert(receive);
        if self.implied {
            ends.remove(&dst.begin);
        }
        [send, receive]
    }

    /// Adds by member an operation that ends its part: its own messages have arrived, and it has
    /// received all messages for it. Returns these operations.
    pub fn end(self) -> Vec<u32> {
        let end = |(ends, member): (BTreeSet<u32>, &Member)| {
            self.program.add(member.rank, Act::Compute(Dur::ZERO), ends.into_iter().collect(), member.place)
        };
        self.ends.into_iter().zip(self.members).map(end).collect()
    }
}
