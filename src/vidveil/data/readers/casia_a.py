"""`casia_a_gait`: silhouettes of 20 people walking past from three views, four times each, 64 × 64 at one bit.

    names (240,)    person/view_repetition, such as fyc/45_2
    counts (240,)   frames of each walk
    bits            np.packbits of all frames one after the other

Only motion and shape show the identity. The usual protocol trains nothing: repetitions 1 and 2 are the gallery, 3 and
4 the probe (tag `gallery`), and all clips are test. `casia_a_gait:people` splits by people instead, for attackers that
are trained: 10 people in training, 3 in validation, 7 in test.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.arrays import read_archive
from vidveil.core.bounded import open_regular
from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.splits import numbered
from vidveil.data.store.videos import VideoStore, cache_folder

SIDE = 64
PARTS = ("train",) * 10 + ("val",) * 3 + ("test",) * 7


def load(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    if argument not in (None, "people"):
        raise UsageError(f"casia_a_gait takes people or nothing after a colon, not {argument!r}")
    path = root / "casia_a_gait.npz"
    names, counts, bits, digest = _read(path)
    about = {"data": "casia_a_gait", "sha256": digest}
    folder = cache_folder() / f"casia_a_gait-{digest[:12]}"
    parts = [re.fullmatch(r"([^/]+)/(\d+)_(\d+)", name) for name in names]
    if not all(parts):
        raise DataError(f"{path}: walks are called person/view_repetition, not {names[parts.index(None)]!r}")
    people, views, repetitions = zip(*(part.groups() for part in parts if part), strict=True)
    person, names_of_people = numbered(people)
    split = np.full(len(names), "test", dtype="<U5")
    if argument == "people":
        if len(names_of_people) != len(PARTS):
            raise DataError(f"{path} has {len(names_of_people)} people, {len(PARTS)} are to be split")
        split = np.array(PARTS)[person]
    repetition = np.array(repetitions, np.int64)
    return ClipSet(
        name=f"casia_a_gait:{argument}" if argument else "casia_a_gait",
        videos=VideoStore.cached(folder, about, lambda: _walks(counts, bits)),
        ids=names,
        split=split,
        group=np.array(people),
        action=np.zeros(len(names), np.int64),
        actions=("walk",),
        person=person,
        tags={
            "view": np.array(views, np.int64),
            "repetition": repetition,
            "gallery": (repetition <= 2).astype(np.int64),
        },
    )


def _read(path: Path) -> tuple[list[str], NDArray[np.int64], NDArray[np.uint8], str]:
    try:
        file = read_archive(path)
        names, counts, bits = file["names"], file["counts"].astype(np.int64), file["bits"]
        with open_regular(path) as stored:
            digest = hashlib.file_digest(stored, "sha256").hexdigest()
    except Exception as error:  # a damaged archive can fail in any way
        raise DataError(f"{path} cannot be read: it should hold names, counts and bits") from error
    if names.ndim != 1 or names.dtype.kind != "U" or counts.ndim != 1 or bits.dtype != np.uint8:
        raise DataError(f"{path} is damaged: it should hold names, counts and bits")
    if len(names) != len(counts) or counts.min(initial=1) < 1 or counts.sum() * SIDE * SIDE != 8 * bits.size:
        raise DataError(f"{path} is damaged: its names, counts and bits do not fit together")
    return names.tolist(), counts, bits, digest


def _walks(counts: NDArray[np.int64], bits: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
    """White on black, (T, 64, 64, 3)."""
    frame = SIDE * SIDE // 8
    ends = np.cumsum(counts) * frame
    for count, end in zip(counts, ends, strict=True):
        grey = np.unpackbits(bits[end - count * frame : end]).reshape(count, SIDE, SIDE, 1) * np.uint8(255)
        yield np.repeat(grey, 3, axis=3)
