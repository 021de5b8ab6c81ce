"""Where one scene ends and the next begins.

Two pictures are compared as thumbnails of their brightness. A cut is a change that is large, larger than the changes
before and after it (a fast pan changes every frame), and that stays (after a flash the old picture is back).
"""

from collections.abc import Iterable, Iterator
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.video.frame import Frame

LARGE = 20.0  # mean change of a thumbnail's pixel, of 255
MORE = 2.5  # times the change before and the change after
SIDE = 32

Thumbnail = NDArray[np.int16]


def scenes(frames: Iterable[Frame]) -> Iterator[tuple[Frame, bool]]:
    """Each frame, and whether a scene begins with it. One frame late, since a cut is known by what follows it."""
    earlier = 0.0  # how much the picture changed before
    before: Thumbnail | None = None  # the picture before the waiting frame
    waiting: tuple[Frame, Thumbnail | None] | None = None
    first = True
    for frame in frames:
        now = thumbnail(frame)
        if waiting is not None:
            change = difference(before, waiting[1])
            yield waiting[0], first or waiting[0].after_gap or _cut(earlier, change, before, waiting[1], now)
            first = False
            if waiting[1] is not None:
                before, earlier = waiting[1], change
        waiting = frame, now
    if waiting is not None:
        change = difference(before, waiting[1])
        yield waiting[0], first or waiting[0].after_gap or change > max(LARGE, MORE * earlier)


def _cut(
    earlier: float, change: float, before: Thumbnail | None, here: Thumbnail | None, after: Thumbnail | None
) -> bool:
    if change <= max(LARGE, MORE * earlier):
        return False
    if after is None:
        return True
    return change > MORE * difference(here, after) and difference(before, after) > change / 2


def thumbnail(frame: Frame) -> Thumbnail | None:
    """Brightness on 32 × 32 pixels; None if there is no picture."""
    if frame.picture is None:
        return None
    luma = frame.planes[0]
    step = max(1, min(luma.shape) // (4 * SIDE))  # a quarter as fine as needed, then averaged: enough, and 20 × faster
    small = cv2.resize(np.ascontiguousarray(luma[::step, ::step]), (SIDE, SIDE), interpolation=cv2.INTER_AREA)
    return cast(Thumbnail, small.astype(np.int16))


def difference(one: Thumbnail | None, other: Thumbnail | None) -> float:
    return 0.0 if one is None or other is None else float(np.abs(one - other).mean())
