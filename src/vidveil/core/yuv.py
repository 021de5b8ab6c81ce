"""Conversion between RGB and YUV, for every colour space that FFmpeg names."""

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.frame import FULL_BLACK, LIMITED_BLACK, NEUTRAL

LUMA_SHARES = {1: (0.2126, 0.0722), 9: (0.2627, 0.0593), 10: (0.2627, 0.0593)}
"""Shares of red and blue in luma by FFmpeg's number of the colour space: BT.709 and BT.2020. All others are BT.601."""


def rgb(yuv: NDArray[np.uint8], colourspace: int, *, full_range: bool) -> NDArray[np.float32]:
    """(H, W, 3) of Y, U and V → (H, W, 3) of red, green and blue in [0, 1]."""
    red, blue = LUMA_SHARES.get(colourspace, (0.299, 0.114))
    green = 1 - red - blue
    luma, chroma, black = (255, 255, 0) if full_range else (219, 224, LIMITED_BLACK)
    v, u = 2 * (1 - red), 2 * (1 - blue)
    to_rgb = np.array([[1, 0, v], [1, -u * blue / green, -v * red / green], [1, u, 0]]) / [luma, chroma, chroma]
    offset = to_rgb @ [-black, -NEUTRAL, -NEUTRAL]
    drawn = cv2.transform(yuv.astype(np.float32), np.column_stack([to_rgb, offset]).astype(np.float32))
    return np.clip(cast(NDArray[np.float32], drawn), 0, 1)


def yuv(picture: NDArray[np.float32], colourspace: int, *, full_range: bool) -> NDArray[np.float32]:
    """(H, W, 3) of red, green and blue in [0, 1] → (3, H, W) of Y, U and V: the inverse of `rgb`."""
    red, blue = LUMA_SHARES.get(colourspace, (0.299, 0.114))
    luma, chroma, black = (255, 255, FULL_BLACK) if full_range else (219, 224, LIMITED_BLACK)
    y = picture @ np.array([red, 1 - red - blue, blue], np.float32)  # (H, W)
    u, v = (picture[..., 2] - y) / (2 * (1 - blue)), (picture[..., 0] - y) / (2 * (1 - red))
    return cast(NDArray[np.float32], np.stack([black + luma * y, NEUTRAL + chroma * u, NEUTRAL + chroma * v]))
