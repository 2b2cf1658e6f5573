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

from flowloom.base import words
from flowloom.base.errors import InputError, did_you_mean
from flowloom.figures import fonts
from flowloom.figures.fonts import changed

INK = "#1b1b1f"
"""The colour of text, axes and grid. Inline SVG replaces it by the colour of the page's text, which
is light on dark pages.
"""

STYLES = ("screen", "paper")
SIZE = {"screen": 9.0, "paper": 8.0}
"""The size of the text of axes in points, by style."""
COLUMN = 3.33
"""The width in inches of a column of a paper with two columns, as in ACM's format."""

ALWAYS: Any = {
    "figure.constrained_layout.use": True,
    "text.parse_math": False,  # a `$` in a label is a dollar sign
    # Publishers refuse Type 3 fonts, which are matplotlib's default.
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # The same data give the same file: no random ids, no date. Text stays text.
    "svg.hashsalt": "flowloom",
    "svg.fonttype": "none",
}
"""Settings that override the user's."""

RC: Any = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "axes.titleweight": "normal",
    "axes.titley": 1.0,  # otherwise matplotlib spends a fifth of all time on placing titles
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
    "xtick.minor.pad": 5.0,  # aligns the labels of minor and major ticks
    "ytick.minor.pad": 5.0,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.14,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.2,  # longer than the longest dash pattern
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
}

PAPER: Any = {
    "savefig.dpi": 300,
    "text.hinting": "no_hinting",  # the width of text is that in a PDF
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
"""Settings for papers in addition to `RC`: thin lines and small distances."""


SIZED = ("font.size", "axes.titlesize", "axes.labelsize", "legend.fontsize", "xtick.labelsize", "ytick.labelsize")
KEPT = (*RC, *PAPER, *ALWAYS, *SIZED, "text.usetex")
"""The names of all settings of a look."""


@dataclass(frozen=True)
class Look:
    """A look of figures. Sizes are those of the whole figure in inches; with `None`, each kind of
    figure has its own size.
    """

    style: str = "screen"
    width: float | None = None
    height: float | None = None
    font: str = ""

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Look:
        """Reads the look from options. Raises `ValueError` for an unknown style and for lengths
        that are not valid.
        """
        style, width, height = given.get("style") or "screen", given.get("width"), given.get("height")
        if style not in STYLES:
            did = did_you_mean(style, STYLES)
            raise InputError(f"`{style}` is not a style of figures{did}\nhint: one of {', '.join(STYLES)}")
        if width is None and style == "paper":
            width = COLUMN
        wide, high = (None if size is None else words.inches(size, name) for size, name in ((width, "width"), (height, "height")))
        return cls(style, wide, high, str(given.get("font") or ""))

    def settings(self) -> dict[str, Any]:
        """Returns the settings of matplotlib for this look. Settings that the user has changed stay."""
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
"""The looks that apply at present, the innermost last."""


def current() -> Look:
    """Returns the look that figures are drawn with here."""
    return _now[-1] if _now else Look()


@contextmanager
def look(asked: Look | None = None) -> Iterator[None]:
    """Applies a look to the figures that are drawn inside; without one, the look that applies already."""
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
    """Scales the size of small text, which is given for text of axes with 9 points."""
    return size * float(mpl.rcParams["font.size"]) / SIZE["screen"]


def thick(width: float) -> float:
    """Scales the width of a line, which is given for curves with 1.6 points."""
    return width * float(mpl.rcParams["lines.linewidth"]) / float(RC["lines.linewidth"])


# `PdfPages` embeds the fonts of figures when it is closed, with the settings of the user's program.
for _key in ("pdf.fonttype", "ps.fonttype"):
    if not changed(_key):
        fonts.RC_PARAMS[_key] = 42
