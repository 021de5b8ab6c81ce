"""A camera that sends over TCP, and breaks off."""

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator

PIECE = 188  # bytes: a packet of MPEG-TS


@contextlib.contextmanager
def camera(*films: bytes, seconds: float = 0.2, reset: bool = True, stays: float = 0.0) -> Iterator[str]:
    """The URL of a stream. Who connects gets the next film, in so many seconds; then the connection is reset, or ended
    politely. It `stays` so many seconds longer without a word."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for film in films:
            connection, _ = listener.accept()
            with connection:
                began = time.monotonic()
                for i in range(0, len(film), PIECE):
                    connection.sendall(film[i : i + PIECE])
                    time.sleep(max(0.0, began + seconds * i / len(film) - time.monotonic()))
                time.sleep(stays)
                if reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def work() -> None:
        with listener, contextlib.suppress(OSError):
            serve()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # wakes whoever waits for a connection
        thread.join()
