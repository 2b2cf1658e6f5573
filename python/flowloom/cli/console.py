"""What the command line prints to: it goes on when nobody reads, and says when what it prints was lost."""

from __future__ import annotations

import codecs
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from flowloom.base import words

TERMINATED = 143
"""The exit code of a command that SIGTERM has stopped."""

ASCII = {"─": "-", "±": "+-", "µ": "u", "…": "...", "·": "-", "–": "-", "≤": "<=", "≥": ">=", "×": "x", "→": "->", "’": "'"}
"""How characters are written where the output has no place for them; any other is a question mark."""


def in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Writes characters that the encoding lacks as `ASCII` has them."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(ASCII.get(char, "?") for char in error.object[error.start : error.end]), error.end


codecs.register_error("flowloom", in_ascii)


class LostError(Exception):
    """What was printed could not be written, as on a full disk."""


_lost: list[OSError] = []


@contextmanager
def ready() -> Iterator[None]:
    """Makes the streams fit to print to, and lets SIGTERM end a command as Ctrl-C does, for the commands that run inside."""
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
    with warnings.catch_warnings():
        warnings.showwarning = show_warning  # type: ignore[assignment]
        # A label may have characters, as emoji, that the font of the figures lacks: they are drawn as boxes.
        warnings.filterwarnings("ignore", "Glyph .* missing from")
        try:
            yield
        finally:
            sys.unraisablehook = former_hook
            if main_thread:
                signal.signal(signal.SIGTERM, former if former is not None else signal.SIG_DFL)
            if asked:
                signal.signal(signal.SIGINT, signal.default_int_handler)
    if _lost:
        raise LostError(f"cannot write to the standard output: {(_lost[0].strerror or 'unknown reason').lower()}")


_interrupts: list[int] = []


def interrupt(number: int, frame: FrameType | None) -> None:
    """Ctrl-C: as in Python itself, but remembered, since a library that is being imported may make an error of its own of it."""
    _interrupts.append(number)
    signal.default_int_handler(number, frame)


def unraisable(lost: sys.UnraisableHookArgs) -> None:
    """An error that Python has no place to raise, as that of Ctrl-C while it frees the lock of an import: Ctrl-C is remembered."""
    if lost.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(lost)


def interrupted() -> bool:
    """Whether Ctrl-C has come."""
    return bool(_interrupts)


def terminate(number: int, frame: object) -> None:
    """Ends the command: files are written whole or not at all."""
    raise SystemExit(TERMINATED)


def show_warning(message: Warning | str, *where: object) -> None:
    """A warning as one line, without the line of source that raised it."""
    complain(f"warning: {message}")


def reopen() -> None:
    """Opens standard streams that are closed: the next file opened would take their place, and what is printed would go there."""
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
    """Prints a line of results. When it cannot be written the command goes on, so that its files are whole."""
    try:
        print(words.escaped(str(text)), flush=True)
    except OSError as error:
        # A reader that went away (`| head`) has seen enough; a full disk is told of at the end.
        if not isinstance(error, BrokenPipeError):
            _lost.append(error)
        silence()


def silence() -> None:
    """Drops what is printed from here on, and what is still in the buffer."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def complain(text: object) -> None:
    """Prints a line to the person; what cannot be told stops nothing."""
    with suppress(OSError, ValueError):
        print(words.escaped(str(text)), file=sys.stderr, flush=True)


def arguments(argv: list[str]) -> list[str]:
    """Arguments as text, whatever the locale makes of their bytes. Raises `ValueError` for bytes that are no text."""
    found = []
    for argument in argv:
        try:
            found.append(os.fsencode(argument).decode("utf-8"))
        except UnicodeDecodeError:
            shown = argument.encode("utf-8", "replace").decode()
            raise ValueError(f"the argument `{shown}` is not UTF-8 text\nhint: rename the file") from None
        except UnicodeEncodeError:
            found.append(argument)
    return found


def path(text: str) -> str:
    """A path of the compiled part as the system's calls want it."""
    return os.fsdecode(text.encode("utf-8"))
