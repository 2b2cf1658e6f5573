"""Results of a run: what is read of it, as tables, figures and reports."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flowloom import _core
from flowloom.base import words
from flowloom.runs import tables
from flowloom.runs.again import around, runnable
from flowloom.runs.choice import refuse_absent
from flowloom.runs.data import Data
from flowloom.why.parts import ClassWhy, SystemClass, Why, told

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure


class Results(Data):
    """The results of a run.

    Every table is a `pyarrow.Table` whose columns carry their unit at the end of their name and a description in their metadata.

    >>> import flowloom
    >>> results = flowloom.run({
    ...     "topology": {"kind": "star", "hosts": 4, "rate": "1Gbps", "delay": "10us"},
    ...     "workload": {"web": {"kind": "poisson", "flows": 50, "load": 0.4, "size": "fixed", "mean": "15KB"}},
    ...     "system": [{"label": "TCP", "transport": "newreno"}],
    ... })
    >>> results.counted().num_rows
    50
    >>> results.systems
    ['TCP']
    """

    # Matplotlib is optional and slow to import: it is imported where a figure is asked for.

    def table(self, metrics: Sequence[str] | None = None, at: Mapping[str, object] | None = None) -> tables.Table:
        """The summary as an aligned text table: one row per system and swept values, and per workload where there are several."""
        return tables.summary(self, metrics, at)

    def plot(self, kind: str = "slowdown", **options: Any) -> Figure:
        """Draw a figure; see `flowloom.plot`."""
        from flowloom.figures import plots

        return plots.draw(self, kind, **options)

    def why(
        self,
        flow: int | Sequence[int] = (),
        point: str | None = None,
        files: str | Path = ".",
        *,
        slowest: int = 5,
        trace: bool = False,
    ) -> Why:
        """Where the time of flows went, by running their point again: of those named, or of the `slowest` by slowdown.

        `point` names the point where the results have several; without it, it is the one with the largest slowdown. `files` is the
        folder of the scenario, if the scenario reads files. With `trace` the point is run once more, for the packets around the
        flows.
        """
        flows = [flow] if isinstance(flow, int) else list(flow)
        return told(runnable(self).why(point, flows, str(files), trace, slowest))

    def why_groups(
        self, groups: Sequence[int] | None = None, point: str | None = None, files: str | Path = ".", *, trace: bool = False
    ) -> Why:
        """Where the time of the flow went that finished last of each group.

        The groups are those named, or the five that took longest.
        """
        from flowloom.why import chosen

        point, last = chosen.stragglers(self, groups, point)
        return told(runnable(self).why(point, list(last), str(files), trace), last)

    def why_class(
        self, at: Mapping[str, object] | None = None, *, tail: float = 0.0, limit: int = 200, files: str | Path = "."
    ) -> ClassWhy:
        """Where the time of a class of flows went, on average, in one point of each system, by running these points again.

        The points are those of the first seed at the swept values `at`. The class holds the flows that the results are about (see
        `where`) and that finished, with a slowdown from the quantile `tail` of these flows on. At most `limit` flows of a system
        are explained.
        """
        from flowloom.figures.drawing import one_per_system
        from flowloom.why import chosen

        if not 0 <= tail < 1:
            raise ValueError(f"`tail` is {tail}, and must be from 0 to below 1")
        refuse_absent(self, at)
        wanted = chosen.FlowClass(self.filter, tail)
        systems, notes, refused = [], [], None
        for system, run in one_per_system(self, at):
            if run.engine != "packet":
                notes.append(f"{system}: left out, since it was not run by the packet engine")
                continue
            size, flows = wanted.flows(self, run, limit)
            if not flows:
                notes.append(f"{system}: left out, since no flow is of the class")
                continue
            try:
                systems.append(SystemClass(told(runnable(self).why(run.point, flows, str(files))), size))
            except _core.RunError as error:
                refused = error
                notes.append(f"{system}: left out: {str(error).splitlines()[0]}")
        if refused and not systems:
            raise refused
        if not systems:
            raise ValueError(f"there are no {wanted} that finished and count\nhint: choose other flows by `--where`")
        shared = {key: value for key, value in self.select(at)[0].keys.items() if value is not None}
        keys = [f"{words.key(key, self.keys)} {value}" for key, value in shared.items() if len(self._values(key)) > 1]
        return ClassWhy(", ".join([str(wanted), *keys]), systems, notes)

    def around(self, flow: int | Sequence[int], point: str | None = None, files: str | Path = ".") -> pa.Table:
        """The packets around flows, by running their point again: one row for each packet at each port, as in `packets`.

        Recorded is what passed the ports of the flows' paths while these were open, with the way of each packet to these ports.
        """
        return around(self, flow, point, files)

    def report(self, out: str | Path | None = None) -> Path:
        """Write one HTML file that holds everything and opens without a network. Returns its path."""
        from flowloom.pages import report

        return report.write(self, out)

    def __repr__(self) -> str:
        return f"<Results {self._told()}>"

    def _repr_html_(self) -> str:
        """The summary in a notebook."""
        where = f", in <code>{html.escape(words.escaped(str(self.path)))}</code>" if self.path else ""
        return f"<p>{html.escape(self._told())}{where}</p>{self.table()._repr_html_()}"

    def _told(self) -> str:
        """The name and how much there is."""
        state = "" if self.complete else ", incomplete"
        name = words.escaped(self.name)
        return f"{name}: {words.counted(len(self.systems), 'system')}, {words.counted(len(self.runs), 'point')}{state}"
