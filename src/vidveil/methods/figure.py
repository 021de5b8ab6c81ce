"""A moving figure: what moves, coarsely, in the middle of the picture and at one size.

    D      = max(|Yₜ − Yₜ₋₁| − 6, 0), as `motion`
    box    around the middle of where something moved within a second or so before and after, as wide as that is spread
    shown  the means of D in figure:N blocks along the short side of the box, drawn over the whole picture, as bright
           in every video as in any other

What stands still is not told, nor colour, nor where somebody is in the picture, nor how large, nor how bright the light
is. The box is that of a second and more, so that a jump is still a jump.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Generic, NamedTuple, TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.methods.arguments import whole_number
from vidveil.methods.motion import Draw, MotionMethod
from vidveil.video.frame import Plane

T = TypeVar("T")
Floats = NDArray[np.float32]

SPAN = 32  # frames before and after
MOVES = 2  # grey levels above noise
SIDE = 256  # pixels of the short side, at most, in which what moved is remembered
SPREAD = 2.2  # half of the box, in deviations of where something moved
LEAST = 0.045  # of the side: the smallest deviation


class Box(NamedTuple):
    """In shares of the picture's height and width."""

    y: float
    x: float
    half: float
    """Of both sides: the box has the picture's proportions."""
    level: float
    """Mean difference, in grey levels, of what moved."""


class Figure(MotionMethod):
    elsewhere = True

    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.blocks = whole_number(spec, argument, default=14, low=2, high=64)

    def drawn(self, changes: Iterable[tuple[T, Plane | None]]) -> Iterator[tuple[T, Draw | None]]:
        """SPAN frames later than they came."""
        followed: Followed[T] = Followed()
        for frame, change in changes:
            if change is None:  # another scene: what was before tells nothing about where to look
                yield from self._shown(followed.end())
                followed = Followed()
                yield frame, None
                continue
            yield from self._shown(followed.take(frame, change))
        yield from self._shown(followed.end())

    def _shown(self, boxes: "Iterable[tuple[T, Seen, Box | None]]") -> Iterator[tuple[T, Draw | None]]:
        for frame, seen, box in boxes:
            yield frame, None if box is None else partial(self._picture, seen, box)

    def _picture(self, seen: "Seen", box: Box) -> Plane:
        height, width = seen.size
        short = min(height, width)
        rows, columns = (round(self.blocks * side / short) for side in (height, width))
        down = parts(rows, seen.small.shape[0], box.y, box.half)
        across = parts(columns, seen.small.shape[1], box.x, box.half)
        means = down @ seen.small @ across.T  # (rows, columns)
        grey = np.clip(255 * means / box.level, 0, 255).astype(np.uint8)
        return cast(Plane, cv2.resize(grey, (width, height), interpolation=cv2.INTER_NEAREST))


class Seen(NamedTuple):
    """How a frame differs from the one before."""

    small: Floats
    """Grey levels, no larger than needed."""
    size: tuple[int, int]
    """Of the frame: height, width."""
    sums: NDArray[np.float64]
    """Over what moved: 1, y, x, y², x² and the grey levels."""


class Followed(Generic[T]):
    """Frames without a cut, each kept back until SPAN more have come."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[T, Seen]] = deque()
        self._sums: deque[NDArray[np.float64]] = deque(maxlen=2 * SPAN + 1)

    def take(self, frame: T, change: Plane) -> Iterator[tuple[T, Seen, Box | None]]:
        seen = looked_at(change)
        self._waiting.append((frame, seen))
        self._sums.append(seen.sums)
        if len(self._waiting) > SPAN:
            yield self._leave()

    def end(self) -> Iterator[tuple[T, Seen, Box | None]]:
        while self._waiting:
            # the window ends with the video
            if len(self._sums) > len(self._waiting) + SPAN:
                self._sums.popleft()
            yield self._leave()

    def _leave(self) -> tuple[T, Seen, Box | None]:
        frame, seen = self._waiting.popleft()
        return frame, seen, box_of(np.sum(self._sums, axis=0))


def looked_at(change: Plane) -> Seen:
    height, width = change.shape
    factor = max(1.0, min(height, width) / SIDE)
    small = change.astype(np.float32)
    if factor > 1:
        size = (round(width / factor), round(height / factor))
        small = cast(Floats, cv2.resize(small, size, interpolation=cv2.INTER_AREA))
    moved = small > MOVES
    y, x = ((np.arange(side) + 0.5) / side for side in small.shape)
    along, across = moved.sum(axis=1), moved.sum(axis=0)
    sums = [along.sum(), along @ y, across @ x, along @ y**2, across @ x**2, small[moved].sum()]
    return Seen(small, (height, width), np.array(sums, np.float64))


def box_of(sums: NDArray[np.float64]) -> Box | None:
    """None if nothing moved."""
    count = sums[0]
    if count == 0:
        return None
    y, x, yy, xx, level = sums[1:] / count
    deviation = np.sqrt(max(yy - y**2, xx - x**2, LEAST**2))
    return Box(float(y), float(x), float(SPREAD * deviation), float(level))


def parts(count: int, size: int, middle: float, half: float) -> Floats:
    """(count, size): rows of weights that average `count` equal parts of the stretch from middle - half to
    middle + half of a side of `size` pixels. What lies outside the picture counts as 0."""
    ends = size * (middle - half + 2 * half * np.arange(count + 1) / count)
    pixel = np.arange(size)
    inside = np.minimum(ends[1:, None], pixel + 1) - np.maximum(ends[:-1, None], pixel)
    weights: Floats = (np.maximum(inside, 0) * count / (2 * half * size)).astype(np.float32)
    return weights
