"""Results of a run: what is read of it, as tables, figures and reports."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from flowloom import _core, tables, words
from flowloom.data import Data
from flowloom.why import Why, told

if TYPE_CHECKING:
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
        from flowloom import plots

        return plots.draw(self, kind, **options)

    def why(self, flow: int | Sequence[int] = (), point: str | None = None, files: str | Path = ".") -> Why:
        """Where the time of flows went, by running their point again: of the flows named, or of those that were slowed down most.

        `point` names the point where the results have several; without it, it is the one with the largest slowdown. `files` is the
        folder of the scenario, if the scenario reads files.
        """
        flows = [flow] if isinstance(flow, int) else list(flow)
        # Only results of the compiled part can be run again.
        return told(cast(_core.Results, self._core).why(point, flows, str(files)))

    def report(self, out: str | Path | None = None) -> Path:
        """Write one HTML file that holds everything and opens without a network. Returns its path."""
        from flowloom import report

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
