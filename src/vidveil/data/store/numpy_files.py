"""Features in .npy and .npz files, one or a folder of them."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from vidveil.core.arrays import PACKED, ObjectsError, read_header
from vidveil.core.bounded import check_expansion, open_regular, reason, regular
from vidveil.core.errors import DataError
from vidveil.data.store.layouts import NPY, NPZ, Item, Layout, Where, Writer


class NumpyLayout(Layout):
    """A .npy or .npz file, or a folder of them, however deep. Of .npz files one array at a time is in memory."""

    def __init__(self, path: Path) -> None:
        self.folder = path.is_dir()
        self.suffixes = frozenset() if self.folder else NPZ if _zipped(path) else NPY
        self.places: dict[str, tuple[str, zipfile.ZipInfo | None]] = {}
        items, dropped = {}, []
        for file in sorted(path.rglob("*")) if self.folder else [path]:
            name = file.relative_to(path).as_posix() if self.folder else ""
            if self.folder and file.suffix.lower() not in NPY | NPZ:
                if file.is_symlink() or not file.is_dir():
                    dropped.append(name)
                continue
            for member, item in _look_into(file):
                inside = member.filename.removesuffix(".npy") if member else ""
                key = "/".join(filter(None, (name, inside))) or path.name
                if item and item.dtype.kind == "f" and item.shape:
                    items[key], self.places[key] = item, (name, member)
                else:
                    dropped.append(key)
        super().__init__(path, items, dropped)

    def source(self, key: str) -> Any:
        name, member = self.places[key]
        with self._reading(key):
            file = regular(self.path / name)
            if member is None:
                return npy.open_memmap(file, mode="r")
            with zipfile.ZipFile(file) as zipped, zipped.open(member) as stored:
                return npy.read_array(stored, allow_pickle=False)

    def writer(self, part: Path) -> Writer:
        return _NumpyWriter(self, part)


class _RefusedError(Exception):
    """Why, for the person who trusted the file."""


def _zipped(file: Path) -> bool:
    """By its beginning. `zipfile` would look near the end, where a vector can look like the mark of an archive."""
    with open_regular(file) as stored:
        return stored.read(4) == b"PK\x03\x04"


def _look_into(file: Path) -> Iterator[tuple[zipfile.ZipInfo | None, Item | None]]:
    """What arrays the file says it has, if it is long enough for them."""
    try:
        if not _zipped(file):
            with open_regular(regular(file)) as stored:
                yield None, Item(*read_header(stored, file.stat().st_size))
            return
        with zipfile.ZipFile(file) as zipped:
            for member in zipped.infolist():
                try:
                    check_expansion(member.file_size, file.stat().st_size, PACKED)
                except ValueError as error:
                    raise _RefusedError(f"{member.filename} {error}") from None
                with zipped.open(member) as stored:
                    item = Item(*read_header(stored, member.file_size)) if member.filename.endswith(".npy") else None
                yield member, item
    except (ObjectsError, _RefusedError) as error:
        raise DataError(f"{file} is refused: it {error}") from None
    except PermissionError as error:
        raise DataError(f"{file} cannot be read: permission denied") from error
    except OSError as error:
        raise DataError(f"{file} {reason(error)}") from error
    except Exception as error:  # a damaged file can fail in any way; none of them says more than this
        raise DataError(f"{file} is damaged or no file of numpy arrays: copy or make it again") from error


class _NumpyWriter(Writer):
    """Bytes one after the other: a full disk is an error then, where a mapped file would end the process."""

    def __init__(self, layout: NumpyLayout, part: Path) -> None:
        self.layout, self.part = layout, part
        self.file: IO[bytes] | None = None
        self.zipped: zipfile.ZipFile | None = None

    def start(self, key: str) -> None:
        name, member = self.layout.places[key]
        path = self.part / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if self.zipped and member and self.zipped.filename == str(path):
            self._end_array()
        else:
            self.close()
        if member is None:
            self.file = path.open("wb")
        else:
            self.zipped = self.zipped or zipfile.ZipFile(path, "w")
            info = zipfile.ZipInfo(member.filename)
            info.compress_type = member.compress_type
            self.file = self.zipped.open(info, "w", force_zip64=True)
        descr, shape = npy.dtype_to_descr(self.layout.dtype(key)), self.layout.shape(key)
        npy.write_array_header_1_0(self.file, {"descr": descr, "fortran_order": False, "shape": shape})

    def put(self, where: Where, vectors: NDArray[Any]) -> None:  # noqa: ARG002 - they come in the order of the file
        assert self.file
        self.file.write(vectors.reshape(-1).view(np.uint8).data)

    def _end_array(self) -> None:
        file, self.file = self.file, None
        if file:
            file.close()

    def close(self) -> None:
        self._end_array()
        zipped, self.zipped = self.zipped, None
        if zipped:
            zipped.close()
