//! A switch's flow table with its port state vectors (PSVs): what leaves and enters over each port.

use base::{FlowId, FlowMap, LinkId, Time};

/// A flow at a switch (section III-B).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The link over which the flow comes in (L_i).
    pub from: LinkId,
    /// The port at the near end of that link's cable, which leads back to the flow's source.
    pub back: LinkId,
    /// The port through which the flow leaves (L_o); `None`: no live port leads to its destination.
    pub out: Option<LinkId>,
    /// When its last packet was forwarded (t).
    pub seen: Time,
    /// When the latest of its packets left its host.
    pub stamp: Time,
    /// What the flow adds to the PSVs: 1, or its rate in bit/s; 0 if it is not to be counted.
    pub load: u64,
    /// Application bytes since the rate was last worked out.
    pub bytes: u64,
    /// Several ports lead to its destination (single in, multiple out).
    pub simo: bool,
    /// Several ports lead to its source (multiple in, single out).
    pub miso: bool,
    /// A packet has been lost for want of a port since the last request to move the flow.
    pub stuck: bool,
}

/// The flow table of one switch.
#[derive(Clone, Debug)]
pub struct Table {
    /// The link of the switch's first port.
    first: LinkId,
    entries: FlowMap<Entry>,
    /// By port: the sum over SIMO flows that leave through it (V_o).
    leaving: Vec<u64>,
    /// By port: the sum over MISO flows that enter through it (V_i).
    entering: Vec<u64>,
}

impl Table {
    /// Of a switch with so many ports, the first of which sends over `first`.
    pub fn new(first: LinkId, ports: usize) -> Table {
        Table { first, entries: FlowMap::default(), leaving: vec![0; ports], entering: vec![0; ports] }
    }
    /// V_o of a port.
    pub fn leaving(&self, port: LinkId) -> u64 {
        self.leaving[self.place(port)]
    }
    /// V_i of a port.
    pub fn entering(&self, port: LinkId) -> u64 {
        self.entering[self.place(port)]
    }
    /// A flow.
    pub fn get(&self, flow: FlowId) -> Option<&Entry> {
        self.entries.get(flow)
    }
    /// A flow, of which the caller may change what no PSV depends on.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowId) -> Option<&mut Entry> {
        self.entries.get_mut(flow)
    }
    /// All flows, in an order that depends only on what has happened.
    pub fn iter(&self) -> impl Iterator<Item = (FlowId, &Entry)> {
        self.entries.iter()
    }
    /// The flows for which `chosen` holds.
    pub fn flows(&self, chosen: impl Fn(&Entry) -> bool) -> Vec<FlowId> {
        self.iter().filter(|(_, entry)| chosen(entry)).map(|(flow, _)| flow).collect()
    }
    /// Takes in a flow that is not in.
    pub fn insert(&mut self, flow: FlowId, entry: Entry) {
        self.entries.insert(flow, entry);
        self.count(&entry);
    }
    /// Takes a flow out.
    pub fn remove(&mut self, flow: FlowId) {
        if let Some(entry) = self.entries.remove(flow) {
            self.discount(&entry);
        }
    }
    /// Changes a flow, and the PSVs with it.
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
    /// Where a flow counts.
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

    /// V_o and V_i are the sums over the entries whatever happens (I1).
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
