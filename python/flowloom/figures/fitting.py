"""Makes text fit: line breaks in notes, legends and labels, and fewer ticks, in figures with a given size."""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import matplotlib as mpl
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text


def width_of(text: str, size: float) -> float:
    """Returns the width of the longest line of a text in points, in the font of figures."""
    family = tuple(mpl.rcParams["font.family"])
    return max(_width(line, family) for line in text.split("\n")) * size


@lru_cache(maxsize=4096)
def _width(line: str, family: tuple[str, ...]) -> float:
    # Glyphs that a font lacks are measured as boxes.
    return (
        float(text_to_path.get_text_width_height_descent(line, FontProperties(family=list(family), size=100), ismath=False)[0])
        / 100
    )


def paragraph(text: str, room: float, size: float) -> str:
    """Breaks a text into lines of at most `room` points, as far as its words allow."""
    lines = []
    for line in text.split("\n"):
        here = ""
        for word in line.split(" "):
            longer = f"{here} {word}" if here else word
            if here and width_of(longer, size) > room:
                lines.append(here)
                longer = word
            here = longer
        lines.append(here)
    return "\n".join(lines)


def fit(fig: Figure) -> None:
    """Wraps the labels of a figure and thins out its ticks, until nothing is cut and nothing overlaps."""
    for _ in range(4):
        engine = fig.get_layout_engine()
        if engine is not None:
            engine.execute(fig)
        changed = [fit_panel(ax) for ax in fig.axes]
        if not any(changed):
            return


def fit_panel(ax: Axes) -> bool:
    """Wraps the labels of a panel that are too long, and thins out ticks that overlap. Returns
    whether it changed anything.
    """
    fig = ax.figure
    whole = fig.bbox
    box, place = ax.get_window_extent(), ax.get_subplotspec()
    rows, columns = place.get_gridspec().get_geometry() if place is not None else (1, 1)
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    wide = min(whole.width / columns, 2 * middle[0], 2 * (whole.width - middle[0]), *distances(ax))
    high = min(whole.height / rows, 2 * middle[1], 2 * (whole.height - middle[1]))
    if place is not None:
        # A label next to an axis has the length of the axis, or all the room if there is no axis.
        high = min(high, max(box.height * 1.1, 1.0))
    done = [wrap(ax.title, wide), wrap(ax.xaxis.label, wide), wrap(ax.yaxis.label, high, upright=True)]
    if ax.axison:
        done += [thin_out(ax.xaxis), thin_out(ax.yaxis)]
    return any(done)


def distances(ax: Axes) -> list[float]:
    """Returns half the distances from the middle of a panel to those of the other panels in its
    row: titles share this room.
    """
    place = ax.get_subplotspec()
    row = [] if place is None else [one for one in ax.figure.axes if (other := one.get_subplotspec()) is not None
           and other.rowspan.start == place.rowspan.start and one is not ax]  # fmt: skip
    middles = [box.x0 + box.x1 for box in (one.get_window_extent() for one in (ax, *row))]
    return [0.96 * abs(middle - middles[0]) / 2 for middle in middles[1:]]


def wrap(text: Text, room: float, upright: bool = False) -> bool:
    """Breaks a text into as few lines as possible. Returns whether it changed the text."""

    def length() -> float:
        box = text.get_window_extent()
        return float(box.height if upright else box.width)

    before = text.get_text()
    words = before.replace("\n", " ")
    if not words.strip() or not text.get_visible() or length() <= room:
        return False
    text.set_linespacing(1.0)
    points = room * 72 / text.figure.dpi
    # Glyphs may be wider than measured, such as those of LaTeX.
    for slack in (1.0, 0.95, 0.9, 0.8, 0.7, 0.6):
        text.set_text(paragraph(words, slack * points, float(text.get_fontsize())))
        if length() <= room:
            break
    # Makes the lines about equally long.
    lines = text.get_text().count("\n")
    for share in (0.5, 0.6, 0.7, 0.8, 0.9):
        even = paragraph(words, share * points, float(text.get_fontsize()))
        if even.count("\n") == lines:
            text.set_text(even)
            break
    return text.get_text() != before


def thin_out(axis: Axis) -> bool:
    """Removes or turns labels of ticks that overlap. Returns whether it changed anything."""
    labels = shown_labels(axis)
    side = axis is axis.axes.xaxis
    boxes = sorted((label.get_window_extent() for label in labels), key=lambda box: cast(float, box.x0 if side else box.y0))
    gap = 4.0 if side else 0.0
    ends = [((one.x1, other.x0) if side else (one.y1, other.y0)) for one, other in pairwise(boxes)]
    if all(end + gap <= start for end, start in ends):
        return False
    formatters: list[Any] = [axis.get_major_formatter(), axis.get_minor_formatter()]
    formatters = [getattr(formatter, "inner", formatter) for formatter in formatters]
    sparse = [formatter for formatter in formatters if hasattr(formatter, "sparser")]
    if sparse:
        for formatter in sparse:
            formatter.sparser += 1
        return bool(sparse[0].sparser <= 6)
    if isinstance(formatters[0], FuncFormatter) and side:
        texts = [label.get_text() for label in axis.get_majorticklabels()]
        if all(text[:1].isdigit() for text in texts):
            # A tick between numbers is clear without a label.
            kept, end = [], -math.inf
            for label in axis.get_majorticklabels():
                box = label.get_window_extent()
                kept.append(label.get_text() if box.x0 >= end + gap else "")
                end = box.x1 if kept[-1] else end
            axis.set_ticks(list(axis.get_majorticklocs()), kept)
            return kept != texts
        if any(label.get_rotation() for label in labels):
            return False
        for label in labels:
            label.set(rotation=40, ha="right", rotation_mode="anchor")
        return True
    locator = axis.get_major_locator()
    if isinstance(locator, FixedLocator) and not isinstance(formatters[0], FuncFormatter | NullFormatter) and len(labels) > 2:
        axis.set_major_locator(FixedLocator(list(locator())[::2]))
        return True
    return False


def shown_labels(axis: Axis) -> list[Text]:
    """Returns the visible labels of ticks."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * abs(high - low)
    ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
    seen = [tick for tick in ticks if low - slack <= tick.get_loc() <= high + slack]
    return [tick.label1 for tick in seen if tick.label1.get_visible() and tick.label1.get_text()]
