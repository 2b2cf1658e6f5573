//! A switch's flow table with its port state vectors (PSVs), which count the flows that leave and
//! enter over each port.

use base::{FlowId, FlowMap, LinkId, Time};

/// The entry of a flow at a switch (section III-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The link over which the flow enters (L_i).
    pub from: LinkId,
    /// The port at the switch's end of that cable, which leads back to the flow's source.
    pub back: LinkId,
    /// The port through which the flow leaves (L_o); `None`: no live port leads to its destination.
    pub out: Option<LinkId>,
    /// When its last packet was forwarded (t).
    pub seen: Time,
    /// The latest time at which one of its packets left its host.
    pub stamp: Time,
    /// What the flow adds to the PSVs: 1, or its rate in bit/s; 0 if it is not counted.
    pub load: u64,
    /// Application bytes since the rate was last computed.
    pub bytes: u64,
    /// Whether several ports lead to its destination (single in, multiple out).
    pub simo: bool,
    /// Whether several ports lead to its source (multiple in, single out).
    pub miso: bool,
    /// Whether a packet was lost because there was no port, since the last request to move the
    /// flow.
    pub stuck: bool,
}

/// The flow table of one switch.
#[derive(Clone, Debug)]
pub struct Table {
    /// The link of the switch's first port.
    first: LinkId,
    entries: FlowMap<Entry>,
    /// The sum over SIMO flows that leave through a port (V_o), by port.
    leaving: Vec<u64>,
    /// The sum over MISO flows that enter through a port (V_i), by port.
    entering: Vec<u64>,
}

impl Table {
    /// Returns the empty table of a switch with this many ports; the first port sends over `first`.
    pub fn new(first: LinkId, ports: usize) -> Table {
        Table { first, entries: FlowMap::default(), leaving: vec![0; ports], entering: vec![0; ports] }
    }
    /// Returns V_o of a port.
    pub fn leaving(&self, port: LinkId) -> u64 {
        self.leaving[self.place(port)]
    }
    /// Returns V_i of a port.
    pub fn entering(&self, port: LinkId) -> u64 {
        self.entering[self.place(port)]
    }
    /// Returns the entry of a flow.
    pub fn get(&self, flow: FlowId) -> Option<&Entry> {
        self.entries.get(flow)
    }
    /// Returns the entry of a flow. The caller may change only fields that no PSV depends on.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut Entry> {
        self.entries.get_mut(flow)
    }
    /// Returns all flows, in an order that depends only on previous calls.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &Entry)> {
        self.entries.iter()
    }
    /// Returns the flows for which `chosen` holds.
    pub fn flows(&self, chosen: impl Fn(&Entry) -> bool) -> Vec<FlowId> {
        self.iter().filter(|(_, entry)| chosen(entry)).map(|(flow, _)| flow).collect()
    }
    /// Inserts a flow that is not in the table.
    pub fn insert(&mut self, flow: FlowId, entry: Entry) {
        self.entries.insert(flow, entry);
        self.count(&entry);
    }
    /// Removes a flow.
    pub fn remove(&mut self, flow: FlowId) {
        if let Some(entry) = self.entries.remove(flow) {
            self.discount(&entry);
        }
    }
    /// Changes the entry of a flow, and updates the PSVs.
    pub fn change(&mut self, flow: FlowId, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.entries.get_mut(flow) else { return };
        let before = *entry;
        change(entry);
        let after = *entry;
        self.discount(&before);
        self.count(&after);
    }
    fn count(&mut self, entry: &Entry) {
        self.counted(entry).into_iter().flatten().for_each(|load| *load += entry.load);
    }
    fn discount(&mut self, entry: &Entry) {
        self.counted(entry).into_iter().flatten().for_each(|load| *load -= entry.load);
    }
    /// Returns the elements of the PSVs in which a flow counts.
    fn counted(&mut self, entry: &Entry) -> [Option<&mut u64>; 2] {
        let out = entry.out.filter(|_| entry.simo).map(|out| self.place(out));
        let back = entry.miso.then(|| self.place(entry.back));
        [out.map(|place| &mut self.leaving[place]), back.map(|place| &mut self.entering[place])]
    }
    fn place(&self, port: LinkId) -> usize {
        (port.0 - self.first.0) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Rng;

    /// V_o and V_i are always the sums over the entries (I1).
    #[test]
    fn port_state_vectors_are_sums_over_the_table() {
        let (mut table, mut rng) = (Table::new(LinkId(10), 5), Rng::stream(1, "difs/table", &[]));
        for step in 0..4000 {
            let (flow, port, other) =
                (FlowId(rng.below(30) as u32), LinkId(10 + rng.below(5) as u32), LinkId(10 + rng.below(5) as u32));
            match rng.below(4) {
                0 => table.remove(flow),
                1 => table.change(flow, |entry| (entry.out, entry.load) = (Some(port), entry.load + 3)),
                2 => table.change(flow, |entry| (entry.back, entry.out) = (port, None)),
                _ if table.get(flow).is_none() => {
                    let (simo, miso) = (step % 2 == 0, step % 3 == 0);
                    let (from, seen) = (LinkId(99), Time(step));
                    table.insert(
                        flow,
                        Entry {
                            from,
                            back: port,
                            out: Some(other),
                            seen,
                            stamp: seen,
                            load: 1,
                            bytes: 0,
                            simo,
                            miso,
                            stuck: false,
                        },
                    );
                }
                _ => {}
            }
            for port in (10..15).map(LinkId) {
                let sum = |of: fn(&Entry) -> Option<LinkId>| {
                    table.iter().filter(|(_, entry)| of(entry) == Some(port)).map(|(_, entry)| entry.load).sum::<u64>()
                };
                assert_eq!(table.leaving(port), sum(|entry| entry.out.filter(|_| entry.simo)));
                assert_eq!(table.entering(port), sum(|entry| entry.miso.then_some(entry.back)));
            }
        }
        assert!(table.iter().count() > 5);
    }
}
