"""One look for all figures: colours that colour-blind readers tell apart, markers and dashes beside them, units on axes."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import matplotlib as mpl
    from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
    from matplotlib.figure import Figure
    from matplotlib.ticker import Formatter, LogLocator, NullFormatter
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ImportError("figures need matplotlib\nhint: pip install 'flowloom[plot]'") from error

from flowloom import words
from flowloom.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito, "Color universal design", without black (the ink) and yellow (unreadable on white).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++")

GREY = "#7b7b86"
"""Ideal schedules and annotations; readable on white and on dark pages."""
REFERENCE_DASHES: tuple[Any, ...] = ((0, (4, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (9, 2)), (0, (1, 3)), (0, (3, 4)))
HEAT = ("#cfd2dc", "#efc07a", "#d55e00", "#5c1400")
"""From idle to busy: strictly darker, so that it is readable in grey too."""

PAPER = "#fffffe"
"""Behind the ink. Inline SVG replaces it by the colour of the page."""
HALO = {"facecolor": PAPER, "alpha": 0.7, "edgecolor": "none", "boxstyle": "square,pad=0.1"}
"""Behind text that crosses lines."""

INK = "#1b1b1f"
"""Text, axes and grid. Inline SVG replaces it by the colour of the page's text, so that figures read on dark pages too."""

FORMATS = ("png", "svg")

RC: Any = {
    "figure.dpi": 100,
    "savefig.dpi": 160,
    "figure.constrained_layout.use": True,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "normal",
    "axes.labelsize": 9,
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
    "text.parse_math": False,  # a `$` of a label is a dollar sign
    "xtick.minor.pad": 5.0,  # labels of short ticks in line with those of long ones
    "ytick.minor.pad": 5.0,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK,
    "grid.alpha": 0.14,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "legend.handlelength": 3.2,  # long enough for the longest dashes
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.6,
    # The same file for the same data: no random ids, no date; text stays text.
    "svg.hashsalt": "flowloom",
    "svg.fonttype": "none",
}

_NO_METADATA = {"Creator": None, "Date": None, "Format": None, "Type": None}


@contextmanager
def look() -> Iterator[None]:
    """The look, for the figures drawn inside."""
    with mpl.rc_context(RC):
        yield


def figure(columns: int = 1, rows: int = 1, width: float = 4.2, height: float = 3.1) -> Figure:
    """An empty figure that holds `columns` x `rows` panels. Not registered with pyplot, so nothing has to be closed."""
    return Figure(figsize=(max(width * columns, 4.8), height * rows))


def panels(fig: Figure, rows: int, columns: int) -> list[Axes]:
    """Its panels, row by row."""
    grid = fig.subplots(rows, columns, squeeze=False)
    return [grid[row][column] for row in range(rows) for column in range(columns)]


def line(index: int) -> dict[str, Any]:
    """Colour, marker and dashes of the curve with this number: all three differ between neighbours."""
    return {
        "color": COLORS[index % len(COLORS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[(index + index // len(COLORS)) % len(DASHES)],
    }


def reference(index: int) -> dict[str, Any]:
    """As `line`, for the ideal reference with this number: thin, grey and dashed, without markers."""
    return {"color": GREY, "linestyle": REFERENCE_DASHES[index % len(REFERENCE_DASHES)], "linewidth": 1.2}


def dashes(index: int) -> dict[str, Any]:
    """As `line`, without markers, for curves of very many points."""
    return {key: value for key, value in line(index).items() if key != "marker"}


class Plain(Formatter):
    """Labels of a logarithmic axis as plain numbers: powers of ten, and where it spans little, steps between them."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """The label at `x`."""
        if x <= 0 or self.axis is None:
            return "0"
        low, high = self.axis.get_view_interval()
        power = math.floor(math.log10(x) + 1e-9)
        lead = round(x / 10**power, 6)
        decades = math.log10(high / low) if low > 0 else math.inf
        if lead not in ((1,) if decades > 2.2 else (1, 2, 5) if decades > 0.5 else range(1, 10)):
            return ""
        return f"{x:g}" if 1e-4 <= x < 1e5 else f"10{str(power).translate(RAISED)}" if lead == 1 else ""


RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Exponents of powers of ten. Those of matplotlib need mathtext, which is switched off for labels."""


def log_axis(ax: Axes, which: str, linear_to: float | None = None) -> None:
    """Makes the `x` or `y` axis logarithmic, labelled with plain numbers; with `linear_to`, linear from 0 up to there."""
    axis = ax.xaxis if which == "x" else ax.yaxis
    scale: dict[str, Any] = {"value": "log"} if linear_to is None else {"value": "symlog", "linthresh": linear_to, "linscale": 0.5}
    (ax.set_xscale if which == "x" else ax.set_yscale)(**scale)
    axis.set_major_formatter(Plain())
    axis.set_minor_formatter(Plain())
    if linear_to is None:
        axis.set_major_locator(LogLocator(numticks=9))
        axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=99))
    else:
        axis.set_minor_formatter(NullFormatter())


def heat() -> Colormap:
    """Colours from idle to busy."""
    return LinearSegmentedColormap.from_list("heat", HEAT)


def share() -> Normalize:
    """From nothing to all."""
    return Normalize(0.0, 1.0)


NAMED = "\u200b"
"""Prefix of labels that begin with `_`, which matplotlib leaves out of legends otherwise. Escaped labels never begin with it."""


def label(text: str) -> str:
    """Returns the label for a curve that `legend` shows as `text`."""
    shown = words.escaped(text)
    return NAMED + shown if shown.startswith("_") else shown


def legend(fig: Figure, axes: Sequence[Axes], title: str | None = None) -> None:
    """One legend for all panels, above them, in the order in which curves first appear."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(text.removeprefix(NAMED), handle)
    if entries:
        # In points: the line, its margins, and text of about half the font's size per letter.
        size = float(RC["legend.fontsize"])
        widths = [size * (RC["legend.handlelength"] + 3 + 0.6 * len(text)) for text in entries]
        most = max(int(0.95 * 72 * fig.get_figwidth() // max(widths)), 1)
        rows = -(-len(entries) // min(most, 6))
        # The figure grows by the rows of the legend, and the panels keep their size.
        fig.set_figheight(fig.get_figheight() + (rows - 1) * 1.6 * size / 72)
        fig.legend(
            list(entries.values()),
            list(entries),
            loc="outside upper center",
            ncols=-(-len(entries) // rows),
            title=title,
        )


def note(fig: Figure, text: str) -> None:
    """A line below all panels."""
    if text:
        fig.supxlabel(text, fontsize=8, color=INK, alpha=0.8)


@contextmanager
def laid_out(fig: Figure) -> Iterator[None]:
    """While files are drawn: the look, and a figure whose parts have got their places.

    The places are found once. Then the figure has no layout engine: matplotlib draws a figure that has one twice for every file.
    """
    with look():
        engine = fig.get_layout_engine()
        if engine is not None:
            engine.execute(fig)
        with mpl.rc_context({"figure.constrained_layout.use": False}):
            fig.set_layout_engine(None)
            yield


def save(fig: Figure, stem: Path, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Write a figure as `stem.png` and `stem.svg`. A suffix that `stem` has already picks that format alone."""
    suffix = stem.suffix.lstrip(".").lower()
    if suffix in ("png", "svg", "pdf"):
        stem, formats = stem.with_suffix(""), (suffix,)
    written = []
    with laid_out(fig):
        for form in formats:
            path = stem.with_name(f"{stem.name}.{form}")
            metadata = _NO_METADATA if form == "svg" else {"Software": None} if form == "png" else None
            drawn = io.BytesIO()
            fig.savefig(drawn, format=form, metadata=metadata)
            write_whole(path, drawn.getvalue())
            written.append(path)
    return written


def smaller(png: str) -> str:
    """A picture in base64 with at most 256 colours: enough for heat maps and maps of networks, and a fifth of the bytes."""
    from PIL import Image

    drawn = io.BytesIO()
    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(drawn, "PNG", optimize=True)
    return base64.b64encode(drawn.getvalue()).decode()


def inline_svg(fig: Figure, prefix: str) -> str:
    """A figure as an SVG element for an HTML page: ids start with `prefix`, the ink follows the page's text colour."""
    buffer = io.StringIO()
    with laid_out(fig):
        fig.savefig(buffer, format="svg", metadata=_NO_METADATA, transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Hundredths of a point are enough, and a third of the bytes.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\s*\n", "", re.sub(r"(\.\d\d)\d+", r"\1", path[0])), text)
    text = re.sub(r"(data:image/png;base64,)([\w+/=\s]+)", lambda image: image[1] + smaller(image[2]), text)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", text)
    return text.replace(INK, "currentColor").replace(PAPER, "var(--page, white)")
