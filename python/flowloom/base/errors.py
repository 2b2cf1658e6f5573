"""Errors and warnings as the programs that use flowloom see them."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from pathlib import Path

SKIPPED = (f"{Path(__file__).parents[1]}{os.sep}", contextlib.__file__)
"""The files whose frames are skipped: those of the package, and `contextlib`, whose context
managers lie between them.
"""


class UnknownNameError(KeyError):
    """Raised for a system, swept key, value, column or group that the results do not have.

    Its text is the message itself. The text of a plain `KeyError` is the `repr` of the message,
    which shows line breaks as `\\n`.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warns at the line of the program that called flowloom."""
    warnings.warn(text, category, stacklevel=depth())


def depth() -> int:
    """Returns the number of stack frames, counted from the caller, up to the program that called flowloom.

    The argument `skip_file_prefixes` of `warnings.warn` would do the same, but needs Python 3.12.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(SKIPPED):
        level, frame = level + 1, frame.f_back
    return level
