//! The contract between the TCP machine and a congestion controller.

use super::delivery::{Deliveries, RateSample};
use crate::flow::Flow;
use crate::packet::Packet;
use base::{Dur, Rng, Time};
use plugin::abi::NEVER;
/// The window of one flow in whole bytes, shared with plug-ins. A controller that needs fractions
/// keeps them in its state.
pub use plugin::congestion::Window;
use std::ops::Deref;

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

/// An acknowledgment of new data, as a controller sees it: what plug-ins see, and more.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// What plug-ins see. In recovery `may_change` is not set, and neither `on_mark` nor `on_ack` is called.
    pub seen: plugin::congestion::Ack,
    /// The flow.
    pub flow: &'a Flow,
    /// The word of [`Congestion::feedback`] for the segment that the ACK answers.
    pub feedback: u64,
}

impl Ack<'_> {
    /// Returns the current time.
    #[inline(always)]
    pub fn now(&self) -> Time {
        Time(self.seen.now_ps)
    }
    /// Returns the smoothed round trip, this ACK's sample included.
    #[inline(always)]
    pub fn srtt(&self) -> Dur {
        Dur(self.seen.srtt_ps)
    }
    /// Returns the round-trip sample of this ACK; `None` for a segment that was sent twice.
    #[inline(always)]
    pub fn rtt(&self) -> Option<Dur> {
        (self.seen.rtt_ps != NEVER).then_some(Dur(self.seen.rtt_ps))
    }
    /// Returns the time that the ACK has waited at this host.
    #[inline(always)]
    pub fn waited(&self) -> Dur {
        Dur(self.seen.waited_ps)
    }
}

impl Deref for Ack<'_> {
    type Target = plugin::congestion::Ack;
    #[inline(always)]
    fn deref(&self) -> &plugin::congestion::Ack {
        &self.seen
    }
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
