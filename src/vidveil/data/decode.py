"""Video files to arrays, by PyAV or, if that is not installed, by OpenCV.

    decode("clip.mp4", short_side=128, every=2, limit=96)      # (T, H, W, 3) uint8 RGB, the right way up
    decode("film.mp4#t=18.6,24.8")                             # frames shown from 18.6 s on and before 24.8 s
    decode("film.mp4", spread=96)                              # 96 frames, evenly from the first to the last

A part is written as a W3C media fragment. Its frames are selected by their times, counted from the first one, so that
videos of variable rate are cut correctly.

For datasets only: `vidveil anonymize` reads by `vidveil.video`, which loses no frame and fails closed.
`VIDVEIL_DECODER=av` or `opencv` chooses. The two agree to a few grey levels, not exactly, so they have separate caches.
"""

import os
import re
import sys
from collections import deque
from collections.abc import Container, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.core.progress import counted
from vidveil.data.frame_readers import Decoder, Length, Part, Video, frames_in, header_length, measure
from vidveil.data.store.files import FailedVideo

WORKERS = 8  # files at once, at most: decoding releases the GIL
TOLERATED = 0.05  # share of the frames in the header that may be missing: old files are often off by a few
PART = re.compile(r"(.+)#t=(\d+(?:\.\d+)?),(\d+(?:\.\d+)?)")


def decoder() -> Decoder:
    """The decoder that will be used."""
    chosen = os.environ.get("VIDVEIL_DECODER", "")
    if chosen not in ("", "av", "opencv"):
        raise UsageError(f"VIDVEIL_DECODER is av or opencv, not {chosen!r}")
    if chosen == "opencv":
        return "opencv"
    if find_spec("av"):
        return "av"
    if chosen == "av":
        raise UsageError("VIDVEIL_DECODER asks for PyAV, which is not installed: pip install av")
    return "opencv"


def part_of(path: Path | str) -> tuple[Path, Part | None]:
    """The file and the part of `film.mp4#t=18.6,24.8`; None for the whole file."""
    if not (match := PART.fullmatch(str(path))):
        return Path(path), None
    part = Part(float(match[2]), float(match[3]))
    if part.start >= part.end:
        raise DataError(f"{path} ends before it begins: a part is #t=START,END in seconds")
    return Path(match[1]), part


def decode(
    path: Path | str,
    *,
    short_side: int | None = None,
    every: int = 1,
    limit: int | None = None,
    spread: int | None = None,
    by: Decoder | None = None,
) -> Video:
    """Frames 0, `every`, 2 `every`, ... of a file or of a part of it, at most `limit`, as (T, H, W, 3) uint8 RGB.

    Args:
        short_side: larger pictures are shrunk to it, by averaging; smaller ones stay as they are.
        spread: instead of `every` and `limit`: this many frames of the whole file, evenly from the first to the last;
            all frames of a shorter file.
    """
    by = by or decoder()
    file, part = part_of(path)
    if not file.is_file():
        raise DataError(f"{file} is not there")
    if not file.stat().st_size:
        raise DataError(f"{file} cannot be decoded: it is empty")
    places: Container[int] = range(0, sys.maxsize, every)
    if spread is not None:
        if part:
            raise UsageError(f"{path}: frames are spread over whole files, not over parts")
        places = spread_over(measure(file, by).frames, spread)
        limit = len(places)
    frames: list[Video] = []
    found = Length(0, 0.0)
    for number, (time, picture) in enumerate(frames_in(file, part, by)):
        if number in places:
            frames.append(fitted(picture(), short_side))
            if len(frames) == limit:
                break
        found = Length(number + 1, time)
    else:
        if frames and part is None:
            _refuse_broken_off(file, found, by)
    if not frames:
        raise DataError(f"{path} holds no picture that can be decoded" + (", or ends before that" if part else ""))
    if len({frame.shape for frame in frames}) > 1:
        raise DataError(f"{path} changes its size in the middle")
    return np.stack(frames)


def _refuse_broken_off(file: Path, found: Length, by: Decoder) -> None:
    """A truncated file with its header in front decodes without any error up to its end: compare with the header."""
    header = header_length(file, by)
    rest = 3 * found.seconds / max(found.frames - 1, 1)  # how long the last frames are shown
    short = found.seconds + rest < (1 - TOLERATED) * header.seconds
    few = found.frames < header.frames - max(2, TOLERATED * header.frames)
    if not short or (header.frames and not few) or (found.frames == 1 and not header.frames):
        return
    missing = (
        f"{found.frames:,} of {header.frames:,} frames"
        if header.frames
        else f"{found.seconds:.3g} of {header.seconds:.3g} s"
    )
    raise DataError(f"{file} cannot be decoded: it breaks off after {missing}")


def spread_over(total: int, count: int) -> frozenset[int]:
    """Indices of `count` of `total` frames, evenly from the first to the last."""
    return frozenset(np.linspace(0, total - 1, min(count, total)).round().astype(int).tolist())


def decode_all(
    paths: Sequence[Path],
    *,
    short_side: int | None = None,
    every: int = 1,
    limit: int | None = None,
    spread: int | None = None,
    title: str = "decoding",
) -> Iterator[Video | FailedVideo]:
    """Many files, in order, several in parallel but never more than a few in memory.

    A file that can be read but not decoded gives `FailedVideo`. One that cannot be read is an error.
    """
    by = decoder()  # the same for all files of a set

    def one(path: Path) -> Video | FailedVideo:
        try:
            return decode(path, short_side=short_side, every=every, limit=limit, spread=spread, by=by)
        except DataError as error:
            return _failed(path, error)

    workers = min(WORKERS, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers, thread_name_prefix="vidveil-decode") as pool:
        waiting: deque[Future[Video | FailedVideo]] = deque()
        try:
            for path in counted(paths, title, len(paths), "videos"):
                waiting.append(pool.submit(one, path))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # after an error, do not wait for the rest
                future.cancel()


def _failed(path: Path, error: DataError) -> FailedVideo:
    """`FailedVideo` if all bytes of the file can be read; otherwise the disk or the system failed, which is raised."""
    file, _ = part_of(path)
    try:
        stamp = file.stat().st_ctime_ns
        with file.open("rb") as content:
            while content.read(1 << 20):
                pass
    except OSError as trouble:
        raise DataError(f"{file} cannot be read: {(trouble.strerror or 'no reason is given').lower()}") from trouble
    message = str(error).removeprefix(f"{path} ").removeprefix(f"{file} ")
    return FailedVideo(message.removeprefix("cannot be decoded: "), stamp)


def fitted(picture: Video, short_side: int | None) -> Video:
    height, width = picture.shape[:2]
    shorter = min(height, width)
    if short_side is None or shorter <= short_side:
        return picture
    size = round(width * short_side / shorter), round(height * short_side / shorter)
    return cv2.resize(np.ascontiguousarray(picture), size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)


def read_grey(path: Path, advice: str) -> NDArray[np.uint8]:
    """(H, W) of a picture."""
    grey = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if grey is None:
        raise DataError(f"{path} is no picture that can be read: {advice}")
    return grey.astype(np.uint8, copy=False)
