"""Where one scene ends and the next begins.

Two pictures are compared as thumbnails of their brightness. A cut is a change that is large, larger than the changes
before and after it (a fast pan changes every frame), and that stays (after a flash the old picture is back). A smaller
change is no cut, but a doubt: the person seen after it need not be the one seen before.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Frame

LARGE = 20.0  # mean change of a thumbnail's pixel, of 255
DOUBTFUL = 7.0
MORE = 2.5  # times the change before and the change after
FLASH = 0.4  # seconds within which the old picture may come back
BRIEF = 0.15  # seconds; what is back later may have been an insert
MOST = 60  # frames to wait for that
SIDE = 32

Thumbnail = NDArray[np.int16]


class Change(NamedTuple):
    """What lies between a frame and the one before it."""

    cut: bool
    doubtful: bool


class _Waiting(NamedTuple):
    frame: Frame
    thumbnail: Thumbnail | None


def scenes(frames: Iterable[Frame]) -> Iterator[tuple[Frame, Change]]:
    """Each frame, and how it differs from the one before.

    One frame late, since it also depends on what follows, and up to FLASH seconds late where the change is large.
    """
    detector = _CutDetector()
    waiting: deque[_Waiting] = deque()
    for frame in frames:
        waiting.append(_Waiting(frame, thumbnail(frame)))
        while len(waiting) > 1 and detector.can_decide(waiting):
            yield detector.decide(waiting)
    while waiting:
        yield detector.decide(waiting)


class _CutDetector:
    def __init__(self) -> None:
        self._before: Thumbnail | None = None  # the last picture
        self._earlier = 0.0  # how much it differed from the one before it
        self._first = True
        self._flashed: tuple[Thumbnail | None, float] = (None, 0.0)  # the picture before a flash, and when that began

    def can_decide(self, waiting: deque[_Waiting]) -> bool:
        """Whether enough frames are there to decide about the oldest."""
        oldest, newest = waiting[0], waiting[-1]
        if difference(self._before, oldest.thumbnail) <= LARGE:
            return True
        return newest.frame.seconds - oldest.frame.seconds > FLASH or len(waiting) > MOST

    def decide(self, waiting: deque[_Waiting]) -> tuple[Frame, Change]:
        """Takes the oldest frame off `waiting`, with its change."""
        frame, here = waiting.popleft()
        after = [one for one in waiting if one.thumbnail is not None and one.frame.seconds - frame.seconds <= FLASH]
        change = difference(self._before, here)
        sudden = change > MORE * self._earlier
        if after:
            sudden = sudden and change > MORE * difference(here, after[0].thumbnail)
        like = min(change / 2, LARGE)
        again = [one.frame.seconds for one in after if difference(self._before, one.thumbnail) < like]
        back, brief = bool(again), bool(again) and again[0] - frame.seconds <= BRIEF
        if change > DOUBTFUL and back:
            self._flashed = self._before, frame.seconds
        steady, since = self._flashed
        if steady is not None and frame.seconds - since <= FLASH and difference(steady, here) < like:
            back, brief = True, frame.seconds - since <= BRIEF  # the end of the flash
        # the very last frame may be a flash; it is searched in any case
        cut = self._first or frame.after_gap or (change > LARGE and sudden and bool(after) and not back)
        doubtful = change > DOUBTFUL and change > MORE * self._earlier and not brief
        self._first = False
        if here is not None:
            self._before, self._earlier = here, change
        return frame, Change(cut, doubtful)


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
