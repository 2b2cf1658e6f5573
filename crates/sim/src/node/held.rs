//! The packets that a router holds in one switch, by flow.

use base::{FlowId, FlowMap};
use fabric::queue::{Backlog, Queue};
use proto::Packet;

/// The packets that a router holds in one switch.
#[derive(Clone, Default)]
pub struct HeldPackets {
    /// The held packets of each flow, in the order of their arrival.
    queues: FlowMap<Queue>,
    /// Empty queues for the next flows.
    spare: Vec<Queue>,
    backlog: Backlog,
}

impl HeldPackets {
    /// Returns the packets and bytes that the switch holds.
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
    /// Adds a packet behind the held packets of its flow.
    pub fn push(&mut self, packet: &Packet) {
        let HeldPackets { queues, spare, backlog } = self;
        queues.or_insert_with(packet.flow, || spare.pop().unwrap_or_default()).push(packet);
        backlog.add(packet);
    }
    /// Removes the held packets of a flow.
    pub fn take(&mut self, flow: FlowId) -> Option<Queue> {
        let queue = self.queues.remove(flow)?;
        self.backlog.packets -= queue.backlog().packets;
        self.backlog.bytes -= queue.backlog().bytes;
        Some(queue)
    }
    /// Keeps an empty queue for another flow.
    pub fn put_back(&mut self, queue: Queue) {
        self.spare.push(queue);
    }
    /// Removes all packets, and returns the number of blocks of the extension slab that they hold.
    pub fn drain(&mut self) -> usize {
        let flows: Vec<FlowId> = self.queues.iter().map(|(flow, _)| flow).collect();
        let queues = flows.into_iter().filter_map(|flow| self.take(flow));
        queues.map(|mut queue| std::iter::from_fn(|| queue.pop().map(|packet| packet.blocks())).sum::<usize>()).sum()
    }
}
