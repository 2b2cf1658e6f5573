//! What a port refuses: whole packets, which are dropped or sent back, and the payload of others.

use proto::Packet;

/// One thing refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A packet that is dropped.
    Dropped(Packet),
    /// A packet that goes back to its sender.
    Returned(Packet),
    /// The payload of a packet that stays.
    Trimmed {
        /// The packet as it was before.
        packet: Packet,
        /// Its bytes on the wire after.
        to: u16,
    },
    /// Nothing: a neighbour of the switch pauses or is to pause, and its orders are to be looked at.
    Order,
}

/// All that a port refuses while it takes in a packet: of those that wait as well as of the one that comes.
#[derive(Clone, Debug, Default)]
pub struct Refused(Vec<Refusal>);

impl Refused {
    /// Nothing.
    pub const fn new() -> Refused {
        Refused(Vec::new())
    }
    /// Whether it is nothing.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// A packet is dropped.
    pub fn drop(&mut self, packet: &Packet) {
        self.0.push(Refusal::Dropped(*packet));
    }
    /// A data packet, trimmed or not, is sent back to its sender from this switch, as [`Kind::RETURNED`](proto::Kind::RETURNED). At a host's
    /// own port, where there is no way back, it is dropped.
    pub fn send_back(&mut self, packet: &Packet) {
        self.0.push(Refusal::Returned(*packet));
    }
    /// A data packet loses its payload and stays, with at most `to` bytes on the wire, as [`Kind::TRIMMED`](proto::Kind::TRIMMED).
    pub fn trim(&mut self, packet: &mut Packet, to: u16) {
        let before = *packet;
        packet.trim(to);
        self.0.push(Refusal::Trimmed { packet: before, to: packet.wire_len });
    }
    /// Orders of the switch are to be looked at.
    pub fn order(&mut self) {
        self.0.push(Refusal::Order);
    }
    /// Adds what was refused elsewhere.
    pub fn add_all(&mut self, mut other: Refused) {
        self.0.append(&mut other.0);
    }
    /// Takes out what was refused last.
    pub fn pop(&mut self) -> Option<Refusal> {
        self.0.pop()
    }
    /// All of it.
    pub fn all(&self) -> impl Iterator<Item = &Refusal> {
        self.0.iter()
    }
    /// The packets that are dropped.
    pub fn dropped(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().filter_map(|refusal| if let Refusal::Dropped(packet) = refusal { Some(packet) } else { None })
    }
}
