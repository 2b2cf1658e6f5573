//! The limit of a sender: its congestion window, or its data. The times at which the NIC asks for
//! packets do not count.
//!
//! Source: Linux, `tcp_cwnd_validate` and `tcp_is_cwnd_limited` (net/ipv4/tcp_output.c,
//! include/net/tcp.h), which implement the intent of RFC 7661 and RFC 2861: a window that is not
//! used does not grow.

/// How much of its window a sender has used within the last window of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Whether the flight reached the window: no further segment fitted.
    limited: bool,
    /// Largest flight in bytes.
    most: u64,
    /// The window of data ends with the ACK of this byte.
    end: u64,
}

/// The flight of a sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flight {
    /// First byte not yet acknowledged.
    pub(crate) snd_una: u64,
    /// Next byte to send.
    pub(crate) snd_nxt: u64,
    /// Congestion window in bytes.
    pub(crate) cwnd: u64,
}

impl Usage {
    /// Records the flight before an ACK is processed. The flight only grows between two ACKs, so
    /// that its maximum is seen here.
    #[inline]
    pub(crate) fn note(&mut self, flight: Flight, smss: u64) {
        let Flight { snd_una, snd_nxt, cwnd } = flight;
        let bytes = snd_nxt - snd_una;
        let limited = bytes + smss > cwnd;
        if limited || snd_una >= self.end || (!self.limited && bytes > self.most) {
            *self = Usage { limited, most: bytes, end: snd_nxt };
        }
    }
    /// Returns whether the window may grow: it was the limit within the last window of data. In
    /// slow start it may also grow to twice the largest flight, so that it may be ahead of a sender
    /// whose packets still wait to enter the NIC.
    #[inline]
    pub(crate) fn allows_growth(&self, cwnd: u64, slow_start: bool) -> bool {
        self.limited || (slow_start && cwnd < 2 * self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1000;

    fn flight(snd_una: u64, snd_nxt: u64, cwnd: u64) -> Flight {
        Flight { snd_una: snd_una * SMSS, snd_nxt: snd_nxt * SMSS, cwnd: cwnd * SMSS }
    }

    /// Segments (`snd_una`, `snd_nxt`, `cwnd`), and whether the window may grow in congestion
    /// avoidance and in slow start.
    #[test]
    fn a_window_grows_while_it_was_the_limit_within_the_last_window_of_data() {
        let mut usage = Usage::default();
        for (una, nxt, cwnd, avoidance, slow_start) in [
            (0, 10, 10, true, true),
            // Less in flight, but the limit was reached within this window of data.
            (4, 10, 10, true, true),
            (9, 12, 10, true, true),
            // All segments sent then are acknowledged, and at most 6 are in flight since.
            (10, 16, 10, false, true),
            (12, 17, 12, false, false),
            // A flight of 7 lets slow start continue to 14.
            (12, 19, 13, false, true),
            (13, 19, 14, false, false),
            // The window is full again.
            (14, 28, 14, true, true),
        ] {
            let now = flight(una, nxt, cwnd);
            usage.note(now, SMSS);
            let found = [false, true].map(|slow_start| usage.allows_growth(now.cwnd, slow_start));
            assert_eq!(found, [avoidance, slow_start], "{una} {nxt} {cwnd}");
        }
    }

    /// A window with space for a part of a segment counts as used.
    #[test]
    fn a_window_is_full_when_no_whole_segment_fits() {
        for (cwnd, limited) in [(10_000, true), (10_999, true), (11_000, false)] {
            let mut usage = Usage::default();
            usage.note(Flight { snd_una: 0, snd_nxt: 10_000, cwnd }, SMSS);
            assert_eq!(usage.allows_growth(cwnd, false), limited, "{cwnd}");
        }
    }
}
