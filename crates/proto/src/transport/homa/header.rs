//! Homa's packets beside data and ACKs.

use crate::packet::Kind;

/// Grants bytes up to the packet's offset.
pub const GRANT: Kind = Kind(Kind::OWN);
/// Asks again for bytes from the packet's offset on.
pub const RESEND: Kind = Kind(Kind::OWN + 1);
/// Answers a RESEND: data of another message goes first.
pub const BUSY: Kind = Kind(Kind::OWN + 2);
/// Tells a sender the cutoffs of its receiver.
pub const CUTOFFS: Kind = Kind(Kind::OWN + 3);
/// Answers a RESEND of a message that the sender does not have.
pub const UNKNOWN: Kind = Kind(Kind::OWN + 4);

base::header! {
    /// A GRANT.
    pub struct Grant {
        /// The level of the granted bytes.
        level: u8,
        /// How many bytes of the message have arrived.
        received: u64,
    }
}

base::header! {
    /// A RESEND.
    pub struct Resend {
        /// The byte after the last one that is asked for.
        end: u64,
        /// The level of these bytes.
        level: u8,
    }
}

base::header! {
    /// Data: which cutoffs set its level.
    pub struct Version {
        /// Their number, 0 before any were told.
        version: u32,
    }
}

/// Cutoffs between seven levels: of eight at least one is for scheduled packets.
const MOST_CUTOFFS: usize = 6;

base::header! {
    /// CUTOFFS: rising sizes in bytes; those that are not in use are 2^64 - 1.
    pub struct Told {
        /// Their number.
        version: u32,
        /// The first, and so on.
        a: u64, b: u64, c: u64, d: u64, e: u64, f: u64,
    }
}

impl Told {
    /// At most six cutoffs.
    pub fn new(version: u32, cutoffs: &[u64]) -> Told {
        let [a, b, c, d, e, f]: [u64; MOST_CUTOFFS] = std::array::from_fn(|i| cutoffs.get(i).copied().unwrap_or(u64::MAX));
        Told { version, a, b, c, d, e, f }
    }
    /// The cutoffs.
    pub fn cutoffs(&self) -> Vec<u64> {
        let Told { a, b, c, d, e, f, .. } = *self;
        [a, b, c, d, e, f].into_iter().filter(|cutoff| *cutoff < u64::MAX).collect()
    }
}
