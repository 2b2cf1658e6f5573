//! Packets by value in rings: one per link, with a length that is a power of two and doubles when
//! the ring is full, all in one allocation.
//!
//! Small rings stay in the cache. Therefore a ring is shortened again, within its places, when its
//! counter wraps around with most places empty: a ring that holds a packet or two at a time touches
//! two places, whatever it held before.

/// The storage of all rings.
#[derive(Clone, Debug)]
pub struct Rings<P> {
    arena: Vec<P>,
    /// Unused places by the logarithm of their number, for reuse. An entry is valid only if
    /// `classes` marks the places as free.
    free: Vec<Vec<u32>>,
    /// The logarithm of the number of places that belong together, by their start divided by
    /// [`LEAST`]; with [`FREE`] if they are unused.
    classes: Vec<u8>,
}

/// Flag of a class: its places are free.
const FREE: u8 = 1 << 7;

/// Prefetches a place into the cache. The pointer need not be valid.
#[inline(always)]
#[allow(unsafe_code)]
pub fn prefetch<T>(place: *const T) {
    // SAFETY: a prefetch changes nothing, and any address is allowed.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(place.cast());
    }
    let _ = place;
}

/// A ring: its place in the storage, and free-running counters of packets put in and taken out.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    start: u32,
    /// Its length less one, at most the number of its places; all bits are set for a ring without
    /// places.
    mask: u32,
    head: u32,
    tail: u32,
}

/// Places of a new ring. Most rings hold a packet or two at a time: with more places each, the
/// packets of large networks would lie on more pages than the processor's TLB covers.
const LEAST: u32 = 2;

impl<P> Default for Rings<P> {
    fn default() -> Self {
        Rings { arena: Vec::new(), free: Vec::new(), classes: Vec::new() }
    }
}

impl Ring {
    /// Returns a ring without places.
    pub const fn new() -> Ring {
        Ring { start: 0, mask: u32::MAX, head: 0, tail: 0 }
    }
    /// Returns the number of packets in the ring.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }
    /// Returns whether the ring is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.tail == self.head
    }
    /// Returns the free-running count of packets taken out.
    #[inline(always)]
    pub fn head(&self) -> u32 {
        self.head
    }
    /// Returns the free-running count of packets put in.
    #[inline(always)]
    pub fn tail(&self) -> u32 {
        self.tail
    }
    #[inline(always)]
    fn place(&self, counter: u32) -> usize {
        self.start.wrapping_add(counter & self.mask) as usize
    }
    /// Returns the packet with a counter in `head..tail`.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn get<'a, P>(&self, counter: u32, rings: &'a Rings<P>) -> &'a P {
        let place = self.place(counter);
        debug_assert!(place < rings.arena.len());
        // SAFETY: the places were allotted by `Rings::allot`, the arena never shrinks, and an
        // engine has only one arena. A ring without places holds no packet.
        unsafe { rings.arena.get_unchecked(place) }
    }
    /// Prefetches the first packet and the one after it, whose arrival is needed when the first is
    /// taken out.
    #[inline(always)]
    pub fn prefetch<P>(&self, rings: &Rings<P>) {
        for counter in [self.head, self.head.wrapping_add(1)] {
            prefetch(rings.arena.as_ptr().wrapping_add(self.place(counter)));
        }
    }
    /// Prefetches the place of the next packet that is put in.
    #[inline(always)]
    pub fn prefetch_last<P>(&self, rings: &Rings<P>) {
        prefetch(rings.arena.as_ptr().wrapping_add(self.place(self.tail)));
    }
    /// Puts a packet in, and returns a reference to its place.
    #[inline(always)]
    #[allow(unsafe_code)]
    pub fn push<'a, P: Copy>(&mut self, packet: &P, rings: &'a mut Rings<P>) -> &'a mut P {
        // Signed, so that a ring without places is full.
        if self.len().cast_signed() > self.mask.cast_signed() {
            self.grow(packet, rings);
        }
        let place = self.place(self.tail);
        self.tail = self.tail.wrapping_add(1);
        debug_assert!(place < rings.arena.len());
        // SAFETY: see `Ring::get`; a ring without places has just been given some.
        let place = unsafe { rings.arena.get_unchecked_mut(place) };
        *place = *packet;
        place
    }
    /// Removes and returns the oldest packet. The ring must not be empty.
    #[inline(always)]
    pub fn pop<P: Copy>(&mut self, rings: &Rings<P>) -> P {
        debug_assert!(!self.is_empty());
        let packet = *self.get(self.head, rings);
        self.head = self.head.wrapping_add(1);
        if self.head & self.mask == 0 && self.len() * 4 <= self.mask && self.mask >= LEAST {
            // All remaining packets are at the start, at the same places as in the shorter ring.
            self.mask >>= 1;
        }
        packet
    }
    /// Removes and returns the youngest packet. The ring must not be empty.
    #[inline(always)]
    pub fn unpush<P: Copy>(&mut self, rings: &Rings<P>) -> P {
        debug_assert!(!self.is_empty());
        self.tail = self.tail.wrapping_sub(1);
        rings.arena[self.place(self.tail)]
    }
    /// Puts back packets that were taken out last, in their order.
    pub fn unpop<P: Copy>(&mut self, packets: &[P], rings: &mut Rings<P>) {
        for packet in packets.iter().rev() {
            if self.len().cast_signed() > self.mask.cast_signed() {
                self.grow(packet, rings);
            }
            self.head = self.head.wrapping_sub(1);
            rings.arena[self.place(self.head)] = *packet;
        }
    }
    /// Removes all packets.
    pub fn clear(&mut self) {
        self.head = self.tail;
    }

    /// Doubles the length, moving to new places if the present ones are too few; `filler` is any
    /// packet.
    #[cold]
    #[inline(never)]
    fn grow<P: Copy>(&mut self, filler: &P, rings: &mut Rings<P>) {
        let fresh = self.mask == u32::MAX;
        let size = if fresh { LEAST } else { (self.mask + 1) * 2 };
        let longer = Ring { mask: size - 1, ..*self };
        let longer = match fresh {
            false if size <= rings.places(self.start) => longer,
            _ => Ring { start: rings.allot(size, filler), ..longer },
        };
        for counter in 0..self.len() {
            let counter = self.head.wrapping_add(counter);
            rings.arena[longer.place(counter)] = rings.arena[self.place(counter)];
        }
        if !fresh && longer.start != self.start {
            rings.give_back(self.start);
        }
        *self = longer;
    }
}

impl<P: Copy> Rings<P> {
    /// Returns how many places from `start` on belong together.
    fn places(&self, start: u32) -> u32 {
        1 << self.classes[(start / LEAST) as usize]
    }
    fn class(&mut self, start: u32) -> &mut u8 {
        &mut self.classes[(start / LEAST) as usize]
    }
    /// Returns the start of this many free places, a multiple of their number: unused places, half
    /// of a larger block, or new ones.
    fn allot(&mut self, places: u32, filler: &P) -> u32 {
        let class = places.trailing_zeros() as u8;
        self.free.resize(self.free.len().max(usize::from(class) + 2), Vec::new());
        for larger in class..self.free.len() as u8 {
            while let Some(start) = self.free[usize::from(larger)].pop() {
                if *self.class(start) == larger | FREE {
                    for half in (class..larger).rev() {
                        self.set_free(start + (1 << half), half);
                    }
                    *self.class(start) = class;
                    return start;
                }
            }
        }
        while !(self.arena.len() as u32).is_multiple_of(places) {
            let start = self.extend(1 << self.arena.len().trailing_zeros(), filler);
            self.give_back(start);
        }
        self.extend(places, filler)
    }
    /// Adds new places at the end.
    fn extend(&mut self, places: u32, filler: &P) -> u32 {
        let start = u32::try_from(self.arena.len()).expect("fewer than 2^32 packets in flight");
        self.arena.resize(self.arena.len() + places as usize, *filler);
        self.classes.resize(self.arena.len() / LEAST as usize, 0);
        *self.class(start) = places.trailing_zeros() as u8;
        start
    }
    /// Frees places, and merges them with their neighbours if these are a free block of the same
    /// size.
    fn give_back(&mut self, mut start: u32) {
        let mut class = *self.class(start);
        while (start ^ 1 << class) < self.arena.len() as u32 && *self.class(start ^ 1 << class) == class | FREE {
            *self.class(start | 1 << class) = 0;
            start &= !(1 << class);
            class += 1;
        }
        self.set_free(start, class);
    }
    fn set_free(&mut self, start: u32, class: u8) {
        *self.class(start) = class | FREE;
        self.free.resize(self.free.len().max(usize::from(class) + 1), Vec::new());
        self.free[usize::from(class)].push(start);
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
        /// Three rings in one arena compared with three deques; the counters start near their
        /// overflow.
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

    /// Places that rings have outgrown are reused, so the arena does not keep growing.
    #[test]
    fn outgrown_places_are_used_again() {
        let mut rings = Rings::default();
        let mut all = vec![Ring::new(); 1000];
        for packet in 0..100 {
            for ring in &mut all {
                ring.push(&packet, &mut rings);
            }
        }
        assert!(rings.arena.len() < 1000 * 128 * 5 / 4, "{}", rings.arena.len());
        for ring in &all {
            assert!((0..100).all(|i| *ring.get(i, &rings) == i));
        }
    }
}
