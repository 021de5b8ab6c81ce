"""Stores of features as the field keeps them: read a few vectors at a time, written again in the same layout.

    HDF5 file         a dataset per video, in groups or not: ActionFormer's ActivityNet, TriDet's HACS   hdf5.py
    folder of .npy    a file per video: (T, D) of ActionFormer and TriDet, (T, 10, D) or (10, T, D) of MGFN
    folder of .npz    the same with a name inside, as `feats` of EPIC-Kitchens                            numpy_files.py
    one .npy or .npz  (N, D)

What other people's code reads by name must stay where it is, so keys, shapes and types are kept. Nothing else is:
labels, names and notes may say who somebody is, so whatever is no array of floating numbers is left out, and its name
is put into `dropped`. A key can name a person too, and is kept: that is for the owner of the store to look at.

The last axis is taken for the features. A store that has them first, as (D, T), shows by its many widths, or by one
that no adapter has; nothing here can tell it otherwise. Vectors are changed in float32, also those kept as float64.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.atomic import new_folder, new_path
from vidveil.core.bounded import is_folder, open_regular, reason, regular
from vidveil.core.errors import DataError, OutputError, UsageError
from vidveil.core.text import printable

HDF5, NPY, NPZ = frozenset({".h5", ".hdf5"}), frozenset({".npy"}), frozenset({".npz"})
LONGEST = 4096
KEPT = (2, 4, 8)  # bytes of the floating types that are kept
Where = tuple[int | slice, ...]


@dataclass(frozen=True, slots=True)
class Item:
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Layout(ABC):
    """A store that was looked through: what is in it is known, none of its numbers is in memory."""

    suffixes: frozenset[str]
    """What such a file is called; of a folder, none."""

    def __init__(self, path: Path, items: Mapping[str, Item], dropped: Sequence[str]) -> None:
        if not items:
            raise DataError(f"{path} holds no features: no array of floating numbers is in it")
        self.path, self._items = path, {key: items[key] for key in sorted(items)}
        self.dropped = tuple(sorted(dropped))
        first = next(iter(self._items))
        self.width = self._items[first].shape[-1]
        if max(map(len, items)) > LONGEST:
            raise DataError(f"{path} has a name of {max(map(len, items)):,} characters: at most {LONGEST} are read")
        for key, item in self._items.items():
            if item.dtype.itemsize not in KEPT:
                raise DataError(f"{path}: {key} is of {item.dtype}: convert it to float32 first")
            if item.shape[-1] == 0:
                raise DataError(f"{path}: {key} has vectors of no numbers: move it away")
            if item.shape[-1] != self.width:
                raise DataError(
                    f"{path}: {first} has vectors of {self.width} numbers, {key} of {item.shape[-1]}: "
                    "a store has one width, so keep those of one encoder only"
                )

    def keys(self) -> Sequence[str]:
        return tuple(self._items)

    def shape(self, key: str) -> tuple[int, ...]:
        return self._items[key].shape

    def dtype(self, key: str) -> np.dtype[Any]:
        return self._items[key].dtype

    def count(self) -> int:
        """Vectors of all items."""
        return sum(math.prod(item.shape[:-1]) for item in self._items.values())

    def vectors(self, key: str, source: Any, where: Where) -> NDArray[np.float32]:
        """(n, D) a copy of one of the `slabs` of an item. Numbers are as they are stored, also NaN."""
        with self._reading(key), np.errstate(over="ignore"):  # too large for float32 is infinite, and refused later
            return np.array(source[where], dtype=np.float32, order="C").reshape(-1, self.width)

    @contextmanager
    def _reading(self, key: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # a damaged file can fail in any way; none of them says more than this
            raise DataError(f"{self.path}: {key} cannot be read, the file is damaged: copy or make it again") from error

    @abstractmethod
    def source(self, key: str) -> Any:
        """What gives the item's numbers when it is sliced."""

    @abstractmethod
    def writer(self, part: Path) -> "Writer":
        """Of a store like this one, at another place."""


class Writer(ABC):
    """Writes the items of a layout in their order, and each from its first vector to its last."""

    @abstractmethod
    def start(self, key: str) -> None: ...

    @abstractmethod
    def put(self, where: Where, vectors: NDArray[Any]) -> None: ...

    @abstractmethod
    def close(self) -> None: ...


def slabs(lead: tuple[int, ...], rows: int) -> Iterator[tuple[Where, slice]]:
    """Cut leading axes into pieces of at most `rows` vectors: where each is in the array, and which these are."""
    if rows < 1:
        raise UsageError(f"{rows} vectors at a time are none")
    if not lead:
        yield (), slice(0, 1)
    if 0 in lead or not lead:
        return
    axis = next(axis for axis in range(len(lead)) if math.prod(lead[axis + 1 :]) <= rows)
    inner = math.prod(lead[axis + 1 :])
    first, step = 0, rows // inner
    for outer in np.ndindex(lead[:axis]):
        for start in range(0, lead[axis], step):
            stop = min(start + step, lead[axis])
            last = first + (stop - start) * inner
            yield (*outer, slice(start, stop)), slice(first, last)
            first = last


def open_layout(path: Path) -> Layout:
    """Whichever layout this is, by what the file begins with: TriDet's HDF5 files of HACS have no suffix."""
    path = Path(path)
    try:
        if is_folder(path):
            return _numpy(path)
        with open_regular(regular(path)) as file:
            head = file.read(8)
    except (OSError, ValueError) as error:
        raise DataError(f"{printable(path, 300)} {reason(error)}") from error
    suffix = path.suffix.lower()
    if head.startswith((b"\x93NUMPY", b"PK\x03\x04")) or suffix in NPY | NPZ:
        return _numpy(path)
    from vidveil.data.store.hdf5 import Hdf5Layout, is_hdf5

    if suffix in HDF5 or is_hdf5(path):
        return Hdf5Layout(path)
    raise DataError(f"{path} is no store of features: give an HDF5 file, a .npy or .npz file, or a folder of those")


def _numpy(path: Path) -> Layout:
    from vidveil.data.store.numpy_files import NumpyLayout

    return NumpyLayout(path)


def rewritten(
    layout: Layout,
    target: Path,
    change: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    *,
    rows: int = 65536,
    overwrite: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> int:
    """Write the store again with `change(vectors)` in the place of its vectors; how many these were.

    `change` takes and gives (n, D), with n at most `rows`, all of one item. The target is there once it is whole; after
    an error or an interruption it is as it was. `progress` gets the number of vectors that are done, and of all.
    """
    target = Path(target).absolute()
    check_target(layout, target, overwrite)
    with _writing(target):
        target.parent.mkdir(parents=True, exist_ok=True)
    place = new_folder if layout.path.is_dir() else new_path
    with ExitStack() as stack:
        with _writing(target):
            part = stack.enter_context(place(target))
        done = _write(layout, part, target, change, rows, progress)
        if not overwrite and os.path.lexists(target):
            raise OutputError(f"{target} was made by another meanwhile: give another name")
        with _writing(target):
            stack.close()
    return done


def _write(
    layout: Layout,
    part: Path,
    target: Path,
    change: Callable[[NDArray[np.float32]], NDArray[np.float32]],
    rows: int,
    progress: Callable[[int, int], None] | None,
) -> int:
    """Everything into the temporary file or folder `part` of the target."""
    keys, total = layout.keys(), layout.count()
    writer, done = None, 0
    try:
        with _writing(target):
            writer = layout.writer(part)
        for key in keys:
            source, pieces = layout.source(key), list(slabs(layout.shape(key)[:-1], rows))
            if bad := sum(int((~np.isfinite(layout.vectors(key, source, where))).sum()) for where, _ in pieces):
                raise DataError(
                    f"{layout.path}: {key} has {bad} values that are NaN, infinite or too large: make it again"
                )
            with _writing(target):
                writer.start(key)
            for where, which in pieces:
                vectors = _changed(layout, key, change, layout.vectors(key, source, where))
                with _writing(target):
                    writer.put(where, vectors)
                done += which.stop - which.start
                if progress:
                    progress(done, total)
        with _writing(target):
            writer.close()
    except BaseException:
        if writer:
            with suppress(Exception):
                writer.close()
        raise
    return done


def _changed(
    layout: Layout, key: str, change: Callable[[NDArray[np.float32]], NDArray[np.float32]], old: NDArray[np.float32]
) -> NDArray[Any]:
    """In the item's own type. float16 ends at 65504: what is beyond would silently become infinite."""
    shape, dtype = old.shape, layout.dtype(key)
    new = np.asarray(change(old))
    if new.shape != shape or new.dtype.kind != "f":
        what = f"{layout.path}: {key} was changed from float32 {shape} to {new.dtype} {new.shape}"
        raise DataError(f"{what}: the method does not fit this store")
    if not np.isfinite(new).all():
        raise DataError(
            f"{layout.path}: {key} was changed to NaN or infinite values: the method does not fit this store"
        )
    with np.errstate(over="ignore"):
        kept = np.ascontiguousarray(new, dtype=dtype)
    if not np.isfinite(kept).all():
        raise DataError(f"{layout.path}: {key} became too large for {dtype}: convert it to float32 first")
    return kept


def check_target(layout: Layout, target: Path, overwrite: bool) -> None:
    """Refuse a name that what is made of the layout must not take."""
    source, there = layout.path.resolve(), target.resolve()
    if source == there or source in there.parents or there in source.parents:
        raise OutputError(f"{target} and its source {layout.path} would be in each other: give another name")
    if os.path.lexists(target):
        if not overwrite:
            raise OutputError(f"{target} exists: give another name, or --overwrite")
        if target.exists() and target.samefile(layout.path):
            raise OutputError(f"{target} is its source {layout.path} by another name: give another name")
        if target.is_dir() != layout.path.is_dir():
            raise OutputError(f"{target} is {'a folder' if target.is_dir() else 'a file'}: give another name")
        other = [file for file in target.rglob("*") if not file.is_dir() and file.suffix.lower() not in NPY | NPZ]
        if other:  # somebody's folder, that a slip of the hand would empty
            raise OutputError(f"{target} holds {other[0].name}, which is no features: give another name")
    if target.suffix.lower() in (HDF5 | NPY | NPZ) - layout.suffixes:
        raise OutputError(f"{target} would be in the layout of {layout.path}: give it a name that says so")


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:  # the second is what HDF5 says of a full disk at times
        number = error.errno if isinstance(error, OSError) else None  # HDF5's own message is several lines long
        reason = (os.strerror(number) if number else type(error).__name__).lower()
        raise OutputError(f"{target} cannot be written: {reason}") from error
