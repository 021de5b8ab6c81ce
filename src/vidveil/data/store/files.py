"""Writing a store: its files one array after the other, and whose turn it is to write them."""

import fcntl
import hashlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.atomic import open_lock
from vidveil.core.errors import DataError
from vidveil.core.progress import phase

LAYOUT = 1
FRAMES = "frames"


@dataclass(slots=True)
class Arrays:
    """Arrays of one type, one after the other in a file."""

    dtype: str
    shapes: list[list[int]] = field(default_factory=list)
    sha256: list[str] = field(default_factory=list)

    def sizes(self) -> list[int]:
        item = np.dtype(self.dtype).itemsize
        return [math.prod(shape) * item for shape in self.shapes]


@dataclass(frozen=True, slots=True)
class FailedVideo:
    """In the place of a video that cannot be decoded."""

    why: str
    stamp: int
    """When its file was last changed, in nanoseconds: another time, and it is tried again."""


class Writer:
    """Appends arrays to the files of an unfinished store."""

    def __init__(self, part: Path, folder: Path) -> None:
        self.part, self.folder = part, folder
        self.arrays = {FRAMES: Arrays("|u1")}
        self.failed: dict[int, FailedVideo] = {}
        self.files = {FRAMES: (part / file_name(FRAMES)).open("wb")}

    def add(self, video: NDArray[np.uint8], sides: Mapping[str, NDArray[Any]]) -> None:
        count = len(self.arrays[FRAMES].shapes)
        if video.dtype != np.uint8 or video.ndim != 4 or video.shape[-1] != 3 or 0 in video.shape:
            raise DataError(f"video {count} is {video.dtype} {video.shape}, not uint8 (T, H, W, 3)")
        if count == 0:
            for name, side in sides.items():
                if name == FRAMES or not name.isidentifier() or np.asarray(side).dtype.hasobject:
                    raise DataError(f"no side array can be called {name!r} and hold {np.asarray(side).dtype}")
                self.arrays[name] = Arrays(np.asarray(side).dtype.str)
                self.files[name] = (self.part / file_name(name)).open("wb")
        if {FRAMES, *sides} != set(self.arrays):
            raise DataError(f"video {count} has {sorted(sides)} next to it, the first had {sorted(self.arrays)[1:]}")
        for name, array in {FRAMES: video, **sides}.items():
            self._append(name, np.asarray(array), count)

    def add_failed(self, failed: FailedVideo) -> None:
        """A row without any pixel. Its sum is its own, as no two such rows are the same video."""
        frames = self.arrays[FRAMES]
        row = len(frames.shapes)
        if len(self.arrays) > 1:
            raise DataError(f"video {row} cannot be decoded ({failed.why}), but others have {sorted(self.arrays)[1:]}")
        self.failed[row] = failed
        frames.shapes.append([0, 0, 0, 3])
        frames.sha256.append(hashlib.sha256(f"row {row}: {failed.why}".encode()).hexdigest())

    def _append(self, name: str, array: NDArray[Any], count: int) -> None:
        arrays = self.arrays[name]
        if array.dtype.str != arrays.dtype:
            raise DataError(f"{name} of video {count} is {array.dtype}, that of the first {np.dtype(arrays.dtype)}")
        arrays.shapes.append(list(array.shape))
        arrays.sha256.append(sha256_of(array))
        try:
            self.files[name].write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def close(self) -> None:
        try:
            for file in self.files.values():
                with file:
                    file.flush()
                    os.fsync(file.fileno())  # else after a power cut the index could be there without the pixels
        except OSError as error:
            raise unwritable(self.folder, error) from error

    def finish(self, about: dict[str, Any]) -> None:
        if not self.arrays[FRAMES].shapes:
            raise DataError(f"there is no video to put into {self.folder}")
        index = {"layout": LAYOUT, "about": about, "arrays": {name: asdict(a) for name, a in self.arrays.items()}}
        if self.failed:
            index["failed"] = {str(row): asdict(failed) for row, failed in self.failed.items()}
        self.files = {"index": (self.part / "index.json").open("wb")}
        try:
            self.files["index"].write(json.dumps(index).encode())
        except OSError as error:
            raise unwritable(self.folder, error) from error
        finally:
            self.close()


def file_name(name: str) -> str:
    return "frames.bin" if name == FRAMES else f"side-{name}.bin"


def sha256_of(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data).hexdigest()


def unwritable(folder: Path, error: OSError) -> DataError:
    reason = (error.strerror or type(error).__name__).lower()
    return DataError(f"{folder} cannot be written: {reason}; set VIDVEIL_CACHE to a folder with room")


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unwritable(folder, error) from error


@contextmanager
def store_lock(folder: Path) -> Iterator[None]:
    """Hold the one right to write this store. The system takes it back when the process ends, however it ends."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = open_lock(folder.parent / f".{folder.name}.lock")
    except OSError as error:
        raise unwritable(folder, error) from error
    with lock:
        try:
            with phase(f"waiting for another process that makes {folder.name}"):
                fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError:  # a file system without locks: the rename still keeps half stores from being seen
            yield
            return
        yield
