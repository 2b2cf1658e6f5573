//! Flowlet tables: the path that a switch has chosen for the current burst of each flow. Counts of
//! flowlets.
//!
//! A flowlet is a burst of packets of one flow in which no gap is longer than the table's gap. All
//! its packets take one path; the first packet after a longer gap may take another (Kandula et al.,
//! "Dynamic Load Balancing Without Packet Reordering", CCR 2007). Gaps are measured exactly.

use base::params::Auto;
use base::registry::Counter;
use base::{Dur, FlowId, FlowMap, LinkId, Time};
use proto::Packet;

/// The flowlet table of a switch. `T` is what the switch stores to find a path again.
pub struct FlowletTable<T> {
    gap: Dur,
    size: Auto<u32>,
    flowlets: FlowMap<Flowlet<T>>,
}

/// The path of a flowlet.
#[derive(Clone, Copy, Debug)]
struct Flowlet<T> {
    path: T,
    /// When its last packet arrived.
    last: Time,
}

/// The place of an entry in a flowlet table.
#[derive(Clone, Copy, Debug)]
pub struct FlowletEntry(FlowId);

impl<T: Copy> FlowletTable<T> {
    /// Returns an empty table. `size` is the number of entries; with `auto` every flow has its own
    /// entry, one for each direction.
    pub fn new(gap: Dur, size: Auto<u32>) -> Self {
        FlowletTable { gap, size, flowlets: FlowMap::default() }
    }
    /// Returns the entry of a packet. `hash` returns the hash of the packet's five-tuple, by which
    /// flows share the entries of a limited table.
    #[inline]
    pub fn entry(&self, packet: &Packet, hash: impl FnOnce() -> u32) -> FlowletEntry {
        let back = u32::from(packet.has(Packet::BACK));
        FlowletEntry(FlowId(match self.size {
            Auto::Auto => packet.flow.0 << 1 | back,
            Auto::Set(size) => hash() % size,
        }))
    }
    /// Returns the path of the last packet of an entry, and whether a packet that arrives at `now`
    /// belongs to the same flowlet.
    #[inline]
    pub fn find(&self, entry: FlowletEntry, now: Time) -> Option<(T, bool)> {
        let flowlet = self.flowlets.get(entry.0)?;
        Some((flowlet.path, now.since(flowlet.last) <= self.gap))
    }
    /// Stores that a packet of an entry takes a path at `now`.
    #[inline]
    pub fn put(&mut self, entry: FlowletEntry, path: T, now: Time) {
        self.flowlets.insert(entry.0, Flowlet { path, last: now });
    }
    /// Returns the number of entries in use.
    pub fn len(&self) -> usize {
        self.flowlets.len()
    }
    /// Returns whether no packet has been stored.
    pub fn is_empty(&self) -> bool {
        self.flowlets.is_empty()
    }
}

/// The counters of routers that send flowlets over paths.
pub const COUNTERS: [Counter; 2] = [
    Counter { name: "flowlets", unit: "flowlets", about: "flowlets that the switch began to send through the port" },
    Counter { name: "moves", unit: "flowlets", about: "flowlets of `flowlets` whose flow had another path before" },
];

/// The values of the [`COUNTERS`], by link.
pub struct FlowletCounts(Vec<[u64; 2]>);

impl FlowletCounts {
    /// Returns counters at zero for this number of links.
    pub fn new(links: usize) -> Self {
        FlowletCounts(vec![[0; 2]; links])
    }
    /// Counts a flowlet that begins on a link, and whether its flow comes from another path.
    pub fn count(&mut self, link: LinkId, moves: bool) {
        let [flowlets, moved] = &mut self.0[link.index()];
        *flowlets += 1;
        *moved += u64::from(moves);
    }
    /// Returns the counts of a link.
    pub fn of(&self, link: LinkId) -> &[u64] {
        &self.0[link.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(flow: u32, back: bool) -> Packet {
        let flags = if back { Packet::BACK } else { 0 };
        Packet { flags, ..Packet::data(FlowId(flow), 0, 1460, 40) }
    }

    #[test]
    fn a_flowlet_ends_with_a_gap_that_is_too_long() {
        let mut table = FlowletTable::new(Dur(100), Auto::Auto);
        let entry = table.entry(&packet(3, false), || unreachable!("every flow has its own entry"));
        assert_eq!(table.find(entry, Time(0)), None);
        table.put(entry, 'a', Time(50));
        assert_eq!(
            [149, 150, 151].map(|now| table.find(entry, Time(now))),
            [Some(('a', true)), Some(('a', true)), Some(('a', false))]
        );
        // The gap counts from the last packet, not from the first packet of the flowlet.
        table.put(entry, 'a', Time(150));
        assert_eq!([250, 251].map(|now| table.find(entry, Time(now))), [Some(('a', true)), Some(('a', false))]);
    }

    #[test]
    fn flows_and_directions_have_their_own_entries() {
        let mut table = FlowletTable::new(Dur(100), Auto::Auto);
        for (n, (flow, back)) in [(0, false), (0, true), (1, false), (1, true)].into_iter().enumerate() {
            let entry = table.entry(&packet(flow, back), || 0);
            assert_eq!(table.find(entry, Time(0)), None);
            table.put(entry, n, Time(0));
        }
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn flows_share_the_entries_of_a_limited_table_by_hash() {
        let mut table = FlowletTable::new(Dur(100), Auto::Set(4));
        assert!(table.is_empty());
        table.put(table.entry(&packet(0, false), || 7), 'a', Time(0));
        let other = |hash| table.find(table.entry(&packet(1, false), || hash), Time(0));
        assert_eq!([3, 7, 6].map(other), [Some(('a', true)), Some(('a', true)), None]);
    }
}
