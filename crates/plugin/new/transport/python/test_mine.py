"""ACKs in, windows out: `python test_mine.py`."""

from types import SimpleNamespace

from mine import Mine

SMSS = 1460


def opened() -> Mine:
    """A flow, as the simulator opens it."""
    flow = Mine()
    flow.host = SimpleNamespace(smss=SMSS)
    flow.g, flow.alpha, flow.min_cwnd = 62_500_000, 1_000_000_000, 1
    flow.open()
    return flow


def ack(**changes: object) -> SimpleNamespace:
    """An ACK of one segment."""
    known = {"acked": SMSS, "slow_start": SMSS, "snd_una": SMSS, "snd_nxt": 10 * SMSS}
    flags = {"ece": False, "window_limited": True, "may_change": True}
    return SimpleNamespace(**known | flags | changes)


def test_slow_start_adds_the_acknowledged_bytes() -> None:
    window = SimpleNamespace(cwnd=3 * SMSS, ssthresh=2**64 - 1)
    opened().on_ack(window, ack())
    assert window.cwnd == 4 * SMSS


def test_a_mark_cuts_by_half_of_alpha() -> None:
    flow, window = opened(), SimpleNamespace(cwnd=20 * SMSS, ssthresh=20 * SMSS)
    # The first window of observation has no mark: alpha is 15/16. Before a mark, the window stays.
    flow.on_ack(window, ack(may_change=False))
    assert (flow.alpha, window.cwnd) == (937_500_000, 20 * SMSS)
    assert flow.on_mark(window, ack(ece=True)) == 20 * SMSS * 17 // 32


def test_a_loss_halves_the_flight() -> None:
    loss = SimpleNamespace(flight=20 * SMSS, timeout=False, after_mark=False)
    assert opened().on_loss(None, loss) == 10 * SMSS


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "ok")
