"""Which frames a network sees together, and how they are made as small as its input.

A network sees `frames` pictures of `size` × `size` pixels. A video is longer, and larger. So the network is shown every
`stride`-th frame, scaled to a square, in windows that begin half a window apart:

    frame      0        16        32        48        60
    window 0   [------------------)                          16 frames, stride 2: 32 frames of the video
    window 1            [------------------)
    the last                        [------------------)     moved back, so that it ends with the video

What a network returns is about every frame that a window spans, also about those that it was not shown. A frame lies in
one or two windows.

A network that draws single pictures needs neither overlap nor whole windows: its windows are `ROW` frames that it is
given as a batch, next to each other, the last one as many as are left.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Frame, Plane
from vidveil.core.rotation import Rotation, turn_of
from vidveil.core.yuv import rgb

if TYPE_CHECKING:
    from torch import Tensor

Cell = TypeVar("Cell", bound=np.generic)
ROW = 8
"""Frames of a stream that a network of single pictures is given at a time."""


@dataclass(frozen=True, slots=True)
class Window:
    samples: tuple[int, ...]
    """The frames that the network is shown."""
    spans: tuple[tuple[int, int], ...]
    """Of each layer, a picture or the pictures of a tubelet, the frames that it decides: from, to. Layers of short
    videos overlap."""

    def layers(self, index: int) -> list[int]:
        """The layers that decide about a frame."""
        return [layer for layer, (begin, end) in enumerate(self.spans) if begin <= index < end]


@dataclass(frozen=True, slots=True)
class Plan:
    """Windows of a network that sees `frames` frames, each `stride`-th of the video, in layers of `depth` of them."""

    frames: int
    depth: int
    stride: int
    single: bool = False
    """Whether the network maps each picture to one of its own, whichever others are in the window."""

    @property
    def span(self) -> int:
        """Frames of the video in a window."""
        return (ROW if self.single else self.frames) * self.stride

    @property
    def hop(self) -> int:
        """Frames of the video from one window to the next."""
        return self.span if self.single else max(1, self.frames // 2) * self.stride

    def whole(self, start: int) -> Window:
        return self._window(range(start, start + self.span, self.stride), start, start + self.span)

    def short(self, length: int) -> Window:
        """One window for a video that is no longer than a window: its frames evenly spaced, repeated if too few."""
        if self.single:
            return self._window(range(0, length, self.stride), 0, length)
        return self._window([i * length // self.frames for i in range(self.frames)], 0, length)

    def last(self, length: int, first: int) -> Window:
        """The window that ends with the video. It decides from `first` on: earlier frames have two windows already, or
        need no other one."""
        if self.single:
            return self._window(range(first, length, self.stride), first, length)
        start = -(-(length - self.span) // self.stride) * self.stride
        return self._window([start + i * self.stride for i in range(self.frames)], first, length)

    def windows(self, length: int) -> list[Window]:
        """For a video of this length. One of `frames` frames is shown without a stride, as in training; single
        pictures of a video are one window."""
        if length <= self.span or self.single:
            return [self.short(length)]
        starts = range(0, length - self.span + 1, self.hop)
        found = [self.whole(start) for start in starts]
        if starts[-1] + self.span < length:
            found.append(self.last(length, starts[-1] + self.hop))
        return found

    def _window(self, samples: Sequence[int], first: int, end: int) -> Window:
        spans = []
        for begin in range(0, len(samples), self.depth):
            after = samples[begin + self.depth] if begin + self.depth < len(samples) else end
            until = max(after, samples[begin + self.depth - 1] + 1)
            spans.append((max(first, samples[begin]), min(end, until)))
        return Window(tuple(samples), tuple(spans))


def frames_of(window: Window, depth: int) -> Iterator[tuple[int, int, int]]:
    """Each frame that a window decides, with its layer and its picture in the window: of those of its layer the last
    that is not later."""
    for layer, (begin, end) in enumerate(window.spans):
        first = layer * depth
        samples = window.samples[first : first + depth]
        for frame in range(begin, end):
            yield frame, layer, first + max(0, bisect_right(samples, frame) - 1)


@lru_cache(64)
def overlap(parts: int, size: int) -> NDArray[np.float64]:
    """(parts, size): how much of each pixel lies in each part, when a side of `size` pixels is cut into equal parts."""
    part, pixel = np.arange(parts)[:, None], np.arange(size)
    # in whole numbers, so that what only touches does not overlap
    begin, end = np.maximum(part * size, pixel * parts), np.minimum((part + 1) * size, (pixel + 1) * parts)
    inside: NDArray[np.float64] = np.maximum(end - begin, 0) / parts
    return inside


def area_weights(size: int, source: int) -> NDArray[np.float64]:
    """(size, source): rows of weights with the sum 1, which average a side of `source` pixels down to `size`."""
    return overlap(size, source) * (size / source)


def squashed_clips(video: "Tensor", size: int) -> "Tensor":
    """(B, 3, T, H, W) → (B, 3, T, size, size), every pixel the mean of the area that it covers."""
    import torch

    height, width = video.shape[-2:]
    if (height, width) == (size, size):
        return video
    down, across = (
        torch.from_numpy(area_weights(size, side)).to(video.device, video.dtype) for side in (height, width)
    )
    return (down @ video @ across.T).clamp(0, 1)


def squashed(plane: Plane, size: int) -> Plane:
    """A plane as a square of size × size pixels, each the mean of the area that it covers."""
    height, width = plane.shape
    if min(height, width) < size:  # OpenCV would interpolate, and skip pixels along the other side
        drawn = area_weights(size, height) @ plane @ area_weights(size, width).T
        return np.rint(drawn).astype(np.uint8)
    while not height % 2 and not width % 2 and min(height, width) >= 4 * size:  # halves are faster than other factors
        height, width = height // 2, width // 2
        plane = cast(Plane, cv2.resize(plane, (width, height), interpolation=cv2.INTER_AREA))
    return cast(Plane, cv2.resize(plane, (size, size), interpolation=cv2.INTER_AREA))


def small_picture(frame: Frame, size: int) -> NDArray[np.float32]:
    """(3, size, size) in [0, 1]: the whole frame, upright, in red, green and blue."""
    assert frame.picture is not None
    yuv = np.stack([squashed(plane, size) for plane in frame.planes], -1)  # (size, size, 3)
    upright = turn_of(frame).upright(yuv)
    return rgb(upright, int(frame.picture.colorspace), full_range=frame.full_range).transpose(2, 0, 1)


def stored(cells: NDArray[Cell], turn: Rotation) -> NDArray[Cell]:
    """Cells, or pixels, of the upright picture as they lie on the stored one: the inverse of `Turn.upright`."""
    turned = np.rot90(cells, turn.quarters)
    return turned[:, ::-1] if turn.mirrored else turned
