"""Every command reports what it does while it works, and ends politely when it is asked to."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from traceback import format_exception_only

import typer

from vidveil.core.progress import reporting, say


@contextmanager
def reported(verb: str, hint: str = "") -> Iterator[None]:
    """As a decorator: a verb with progress on stderr. Ctrl-C and SIGTERM end it with one line, which has the notes of
    the interruption or else the hint, and with exit code 130."""
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # schedulers send it
    try:
        with reporting(verb):
            try:
                yield
            except KeyboardInterrupt as stopped:
                notes = [line.rstrip() for line in format_exception_only(stopped)[1:]]
                say(": ".join(filter(None, ["interrupted", *(notes or [hint])])))
                # Python remembers an interruption within exec(), of which imports are full, and would end by SIGINT
                exec("pass")
                raise typer.Exit(130) from None
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
