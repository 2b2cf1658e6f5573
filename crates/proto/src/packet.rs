//! The packet: 64 bytes by value, the same for every protocol.

use base::header::Header;
use base::registry::Meta;
use base::{FlowId, Slab, Time, Wire};
use std::ops::Range;

/// Number of route bytes in a packet: the largest number of switches on a source route.
pub const ROUTE_HOPS: usize = 6;

/// The route byte without a port: the router decides at that switch.
pub const ASK: u8 = u8::MAX;

/// A packet. It is copied from ring to ring and never allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Packet {
    /// When its last bit reaches the far end of the current link. Set by the engine.
    pub arrival: Time,
    /// When it was handed to the NIC. Set by the run; a receiver that echoes it puts it into a
    /// header.
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
    /// The path of the packet. Where paths are planned: 0 for the flow's current path, `i + 1` for
    /// the path with index `i`, its rank among the healthy shortest paths in port order,
    /// [`Packet::BY_PORT`]` + n` for the path that the router plans for the flow's `n`th other
    /// source port. A sender may request each of these. In packets of a flow with several paths, or
    /// whose path was set, the field has the index of the path that they actually take. A router
    /// that is asked at switches may use the field for itself (CONGA's header). No hash reads it.
    pub path_tag: u16,
    /// Its kind.
    pub kind: Kind,
    /// Class of strict-priority queues: 0 is served first.
    pub prio: u8,
    /// ECN code point and flag bits. The upper eight bits are for a router that is asked at switches
    /// ([`Packet::ROUTER_BITS`]).
    pub flags: u16,
    /// Egress port at each switch that is still to be crossed, or [`ASK`]. While the packet is in a
    /// switch, the last byte is free; the last two bytes, if a node has more than 255 ports.
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

/// The kind of a packet. The first sixteen numbers are common to all protocols. A transport's own
/// kinds start at [`Kind::OWN`], a policy's at [`Kind::POLICY`], a router's at [`Kind::ROUTER`];
/// their [`Meta`] names them in the order of their numbers.
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
    /// Requests the state of the path.
    pub const PROBE: Kind = Kind(6);
    /// Answers a probe.
    pub const PROBEACK: Kind = Kind(7);
    /// Data whose payload a port has cut off. The packet keeps its offset, its header and its flags.
    pub const TRIMMED: Kind = Kind(8);
    /// Data, trimmed or not, that a port has sent back to its sender. The packet keeps everything
    /// except a trimmed payload.
    pub const RETURNED: Kind = Kind(9);
    /// Requests data: a port may shape credits so that the data fits the opposite direction.
    pub const CREDIT: Kind = Kind(10);
    /// Orders the far end of a cable to pause or resume packets of a class: word 0 is the class,
    /// word 1 says which. The packet belongs to no flow and ends there.
    pub const PAUSE: Kind = Kind(11);
    /// The first of a transport's own kinds.
    pub const OWN: u8 = 16;
    /// The first of a policy's own kinds.
    pub const POLICY: u8 = 128;
    /// The first of a router's own kinds.
    pub const ROUTER: u8 = 192;

    /// Returns the name of a common kind.
    pub fn word(self) -> Option<&'static str> {
        const WORDS: [&str; 12] =
            ["data", "ack", "syn", "synack", "fin", "finack", "probe", "probeack", "trimmed", "returned", "credit", "pause"];
        WORDS.get(self.0 as usize).copied()
    }

    /// Returns whether a port has trimmed or returned the packet.
    #[inline]
    pub fn is_refused(self) -> bool {
        self == Kind::TRIMMED || self == Kind::RETURNED
    }

    /// Returns the name of an entry's own kind with this number, counted from the entry's `first`.
    fn own(self, first: u8, meta: &Meta) -> Option<&'static str> {
        meta.kinds.get(usize::from(self.0.checked_sub(first)?)).copied()
    }

    /// Returns the name of the kind in a system, for traces: a common name, or the name in the
    /// `Meta` of an entry of the system.
    pub fn name(self, system: &[(u8, &Meta)]) -> &'static str {
        let own = || system.iter().find_map(|&(first, meta)| self.own(first, meta));
        self.word().or_else(own).unwrap_or("other")
    }
}

/// A block of the extension slab, for headers of more than two words.
pub type Ext = [u64; 7];

impl Packet {
    /// The path tag of the path that the router plans for the flow's `n`th other source port, minus
    /// `n`. These ports are drawn for each flow in the same way as the flow's own port, and packets
    /// of both directions have them in their five-tuples.
    pub const BY_PORT: u16 = 1 << 15;
    /// ECN code point ECT(0): a queue may mark the packet instead of dropping it (RFC 3168 section 5).
    pub const ECT: u16 = 0b10;
    /// ECN code point CE: a queue has marked it. Includes [`Packet::ECT`].
    pub const CE: u16 = 0b11;
    /// Flag ECN-Echo, on an ACK: the receiver has seen CE.
    pub const ECE: u16 = 1 << 2;
    /// Flag Congestion Window Reduced, on data: the sender has reacted.
    pub const CWR: u16 = 1 << 3;
    /// Flag of a trimmed packet: the port that trimmed it leads to the packet's destination, as far as
    /// the packet's route is planned. The bit is that of CWR, which only data has.
    pub const LAST_HOP: u16 = Packet::CWR;
    /// Flag: the payload was sent before; on an answer, the flag of the packet that it answers.
    pub const RETX: u16 = 1 << 4;
    /// Flag: word 0 of the header is a handle into the extension slab, freed by the run at delivery and at every drop.
    pub const EXT: u16 = 1 << 5;
    /// Flag: the packet goes from the flow's destination to its source. Set by the run.
    pub const BACK: u16 = 1 << 6;
    /// Flag: `rank` is a handle into the extension slab: the block of a policy, freed by the run at
    /// delivery and at every drop.
    pub const TAGGED: u16 = 1 << 7;

    /// The flag bits that a router which is asked at switches may use for itself. They are 0 in
    /// packets from hosts.
    pub const ROUTER_BITS: u16 = 0xff << Packet::ROUTER_SHIFT;
    /// Number of flag bits below [`Packet::ROUTER_BITS`].
    pub const ROUTER_SHIFT: u32 = 8;

    /// Creates a packet of `kind` with no payload and `wire_len` bytes on the wire.
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
    /// Creates a data packet: `payload` bytes from `offset` on behind a header of `header` bytes.
    pub fn data(flow: FlowId, offset: u64, payload: u16, header: u16) -> Packet {
        Packet { offset, payload, ..Packet::new(flow, Kind::DATA, payload + header) }
    }
    /// Trims a data packet: cuts off its payload, so that at most `to` bytes are left on the wire.
    pub fn trim(&mut self, to: u16) {
        assert_eq!(self.kind, Kind::DATA, "only data is trimmed");
        (self.kind, self.payload, self.wire_len) = (Kind::TRIMMED, 0, self.wire_len.min(to));
        // The route bytes of all switches are used up at the last one.
        let last = if self.route[0] == ASK { Packet::LAST_HOP } else { 0 };
        self.flags = self.flags & !Packet::LAST_HOP | last;
    }
    /// Returns a data packet, trimmed or not, to its sender.
    pub fn turn_back(&mut self) {
        assert!([Kind::DATA, Kind::TRIMMED].contains(&self.kind), "only data is returned, and only once");
        self.kind = Kind::RETURNED;
        self.flags ^= Packet::BACK;
    }
    /// Removes the route byte of the current switch; after the last byte the switch is asked.
    #[inline(always)]
    pub fn step(&mut self) {
        self.route.copy_within(1.., 0);
        self.route[ROUTE_HOPS - 1] = ASK;
    }
    /// Returns the bytes of the flow that the payload holds.
    #[inline]
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.payload)
    }
    /// Returns whether all these flag bits are set.
    #[inline]
    pub fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }
    /// Puts a protocol header of at most two words into the packet.
    #[inline]
    pub fn set<H: Header>(&mut self, header: H) {
        const { assert!(H::WORDS <= 2, "a header of more than two words belongs in the extension slab") };
        header.pack(&mut self.words);
    }
    /// Reads the protocol header.
    #[inline]
    pub fn get<H: Header>(&self) -> H {
        H::unpack(&self.words)
    }
    /// Returns the handle of its block in the extension slab.
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
    /// Puts a policy's header into a new block of the extension slab. The packet must have no rank
    /// and no other header of a policy.
    pub fn set_tag<H: Header>(&mut self, header: H, slab: &mut Slab<Ext>) {
        assert!(self.rank == 0 && !self.has(Packet::TAGGED), "a packet has a rank or one policy's header, not both");
        let mut block = Ext::default();
        header.pack(&mut block);
        self.rank = slab.insert(block);
        self.flags |= Packet::TAGGED;
    }
    /// Returns the key by which rank-ordered queues order the packet: its rank, or zero if a
    /// policy's header takes the place of the rank.
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
    /// Returns the number of blocks of the extension slab that the packet holds.
    pub fn blocks(&self) -> usize {
        usize::from(self.has(Packet::EXT)) + usize::from(self.has(Packet::TAGGED))
    }
    /// Moves the packet's blocks out of this slab to the end of `blocks`, before the packet goes to
    /// another slab.
    pub fn take_blocks(&self, slab: &mut Slab<Ext>, blocks: &mut Vec<Ext>) {
        if self.blocks() > 0 {
            let words = self.has(Packet::EXT).then(|| self.ext());
            let tag = self.has(Packet::TAGGED).then_some(self.rank);
            blocks.extend(words.into_iter().chain(tag).map(|handle| *slab.get(handle)));
            self.free_blocks(slab);
        }
    }
    /// Puts the packet's blocks, the next of `blocks`, into another slab.
    pub fn place_blocks(&mut self, slab: &mut Slab<Ext>, blocks: &mut impl Iterator<Item = Ext>) {
        if self.has(Packet::EXT) {
            self.words[0] = u64::from(slab.insert(blocks.next().expect("a block for each header")));
        }
        if self.has(Packet::TAGGED) {
            self.rank = slab.insert(blocks.next().expect("a block for each header"));
        }
    }
    /// Frees the packet's blocks of the extension slab when the packet leaves the network.
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
    fn a_packet_frees_the_blocks_that_it_holds() {
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
    fn a_packet_loses_a_route_byte_at_every_switch() {
        let mut packet = Packet { route: [1, 2, 3, 4, 5, 6], ..Packet::new(FlowId(0), Kind::DATA, 40) };
        for next in [2, 3, 4, 5, 6, ASK, ASK] {
            packet.step();
            assert_eq!((packet.route[0], packet.route[ROUTE_HOPS - 1]), (next, ASK));
        }
    }

    #[test]
    fn a_trimmed_packet_knows_whether_its_port_was_the_last() {
        let path = Packet { route: [1, 2, ASK, ASK, ASK, ASK], ..Packet::data(FlowId(0), 0, 1460, 40) };
        for (switches, last) in [(1, false), (2, true)] {
            let mut packet = Packet { flags: Packet::CE, ..path };
            (0..switches).for_each(|_| packet.step());
            packet.trim(64);
            assert_eq!((packet.kind, packet.wire_len, packet.payload, packet.has(Packet::CE)), (Kind::TRIMMED, 64, 0, true));
            assert_eq!(packet.has(Packet::LAST_HOP), last);
        }
    }

    #[test]
    fn kinds_are_named_by_the_entry_that_owns_them() {
        let transport = Meta { kinds: &["det", "detack"], ..Meta::PLAIN };
        let policy = Meta { kinds: &["quota"], ..Meta::PLAIN };
        let system = [(Kind::OWN, &transport), (Kind::POLICY, &policy)];
        let names = [0, 7, 11, 16, 17, 18, 127, 128, 129].map(|kind| Kind(kind).name(&system));
        assert_eq!(names, ["data", "probeack", "pause", "det", "detack", "other", "other", "quota", "other"]);
    }
}
