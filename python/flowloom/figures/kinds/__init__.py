"""Kinds of figures: one module per kind with `META` and `draw`, and one line in the list."""

from __future__ import annotations

from flowloom.base.rooms import room

KINDS = room(
    __name__,
    [
        "slowdown",
        "metrics",
        "sharing",
        "mixed",
        "iterations",
        "busbw",
        "group_cdf",
        "fct_cdf",
        "er_cdf",
        "fct_size",
        "topology",
        "utilisation",
        "timeline",
        "queue",
        "rate",
        "goodput",
        "throughput",
        "heatmap",
        "cwnd",
        "gantt",
    ],
)
"""All kinds of figures by name, in the order in which figures are shown: from the whole to its parts."""
