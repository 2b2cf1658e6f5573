//! Packets in order of arrival: the queue that most disciplines use.

use crate::refused::Refused;
use base::Limit;
use proto::Packet;

/// The packets and bytes that wait at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets.
    pub packets: u32,
    /// Bytes of these packets on the wire.
    pub bytes: u64,
}

impl Backlog {
    /// Adds a packet.
    #[inline]
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.wire_len);
    }
    /// Adds the backlog of another queue.
    pub fn add_all(&mut self, other: Backlog) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
    /// Subtracts a packet.
    #[inline]
    pub fn remove(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.wire_len);
    }
    /// Returns whether `packet` can be added without exceeding `limit`.
    #[inline]
    pub fn fits(&self, packet: &Packet, limit: Limit) -> bool {
        !limit.exceeded_by(self.packets + 1, self.bytes + u64::from(packet.wire_len))
    }
    /// Returns whether the backlog exceeds `limit`.
    #[inline]
    pub fn exceeds(&self, limit: Limit) -> bool {
        limit.exceeded_by(self.packets, self.bytes)
    }
}

/// Packets by value in a ring that doubles when it is full. A dequeued packet is lent: it stays in
/// the ring until another packet is enqueued.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Its length is a power of two or zero.
    ring: Vec<Packet>,
    /// Free-running count of packets taken out at the front.
    head: usize,
    backlog: Backlog,
}

impl Queue {
    #[inline(always)]
    fn place(&self, counter: usize) -> usize {
        counter & self.ring.len().wrapping_sub(1)
    }
    /// Returns the packets and bytes in the queue.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
    /// Returns whether the queue is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.backlog.packets == 0
    }
    /// Returns the oldest packet.
    pub fn first(&self) -> Option<&Packet> {
        (!self.is_empty()).then(|| &self.ring[self.place(self.head)])
    }
    /// Returns the second oldest packet.
    pub fn second(&self) -> Option<&Packet> {
        (self.backlog.packets > 1).then(|| &self.ring[self.place(self.head.wrapping_add(1))])
    }
    /// Enqueues a packet if it fits within `limit`, and drops it otherwise. Returns whether it
    /// waits.
    #[inline]
    pub fn push_within(&mut self, limit: Limit, packet: &Packet, refused: &mut Refused) -> bool {
        let fits = self.backlog.fits(packet, limit);
        if fits {
            self.push(packet);
        } else {
            refused.drop(packet);
        }
        fits
    }
    /// Enqueues a packet.
    #[inline]
    pub fn push(&mut self, packet: &Packet) {
        let len = self.backlog.packets as usize;
        if len == self.ring.len() {
            self.grow(packet);
        }
        let place = self.place(self.head.wrapping_add(len));
        self.ring[place] = *packet;
        self.backlog.add(packet);
    }
    /// Dequeues the oldest packet.
    #[inline]
    pub fn pop(&mut self) -> Option<&mut Packet> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(self.head);
        self.head = self.head.wrapping_add(1);
        let packet = &mut self.ring[place];
        self.backlog.remove(packet);
        Some(packet)
    }
    /// Removes the youngest packet.
    pub fn pop_back(&mut self) -> Option<&mut Packet> {
        let last = (self.backlog.packets as usize).checked_sub(1)?;
        let place = self.place(self.head.wrapping_add(last));
        let packet = &mut self.ring[place];
        self.backlog.remove(packet);
        Some(packet)
    }
    /// Doubles the number of places and fills the new ones with `filler`.
    #[cold]
    fn grow(&mut self, filler: &Packet) {
        let first = if self.ring.is_empty() { 0 } else { self.place(self.head) };
        self.ring.rotate_left(first);
        self.ring.resize((2 * self.ring.len()).max(4), *filler);
        self.head = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::FlowId;
    use proptest::prelude::*;
    use proto::Kind;
    use std::collections::VecDeque;

    proptest! {
        /// Compared with a deque, with operations at both ends.
        #[test]
        fn is_a_queue(steps in prop::collection::vec((0u8..5, 1u16..1500), 0..300)) {
            let (mut queue, mut plain) = (Queue::default(), VecDeque::new());
            for (n, (step, len)) in steps.into_iter().enumerate() {
                match step {
                    0 => prop_assert_eq!(queue.pop().copied(), plain.pop_front()),
                    1 => prop_assert_eq!(queue.pop_back().copied(), plain.pop_back()),
                    _ => {
                        let packet = Packet { offset: n as u64, ..Packet::new(FlowId(0), Kind::DATA, len) };
                        queue.push(&packet);
                        plain.push_back(packet);
                    }
                }
                let bytes = plain.iter().map(|packet| u64::from(packet.wire_len)).sum();
                prop_assert_eq!(queue.backlog(), Backlog { packets: plain.len() as u32, bytes });
                prop_assert_eq!(queue.is_empty(), plain.is_empty());
                prop_assert_eq!(queue.first(), plain.front());
            }
            let rest: VecDeque<Packet> = std::iter::from_fn(|| queue.pop().copied()).collect();
            prop_assert_eq!(rest, plain);
        }
    }
}
