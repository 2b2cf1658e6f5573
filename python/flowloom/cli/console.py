"""Output of the command line: it continues when nobody reads, and reports lost output at the end."""

from __future__ import annotations

import codecs
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from types import FrameType
from typing import TextIO

from flowloom.base import words
from flowloom.base.errors import InputError

TERMINATED = 143
"""The exit code of a command that SIGTERM has stopped."""

ASCII = {"─": "-", "±": "+-", "µ": "u", "…": "...", "·": "-", "–": "-", "≤": "<=", "≥": ">=", "×": "x", "→": "->", "’": "'"}
"""Replacements of characters that the encoding of the output lacks; all others become question marks."""


def in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Replaces characters that the encoding of the output lacks, as listed in `ASCII`."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end


codecs.register_error("flowloom", in_ascii)


class LostError(Exception):
    """Output was lost because it could not be written, such as on a full disk."""


_lost: list[OSError] = []

_data: list[TextIO] = []
"""The standard output of a command, for what `say` prints."""


@contextmanager
def ready() -> Iterator[None]:
    """Prepares the standard streams for printing, and makes SIGTERM end a command as Ctrl-C does.

    What anything else prints during the command, such as a plug-in, goes to the standard error.
    """
    reopen()
    _lost.clear()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="flowloom")
    main_thread = threading.current_thread() is threading.main_thread()
    former = signal.signal(signal.SIGTERM, terminate) if main_thread else None
    _interrupts.clear()
    asked = main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if asked:
        signal.signal(signal.SIGINT, interrupt)
    former_hook, sys.unraisablehook = sys.unraisablehook, unraisable
    _data.append(sys.stdout)
    with warnings.catch_warnings(), redirect_stdout(sys.stderr):
        warnings.showwarning = show_warning  # type: ignore[assignment]
        # Labels may have characters that the font of figures lacks, such as emoji: they are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        try:
            yield
        finally:
            _data.pop()
            sys.unraisablehook = former_hook
            if main_thread:
                signal.signal(signal.SIGTERM, former if former is not None else signal.SIG_DFL)
            if asked:
                signal.signal(signal.SIGINT, signal.default_int_handler)
    if _lost:
        raise LostError(f"cannot write to the standard output: {(_lost[0].strerror or 'unknown reason').lower()}")


_interrupts: list[int] = []


def interrupt(number: int, frame: FrameType | None) -> None:
    """Handles Ctrl-C as Python does, and records it: a library that is being imported may turn it
    into another error.
    """
    _interrupts.append(number)
    signal.default_int_handler(number, frame)


def unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Ignores Ctrl-C where Python cannot raise an error, such as while it releases the lock of an
    import. `interrupt` has recorded it.
    """
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)


def interrupted() -> bool:
    """Whether Ctrl-C was pressed."""
    return bool(_interrupts)


def terminate(number: int, frame: object) -> None:
    """Ends the command. Files are written completely or not at all."""
    raise SystemExit(TERMINATED)


def show_warning(message: Warning | str, *where: object) -> None:
    """Prints a warning without the line of source that raised it."""
    complain(f"warning: {message}")


def reopen() -> None:
    """Opens standard streams that are closed. Otherwise the next file opened would take the place
    of such a stream and receive what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def say(text: object = "") -> None:
    """Prints a line of results. If it cannot be written, the command continues, so that its files
    are complete.
    """
    try:
        print(words.escaped(str(text)), file=_data[-1] if _data else None, flush=True)
    except OSError as error:
        # A reader that closed the pipe (`| head`) needs no more; other errors are reported at the end.
        if not isinstance(error, BrokenPipeError):
            _lost.append(error)
        silence()


def silence() -> None:
    """Discards all further output, and what is still in the buffer."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, (_data[-1] if _data else sys.stdout).fileno())
        os.close(nowhere)


def complain(text: object) -> None:
    """Prints a line to the standard error. Errors while printing are ignored."""
    with suppress(OSError, ValueError):
        print(words.escaped(str(text)), file=sys.stderr, flush=True)


def arguments(argv: list[str]) -> list[str]:
    """Returns the arguments as text, whatever the locale. Raises `ValueError` for bytes that are not UTF-8."""
    found = []
    for argument in argv:
        try:
            found.append(os.fsencode(argument).decode("utf-8"))
        except UnicodeDecodeError:
            shown = argument.encode("utf-8", "replace").decode()
            raise InputError(f"the argument `{shown}` is not UTF-8 text\nhint: rename the file") from None
        except UnicodeEncodeError:
            found.append(argument)
    return found


def path(text: str) -> str:
    """Returns a path from the compiled part in the encoding of the file system."""
    return os.fsdecode(text.encode("utf-8"))
