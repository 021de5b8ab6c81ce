"""NumPy files, read within limits: what a header claims is checked against the size of the file."""

import math
import zipfile
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from vidveil.core.bounded import check_expansion, open_regular, regular

PACKED = 20
"""All arrays of an archive together are at most so many times as large as the archive, or a gigabyte."""


class ObjectsError(ValueError):
    """Arrays of Python objects, which are programs."""


def read_header(stored: IO[bytes], size: int) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of the array that begins here. ValueError if `size` bytes are too few for it."""
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(npy.read_magic(stored))
    if read is None:
        raise ValueError("is of an unknown version")
    try:
        shape, _, dtype = read(stored)
    except TokenError as error:  # NumPy looks for Python 2's numbers in what it cannot parse
        raise ValueError("has a damaged header") from error
    if dtype.hasobject:
        raise ObjectsError("holds Python objects, which are programs; save it as an array of numbers")
    if any(type(side) is not int or side < 0 for side in shape):
        raise ValueError("has a shape that makes no sense")
    if size - stored.tell() < math.prod(shape) * dtype.itemsize:
        raise ValueError("is cut short")
    return shape, dtype


def read_array(path: Path) -> NDArray[Any]:
    """The array of a .npy file, in memory. OSError or ValueError."""
    with open_regular(regular(path)) as file:
        read_header(file, path.stat().st_size)
        file.seek(0)
        found: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return found


def read_archive(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of a .npz file. OSError, ValueError or what zipfile raises."""
    with open_regular(path) as file, zipfile.ZipFile(file) as zipped:
        members = zipped.infolist()
        check_expansion(sum(member.file_size for member in members), path.stat().st_size, PACKED)
        found: dict[str, NDArray[Any]] = {}
        for member in members:
            with zipped.open(member) as stored:
                read_header(stored, member.file_size)
            with zipped.open(member) as stored:
                found[member.filename.removesuffix(".npy")] = npy.read_array(stored, allow_pickle=False)
    return found
