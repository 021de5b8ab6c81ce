"""Which frames a network sees together, and which pixels its decisions cover.

A network sees `frames` pictures of `size` × `size` pixels. A video is longer, and larger. So the network is shown every
`stride`-th frame, scaled to a square, in windows that begin half a window apart:

    frame      0        16        32        48        60
    window 0   [------------------)                          16 frames, stride 2: 32 frames of the video
    window 1            [------------------)
    the last                        [------------------)     moved back, so that it ends with the video

A tubelet decides about every frame that it spans, also about those that the network was not shown. A frame lies in one
or two windows. What either of them hides is hidden.
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, TypeVar, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import FULL_BLACK, LIMITED_BLACK, NEUTRAL, Frame, Plane, SafeFrame
from vidveil.core.rotation import Rotation, turn_of
from vidveil.core.yuv import rgb

if TYPE_CHECKING:
    from torch import Tensor

Cell = TypeVar("Cell", bound=np.generic)

Grid = NDArray[np.bool_]
"""(h, w) of cells: the positions of tubelets in a picture."""
Rectangle = tuple[int, int, int, int]
"""Top, bottom, left, right in whole pixels; bottom and right lie outside."""


@dataclass(frozen=True, slots=True)
class Window:
    samples: tuple[int, ...]
    """The frames that the network is shown."""
    spans: tuple[tuple[int, int], ...]
    """Of each layer of tubelets, the frames that it decides: from, to. Layers of short videos overlap."""

    def layers(self, index: int) -> list[int]:
        """The layers that decide about a frame."""
        return [layer for layer, (begin, end) in enumerate(self.spans) if begin <= index < end]


@dataclass(frozen=True, slots=True)
class Plan:
    """Windows of a network that sees `frames` frames, each `stride`-th of the video, in tubelets of `depth` of them."""

    frames: int
    depth: int
    stride: int

    @property
    def span(self) -> int:
        """Frames of the video in a window."""
        return self.frames * self.stride

    @property
    def hop(self) -> int:
        """Frames of the video from one window to the next."""
        return max(1, self.frames // 2) * self.stride

    def whole(self, start: int) -> Window:
        return self._window([start + i * self.stride for i in range(self.frames)], start, start + self.span)

    def short(self, length: int) -> Window:
        """One window for a video that is no longer than a window: its frames evenly spaced, repeated if too few."""
        return self._window([i * length // self.frames for i in range(self.frames)], 0, length)

    def last(self, length: int, first: int) -> Window:
        """The window that ends with the video. It decides from `first` on: earlier frames have two windows already."""
        start = -(-(length - self.span) // self.stride) * self.stride
        return self._window([start + i * self.stride for i in range(self.frames)], first, length)

    def windows(self, length: int) -> list[Window]:
        """For a video of this length. One of `frames` frames is shown without a stride, as in training."""
        if length <= self.span:
            return [self.short(length)]
        starts = range(0, length - self.span + 1, self.hop)
        found = [self.whole(start) for start in starts]
        if starts[-1] + self.span < length:
            found.append(self.last(length, starts[-1] + self.hop))
        return found

    def _window(self, samples: list[int], first: int, end: int) -> Window:
        spans = []
        for begin in range(0, self.frames, self.depth):
            after = samples[begin + self.depth] if begin + self.depth < self.frames else end
            until = max(after, samples[begin + self.depth - 1] + 1)
            spans.append((max(first, samples[begin]), min(end, until)))
        return Window(tuple(samples), tuple(spans))


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


def laid_over(kept: "Tensor", height: int, width: int) -> "Tensor":
    """(..., h, w) cells → (..., H, W) pixels: True for those that no hidden cell touches."""
    import torch

    rows, columns = (
        torch.from_numpy(overlap(cells, side) > 0).to(kept.device, torch.float32)  # (cells, side)
        for cells, side in zip(kept.shape[-2:], (height, width), strict=True)
    )
    return rows.T @ (~kept).float() @ columns == 0


def spread(scores: "Tensor", height: int, width: int) -> "Tensor":
    """(..., h, w) cells → (..., H, W) pixels: for each the value of the cell in which its middle lies."""
    import torch

    rows, columns = (
        (2 * torch.arange(side, device=scores.device) + 1) * cells // (2 * side)
        for cells, side in zip(scores.shape[-2:], (height, width), strict=True)
    )
    return scores[..., rows, :][..., columns]


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


def rectangles(kept: Grid, width: int, height: int) -> list[Rectangle]:
    """The hidden parts of a picture, rounded outwards to pairs of pixels, so that luma and chroma cover the same."""
    rows, columns = _edges(height, kept.shape[0]), _edges(width, kept.shape[1])
    found = []
    for (top, bottom), row in zip(rows, kept, strict=True):
        begin = None
        for i, shown in enumerate([*row, True]):
            if not shown and begin is None:
                begin = columns[i][0]
            elif shown and begin is not None:
                found.append((top, bottom, begin, columns[i - 1][1]))
                begin = None
    return found


@cache
def _edges(size: int, cells: int) -> tuple[tuple[int, int], ...]:
    """The pixels that each cell touches: from, to."""
    outer = [(i * size // cells, -(-(i + 1) * size // cells)) for i in range(cells)]
    return tuple((begin - begin % 2, end + end % 2) for begin, end in outer)


def stored(cells: NDArray[Cell], turn: Rotation) -> NDArray[Cell]:
    """Cells of the upright picture as they lie on the stored one: the inverse of `Turn.upright`."""
    turned = np.rot90(cells, turn.quarters)
    return turned[:, ::-1] if turn.mirrored else turned


def hide_cells(frame: Frame, kept: Grid, fill: str) -> SafeFrame:
    """The frame with its hidden cells painted over: `black`, or the `mean` colour of what is kept of the frame."""
    places = rectangles(kept, frame.width, frame.height)

    def paint(source: Plane, target: Plane, shrink: int) -> None:
        def cover(plane: Plane, value: float) -> None:
            for top, bottom, left, right in places:
                plane[top // shrink : bottom // shrink, left // shrink : right // shrink] = value

        np.copyto(target, source)
        black = FULL_BLACK if frame.full_range else LIMITED_BLACK
        colour: float = NEUTRAL if shrink == 2 else black
        if fill == "mean" and kept.any():
            cover(shown := np.ones(source.shape, np.uint8), 0)
            if shown.any():
                colour = round(cv2.mean(source, shown)[0])
        cover(target, colour)

    return frame.paint(paint)
