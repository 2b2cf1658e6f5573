"""The data of figures as tables: one row for each point, with the ends of its interval."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np


class Rows:
    """The rows of a figure, kept as the columns that are drawn."""

    def __init__(self) -> None:
        self._parts: list[tuple[Mapping[str, object], Mapping[str, Any]]] = []

    def add(self, same: Mapping[str, object], columns: Mapping[str, Any]) -> None:
        """Adds the points of a curve: the values that all points share, such as the system, and
        columns with a value per point.
        """
        self._parts.append((dict(same), {name: np.asarray(values) for name, values in columns.items()}))

    def __bool__(self) -> bool:
        return bool(self._parts)

    def __iter__(self) -> Iterator[dict[str, object]]:
        for same, columns in self._parts:
            for values in zip(*(column.tolist() for column in columns.values()), strict=True):
                yield {**same, **dict(zip(columns, values, strict=True))}

    @property
    def names(self) -> list[str]:
        """The names of all columns: shared values first, the ends of intervals next to their means."""
        parts = [list(same) for same, _ in self._parts] + [list(columns) for _, columns in self._parts]
        return list(dict.fromkeys(name for part in parts for name in part))

    def csv(self) -> str:
        """Returns the table as CSV. Missing values are empty."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.names, lineterminator="\n")
        writer.writeheader()
        for row in self:
            writer.writerow({name: written(value) for name, value in row.items()})
        return text.getvalue()


def written(value: object) -> object:
    """Returns a value for CSV: numbers without needless digits, an empty text for NaN."""
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.9g}"
    return "" if value is None else value
