//! What a port refuses: whole packets, which are dropped or sent back, and the payload of others.

use base::Time;
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
        /// The packet's bytes on the wire before.
        from: u16,
        /// And after.
        to: u16,
        /// When the packet came to the port.
        since: Time,
    },
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
        let from = packet.wire_len;
        packet.trim(to);
        self.0.push(Refusal::Trimmed { from, to: packet.wire_len, since: packet.arrival });
    }
    /// Takes out what was refused last.
    pub fn pop(&mut self) -> Option<Refusal> {
        self.0.pop()
    }
    /// The packets that are dropped.
    pub fn dropped(&self) -> impl Iterator<Item = &Packet> {
        self.0.iter().filter_map(|refusal| if let Refusal::Dropped(packet) = refusal { Some(packet) } else { None })
    }
}
