//! A flow at its receiver: what it waits for, and its tokens.

use crate::kit::tokens::IssuedTokens;
use base::Time;

/// What a flow waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A turn to get a token.
    Ready,
    /// Packets for which it has tokens: all that it needs.
    Resend,
    /// Answers of its source, which has left too many tokens unanswered.
    Downgraded,
    /// Any packet of its source, which has sent none for a long time.
    Parked,
}

/// A flow at its receiver.
#[derive(Clone, Debug)]
pub struct Receiver {
    /// What the flow waits for.
    pub phase: Phase,
    /// When the last packet of the flow arrived.
    pub last_arrival: Time,
    /// The source has reported that it has more flows than it can serve.
    pub blocked: bool,
    /// Its tokens.
    pub tokens: IssuedTokens,
}

impl Receiver {
    /// Creates a flow of `packets` packets; the first `free` need no tokens.
    pub fn new(packets: u64, free: u64, now: Time) -> Receiver {
        let tokens = IssuedTokens::new(packets, free, now);
        Receiver { phase: Phase::Ready, last_arrival: now, blocked: false, tokens }
    }
}
