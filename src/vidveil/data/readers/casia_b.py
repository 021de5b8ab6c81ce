"""CASIA-B's silhouettes: 124 people walk past eleven cameras ten times, 13,640 walks, each a folder of pictures.

    GaitDatasetB-silh/001/nm-01/000/001-nm-01-000-001.png       person 001-124, condition and repetition, view, frame
                          nm-01 to nm-06                        as they are
                          bg-01, bg-02                          with a bag
                          cl-01, cl-02                          in a coat
                                000, 018, ..., 180              degrees

The first 74 people are the training part, the other 50 test. Validation is every fifth of the 74. nm-01 to nm-04 are
the gallery (tag `gallery`), nm-05 and nm-06 the probe, bg and cl two harder probes (tag `condition`: 0 nm, 1 bg, 2 cl).
`casia_b:all` tests all 124, for protocols that train nothing.

A silhouette is cut at head and foot, made 64 high, and centred on its middle column of 64, as gait recognition does it
and as `casia_a_gait` has it: white on black. Pictures of less than 40 white pixels, before a person enters or after
they left, are skipped.

The published set lacks some walks (person 005 is known for it), and has empty folders for some. A missing folder is no
error. Empty ones are skipped and counted (`videos.about["empty"]`), up to one in fifty: more is a copy that was not
unpacked. Walks whose pictures show nobody are an error that names them.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.core.progress import counted
from vidveil.data.clips import ClipSet
from vidveil.data.decode import WORKERS, read_grey
from vidveil.data.readers.splits import hold_out_people, numbered
from vidveil.data.store.decoded import ensure_room
from vidveil.data.store.videos import VideoStore, cache_folder

FOLDER = "GaitDatasetB-silh"
SIDE = 64
MIN_PIXELS = 40  # white ones of 320 x 240, if a person is in the picture
PEOPLE, TRAINING_PEOPLE = 124, 74
CONDITIONS = {"nm": 6, "bg": 2, "cl": 2}  # repetitions of each
GALLERY = {("nm", number) for number in range(1, 5)}
VIEWS = tuple(f"{18 * i:03d}" for i in range(11))
EMPTY = 50  # one folder in so many may be empty


@dataclass(frozen=True, slots=True)
class Walk:
    path: str
    """`001/nm-01/000`"""
    person: str
    condition: str
    repetition: int
    view: int
    pictures: tuple[tuple[str, int], ...]
    """Names and sizes."""


def load(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    if argument not in (None, "all"):
        raise UsageError(f"casia_b takes all or nothing after a colon, not {argument!r}")
    folder = root / FOLDER
    walks, empty = read_walks(folder)
    people = [walk.person for walk in walks]
    official = ["train" if int(person) <= TRAINING_PEOPLE and not argument else "test" for person in people]
    split = np.array(official)
    if not argument:
        split = hold_out_people("casia_b", people, ["walk"] * len(walks), official)
    return ClipSet(
        name="casia_b:all" if argument else "casia_b",
        videos=_silhouettes(folder, walks, empty),
        ids=[walk.path for walk in walks],
        split=split,
        group=np.array(people),
        action=np.zeros(len(walks), np.int64),
        actions=("walk",),
        person=numbered(people)[0],
        tags={
            "view": np.array([walk.view for walk in walks], np.int64),
            "condition": np.array([list(CONDITIONS).index(walk.condition) for walk in walks], np.int64),
            "repetition": np.array([walk.repetition for walk in walks], np.int64),
            "gallery": np.array([(walk.condition, walk.repetition) in GALLERY for walk in walks], np.int64),
        },
    )


def read_walks(folder: Path) -> tuple[list[Walk], int]:
    """All walks with pictures, in the order of their names, and the number of those without."""
    walks: list[Walk] = []
    empty: list[Walk] = []
    for person in _folders(folder, "a person, 001 to 124", [f"{number:03d}" for number in range(1, PEOPLE + 1)]):
        kinds = [f"{kind}-{number:02d}" for kind, times in CONDITIONS.items() for number in range(1, times + 1)]
        for kind in _folders(person, "nm-01 to nm-06, bg-01, bg-02, cl-01 or cl-02", kinds):
            condition, repetition = kind.name.split("-")
            for view in _folders(kind, "a view, 000, 018 and so on to 180", VIEWS):
                path = f"{person.name}/{kind.name}/{view.name}"
                pictures = _pictures(view)
                walk = Walk(path, person.name, condition, int(repetition), int(view.name), pictures)
                (walks if pictures else empty).append(walk)
    if len(empty) * EMPTY > max(EMPTY, len(walks) + len(empty)) or not walks:
        first = f"{folder / empty[0].path} holds none" if empty else "there is no 001/nm-01/000 or the like"
        raise DataError(
            f"{folder}: {len(empty)} of {len(walks) + len(empty)} walks have no .png, {first}: unpack the set again"
        )
    return walks, len(empty)


def _folders(folder: Path, what: str, known: Sequence[str]) -> list[Path]:
    """The folders in a folder; one that is not known is an error."""
    try:
        found = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
        packed = next(iter(sorted(folder.glob("*.tar.gz"))), None)
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: it should hold folders called {what}") from error
    if packed and packed.name.removesuffix(".tar.gz") not in {path.name for path in found}:
        raise DataError(f"{packed} is still packed: unpack it in {folder}")
    for path in found:
        if path.name not in known:
            raise DataError(
                f"{path} should be {what}, as in {FOLDER}/001/nm-01/000: move what is in it to where it belongs"
            )
    return found


def _pictures(folder: Path) -> tuple[tuple[str, int], ...]:
    try:
        with os.scandir(folder) as entries:
            found = [
                (entry.name, entry.stat().st_size) for entry in entries if re.fullmatch(r"[^.].*\.png", entry.name)
            ]
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: it should hold the pictures of a walk, as .png") from error
    return tuple(sorted(found))


def _silhouettes(folder: Path, walks: Sequence[Walk], empty: int) -> VideoStore:
    listing = hashlib.sha256(json.dumps([[walk.path, walk.pictures] for walk in walks]).encode()).hexdigest()
    about = {"data": "casia_b", "side": SIDE, "walks": len(walks), "empty": empty, "files": listing}
    key = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]

    def make() -> Iterator[NDArray[np.uint8]]:
        ensure_room(sum(len(walk.pictures) for walk in walks) * SIDE * SIDE * 3)
        return _read_all(folder, walks)

    return VideoStore.cached(cache_folder() / f"casia_b-{key}", about, make)


def _read_all(folder: Path, walks: Sequence[Walk]) -> Iterator[NDArray[np.uint8]]:
    """(T, 64, 64, 3) of each. Walks that show nobody are named in one error after all have been read."""
    nobody = []
    workers = min(WORKERS, os.cpu_count() or 1)
    starts = range(0, len(walks), 8 * workers)  # a few at a time, since the disk may be slow
    with ThreadPoolExecutor(workers, thread_name_prefix="vidveil-decode") as pool:
        for start in counted(starts, "reading casia_b", len(starts), "parts"):
            some = walks[start : start + 8 * workers]
            for walk, video in zip(some, pool.map(lambda walk: _read(folder, walk), some), strict=True):
                if len(video):
                    yield video
                else:
                    nobody.append(str(folder / walk.path))
    if nobody:
        more = f" and {len(nobody) - 5} more" if len(nobody) > 5 else ""
        raise DataError(f"nobody is in any picture of {', '.join(nobody[:5])}{more}: remove what shows no walk")


def _read(folder: Path, walk: Walk) -> NDArray[np.uint8]:
    frames = []
    for name, _ in walk.pictures:
        grey = read_grey(folder / walk.path / name, "unpack that walk again")
        if (frame := aligned(grey > 127)) is not None:
            frames.append(frame)
    white = np.array(frames, np.uint8).reshape(-1, SIDE, SIDE, 1) * np.uint8(255)  # (T, 64, 64, 1)
    return np.repeat(white, 3, axis=3)


def aligned(body: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """(64, 64) head at the top, feet at the bottom, half of the body's pixels on either side of the middle.

    None for a picture without a person.
    """
    if np.count_nonzero(body) < MIN_PIXELS:
        return None
    rows = np.flatnonzero(body.any(axis=1))
    body = body[rows[0] : rows[-1] + 1]
    width = max(1, round(body.shape[1] * SIDE / len(body)))
    method = cv2.INTER_AREA if len(body) > SIDE else cv2.INTER_LINEAR
    scaled = np.asarray(cv2.resize(body.astype(np.float32), (width, SIDE), interpolation=method)) >= 0.5
    share = np.cumsum(scaled.sum(axis=0))
    middle = int(np.searchsorted(share, share[-1] / 2))
    around = np.pad(scaled, ((0, 0), (SIDE // 2, SIDE // 2)))  # column x is now x + 32
    return around[:, middle : middle + SIDE]
