//! dcPIM's packets other than data and ACKs, and the headers of its packets.

use crate::packet::Kind;
use base::header::Header;

/// Announces a flow.
pub const NOTIFY: Kind = Kind(Kind::OWN);
/// Answers a NOTIFY.
pub const NOTED: Kind = Kind(Kind::OWN + 1);
/// A receiver requests channels of a sender.
pub const REQUEST: Kind = Kind(Kind::OWN + 2);
/// A sender grants channels to a receiver.
pub const GRANT: Kind = Kind(Kind::OWN + 3);
/// A receiver accepts channels of a sender.
pub const ACCEPT: Kind = Kind(Kind::OWN + 4);
/// Requests a packet.
pub const TOKEN: Kind = Kind(Kind::OWN + 5);
/// Answers a REQUEST for a flow that the sender does not have.
pub const UNKNOWN: Kind = Kind(Kind::OWN + 6);

/// The header of REQUESTs, GRANTs and ACCEPTs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Number of the round since time 0.
    pub round: u64,
    /// Number of channels.
    pub channels: u8,
    /// Number of packets of the flow that have not arrived.
    pub missing: u32,
}

impl Header for Offer {
    const WORDS: usize = 2;
    fn pack(self, words: &mut [u64]) {
        (words[0], words[1]) = (self.round, u64::from(self.missing) << 8 | u64::from(self.channels));
    }
    fn unpack(words: &[u64]) -> Offer {
        Offer { round: words[0], channels: words[1] as u8, missing: (words[1] >> 8) as u32 }
    }
}

/// The header of a token. The packet's offset is the first requested byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Number of the token.
    pub number: u32,
    /// Number of packets that have not arrived.
    pub missing: u32,
    /// Number of the phase since time 0 in which the token was sent.
    pub phase: u64,
}

impl Header for Terms {
    const WORDS: usize = 2;
    fn pack(self, words: &mut [u64]) {
        (words[0], words[1]) = (u64::from(self.number) << 32 | u64::from(self.missing), self.phase);
    }
    fn unpack(words: &[u64]) -> Terms {
        Terms { number: (words[0] >> 32) as u32, missing: words[0] as u32, phase: words[1] }
    }
}

base::header! {
    /// The header of data.
    pub struct Answer {
        /// The number of the token that the data answers.
        number: u32,
    }
}
