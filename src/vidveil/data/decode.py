"""Video files to arrays, by PyAV or, where that is not installed, by OpenCV.

    decode("clip.mp4", short_side=128, every=2, limit=96)      # (T, H, W, 3) uint8 RGB, the right way up

For datasets only: what is shown to people goes through `vidveil.video`, which loses no frame and fails closed.
`VIDVEIL_DECODER=av` or `opencv` chooses. The two agree to a few grey levels, not to the bit, so caches are kept apart.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.errors import DataError, UsageError

Decoder = Literal["av", "opencv"]
Video = NDArray[np.uint8]
T = TypeVar("T")

WORKERS = 8  # files at once, at most: decoding leaves Python's lock alone


def decoder() -> Decoder:
    """Which one will be used."""
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


def decode(
    path: Path | str,
    *,
    short_side: int | None = None,
    every: int = 1,
    limit: int | None = None,
    by: Decoder | None = None,
) -> Video:
    """Frames 0, `every`, 2 `every`, ... of a file, `limit` of them at most, (T, H, W, 3) uint8 RGB.

    Args:
        short_side: pictures larger than that are made smaller, by averaging; smaller ones stay as they are.
    """
    path = Path(path)
    if not path.is_file():
        raise DataError(f"{path} is not there")
    pictures = (_by_av if (by or decoder()) == "av" else _by_opencv)(path, every)
    frames = [_fit(picture, short_side) for picture in islice(pictures, limit)]
    if not frames:
        raise DataError(f"{path} holds no picture that can be decoded")
    if len({frame.shape for frame in frames}) > 1:
        raise DataError(f"{path} changes its size in the middle")
    return np.stack(frames)


def decode_all(
    paths: Sequence[Path],
    *,
    short_side: int | None = None,
    every: int = 1,
    limit: int | None = None,
    title: str = "decoding",
) -> Iterator[Video]:
    """Many files, in order, several at a time but never more than a few in memory; with a bar on a terminal."""
    by = decoder()  # asked once, so that one set is never decoded by both

    def one(path: Path) -> Video:
        return decode(path, short_side=short_side, every=every, limit=limit, by=by)

    workers = min(WORKERS, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers, thread_name_prefix="vidveil-decode") as pool:
        waiting: deque[Future[Video]] = deque()
        try:
            for path in with_bar(paths, len(paths), title):
                waiting.append(pool.submit(one, path))
                if len(waiting) > 2 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:  # after an error the rest is not worth the wait
                future.cancel()


def with_bar(items: Iterable[T], total: int, title: str) -> Iterator[T]:
    """The items, with a bar and the time left on stderr if that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if not console.is_terminal:
        return iter(items)
    return iter(track(items, title, total, console=console, transient=True))


def _by_av(path: Path, every: int) -> Iterator[Video]:
    import av
    from av.video.reformatter import VideoReformatter

    to_rgb = VideoReformatter()  # one for all frames: setting it up takes longer than using it
    try:
        with av.open(str(path), metadata_errors="ignore") as container:
            if not container.streams.video:
                raise DataError(f"{path} holds no video")
            stream = container.streams.video[0]
            stream.thread_type = "NONE"  # files side by side, see `decode_all`
            for number, frame in enumerate(container.decode(stream)):
                if number % every == 0:
                    picture: Video = to_rgb.reformat(frame, format="rgb24").to_ndarray().astype(np.uint8, copy=False)
                    quarters = round(frame.rotation / 90) % 4  # counterclockwise
                    yield np.rot90(picture, quarters) if quarters else picture
    except (av.FFmpegError, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be decoded: it is damaged or no video") from error


def _by_opencv(path: Path, every: int) -> Iterator[Video]:
    reader = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    try:
        if not reader.isOpened():
            raise DataError(f"{path} cannot be decoded: OpenCV does not open it")
        reader.set(cv2.CAP_PROP_ORIENTATION_AUTO, 1)
        number = 0
        while reader.grab():
            if number % every == 0:
                there, picture = reader.retrieve()
                if not there:
                    raise DataError(f"{path} cannot be decoded: frame {number} is damaged")
                yield np.ascontiguousarray(picture[..., ::-1], dtype=np.uint8)
            number += 1
    finally:
        reader.release()


def _fit(picture: Video, short_side: int | None) -> Video:
    height, width = picture.shape[:2]
    shorter = min(height, width)
    if short_side is None or shorter <= short_side:
        return picture
    size = round(width * short_side / shorter), round(height * short_side / shorter)
    return cv2.resize(np.ascontiguousarray(picture), size, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
