"""Fonts of figures: families by name, and LaTeX."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.font_manager import findSystemFonts, fontManager
from matplotlib.text import Text
from matplotlib.ticker import Formatter, NullFormatter, ScalarFormatter

from flowloom.base import errors, words
from flowloom.base.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure

RC_PARAMS: Any = mpl.rcParams
DEFAULTS: Any = mpl.rcParamsDefault
"""The settings of matplotlib, typed to accept any name."""

USETEX = "usetex"
"""The value of `font` with which LaTeX sets all text."""

ALIKE = (
    ("Times", "Times New Roman", "Liberation Serif", "STIXGeneral"),
    ("Helvetica", "Arial", "Liberation Sans"),
)
"""Families with the same shapes. The first installed family replaces the others; `STIXGeneral`
comes with matplotlib.
"""

NEEDED = {"latex": "program", "dvipng": "program", "type1cm.sty": "package", "type1ec.sty": "package"}
"""The programs and packages that matplotlib needs for LaTeX; `dvipng` for PNG, and to measure text."""


def changed(key: str) -> bool:
    """Whether a setting differs from matplotlib's default, such as after a change in the user's
    `matplotlibrc`.
    """
    return bool(RC_PARAMS[key] != DEFAULTS[key])


def settings(font: str) -> dict[str, Any]:
    """Returns the settings for a font: a family, `usetex` or none. Raises `ValueError` for a font
    that is not installed.
    """
    if not font:
        return {}
    if font.lower() != USETEX:
        # DejaVu has characters that the family lacks, such as raised digits.
        return {"font.family": list(dict.fromkeys([family(font), "DejaVu Sans"]))}
    missing = [name for name in NEEDED if not found(name)]
    if missing:
        named = words.joined([f"`{name}`" for name in missing])
        hint = "install TeX Live with `dvipng`, `texlive-latex-extra` and `cm-super`, or name a font, such as `Times`"
        raise InputError(f"`usetex` needs LaTeX, and {named} {'is' if len(missing) == 1 else 'are'} not installed\nhint: {hint}")
    return {"text.usetex": True} | ({} if changed("font.family") else {"font.family": "serif"})


@cache
def found(name: str) -> bool:
    """Whether a program is on the path, or a package of LaTeX is installed."""
    if NEEDED[name] == "program":
        return shutil.which(name) is not None
    kpsewhich = shutil.which("kpsewhich")
    return kpsewhich is not None and subprocess.run([kpsewhich, name], capture_output=True, check=False).returncode == 0


def family(name: str) -> str:
    """Returns the installed family with this name, or one with the same shapes. Raises `ValueError`
    if there is none.
    """
    alike = next((names for names in ALIKE if name.lower() in map(str.lower, names)), ())
    known = installed()
    if name.lower() not in known:
        add_new_fonts()
        known = installed()
    if name.lower() in known:
        return known[name.lower()]
    for other in alike:
        if other.lower() in known:
            errors.warn(f"the font `{name}` is not installed: `{other}` has the same shapes and is used instead")
            return other
    if name.lower() in installed((".otf", ".pfb", ".afm")):
        raise InputError(
            f"the font `{name}` is not a TrueType font, and matplotlib embeds other fonts in a form that publishers refuse"
            "\nhint: install the font as TrueType, or name another font, such as `Times`"
        )
    if alike:
        raise InputError(
            f"the font `{name}` is not installed, nor is one with the same shapes\nhint: install one of {', '.join(alike)}"
        )
    near = get_close_matches(name.lower(), [*known, *(one.lower() for names in ALIKE for one in names[:1])], 4, 0.55)
    did = f"; did you mean {' or '.join(f'`{known.get(one, one.title())}`' for one in near)}?" if near else ""
    raise InputError(
        f"there is no font `{name}`{did}\nhint: `fc-list : family` prints the fonts of this machine; `usetex` uses those of LaTeX"
    )


def installed(kinds: tuple[str, ...] = (".ttf", ".ttc")) -> dict[str, str]:
    """Returns the TrueType families that matplotlib knows, by their names in lower case.

    Fonts with PostScript outlines (`.otf`) are left out: matplotlib declares them as TrueType in
    PDFs, which fails checks.
    """
    return {font.name.lower(): font.name for font in fontManager.ttflist if font.fname.lower().endswith(kinds)}


def add_new_fonts() -> None:
    """Adds fonts that were installed after matplotlib made its list of fonts."""
    known = {font.fname for font in fontManager.ttflist}
    for path in findSystemFonts():
        if path not in known:
            with suppress(Exception):  # Files that matplotlib cannot read as fonts are left out.
                fontManager.addfont(path)


def tex(text: str) -> str:
    """Escapes a text for LaTeX. Letters that the fonts of LaTeX lack, such as those of other
    scripts, become question marks.
    """
    return words.latex("".join(char if ord(char) < 0x250 or words.latex(char) != char else "?" for char in text))


class Escaped(Formatter):
    """A formatter that escapes the labels of another formatter for LaTeX."""

    def __init__(self, inner: Formatter) -> None:
        self.inner = inner

    def __call__(self, x: float, pos: int | None = None) -> str:
        """Returns the label at `x`."""
        return tex(self.inner(x, pos))

    def format_ticks(self, values: Sequence[float]) -> list[str]:
        """Returns the labels of all ticks."""
        return [tex(label) for label in self.inner.format_ticks(list(values))]


def set_by_latex(fig: Figure) -> None:
    """Escapes all text of a figure for LaTeX: labels may contain `_`, `%` and `$`."""
    for text in fig.findobj(Text):
        assert isinstance(text, Text)
        text.set_text(tex(text.get_text()))
    for ax in fig.axes:
        for axis in (ax.xaxis, ax.yaxis):
            # Formatters of plain numbers already write LaTeX.
            major, minor = axis.get_major_formatter(), axis.get_minor_formatter()
            if not isinstance(major, ScalarFormatter):
                axis.set_major_formatter(Escaped(major))
            if not isinstance(minor, ScalarFormatter | NullFormatter):
                axis.set_minor_formatter(Escaped(minor))
