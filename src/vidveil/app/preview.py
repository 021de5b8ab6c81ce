"""Original and anonymized side by side, to compare them by eye; and why a learned method hid what it hid.

Both show what must not be shown: they are for whoever holds the original, never for sharing.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Box, Frame, Plane, SafeFrame, plane_views
from vidveil.core.rotation import Rotation, turn_of
from vidveil.methods.learned.cells import rectangles
from vidveil.video.probe import PREVIEW
from vidveil.video.read import Reader
from vidveil.video.write import Mp4Writer
from vidveil.video.x264 import CRF, PRESET

WHITE, BLACK = 235, 16


class PreviewWriter:
    """Takes each original as it is read and each anonymized frame as it is written, and pairs them by their index."""

    def __init__(
        self, path: Path, reader: Reader, keeps: Callable[[int], bool], *, preset: str = PRESET, crf: int = CRF
    ) -> None:
        self._reader = reader
        self._keeps = keeps
        self._writer = Mp4Writer(path, reader, preset=preset, crf=crf, comment=PREVIEW)
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
        luma = plane_views(picture, *size)[0][:height, :width]
        for region in safe.regions or ():
            if region.box is not None:
                _outline(luma, turn_of(safe).stored(region.box), f"{region.track}", turn_of(safe))
        return SafeFrame(
            index=safe.index,
            pts=safe.pts,
            duration=safe.duration,
            width=size[0],
            height=size[1],
            full_range=safe.full_range,
            picture=picture,
        )


class HeatmapWriter(PreviewWriter):
    """What a learned method looked at, mostly the original, under its scores: red stays longest, blue goes first,
    hatched is hidden."""

    def _pair(self, original: SafeFrame, safe: SafeFrame) -> SafeFrame:
        if safe.heat is not None and safe.heat.under is not None:
            original = safe.heat.under
        assert original.picture is not None
        width, height = original.picture.width, original.picture.height
        planes = plane_views(original.picture, width, height)
        if safe.heat is not None:
            level = (safe.heat.worth * 255).astype(np.uint8)
            for colours, plane, share in zip(_heat_colours(), planes, (0.4, 0.8, 0.8), strict=True):
                drawn = _cells(colours[level], *plane.shape)
                cv2.addWeighted(drawn, share, plane, 1 - share, 0, dst=drawn)
                np.copyto(plane, drawn)
        kept = np.zeros((1, 1), bool) if safe.heat is None else safe.heat.kept
        hatched = _hatching(height, width)
        for top, bottom, left, right in rectangles(kept, original.width, original.height):
            part = slice(top, bottom), slice(left, right)
            planes[0][part][hatched[part]] = BLACK
        original.duration = safe.duration  # longer where frames are left out
        return original


@cache
def _heat_colours() -> tuple[Plane, Plane, Plane]:
    """Y, U and V of 256 colours from blue to red."""
    scale = cv2.applyColorMap(np.arange(256, dtype=np.uint8)[:, None], cv2.COLORMAP_TURBO)
    y, v, u = cast(Plane, cv2.cvtColor(scale, cv2.COLOR_BGR2YCrCb))[:, 0].T
    return y, u, v


@lru_cache(4)
def _hatching(height: int, width: int) -> NDArray[np.bool_]:
    rows, columns = np.ogrid[:height, :width]
    lines: NDArray[np.bool_] = (rows + columns) % 8 < 2
    return lines


def _cells(cells: Plane, height: int, width: int) -> Plane:
    """A small picture drawn large, its pixels as blocks, also where they are no whole number of pixels."""
    rows = (2 * np.arange(height) + 1) * cells.shape[0] // (2 * height)
    columns = (2 * np.arange(width) + 1) * cells.shape[1] // (2 * width)
    drawn: Plane = cells[rows[:, None], columns]
    return drawn


def _outline(luma: Plane, box: Box, number: str, turn: Rotation) -> None:
    """A white frame around a box, and its number above it, upright for whoever looks at the turned picture."""
    height, width = luma.shape
    x0, y0, x1, y1 = (round(v) for v in box)
    left, top, right, bottom = max(x0, 0), max(y0, 0), min(x1, width), min(y1, height)
    if left >= right or top >= bottom:
        return
    for edge in (luma[top:bottom, left : left + 2], luma[top:bottom, right - 2 : right]):
        edge[:] = WHITE
    for edge in (luma[top : top + 2, left:right], luma[bottom - 2 : bottom, left:right]):
        edge[:] = WHITE
    scale = max(0.5, min(height, width) / 720)
    (wide, high), _ = cv2.getTextSize(number, cv2.FONT_HERSHEY_SIMPLEX, scale, 2)
    label = np.full((high + 8, wide + 8), 16, np.uint8)
    cv2.putText(label, number, (4, high + 4), cv2.FONT_HERSHEY_SIMPLEX, scale, WHITE, 2, cv2.LINE_AA)
    label = np.rot90(label, turn.quarters)
    if turn.mirrored:
        label = label[:, ::-1]
    if not turn.quarters and top >= label.shape[0]:
        top -= label.shape[0]  # above the box, where it hides nothing of it
    space = luma[top : top + label.shape[0], left : left + label.shape[1]]
    space[:] = label[: space.shape[0], : space.shape[1]]
