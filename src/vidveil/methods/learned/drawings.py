"""What a network draws, at the video's own size or alone, in place of what was filmed."""

from typing import TYPE_CHECKING

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import FULL_BLACK, LIMITED_BLACK, NEUTRAL, Frame, Plane, SafeFrame
from vidveil.core.yuv import yuv
from vidveil.methods.learned.cells import Grid, rectangles

if TYPE_CHECKING:
    from torch import Tensor


def resized(video: "Tensor", height: int, width: int) -> "Tensor":
    """(B, 3, T, h, w) → (B, 3, T, H, W), in [0, 1]."""
    from torch.nn import functional as F

    if video.shape[-2:] == (height, width):
        return video
    pictures = video.transpose(1, 2).flatten(0, 1)  # (B·T, 3, h, w)
    larger = F.interpolate(pictures, (height, width), mode="bilinear", align_corners=False).clamp(0, 1)
    return larger.view(len(video), -1, 3, height, width).transpose(1, 2)


def drawn_over(frame: Frame, picture: NDArray[np.float32], kept: Grid | None = None) -> SafeFrame:
    """A frame that shows only the picture, (h, w, 3) of red, green and blue as it is stored, and black hidden cells."""
    assert frame.picture is not None
    planes = iter(yuv(picture, int(frame.picture.colorspace), full_range=frame.full_range))
    places = [] if kept is None else rectangles(kept, frame.width, frame.height)
    black = FULL_BLACK if frame.full_range else LIMITED_BLACK

    def paint(source: Plane, target: Plane, shrink: int) -> None:  # noqa: ARG001
        height, width = target.shape
        larger = cv2.resize(next(planes), (width, height), interpolation=cv2.INTER_LINEAR)
        target[:] = np.clip(np.rint(larger), 0, 255)
        for top, bottom, left, right in places:
            target[top // shrink : bottom // shrink, left // shrink : right // shrink] = (
                NEUTRAL if shrink == 2 else black
            )

    return frame.paint(paint)


def drawn_alone(frame: Frame, picture: NDArray[np.float32], kept: Grid | None = None) -> SafeFrame:
    """A frame with the time of another: the picture, (size, size, 3) of red, green and blue, upright.

    Hidden cells are black.
    `rgb()` returns exactly its pixels. The colours in its planes are means of two by two of them.
    """
    assert frame.picture is not None
    height, width = picture.shape[:2]
    pixels = np.rint(picture * 255)
    if kept is not None:
        pixels *= kept.repeat(height // kept.shape[0], 0).repeat(width // kept.shape[1], 1)[..., None]
    pixels = pixels.astype(np.uint8)
    planes = yuv(
        pixels.astype(np.float32) / np.float32(255), int(frame.picture.colorspace), full_range=frame.full_range
    )
    safe = frame.instead(width, height).black(None)
    for plane, target in zip(planes, safe.planes, strict=True):
        smaller = cv2.resize(plane, target.shape[::-1], interpolation=cv2.INTER_AREA)
        target[:] = np.clip(np.rint(smaller), 0, 255)
    safe.drawn = pixels
    return safe
