//! The paths of a flow that were named by index or by port, with a direct look-up by path tag.

use base::LinkId;
use proto::Packet;
use proto::packet::ROUTE_HOPS;

/// The paths of a flow that were named by index or by port.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    /// The indices of paths that were set, from the source and from the destination; `None`: the
    /// router's path.
    pub set: [Option<u16>; 2],
    /// The path tags of packets on the present paths, from the source and from the destination.
    pub tags: [u16; 2],
    /// Every path that was set, or that a packet named by index, in order of first use.
    pub known: Vec<Known>,
    /// For each direction and index, one more than the place in `known`; 0 for an unknown path.
    places: [Vec<u16>; 2],
    /// For each direction and other source port, the path; `None` if no packet has named the port
    /// since routes changed.
    ports: [Vec<Option<Way>>; 2],
    /// How often another path was requested.
    pub requests: u64,
}

/// A path that was named by index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub back: bool,
    pub index: u16,
    pub way: Way,
}

/// The present meaning of a path tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// The path tag that packets on the path carry.
    pub shown: u16,
    /// The first link of the path.
    pub first: LinkId,
    /// The route bytes of the path.
    pub route: [u8; ROUTE_HOPS],
    /// Whether the path is not known to be dead.
    pub alive: bool,
}

// A flow may have hundreds of ports.
const _: () = assert!(size_of::<Option<Way>>() == 16);

impl Named {
    /// Returns the path with this tag, if it is known.
    #[inline]
    pub fn find(&self, back: bool, tag: u16) -> Option<Way> {
        if let Some(port) = tag.checked_sub(Packet::BY_PORT) {
            return self.ports[usize::from(back)].get(usize::from(port)).copied().flatten();
        }
        let place = self.places[usize::from(back)].get(usize::from(tag.checked_sub(1)?))?.checked_sub(1)?;
        Some(self.known[usize::from(place)].way)
    }
    /// Records a path that is not known.
    pub fn insert(&mut self, back: bool, tag: u16, way: Way) {
        if let Some(port) = tag.checked_sub(Packet::BY_PORT) {
            return *entry(&mut self.ports[usize::from(back)], port) = Some(way);
        }
        let index = tag - 1;
        self.known.push(Known { back, index, way });
        *entry(&mut self.places[usize::from(back)], index) = self.known.len() as u16;
    }
    /// Discards all paths that were named by port.
    pub fn forget_ports(&mut self) {
        self.ports = Default::default();
    }
    /// Returns the index of the path that was set, if it is alive.
    pub fn live(&self, back: bool) -> Option<u16> {
        let index = self.set[usize::from(back)]?;
        self.find(back, index + 1).filter(|way| way.alive).map(|_| index)
    }
}

/// Returns an entry of a dense table, which grows to a power of two of entries.
fn entry<T: Clone + Default>(table: &mut Vec<T>, index: u16) -> &mut T {
    let index = usize::from(index);
    if index >= table.len() {
        table.resize((index + 1).next_power_of_two(), T::default());
    }
    &mut table[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_by_direction_and_tag() {
        let way = |first| Way { shown: 1, first: LinkId(first), route: [0; ROUTE_HOPS], alive: true };
        let mut named = Named::default();
        let entries = [
            (false, 256, 1),
            (true, 256, 2),
            (true, 1, 3),
            (false, Packet::BY_PORT, 4),
            (true, Packet::BY_PORT + 255, 5),
            (false, u16::MAX, 6),
        ];
        for (back, tag, first) in entries {
            assert_eq!(named.find(back, tag), None);
            named.insert(back, tag, way(first));
        }
        for (back, tag, first) in entries {
            assert_eq!(named.find(back, tag), Some(way(first)));
        }
        assert_eq!([0, 1, 2, Packet::BY_PORT + 255].map(|tag| named.find(false, tag)), [None; 4]);
        assert_eq!(
            named.known.iter().map(|known| (known.back, known.index)).collect::<Vec<_>>(),
            [(false, 255), (true, 255), (true, 0)]
        );
        named.forget_ports();
        assert_eq!(entries.map(|(back, tag, _)| named.find(back, tag).is_some()), [true, true, true, false, false, false]);
    }
}
