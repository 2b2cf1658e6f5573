//! The packets of pHost beside data and ACKs, and what packets say.

use crate::packet::Kind;
use base::Dur;
use base::header::Header;

/// Announces a flow.
pub const RTS: Kind = Kind(Kind::OWN);
/// Asks for a packet.
pub const TOKEN: Kind = Kind(Kind::OWN + 1);
/// Reports whether a sender has more flows than it can serve.
pub const STATUS: Kind = Kind(Kind::OWN + 2);

/// What a token says; the packet's offset is the first byte that it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Its number.
    pub number: u32,
    /// Packets that the receiver lacks.
    pub missing: u32,
    /// How long it may be used after it has arrived.
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
    /// What data and an RTS say of tokens.
    pub struct Answer {
        /// The number of the token that the data answers.
        number: u32,
        /// How many tokens were free.
        free: u32,
    }
}

base::header! {
    /// What a sender reports of its flows.
    pub struct Status {
        /// 1 if it has more long flows than it can serve, else 0.
        blocked: u8,
    }
}
