//! The packet: 64 bytes by value, the same for every protocol.

use base::header::Header;
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
    /// Priority number of rank-ordered queues: smaller goes first.
    pub rank: u32,
    /// Bytes on the wire, headers included.
    pub wire_len: u16,
    /// Application bytes.
    pub payload: u16,
    /// Input to path selection beside the flow.
    pub entropy: u16,
    /// What it is.
    pub kind: Kind,
    /// Class of strict-priority queues: 0 is served first.
    pub prio: u8,
    /// ECN code point and flag bits.
    pub flags: u8,
    /// Which route byte is next; [`ROUTE_HOPS`] when none is.
    pub hop: u8,
    /// Egress port at each switch on its way, or [`ASK`].
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
        self.flags |= u8::from(capable) * Packet::CE;
        capable
    }
}

/// What a packet is. The first sixteen numbers are shared words; a protocol's own kinds start at [`Kind::OWN`].
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
    /// The first kind that a protocol may define for itself.
    pub const OWN: u8 = 16;

    /// The shared word, for traces; a protocol's own kinds are named by the protocol.
    pub fn word(self) -> Option<&'static str> {
        const WORDS: [&str; 8] = ["data", "ack", "syn", "synack", "fin", "finack", "probe", "probeack"];
        WORDS.get(self.0 as usize).copied()
    }
}

/// A block of the extension slab: room for headers of more than two words.
pub type Ext = [u64; 7];

impl Packet {
    /// ECN code point ECT(0): a queue may mark the packet instead of dropping it (RFC 3168 section 5).
    pub const ECT: u8 = 0b10;
    /// ECN code point CE: a queue has marked it. Includes [`Packet::ECT`].
    pub const CE: u8 = 0b11;
    /// Flag ECN-Echo, on an ACK: its receiver saw CE.
    pub const ECE: u8 = 1 << 2;
    /// Flag Congestion Window Reduced, on data: its sender has reacted.
    pub const CWR: u8 = 1 << 3;
    /// Flag: the payload was sent before; on an answer, that of the packet it answers.
    pub const RETX: u8 = 1 << 4;
    /// Flag: word 0 of the header is a handle into the extension slab, freed by the run at delivery and at every drop.
    pub const EXT: u8 = 1 << 5;
    /// Flag: it goes from the flow's destination back to its source. The run's.
    pub const BACK: u8 = 1 << 6;

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
            entropy: 0,
            kind,
            prio: 0,
            flags: 0,
            hop: 0,
            route: [0; ROUTE_HOPS],
        }
    }
    /// A data packet: `payload` bytes from `offset` on behind a header of `header` bytes.
    pub fn data(flow: FlowId, offset: u64, payload: u16, header: u16) -> Packet {
        Packet { offset, payload, ..Packet::new(flow, Kind::DATA, payload + header) }
    }
    /// Whether flag bits are set.
    #[inline]
    pub fn has(&self, flags: u8) -> bool {
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
}
