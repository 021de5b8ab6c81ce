"""Files and folders that are not there until they are whole: the one place where a temporary name is made.

What is written grows next to its place under a name that nobody else gives to a file, is brought to disk, and then
takes the name of `path` in one step. No link is followed, nothing of somebody else's is emptied, and the system's lock
on the temporary file says whether its writer still lives: `remove_stale` takes away what killed runs left.

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
PAUSE = 0.01  # seconds between two tries: another process may look whether a file is stale, and locks it meanwhile
OWN = r"\.[0-9a-f]{8}"  # what tells the temporary names of several writers apart
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


@contextmanager
def new_file(path: Path, mode: int = FOR_ALL) -> Iterator[BinaryIO]:
    """A file to write to; at the end it is on disk and takes the name of `path`, after an error it is gone."""
    with new_path(path, mode) as part, part.open("r+b") as file:
        yield file


@contextmanager
def new_path(path: Path, mode: int = FOR_ALL) -> Iterator[Path]:
    """An empty file by its name; at the end it is on disk and takes the name of `path`, after an error it is gone."""
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
    """Plain values, and a line feed at the end."""
    write_text(path, json.dumps(value, indent=indent) + "\n")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder to fill; at the end it takes the name of `path`, and what had it is removed. After an error the
    new one is gone, and the old one is where it was."""
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
    """Renamed first, so that nobody finds half of it."""
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
    """Remove temporary files and folders in `folder` whose writers are dead; which ones these were.

    Only what has our name, is our user's, has no other name, and is locked by nobody. With `name`, only those of the
    file or folder that is called so.
    """
    removed: list[Path] = []
    try:
        with os.scandir(folder) as entries:
            parts = sorted(folder / entry.name for entry in entries if is_part(entry.name, name))
    except OSError:  # whoever works there will say why not
        return removed
    for part in parts:
        with suppress(OSError):
            if _remove_if_stale(part):
                removed.append(part)
    return removed


def is_part(name: str, of: str | None = None) -> bool:
    """Whether a name is a temporary one: of anything, or of what is called `of`."""
    if of is None:
        return name.startswith(".") and name.endswith(MARK)
    return re.fullmatch(f"{re.escape(_hidden(of, '').removesuffix(MARK))}({OWN})?{re.escape(MARK)}", name) is not None


def open_lock(path: Path) -> BinaryIO:
    """A file that is there to be locked, made if it is not there. Nothing is emptied, and no link is followed."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, FOR_ALL)
    return os.fdopen(number, "r+b", buffering=0)


def open_log(path: Path) -> BinaryIO:
    """A file to append to, made if it is not there, each write at once. No link is followed."""
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
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: its writer lives
        if not _is_at(number, part):
            return False
        _remove(part)
        return not os.path.lexists(part)
    finally:
        os.close(number)


def _of_its_own(path: Path) -> Path:
    """A temporary name that no other writer of `path` has."""
    return path.with_name(_hidden(path.name, f".{secrets.token_hex(4)}"))


def _hidden(name: str, own: str) -> str:
    encoded = os.fsencode(name)
    if len(encoded) + 1 + len(own) + len(MARK) > LONGEST:
        name = encoded[:200].decode("utf-8", "ignore") + "~" + hashlib.sha256(encoded).hexdigest()[:16]
    return f".{name}{own}{MARK}"


def _create(path: Path, make: Callable[[Path], int]) -> tuple[Path, int]:
    """A new temporary file or folder of `path`, and its open number, which holds the lock.

    Between making and locking, another process may take it for stale, and lock or remove it: then there is a next one.
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
        except OSError:  # a file system without locks: then its files are never taken for stale, either
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
    """So that the new name, too, outlasts a power cut."""
    with suppress(OSError):  # not every file system can
        number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(number)
        finally:
            os.close(number)


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
            sleep(PAUSE)
            continue
        except BaseException:
            os.close(file)
            raise
        os.close(file)
    raise OutputError(f"{path.name} is being written by another process")


def _open(part: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # no link into somebody's file, no
    try:  # wait for a pipe
        return os.open(part, flags, FOR_ALL)
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
