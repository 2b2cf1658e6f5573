//! Packets that a port refuses: they are dropped, returned to the sender, or trimmed.

use proto::Packet;

/// One refused packet, or an order to process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The packet is dropped.
    Dropped(Packet),
    /// The packet is returned to its sender.
    Returned(Packet),
    /// The packet stays without its payload.
    Trimmed {
        /// The packet before trimming.
        packet: Packet,
        /// Its bytes on the wire after trimming.
        to: u16,
    },
    /// No packet is refused: the buffer has pause orders for neighbours, which must be sent.
    Order,
}

/// Everything that a port refuses while it enqueues a packet: waiting packets as well as the
/// arriving one.
#[derive(Clone, Debug, Default)]
pub struct Refused(Vec<Refusal>);

impl Refused {
    /// Returns an empty list.
    pub const fn new() -> Refused {
        Refused(Vec::new())
    }
    /// Returns whether nothing was refused.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Drops a packet.
    pub fn drop(&mut self, packet: &Packet) {
        self.0.push(Refusal::Dropped(*packet));
    }
    /// Returns a data packet, trimmed or not, to its sender from this switch as
    /// [`Kind::RETURNED`](proto::Kind::RETURNED). At a host's own port, where there is no way back,
    /// the packet is dropped.
    pub fn send_back(&mut self, packet: &Packet) {
        self.0.push(Refusal::Returned(*packet));
    }
    /// Trims a data packet to at most `to` bytes on the wire. It stays in the queue as
    /// [`Kind::TRIMMED`](proto::Kind::TRIMMED).
    pub fn trim(&mut self, packet: &mut Packet, to: u16) {
        let before = *packet;
        packet.trim(to);
        self.0.push(Refusal::Trimmed { packet: before, to: packet.wire_len });
    }
    /// Records that the buffer has pause orders to send.
    pub fn order(&mut self) {
        self.0.push(Refusal::Order);
    }
    /// Adds the refusals of another list.
    pub fn add_all(&mut self, mut other: Refused) {
        self.0.append(&mut other.0);
    }
    /// Removes and returns the last refusal.
    pub fn pop(&mut self) -> Option<Refusal> {
        self.0.pop()
    }
    /// Returns all refusals.
    pub fn all(&self) -> impl Iterator<Item = &Refusal> {
        self.0.iter()
    }
    /// Returns the dropped packets.
    pub fn dropped(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().filter_map(|refusal| if let Refusal::Dropped(packet) = refusal { Some(packet) } else { None })
    }
}
