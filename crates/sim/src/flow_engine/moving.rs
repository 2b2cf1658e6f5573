//! PacketsUnderWay under way in the flow engine, and which links are up.

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
    /// The link that it is on.
    pub link: LinkId,
    /// Of a sample: the links that it has taken, and the payload bytes that it stands for. `None`: the packet is a switch's.
    pub sample: Option<PathSample>,
    /// How often the link had failed when the packet was sent.
    fails: u32,
}

impl Moving {
    /// A packet that is on no link yet.
    pub fn new(packet: Packet, sample: Option<PathSample>) -> Moving {
        Moving { packet, link: LinkId(u32::MAX), sample, fails: 0 }
    }
}

/// What a sample packet of a flow has found out.
#[derive(Clone, Debug, Default)]
pub struct PathSample {
    /// The links that it has taken, each with the share of the flow that takes it: all of it.
    pub links: Vec<(LinkId, f64)>,
    /// Payload bytes of the flow since the last sample.
    pub payload_bytes: u64,
}

/// All packets under way, with what is counted of them.
#[derive(Default)]
pub struct PacketsUnderWay {
    slots: Vec<Option<Moving>>,
    free: Vec<u32>,
    /// PacketsUnderWay sent over links, samples included.
    pub sent: u64,
    /// By link: whether it is down, how often it has failed, and packets of switches sent over it.
    down: Vec<bool>,
    fails: Vec<u32>,
    pub crossed: Vec<u64>,
    /// By node: packets that it made, took or lost.
    pub nodes: Vec<NodeCounts>,
    /// PacketsUnderWay of switches that ended at a host, and those that were lost.
    pub received: u64,
    pub lost: u64,
    /// Blocks for large headers.
    pub ext: Slab<Ext>,
    /// Flows that switches have moved, in the order of the moves.
    pub moved: Vec<FlowId>,
    /// By node: when the switch wakes next.
    pub wakes: Vec<Time>,
}

impl PacketsUnderWay {
    /// No packets on a network.
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
    /// A link goes down or comes up.
    pub fn set_link(&mut self, link: LinkId, up: bool) {
        self.down[link.index()] = !up;
        self.fails[link.index()] += u32::from(!up);
    }
    /// Whether a link is down.
    pub fn is_down(&self, link: LinkId) -> bool {
        self.down[link.index()]
    }
    /// Puts a packet on a link that is up. Returns its place, and its number among all that were sent.
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
    /// Takes a packet off its link, and says whether the link has not failed since the packet was sent.
    pub fn take(&mut self, place: u32) -> (Moving, bool) {
        let moving = self.slots[place as usize].take().expect("a packet that is under way");
        self.free.push(place);
        let arrives = self.fails[moving.link.index()] == moving.fails;
        (moving, arrives)
    }
    /// A packet is lost.
    pub fn lose(&mut self, moving: &Moving) {
        self.lost += u64::from(moving.sample.is_none());
        moving.packet.free(&mut self.ext);
    }
    /// Checks that packets that were made have ended somewhere, or are under way. Panics otherwise.
    pub fn audit(&self) {
        let own = self.slots.iter().flatten().filter(|moving| moving.sample.is_none());
        let (count, blocks) = own.fold((0, 0), |(count, blocks), moving| (count + 1, blocks + moving.packet.blocks()));
        let made: u64 = self.nodes.iter().map(|node| node.made).sum();
        let taken: u64 = self.nodes.iter().map(|node| node.taken).sum();
        assert_eq!(made, taken + self.received + self.lost + count, "the packets made are not the sum of those consumed, received, lost and in flight");
        assert_eq!(self.ext.len(), blocks, "extension headers were leaked or freed twice");
    }
}
