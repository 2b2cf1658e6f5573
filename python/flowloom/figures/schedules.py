"""Figures of schedules of one link, as `flowloom.fluid` returns them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flowloom.base import words
from flowloom.figures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Segments = Sequence[tuple[int, float, float, float]]
"""Periods of service: flow, start, end, rate."""


def shares(ax: Axes, segments: Segments, names: Sequence[str]) -> None:
    """Draws the share of a link of rate 1 that each flow has, over time."""
    labelled, names = set(), [words.escaped(name) for name in names]
    for flow, start, end, rate in sorted(segments):
        base = sum(r for f, s, e, r in segments if f < flow and s < end and start < e)
        label = style.label(names[flow]) if flow not in labelled else None
        labelled.add(flow)
        ax.bar(
            start, rate, end - start, bottom=base, align="edge", color=style.COLORS[flow], hatch=style.HATCHES[flow],
            edgecolor="white", linewidth=0.6, label=label,
        )  # fmt: skip
        if (end - start) * rate > 0.5:
            box = {"facecolor": style.COLORS[flow], "edgecolor": "none", "pad": 1.5}
            ax.text((start + end) / 2, base + rate / 2, names[flow], ha="center", va="center", color="white", bbox=box)
    xlim = (0, 1.04 * last_end(segments))
    ax.set(xlim=xlim, ylim=(0, 1.05), xlabel="time (units)", ylabel="share of the link", yticks=(0, 0.5, 1))


def bars(
    ax: Axes,
    segments: Segments,
    names: Sequence[str],
    arrivals: Sequence[float] = (),
    deadlines: Sequence[float | None] = (),
) -> None:
    """Draws a bar per flow over the slots of the link, with a triangle at its arrival and a line at
    its deadline; the line is dotted if the deadline is missed.
    """
    names = [words.escaped(name) for name in names]
    for flow, name in enumerate(names):
        own = [(start, end) for f, start, end, _ in sorted(segments) if f == flow]
        color = style.COLORS[flow % len(style.COLORS)]
        ax.barh(
            [flow] * len(own), [end - start for start, end in own], left=[start for start, _ in own], height=0.66, color=color,
            hatch=style.HATCHES[flow % len(style.HATCHES)], edgecolor="white", linewidth=0.6, label=style.label(name),
        )  # fmt: skip
        done = own[-1][1] if own else 0.0
        ax.annotate(f"{done:g}", (done, flow), (3, 0), textcoords="offset points", va="center", fontsize=7.5)
        if flow < len(arrivals):
            ax.plot(arrivals[flow], flow + 0.42, marker="^", markersize=4, color=color, clip_on=False)
        deadline = deadlines[flow] if flow < len(deadlines) else None
        if deadline is not None:
            late = done > deadline
            ax.plot([deadline] * 2, [flow - 0.45, flow + 0.45], color=style.INK, linewidth=1.4, linestyle=":" if late else "-")
    end = max([last_end(segments), *(deadline for deadline in deadlines if deadline is not None)])
    ax.set(xlim=(0, 1.06 * end), ylim=(len(names) - 0.4, -0.6), xlabel="time (slots)")
    ax.set_yticks(range(len(names)), names)
    ax.grid(axis="y", visible=False)


def last_end(segments: Segments) -> float:
    """Returns the time when the last flow ends."""
    return max((end for _, _, end, _ in segments), default=1.0)
