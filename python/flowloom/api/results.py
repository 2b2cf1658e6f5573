"""Results of a run, as tables, figures and reports."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flowloom import _core
from flowloom.base import words
from flowloom.base.errors import InputError
from flowloom.runs import tables
from flowloom.runs.again import around, runnable
from flowloom.runs.data import Data
from flowloom.why.parts import ClassWhy, SystemClass, Why, why_of

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

    from flowloom.why.chain import Chain


class Results(Data):
    """The results of a run: returned by `flowloom.run`, `flowloom.open` and `Scenario.run`.

    Every table is a `pyarrow.Table`. The name of a column ends with its unit, and its metadata
    holds a description.

    Examples
    --------
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
        """Returns the summary as a table of text: the mean over seeds of each metric, and half its
        95 % confidence interval.

        Parameters
        ----------
        metrics : sequence of str, optional
            The metrics, a column each, such as `["mean_fct_s", "drops"]`; by default those that
            matter for the results.
        at : mapping, optional
            The points, as for `select`; by default all.

        Returns
        -------
        Table
            One row per system and swept values, and per workload if there are several. `str` aligns
            it for a terminal; `markdown()`, `latex()`, `csv()` and `html()` return it in other
            formats.

        Raises
        ------
        ValueError
            If there is no such metric.
        KeyError
            If a key is not swept, or if no point has a value.
        """
        return tables.summary(self, metrics, at)

    def plot(
        self,
        kind: str = "slowdown",
        *,
        at: Mapping[str, object] | None = None,
        systems: Sequence[str] | None = None,
        style: str | None = None,
        width: str | float | None = None,
        height: str | float | None = None,
        font: str | None = None,
        metrics: Sequence[str] | None = None,
        x: str | None = None,
        statistic: str | Sequence[str] | None = None,
        most: int | None = None,
        flow: int | None = None,
        ports: Sequence[str] | None = None,
        names: Mapping[int, str] | None = None,
        span: tuple[float, float] | None = None,
        workload: str | None = None,
        by: str | None = None,
        bins: int | None = None,
        dead: Collection[Collection[str]] | None = None,
    ) -> Figure:
        """Draws a figure of the results.

        Parameters
        ----------
        kind : str, default "slowdown"
            The kind of figure; `flowloom list figures` prints all.
        at : mapping, optional
            The points to draw, such as `{"load": 0.8}`; see `Results.select`. By default, all;
            kinds with one point per panel draw the last swept values and the first seed.
        systems : sequence of str, optional
            The labels of the systems to draw, in this order. By default, all.
        style : {"screen", "paper"}, optional
            The look. `paper` has text of 8 points and thin lines, and is 3.33 inches wide unless
            `width` is given.
        width, height : str or float, optional
            The size of the whole figure: a number of inches, or a text with `in`, `cm`, `mm` or
            `pt`, such as `"8.5cm"`.
        font : str, optional
            The name of an installed TrueType font, such as `"Times"`, or `"usetex"` to set all text
            with LaTeX.
        metrics : sequence of str, optional
            The metrics to draw, a panel each, such as `["mean_fct_s"]`. Kind `metrics`.
        x : str, optional
            The swept key on the horizontal axis, in full or by its last word; by default the key
            with the most values. Kinds `metrics`, `mixed`, `sharing` and `iterations`.
        statistic : str or sequence of str, optional
            The statistics to draw, a panel each: `mean`, `p50`, `p95`, `p99`; by default all. Kinds
            `slowdown` and `fct_size`.
        most : int, optional
            The maximum number of swept values (kinds `slowdown` and `fct_size`), ports (`queue`),
            links (`utilisation`, `gantt`), flows (`rate`) or ranks (`timeline`) to draw.
        flow : int, optional
            The id of the flow to draw; by default the flow with the most samples. Kind `cwnd`.
        ports : sequence of str, optional
            The links to draw, such as `["tor0->root"]`. Kind `gantt`.
        names : mapping of int to str, optional
            Names for flows, by flow id. Kind `gantt`.
        span : tuple of float, optional
            The start and end of the time axis in ms; by default the whole run, and of jobs with
            many iterations the first ones. Kinds `throughput` and `timeline`.
        workload : str, optional
            The name of the workload to draw; by default all that have tasks. Kinds `timeline` and `busbw`.
        by : {"tier", "rail"}, optional
            Draws a bar for each group of links instead of one for each link. Kind `utilisation`.
        bins : int, optional
            The maximum number of intervals on the time axis. Kind `throughput`.
        dead : collection of pairs of str, optional
            The links to cross out, as pairs of node names; by default the links that were down
            during the run. Kind `topology`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. It keeps its look when it is saved.

        Raises
        ------
        ValueError
            If the results do not hold what the kind needs, if there is no such kind, or if the kind
            does not take an option.
        KeyError
            If a key is not swept, if no point has a value, or if there is no such system.

        See Also
        --------
        flowloom.plot : Draws the same figures, and writes them to files.
        """
        from flowloom.figures import plots

        return plots.draw(
            self,
            kind,
            at=at,
            systems=systems,
            style=style,
            width=width,
            height=height,
            font=font,
            metrics=metrics,
            x=x,
            statistic=statistic,
            most=most,
            flow=flow,
            ports=ports,
            names=names,
            span=span,
            workload=workload,
            by=by,
            bins=bins,
            dead=dead,
        )

    def why(
        self,
        flow: int | Sequence[int] = (),
        point: str | None = None,
        files: str | Path = ".",
        *,
        slowest: int = 5,
        trace: bool = False,
    ) -> Why:
        """Explains where the time of flows went, by running their point again.

        Parameters
        ----------
        flow : int or sequence of int, optional
            The ids of the flows. By default, the flows with the largest slowdown.
        point : str, optional
            The name of the point. By default, the point with the largest slowdown.
        files : str or Path, default "."
            The folder of the scenario, if the scenario reads files.
        slowest : int, default 5
            The number of flows if `flow` is not given.
        trace : bool, default False
            Whether to run the point once more and record the packets around the flows.

        Returns
        -------
        Why
            The parts of each flow's completion time, in ps. It has `table()` and `plot()`.

        Raises
        ------
        RunError
            If the point cannot be explained, such as a point of the flow engine.
        """
        flows = [flow] if isinstance(flow, int) else list(flow)
        return why_of(runnable(self).why(point, flows, str(files), trace, slowest))

    def why_groups(
        self, groups: Sequence[int] | None = None, point: str | None = None, files: str | Path = ".", *, trace: bool = False
    ) -> Why:
        """Explains where the time of groups went: of the flow of each group that finished last.

        Parameters
        ----------
        groups : sequence of int, optional
            The ids of the groups. By default, the five groups that took longest.
        point : str, optional
            The name of the point. By default, the only point, or the point with the group that took longest.
        files : str or Path, default "."
            The folder of the scenario, if the scenario reads files.
        trace : bool, default False
            Whether to run the point once more and record the packets around the flows.

        Returns
        -------
        Why
            The parts of each flow's completion time, in ps. It has `table()` and `plot()`.

        Raises
        ------
        ValueError
            If no group has finished, or if groups are given without the point and there are several points.
        KeyError
            If there is no such point, or if a group has not finished in it.
        """
        from flowloom.why import chosen

        point, last = chosen.stragglers(self, groups, point)
        return why_of(runnable(self).why(point, list(last), str(files), trace), last)

    def why_collective(self, collective: str | int = "slowest", point: str | None = None) -> Chain:
        """Explains which messages delayed the last rank of a collective, from the tables of the run.

        The chain leads back from the end of the last rank: each message is the last that reached the
        sender of the next one, or went between the same two ranks, before that was sent.

        Parameters
        ----------
        collective : str or int, default "slowest"
            The name of the collective, `slowest` for the one that took longest, or a `group_id`; a
            name comes first. If several collectives have the name, such as those of several
            iterations, the slowest of them is explained.
        point : str, optional
            The name of the point. By default, the point with the slowest of these collectives.

        Returns
        -------
        Chain
            The messages, the oldest first. It has `table()`.

        Raises
        ------
        ValueError
            If no collective has ended.
        KeyError
            If there is no such point, or if no such collective has ended.
        """
        from flowloom.why.chain import chain

        return chain(self, str(collective), point)

    def why_class(
        self, at: Mapping[str, object] | None = None, *, tail: float = 0.0, limit: int = 200, files: str | Path = "."
    ) -> ClassWhy:
        """Explains where the time of a class of flows went on average, in one point of each system,
        by running these points again.

        The class holds the finished flows of these results (see `where`) whose slowdown is at or
        above the quantile `tail`.

        Parameters
        ----------
        at : mapping, optional
            The points, as for `select`. Of each system, the last swept values and the first seed
            among them are explained.
        tail : float, default 0.0
            The quantile, from 0 (all flows) to below 1, such as 0.99 for the slowest hundredth.
        limit : int, default 200
            The maximum number of flows of each system that are explained, spread evenly over the class.
        files : str or Path, default "."
            The folder of the scenario, if the scenario reads files.

        Returns
        -------
        ClassWhy
            The mean parts of the flows' completion times, in ps, by system. It has `table()` and `plot()`.

        Raises
        ------
        ValueError
            If `tail` is out of range, or if no flow is in the class.
        KeyError
            If a key is not swept, or if no point has a value.
        RunError
            If no point can be explained.
        """
        from flowloom.figures.drawing import one_per_system
        from flowloom.why import chosen

        if not 0 <= tail < 1:
            raise InputError(f"`tail` is {tail}: it must be at least 0 and less than 1")
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
                systems.append(SystemClass(why_of(runnable(self).why(run.point, flows, str(files))), size))
            except _core.RunError as error:
                refused = error
                notes.append(f"{system}: left out: {str(error).splitlines()[0]}")
        if refused and not systems:
            raise refused
        if not systems:
            raise InputError(f"there are no {wanted} that finished and count\nhint: choose other flows with `--where`")
        shared = {key: value for key, value in self.select(at)[0].keys.items() if value is not None}
        keys = [f"{words.key(key, self.keys)} {value}" for key, value in shared.items() if len(self._values(key)) > 1]
        return ClassWhy(", ".join([str(wanted), *keys]), systems, notes)

    def around(self, flow: int | Sequence[int], point: str | None = None, files: str | Path = ".") -> pa.Table:
        """Returns the packets around flows, by running their point again.

        These are the packets that passed the ports of the flows' paths while the flows were open,
        with their way to these ports.

        Parameters
        ----------
        flow : int or sequence of int
            The ids of the flows.
        point : str, optional
            The name of the point; needed if there are several.
        files : str or Path, default "."
            The folder of the scenario, if the scenario reads files.

        Returns
        -------
        pyarrow.Table
            One row per packet and port, with the columns of `packets`.

        Raises
        ------
        ValueError
            If there are several points and none is named.
        """
        return around(self, flow, point, files)

    def report(self, out: str | Path | None = None) -> Path:
        """Writes one HTML file with the tables and figures, which opens without a network.

        Parameters
        ----------
        out : str or Path, optional
            The file, or a folder for `report.html`. By default, `report.html` in the results folder.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ValueError
            If the results are in memory and `out` is not given.
        """
        from flowloom.pages import report

        return report.write(self, out)

    def __repr__(self) -> str:
        return f"<Results {self._counts()}>"

    def _repr_html_(self) -> str:
        """Returns the summary for a notebook."""
        where = f", in <code>{html.escape(words.escaped(str(self.path)))}</code>" if self.path else ""
        return f"<p>{html.escape(self._counts())}{where}</p>{self.table()._repr_html_()}"

    def _counts(self) -> str:
        """Returns the name of the results, with the numbers of systems and points."""
        state = "" if self.complete else ", incomplete"
        name = words.escaped(self.name)
        return f"{name}: {words.counted(len(self.systems), 'system')}, {words.counted(len(self.runs), 'point')}{state}"
