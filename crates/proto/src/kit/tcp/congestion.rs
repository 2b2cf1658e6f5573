//! The contract between the TCP machine and a congestion controller.

use super::delivery::{Deliveries, RateSample};
use crate::flow::Flow;
use crate::packet::Packet;
use base::{Dur, Rng, Time};

/// A congestion controller. One controller serves all flows of a host and keeps a `State` for each.
/// The TCP machine handles recovery: between a loss and the end of recovery only the machine
/// changes the window, unless the controller keeps a record of deliveries. The machine also ensures
/// that marks cut a window at most once.
pub trait Congestion {
    /// The controller's state of one flow.
    type State;
    /// How its connections use ECN, unless an option of the controller decides.
    const ECN: Ecn = Ecn::Off;
    /// Returns how its connections use ECN.
    #[inline(always)]
    fn ecn(&self) -> Ecn {
        Self::ECN
    }
    /// Returns the word that the ACK of a segment echoes, at the receiver: by default word 0 of the
    /// segment's header, as the ports on the path left it.
    #[inline]
    fn feedback(segment: &Packet, _now: Time) -> u64 {
        segment.words[0]
    }
    /// Returns the state of a flow that opens now.
    fn open(&self, flow: &Flow) -> Self::State;
    /// Called when a flow continues the connection of an earlier flow to the same host, which has
    /// ended with the state `before`: takes over what is known of the path. By default nothing.
    fn inherit(&self, _state: &mut Self::State, _before: &Self::State) {}
    /// Called for every acknowledgment of new data, in recovery or not, before all other methods:
    /// updates the state.
    fn on_feedback(&self, _state: &mut Self::State, _ack: &Ack<'_>) {}
    /// Called for an acknowledgment of new data outside recovery, unless a mark cuts the window:
    /// may change the window.
    fn on_ack(&self, state: &mut Self::State, window: &mut Window, ack: &Ack<'_>);
    /// Called when an ACK outside recovery echoes the first mark since the data of the last cut was
    /// acknowledged. Returns the new window in bytes; the slow-start threshold follows it. With
    /// `None` the mark has no effect, and [`Congestion::on_ack`] is called.
    fn on_mark(&self, _state: &mut Self::State, _window: &Window, _ack: &Ack<'_>) -> Option<u64> {
        None
    }
    /// Called before [`Congestion::on_loss`], and when the timer expires again for the same segment,
    /// which changes no threshold (RFC 5681 section 3.1).
    fn before_loss(&self, _state: &mut Self::State, _cause: Cause, _now: Time) {}
    /// Called when a segment is found lost. Returns the new slow-start threshold in bytes.
    fn on_loss(&self, state: &mut Self::State, window: &Window, loss: Loss) -> u64;
    /// Called when a segment is handed to the NIC. `sent` bytes of the flow, the segment included,
    /// were sent at least once.
    fn on_sent(&self, _state: &mut Self::State, _now: Time, _sent: u64) {}
    /// Adds what it has counted for the flow since the last call: `add` takes the index of a counter
    /// of the transport and a number.
    #[inline(always)]
    fn count(&self, _state: &mut Self::State, _add: impl FnMut(usize, u64)) {}
    /// Returns the largest number of bytes in flight, independent of the window: for controllers
    /// with a rate of their own. Called when a flow opens, and after the other methods for every ACK of new data.
    fn most(&self, _state: &Self::State) -> u64 {
        u64::MAX
    }
    /// Returns the earliest departure of the next segment, even if the window allows it sooner: for
    /// windows below one segment.
    fn not_before(&self, _state: &Self::State, _srtt: Dur) -> Time {
        Time::ZERO
    }
    /// Returns the record of deliveries in the state of a flow, for controllers that measure the
    /// delivery rate. The machine then keeps the record, and calls [`Congestion::on_delivery`].
    #[inline(always)]
    fn deliveries(_state: &mut Self::State) -> Option<&mut Deliveries> {
        None
    }
    /// Called after all other methods for every ACK that delivers data, cumulatively or selectively,
    /// in recovery too: sets the window. Only for controllers with a record of deliveries.
    fn on_delivery(&self, _state: &mut Self::State, _window: &mut Window, _sample: &RateSample, _rng: &mut Rng) {}
}

/// How a connection uses explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// No ECN.
    Off,
    /// RFC 3168: after a marked segment every ACK has ECE until a segment with CWR arrives. Only
    /// data sent for the first time can be marked.
    Classic,
    /// RFC 8257: an ACK has ECE if the segments that it answers were marked. SYN, SYNACK and all data can be marked.
    Exact,
}

impl Ecn {
    /// Returns the ECN flags of a segment, or of an answer to a SYN.
    #[inline]
    pub(super) fn flags(self, data: bool, resent: bool) -> u16 {
        let code_point = match self {
            Ecn::Off => 0,
            // RFC 3168 sections 6.1.1, 6.1.4 and 6.1.5: no SYN, no ACK, no retransmission.
            Ecn::Classic => u16::from(data && !resent) * Packet::ECT,
            // RFC 8257 section 3.6.
            Ecn::Exact => Packet::ECT,
        };
        code_point | if resent { Packet::RETX } else { 0 }
    }
}

/// The window of one flow in whole bytes. A controller that needs fractions keeps them in its
/// state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    pub ssthresh: u64,
}

/// An acknowledgment of new data, as a controller sees it.
pub struct Ack<'a> {
    /// The current time.
    pub now: Time,
    /// The flow.
    pub flow: &'a Flow,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// Bytes that slow start adds to the window for them: at most one segment (RFC 5681 eq. 2), unless an option allows more.
    pub slow_start: u64,
    /// The ACK echoes a mark; never set without ECN.
    pub ece: bool,
    /// The word of [`Congestion::feedback`] for the segment that the ACK answers.
    pub feedback: u64,
    /// Time between the arrival of the ACK at this host and now: longer than zero if the host has a
    /// receiver.
    pub waited: Dur,
    /// The first byte not yet acknowledged.
    pub snd_una: u64,
    /// The next byte to send.
    pub snd_nxt: u64,
    /// Whether the window may grow: the window limits the sender.
    pub window_limited: bool,
    /// Whether the machine is in recovery: then neither `on_mark` nor `on_ack` is called.
    pub in_recovery: bool,
    /// Smoothed round trip, this ACK's sample included.
    pub srtt: Dur,
    /// The round-trip sample of this ACK; `None` for a segment that was sent twice.
    pub rtt: Option<Dur>,
}

/// How a loss was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Three duplicate ACKs.
    Duplicates,
    /// The retransmission timer.
    Timeout,
}

/// A loss, as a controller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// How the loss was found.
    pub cause: Cause,
    /// FlightSize: bytes sent and not acknowledged.
    pub flight: u64,
    /// Whether a mark has cut the window since the lost segment was sent.
    pub after_mark: bool,
}
