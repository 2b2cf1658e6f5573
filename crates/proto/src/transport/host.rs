//! What stands behind a transport's context: the host's timers and control packets, and the table of what happened to each flow.

use crate::flow::{Flow, FlowStats};
use crate::kit::reassembly::{Delivery, Reassembly};
use crate::packet::Packet;
use base::{FlowId, Time, Timers};
use std::collections::VecDeque;

/// Timers and control packets of one host.
#[derive(Clone, Debug, Default)]
pub struct HostIo {
    /// Armed deadlines.
    pub timers: Timers,
    /// ACKs and other control packets that the NIC has not taken yet, oldest first. They go before data.
    pub control: VecDeque<Packet>,
}

/// What happened to one flow. What its receiver writes is in one line of the cache, what its sender writes in another.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct FlowRecord {
    reassembly: Reassembly,
    /// When its last payload byte reached the receiver; `Time::MAX` while unfinished.
    pub finish: Time,
    /// Unique payload bytes received.
    pub delivered_bytes: u64,
    /// Packets with payload that arrived after a later one.
    pub reordered: u64,
    /// Packets of either direction that arrived marked.
    pub marks: u64,
    /// When its first data packet was handed to the NIC; `Time::MAX` if none was.
    pub first_tx: Time,
    /// Packets with payload handed to the NIC.
    pub tx_packets: u64,
    /// Of these, with payload that was sent before.
    pub retx_packets: u64,
    /// Packets with payload dropped on the way.
    pub drops: u64,
    /// Packets of either direction lost to dead links, or for want of any path.
    pub lost_link: u64,
    /// Counts of the sender.
    pub stats: FlowStats,
    /// The sender's state is done.
    pub closed: bool,
    /// The sender gave the flow up.
    pub terminated: bool,
}

const _: () = assert!(std::mem::offset_of!(FlowRecord, first_tx) == 64);

/// What happened to every flow of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowTable {
    records: Vec<FlowRecord>,
    unfinished: usize,
    unclosed: usize,
    /// Unfinished flows that their senders gave up.
    hopeless: usize,
}

impl FlowTable {
    /// A table for `flows` flows of which nothing has happened.
    pub fn new(flows: usize) -> FlowTable {
        let blank = FlowRecord {
            first_tx: Time::MAX,
            finish: Time::MAX,
            delivered_bytes: 0,
            tx_packets: 0,
            retx_packets: 0,
            drops: 0,
            lost_link: 0,
            marks: 0,
            reordered: 0,
            stats: FlowStats::default(),
            closed: false,
            terminated: false,
            reassembly: Reassembly::default(),
        };
        FlowTable { records: vec![blank; flows], unfinished: flows, unclosed: flows, hopeless: 0 }
    }
    /// The record of a flow.
    pub fn get(&self, flow: FlowId) -> &FlowRecord {
        &self.records[flow.index()]
    }
    /// All records by flow id.
    pub fn records(&self) -> &[FlowRecord] {
        &self.records
    }
    /// Flows whose last byte has not arrived.
    pub fn unfinished(&self) -> usize {
        self.unfinished
    }
    /// Whether every flow has finished, or was given up, and its sender's state is done.
    #[inline]
    pub fn all_done(&self) -> bool {
        self.unfinished == self.hopeless && self.unclosed == 0
    }
    /// The NIC took a packet with payload.
    #[inline]
    pub fn on_transmit(&mut self, packet: &Packet, now: Time) {
        let record = &mut self.records[packet.flow.index()];
        record.tx_packets += 1;
        record.retx_packets += u64::from(packet.has(Packet::RETX));
        record.first_tx = record.first_tx.min(now);
    }
    /// A packet with payload was dropped.
    pub fn on_drop(&mut self, packet: &Packet) {
        self.records[packet.flow.index()].drops += 1;
    }
    /// A packet was lost to a dead link, or for want of any path.
    pub fn on_lost(&mut self, packet: &Packet) {
        self.records[packet.flow.index()].lost_link += 1;
    }
    /// A packet arrived marked.
    #[inline]
    pub fn on_mark(&mut self, packet: &Packet) {
        self.records[packet.flow.index()].marks += 1;
    }
    /// Whether a flow has finished and its sender's state is done.
    pub fn is_done(&self, flow: FlowId) -> bool {
        let record = self.get(flow);
        record.finish != Time::MAX && record.closed
    }
    /// The receiver has `len` bytes from `offset` on.
    #[inline(always)]
    pub fn deliver(&mut self, flow: &Flow, offset: u64, len: u16, now: Time) -> Delivery {
        assert!(offset + u64::from(len) <= flow.size_bytes, "flow {} delivered bytes beyond its end", flow.id);
        let record = &mut self.records[flow.id.index()];
        let delivery = record.reassembly.on_bytes(offset, u64::from(len));
        record.reordered += u64::from(delivery.reordered);
        record.delivered_bytes += delivery.new_bytes;
        if delivery.new_bytes > 0 && record.delivered_bytes == flow.size_bytes {
            record.finish = now;
            self.unfinished -= 1;
            self.hopeless -= usize::from(record.terminated);
        }
        delivery
    }
    /// The sender's state is done.
    pub fn close(&mut self, flow: FlowId, stats: FlowStats) {
        let record = &mut self.records[flow.index()];
        assert!(!record.closed, "flow {flow} closed twice");
        record.stats = stats;
        record.closed = true;
        self.unclosed -= 1;
    }
    /// The sender gave the flow up. What is still in flight of it may finish it yet.
    pub fn terminate(&mut self, flow: FlowId) {
        let record = &mut self.records[flow.index()];
        record.terminated = true;
        self.hopeless += usize::from(record.finish == Time::MAX);
    }
}
