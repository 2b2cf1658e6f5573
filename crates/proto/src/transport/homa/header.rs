//! Homa's packets other than data and ACKs.

use crate::packet::Kind;

/// Grants the bytes up to the packet's offset.
pub const GRANT: Kind = Kind(Kind::OWN);
/// Requests bytes again, from the packet's offset on.
pub const RESEND: Kind = Kind(Kind::OWN + 1);
/// Answers a RESEND: data of another message goes first.
pub const BUSY: Kind = Kind(Kind::OWN + 2);
/// Carries the cutoffs of a receiver to a sender.
pub const CUTOFFS: Kind = Kind(Kind::OWN + 3);
/// Answers a RESEND of a message that the sender does not have.
pub const UNKNOWN: Kind = Kind(Kind::OWN + 4);

base::header! {
    /// A GRANT.
    pub struct Grant {
        /// The level of the granted bytes.
        level: u8,
        /// Number of bytes of the message that have arrived.
        received: u64,
    }
}

base::header! {
    /// A RESEND.
    pub struct Resend {
        /// The byte after the last requested one.
        end: u64,
        /// The level of these bytes.
        level: u8,
    }
}

base::header! {
    /// The header of data: the version of the cutoffs that set its level.
    pub struct Version {
        /// The version of the cutoffs; 0 before the receiver has sent any.
        version: u32,
    }
}

/// Seven levels have six cutoffs: of eight levels at least one is for scheduled packets.
const MOST_CUTOFFS: usize = 6;

base::header! {
    /// The header of CUTOFFS: rising sizes in bytes; unused entries are 2^64 - 1.
    pub struct CutoffList {
        /// The version of the cutoffs.
        version: u32,
        /// The cutoffs in rising order.
        a: u64, b: u64, c: u64, d: u64, e: u64, f: u64,
    }
}

impl CutoffList {
    /// Creates a list of at most six cutoffs.
    pub fn new(version: u32, cutoffs: &[u64]) -> CutoffList {
        let [a, b, c, d, e, f]: [u64; MOST_CUTOFFS] = std::array::from_fn(|i| cutoffs.get(i).copied().unwrap_or(u64::MAX));
        CutoffList { version, a, b, c, d, e, f }
    }
    /// Returns the cutoffs.
    pub fn cutoffs(&self) -> Vec<u64> {
        let CutoffList { a, b, c, d, e, f, .. } = *self;
        [a, b, c, d, e, f].into_iter().filter(|cutoff| *cutoff < u64::MAX).collect()
    }
}
