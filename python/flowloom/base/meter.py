"""The progress of long work, with the remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from flowloom.base import words


class Meter:
    """Shows the progress of a run and the remaining time: one line on a terminal, otherwise a line
    per tenth.
    """

    def __init__(self, label: str, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.label = words.escaped(label)
        self.stream = stream if stream is not None else sys.stderr
        self.clock = clock
        self.began = clock()
        self.skipped: float | None = None
        self.tenth = -1

    def __call__(self, progress: Mapping[str, Any]) -> None:
        """Shows the progress that a run reports."""
        total = float(progress.get("points_total") or 1)
        inside = float(progress.get("flows_done") or 0) / float(progress.get("flows_total") or 1)
        share = min((float(progress.get("points_done") or 0) + min(inside, 0.99)) / total, 1.0)
        if self.skipped is None:  # points of an earlier run do not count for the speed of this run
            self.skipped = float(progress.get("points_skipped") or 0) / total
        spent = self.clock() - self.began
        pace = share - self.skipped
        wait = progress.get("remaining_s")
        if wait is None and pace > 0:
            wait = spent * (1 - share) / pace
        left = f", {span(float(wait))} left" if wait is not None and share < 1 else ""
        done = f"{int(progress.get('points_done') or 0)} of {int(total)} points, {span(spent)}{left}"
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{self.label}: {done}")
        elif int(10 * share) > self.tenth:
            self.tenth = int(10 * share)
            self.stream.write(f"{self.label}: {done}\n")
        self.stream.flush()

    def close(self) -> None:
        """Ends the line."""
        if self.stream.isatty():
            self.stream.write("\n")


def span(seconds: float) -> str:
    """Returns a duration as text: `45 s`, `12 min`, `3 h 20 min`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
