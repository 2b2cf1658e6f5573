"""One look for all figures: colours for colour-blind readers, with markers and dashes that differ
too, and units on axes.
"""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.markers import TICKDOWN, TICKLEFT
from matplotlib.ticker import FixedFormatter, FixedLocator, Formatter, LogLocator, NullFormatter

from flowloom.base import words
from flowloom.base.errors import InputError
from flowloom.base.files import write_whole
from flowloom.figures.appearance import INK, KEPT, RC, Look, current, look, points, thick
from flowloom.figures.fitting import fit, paragraph, width_of
from flowloom.figures.fonts import RC_PARAMS
from flowloom.figures.rows import Rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["INK", "RC", "Look", "fit", "look", "points", "thick", "width_of"]

# Okabe and Ito, "Color universal design", without black (the ink) and yellow (unreadable on white).
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "++")

GREY = "#7b7b86"
"""The colour of ideal schedules and annotations; readable on white and on dark pages."""
REFERENCE_DASHES: tuple[Any, ...] = ((0, (4, 1.5)), (0, (1.5, 1.2)), (0, (6, 1.5, 1.5, 1.5)), (0, (9, 2)), (0, (1, 3)), (0, (3, 4)))
HEAT = ("#cfd2dc", "#efc07a", "#d55e00", "#5c1400")
"""Colours from idle to busy. They get steadily darker, so that they are readable in grey too."""

PAPER = "#fffffe"
"""The background. Inline SVG replaces it by the colour of the page."""
HALO = {"facecolor": PAPER, "alpha": 0.7, "edgecolor": "none", "boxstyle": "square,pad=0.1"}
"""The box behind text that crosses lines."""

FORMATS = ("png", "svg")

FILES = (*FORMATS, "pdf", "csv")
"""The formats of figures. `csv`: the data of the figure, as a table."""

METADATA: dict[str, dict[str, None]] = {
    "svg": dict.fromkeys(("Creator", "Date", "Format", "Type")),
    "png": {"Software": None},
    "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
}
"""Metadata without dates and versions, so that the same data give the same file."""

NO_ENGINE: Any = {"figure.autolayout": False, "figure.constrained_layout.use": False}
"""Settings with which matplotlib adds no layout engine to a figure without one, which it would do
when a file is saved.
"""

NARROWEST = 0.2
"""The smallest width of a panel in inches, per point of its text."""
LOWEST = 0.185
"""The smallest height of a panel in inches, per point of its text."""


class Drawing(Figure):
    """A figure that keeps its look and its data when a program shows or saves it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.settings: Any = {key: RC_PARAMS[key] for key in KEPT}
        self.rows = Rows()
        self.aligned = False
        super().__init__(*args, **options)
        # A canvas with a renderer of its own: otherwise each measurement of a text makes a new renderer.
        FigureCanvasAgg(self)

    def draw(self, renderer: Any) -> None:
        """Draws the figure in its look."""
        with mpl.rc_context(self.settings):
            if self.aligned:
                self.align_ylabels()
            super().draw(renderer)

    def savefig(self, *args: Any, **options: Any) -> None:
        """Saves the figure in its look."""
        with mpl.rc_context(self.settings if self.get_layout_engine() else self.settings | NO_ENGINE):
            super().savefig(*args, **options)


def figure(columns: int = 1, rows: int = 1, width: float = 4.2, height: float = 3.1, rigid: bool = False) -> Drawing:
    """Returns an empty figure with room for `columns` x `rows` panels. It is not registered with
    pyplot, so it needs no closing.

    `width` and `height` are those of a panel in inches. If the look has a width, the panels share
    it and keep their shape, or, with `rigid`, their height, which is that of lines of text.
    """
    now = current()
    if now.width is None:
        size = max(width * columns, 4.8), height * rows
    else:
        text = float(mpl.rcParams["font.size"])
        shrunk = points(height / 9) * 9 if rigid else max(height * now.width / columns / width, LOWEST * text)
        size = now.width, shrunk * rows
    with look():
        return Drawing(figsize=(size[0], now.height or size[1]))


def across(columns: int) -> int:
    """Returns how many of `columns` panels fit next to each other."""
    width = current().width
    return columns if width is None else max(min(columns, int(width / (NARROWEST * float(mpl.rcParams["font.size"])) + 0.1)), 1)


def panels(fig: Figure, rows: int, columns: int) -> list[Axes]:
    """Returns the panels of a figure, row by row."""
    grid = fig.subplots(rows, columns, squeeze=False)
    return [grid[row][column] for row in range(rows) for column in range(columns)]


def grid(count: int, columns: int, width: float = 4.2, height: float = 3.1, rigid: bool = False) -> tuple[Drawing, list[Axes]]:
    """Returns a figure with `count` panels, and the panels row by row: at most `columns` in a row."""
    columns = across(min(columns, count))
    rows = -(-count // columns)
    fig = figure(columns, rows, width, height, rigid)
    axes = panels(fig, rows, columns)
    for ax in axes[count:]:
        ax.remove()
    return fig, axes[:count]


def row(height: float) -> float:
    """Returns the height of a row with a name. In a column of a paper, rows are low."""
    return height if current().width is None else 0.025 * float(mpl.rcParams["font.size"])


def leftmost(ax: Axes) -> bool:
    """Whether a panel is the first of its row."""
    place = ax.get_subplotspec()
    return place is None or place.is_first_col()


def align(fig: Figure) -> None:
    """Aligns the labels of vertical axes when the figure is drawn: a layout with aligned axes takes longer."""
    if isinstance(fig, Drawing):
        fig.aligned = True
    else:
        fig.align_ylabels()


def line(index: int) -> dict[str, Any]:
    """Returns colour, marker and dashes of the curve with this number: all three differ between neighbours."""
    return {
        "color": COLORS[index % len(COLORS)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[(index + index // len(COLORS)) % len(DASHES)],
    }


def reference(index: int) -> dict[str, Any]:
    """Returns the look of the ideal schedule with this number: thin, grey and dashed, without markers."""
    return {"color": GREY, "linestyle": REFERENCE_DASHES[index % len(REFERENCE_DASHES)], "linewidth": thick(1.2)}


def dashes(index: int) -> dict[str, Any]:
    """Returns the look of a curve without markers, for curves of very many points."""
    return {key: value for key, value in line(index).items() if key != "marker"}


class Plain(Formatter):
    """Labels the ticks of a logarithmic axis: powers of ten and, if the axis spans little, steps
    between them.

    The labels are plain numbers; if one of them needs a raised power, all have raised powers.
    """

    def __init__(self, linear_to: float = 0.0) -> None:
        self.linear_to = linear_to
        """The value up to which the axis is linear."""
        self.sparser = 0
        """The number of steps by which labels are thinned out, for lack of room."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Returns the label at `x`."""
        return self.format_ticks([x])[0]

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Returns the labels of all ticks."""
        if self.axis is None:
            return [""] * len(values)
        low, high = sorted(self.axis.get_view_interval())
        decades = math.log10(high / low) if low > 0 else math.inf
        step = (2 if decades > 2.2 else 1 if decades > 0.5 else 0) + self.sparser
        leads = STEPS[min(step, 2)]
        every = max(step - 1, 1)
        least = 10 ** math.ceil(math.log10(low) - 1e-9) if step >= 2 and low > 0 else low
        raised = 10 ** math.floor(math.log10(high) + 1e-9) >= 1e5 or 0 < least < 1e-4

        def label(x: float) -> str:
            if x <= 0:
                return "0"
            power = math.floor(math.log10(x) + 1e-9)
            lead = round(x / 10**power, 6)
            if lead not in leads or power % every or (self.sparser and x <= self.linear_to):
                return ""
            if not raised:
                return f"{x:g}"
            ten = f"10{str(power).translate(RAISED)}"
            return ten if lead == 1 else f"{lead:g}·{ten}"

        return [label(x) for x in values]


STEPS: Sequence[Sequence[float]] = (range(1, 10), (1, 2, 5), (1,))
"""The multiples of a power of ten that have labels, from many to few."""

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
"""Raised digits for powers of ten. Exponents of matplotlib need mathtext, which is switched off for labels."""


def log_axis(ax: Axes, which: str, linear_to: float | None = None) -> None:
    """Makes the `x` or `y` axis logarithmic, labelled with plain numbers; with `linear_to`, linear
    from 0 up to this value.
    """
    axis = ax.xaxis if which == "x" else ax.yaxis
    scale: dict[str, Any] = {"value": "log"} if linear_to is None else {"value": "symlog", "linthresh": linear_to, "linscale": 0.5}
    (ax.set_xscale if which == "x" else ax.set_yscale)(**scale)
    axis.set_major_formatter(Plain(linear_to or 0.0))
    axis.set_minor_formatter(Plain())
    if linear_to is None:
        axis.set_major_locator(LogLocator(numticks=9))
        axis.set_minor_locator(LogLocator(subs=range(2, 10), numticks=99))
    else:
        axis.set_minor_formatter(NullFormatter())


def heat() -> Colormap:
    """Returns the colours from idle to busy."""
    return LinearSegmentedColormap.from_list("heat", HEAT)


def share() -> Normalize:
    """Returns the scale from 0 to 1."""
    return Normalize(0.0, 1.0)


NAMED = "\u200b"
"""A prefix for labels that begin with `_`, which matplotlib would leave out of legends. Escaped
labels never begin with it.
"""


def label(text: str) -> str:
    """Returns the label for a curve that `legend` shows as `text`."""
    shown = words.escaped(text)
    return NAMED + shown if shown.startswith("_") else shown


def legend(fig: Figure, axes: Sequence[Axes], title: str | None = None) -> None:
    """Draws one legend for all panels, above them, in the order in which curves first appear."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(text.removeprefix(NAMED), handle)
    if entries:
        size = FontProperties(size=mpl.rcParams["legend.fontsize"]).get_size_in_points()
        line, gap, pad = (RC_PARAMS[f"legend.{name}"] for name in ("handlelength", "columnspacing", "handletextpad"))
        room = 72 * fig.get_figwidth() - 2 * size
        # In a narrow figure, a long text takes two lines instead of the width of all columns.
        widest = room if current().width is None else (room - size * gap) / 2
        texts = [paragraph(text, widest - size * (line + pad), size) for text in entries]
        widths = [width_of(text, size) + size * (line + pad) for text in texts]

        def fits(columns: int) -> bool:
            # Matplotlib fills columns evenly; the first columns have one entry more.
            each, longer = divmod(len(texts), columns)
            starts = [i * each + min(i, longer) for i in range(columns + 1)]
            wide = sum(max(widths[i:j]) for i, j in pairwise(starts))
            return bool(wide + size * gap * (columns - 1) <= room)

        most = next((columns for columns in range(min(len(texts), 6), 1, -1) if fits(columns)), 1)
        rows = -(-len(texts) // most)
        # The figure grows by the height of the legend, so that the panels keep their size.
        if current().height is None:
            lines = sum(max(text.count("\n") for text in texts[i::rows]) + 1 for i in range(rows))
            fig.set_figheight(fig.get_figheight() + (lines - 1) * 1.6 * size / 72)
        box = fig.legend(list(entries.values()), texts, loc="outside upper center", ncols=-(-len(texts) // rows), title=title)
        for text in box.get_texts():
            text.set_linespacing(1.0)


def note(fig: Figure, text: str) -> None:
    """Adds a note below all panels, under notes that are there already."""
    if text:
        size = points(8)
        lines = paragraph(text, 72 * 0.98 * fig.get_figwidth(), size)
        fig.supxlabel("\n".join(filter(None, [fig.get_supxlabel(), lines])), fontsize=size, color=INK, alpha=0.8)


@contextmanager
def laid_out(fig: Figure) -> Iterator[None]:
    """Applies the look of a figure and fixes the places of its parts while files are drawn.

    The places are computed once, and stay.
    """
    with mpl.rc_context(fig.settings) if isinstance(fig, Drawing) else look(), fixed_ticks(fig):
        engine = fig.get_layout_engine()
        if engine is None:
            yield
            return
        with labelled_spines_out(fig):
            engine.execute(fig)
        fig.set_layout_engine("none")
        if isinstance(fig, Drawing) and fig.aligned:
            align_labels(fig)
        with without_engine(fig):
            yield


@contextmanager
def labelled_spines_out(fig: Figure) -> Iterator[None]:
    """Leaves out spines with labelled ticks from the layout for a while: the labels extend further.

    Otherwise matplotlib computes the ticks of each labelled axis once more to measure its spine.
    """
    sides = [(ax, axis, name) for ax in fig.axes for axis, name in ((ax.xaxis, "bottom"), (ax.yaxis, "left"))]
    spines = [ax.spines[name] for ax, axis, name in sides if name in ax.spines and labelled(axis, name)]
    spines = [spine for spine in spines if spine.get_in_layout()]
    for spine in spines:
        spine.set_in_layout(False)
    try:
        yield
    finally:
        for spine in spines:
            spine.set_in_layout(True)


def labelled(axis: Axis, side: str) -> bool:
    """Whether a tick of an axis has a label that is drawn on this side of the panel."""
    low, high = sorted(axis.get_view_interval())
    places = [x for x in axis.get_majorticklocs() if low <= x <= high]
    shows = axis.get_visible() and axis.get_tick_params().get(f"label{side}", True)
    return bool(shows and places and any(axis.get_major_formatter().format_ticks(places)))


@contextmanager
def without_engine(fig: Figure) -> Iterator[None]:
    """Removes the layout engine of a figure for a while: matplotlib draws a figure with an engine
    twice for every file.

    The engine `none` counts as an engine.
    """
    engine = fig.get_layout_engine()
    with mpl.rc_context(NO_ENGINE):
        fig.set_layout_engine(None)
        try:
            yield
        finally:
            fig.set_layout_engine(engine)


@contextmanager
def fixed_ticks(fig: Figure) -> Iterator[None]:
    """Fixes the ticks of logarithmic axes for a while, and draws those without labels as one line
    for each axis.

    Otherwise matplotlib spends half of its time on finding and placing them.
    """
    undo: list[Callable[[], object]] = []
    for axis in (axis for ax in fig.axes for axis in (ax.xaxis, ax.yaxis) if axis.get_scale() == "log"):
        low, high = sorted(axis.get_view_interval())
        for which in ("major", "minor"):
            major = which == "major"
            locator, formatter = (axis.get_major_locator if major else axis.get_minor_locator)(), axis.get_minor_formatter()
            set_locator, set_formatter = axis.set_minor_locator, axis.set_minor_formatter
            if major:
                formatter, set_locator, set_formatter = axis.get_major_formatter(), axis.set_major_locator, axis.set_major_formatter
            if not isinstance(locator, LogLocator):
                continue
            undo += [partial(set_locator, locator), partial(set_formatter, formatter)]
            places = [float(x) for x in locator() if low * (1 - 1e-9) <= x <= high * (1 + 1e-9)]
            labels = formatter.format_ticks(places)
            bare = [] if major else [x for x, label in zip(places, labels, strict=True) if not label]
            if bare:
                undo.append(bare_ticks(axis, bare).remove)
            set_locator(FixedLocator([x for x in places if x not in bare]))
            set_formatter(FixedFormatter([label for label in labels if label or major]))
    try:
        yield
    finally:
        for again in undo:
            again()


def bare_ticks(axis: Axis, places: Sequence[float]) -> Line2D:
    """Draws short ticks without labels as one line of markers."""
    ax = axis.axes
    name = "x" if axis is ax.xaxis else "y"
    data = (places, [0.0] * len(places))
    marker: Any = TICKDOWN if name == "x" else TICKLEFT
    line = Line2D(
        *(data if name == "x" else data[::-1]),
        transform=ax.get_xaxis_transform() if name == "x" else ax.get_yaxis_transform(),
        linestyle="none",
        marker=marker,
        markersize=RC_PARAMS[f"{name}tick.minor.size"],
        markeredgewidth=RC_PARAMS[f"{name}tick.minor.width"],
        color=RC_PARAMS[f"{name}tick.color"],
        clip_on=False,
    )
    line.set_in_layout(False)
    ax.add_artist(line)
    return line


def align_labels(fig: Figure) -> None:
    """Aligns the labels of vertical axes in each column of panels, once the layout is known."""
    columns: dict[int, list[tuple[Axis, float, float]]] = {}
    for ax in fig.axes:
        place = ax.get_subplotspec()
        if place is not None and ax.yaxis.label.get_text():
            ax.yaxis.get_tightbbox()  # moves the label to its place
            x, y = ax.yaxis.label.get_transform().transform(ax.yaxis.label.get_position())
            columns.setdefault(place.colspan.start, []).append((ax.yaxis, x, y))
    for labels in columns.values():
        left = min(x for _, x, _ in labels)
        for axis, _, y in labels:
            axis.set_label_coords(*axis.axes.transAxes.inverted().transform((left, y)))


def save(fig: Figure, stem: Path, formats: Iterable[str] = FORMATS) -> list[Path]:
    """Writes a figure as `stem.png` and `stem.svg`. If `stem` has a suffix, only this format is written."""
    suffix = stem.suffix.lstrip(".").lower()
    if suffix in FILES:
        stem, formats = stem.with_suffix(""), (suffix,)
    written = []
    with laid_out(fig):
        for form in formats:
            path = stem.with_name(f"{stem.name}.{form}")
            write_whole(path, table(fig) if form == "csv" else picture(fig, form))
            written.append(path)
    return written


def picture(fig: Figure, form: str) -> bytes:
    """Returns a figure as the bytes of a file."""
    drawn = io.BytesIO()
    fig.savefig(drawn, format=form, metadata=METADATA[form])
    return drawn.getvalue()


def table(fig: Figure) -> str:
    """Returns the data of a figure as CSV. Raises `ValueError` for a figure that keeps no rows."""
    if not isinstance(fig, Drawing) or not fig.rows:
        raise InputError("this figure has no table of its data\nhint: leave `csv` out of the formats")
    return fig.rows.csv()


def smaller(png: str) -> str:
    """Reduces a PNG in base64 to 256 colours: enough for heat maps and maps of networks, and a
    fifth of the bytes.
    """
    from PIL import Image

    drawn = io.BytesIO()
    picture = Image.open(io.BytesIO(base64.b64decode(png)))
    picture.quantize(256, method=Image.Quantize.FASTOCTREE).save(drawn, "PNG", optimize=True)
    return base64.b64encode(drawn.getvalue()).decode()


def inline_svg(fig: Figure, prefix: str) -> str:
    """Returns a figure as an SVG element for an HTML page: ids start with `prefix`, the ink follows
    the page's text colour.
    """
    buffer = io.StringIO()
    with laid_out(fig):
        fig.savefig(buffer, format="svg", metadata=METADATA["svg"], transparent=True)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    # Coordinates in hundredths of a point are enough, and take a third of the bytes.
    text = re.sub(r' d="[^"]*"', lambda path: re.sub(r"\s*\n", "", re.sub(r"(\.\d\d)\d+", r"\1", path[0])), text)
    text = re.sub(r"(data:image/png;base64,)([\w+/=\s]+)", lambda image: image[1] + smaller(image[2]), text)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', text)
    text = re.sub(r'(href="|url\()#', rf"\1#{prefix}-", text)
    return text.replace(INK, "currentColor").replace(PAPER, "var(--page, white)")
