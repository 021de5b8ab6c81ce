"""Files that are not there until they are whole."""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vidveil.errors import OutputError

MARK = ".vidveil.part"
LONGEST = 255  # bytes that a name may have on the common file systems
TRIES = 20


def part_of(path: Path) -> Path:
    """Where `path` grows: `.NAME.vidveil.part` beside it, a name that nobody else gives to a file."""
    name = path.name
    encoded = os.fsencode(name)
    if len(encoded) + 1 + len(MARK) > LONGEST:
        name = encoded[:200].decode("utf-8", "ignore") + "~" + hashlib.sha256(encoded).hexdigest()[:16]
    return path.with_name(f".{name}{MARK}")


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """The temporary file of `path`, empty and ours alone; gone at the end unless it was renamed."""
    part = part_of(path)
    file = _claim(path, part)
    try:
        os.ftruncate(file, 0)  # what a killed run left
        yield part
    finally:
        try:
            if _is_at(file, part):
                part.unlink()
        finally:
            os.close(file)  # and with it the lock: until here nobody else takes the name


def _claim(path: Path, part: Path) -> int:
    """Create the file, or take over what a killed run left, and lock it.

    The system takes the lock from whoever dies. Between opening and locking, another process may rename or remove the
    file: then this is the lock of something else, and we begin again.
    """
    for _ in range(TRIES):
        file = _open(part)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(file, part):
                _check_ours(file, part)
                return file
        except BlockingIOError:
            os.close(file)
            break
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    raise OutputError(f"{path.name} is being written by another process")


def _open(part: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # no link into somebody's file, no wait for a pipe
    try:
        return os.open(part, flags, 0o666)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _in_the_way(part) from error
        raise


def _is_at(file: int, part: Path) -> bool:
    """Whether the open file is still the one that has the name."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(part))
    except FileNotFoundError:
        return False


def _check_ours(file: int, part: Path) -> None:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # emptied, it would be empty under its other name, too
        raise _in_the_way(part)


def _in_the_way(part: Path) -> OutputError:
    return OutputError(f"{part.name} is in the way, and is no file that vidveil left: remove it")


def to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
