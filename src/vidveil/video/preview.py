"""Original and anonymized side by side, to judge a method by eye.

A preview shows what must not be shown: it is for whoever holds the original, never for sharing.
"""

from collections.abc import Callable
from pathlib import Path

import av
import numpy as np

from vidveil.video.frame import Frame, SafeFrame, plane_views
from vidveil.video.read import Reader
from vidveil.video.write import CRF, PRESET, Mp4Writer


class PreviewWriter:
    """Takes each original as it is read and each anonymized frame as it is written, and pairs them by their index."""

    def __init__(
        self, path: Path, reader: Reader, keeps: Callable[[int], bool], *, preset: str = PRESET, crf: int = CRF
    ) -> None:
        self._reader = reader
        self._keeps = keeps
        self._writer = Mp4Writer(path, reader, preset=preset, crf=crf)
        self._originals: dict[int, SafeFrame] = {}  # no more than are on their way between reader and writer

    def remember(self, frame: Frame) -> None:
        if not self._keeps(frame.index):
            return  # nobody will ask for it
        self._originals[frame.index] = frame.as_it_is() if frame.picture is not None else frame.black(frame.lost)

    def write(self, frame: SafeFrame) -> None:
        self._writer.write(self._pair(self._originals.pop(frame.index), frame))

    def finish(self) -> None:
        self._writer.finish()

    def abort(self) -> None:
        self._writer.abort()

    def _pair(self, original: SafeFrame, safe: SafeFrame) -> SafeFrame:
        assert original.picture is not None
        assert safe.picture is not None
        width, height = safe.picture.width, safe.picture.height
        matrix = self._reader.matrix
        turned = matrix is not None and abs(matrix[1]) > abs(matrix[0])  # shown turned: one above the other as stored
        size = (width, 2 * height) if turned else (2 * width, height)
        picture = av.VideoFrame(*size, "yuv420p")
        parts = zip(
            plane_views(picture, *size),
            plane_views(original.picture, width, height),
            plane_views(safe.picture, width, height),
            strict=True,
        )
        for target, left, right in parts:
            np.concatenate([left, right], axis=0 if turned else 1, out=target)
        return SafeFrame(
            index=safe.index,
            pts=safe.pts,
            duration=safe.duration,
            width=size[0],
            height=size[1],
            full_range=safe.full_range,
            picture=picture,
        )
