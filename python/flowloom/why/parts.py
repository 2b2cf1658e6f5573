"""The parts of the time of flows: of single flows, and of a class of flows of each system; as
tables and figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from flowloom.base import words
from flowloom.runs import data, tables

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

MOST_PORTS = 3
"""The number of queues with a colour of their own in a figure; all other queues are drawn as one part."""


LEAST_SHARE = 0.01
"""The share of a system's mean completion time from which on a part is drawn separately in the
figure of a class.
"""


class Part(NamedTuple):
    """A part of the time of a flow."""

    name: str
    port: str | None = None
    """The port of a queue, or the port that lost a packet."""
    tier: str | None = None
    """The tiers at the ends of the port's link, such as `leaf->host`."""
    timer: str | None = None
    """The timer that ended the wait for a lost packet, such as `min_rto of 10 ms`."""

    @property
    def cause(self) -> str:
        """The name of the part, with the timer and without the port."""
        return self.name if self.timer is None else f"{self.name} after {self.timer}"


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
        """Describes the flow, its completion time and its slowdown."""
        size, unit = words.scale("bytes", [self.size_bytes])
        return (
            f"flow {self.flow_id}: {self.size_bytes / size:.4g} {unit} from {self.src} to {self.dst} in {duration(self.fct_ps)}, "
            f"{self.slowdown:.4g} times the {duration(self.ideal_fct_ps)} in an unloaded network"
        )


@dataclass(frozen=True)
class Why:
    """The parts of the time of some flows of one point."""

    point: str
    system: str
    seed: int
    flows: Sequence[Flow]
    packets: pa.Table | None = None
    """The packets around the flows, if asked for: those that passed the ports of the flows' paths
    while the flows were open.
    """
    groups: Mapping[int, int] = field(default_factory=dict)
    """The group of each flow that was chosen since it finished last of its group, by flow id."""

    def table(self) -> tables.Table:
        """Returns a table with one row per flow and part, the largest part first."""
        rows = []
        for flow in self.flows:
            for part, ps in sorted(flow.parts.items(), key=lambda item: (-item[1], item[0].cause, item[0].port or "")):
                rows.append([str(flow.flow_id), part.cause, part.port or "", duration(ps), f"{100 * ps / flow.fct_ps:.1f} %"])
        return tables.Table(["flow", "part", "port", "time", "share"], rows, 3)

    def plot(self) -> Figure:
        """Draws a bar per flow, which consists of the parts of its time."""
        from flowloom.figures import style

        unit, name = words.scale("s", [flow.fct_ps * 1e-12 for flow in self.flows])
        with style.look():
            fig = style.figure(width=7.0, height=1.4 + 0.42 * len(self.flows))
            fig.set_layout_engine("constrained")
            (ax,) = style.panels(fig, 1, 1)
            scaled = {label: [ps * 1e-12 / unit for ps in times] for label, times in self._drawn().items()}
            stack(ax, scaled, [self._label(flow.flow_id) for flow in self.flows])
            ax.set_xlabel(words.axis("completion time by part, not in the order of time", name))
            ax.set_title(f"{words.escaped(self.system)}, seed {self.seed}: parts of completion times")
            style.legend(fig, [ax])
        return fig

    def _label(self, flow: int) -> str:
        """Returns the label of a flow, with its group if the flow finished last of it."""
        return f"group {self.groups[flow]}: flow {flow}" if flow in self.groups else f"flow {flow}"

    def _drawn(self) -> dict[str, list[int]]:
        """Returns picoseconds by label and flow. The `MOST_PORTS` longest queues have labels, all
        other queues share one.
        """
        ports: dict[str, int] = {}
        for flow in self.flows:
            for part, ps in flow.parts.items():
                if part.name == "queue" and part.port is not None:
                    ports[part.port] = ports.get(part.port, 0) + ps
        named = sorted(ports, key=lambda port: (-ports[port], port))[:MOST_PORTS]

        def label(part: Part) -> str:
            if part.name != "queue":
                return part.cause
            return words.escaped(f"queue {part.port}") if part.port in named else "other queues"

        labels = ordered({label(part) for flow in self.flows for part in flow.parts})
        return {text: [sum(ps for part, ps in flow.parts.items() if label(part) == text) for flow in self.flows] for text in labels}

    def __str__(self) -> str:
        """Describes the flows, and adds the table."""
        heads = []
        for flow in self.flows:
            group = self.groups.get(flow.flow_id)
            heads.append(str(flow) if group is None else f"last of group {group}, {flow}")
        return "\n".join([self.point, *map(words.escaped, heads), "", str(self.table())])


@dataclass(frozen=True)
class SystemClass:
    """The flows of a class in one point. Some of them were explained."""

    why: Why
    size: int
    """The number of flows of the class."""

    def means(self) -> dict[str, Fraction]:
        """Returns the mean picoseconds by part, with queues and losses by tier; they sum to the
        mean completion time of the explained flows.
        """
        return {label: Fraction(sum(times), len(times)) for label, times in self._times().items()}

    def of_ideal(self) -> dict[str, float]:
        """Returns the mean, by part, of its time over the ideal completion time of the flow; they
        sum to the mean slowdown of the explained flows.
        """
        ideals = [flow.ideal_fct_ps for flow in self.why.flows]
        return {
            label: sum(ps / ideal for ps, ideal in zip(times, ideals, strict=True)) / len(times)
            for label, times in self._times().items()
        }

    def most_at(self, label: str) -> str:
        """Returns the port at which most of the time of a part was spent, and its share of that time."""
        ports: dict[str, int] = {}
        for flow in self.why.flows:
            for part, ps in flow.parts.items():
                if by_tier(part) == label and part.port is not None:
                    ports[part.port] = ports.get(part.port, 0) + ps
        if not ports or not sum(ports.values()):
            return ""
        port = min(ports, key=lambda port: (-ports[port], port))
        return f"{port} ({100 * ports[port] / sum(ports.values()):.0f} %)"

    def _times(self) -> dict[str, list[int]]:
        labels = ordered({by_tier(part) for flow in self.why.flows for part in flow.parts})
        return {
            label: [sum(ps for part, ps in flow.parts.items() if by_tier(part) == label) for flow in self.why.flows]
            for label in labels
        }


@dataclass(frozen=True)
class ClassWhy:
    """The parts of the time of a class of flows, by system."""

    about: str
    """The description of the class."""
    systems: Sequence[SystemClass]
    notes: Sequence[str] = ()

    def table(self) -> tables.Table:
        """Returns a table with one row per system and part, in the order in which parts are drawn."""
        rows = []
        for one in self.systems:
            fct, ideal = sum(one.means().values()), one.of_ideal()
            for part, mean in one.means().items():
                share = f"{100 * float(mean / fct):.1f} %"
                rows.append([one.why.system, part, one.most_at(part), duration(float(mean)), share, f"{ideal[part]:.3g}"])
            rows.append([one.why.system, "all", "", duration(float(fct)), "100.0 %", f"{sum(ideal.values()):.3g}"])
        return tables.Table(["system", "part", "most of it at", "mean time", "share", "mean time / ideal"], rows, 3)

    def plot(self) -> Figure:
        """Draws two bars per system, which consist of the mean parts: in time, and over the ideal
        completion time.
        """
        from flowloom.figures import style

        labels = self._drawn()
        unit, name = words.scale("s", [float(sum(one.means().values())) * 1e-12 for one in self.systems])
        means = merged(labels, [{label: float(ps) * 1e-12 / unit for label, ps in one.means().items()} for one in self.systems])
        ideals = merged(labels, [one.of_ideal() for one in self.systems])
        names = [words.escaped(one.why.system) for one in self.systems]
        with style.look():
            fig = style.figure(2, 1, width=4.6, height=1.9 + 0.42 * len(self.systems) + 0.12 * len(labels))
            fig.set_layout_engine("constrained")
            left, right = style.panels(fig, 1, 2)
            stack(left, means, names)
            stack(right, ideals, names)
            left.set_xlabel(words.axis("mean completion time", name))
            right.set_xlabel("mean slowdown")
            right.set_yticklabels([])
            style.legend(fig, [left])
            style.note(fig, words.escaped(self.about))
        return fig

    def _drawn(self) -> list[str]:
        """Returns the parts that are drawn separately: those with the share `LEAST_SHARE` in a system."""
        shares: dict[str, float] = {}
        for one in self.systems:
            fct = sum(one.means().values())
            for label, mean in one.means().items():
                shares[label] = max(shares.get(label, 0.0), float(mean / fct))
        return ordered(label for label, share in shares.items() if share >= LEAST_SHARE)

    def __str__(self) -> str:
        """Describes the class and how many flows were explained, and adds the table."""
        lines = [self.about]
        for one in self.systems:
            explained = len(one.why.flows)
            how = "all explained" if explained == one.size else f"{explained} of them explained, spread evenly over the class"
            lines.append(f"{one.why.system}, seed {one.why.seed}: {words.counted(one.size, 'flow')}, {how}")
        return "\n".join([*map(words.escaped, [*lines, *self.notes]), "", str(self.table())])


def merged(labels: Sequence[str], bars: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    """Returns the values of each label by bar, and the sum of all other labels as `small parts`."""
    found = {label: [bar.get(label, 0.0) for bar in bars] for label in labels}
    rest = [sum(value for label, value in bar.items() if label not in labels) for bar in bars]
    return found if not any(rest) else {**found, "small parts": rest}


def stack(ax: Any, parts: Mapping[str, Sequence[float]], names: Sequence[str]) -> None:
    """Draws a horizontal bar for each name, which consists of the parts."""
    from flowloom.figures import style

    left = [0.0] * len(names)
    for index, (label, values) in enumerate(parts.items()):
        color, hatch = style.COLORS[index % len(style.COLORS)], style.HATCHES[index // len(style.COLORS) % len(style.HATCHES)]
        ax.barh(range(len(names)), values, left=left, label=label, edgecolor="white", color=color, hatch=hatch)
        left = [a + b for a, b in zip(left, values, strict=True)]
    ax.set_yticks(range(len(names)), names)
    ax.invert_yaxis()
    ax.grid(visible=False, axis="y")


ORDER = ("handshake", "pacing", "queue", "paused", "reordering", "other", "transmission", "propagation", "retransmission")
"""The order of the parts of a bar from left to right, by the first word of the label."""


def ordered(labels: Iterable[str]) -> list[str]:
    """Sorts the labels of parts into the order of a bar."""
    return sorted(labels, key=lambda text: (ORDER.index(text.split()[0].rstrip(",")), text))


def by_tier(part: Part) -> str:
    """Returns the label of a part in a class of flows: ports of a tier share one."""
    if part.name == "retransmission":
        return f"{part.cause}, {'not lost' if part.tier is None else f'lost at {part.tier}'}"
    return part.name if part.tier is None else f"{part.name} {part.tier}"


def spread(count: int, most: int) -> list[int]:
    """Returns at most `most` places of a list, spread evenly over it.

    >>> spread(10, 3), spread(2, 3)
    ([1, 5, 8], [0, 1])
    """
    return list(range(count)) if count <= most else [(2 * i + 1) * count // (2 * most) for i in range(most)]


def why_of(found: Mapping[str, Any], groups: Mapping[int, int] | None = None) -> Why:
    """Converts what the compiled part returns."""

    def part(one: Mapping[str, Any]) -> Part:
        timer = None if one["timer"] is None else f"{one['timer']} of {duration(one['timer_ps'])}"
        return Part(one["part"], one["port"], one["tier"], timer)

    flows = [Flow(**{**flow, "parts": {part(one): one["time_ps"] for one in flow["parts"]}}) for flow in found["flows"]]
    packets = None if found["packets"] is None else data.read(found["packets"])
    return Why(found["point"], found["system"], found["seed"], flows, packets, groups or {})


def duration(ps: float) -> str:
    """Returns a time as text, in the unit in which it is easiest to read.

    >>> duration(1_234_000)
    '1.234 µs'
    """
    unit, name = words.scale("s", [ps * 1e-12])
    return f"{ps * 1e-12 / unit:.4g} {name}"
