"""Files that are not there until they are whole."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from vidveil.errors import OutputError


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """`path` with `.part` behind it, ours alone; gone at the end unless it was renamed."""
    part = path.with_name(path.name + ".part")
    with part.open("ab") as file:  # creates it, or takes over what a killed run left
        if not _lock(file):
            raise OutputError(f"{path.name} is being written by another process")
        try:
            os.truncate(part, 0)
            yield part
        finally:
            with suppress(FileNotFoundError):
                part.unlink()


def _lock(file: IO[bytes]) -> bool:
    """Taken by the system from whoever dies, so a killed run leaves none behind."""
    try:
        import fcntl
    except ImportError:  # Windows
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
