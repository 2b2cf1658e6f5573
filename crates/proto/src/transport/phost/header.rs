//! The packets of pHost other than data and ACKs, and the headers of its packets.

use crate::packet::Kind;
use base::Dur;
use base::header::Header;

/// Announces a flow.
pub const RTS: Kind = Kind(Kind::OWN);
/// Requests a packet.
pub const TOKEN: Kind = Kind(Kind::OWN + 1);
/// Reports whether a sender has more flows than it can serve.
pub const STATUS: Kind = Kind(Kind::OWN + 2);

/// The header of a token. The packet's offset is the first requested byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Number of the token.
    pub number: u32,
    /// Number of packets that have not arrived.
    pub missing: u32,
    /// How long the token may be used after its arrival.
    pub lifetime: Dur,
}

impl Header for Terms {
    const WORDS: usize = 2;
    fn pack(self, words: &mut [u64]) {
        (words[0], words[1]) = (u64::from(self.number) << 32 | u64::from(self.missing), self.lifetime.0);
    }
    fn unpack(words: &[u64]) -> Terms {
        Terms { number: (words[0] >> 32) as u32, missing: words[0] as u32, lifetime: Dur(words[1]) }
    }
}

base::header! {
    /// The header of data and of an RTS.
    pub struct Answer {
        /// The number of the token that the data answers.
        number: u32,
        /// Number of free tokens of the flow.
        free: u32,
    }
}

base::header! {
    /// The report of a sender.
    pub struct Status {
        /// 1 if the sender has more long flows than it can serve, else 0.
        blocked: u8,
    }
}
