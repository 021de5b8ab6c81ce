"""Planes in blocks: made smaller by their means, drawn at the old size again."""

import math
from typing import cast

import cv2
import numpy as np

from vidveil.core.frame import Plane


def shrunk(source: Plane, factor: int) -> Plane:
    """Means of blocks of factor × factor pixels. Blocks that stick out over the edge see its last pixels repeated."""
    height, width = source.shape
    right, bottom = -width % factor, -height % factor
    if right or bottom:
        source = cast(Plane, cv2.copyMakeBorder(source, 0, bottom, 0, right, cv2.BORDER_REPLICATE))
    while factor % 2 == 0:  # OpenCV halves ten times faster than it divides by anything else
        source, factor = _divided(source, 2), factor // 2
    return source if factor == 1 else _divided(source, factor)


def _divided(source: Plane, factor: int) -> Plane:
    size = (source.shape[1] // factor, source.shape[0] // factor)
    return cast(Plane, cv2.resize(source, size, interpolation=cv2.INTER_AREA))


def smooth(small: Plane, target: Plane, factor: int) -> None:
    """Draw a small picture at full size without edges between its pixels, and leave off what sticks out."""
    height, width = small.shape[0] * factor, small.shape[1] * factor
    if target.shape == (height, width):
        drawn = cv2.resize(small, (width, height), dst=target, interpolation=cv2.INTER_LINEAR)
        if np.shares_memory(drawn, target):  # OpenCV may allocate instead of filling
            return
    else:
        drawn = cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR)
    np.copyto(target, cast(Plane, drawn)[: target.shape[0], : target.shape[1]])


def tiles(small: Plane, target: Plane, factor: int) -> None:
    """Draw each pixel of a small picture as a block, and leave off what sticks out."""
    height, width = target.shape
    wide = small.repeat(factor, 1)[:, :width]
    whole = height // factor
    np.copyto(target[: whole * factor].reshape(whole, factor, width), wide[:whole, None])
    target[whole * factor :] = wide[whole:]


def too_fine(spec: str, block: int, short_side: int) -> str | None:
    """A face as high as a quarter of the frame must not keep more than 8 × 8 blocks."""
    least = math.ceil(short_side / 32 / 2) * 2
    if block >= least:
        return None
    return f"{spec} is weak on pictures of this size: people may be recognised by eye; N = {least} or more hides them"
