//! The contract between the machine and a congestion controller.

use crate::flow::Flow;
use crate::packet::Packet;
use base::{Dur, Time};

/// A congestion controller. One controller serves all flows of a host and keeps a `State` for each. Recovery belongs to the machine:
/// between a loss and the end of recovery only the machine changes the window. The machine also sees to it that marks cut a window at
/// most once.
pub trait Congestion {
    /// The controller's state of one flow.
    type State;
    /// How its connections use ECN.
    const ECN: Ecn = Ecn::Off;
    /// The state of a flow that opens now.
    fn open(&self, flow: &Flow) -> Self::State;
    /// New data was acknowledged, in recovery or not: called before all of the following, to update the state.
    fn on_feedback(&self, _state: &mut Self::State, _ack: &Ack<'_>) {}
    /// New data was acknowledged outside recovery, and no mark cuts the window now: the window may change.
    fn on_ack(&self, state: &mut Self::State, window: &mut Window, ack: &Ack<'_>);
    /// An ACK outside recovery echoes the first mark since the data of the last cut was acknowledged. Returns the window from now on,
    /// in bytes; the slow-start threshold follows it. `None`: the mark counts for nothing, and [`Congestion::on_ack`] is called.
    fn on_mark(&self, _state: &mut Self::State, _window: &Window, _ack: &Ack<'_>) -> Option<u64> {
        None
    }
    /// A segment was found lost. Returns the slow-start threshold from now on, in bytes.
    fn on_loss(&self, state: &mut Self::State, window: &Window, loss: Loss) -> u64;
    /// A segment is handed to the NIC. `sent` bytes of the flow, those of the segment included, were sent at least once.
    fn on_sent(&self, _state: &mut Self::State, _now: Time, _sent: u64) {}
    /// The most bytes that may be in flight whatever the window is: for controllers that send at a rate of their own. Asked when a flow opens and
    /// on every ACK of new data.
    fn most(&self, _state: &Self::State) -> u64 {
        u64::MAX
    }
    /// The earliest departure of the next segment, even if the window allows it sooner: for windows below one segment.
    fn not_before(&self, _state: &Self::State, _srtt: Dur) -> Time {
        Time::ZERO
    }
}

/// How a connection uses explicit congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not at all.
    Off,
    /// RFC 3168: after a marked segment every ACK has ECE until a segment with CWR comes. Only data sent for the first time can be
    /// marked.
    Classic,
    /// RFC 8257: an ACK has ECE if the segments that it answers were marked. SYN, SYNACK and all data can be marked.
    Exact,
}

impl Ecn {
    /// The flags of what a sender sends, or of an answer to a SYN.
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

/// The window of one flow. Whole bytes: a controller that needs finer arithmetic keeps the rest in its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow-start threshold in bytes; `u64::MAX` before the first loss.
    pub ssthresh: u64,
}

/// An acknowledgment of new data, as a controller sees it.
pub struct Ack<'a> {
    /// The present.
    pub now: Time,
    /// The flow.
    pub flow: &'a Flow,
    /// Bytes newly acknowledged.
    pub acked: u64,
    /// Bytes that slow start adds to the window for them: at most one segment (RFC 5681 eq. 2), unless an option allows more.
    pub slow_start: u64,
    /// The ACK echoes a mark; never set without ECN.
    pub ece: bool,
    /// Word 0 of the segment that the ACK answers, as the ports of the path left it.
    pub feedback: u64,
    /// The first byte not yet acknowledged.
    pub snd_una: u64,
    /// The next byte to send.
    pub snd_nxt: u64,
    /// The window may grow: it is what limits the sender.
    pub window_limited: bool,
    /// Smoothed round trip, this ACK's sample included.
    pub srtt: Dur,
    /// The sample itself; `None` from a segment that was sent twice.
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
    /// How it was found.
    pub cause: Cause,
    /// FlightSize: bytes sent and not acknowledged.
    pub flight: u64,
    /// A mark has cut the window since the lost segment was sent.
    pub after_mark: bool,
}
