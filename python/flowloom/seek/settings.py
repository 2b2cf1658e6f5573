"""Settings: the open keys of scenarios with their values, and places in the space of settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal, localcontext
from typing import Any, Self

from flowloom import _core
from flowloom.base import words

DIGITS = 3
"""The significant digits of a value, few enough for scenarios and tables to be readable. A narrow
range needs more; see `Setting.exponent`.
"""

STEPS = 2
"""The minimum number of different values of a range for each place of the design, if it has so many."""

EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)
"""The arithmetic of values: exact enough for every range, and the same on every platform."""

PROFILE = "profile"
"""The key of a setting whose values are names of profiles, which may set any keys."""

BASES = {"ns": ("s", 1e-9), "B": ("bytes", 1.0), "bps": ("bps", 1.0)}
"""The base units of settings as units that figures scale, with their sizes."""


@dataclass(frozen=True)
class Setting:
    """An open setting: numbers in a range, or listed values. A place has a coordinate from 0 to 1
    for each setting.
    """

    name: str
    keys: Sequence[str]
    source: str
    choices: Sequence[str] = ()
    low: Decimal = Decimal(0)
    high: Decimal = Decimal(1)
    unit: str = ""
    decimals: int = 9
    """The maximum number of decimals of a value."""
    log: bool = False
    usual: str | None = None
    steps: int = 64 * STEPS
    """The number of different values that the range must have, if it has so many."""
    paths: Sequence[tuple[str | None, Sequence[str]]] = ()
    """The keys as the names in them, each with its scenario; `None`: all scenarios."""

    @classmethod
    def read(cls, table: Mapping[str, Any], points: int) -> Self:
        """Reads a setting from the table that the compiled part returns, for a design of `points` places."""
        keys = [f"{scenario}:{key}" if scenario else key for scenario, key, _ in table["keys"]]
        paths = [(scenario, path) for scenario, _, path in table["keys"]]
        made = cls(table["name"], keys, table["source"], table["choices"], usual=table["usual"], steps=points * STEPS, paths=paths)
        if table["range"] is None:
            return made
        low, high, unit, decimals = table["range"]
        return replace(made, low=Decimal(low), high=Decimal(high), unit=unit, decimals=decimals, log=table["log"])

    @property
    def levels(self) -> int:
        """The number of listed values; 0 for a range."""
        return len(self.choices)

    def value(self, coordinate: float) -> str:
        """Returns the value at a coordinate, as it is written after `--set KEY=`."""
        if self.choices:
            return self.choices[min(int(coordinate * self.levels), self.levels - 1)]
        with localcontext(EXACT):
            u = Decimal(coordinate)
            number = self.low * (self.growth * u).exp() if self.log else self.low + (self.high - self.low) * u
            rounded = number.quantize(Decimal(1).scaleb(max(self.exponent(number), -self.decimals)))
        # Rounding may leave the range.
        return f"{written(min(max(rounded, self.low), self.high))}{self.unit}"

    @property
    def growth(self) -> Decimal:
        """The logarithm of the ratio of the largest to the smallest value."""
        return EXACT.ln(EXACT.divide(self.high, self.low))

    def exponent(self, number: Decimal) -> int:
        """Returns the exponent of the last digit to which a number is rounded: that of the third
        significant digit, or a smaller one if the range would otherwise have fewer values than `steps`.
        """
        step = EXACT.divide(abs(number) * self.growth if self.log else self.high - self.low, Decimal(self.steps))
        return min(number.adjusted() - (DIGITS - 1), step.adjusted())

    def coordinate(self, value: str) -> float:
        """Returns the coordinate of a value of the setting."""
        if self.choices:
            return (self.choices.index(value) + 0.5) / self.levels
        number = self.number(value)
        if self.log:
            return float(EXACT.divide(EXACT.ln(EXACT.divide(number, self.low)), self.growth))
        return float(EXACT.divide(number - self.low, self.high - self.low))

    def number(self, value: str) -> Decimal:
        """Returns a value of the range as a number of the setting's unit."""
        return Decimal(value.removesuffix(self.unit))

    def shown(self, value: str) -> str:
        """Returns a value for people: `34.6 kB`, `tail`."""
        if self.choices:
            return value
        number = self.number(value)
        factor, name = self.scale([float(number)])
        digits = max(number.adjusted() - self.exponent(number) + 1, 1)
        text = written(Context(prec=digits, rounding=ROUND_HALF_EVEN).multiply(number, Decimal(repr(factor))))
        return f"{text}{f' {name}' if name else ''}"

    @property
    def whole(self) -> str:
        """The range or the listed values for people."""
        if self.choices:
            return ", ".join(self.choices)
        return " to ".join(self.shown(f"{written(end)}{self.unit}") for end in (self.low, self.high))

    def scale(self, numbers: Sequence[float]) -> tuple[float, str]:
        """Returns the factor and the unit with which numbers of the setting are easiest to read."""
        if self.unit not in BASES:
            return 1.0, self.unit
        base, size = BASES[self.unit]
        factor, name = words.scale(base, [number * size for number in numbers])
        return float(f"{size / factor:.6g}"), name


def written(number: Decimal) -> str:
    """Returns a number without exponent and without zeros at its end.

    >>> written(Decimal("1.50E+3")), written(Decimal("-0.250"))
    ('1500', '-0.25')
    """
    if not number:
        return "0"
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


@dataclass(frozen=True)
class Place:
    """A place in the space of settings: a value for each setting."""

    coordinates: Sequence[float]
    values: Sequence[str]

    def assignments(self, settings: Sequence[Setting]) -> dict[str, str]:
        """Returns the keys of the scenarios with their values; the values of several profiles
        become one list.
        """
        found: dict[str, str] = {}
        for setting, value in zip(settings, self.values, strict=True):
            for key in setting.keys:
                found[key] = f"{found[key]},{value}" if key.rpartition(":")[2] == PROFILE and key in found else value
        return found

    def text(self, settings: Sequence[Setting]) -> str:
        """Returns the settings with their values: `threshold = 60pkt, load = 0.3`."""
        return ", ".join(f"{setting.name} = {value}" for setting, value in zip(settings, self.values, strict=True))

    def name(self, settings: Sequence[Setting]) -> str:
        """Returns the name of the folder of the place, which depends only on the values that the place sets."""
        text = "\n".join(f"{key}={value}" for key, value in sorted(self.assignments(settings).items()))
        return _core.content_hash(text.encode())[:12]
