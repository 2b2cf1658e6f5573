//! The rate at which a receiver requests packets: one token or pull per gap for all its flows
//! together, so that the requested packets fit its downlink.

use crate::contract::Cx;
use base::{Dur, Time};

/// The pacer of one host.
#[derive(Clone, Debug)]
pub struct PullPacer {
    gap: Dur,
    /// When the next request may leave.
    next: Time,
}

impl PullPacer {
    /// Creates a pacer that allows one request per `gap`, the first at once.
    pub fn new(gap: Dur) -> PullPacer {
        PullPacer { gap, next: Time::ZERO }
    }
    /// Returns whether a request may leave now.
    #[inline]
    pub fn is_free(&self, now: Time) -> bool {
        now >= self.next
    }
    /// Records that a request leaves now.
    #[inline]
    pub fn take(&mut self, now: Time) {
        debug_assert!(self.is_free(now), "two requests within a gap");
        self.next = now.after(self.gap);
    }
    /// Delays the next requests by the time of `packets` packets that arrive without requests.
    pub fn hold(&mut self, packets: u64, now: Time) {
        self.next = self.next.max(now).after(self.gap * packets);
    }
    /// Sets the host's timer `kind` to the time at which the next request may leave.
    pub fn arm(&self, kind: u8, cx: &mut Cx<'_>) {
        cx.arm_host(kind, self.next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_leaves_per_gap_and_idle_time_is_not_saved() {
        let mut pacer = PullPacer::new(Dur(10));
        let wanted = [0, 4, 10, 19, 45, 46, 55];
        let passed: Vec<u64> =
            wanted.into_iter().filter(|&at| pacer.is_free(Time(at)).then(|| pacer.take(Time(at))).is_some()).collect();
        assert_eq!(passed, [0, 10, 45, 55]);
        pacer.hold(2, Time(60));
        pacer.hold(1, Time(90));
        assert!(!pacer.is_free(Time(99)) && pacer.is_free(Time(100)), "65 + 2 * 10, then 90 + 10");
    }
}
