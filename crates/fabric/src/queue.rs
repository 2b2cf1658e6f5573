//! Packets in order of arrival: what most disciplines hold.

use crate::refused::Refused;
use base::Limit;
use proto::Packet;

/// What waits at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: u32,
    /// Their bytes on the wire.
    pub bytes: u64,
}

impl Backlog {
    /// Counts a packet in.
    #[inline]
    pub fn add(&mut self, packet: &Packet) {
        self.packets += 1;
        self.bytes += u64::from(packet.wire_len);
    }
    /// Counts in what waits elsewhere.
    pub fn add_all(&mut self, other: Backlog) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
    /// Counts a packet out.
    #[inline]
    pub fn remove(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.wire_len);
    }
    /// Whether `packet` can be counted in without exceeding `limit`.
    #[inline]
    pub fn fits(&self, packet: &Packet, limit: Limit) -> bool {
        !limit.exceeded_by(self.packets + 1, self.bytes + u64::from(packet.wire_len))
    }
    /// Whether what waits is more than `limit`.
    #[inline]
    pub fn exceeds(&self, limit: Limit) -> bool {
        limit.exceeded_by(self.packets, self.bytes)
    }
}

/// Packets by value in a ring that doubles when it is full. What is taken out is lent: it lies there until another is put in.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// A power of two of places, or none.
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
    /// How much is in it.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.backlog
    }
    /// Whether nothing is.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.backlog.packets == 0
    }
    /// The oldest packet.
    pub fn first(&self) -> Option<&Packet> {
        (!self.is_empty()).then(|| &self.ring[self.place(self.head)])
    }
    /// The packet behind the oldest.
    pub fn second(&self) -> Option<&Packet> {
        (self.backlog.packets > 1).then(|| &self.ring[self.place(self.head.wrapping_add(1))])
    }
    /// Puts a packet behind all others if it fits within `limit`; otherwise the packet is dropped. Returns whether it waits.
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
    /// Puts a packet behind all others.
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
    /// Takes the oldest packet out.
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
    /// Takes the youngest packet out.
    pub fn pop_back(&mut self) -> Option<&mut Packet> {
        let last = (self.backlog.packets as usize).checked_sub(1)?;
        let place = self.place(self.head.wrapping_add(last));
        let packet = &mut self.ring[place];
        self.backlog.remove(packet);
        Some(packet)
    }
    /// Twice as many places, the new ones with `filler`.
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
        /// Against a deque, in and out at both ends.
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
