"""The grid of tubelets, and how many are kept; operations on tensors are in `models.layers.tubelets`.

    clip (B, 3, T, H, W)  →  L × h × w tubelets of t × p × p pixels, M = L·h·w, numbered segment by segment, row by row

A tubelet is kept or hidden as a whole. What is painted over hidden ones never depends on hidden pixels.
"""

import math
from typing import Literal

from vidveil.core.errors import UsageError

Fill = Literal["black", "mean", "temporal"]
FILLS: tuple[Fill, ...] = ("black", "mean", "temporal")


def grid(frames: int, size: int, tubelet: tuple[int, int, int]) -> tuple[int, int, int]:
    """(L, h, w) of a clip of `frames` × `size` × `size`."""
    times, height, width = tubelet
    if frames % times or size % height or size % width:
        raise UsageError(f"a clip of {frames} × {size} × {size} is no whole number of tubelets of {tubelet}")
    return frames // times, size // height, size // width


def kept_count(live: int, keep: float) -> int:
    """k = ceil(r · m), at least 1: from 1568, three times r = 0.9 leaves 1412, 1271, 1144."""
    if not 0 < keep <= 1:
        raise UsageError(f"keep is a share in (0, 1], got {keep:g}")
    return max(1, math.ceil(keep * live - 1e-9))
