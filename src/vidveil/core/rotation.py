"""Upright RGB pictures for detectors, whole or cropped, and boxes between the upright and the stored picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import Box, Frame

Picture = NDArray[np.uint8]
"""(H, W, 3) RGB"""


@dataclass(frozen=True, slots=True)
class Rotation:
    """How a stored picture of width × height becomes upright: mirrored or not, then quarter turns clockwise."""

    width: int
    height: int
    mirrored: bool
    quarters: int

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the upright picture."""
        return (self.height, self.width) if self.quarters % 2 else (self.width, self.height)

    def upright(self, picture: Picture) -> Picture:
        return np.rot90(picture[:, ::-1] if self.mirrored else picture, -self.quarters)

    def stored(self, box: Box) -> Box:
        """A box on the upright picture in coordinates of the stored one."""
        x0, y0, x1, y1 = box
        width, height = self.size
        for _ in range(self.quarters):  # a quarter turn back: right becomes bottom
            x0, y0, x1, y1 = y0, width - x1, y1, width - x0
            width, height = height, width
        return (width - x1, y0, width - x0, y1) if self.mirrored else (x0, y0, x1, y1)


@cache
def turn(width: int, height: int, matrix: tuple[int, ...] | None) -> Rotation:
    """The turn of a display matrix, to the nearest quarter, as players do."""
    mirrored, quarters = quarter_turns(matrix)
    return Rotation(width, height, mirrored, quarters)


def quarter_turns(matrix: Sequence[int] | None) -> tuple[bool, int]:
    if matrix is None:
        return False, 0
    a, b, c, d = (matrix[i] / 65536 for i in (0, 1, 3, 4))
    mirrored = a * d - b * c < 0  # undone first, so that a pure rotation is left
    if mirrored:
        a, b = -a, -b
    return mirrored, round(float(np.arctan2(b, a)) / (np.pi / 2)) % 4


def turn_of(frame: Frame) -> Rotation:
    return turn(frame.width, frame.height, frame.matrix)


def whole(frame: Frame) -> Picture:
    """The whole frame, upright."""
    return turn_of(frame).upright(_rgb(frame, 0, 0, frame.width, frame.height))


def piece(frame: Frame, box: Box, side: int) -> tuple[Picture, float, float, float]:
    """A square crop around the centre of a box, as wide and high as the box is wide, resized to side × side.

    Returns the crop, the x and y of its corner on the upright picture, and its scale in frame pixels per crop pixel.
    Outside of the frame it is black.
    """
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    reach = max(2.0, (box[2] - box[0]) / 2)
    wanted = (x - reach, y - reach, x + reach, y + reach)
    placed = turn_of(frame)
    x0, y0, x1, y1 = (round(v) for v in placed.stored(wanted))
    x0, y0 = x0 - x0 % 2, y0 - y0 % 2  # chroma has half the resolution
    size = max(x1 - x0, y1 - y0)
    size += size % 2
    inner = max(0, x0), max(0, y0), min(frame.width, x0 + size), min(frame.height, y0 + size)
    if inner[0] >= inner[2] or inner[1] >= inner[3]:
        cut = np.zeros((size, size, 3), np.uint8)
    else:
        cut = _rgb(frame, *inner)
        edges = inner[1] - y0, y0 + size - inner[3], inner[0] - x0, x0 + size - inner[2]
        if any(edges):
            cut = cast(Picture, cv2.copyMakeBorder(cut, *edges, cv2.BORDER_CONSTANT, value=(0, 0, 0)))
    cut = placed.upright(cut)
    if size != side:
        shrinking = cv2.INTER_AREA if size > side else cv2.INTER_LINEAR
        cut = cast(Picture, cv2.resize(np.ascontiguousarray(cut), (side, side), interpolation=shrinking))
    corner = _upright_corner(placed, (x0, y0, x0 + size, y0 + size))
    return cut, *corner, size / side


def _upright_corner(placed: Rotation, box: Box) -> tuple[float, float]:
    """The upper left corner of a stored box on the upright picture: the inverse of `Turn.stored`."""
    x0, y0, x1, y1 = box
    width, height = placed.width, placed.height
    if placed.mirrored:
        x0, x1 = width - x1, width - x0
    for _ in range(placed.quarters):
        x0, y0, x1, y1 = height - y1, x0, height - y0, x1
        width, height = height, width
    return x0, y0


def _rgb(frame: Frame, x0: int, y0: int, x1: int, y1: int) -> Picture:
    """A part of the stored picture in RGB; its corner has even coordinates."""
    y, u, v = frame.planes
    width, height = x1 - x0, y1 - y0
    even_width, even_height = width + width % 2, height + height % 2
    # I420 as OpenCV wants it: luma, then both chroma planes, in one block of memory
    block = np.empty((even_height * 3 // 2, even_width), np.uint8)
    block[:height, :width] = y[y0:y1, x0:x1]
    block[height:even_height] = 0
    block[:, width:] = 0
    chroma = block[even_height:].reshape(2, even_height // 2, even_width // 2)
    for target, source in zip(chroma, (u, v), strict=True):
        target[:] = source[y0 // 2 : y0 // 2 + even_height // 2, x0 // 2 : x0 // 2 + even_width // 2]
    return cast(Picture, cv2.cvtColor(block, cv2.COLOR_YUV2RGB_I420))[:height, :width]
