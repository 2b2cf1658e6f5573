"""The look of figures as settings of matplotlib: for the screen, and for the columns of a paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

try:
    import matplotlib as mpl
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ImportError("figures need matplotlib\nhint: pip install 'flowloom[plot]'") from error

from flowloom import _core
from flowloom.base import words
from flowloom.figures import fonts
from flowloom.figures.fonts import changed

INK = "#1b1b1f"
"""Text, axes and grid. Inline SVG replaces it by the colour of the page's text, so that figures read on dark pages too."""

STYLES = ("screen", "paper")
SIZE = {"screen": 9.0, "paper": 8.0}
"""Points of the text of axes."""
COLUMN = 3.33
"""Inches of a column of a paper with two columns, as of ACM."""

ALWAYS: Any = {
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a `$` of a label is a dollar sign
    # Publishers refuse Type 3 fonts, which are matplotlib's default.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # The same file for the same data: no random ids, no date; text stays text.
    "svg.hashsalt": "flowloom",
    "svg.fonttype": "none",
}
"""Settings that do not follow the user's."""

RC: Any = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "axes.titleweight": "normal",
    "axes.titley": 1.0,  # finding a place for it takes matplotlib a fifth of all time
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "figure.facecolor": "white",
    "text.color": INK,
    "xtick.minor.pad": 5.0,  # labels of short ticks in line with those of long ones
    "ytick.minor.pad": 5.0,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.14,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.2,  # long enough for the longest dashes
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
}

PAPER: Any = {
    "savefig.dpi": 300,
    "text.hinting": "no_hinting",  # text as wide as in a PDF
    "figure.constrained_layout.h_pad": 0.02,
    "figure.constrained_layout.w_pad": 0.02,
    "axes.linewidth": 0.6,
    "axes.labelpad": 2.0,
    "axes.titlepad": 3.0,
    "grid.linewidth": 0.4,
    "hatch.linewidth": 0.4,
    "legend.columnspacing": 1.2,
    "legend.handletextpad": 0.5,
    "legend.labelspacing": 0.3,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.0,
    "lines.markeredgewidth": 0.6,
    "xtick.major.pad": 2.0,
    "ytick.major.pad": 2.0,
    "xtick.minor.pad": 3.0,
    "ytick.minor.pad": 3.0,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 1.5,
    "ytick.minor.size": 1.5,
    **{f"{axis}tick.{which}.width": 0.5 for axis in "xy" for which in ("major", "minor")},
}
"""Beyond `RC`: thin lines and small distances."""


SIZED = ("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize")
KEPT = (*RC, *PAPER, *ALWAYS, *SIZED, "text.usetex")
"""All settings of a look."""


@dataclass(frozen=True)
class Look:
    """The look that is asked for. Sizes are those of the whole figure in inches; `None`: the figure has its own size."""

    style: str = "screen"
    width: float | None = None
    height: float | None = None
    font: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Look:
        """The look from options, as of the command line. Raises `ValueError` for what is not known."""
        style, width, height = given.get("style") or "screen", given.get("width"), given.get("height")
        if style not in STYLES:
            near = _core.nearest(str(style), list(STYLES))
            did = f"; did you mean `{near}`?" if near else ""
            raise ValueError(f"`{style}` is not a style of figures{did}\nhint: one of {', '.join(STYLES)}")
        if width is None and style == "paper":
            width = COLUMN
        wide, high = (None if size is None else words.inches(size, name) for size, name in ((width, "width"), (height, "height")))
        return cls(style, wide, high, str(given.get("font") or ""))

    def settings(self) -> dict[str, Any]:
        """The settings of matplotlib. Those that the user has changed stay."""
        size = float(mpl.rcParams["font.size"]) if changed("font.size") else SIZE[self.style]
        sizes: dict[str, Any] = {
            "font.size": size,
            "axes.titlesize": size * 10 / 9 if self.style == "screen" else size,
            "axes.labelsize": size,
            "legend.fontsize": size * 8.5 / 9,
            **({} if self.style == "screen" else {"xtick.labelsize": size * 7.5 / 8, "ytick.labelsize": size * 7.5 / 8}),
        }
        own = RC | (PAPER if self.style == "paper" else {}) | sizes
        found: dict[str, Any] = {key: value for key, value in own.items() if not changed(key)}
        return {**found, **ALWAYS, **fonts.settings(self.font)}


_now: list[Look] = []
"""The looks that figures are being drawn with, the innermost last."""


def current() -> Look:
    """The look that figures are drawn with here."""
    return _now[-1] if _now else Look()


@contextmanager
def look(asked: Look | None = None) -> Iterator[None]:
    """The look, for the figures drawn inside: the one asked for, or the one that is around."""
    if asked is None and _now:
        yield
        return
    found = asked or Look()
    given: Any = found.settings()
    with mpl.rc_context(given):
        _now.append(found)
        try:
            yield
        finally:
            _now.pop()


def points(size: float) -> float:
    """The size of small text, given where the text of axes has 9 points."""
    return size * float(mpl.rcParams["font.size"]) / SIZE["screen"]


def thick(width: float) -> float:
    """The width of a line, given where curves have 1.6 points."""
    return width * float(mpl.rcParams["lines.linewidth"]) / float(RC["lines.linewidth"])


# `PdfPages` embeds the fonts of its figures when it is closed, with the settings of the program.
for _key in ("pdf.fonttype", "ps.fonttype"):
    if not changed(_key):
        fonts.RC_PARAMS[_key] = 42
