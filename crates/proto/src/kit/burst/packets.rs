//! The headers of the packets of both ends of a flow.

use super::sender::Answered;
use base::Time;

base::header! {
    /// The header of data.
    pub struct Sent {
        /// The number of the transmission; the lower 32 bits have the number of the credit that it
        /// answers, or [`Sent::NO_CREDIT`].
        numbers: u64,
        /// When the credit left its host, in picoseconds.
        credit_sent_ps: u64,
    }
}

impl Sent {
    /// The number of the credit in a packet without a credit.
    pub const NO_CREDIT: u32 = u32::MAX;

    pub(super) fn new(number: u64, credit: Option<Answered>) -> Sent {
        let Answered { number: answered, sent } = credit.unwrap_or(Answered { number: Sent::NO_CREDIT, sent: Time::ZERO });
        Sent { numbers: number << 32 | u64::from(answered), credit_sent_ps: sent.0 }
    }
    /// Returns the number of the transmission.
    pub fn number(self) -> u64 {
        self.numbers >> 32
    }
    pub(super) fn credit(self) -> Option<Answered> {
        let number = self.numbers as u32;
        (number != Sent::NO_CREDIT).then_some(Answered { number, sent: Time(self.credit_sent_ps) })
    }
}

base::header! {
    /// The header of a credit.
    pub struct Offer {
        /// The number of the credit.
        number: u32,
        /// The smoothed time from a credit to its answer, in picoseconds; zero before the first answer.
        srtt_ps: u64,
    }
}

base::header! {
    /// The header of a probe.
    pub struct Asked {
        /// The number of the next transmission.
        number: u64,
        /// The first number whose report, if missing, is requested again.
        from: u64,
    }
}

base::header! {
    /// The header of a NACK, an ACK, and the answer to a probe.
    pub struct BurstReport {
        /// The first missing number.
        from: u64,
        /// The number after the last missing one; in an ACK, the number that has arrived.
        to: u64,
    }
}
