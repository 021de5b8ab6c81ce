"""A moving figure: what moves, coarsely, in the middle of the picture and at one size.

    D      = max(|Yₜ − Yₜ₋₁| − 6, 0), as `motion`
    box    around the middle of where something moved within SPAN frames before and after, as wide as that is spread
    shown  the means of D in figure:N blocks along the short side of the box, drawn over the whole picture, as bright
           in every video as in any other

Before a camera that stands still, the output shows nothing of what stands still, no colour, and not where somebody is
in the picture, how large, and in what light. A camera that moves moves everything: then the box is the whole picture,
and edges show. The box follows slowly, so that a jump is still a jump.
"""

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Generic, NamedTuple, TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Plane
from vidveil.methods.arguments import whole_number
from vidveil.methods.motion import Draw, MotionMethod

T = TypeVar("T")
Floats = NDArray[np.float32]
Sums = NDArray[np.float64]
"""Over what moved: 1, y, x, y², x² and the grey levels. (6,)"""

SPAN = 32  # frames before and after
MOVES = 2  # grey levels above noise
SIDE = 256  # pixels of the short side, at most, in which what moved is remembered
SPREAD = 2.2  # half of the box, in deviations of where something moved
LEAST = 0.045  # of the side: the smallest deviation
HIDES = int(8 * 2 * SPREAD / 12**0.5)
"""Blocks, at most, of which no more than 8 are across a face that is all that moves: what moves evenly over a side s
has a deviation of s / √12."""


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
    relative = True

    def __init__(self, spec: str, argument: str | None) -> None:
        super().__init__(spec)
        self.blocks = whole_number(spec, argument, default=8, low=2, high=64)

    @property
    def hides(self) -> int:
        """Blocks, at most, that hide a face that is all that moves."""
        return HIDES

    def caution(self, short_side: int) -> str | None:  # noqa: ARG002
        if self.blocks <= self.hides:
            return None
        return (
            f"{self.spec} has blocks small enough to show a face, where one is all that moves and fills the picture: "
            f"N = {self.hides} or less hides it"
        )

    def drawn(self, changes: Iterable[tuple[T, Plane | None]]) -> Iterator[tuple[T, Draw | None]]:
        """SPAN frames later than they came."""
        buffer: LookaheadBuffer[T] = LookaheadBuffer()
        for frame, change in changes:
            movement, draw = None, None
            try:
                movement = None if change is None else movement_of(change)
            except Exception as error:  # raised when it would be drawn: this frame must not pass
                draw = partial(_fail, error)
            if movement is not None:
                yield from self._shown(buffer.take(frame, movement))
                continue
            yield from self._shown(buffer.end())
            buffer = LookaheadBuffer()  # another scene: where something moved before says nothing about it
            yield frame, draw
        yield from self._shown(buffer.end())

    def _shown(self, left: "Iterable[tuple[T, Movement, FrameContext]]") -> Iterator[tuple[T, Draw | None]]:
        for frame, movement, context in left:
            yield frame, partial(self._picture, movement, context)

    def _picture(self, movement: "Movement", context: "FrameContext") -> Plane:
        height, width = movement.size
        box = box_of(context.sums)
        if box is None or context.first is None:
            return np.zeros((height, width), np.uint8)
        short = min(height, width)
        rows, columns = (round(self.blocks * side / short) for side in (height, width))
        shares = self.means(movement.small, box, (rows, columns), context.first) / box.level
        grey = np.clip(255 * shares, 0, 255).astype(np.uint8)
        return cast(Plane, cv2.resize(grey, (width, height), interpolation=cv2.INTER_NEAREST))

    def means(self, small: Floats, box: Box, shape: tuple[int, int], first: Floats) -> Floats:  # noqa: ARG002
        """(rows, columns): of what is in the box. `first` is the first difference of the scene that shows something."""
        rows, columns = shape
        down = parts(rows, small.shape[0], box.y, box.half)
        across = parts(columns, small.shape[1], box.x, box.half)
        return cast(Floats, down @ small @ across.T)


def _fail(error: Exception) -> Plane:
    raise error


class Movement(NamedTuple):
    """How a frame differs from the one before."""

    small: Floats
    """Grey levels, no larger than needed."""
    size: tuple[int, int]
    """Of the frame: height, width."""
    sums: Sums


class FrameContext(NamedTuple):
    """What else is known of a frame's scene when it is drawn."""

    sums: Sums
    """Of all that moved within SPAN frames."""
    first: Floats | None
    """`small` of the first frame in which something moved; None as long as nothing did."""


class LookaheadBuffer(Generic[T]):
    """Frames without a cut, each kept back until SPAN more have come."""

    def __init__(self) -> None:
        self._waiting: deque[tuple[T, Movement]] = deque()
        self._sums: deque[Sums] = deque(maxlen=2 * SPAN + 1)
        self._first: Floats | None = None

    def take(self, frame: T, movement: Movement) -> Iterator[tuple[T, Movement, FrameContext]]:
        self._waiting.append((frame, movement))
        if self._first is None and movement.sums[0] > 0:
            self._first = movement.small
        self._sums.append(movement.sums)
        if len(self._waiting) > SPAN:
            yield self._leave()

    def end(self) -> Iterator[tuple[T, Movement, FrameContext]]:
        while self._waiting:
            if len(self._sums) > len(self._waiting) + SPAN:  # nothing more comes in, but what is too old goes
                self._sums.popleft()
            yield self._leave()

    def _leave(self) -> tuple[T, Movement, FrameContext]:
        """The oldest frame that waits, and all that moved around it."""
        frame, movement = self._waiting.popleft()
        return frame, movement, FrameContext(np.sum(self._sums, axis=0), self._first)


def movement_of(change: Plane) -> Movement:
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
    return Movement(small, (height, width), np.array(sums, np.float64))


def box_of(sums: Sums) -> Box | None:
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
