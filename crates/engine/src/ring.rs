//! Packets by value in rings: one per link, a power of two long, doubled when full, all in one allocation.
//!
//! Small rings stay in the cache: a ring that never holds more than eight packets never touches more than eight places.

/// The packets of all rings.
#[derive(Clone, Debug)]
pub struct Rings<P> {
    arena: Vec<P>,
    /// Outgrown rings by the logarithm of their size, to be used again.
    free: Vec<Vec<u32>>,
}

/// Has a place brought into the cache. It need not be one.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(place: *const T) {
    // SAFETY: it changes nothing, and any address will do.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    let _ = place;
}

/// One ring: where it lies, and free-running counters of what went in and out.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    start: u32,
    /// Its size less one; all bits, of a ring that has no place yet.
    mask: u32,
    head: u32,
    tail: u32,
}

/// Packets in a new ring.
const FIRST_SIZE: u32 = 8;

impl<P> Default for Rings<P> {
    fn default() -> Self {
        Rings { arena: Vec::new(), free: Vec::new() }
    }
}

impl Ring {
    /// A ring that has no place yet.
    pub const fn new() -> Ring {
        Ring { start: 0, mask: u32::MAX, head: 0, tail: 0 }
    }
    /// Packets in the ring.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }
    /// Whether it is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }
    /// Free-running count of packets taken out.
    #[inline(always)]
    pub fn head(&self) -> u32 {
        self.head
    }
    /// Free-running count of packets put in.
    #[inline(always)]
    pub fn tail(&self) -> u32 {
        self.tail
    }
    #[inline(always)]
    fn place(&self, counter: u32) -> usize {
        self.start.wrapping_add(counter & self.mask) as usize
    }
    /// The packet with a counter in `head..tail`.
    #[inline(always)]
    pub fn get<'a, P>(&self, counter: u32, rings: &'a Rings<P>) -> &'a P {
        &rings.arena[self.place(counter)]
    }
    /// Has the first packet brought into the cache, and the one behind it, whose arrival is wanted when the first is taken out.
    #[inline(always)]
    pub fn prefetch<P>(&self, rings: &Rings<P>) {
        for counter in [self.head, self.head.wrapping_add(1)] {
            prefetch(rings.arena.as_ptr().wrapping_add(self.place(counter)));
        }
    }
    /// Puts a packet in, and shows where it lies.
    #[inline(always)]
    pub fn push<'a, P: Copy>(&mut self, packet: &P, rings: &'a mut Rings<P>) -> &'a mut P {
        // With signs, so that a ring without any place is full.
        if self.len().cast_signed() > self.mask.cast_signed() {
            self.grow(packet, rings);
        }
        let place = &mut rings.arena[self.place(self.tail)];
        *place = *packet;
        self.tail = self.tail.wrapping_add(1);
        place
    }
    /// Takes the oldest packet out. The ring must not be empty.
    #[inline(always)]
    pub fn pop<P: Copy>(&mut self, rings: &Rings<P>) -> P {
        debug_assert!(!self.is_empty());
        let packet = rings.arena[self.place(self.head)];
        self.head = self.head.wrapping_add(1);
        packet
    }
    /// Takes the youngest packet out again. The ring must not be empty.
    #[inline(always)]
    pub fn unpush<P: Copy>(&mut self, rings: &Rings<P>) -> P {
        debug_assert!(!self.is_empty());
        self.tail = self.tail.wrapping_sub(1);
        rings.arena[self.place(self.tail)]
    }
    /// Throws all packets away.
    pub fn clear(&mut self) {
        self.head = self.tail;
    }

    /// Moves into a ring of twice the size; `filler` is any packet.
    #[cold]
    #[inline(never)]
    fn grow<P: Copy>(&mut self, filler: &P, rings: &mut Rings<P>) {
        let size = if self.mask == u32::MAX { FIRST_SIZE } else { (self.mask + 1) * 2 };
        let class = size.trailing_zeros() as usize;
        rings.free.resize(rings.free.len().max(class + 1), Vec::new());
        let start = rings.free[class].pop().unwrap_or_else(|| {
            let end = rings.arena.len();
            rings.arena.resize(end + size as usize, *filler);
            u32::try_from(end).expect("fewer than 2^32 packets in flight")
        });
        let bigger = Ring { start, mask: size - 1, ..*self };
        for counter in 0..self.len() {
            let counter = self.head.wrapping_add(counter);
            rings.arena[bigger.place(counter)] = rings.arena[self.place(counter)];
        }
        if self.mask != u32::MAX {
            rings.free[class - 1].push(self.start);
        }
        *self = bigger;
    }
}

impl Default for Ring {
    fn default() -> Self {
        Ring::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Three rings in one arena against three deques; counters start near their overflow.
        #[test]
        fn rings_are_queues(steps in prop::collection::vec((0usize..3, 0u32..3), 0..600)) {
            let mut rings = Rings::default();
            let mut ring = [Ring { head: u32::MAX - 20, tail: u32::MAX - 20, ..Ring::new() }; 3];
            let mut deque = [const { VecDeque::new() }; 3];
            for (n, (which, pop)) in steps.into_iter().enumerate() {
                if pop == 0 && !deque[which].is_empty() {
                    prop_assert_eq!(Some(ring[which].pop(&rings)), deque[which].pop_front());
                } else {
                    ring[which].push(&n, &mut rings);
                    deque[which].push_back(n);
                }
                for i in 0..3 {
                    prop_assert_eq!(ring[i].len() as usize, deque[i].len());
                    for (j, held) in deque[i].iter().enumerate() {
                        prop_assert_eq!(ring[i].get(ring[i].head().wrapping_add(j as u32), &rings), held);
                    }
                }
            }
        }
    }
}
