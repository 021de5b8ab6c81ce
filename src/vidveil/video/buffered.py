"""An iterator that works ahead in its own thread, by a few items at most."""

import queue
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


@contextmanager
def ahead(items: Iterable[T], size: int) -> Iterator[Iterator[T]]:
    """Iterate over `items` in a thread, at most `size` of them ahead of the consumer.

    An error in the thread is raised in the consumer. Leaving the context stops the thread.
    FFmpeg, OpenCV and x264 all work without Python's lock, so stages joined this way run side by side.
    """
    channel: queue.Queue[tuple[T | None, BaseException | None, bool]] = queue.Queue(maxsize=size)
    stop = threading.Event()

    def put(item: tuple[T | None, BaseException | None, bool]) -> bool:
        while not stop.is_set():
            try:
                channel.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put((item, None, False)):
                    return
            put((None, None, True))
        except BaseException as error:
            put((None, error, True))

    def consume() -> Iterator[T]:
        while True:
            item, error, last = channel.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]

    thread = threading.Thread(target=work, name="vidveil-ahead", daemon=True)
    thread.start()
    try:
        yield consume()
    finally:
        stop.set()
        thread.join()
