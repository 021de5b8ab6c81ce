"""Which cells of a cell array in a .mat file (MATLAB's level 5, versions 5 to 7) hold anything but zeros.

    nonzero_cells(path, "volLabel")       # (T,) bool: whether the mask of each frame has any pixel

Only the needed part of the format is read: a header of 128 bytes, then elements of a type, a length and that many
bytes, which may be compressed. A matrix is an element that holds its flags, its dimensions, its name, and then its
numbers or, for a cell array, matrices. The type of the numbers does not matter: zero is all bytes zero in each.
"""

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.bounded import read_bytes, reason
from vidveil.core.errors import DataError

HEADER = 128
MATRIX, COMPRESSED = 14, 15
CELL, NUMBERS = 1, range(6, 16)  # classes of matrices: double, single and integers
MOST = 1 << 32  # bytes of a file, and of one variable: more is no set of masks


def nonzero_cells(path: Path, variable: str) -> NDArray[np.bool_]:
    """(T,)"""
    try:
        data = read_bytes(path, MOST)
    except (OSError, ValueError) as error:
        raise DataError(f"{path} {reason(error)}") from error
    if data[:10] == b"MATLAB 7.3" or data[:4] == b"\x89HDF":
        raise DataError(f"{path} is of MATLAB 7.3, which is not read: save it there by save('{path.name}', '-v7')")
    if len(data) < HEADER or data[126:128] != b"IM":  # IM: the lowest byte first
        raise DataError(f"{path} is no .mat file of MATLAB 5 to 7: take it from the set again")
    try:
        for kind, body in _elements(memoryview(data)[HEADER:]):
            name, number, parts = _matrix(_inflated(body) if kind == COMPRESSED else body)
            if name == variable and number == CELL:
                return np.array([_any(cell) for kind, cell in parts if kind == MATRIX], bool)
    except (ValueError, IndexError, StopIteration, zlib.error) as error:
        raise DataError(f"{path} is damaged: take it from the set again") from error
    raise DataError(f"{path} has no cell array {variable!r}: take it from the set again")


def _elements(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Type and bytes, one element after the other."""
    place = 0
    while place < len(data):
        kind, length = int.from_bytes(data[place : place + 4], "little"), data[place + 4 : place + 8]
        if kind >> 16:  # of four bytes at most: length, type and bytes in eight
            start, size, kind, step = place + 4, kind >> 16, kind & 0xFFFF, 8
        else:
            start, size = place + 8, int.from_bytes(length, "little")
            step = 8 + size if kind == COMPRESSED else 8 + -(-size // 8) * 8  # padded to eight, if not compressed
        if start + size > len(data):
            raise ValueError("it ends in the middle")
        yield kind, data[start : start + size]
        place += step


def _inflated(data: memoryview) -> memoryview:
    """The one matrix in a compressed element."""
    inflate = zlib.decompressobj()
    kind, body = next(_elements(memoryview(inflate.decompress(data, MOST))))
    if kind != MATRIX or inflate.unconsumed_tail:
        raise ValueError("it is no matrix, or too large")
    return body


def _matrix(data: memoryview) -> tuple[str, int, Iterator[tuple[int, memoryview]]]:
    """Name, class, and the elements with its content."""
    parts = _elements(data)
    flags, _dimensions, name = next(parts)[1], next(parts)[1], next(parts)[1]
    return bytes(name).decode("ascii"), flags[0], parts


def _any(data: memoryview) -> bool:
    """Whether a matrix holds any number but 0; an empty one does not."""
    if not len(data):
        return False
    _, number, parts = _matrix(data)
    if number not in NUMBERS:
        raise ValueError("a cell holds something else than numbers")
    return any(np.frombuffer(body, np.uint8).any() for _, body in parts)
