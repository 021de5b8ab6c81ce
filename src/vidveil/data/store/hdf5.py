"""Features in an HDF5 file: any nesting of groups, and in it a dataset per video, of shape (n, D), (D,), (n, crops, D).

An HDF5 file can hold anything, and point to anything. Kept are datasets of floating numbers, by their paths, with their
chunks and compression. Left out and named in `dropped` are all other datasets, every attribute (as `path@name`), links
that are only names of something else, and groups without anything in them: each could tell who somebody is.
"""

import io
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import h5py
from numpy.typing import NDArray

from vidveil.core.bounded import ExpansionError, check_expansion, on_disk
from vidveil.core.errors import DataError
from vidveil.data.store.layouts import HDF5, Item, Layout, Where, Writer

COMPRESSIONS = ("gzip", "lzf")  # that every reader of HDF5 has
MOST_CHUNK = 1 << 30  # bytes: a chunk is unpacked as a whole


def is_hdf5(path: Path) -> bool:
    return bool(h5py.is_hdf5(path))


class Hdf5Layout(Layout):
    suffixes = HDF5

    def __init__(self, path: Path) -> None:
        try:
            self.file = h5py.File(path, "r", locking="best-effort")
            found = _Found(path, self.file)
            size = sum(math.prod(item.shape) * item.dtype.itemsize for item in found.items.values())
            check_expansion(size, on_disk(path.stat()))
        except DataError:
            raise
        except ExpansionError as error:
            raise DataError(f"{path} {error}") from error
        except Exception as error:  # a damaged file can fail in any way; none of them says more than this
            raise DataError(f"{path} is damaged or no HDF5 file: copy or make it again") from error
        super().__init__(path, found.items, found.dropped)

    def source(self, key: str) -> Any:
        with self._reading(key):
            return self.file[key]

    def writer(self, part: Path) -> Writer:
        return _Hdf5Writer(self, part)


class _Found:
    """What a walk through all groups met."""

    def __init__(self, path: Path, root: Any) -> None:
        self.path = path
        self.items: dict[str, Item] = {}
        self.dropped: list[str] = []
        self.groups: set[Any] = set()  # a group can be inside of itself
        self._visit("", root)

    def _visit(self, key: str, thing: Any) -> None:
        self.dropped += [f"{key}@{name}" for name in thing.attrs]
        if isinstance(thing, h5py.Dataset):
            self._dataset(key, thing)
        elif isinstance(thing, h5py.Group) and thing not in self.groups and (len(thing) or not key):
            self.groups.add(thing)
            for name in thing:
                inner = f"{key}/{name}".lstrip("/")
                if isinstance(thing.get(name, getlink=True), h5py.HardLink):
                    self._visit(inner, thing[name])
                else:
                    self.dropped.append(inner)
        else:
            self.dropped.append(key)

    def _dataset(self, key: str, dataset: Any) -> None:
        try:
            dtype = dataset.dtype
        except TypeError:  # a type that numpy does not have
            dtype = None
        if dtype is None or dtype.kind != "f" or not dataset.shape:
            self.dropped.append(key)
            return
        if dataset.is_virtual or dataset.external:  # without that file it reads as zeros, and it could be any file
            raise DataError(f"{self.path}: {key} keeps its numbers in another file: copy them into this one first")
        if dataset.chunks and math.prod(dataset.chunks) * dtype.itemsize > MOST_CHUNK:
            raise DataError(
                f"{self.path}: {key} is in chunks of more than {MOST_CHUNK:,} bytes: write it in smaller ones"
            )
        self.items[key] = Item(tuple(dataset.shape), dtype)


class _Sink(io.FileIO):
    """A file that HDF5 can always write to, as the library crashes on what it could not write when that is freed.

    So an error, as of a full disk, is kept for the writer to raise, and from then on nothing is written.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        left = memoryview(data).cast("B")
        try:
            while len(left) and not self.error:
                left = left[super().write(left) :]
        except OSError as error:
            self.error = error
        return len(data)

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0


class _Hdf5Writer(Writer):
    """Writes in a thread of its own: an interruption comes to the main one only, so never into the midst of HDF5."""

    def __init__(self, layout: Hdf5Layout, part: Path) -> None:
        self.layout, self.part = layout, part
        self.sink: _Sink | None = None
        self.file: Any = None
        self.dataset: Any = None
        self.aside = ThreadPoolExecutor(1, "hdf5")
        try:
            self._do(self._open)
        except BaseException:
            self.close()
            raise

    def start(self, key: str) -> None:
        self._do(self._start, key)

    def put(self, where: Where, vectors: NDArray[Any]) -> None:
        self._do(self._put, where, vectors)

    def close(self) -> None:
        self._do(self._close)
        self.aside.shutdown()

    def _do(self, work: Callable[..., None], *what: Any) -> None:
        self.aside.submit(work, *what).result()
        if self.sink and self.sink.error:
            raise self.sink.error

    def _open(self) -> None:
        self.sink = _Sink(self.part)
        self.file = h5py.File(self.sink, "w")

    def _start(self, key: str) -> None:
        old = self.layout.source(key)
        packed: dict[str, Any] = {}
        if old.chunks:  # asked for any of these, h5py would cut what is in one piece too
            packed = {
                "chunks": old.chunks,
                "maxshape": old.maxshape,
                "shuffle": old.shuffle,
                "fletcher32": old.fletcher32,
            }
        if old.compression in COMPRESSIONS:
            packed |= {"compression": old.compression, "compression_opts": old.compression_opts}
        self.dataset = self.file.create_dataset(key, shape=old.shape, dtype=old.dtype, **packed)

    def _put(self, where: Where, vectors: NDArray[Any]) -> None:
        shape = self.dataset.shape
        self.dataset[where] = vectors.reshape((-1, *shape[len(where) :]) if where else shape)

    def _close(self) -> None:
        self.dataset = None
        if self.file:
            self.file.close()
        if self.sink:
            self.sink.close()
