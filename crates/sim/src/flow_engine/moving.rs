//! The packets in flight in the flow engine, and the state of links.

use crate::node::world::NodeCounts;
use base::{FlowId, LinkId, Slab, Time};
use fabric::net::Net;
use proto::Packet;
use proto::packet::Ext;

/// A packet on a link.
#[derive(Clone, Debug)]
pub struct Moving {
    /// The packet.
    pub packet: Packet,
    /// The link on which the packet is.
    pub link: LinkId,
    /// The sample that a sample packet carries; `None` for a packet that a switch made.
    pub sample: Option<PathSample>,
    /// How often the link had failed by the time the packet was sent.
    fails: u32,
}

impl Moving {
    /// Creates a packet that is not on a link yet.
    pub fn new(packet: Packet, sample: Option<PathSample>) -> Moving {
        Moving { packet, link: LinkId(u32::MAX), sample, fails: 0 }
    }
}

/// The path of a flow as far as a sample packet has found it.
#[derive(Clone, Debug, Default)]
pub struct PathSample {
    /// The links that the sample packet has taken, each with the share of the flow on it, which is 1.
    pub links: Vec<(LinkId, f64)>,
    /// Payload bytes that the flow has sent since the last sample.
    pub payload_bytes: u64,
}

/// All packets in flight, and their counts.
#[derive(Default)]
pub struct PacketsUnderWay {
    slots: Vec<Option<Moving>>,
    free: Vec<u32>,
    /// Packets sent over links, samples included.
    pub sent: u64,
    /// By link: whether it is down.
    down: Vec<bool>,
    /// By link: how often it has failed.
    fails: Vec<u32>,
    /// By link: packets of switches sent over it.
    pub crossed: Vec<u64>,
    /// By node: packets that it made, consumed or lost.
    pub nodes: Vec<NodeCounts>,
    /// Packets of switches that ended at a host.
    pub received: u64,
    /// Packets of switches that were lost.
    pub lost: u64,
    /// Blocks for large headers.
    pub ext: Slab<Ext>,
    /// Flows that switches have moved, in the order of the moves.
    pub moved: Vec<FlowId>,
    /// By node: when the switch wakes next.
    pub wakes: Vec<Time>,
}

impl PacketsUnderWay {
    /// Creates the state of a network without packets.
    pub fn new(net: &Net) -> PacketsUnderWay {
        let (links, nodes) = (net.links().len(), net.nodes().len());
        PacketsUnderWay {
            down: vec![false; links],
            fails: vec![0; links],
            crossed: vec![0; links],
            nodes: vec![NodeCounts::default(); nodes],
            wakes: vec![Time::MAX; nodes],
            ..PacketsUnderWay::default()
        }
    }
    /// Takes a link down or brings it up.
    pub fn set_link(&mut self, link: LinkId, up: bool) {
        self.down[link.index()] = !up;
        self.fails[link.index()] += u32::from(!up);
    }
    /// Returns whether a link is down.
    pub fn is_down(&self, link: LinkId) -> bool {
        self.down[link.index()]
    }
    /// Puts a packet on a link that is up. Returns the packet's place, and its number among all packets that
    /// were sent.
    pub fn put(&mut self, packet: Packet, link: LinkId, sample: Option<PathSample>) -> (u32, u64) {
        self.sent += 1;
        self.crossed[link.index()] += u64::from(sample.is_none());
        let moving = Some(Moving { packet, link, sample, fails: self.fails[link.index()] });
        match self.free.pop() {
            Some(place) => {
                self.slots[place as usize] = moving;
                (place, self.sent)
            }
            None => {
                self.slots.push(moving);
                (self.slots.len() as u32 - 1, self.sent)
            }
        }
    }
    /// Takes a packet off its link. Returns the packet, and whether it arrives: the link has not failed since
    /// the packet was sent.
    pub fn take(&mut self, place: u32) -> (Moving, bool) {
        let moving = self.slots[place as usize].take().expect("a packet in flight");
        self.free.push(place);
        let arrives = self.fails[moving.link.index()] == moving.fails;
        (moving, arrives)
    }
    /// Counts a lost packet.
    pub fn lose(&mut self, moving: &Moving) {
        self.lost += u64::from(moving.sample.is_none());
        moving.packet.free(&mut self.ext);
    }
    /// Checks that all packets that were made have ended or are in flight. Panics otherwise.
    pub fn audit(&self) {
        let own = self.slots.iter().flatten().filter(|moving| moving.sample.is_none());
        let (count, blocks) = own.fold((0, 0), |(count, blocks), moving| (count + 1, blocks + moving.packet.blocks()));
        let made: u64 = self.nodes.iter().map(|node| node.made).sum();
        let taken: u64 = self.nodes.iter().map(|node| node.taken).sum();
        assert_eq!(
            made,
            taken + self.received + self.lost + count,
            "the packets made are not the sum of those consumed, received, lost and in flight"
        );
        assert_eq!(self.ext.len(), blocks, "extension headers were leaked or freed twice");
    }
}
