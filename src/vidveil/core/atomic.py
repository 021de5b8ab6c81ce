"""Files and folders that appear only when they are complete. All temporary names are made here.

A file is written in its folder under a temporary name, flushed to disk, and then renamed to `path` in one step. No link
is followed, no file of another program is emptied, and a lock on the temporary file shows whether its writer is still
running: `remove_stale` deletes what killed runs left behind.

    temporary(path)      one writer at a time: a second is an OutputError. `commit` gives the file its name
    new_file(path)       a file to write to, which any number of writers may replace; the last one stays
    new_path(path)       likewise, for a library that wants the name of a file
    new_folder(path)     likewise, a folder
    write_bytes, write_text, write_json
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import sleep
from typing import Any, BinaryIO

from vidveil.core.errors import OutputError

MARK = ".vidveil.part"
LONGEST = 255  # bytes that a name may have on the common file systems
TRIES = 20
PAUSE = 0.01  # seconds between two tries: another process that checks whether the file is stale locks it briefly
OWN = r"\.[0-9a-f]{8}"  # distinguishes the temporary names of several writers
FOR_ALL = 0o666  # less the umask


def part_of(path: Path) -> Path:
    """Where `path` grows when it has one writer: `.NAME.vidveil.part` next to it."""
    return path.with_name(_hidden(path.name, ""))


def commit(part: Path, path: Path) -> None:
    """Give a temporary file or folder its name, once it is on disk."""
    to_disk(part)
    part.replace(path)
    _sync(path.parent)


def to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


@contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """The temporary file of `path`, empty and locked by us; deleted at the end unless it was renamed."""
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
            os.close(file)  # releases the lock: until here no other writer takes the name


@contextmanager
def new_file(path: Path, mode: int = FOR_ALL) -> Iterator[BinaryIO]:
    """A file to write to. At the end it is flushed and renamed to `path`; after an error it is deleted."""
    with new_path(path, mode) as part, part.open("r+b") as file:
        yield file


@contextmanager
def new_path(path: Path, mode: int = FOR_ALL) -> Iterator[Path]:
    """The name of an empty file. At the end the file is flushed and renamed to `path`; after an error it is deleted."""
    remove_stale(path.parent, path.name)
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    part, number = _create(path, lambda part: os.open(part, flags, mode))
    try:
        yield part
        commit(part, path)
    finally:
        part.unlink(missing_ok=True)
        os.close(number)


def write_bytes(path: Path, data: bytes, mode: int = FOR_ALL) -> None:
    with new_file(path, mode) as file:
        file.write(data)


def write_text(path: Path, text: str, mode: int = FOR_ALL) -> None:
    write_bytes(path, text.encode("utf-8"), mode)


def write_json(path: Path, value: Any, *, indent: int | None = 1) -> None:
    """Plain values as JSON, with a line feed at the end."""
    write_text(path, json.dumps(value, indent=indent) + "\n")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill. At the end it replaces `path`; after an error it is deleted, and `path` is as before."""
    remove_stale(path.parent, path.name)
    part, number = _create(path, _open_new_folder)
    try:
        yield part
        _swap(part, path)
    finally:
        os.close(number)
        _remove(part)
    _sync(path.parent)


def remove_folder(path: Path) -> None:
    """Rename it first, so that no other process finds half of it."""
    old = _of_its_own(path)
    path.rename(old)
    _remove(old)


def _remove(path: Path) -> None:
    """A file, a link or a folder with all that is in it; nothing if it is not there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_stale(folder: Path, name: str | None = None) -> list[Path]:
    """Remove temporary files and folders in `folder` whose writers have ended; return their paths.

    Only what has a temporary name of ours, belongs to our user, has no second link, and is not locked. With `name`,
    only those of the file or folder of that name.
    """
    removed: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            parts = sorted(folder / entry.name for entry in entries if is_part(entry.name, name))
    except OSError:  # whoever writes there will report it
        return removed
    for part in parts:
        with suppress(OSError):
            if _remove_if_stale(part):
                removed.append(part)
    return removed


def is_part(name: str, of: str | None = None) -> bool:
    """Whether `name` is a temporary name: of any file, or of the file called `of`."""
    if of is None:
        return name.startswith(".") and name.endswith(MARK)
    return re.fullmatch(f"{re.escape(_hidden(of, '').removesuffix(MARK))}({OWN})?{re.escape(MARK)}", name) is not None


def open_lock(path: Path) -> BinaryIO:
    """A lock file, created if it is missing. Nothing is emptied, and no link is followed."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FOR_ALL)
    return os.fdopen(number, "r+b", buffering=0)


def open_log(path: Path) -> BinaryIO:
    """A file to append to without buffering, created if it is missing. No link is followed."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, FOR_ALL), "a+b", buffering=0)


def _remove_if_stale(part: Path) -> bool:
    number = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(number)
        if found.st_uid != os.geteuid() or not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
            return False
        if stat.S_ISREG(found.st_mode) and found.st_nlink != 1:
            return False
        if stat.S_ISDIR(found.st_mode) and not re.search(OWN + re.escape(MARK) + "$", part.name):
            return False  # a folder has no other temporary name
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its writer is running
        if not _is_at(number, part):
            return False
        _remove(part)
        return not os.path.lexists(part)
    finally:
        os.close(number)


def _of_its_own(path: Path) -> Path:
    """A temporary name of `path` that no other writer uses."""
    return path.with_name(_hidden(path.name, f".{secrets.token_hex(4)}"))


def _hidden(name: str, own: str) -> str:
    encoded = os.fsencode(name)
    if len(encoded) + 1 + len(own) + len(MARK) > LONGEST:
        name = encoded[:200].decode("utf-8", "ignore") + "~" + hashlib.sha256(encoded).hexdigest()[:16]
    return f".{name}{own}{MARK}"


def _create(path: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    """A new temporary file or folder of `path`, and its file descriptor, which holds the lock.

    Before it is locked, another process may take it for stale and lock or remove it: then the next name is tried.
    """
    for _ in range(TRIES):
        part = _of_its_own(path)
        try:
            number = make(part)
        except FileNotFoundError:
            if not path.parent.is_dir():
                raise
            continue
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(number)
            continue
        except OSError:  # a file system without locks: there, files are never taken for stale
            return part, number
        if _is_at(number, part):
            return part, number
        os.close(number)
    raise OutputError(f"{path.name} cannot be written: other processes remove its temporary file")


def _open_new_folder(part: Path) -> int:
    part.mkdir()
    return os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _swap(part: Path, path: Path) -> None:
    """Put a folder in the place of whatever is at `path`: a folder cannot be renamed over one that is not empty."""
    if not os.path.lexists(path):
        part.rename(path)
        return
    old = _of_its_own(path)
    path.rename(old)
    try:
        part.rename(path)
    except BaseException:
        old.rename(path)
        raise
    _remove(old)


def _sync(folder: Path) -> None:
    """Flush the folder, so that the new name survives a power cut."""
    with suppress(OSError):  # not every file system can
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def _claim(path: Path, part: Path) -> int:
    """Create the file, or take over what a killed run left, and lock it.

    The system releases the lock of a process that ends. Between opening and locking, another process may rename or
    remove the file: then the lock is of another file, and we try again.
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
            sleep(PAUSE)
            continue
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    raise OutputError(f"{path.name} is being written by another process")


def _open(part: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # follow no link, do not wait
    try:  # for a pipe
        return os.open(part, flags, FOR_ALL)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EISDIR, errno.ENXIO):
            raise _in_the_way(part) from error
        raise


def _is_at(file: int, part: Path) -> bool:
    """Whether the open file still has this name."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(part))
    except FileNotFoundError:
        return False


def _check_ours(file: int, part: Path) -> None:
    found = os.fstat(file)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:  # emptying it would empty it under its other name, too
        raise _in_the_way(part)


def _in_the_way(part: Path) -> OutputError:
    return OutputError(f"{part.name} is in the way, and is no file that vidveil left: remove it")
