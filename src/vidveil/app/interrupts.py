"""Ctrl-C and SIGTERM end a recording properly: the file is finished instead of being given up."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_as(stop: Callable[[], None]) -> Iterator[None]:
    """Ctrl-C and SIGTERM call `stop` instead of raising in the middle of a write. The second time they raise."""

    def handle(number: int, _: object) -> None:
        signal.signal(number, signal.default_int_handler)
        stop()

    numbers: list[int] = []
    if threading.current_thread() is threading.main_thread():  # other threads cannot set handlers
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is signal.default_int_handler]
    for number in numbers:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.default_int_handler)
