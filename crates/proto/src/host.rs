//! The state behind a transport's context: the host's timers and control packets, and the records
//! of all flows.

use crate::flow::{Flow, FlowStats};
use crate::hops::Hops;
use crate::packet::Packet;
use crate::reassembly::{Delivery, Disorder, Reassembly};
use base::{FlowId, HostId, Time, Timers};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Timers and control packets of one host, and its events for the policy and the run.
#[derive(Clone, Debug, Default)]
pub struct HostIo {
    /// Armed deadlines.
    pub timers: Timers,
    /// ACKs and other control packets that the NIC has not taken yet, oldest first. They go before data.
    pub control: VecDeque<Packet>,
    /// Events that the policy or the run handles after the transport has handled its event, oldest
    /// first.
    pub events: VecDeque<HostEvent>,
    /// Whether the host has a policy, which receives the events of flows. Without a policy, only
    /// requests for paths are kept.
    pub has_policy: bool,
}

/// An event that a transport reports to the host's policy or to the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostEvent {
    /// For the policy: the retransmission timer of a flow that this host sends has expired, and
    /// packets count as lost.
    Timeout(FlowId),
    /// For the policy: the last byte of a flow has arrived at this host.
    Finish(FlowId),
    /// For the policy: the sender's state of a flow is closed, or the flow was given up.
    Close(FlowId),
    /// For the run: the packets that this host sends of the flow must take this path from now on.
    Path(FlowId, Path),
}

/// A path that a host requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The path with this index, below [`FlowTable::paths`].
    Index(u16),
    /// A path other than the current one, if there is one.
    Other,
}

impl HostEvent {
    /// Returns the flow.
    pub fn flow(self) -> FlowId {
        match self {
            HostEvent::Timeout(flow) | HostEvent::Finish(flow) | HostEvent::Close(flow) | HostEvent::Path(flow, _) => flow,
        }
    }
}

impl HostIo {
    /// Queues an event for the policy, if the host has one.
    #[inline(always)]
    pub fn notify(&mut self, event: HostEvent) {
        if self.has_policy {
            self.push(event);
        }
    }
    #[cold]
    #[inline(never)]
    fn push(&mut self, event: HostEvent) {
        self.events.push_back(event);
    }
}

/// The record of one flow. The fields that its receiver writes are in one cache line, the fields
/// that its sender writes in another.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct FlowRecord {
    reassembly: Reassembly,
    /// When its last payload byte reached the receiver; `Time::MAX` while unfinished.
    pub finish: Time,
    /// Unique payload bytes received.
    pub delivered_bytes: u64,
    /// Packets of either direction that arrived marked.
    pub marks: u64,
    /// When its first data packet was handed to the NIC; `Time::MAX` before that.
    pub first_tx: Time,
    /// Packets with payload handed to the NIC.
    pub tx_packets: u64,
    /// Packets of `tx_packets` whose payload was sent before.
    pub retx_packets: u64,
    /// Packets with payload that were dropped.
    pub drops: u64,
    /// Packets of either direction lost on dead links or without any path.
    pub lost_link: u64,
    /// The counts of the sender.
    pub stats: FlowStats,
    /// Whether the sender's state is closed.
    pub closed: bool,
    /// Whether the sender gave up the flow.
    pub terminated: bool,
}

const _: () = assert!(std::mem::offset_of!(FlowRecord, first_tx) == 64);

impl FlowRecord {
    /// Returns this record, the receiver's, with the sums over the records of all parts of the run.
    pub fn plus<'a>(&self, all: impl Iterator<Item = &'a FlowRecord>) -> FlowRecord {
        let mut sum = FlowRecord { reassembly: self.reassembly.clone(), ..FlowRecord::blank() };
        for one in all {
            sum.finish = sum.finish.min(one.finish);
            sum.delivered_bytes += one.delivered_bytes;
            sum.marks += one.marks;
            sum.first_tx = sum.first_tx.min(one.first_tx);
            sum.tx_packets += one.tx_packets;
            sum.retx_packets += one.retx_packets;
            sum.drops += one.drops;
            sum.lost_link += one.lost_link;
            sum.stats.timeouts += one.stats.timeouts;
            sum.stats.fast_retransmits += one.stats.fast_retransmits;
            sum.closed |= one.closed;
            sum.terminated |= one.terminated;
        }
        sum
    }
    fn blank() -> FlowRecord {
        FlowRecord {
            first_tx: Time::MAX,
            finish: Time::MAX,
            delivered_bytes: 0,
            tx_packets: 0,
            retx_packets: 0,
            drops: 0,
            lost_link: 0,
            marks: 0,
            stats: FlowStats::default(),
            closed: false,
            terminated: false,
            reassembly: Reassembly::default(),
        }
    }
    /// Returns how far its packets with payload arrived out of order.
    pub fn disorder(&self) -> Disorder {
        self.reassembly.disorder()
    }
    /// Returns the first range of its bytes below `end` that has not arrived; empty if there is
    /// none.
    pub fn first_missing(&self, end: u64) -> Range<u64> {
        self.reassembly.first_missing(end)
    }
}

/// The records of all flows of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    records: Vec<FlowRecord>,
    unfinished: usize,
    unclosed: usize,
    /// Number of unfinished flows that their senders gave up.
    hopeless: usize,
    /// Ended flows for which others may wait, with the host where each ended; `None` if no flow
    /// waits for another.
    ended: Option<Vec<(FlowId, HostId)>>,
    /// Flows whose sender's state has closed; `None` if nobody asks for them.
    closed: Option<Vec<FlowId>>,
    /// See [`FlowTable::take_change`].
    changed: bool,
    /// The counters of all flows, by flow; each flow has all counters of the system's protocols.
    counts: Vec<u64>,
    counters: usize,
    /// Number of paths of each flow in each direction; empty if no flow may use more than one.
    paths: Vec<[u16; 2]>,
    /// Hops of the paths from each flow's source; empty if no policy may know them.
    hops: Vec<Option<Arc<Hops>>>,
}

impl FlowTable {
    /// Creates a table for `flows` flows without any event.
    pub fn new(flows: usize) -> FlowTable {
        FlowTable { records: vec![FlowRecord::blank(); flows], unfinished: flows, unclosed: flows, ..FlowTable::default() }
    }
    /// Returns the address of the record of a flow, to prefetch it.
    pub fn place(&self, flow: FlowId) -> *const u8 {
        self.records.as_ptr().wrapping_add(flow.index()).cast()
    }
    /// Keeps `counters` counters for each flow from now on; 0 keeps none.
    pub fn keep_counters(&mut self, counters: usize) {
        self.counters = counters;
        self.counts = vec![0; counters * self.records.len()];
    }
    /// Adds `n` to a counter of a flow. The counters of the system's transport come first, then
    /// those of its policy. Each counter is written at one end of the flow only.
    #[inline]
    pub fn count(&mut self, flow: FlowId, counter: usize, n: u64) {
        if self.counters > 0 {
            assert!(counter < self.counters, "counter {counter} is not among the {} of the system", self.counters);
            self.counts[flow.index() * self.counters + counter] += n;
        }
    }
    /// Returns the counters of a flow; none if none are kept.
    pub fn counts(&self, flow: FlowId) -> &[u64] {
        &self.counts[flow.index() * self.counters..][..self.counters]
    }
    /// Records how many paths a flow may use in one direction: all that currently have an index.
    pub fn set_paths(&mut self, flow: FlowId, back: bool, paths: u16) {
        if self.paths.is_empty() {
            self.paths = vec![[1; 2]; self.records.len()];
        }
        self.paths[flow.index()][usize::from(back)] = paths;
    }
    /// Returns how many paths a flow may use in one direction: their indices are below this number.
    pub fn paths(&self, flow: FlowId, back: bool) -> u16 {
        self.paths.get(flow.index()).map_or(1, |paths| paths[usize::from(back)])
    }
    /// Records the ports between switches that the paths from a flow's source use.
    pub fn set_hops(&mut self, flow: FlowId, hops: Arc<Hops>) {
        if self.hops.is_empty() {
            self.hops = vec![None; self.records.len()];
        }
        self.hops[flow.index()] = Some(hops);
    }
    /// Returns the ports between switches that the paths from a flow's source use, if they were
    /// recorded.
    pub fn hops(&self, flow: FlowId) -> Option<&Arc<Hops>> {
        self.hops.get(flow.index())?.as_ref()
    }
    /// Keeps the ends of flows from now on, for [`FlowTable::pop_ended`].
    pub fn keep_ends(&mut self) {
        self.ended = Some(Vec::new());
    }
    /// Keeps the flows that close from now on, for [`FlowTable::pop_closed`].
    pub fn keep_closed(&mut self) {
        self.closed = Some(Vec::new());
    }
    /// Records that a host has an event for the run.
    pub fn note_change(&mut self) {
        self.changed = true;
    }
    /// Returns whether a flow has finished, closed or been given up, or a host has an event for the
    /// run, since the last call. This is a single word to check per event.
    #[inline]
    pub fn take_change(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }
    /// Takes an ended flow, with the host where it ended.
    pub fn pop_ended(&mut self) -> Option<(FlowId, HostId)> {
        self.ended.as_mut()?.pop()
    }
    /// Takes a flow whose sender's state has closed.
    pub fn pop_closed(&mut self) -> Option<FlowId> {
        self.closed.as_mut()?.pop()
    }
    /// Returns the record of a flow.
    pub fn get(&self, flow: FlowId) -> &FlowRecord {
        &self.records[flow.index()]
    }
    /// Returns all records by flow id.
    pub fn records(&self) -> &[FlowRecord] {
        &self.records
    }
    /// Returns the number of flows whose last byte has not arrived.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }
    /// Returns the number of unfinished flows that their senders gave up.
    pub fn hopeless(&self) -> usize {
        self.hopeless
    }
    /// Returns the number of flows whose sender's state is not closed.
    pub fn unclosed(&self) -> usize {
        self.unclosed
    }
    /// Returns whether some flow has neither finished nor been given up.
    pub fn any_open(&self) -> bool {
        self.unfinished > self.hopeless
    }
    /// Returns whether every flow has finished or was given up, and its sender's state is closed.
    #[inline]
    pub fn all_done(&self) -> bool {
        self.unfinished == self.hopeless && self.unclosed == 0
    }
    /// Counts a packet with payload that the NIC took.
    #[inline]
    pub fn on_transmit(&mut self, packet: &Packet, now: Time) {
        let record = &mut self.records[packet.flow.index()];
        record.tx_packets += 1;
        record.retx_packets += u64::from(packet.has(Packet::RETX));
        record.first_tx = record.first_tx.min(now);
    }
    /// Counts a dropped packet with payload.
    pub fn on_drop(&mut self, packet: &Packet) {
        self.records[packet.flow.index()].drops += 1;
    }
    /// Counts a packet lost on a dead link or without any path.
    pub fn on_lost(&mut self, packet: &Packet) {
        self.records[packet.flow.index()].lost_link += 1;
    }
    /// Counts a packet that arrived marked.
    #[inline]
    pub fn on_mark(&mut self, packet: &Packet) {
        self.records[packet.flow.index()].marks += 1;
    }
    /// Returns whether a flow has neither finished nor been given up.
    pub fn is_open(&self, flow: FlowId) -> bool {
        let record = self.get(flow);
        record.finish == Time::MAX && !record.terminated
    }
    /// Returns whether a flow has finished and its sender's state is closed.
    pub fn is_done(&self, flow: FlowId) -> bool {
        let record = self.get(flow);
        record.finish != Time::MAX && record.closed
    }
    /// Delivers `len` bytes from `offset` on to the receiver. Also returns whether they finish the
    /// flow.
    #[inline(always)]
    pub fn deliver(&mut self, flow: &Flow, offset: u64, len: u16, now: Time) -> (Delivery, bool) {
        assert!(offset + u64::from(len) <= flow.size_bytes, "flow {} delivered bytes beyond its end", flow.id);
        let record = &mut self.records[flow.id.index()];
        let delivery = record.reassembly.on_bytes(offset, u64::from(len));
        record.delivered_bytes += delivery.new_bytes;
        let finishes = delivery.new_bytes > 0 && record.delivered_bytes == flow.size_bytes;
        if finishes {
            record.finish = now;
            self.changed = true;
            self.unfinished -= 1;
            self.hopeless -= usize::from(record.terminated);
            if let Some(ended) = self.ended.as_mut().filter(|_| !record.terminated) {
                ended.push((flow.id, flow.dst));
            }
        }
        (delivery, finishes)
    }
    /// Counts `len` bytes from `offset` on that arrived before earlier ones and are not delivered.
    pub fn count_undelivered(&mut self, flow: FlowId, offset: u64, len: u16) {
        self.records[flow.index()].reassembly.on_undelivered(offset, len.into());
    }
    /// Counts an expiry of a flow's retransmission timer.
    pub fn count_timeout(&mut self, flow: FlowId) {
        self.records[flow.index()].stats.timeouts += 1;
    }
    /// Counts a fast retransmit of a flow.
    pub fn count_fast_retransmit(&mut self, flow: FlowId) {
        self.records[flow.index()].stats.fast_retransmits += 1;
    }
    /// Records that the sender's state is closed.
    pub fn close(&mut self, flow: FlowId) {
        let record = &mut self.records[flow.index()];
        assert!(!record.closed, "flow {flow} closed twice");
        record.closed = true;
        self.changed = true;
        self.unclosed -= 1;
        if let Some(closed) = &mut self.closed {
            closed.push(flow);
        }
    }
    /// Records that the sender gave up the flow. Packets in flight may still finish it.
    pub fn terminate(&mut self, flow: &Flow) {
        let record = &mut self.records[flow.id.index()];
        record.terminated = true;
        self.changed = true;
        if record.finish == Time::MAX {
            self.hopeless += 1;
            if let Some(ended) = &mut self.ended {
                ended.push((flow.id, flow.src));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_kept_by_flow_if_there_are_any() {
        let mut table = FlowTable::new(3);
        table.count(FlowId(1), 5, 1);
        assert_eq!(table.counts(FlowId(1)), []);
        table.keep_counters(2);
        for (flow, counter, n) in [(1, 0, 3), (1, 1, 4), (2, 1, 5), (1, 0, 7)] {
            table.count(FlowId(flow), counter, n);
        }
        assert_eq!([0, 1, 2].map(|flow| table.counts(FlowId(flow))), [[0, 0], [10, 4], [0, 5]]);
    }

    #[test]
    #[should_panic(expected = "counter 2 is not among the 2 of the system")]
    fn a_counter_must_be_declared() {
        let mut table = FlowTable::new(1);
        table.keep_counters(2);
        table.count(FlowId(0), 2, 1);
    }

    #[test]
    fn a_flow_has_one_path_unless_more_are_set() {
        let mut table = FlowTable::new(2);
        assert_eq!(table.paths(FlowId(1), true), 1);
        table.set_paths(FlowId(1), true, 4);
        assert_eq!([(0, true), (1, false), (1, true)].map(|(flow, back)| table.paths(FlowId(flow), back)), [1, 1, 4]);
    }

    #[test]
    fn events_are_not_kept_without_a_policy() {
        let mut io = HostIo::default();
        io.notify(HostEvent::Close(FlowId(0)));
        assert!(io.events.is_empty());
        io.has_policy = true;
        io.notify(HostEvent::Close(FlowId(1)));
        assert_eq!(io.events, [HostEvent::Close(FlowId(1))]);
    }
}
