//! SIRD's packets other than data and ACKs, and the headers of its packets.

use crate::packet::Kind;

/// Announces a message and requests credit.
pub const REQUEST: Kind = Kind(Kind::OWN);
/// Grants the bytes up to the packet's offset.
pub const GRANT: Kind = Kind(Kind::OWN + 1);
/// Grants missing bytes again, from the packet's offset on.
pub const RESEND: Kind = Kind(Kind::OWN + 2);
/// Answers a RESEND of a message that the sender does not have.
pub const UNKNOWN: Kind = Kind(Kind::OWN + 3);

base::header! {
    /// The header of data.
    pub struct Use {
        /// 1 if the packet uses credit, else 0.
        scheduled: u8,
        /// 1 if credit has accumulated at the sender, else 0.
        csn: u8,
    }
}

base::header! {
    /// A GRANT.
    pub struct Grant {
        /// Number of bytes of the message that have arrived.
        received: u64,
    }
}

base::header! {
    /// A RESEND.
    pub struct Resend {
        /// The byte after the last requested one.
        end: u64,
        /// Number of timeouts of the message at its receiver.
        round: u32,
    }
}
