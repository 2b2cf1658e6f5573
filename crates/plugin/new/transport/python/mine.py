"""The congestion control `mine`: so far it is DCTCP (RFC 8257 section 3). There is nothing to build.

All numbers are whole: alpha is in parts per billion, the window in bytes, both rounded down.
"""

ONE = 1_000_000_000


class Mine:
    """DCTCP, to be changed."""

    name = "mine"
    source = "RFC 8257"
    ecn = "exact"
    parameters = {
        "g": {
            "type": "fraction",
            "default": "0.0625",
            "range": ("0.000000001", "1"),
            "about": "Gain: the weight of one window of observation in alpha.",
            "source": "SIGCOMM 2010 section 4, Linux: 1/16",
        },
        "alpha": {"type": "fraction", "default": "1", "range": ("0", "1"), "about": "Initial value of alpha.", "source": "Linux"},
        "min_cwnd": {
            "type": "integer",
            "default": "1",
            "range": ("1", "2"),
            "about": "Smallest window in segments after a mark.",
            "source": "ns-2; Linux: 2",
        },
    }

    def open(self) -> None:
        """A flow opens: its object has `host`, `flow`, and the value of each parameter under its name."""
        self.smss = self.host.smss
        self.owed = 0  # growth of congestion avoidance that is not yet in the window, in bytes times the window
        self.window_end = 0  # end of the window of observation, as an offset
        self.acked = self.marked = 0  # bytes acknowledged in it, and those with a mark

    def inherit(self, before: "Mine") -> None:
        """The flow continues the connection of an earlier flow."""
        self.alpha = before.alpha

    def on_ack(self, window, ack) -> None:
        """New data is acknowledged: RFC 8257 section 3.3, steps 1 to 8, and the growth of the window."""
        self.acked += ack.acked
        if ack.ece:
            self.marked += ack.acked
        if ack.snd_una > self.window_end:
            fraction = self.marked * ONE // self.acked
            self.alpha = (self.alpha * (ONE - self.g) + fraction * self.g) // ONE
            self.window_end = ack.snd_nxt
            self.acked = self.marked = 0
        if not ack.may_change or not ack.window_limited:
            return
        if window.cwnd < window.ssthresh:
            window.cwnd += ack.slow_start
        else:
            # One segment per window of bytes acknowledged.
            self.owed += self.smss * ack.acked
            growth, self.owed = divmod(self.owed, window.cwnd)
            window.cwnd += growth

    def on_mark(self, window, ack) -> int:
        """A mark: step 9. Returns the new window."""
        return max(window.cwnd * (2 * ONE - self.alpha) // (2 * ONE), self.min_cwnd * self.smss)

    def on_loss(self, window, loss) -> int:
        """A segment is lost: RFC 5681 eq. 4. Returns the new slow-start threshold."""
        return max(loss.flight // 2, 2 * self.smss)
