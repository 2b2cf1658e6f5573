//! The packet: 64 bytes by value, the same for every protocol.

use base::header::Header;
use base::registry::Meta;
use base::{FlowId, Slab, Time, Wire};

/// Route bytes in a packet: it can cross this many switches on a source route.
pub const ROUTE_HOPS: usize = 6;

/// The route byte that names no port: the router decides at that switch.
pub const ASK: u8 = u8::MAX;

/// A packet. Copied from ring to ring; never allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Packet {
    /// When its last bit reaches the far end of the link it is on. The engine's.
    pub arrival: Time,
    /// When it was handed to the NIC. The run's; a receiver that echoes it puts it into a header.
    pub sent_at: Time,
    /// First payload byte within the flow, or the cumulative acknowledgment.
    pub offset: u64,
    /// The protocol's header, as [`Packet::set`] packed it; with [`Packet::EXT`], word 0 is a handle into the extension slab.
    pub words: [u64; 2],
    /// The flow. Its size, ends and deadline are metadata, reached through the context.
    pub flow: FlowId,
    /// Priority number of rank-ordered queues: smaller goes first. With [`Packet::TAGGED`], a handle into the extension slab.
    pub rank: u32,
    /// Bytes on the wire, headers included.
    pub wire_len: u16,
    /// Application bytes.
    pub payload: u16,
    /// Which of its flow's paths it takes. Where paths are planned: 0 for the flow's present path, `i + 1` for the path with index `i`,
    /// its rank among the healthy shortest paths in port order, [`Packet::BY_PORT`]` + n` for what the router plans for the flow's `n`th other
    /// source port. A sender may ask for each of these; packets of a flow with several paths, or whose path was set, say the index of the one
    /// that they really take. A router that is asked at switches has the field to itself (CONGA's
    /// header). No hash reads it.
    pub path_tag: u16,
    /// What it is.
    pub kind: Kind,
    /// Class of strict-priority queues: 0 is served first.
    pub prio: u8,
    /// ECN code point and flag bits. Eight bits are free.
    pub flags: u16,
    /// Egress port at each switch that it has yet to cross, or [`ASK`]. While it is in a switch, the last byte is free.
    pub route: [u8; ROUTE_HOPS],
}

const _: () = assert!(size_of::<Packet>() == 64);

impl Wire for Packet {
    #[inline(always)]
    fn wire_len(&self) -> u32 {
        u32::from(self.wire_len)
    }
    #[inline(always)]
    fn arrival(&self) -> Time {
        self.arrival
    }
    #[inline(always)]
    fn set_arrival(&mut self, at: Time) {
        self.arrival = at;
    }
    #[inline]
    fn mark(&mut self) -> bool {
        let capable = self.has(Packet::ECT);
        self.flags |= u16::from(capable) * Packet::CE;
        capable
    }
}

/// What a packet is. The first sixteen numbers are shared words. A transport's own kinds start at [`Kind::OWN`], a policy's at
/// [`Kind::POLICY`], a router's at [`Kind::ROUTER`]; their [`Meta`] names them in the order of their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind(pub u8);

impl Kind {
    /// Application data.
    pub const DATA: Kind = Kind(0);
    /// Acknowledgment.
    pub const ACK: Kind = Kind(1);
    /// Opens a connection.
    pub const SYN: Kind = Kind(2);
    /// Answers a SYN.
    pub const SYNACK: Kind = Kind(3);
    /// Closes a connection.
    pub const FIN: Kind = Kind(4);
    /// Answers a FIN.
    pub const FINACK: Kind = Kind(5);
    /// Asks for the state of the path.
    pub const PROBE: Kind = Kind(6);
    /// Answers a probe.
    pub const PROBEACK: Kind = Kind(7);
    /// Data whose payload a port has cut off. The packet keeps its offset, its header and its flags.
    pub const TRIMMED: Kind = Kind(8);
    /// Data, trimmed or not, that a port has sent back: it goes to its sender with all that it carries but what was trimmed.
    pub const RETURNED: Kind = Kind(9);
    /// Asks for data: a port may shape credits so that the data fits the other direction.
    pub const CREDIT: Kind = Kind(10);
    /// Tells the far end of a cable to hold packets of a class back, or to send them again: word 0 is the class, word 1 says which. It
    /// belongs to no flow and ends there.
    pub const PAUSE: Kind = Kind(11);
    /// The first kind of a transport's own.
    pub const OWN: u8 = 16;
    /// The first kind of a policy's own.
    pub const POLICY: u8 = 128;
    /// The first kind of a router's own.
    pub const ROUTER: u8 = 192;

    /// The shared word, if it is one.
    pub fn word(self) -> Option<&'static str> {
        const WORDS: [&str; 12] =
            ["data", "ack", "syn", "synack", "fin", "finack", "probe", "probeack", "trimmed", "returned", "credit", "pause"];
        WORDS.get(self.0 as usize).copied()
    }

    /// Whether a port has trimmed or returned the packet.
    #[inline]
    pub fn is_refused(self) -> bool {
        self == Kind::TRIMMED || self == Kind::RETURNED
    }

    /// The kind of an entry's own that has this number, counted from the entry's first.
    fn own(self, first: u8, meta: &Meta) -> Option<&'static str> {
        meta.kinds.get(usize::from(self.0.checked_sub(first)?)).copied()
    }

    /// The name of the kind in a system, for traces: a shared word, or what one of the system's entries calls it.
    pub fn name(self, system: &[(u8, &Meta)]) -> &'static str {
        let own = || system.iter().find_map(|&(first, meta)| self.own(first, meta));
        self.word().or_else(own).unwrap_or("other")
    }
}

/// A block of the extension slab: room for headers of more than two words.
pub type Ext = [u64; 7];

impl Packet {
    /// A path tag: that of the path which the router plans for the flow's `n`th other source port, less `n`. These ports are drawn as those of
    /// flows are, for each flow anew, and packets of both directions have them in their five-tuples.
    pub const BY_PORT: u16 = 1 << 15;
    /// ECN code point ECT(0): a queue may mark the packet instead of dropping it (RFC 3168 section 5).
    pub const ECT: u16 = 0b10;
    /// ECN code point CE: a queue has marked it. Includes [`Packet::ECT`].
    pub const CE: u16 = 0b11;
    /// Flag ECN-Echo, on an ACK: its receiver saw CE.
    pub const ECE: u16 = 1 << 2;
    /// Flag Congestion Window Reduced, on data: its sender has reacted.
    pub const CWR: u16 = 1 << 3;
    /// Flag: the payload was sent before; on an answer, that of the packet it answers.
    pub const RETX: u16 = 1 << 4;
    /// Flag: word 0 of the header is a handle into the extension slab, freed by the run at delivery and at every drop.
    pub const EXT: u16 = 1 << 5;
    /// Flag: it goes from the flow's destination back to its source. The run's.
    pub const BACK: u16 = 1 << 6;
    /// Flag: `rank` is a handle into the extension slab: the block of a policy, freed by the run at delivery and at every drop.
    pub const TAGGED: u16 = 1 << 7;

    /// A packet of `kind` with no payload and `wire_len` bytes on the wire.
    pub fn new(flow: FlowId, kind: Kind, wire_len: u16) -> Packet {
        Packet {
            arrival: Time::ZERO,
            sent_at: Time::ZERO,
            offset: 0,
            words: [0; 2],
            flow,
            rank: 0,
            wire_len,
            payload: 0,
            path_tag: 0,
            kind,
            prio: 0,
            flags: 0,
            route: [0; ROUTE_HOPS],
        }
    }
    /// A data packet: `payload` bytes from `offset` on behind a header of `header` bytes.
    pub fn data(flow: FlowId, offset: u64, payload: u16, header: u16) -> Packet {
        Packet { offset, payload, ..Packet::new(flow, Kind::DATA, payload + header) }
    }
    /// Cuts the payload off a data packet; at most `to` bytes are left on the wire.
    pub fn trim(&mut self, to: u16) {
        assert_eq!(self.kind, Kind::DATA, "only data is trimmed");
        (self.kind, self.payload, self.wire_len) = (Kind::TRIMMED, 0, self.wire_len.min(to));
    }
    /// Turns a data packet, trimmed or not, back to its sender.
    pub fn turn_back(&mut self) {
        assert!([Kind::DATA, Kind::TRIMMED].contains(&self.kind), "only data is returned, and only once");
        self.kind = Kind::RETURNED;
        self.flags ^= Packet::BACK;
    }
    /// Takes out the route byte of the switch that the packet has come to; the switch behind the last one is asked.
    #[inline(always)]
    pub fn step(&mut self) {
        self.route.copy_within(1.., 0);
        self.route[ROUTE_HOPS - 1] = ASK;
    }
    /// Whether flag bits are set.
    #[inline]
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
    /// Puts a protocol header of at most two words into the packet.
    #[inline]
    pub fn set<H: Header>(&mut self, header: H) {
        const { assert!(H::WORDS <= 2, "a header of more than two words belongs into the extension slab") };
        header.pack(&mut self.words);
    }
    /// Reads the protocol header.
    #[inline]
    pub fn get<H: Header>(&self) -> H {
        H::unpack(&self.words)
    }
    /// The handle of its block in the extension slab.
    #[inline]
    pub fn ext(&self) -> u32 {
        debug_assert!(self.has(Packet::EXT));
        self.words[0] as u32
    }
    /// Puts a header of up to seven words into a new block of the extension slab.
    #[inline]
    pub fn set_ext<H: Header>(&mut self, header: H, slab: &mut Slab<Ext>) {
        let mut block = Ext::default();
        header.pack(&mut block);
        self.words[0] = u64::from(slab.insert(block));
        self.flags |= Packet::EXT;
    }
    /// Reads the header from the packet's block of the extension slab.
    #[inline]
    pub fn get_ext<H: Header>(&self, slab: &Slab<Ext>) -> H {
        H::unpack(slab.get(self.ext()))
    }
    /// Rewrites the header in the packet's block of the extension slab.
    #[inline]
    pub fn put_ext<H: Header>(&self, header: H, slab: &mut Slab<Ext>) {
        header.pack(slab.get_mut(self.ext()));
    }
    /// Puts a policy's header into a new block of the extension slab. The packet must have neither a rank nor such a header.
    pub fn set_tag<H: Header>(&mut self, header: H, slab: &mut Slab<Ext>) {
        assert!(self.rank == 0 && !self.has(Packet::TAGGED), "a packet has a rank or one policy's header, not both");
        let mut block = Ext::default();
        header.pack(&mut block);
        self.rank = slab.insert(block);
        self.flags |= Packet::TAGGED;
    }
    /// By what rank-ordered queues order it: its rank, or zero where a policy's header has the place of the rank.
    #[inline(always)]
    pub fn order(&self) -> u32 {
        if self.has(Packet::TAGGED) { 0 } else { self.rank }
    }
    /// Reads a policy's header.
    pub fn get_tag<H: Header>(&self, slab: &Slab<Ext>) -> H {
        debug_assert!(self.has(Packet::TAGGED));
        H::unpack(slab.get(self.rank))
    }
    /// Rewrites a policy's header.
    pub fn put_tag<H: Header>(&self, header: H, slab: &mut Slab<Ext>) {
        debug_assert!(self.has(Packet::TAGGED));
        header.pack(slab.get_mut(self.rank));
    }
    /// How many blocks of the extension slab it holds.
    pub fn blocks(&self) -> usize {
        usize::from(self.has(Packet::EXT)) + usize::from(self.has(Packet::TAGGED))
    }
    /// The packet leaves for another slab: takes its blocks out of this one, behind others.
    pub fn take_blocks(&self, slab: &mut Slab<Ext>, blocks: &mut Vec<Ext>) {
        if self.blocks() > 0 {
            let words = self.has(Packet::EXT).then(|| self.ext());
            let tag = self.has(Packet::TAGGED).then_some(self.rank);
            blocks.extend(words.into_iter().chain(tag).map(|handle| *slab.get(handle)));
            self.free_blocks(slab);
        }
    }
    /// Puts its blocks, which are next, into another slab.
    pub fn place_blocks(&mut self, slab: &mut Slab<Ext>, blocks: &mut impl Iterator<Item = Ext>) {
        if self.has(Packet::EXT) {
            self.words[0] = u64::from(slab.insert(blocks.next().expect("a block for each header")));
        }
        if self.has(Packet::TAGGED) {
            self.rank = slab.insert(blocks.next().expect("a block for each header"));
        }
    }
    /// The packet has left the network: frees its blocks of the extension slab.
    #[inline(always)]
    pub fn free(&self, slab: &mut Slab<Ext>) {
        if self.flags & (Packet::EXT | Packet::TAGGED) != 0 {
            self.free_blocks(slab);
        }
    }
    #[inline]
    fn free_blocks(&self, slab: &mut Slab<Ext>) {
        if self.has(Packet::EXT) {
            slab.remove(self.ext());
        }
        if self.has(Packet::TAGGED) {
            slab.remove(self.rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    base::header! {
        /// A header.
        pub struct Words { a: u64, b: u64, c: u64 }
    }

    #[test]
    fn a_packet_gives_back_the_blocks_that_it_holds() {
        let mut slab = Slab::default();
        let bare = Packet::new(FlowId(0), Kind::DATA, 40);
        let (mut ext, mut tagged) = (bare, bare);
        ext.set_ext(Words { a: 1, b: 2, c: 3 }, &mut slab);
        tagged.set_tag(Words { a: 4, b: 5, c: 6 }, &mut slab);
        let mut both = ext;
        both.set_ext(Words { a: 7, b: 8, c: 9 }, &mut slab);
        both.set_tag(Words { a: 10, b: 11, c: 12 }, &mut slab);
        both.put_tag(Words { a: 13, ..both.get_tag(&slab) }, &mut slab);
        assert_eq!((both.get_ext::<Words>(&slab).a, both.get_tag::<Words>(&slab)), (7, Words { a: 13, b: 11, c: 12 }));
        assert_eq!([bare, ext, tagged, both].map(|packet| packet.blocks()), [0, 1, 1, 2]);
        assert_eq!(slab.len(), 4);
        for (packet, left) in [(bare, 4), (ext, 3), (both, 1), (tagged, 0)] {
            packet.free(&mut slab);
            assert_eq!(slab.len(), left);
        }
    }

    #[test]
    fn a_packet_gives_up_a_route_byte_at_every_switch() {
        let mut packet = Packet { route: [1, 2, 3, 4, 5, 6], ..Packet::new(FlowId(0), Kind::DATA, 40) };
        for next in [2, 3, 4, 5, 6, ASK, ASK] {
            packet.step();
            assert_eq!((packet.route[0], packet.route[ROUTE_HOPS - 1]), (next, ASK));
        }
    }

    #[test]
    fn kinds_are_named_by_whose_they_are() {
        let transport = Meta { kinds: &["det", "detack"], ..Meta::PLAIN };
        let policy = Meta { kinds: &["quota"], ..Meta::PLAIN };
        let system = [(Kind::OWN, &transport), (Kind::POLICY, &policy)];
        let names = [0, 7, 11, 16, 17, 18, 127, 128, 129].map(|kind| Kind(kind).name(&system));
        assert_eq!(names, ["data", "probeack", "pause", "det", "detack", "other", "other", "quota", "other"]);
    }
}
