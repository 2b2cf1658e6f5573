"""Errors and warnings as the programs that use flowloom see them."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from flowloom import _core

SKIPPED = (f"{Path(__file__).parents[1]}{os.sep}", contextlib.__file__)
"""The files whose frames are skipped: those of the package, and `contextlib`, whose context
managers lie between them.
"""


InputError = _core.InputError
"""Raised for what the user has given wrong. All our messages about such mistakes are of this class or of `UnknownNameError`:
any other `ValueError` or `KeyError` comes from a library, and is a bug.
"""


class UnknownNameError(KeyError):
    """Raised for a system, swept key, value, column or group that the results do not have.

    Its text is the message itself. The text of a plain `KeyError` is the `repr` of the message,
    which shows line breaks as `\\n`.
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def did_you_mean(wrong: object, names: Iterable[object]) -> str:
    """Returns the end of a message about an unknown name: the nearest of `names`; empty if none is near."""
    near = _core.nearest(str(wrong), list(map(str, names)))
    return f"; did you mean `{near}`?" if near else ""


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


class KeyRefusedError(InputError):
    """Raised for a key of a table that has a wrong value, is missing, or has no effect.

    The reader of the file adds the place of the key.
    """

    def __init__(self, key: str, message: str, label: str, hint: str) -> None:
        super().__init__(f"{message}\nhint: {hint}")
        self.key, self.message, self.label, self.hint = key, message, label, hint

    @classmethod
    def unknown(cls, key: str, where: str, what: str, name: str, known: Sequence[str]) -> KeyRefusedError:
        """Returns the error for a name that is not known."""
        near = _core.nearest(name, list(known))
        did = f"did you mean `{near}`?" if near else "unknown"
        return cls(key, f"{where}: `{name}` is not a {what}", did, f"one of {', '.join(known)}")
