"""Where the time of flows went: as a table, and as a picture with one bar a flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flowloom import tables, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Part = tuple[str, str | None]
"""What time was spent on, and at which port if it was a queue."""

MOST_PORTS = 3
"""Queues with a colour of their own in a picture; those of other ports are drawn as one."""


@dataclass(frozen=True)
class Flow:
    """A flow and the parts of its completion time."""

    flow_id: int
    src: str
    dst: str
    size_bytes: int
    fct_ps: int
    ideal_fct_ps: int
    slowdown: float
    parts: Mapping[Part, int]
    """Picoseconds by part; they sum to `fct_ps`."""

    def __str__(self) -> str:
        """What it was and what became of it."""
        size, unit = words.scale("bytes", [self.size_bytes])
        return (
            f"flow {self.flow_id}: {self.size_bytes / size:.4g} {unit} from {self.src} to {self.dst} in {duration(self.fct_ps)}, "
            f"{self.slowdown:.4g} times the {duration(self.ideal_fct_ps)} of the flow alone"
        )


@dataclass(frozen=True)
class Why:
    """Where the time of some flows of one point went."""

    point: str
    system: str
    seed: int
    flows: Sequence[Flow]

    def table(self) -> tables.Table:
        """One row per flow and part, the largest first."""
        rows = []
        for flow in self.flows:
            for (part, port), ps in sorted(flow.parts.items(), key=lambda item: (-item[1], item[0][0], item[0][1] or "")):
                rows.append([str(flow.flow_id), part, port or "", duration(ps), f"{100 * ps / flow.fct_ps:.1f} %"])
        return tables.Table(["flow", "part", "port", "time", "share"], rows, 3)

    def plot(self) -> Figure:
        """A bar per flow, whose pieces are the parts."""
        from flowloom import style

        parts = self._drawn()
        unit, name = words.scale("s", [flow.fct_ps * 1e-12 for flow in self.flows])
        with style.look():
            fig = style.figure(width=7.0, height=1.4 + 0.42 * len(self.flows))
            fig.set_layout_engine("constrained")
            (ax,) = style.panels(fig, 1, 1)
            for index, (label, times) in enumerate(parts.items()):
                lefts = [sum(all_times[i] for all_times in list(parts.values())[:index]) for i in range(len(times))]
                look: dict[str, Any] = {
                    "color": style.COLORS[index % len(style.COLORS)],
                    "hatch": style.HATCHES[index // len(style.COLORS)],
                }
                scaled = [ps * 1e-12 / unit for ps in times]
                ax.barh(range(len(times)), scaled, left=[ps * 1e-12 / unit for ps in lefts], label=label, edgecolor="white", **look)
            ax.set_yticks(range(len(self.flows)), [f"flow {flow.flow_id}" for flow in self.flows])
            ax.invert_yaxis()
            ax.grid(visible=False, axis="y")
            ax.set_xlabel(words.axis("time since the start", name))
            ax.set_title(f"{words.escaped(self.system)}, seed {self.seed}: parts of completion times")
            style.legend(fig, [ax])
        return fig

    def _drawn(self) -> dict[str, list[int]]:
        """Picoseconds by label and flow: queues of few ports by name, all others together."""
        ports: dict[str, int] = {}
        for flow in self.flows:
            for (_, port), ps in flow.parts.items():
                if port is not None:
                    ports[port] = ports.get(port, 0) + ps
        named = sorted(ports, key=lambda port: (-ports[port], port))[:MOST_PORTS]

        def label(part: Part) -> str:
            name, port = part
            return name if port is None else words.escaped(f"{name} {port}") if port in named else "other queues"

        all_parts = [part for flow in self.flows for part in flow.parts]
        labels = sorted({label(part) for part in all_parts}, key=lambda text: (ORDER.index(text.split()[0]), text))
        return {text: [sum(ps for part, ps in flow.parts.items() if label(part) == text) for flow in self.flows] for text in labels}

    def __str__(self) -> str:
        """The flows in words, and the table."""
        heads = "\n".join(map(str, self.flows))
        return f"{self.point}\n{words.escaped(heads)}\n\n{self.table()}"


ORDER = ("handshake", "pacing", "queue", "other", "transmission", "propagation", "retransmission")
"""The pieces of a bar from left to right, by the first word of a label."""


def told(found: Mapping[str, Any]) -> Why:
    """What the compiled part tells."""

    def parts(flow: Mapping[str, Any]) -> dict[Part, int]:
        return {(part["part"], part["port"]): part["time_ps"] for part in flow["parts"]}

    flows = [Flow(**{**flow, "parts": parts(flow)}) for flow in found["flows"]]
    return Why(found["point"], found["system"], found["seed"], flows)


def duration(ps: int) -> str:
    """A time with a unit in which it reads well.

    >>> duration(1_234_000)
    '1.234 µs'
    """
    unit, name = words.scale("s", [ps * 1e-12])
    return f"{ps * 1e-12 / unit:.4g} {name}"
