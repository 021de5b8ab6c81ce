"""The frames of a file with their presentation times, by PyAV or by OpenCV.

    for time, picture in frames_in(path, Part(18.6, 24.8), "av"):
        picture()                                       # (H, W, 3) uint8 RGB; only frames that are used are converted

Times count from the first frame. For a part, the reader seeks to shortly before its start, if the file has an index.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError

if TYPE_CHECKING:
    import av
    from av.video.reformatter import VideoReformatter

Decoder = Literal["av", "opencv"]
Video = NDArray[np.uint8]
Shown = tuple[float, Callable[[], Video]]
"""Time of a frame in seconds, and a function that returns its picture, valid until the next frame is read."""

EARLY = 1.0  # seconds: seeks use decoding times, which are before presentation times
NEAR = 0.0005  # seconds: tolerance for the times of the two decoders


class Part(NamedTuple):
    """A range of a video: from `start` on and before `end`, in seconds."""

    start: float
    end: float


class Length(NamedTuple):
    """Of a video."""

    frames: int
    seconds: float


def frames_in(path: Path, part: Part | None, by: Decoder) -> Iterator[Shown]:
    """All frames of a file, or of a part of it, in the order in which they are shown."""
    shown_from = partial(_by_av if by == "av" else _by_opencv, path)
    if part is None:
        yield from shown_from(0.0)
        return
    shown = shown_from(max(part.start - EARLY, 0.0))
    first = next(shown, None)
    if first is None or first[0] > part.start:  # the index leads too far, or there is none
        shown.close()
        shown, first = shown_from(0.0), None
    for time, picture in chain([first] if first else [], shown):
        if time + NEAR >= part.end:
            return
        if time + NEAR >= part.start:
            yield time, picture


def measure(path: Path, by: Decoder) -> Length:
    """Length of a video without decoding it; packets are counted if the header has no number of frames."""
    return _measured_by_av(path) if by == "av" else _measured_by_opencv(path)


def header_length(path: Path, by: Decoder) -> Length:
    """The length in a header at the start of a file: frames and seconds of an AVI, seconds of a Matroska, else 0.

    An MP4 has the number of frames, too, but its edit list may hide some on purpose, and PyAV opens no truncated one.
    The duration of a Matroska with sound may be that of the sound. OpenCV guesses frames if a header has none.
    """
    if by == "opencv":
        return _measured_by_opencv(path) if path.suffix.lower() == ".avi" else Length(0, 0.0)
    import av

    with _named_errors(path), av.open(str(path), metadata_errors="ignore") as container:
        stream, kind = _stream(container, path), container.format.name
        tick = float(stream.time_base or 0)
        if kind == "avi":  # a tick is a frame, including repeats of a picture that is shown longer
            return Length(stream.frames, stream.frames * tick)
        if "matroska" in kind and len(container.streams) == 1:
            return Length(0, max(_seconds(container, stream) - (stream.start_time or 0) * tick, 0.0))
        return Length(0, 0.0)


def _seconds(container: "av.container.InputContainer", stream: "av.VideoStream") -> float:
    import av

    if stream.duration is not None and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    return container.duration / av.time_base if container.duration is not None else 0.0


def _measured_by_av(path: Path) -> Length:
    import av

    with _named_errors(path), av.open(str(path), metadata_errors="ignore") as container:
        stream = _stream(container, path)
        frames = stream.frames or sum(packet.size > 0 for packet in container.demux(stream))
        guessed = float(frames / stream.average_rate) if stream.average_rate else 0.0
        return Length(frames, _seconds(container, stream) or guessed)


def _measured_by_opencv(path: Path) -> Length:
    reader = _opened(path)
    try:
        rate, frames = reader.get(cv2.CAP_PROP_FPS), int(reader.get(cv2.CAP_PROP_FRAME_COUNT))
        if frames <= 0:
            frames = 0
            while reader.grab():
                frames += 1
        return Length(frames, frames / rate if rate > 0 else 0.0)
    finally:
        reader.release()


def _by_av(path: Path, begin: float) -> Generator[Shown]:
    import av
    from av.video.reformatter import VideoReformatter

    to_rgb = VideoReformatter()  # one for all frames, since its setup is slow
    with _named_errors(path), av.open(str(path), metadata_errors="ignore") as container:
        stream = _stream(container, path)
        stream.thread_type = "NONE"  # `decode_all` decodes files in parallel instead
        zero, tick = stream.start_time or 0, float(stream.time_base or 0)
        if begin and tick:
            container.seek(zero + int(begin / tick), stream=stream)
        for frame in container.decode(stream):
            time = float("nan") if frame.pts is None else (frame.pts - zero) * tick
            yield time, partial(_rgb, path, to_rgb, frame)


def _rgb(path: Path, to_rgb: "VideoReformatter", frame: "av.VideoFrame") -> Video:
    with _named_errors(path):
        picture: Video = to_rgb.reformat(frame, format="rgb24").to_ndarray().astype(np.uint8, copy=False)
    quarters = round(frame.rotation / 90) % 4  # counterclockwise
    return np.rot90(picture, quarters) if quarters else picture


def _stream(container: "av.container.InputContainer", path: Path) -> "av.VideoStream":
    if not container.streams.video:
        raise DataError(f"{path} holds no video")
    return container.streams.video[0]


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    import av

    try:
        yield
    except MemoryError:  # also one of PyAV's errors, but not the file's fault
        raise
    except (av.FFmpegError, OSError, ValueError) as error:
        raise DataError(f"{path} cannot be decoded: it is damaged or no video") from error


def _by_opencv(path: Path, begin: float) -> Generator[Shown]:
    reader = _opened(path)
    try:
        if begin:
            reader.set(cv2.CAP_PROP_POS_MSEC, 1000 * begin)
        number = 0
        while reader.grab():
            yield reader.get(cv2.CAP_PROP_POS_MSEC) / 1000, partial(_retrieved, path, reader, number)
            number += 1
    finally:
        reader.release()


def _opened(path: Path) -> cv2.VideoCapture:
    reader = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
    if not reader.isOpened():
        raise DataError(f"{path} cannot be decoded: OpenCV does not open it")
    reader.set(cv2.CAP_PROP_ORIENTATION_AUTO, 1)
    return reader


def _retrieved(path: Path, reader: cv2.VideoCapture, number: int) -> Video:
    there, picture = reader.retrieve()
    if not there:
        raise DataError(f"{path} cannot be decoded: frame {number} is damaged")
    return np.ascontiguousarray(picture[..., ::-1], dtype=np.uint8)
