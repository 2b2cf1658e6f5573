"""The interactive charts of the report: metrics and time series to select from, hover over and zoom into."""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import numpy as np

from flowloom.base import words
from flowloom.base.files import cache, put
from flowloom.figures import style, traces
from flowloom.figures.drawing import Array, one_per_system
from flowloom.figures.panels import swept_axis
from flowloom.pages.web import web
from flowloom.runs import tables
from flowloom.runs.data import Data, named_ports

Spec = dict[str, Any]
"""A chart as a specification for Vega-Lite."""

MISSING = "Interactive charts need one more package: pip install 'flowloom[report]', then write the report again."

CONFIG: dict[str, Any] = {
    "background": None,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor", "titleColor": "currentColor", "domainColor": "currentColor", "tickColor": "currentColor",
        "gridColor": "currentColor", "gridOpacity": 0.14, "titleFontWeight": "normal",
    },
    "legend": {"labelColor": "currentColor", "titleColor": "currentColor", "labelLimit": 0, "orient": "bottom", "columns": 2,
        "symbolOpacity": 1,
    },
    "title": {"color": "currentColor", "fontWeight": "normal", "anchor": "start"},
    "range": {"category": list(style.COLORS)},
    "font": "system-ui, sans-serif",
}  # fmt: skip
"""The look of the charts. The colours follow those of the page, light or dark."""

START = web("unpack.js") + web("charts.js")

MOST_ROWS = 8000
"""The maximum number of values of time series in a page: about 100 kB, compressed."""
MOST_SERIES = 6
"""The maximum number of ports or flows of a time series: those with the largest means are kept."""


def installed() -> bool:
    """Whether the library for interactive charts is installed."""
    return importlib.util.find_spec("vl_convert") is not None


def charts(results: Data) -> dict[str, tuple[str, Spec]]:
    """Returns the charts for which the results have data, by id, each with its caption."""
    found: dict[str, tuple[str, Spec]] = {}
    rows = metric_rows(results)
    if rows:
        about = (
            "A metric with its 95 % interval. Select the metric and the systems below the chart; hover over a point for its values."
        )
        found["explore-metrics"] = (about, metrics(results, rows))
    rows = series_rows(results)
    if rows:
        about = "A quantity over time, first seed. Drag to move, scroll to zoom, double-click to reset; click a name for its curve."
        found["explore-series"] = (about, series(rows))
    return found


def html(found: dict[str, tuple[str, Spec]]) -> str:
    """Returns the charts as HTML, with the library that draws them."""
    specs = {name: spec | {"config": CONFIG} for name, (_, spec) in found.items()}
    data = packed(json.dumps(specs, separators=(",", ":")))
    places = [
        f'<figure><div id="{name}" class=chart role=img aria-label="{about}"></div><figcaption>{about}</figcaption></figure>'
        for name, (about, _) in found.items()
    ]
    return "\n".join([*places, f'<script type="module">{START}flowloomCharts("{library()}", "{data}");</script>'])


def library() -> str:
    """Returns the library that draws the charts, compressed. It takes more than a second to build,
    so it is kept in the cache.
    """
    import vl_convert

    kept = cache() / f"vega-{version('vl-convert-python')}.gz.txt"
    with suppress(OSError, RuntimeError):
        return kept.read_text(encoding="ascii")
    made = packed(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    with suppress(OSError, RuntimeError):
        put(kept, made)
    return made


def packed(text: str) -> str:
    """Compresses a text for a page and encodes it in base64."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


# Metrics against a swept key.


def metric_rows(results: Data) -> list[dict[str, object]]:
    """Returns one row for each metric, system and place of the sweep: mean and interval in the
    metric's unit.
    """
    places = tables.places(results)
    have = list(dict.fromkeys(metric for row in places.values() for metric in row))
    ordered = [metric for metric in tables.METRICS if metric in have] + [metric for metric in have if metric not in tables.METRICS]
    rows: list[dict[str, object]] = []
    for metric in tables.defined(results, ordered):
        if not tables.speaks(metric, places.values()):
            continue
        known = {place: row[metric] for place, row in places.items() if metric in row and row[metric].mean is not None}
        factor, unit = words.scale(next(iter(known.values())).unit, [row.mean for row in known.values() if row.mean is not None])
        name = words.axis(words.title(metric), unit)
        for (system, values), row in known.items():
            assert row.mean is not None
            low, high = (row.mean if end is None else end for end in (row.low, row.high))
            here = {field(i): shown(value) for i, value in enumerate(values)}
            ends = {"mean": short(row.mean / factor), "low": short(low / factor), "high": short(high / factor)}
            rows.append({"metric": name, "system": words.escaped(system), **here, **ends})
    return rows


def field(i: int) -> str:
    """Returns the field of the swept key with this number. Names of keys contain dots, which are
    syntax in Vega-Lite.
    """
    return f"key{i}"


def shown(value: object) -> object:
    """Returns a swept value as a number or a text."""
    return value if isinstance(value, float) else words.number(value)


def short(value: float) -> float:
    """Rounds a value to five digits."""
    return float(f"{value:.5g}")


RANGES: dict[str, Sequence[object]] = {
    "color": style.COLORS,
    "shape": ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right", "triangle-left"),
    "strokeDash": ([1, 0], [6, 3], [6, 2, 2, 2], [2, 2], [8, 2, 2, 2, 2, 2], [1, 2]),
}
"""Colours, symbols and dashes in the order of the systems, as in the figures."""
FIRST = words.title("mean_slowdown")
"""The metric that is selected first."""
DOT: Spec = {"type": "point", "filled": True, "size": 80}


def look(results: Data, systems: Sequence[str], channel: str) -> Spec:
    """Returns how systems differ in a channel; ideal schedules are grey."""
    of = RANGES[channel]
    scale = [style.GREY if channel == "color" and name in results.ideals else of[i % len(of)] for i, name in enumerate(systems)]
    return {"field": "system", "type": "nominal", "title": None, "scale": {"domain": list(systems), "range": scale}}


def selector(name: str, label: str, options: Sequence[object], first: object) -> Spec:
    """Returns a parameter of a chart that a drop-down list sets."""
    return {"name": name, "value": first, "bind": {"input": "select", "options": list(options), "name": f"{label} "}}


def metrics(results: Data, rows: Sequence[dict[str, object]]) -> Spec:
    """Returns the chart of metrics: selectors for the metric and for swept keys off the axis, a
    switch for each system.
    """
    systems = [system for system in map(words.escaped, results.systems) if any(row["system"] == system for row in rows)]
    names = list(dict.fromkeys(str(row["metric"]) for row in rows))
    axis = swept_axis(results)
    first = next((name for name in names if name.startswith(FIRST)), names[0])
    params, wanted = [selector("metric", "metric", names, first)], ["datum.metric == metric"]
    for i, key in enumerate(results.keys):
        values = sorted({row[field(i)] for row in rows}, key=words.sorting)
        if key == axis or len(values) < 2:
            continue
        params.append(selector(field(i), words.key(key, results.keys), values, values[-1]))
        wanted.append(f"datum.{field(i)} == {field(i)}")
    for i, system in enumerate(systems):
        params.append({"name": f"on{i}", "value": True, "bind": {"input": "checkbox", "name": f"{system} "}})
        wanted.append(f"(datum.system != {json.dumps(system)} || on{i})")
    looks = {channel: look(results, systems, channel) for channel in RANGES}
    ends = [{"field": name, "type": "quantitative", "title": title} for name, title in (("low", "95 % from"), ("high", "to"))]
    tips = [{"field": "system", "type": "nominal"}, {"field": "mean", "type": "quantitative"}, *ends]
    low, mean = ({"field": name, "type": "quantitative", "title": None} for name in ("low", "mean"))
    if axis is None:
        place: Spec = {"field": "system", "type": "nominal", "title": None, "sort": systems}
        layers: list[Spec] = [
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"x": low, "x2": {"field": "high"}, "y": place}},
            {"mark": DOT, "encoding": {"x": mean, "y": place, "shape": looks["shape"], "tooltip": tips}},
        ]
    else:
        of = field(results.keys.index(axis))
        kind = "quantitative" if all(isinstance(row[of], float) for row in rows) else "ordinal"
        place = {"field": of, "type": kind, "title": words.key(axis, results.keys)}
        tips.insert(1, place)
        values = sorted({row[of] for row in rows}, key=words.sorting)
        here = place | ({"scale": {"zero": False}, "axis": {"values": values}} if kind == "quantitative" else {})
        layers = [
            {"mark": {"type": "area", "opacity": 0.15}, "encoding": {"x": here, "y": low, "y2": {"field": "high"}}},
            {"mark": "line", "encoding": {"x": here, "y": mean, "strokeDash": looks["strokeDash"]}},
            {"mark": DOT, "encoding": {"x": here, "y": mean, "shape": looks["shape"], "tooltip": tips}},
        ]
    return {
        "data": {"values": list(rows)},
        "params": params,
        "transform": [{"filter": " && ".join(wanted)}],
        "encoding": {"color": looks["color"]},
        "layer": layers,
        "width": "container",
        "height": 320 if axis else 40 * len(systems),
        "title": {"text": {"expr": "metric"}},
    }


# Time series.


def series_rows(results: Data) -> list[dict[str, object]]:
    """Returns one row for each sample drawn: quantity, system, port or flow, time in ms, value in
    the quantity's unit.
    """
    found: list[tuple[str, str, str, Array, Array]] = []
    for system, run in one_per_system(results, None):
        for metric in results.sampled_metrics(run):
            sampled = traces.sampled(results, run, metric)
            if sampled is None:
                continue
            names = named_ports(results, run) if metric.startswith("port.") else {}
            order = sorted(sampled.values, key=lambda entity: -float(np.nan_to_num(sampled.values[entity]).mean()))
            # Copies release the memory of the other series.
            found += [
                (metric, system, names.get(entity, f"flow {entity}"), sampled.times, sampled.values[entity].copy())
                for entity in order[:MOST_SERIES]
            ]
    if not found:
        return []
    bins = max(MOST_ROWS // len(found), 20)
    rows: list[dict[str, object]] = []
    units = {metric: unit_of(metric, [values for name, _, _, _, values in found if name == metric]) for metric, *_ in found}
    for metric, system, entity, times, values in found:
        factor, name = units[metric]
        for t, v in thinned(times, values / factor, bins):
            rows.append({"metric": name, "system": system, "of": entity, "t": short(t), "v": short(v)})
    return rows


def unit_of(metric: str, values: Sequence[Array]) -> tuple[float, str]:
    """Returns the size of the unit of a quantity, and its name with that unit: `port queue (kB)`."""
    tail = metric.rpartition("_")[2]
    base = tail if tail in ("s", "bps", "bytes") else ""
    largest = max((float(np.nanmax(one)) for one in values if np.isfinite(one).any()), default=0.0)
    factor, unit = words.scale(base, [largest])
    quantity = metric.removesuffix(f"_{base}") if base else metric
    return factor, words.axis(quantity.replace(".", " ").replace("_", " "), unit)


def thinned(times: Array, values: Array, bins: int) -> Iterable[tuple[float, float]]:
    """Averages samples over equal bins of time, if there are more than `bins` of them."""
    known = np.isfinite(values)
    times, values = times[known], values[known]
    if len(times) <= bins:
        return zip(times.tolist(), values.tolist(), strict=True)
    edges = np.linspace(times[0], times[-1], bins + 1)
    place = np.clip(np.searchsorted(edges, times, side="right") - 1, 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    sums = [np.bincount(place, weights=one, minlength=bins)[count > 0] / count[count > 0] for one in (times, values)]
    return zip(*(one.tolist() for one in sums), strict=True)


def series(rows: Sequence[dict[str, object]]) -> Spec:
    """Returns the chart of time series: selectors for quantity and system, zoom along time."""
    quantities = list(dict.fromkeys(row["metric"] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    of = {"field": "of", "type": "nominal", "title": None}
    time = {"field": "t", "type": "quantitative", "title": "time (ms)"}
    value = {"field": "v", "type": "quantitative", "title": None}
    return {
        "data": {"values": list(rows)},
        "params": [
            selector("quantity", "quantity", quantities, quantities[0]),
            selector("system", "system", systems, systems[0]),
            {"name": "chosen", "select": {"type": "point", "fields": ["of"]}, "bind": "legend"},
            {"name": "zoom", "select": {"type": "interval", "encodings": ["x"]}, "bind": "scales"},
        ],
        "transform": [{"filter": "datum.metric == quantity && datum.system == system"}],
        "mark": {"type": "line", "strokeWidth": 1.3, "clip": True},
        "encoding": {
            "x": time,
            "y": value,
            "color": of,
            "opacity": {"condition": {"param": "chosen", "value": 1.0}, "value": 0.12},
            "tooltip": [of, time, value | {"title": "value"}],
        },
        "width": "container",
        "height": 300,
        "title": {"text": {"expr": "system + ': ' + quantity"}},
    }
