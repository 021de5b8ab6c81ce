"""Every command reports what it does while it works, and ends politely when it is asked to."""

import signal
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import typer

from vidveil.core.progress import reporting, say

Verb = TypeVar("Verb", bound=Callable[..., None])


def reported(hint: str = "") -> Callable[[Verb], Verb]:
    """The verb, with progress on stderr. Ctrl-C and SIGTERM end it with one line, which has the hint or the notes of
    the interruption, and with exit code 130."""

    def decorate(verb: Verb) -> Verb:
    @wraps(verb)
    def run(*args: Any, **kwargs: Any) -> Any:
        before = None
        if threading.current_thread() is threading.main_thread():
            before = signal.signal(signal.SIGTERM, signal.default_int_handler)  # schedulers send it
        try:
            with reporting(verb.__name__):
                try:
                    return verb(*args, **kwargs)
                except KeyboardInterrupt as stopped:
                    notes = getattr(stopped, "__notes__", None) or filter(None, [hint])
                    say(": ".join(["interrupted", *notes]))
                    # Python remembers an interruption within exec(), of which imports are full, and would end by SIGINT
                    exec("pass")
                    raise typer.Exit(130) from None
        finally:
            if before is not None:
                signal.signal(signal.SIGTERM, before)

    run.is_reported = True  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]
