"""Curves for TensorBoard, written without its libraries. File names do not contain the name of the machine.

An event file is a sequence of records. A record is

    length: uint64   crc(length): uint32   data   crc(data): uint32         little-endian

with masked CRC-32C. The data are an `Event` of protocol buffers:
wall_time = 1 (double), step = 2, file_version = 3, summary = 5 { value = 1 { tag = 1, simple_value = 2 (float) } },
session_log = 7 { status = 1 }. View them with `tensorboard --logdir runs`.
"""

import struct
from collections.abc import Mapping
from pathlib import Path
from time import time

from vidveil.core.atomic import open_log

DOUBLE, BYTES, FLOAT = 1, 2, 5  # wire types; 0 is a varint


class EventFile:
    """One file of curves. Points of earlier files from `first_step` on are dropped, as after a resumption."""

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        count = sum(1 for _ in folder.glob("events.out.tfevents.*"))
        self._file = open_log(folder / f"events.out.tfevents.{int(time()):010}.{count:04}")
        self._put(_field(3, BYTES, b"brain.Event:2"))
        if first_step:
            self._put(_number(2, first_step) + _field(7, BYTES, _number(1, 1)))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        summary = b"".join(
            _field(1, BYTES, _field(1, BYTES, tag.encode()) + _field(2, FLOAT, struct.pack("<f", value)))
            for tag, value in values.items()
        )
        self._put(_number(2, step) + _field(5, BYTES, summary))

    def close(self) -> None:
        self._file.close()

    def _put(self, event: bytes) -> None:
        data = _field(1, DOUBLE, struct.pack("<d", time())) + event
        length = struct.pack("<Q", len(data))
        self._file.write(length + _checksum(length) + data + _checksum(data))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _field(field: int, wire: int, value: bytes) -> bytes:
    size = _varint(len(value)) if wire == BYTES else b""
    return _varint(field << 3 | wire) + size + value


def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


TABLE = _table()


def _checksum(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
