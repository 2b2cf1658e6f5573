"""Pictures of schedules of one link."""

from __future__ import annotations

import numpy as np
import pytest
from flowloom import fluid
from flowloom.figures import schedules, style
from matplotlib.patches import Rectangle

# Table 1 of STAM.
NAMES = "ABCD"
ARRIVALS = (2.0, 3.0, 0.0, 1.0)
SIZES = (1.0, 2.0, 5.0, 6.0)
DEADLINES = (8.0, None, 6.0, None)


@pytest.mark.parametrize(("policy", "missed"), [("stam", 0), ("fcfs", 1)])
def test_every_flow_has_a_bar_of_its_size_and_a_line_at_its_deadline(policy: str, missed: int) -> None:
    segments = fluid(policy, 1.0, ARRIVALS, SIZES, DEADLINES)["segments"]
    ax = style.figure().subplots()
    schedules.bars(ax, segments, NAMES, ARRIVALS, DEADLINES)
    drawn = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    for row, size in enumerate(SIZES):
        assert sum(bar.get_width() for bar in drawn if round(bar.get_y() + bar.get_height() / 2) == row) == size
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(NAMES)
    lines = [(np.asarray(line.get_xdata()), line.get_linestyle(), line.get_marker()) for line in ax.lines]
    assert {x[0] for x, _, _ in lines if len(x) == 2} == {8.0, 6.0}
    assert sum(style == ":" for x, style, _ in lines if len(x) == 2) == missed
    assert sorted(x[0] for x, _, marker in lines if marker == "^") == sorted(ARRIVALS)


def test_shares_fill_the_link() -> None:
    ax = style.figure().subplots()
    schedules.shares(ax, fluid("ps", 1.0, (0.0, 0.0), (1.0, 3.0))["segments"], "AB")
    drawn = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    assert sum(patch.get_width() * patch.get_height() for patch in drawn) == pytest.approx(4.0)
    assert ax.get_xlim()[1] == pytest.approx(4.16)
    assert ax.get_legend_handles_labels()[1] == ["A", "B"]
