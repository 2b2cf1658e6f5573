"""Names and units: the spelling of metrics, swept keys and numbers in tables and figures."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from flowloom.base.errors import InputError

_SCALES: Mapping[str, Sequence[tuple[float, str]]] = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bps": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
    "%": ((0.01, "%"),),
}
_PURE = ("", "1", "count", "ratio", "flows", "packets")


def scale(unit: str, values: Iterable[float]) -> tuple[float, str]:
    """Returns the size and the name of the unit in which values are easiest to read.

    >>> scale("s", [0.0021, 0.012])
    (0.001, 'ms')
    """
    steps = _SCALES.get(unit)
    if steps is None:
        return 1.0, "" if unit in _PURE else unit
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    return next((step for step in steps if largest >= step[0]), steps[-1])


_WORDS = {
    "fct": "FCT",
    "er": "expansion ratio",
    "retx": "retransmitted",
    "tx": "sent",
    "short": "of short flows",
    "long": "of long flows",
    "flow": "per-flow",
    "jain": "Jain's",
    "iteration": "iteration time",
    "collective": "collective time",
}
_STATISTICS = {
    "mean": "mean",
    "p50": "median",
    "p95": "95th-percentile",
    "p99": "99th-percentile",
    "p999": "99.9th-percentile",
    "max": "maximum",
}
_SHORT = {"short": "short", "long": "long", "p50": "median", "p95": "p95", "p99": "p99", "p999": "p99.9", "max": "max", "er": "ER"}


def _words(metric: str) -> list[str]:
    words = metric.split("_")
    if words[-1] in ("s", "bps", "bytes") and len(words) > 1:
        words.pop()
    return words


def title(metric: str) -> str:
    """Returns the name of a metric in words.

    >>> title("p999_fct_s")
    '99.9th-percentile FCT'
    """
    return " ".join(_STATISTICS.get(word, _WORDS.get(word, word)) for word in _words(metric))


def short(metric: str) -> str:
    """Returns the name of a metric for the header of a column.

    >>> short("p999_fct_s")
    'p99.9 FCT'
    """
    return " ".join(_SHORT.get(word, _WORDS.get(word, word)) for word in _words(metric))


def axis(quantity: str, unit: str) -> str:
    """Returns the label of an axis, with its unit.

    >>> axis("mean FCT", "ms")
    'mean FCT (ms)'
    """
    return f"{quantity} ({unit})" if unit else quantity


_HIDDEN = frozenset(("Cc", "Cf", "Zl", "Zp"))
"""Unicode categories of characters that draw nothing, or that reorder the text around them."""
_UNUSUAL = re.compile(r"[^ -~\n\t]")


def escaped(text: str) -> str:
    """Writes every hidden character of a text as its number. Line feeds and tabs stay.

    Labels, names and paths may have hidden characters. Unescaped, they make a terminal or a page
    show a different text.

    >>> escaped("TCP\\u202e 1")
    'TCP\\\\u{202e} 1'
    """

    def shown(found: re.Match[str]) -> str:
        c = found[0]
        return f"\\u{{{ord(c):x}}}" if unicodedata.category(c) in _HIDDEN else c

    return _UNUSUAL.sub(shown, text)


def key(name: str, among: Iterable[str] = ()) -> str:
    """Returns the last word of a swept key, or the whole key if another key or column in `among` is
    called or ends with this word.

    >>> key("workload.web.load", ["workload.web.load", "topology.rate"])
    'load'
    >>> key("workload.web.flows", ["workload.web.flows", "system", "flows"])
    'workload.web.flows'
    """

    def last(key: str) -> str:
        # The key of a part's kind is shown as the name of the part.
        return key.removesuffix(".kind").rsplit(".", 1)[-1].replace("_", " ")

    short = last(name)
    clash = any(other != name and last(other) == short for other in among)
    return escaped(name.removesuffix(".kind") if clash else short)


def joined(names: Sequence[str]) -> str:
    """Joins names with commas and `and`.

    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def counted(count: int, noun: str) -> str:
    """Returns a count with its noun.

    >>> counted(1, "seed"), counted(3, "seed")
    ('1 seed', '3 seeds')
    """
    return f"{count} {noun}{'' if count == 1 else 's'}"


def number(value: object) -> str:
    """Returns a swept value as text, without needless digits.

    >>> number(0.30000000000000004)
    '0.3'
    """
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else escaped(str(value))


def column(label: str) -> str:
    """Returns the name of a column for the label of an axis: one word that ends with the unit.

    >>> column("99th percentile of FCT (ms)"), column("busy (%)"), column("goodput (Gbit/s)")
    ('99th_percentile_of_FCT_ms', 'busy_percent', 'goodput_Gbit_per_s')
    """
    spoken = label.replace("%", "percent").replace("/", " per ").replace("µ", "u")
    return "_".join("".join(char if char.isalnum() else " " for char in spoken.replace("'", "")).split())


_INCHES: Mapping[str, float] = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
"""Units of lengths on paper. `pt` is the point of TeX, since LaTeX prints the width of a column in it."""


def inches(length: object, name: str = "width") -> float:
    """Returns a length on paper in inches, from a text with a unit or a number of inches. Raises
    `ValueError` for other values.

    >>> round(inches("8.5cm"), 3), inches(3.33)
    (3.346, 3.33)
    """
    found = _literal(length)
    if found is not None and (isinstance(length, int | float) or found[1] in _INCHES):
        size = found[0] * _INCHES.get(found[1], 1.0)
        if 0.5 <= size <= 60:
            return size
    raise InputError(
        f"`{length}` is not a {name} of a figure"
        "\nhint: write a number with `in`, `cm`, `mm` or `pt`, from 0.5in to 60in, such as `3.33in`"
    )


_LATEX: Mapping[str, str] = {
    "\\": r"\textbackslash{}",
    **{char: "\\" + char for char in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "µ": r"\textmu{}",
    "–": "--",
    "…": r"\dots{}",
    "’": "'",
}
"""Replacements of characters that LaTeX reads as commands or that its fonts lack."""
_RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def latex(text: str) -> str:
    r"""Escapes the characters of a text that LaTeX reads as commands.

    >>> print(latex("p99_fct (µs), 95 % ± 10⁻³"))
    p99\_fct (\textmu{}s), 95 \% $\pm$ 10$^{-3}$
    """
    whole = "".join(_LATEX.get(char, char) for char in text)
    return re.sub("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda power: f"$^{{{power[0].translate(_RAISED)}}}$", whole)


def milliseconds(literal: object) -> float | None:
    """Returns a time of a scenario in ms; `None` for `auto`.

    >>> milliseconds("40us")
    0.04
    """
    found, unit = literals([literal])
    return None if found is None or unit not in _MS else found[0] * _MS[unit]


_MS: Mapping[str, float] = {"ps": 1e-9, "ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
_FAMILIES: Sequence[Mapping[str, float]] = (
    _MS,
    {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9},
    {"bps": 1.0, "kbps": 1e3, "Mbps": 1e6, "Gbps": 1e9},
)
"""The units of scenarios, by quantity, with their sizes."""

_SHOWN: Mapping[str, str] = {
    "us": "µs",
    "KB": "kB",
    "bps": "bit/s",
    "kbps": "kbit/s",
    "Mbps": "Mbit/s",
    "Gbps": "Gbit/s",
}
"""Units whose spelling in scenarios differs from that in tables and figures."""


def unit(written: str) -> str:
    """Returns a unit of a scenario as tables and figures spell it.

    >>> unit("us"), unit("Gbps"), unit("ms")
    ('µs', 'Gbit/s', 'ms')
    """
    return _SHOWN.get(written, written)


def window(windows: Iterable[tuple[int, int]]) -> str:
    """Returns measurement windows in ps as text: the window, or the range of lengths if the windows
    differ.

    >>> window([(0, 20_000_000_000)])
    'from 0 to 20 ms'
    >>> window([(0, 20_000_000_000), (0, 35_000_000_000)])
    'in windows of 20 to 35 ms'
    """
    found = sorted(set(windows))
    if not found:
        return "in no window: the run ended before the window began"
    lengths = sorted(end - start for start, end in found)
    ends = found[0] if len(found) == 1 else (lengths[0], lengths[-1])
    factor, unit = scale("s", [end * 1e-12 for end in ends])
    low, high = (f"{end * 1e-12 / factor:.3g}" for end in ends)
    if len(found) == 1:
        return f"from {low} to {high} {unit}"
    return f"in windows of {low} {unit}" if low == high else f"in windows of {low} to {high} {unit}"


def literals(values: Sequence[object]) -> tuple[list[float] | None, str]:
    """Returns swept values as numbers, and their unit: the smallest of their units, as in `([10.0,
    2000.0], "us")` for `["10us", "2ms"]`.

    Returns `None` and an empty unit if the values are not numbers of one quantity.
    """
    read = [_literal(value) for value in values]
    found = [one for one in read if one is not None]
    units = {unit for _, unit in found}
    if not found or len(found) < len(read):
        return None, ""
    if len(units) == 1:
        return [number for number, _ in found], units.pop()
    for family in _FAMILIES:
        if units <= family.keys():
            least = min(units, key=family.__getitem__)
            return [number * family[unit] / family[least] for number, unit in found], least
    return None, ""


def sorting(value: object) -> tuple[bool, float, str]:
    """Returns the sort key of a swept value. Numbers are sorted by size (`"2ms"` after `"10us"`),
    before other texts.
    """
    read = _literal(value)
    if read is None:
        return True, 0.0, str(value)
    number, unit = read
    return False, number * next((family[unit] for family in _FAMILIES if unit in family), 1.0), ""


def _literal(value: object) -> tuple[float, str] | None:
    match = re.fullmatch(r"\s*([-+]?[0-9.]+(?:e[-+]?\d+)?)\s*([A-Za-z/%]*)\s*", str(value))
    return None if match is None else (float(match.group(1)), match.group(2))


def decimals(values: Iterable[float], digits: int = 3) -> int:
    """Returns the number of decimals that shows `digits` significant digits of the median; 0 if all
    values are whole numbers.
    """
    known = sorted(abs(v) for v in values if math.isfinite(v) and v != 0)
    if not known or all(v == int(v) for v in known):
        return 0
    middle = known[len(known) // 2]
    return min(max(digits - 1 - math.floor(math.log10(middle)), 0), 6)
