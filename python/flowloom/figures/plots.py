"""Kinds of figures by name: which kinds suit some results, which options a kind takes, and how it is drawn."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from flowloom.base import errors, rooms, words
from flowloom.base.errors import InputError, did_you_mean
from flowloom.base.rooms import Entry
from flowloom.figures import fonts, style
from flowloom.figures.drawing import signed
from flowloom.figures.kinds import KINDS
from flowloom.runs import tables
from flowloom.runs.choice import with_systems
from flowloom.runs.data import Data

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAGE = 9.0
"""The height of the text of a page, in inches."""
LOOK = ("style", "width", "height", "font")
"""Options for the look of a figure, which all kinds take."""
LISTS = ("systems", "metrics", "ports")
"""Options that are lists of names; a text is a list of one."""


def own_options(name: str) -> list[str]:
    """Returns the options that a kind of figure takes in addition to those of all kinds."""
    return list(inspect.signature(KINDS[name].module.draw).parameters)[1:]


def shown(results: Data) -> list[Entry]:
    """Returns the kinds of figures to draw for results if none is named."""
    return [kind for kind in KINDS.values() if not kind.meta.metric or tables.defined(results, [kind.meta.metric])]


def known(name: str) -> None:
    """Raises `ValueError` for an unknown kind of figure."""
    rooms.refuse_unknown("kind of figure", name, KINDS)


def takers(options: Iterable[str]) -> list[str]:
    """Returns the kinds of figures that take all of the options. Raises `ValueError` if there is none."""
    found = [name for name in KINDS if set(options) <= set(own_options(name))]
    if not found:
        raise InputError(f"no kind of figure takes {words.joined([f'`{option}`' for option in options])} together")
    return found


def read_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of single kinds among those of the command line. Raises `ValueError` for a span
    that is not valid.
    """
    found: dict[str, Any] = {name: list(given[name]) for name in ("metrics", "statistic") if given.get(name)}
    found |= {name: given[name] for name in ("workload", "by") if given.get(name)}
    if given.get("span"):
        ends = [words.milliseconds(end) for end in str(given["span"]).split(",")]
        if len(ends) != 2 or ends[0] is None or ends[1] is None or not 0 <= ends[0] < ends[1]:
            raise InputError(f"`--span {given['span']}` is not a start and an end\nhint: write both, such as `--span 1ms,1.5ms`")
        found["span"] = (ends[0], ends[1])
    return found


def refuse_options(name: str, options: Iterable[str]) -> None:
    """Raises `ValueError` for an unknown kind of figure, and for an option that a kind does not take."""
    known(name)
    for option in options:
        if option not in own_options(name):
            all_options = [*LOOK, "systems", *own_options(name)]
            who = [kind for kind in KINDS if option in own_options(kind)]
            hint = f"{words.joined([f'`{kind}`' for kind in who])} do" if who else f"it takes {', '.join(all_options)}"
            did = "" if who else did_you_mean(option, all_options)
            raise InputError(f"figures of the kind `{name}` take no `{option}`{did}\nhint: {hint}")


def draw(results: Data, name: str = "slowdown", **options: Any) -> Figure:
    """Draws one kind of figure. Raises `NoDataError` if the results do not hold what the kind needs.

    `options` are those of `flowloom.plot`; an option that is `None` counts as not given. Raises
    `ValueError` for an option that the kind does not take.
    """
    options = {key: value for key, value in options.items() if value is not None}
    for option, value in options.items():
        if value == "" or (option in (*LISTS, "statistic") and not value):
            raise InputError(f"`{option}` is empty\nhint: leave it out for its default")
        if option in LISTS and isinstance(value, str):
            options[option] = [value]
    given = {key: options.pop(key) for key in LOOK if key in options}
    systems = options.pop("systems", None)
    refuse_options(name, options)
    chosen = results if systems is None else with_systems(results, systems)
    chosen.select(options.get("at"))  # refuses values that no point has
    look = style.Look.read(given) if given else None
    with style.look(look):
        figure = signed(KINDS[name].module.draw(chosen, **options), chosen, options.get("at"))
        if look is not None:
            if look.font.lower() == fonts.USETEX:
                fonts.set_by_latex(figure)
            if look.width is not None or look.height is not None:
                style.fit(figure)
            if look.style == "paper" and figure.get_figheight() > PAGE:
                high = f"this figure is {figure.get_figheight():.1f}in high, more than a page of a paper has"
                errors.warn(f"{high}\nhint: draw fewer points with `at` or fewer systems with `systems`, or set `height`")
        return figure
