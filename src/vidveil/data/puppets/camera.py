"""Cameras: where they look from, how much they zoom and follow, and what they do to the picture.

A camera is orthographic, a little above the scene. It stands still or follows a walker in part; its plate (the scene
without people) scrolls by what it follows. Then light, tint, noise and compression.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.puppets.body import Posed
from vidveil.data.puppets.figure import Projected
from vidveil.data.puppets.style import Array

GROUND = 0.93
"""Height on the screen of the ground that the person of interest stands on."""


@dataclass(frozen=True)
class Camera:
    """A make of camera; each clip varies it a little."""

    zoom: float
    """Frame units a stature."""
    tilt: float
    """Looks down by this angle."""
    tint: tuple[float, float, float]
    noise: float
    """Standard deviation, grey levels."""
    quality: int
    """Of the JPEG that each frame goes through."""


CAMERAS: tuple[Camera, ...] = (
    Camera(0.80, 0.06, (1.0, 1.0, 1.0), 2.0, 90),
    Camera(0.78, 0.16, (1.04, 1.0, 0.95), 4.0, 80),
    Camera(0.84, 0.10, (0.95, 1.0, 1.05), 3.0, 85),
    Camera(0.77, 0.20, (0.98, 1.03, 0.98), 5.0, 75),
    Camera(0.82, 0.03, (1.02, 0.99, 1.0), 2.5, 92),
    Camera(0.79, 0.12, (1.0, 0.98, 1.04), 4.0, 80),
)


@dataclass(frozen=True)
class Shot:
    """How one clip is filmed."""

    zoom: float
    tilt: float
    centre: Array
    """(T,) x of the world, in statures, that is in the middle of the frame."""
    ground: float = GROUND

    def see(self, posed: Posed) -> list[Projected]:
        """One a frame."""
        xyz = posed.joints  # (T, J, 3)
        x = 0.5 + self.zoom * (xyz[..., 0] - self.centre[:, None])
        height = xyz[..., 1] * np.cos(self.tilt) - xyz[..., 2] * np.sin(self.tilt)
        points = x + 1j * (self.ground - self.zoom * height)  # (T, J)
        return [
            Projected(points[t].tolist(), xyz[t, :, 2], posed.torso[t], posed.head[t], self.zoom)
            for t in range(len(xyz))
        ]

    def point(self, xyz: Array, t: int) -> complex:
        """A point (3,) on the screen at frame t."""
        x, y, z = xyz.tolist()
        height = y * math.cos(self.tilt) - z * math.sin(self.tilt)
        return complex(0.5 + self.zoom * (x - float(self.centre[t])), self.ground - self.zoom * height)


def follow(joints: Array, times: Array, room: float) -> Array:
    """(T,) centre of a camera that keeps a body's way (T, J, 3) in the frame.

    Whoever goes less than `room` statures is watched by a camera that stands still; it goes along with others just as
    much as it must.
    """
    x = joints[..., 0].mean(axis=1)  # (T,)
    straight = np.polyval(np.polyfit(times, x, 1), times) if len(times) > 1 else x
    way = abs(float(straight[-1] - straight[0]))
    path = (straight - straight.mean()) * max(0.0, 1 - room / max(way, 1e-9))
    seen = joints[..., 0] - path[:, None]
    centre: Array = path + (seen.min() + seen.max()) / 2
    return centre


def through(picture: NDArray[np.uint8], camera: Camera, gain: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    """What the sensor and the compression make of a picture (H, W, 3)."""
    lit = picture * (np.asarray(camera.tint, np.float32) * np.float32(gain))
    lit += rng.standard_normal(picture.shape, dtype=np.float32) * np.float32(camera.noise)
    clean = np.clip(lit, 0, 255).astype(np.uint8)
    done, packed = cv2.imencode(".jpg", clean[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, camera.quality])
    seen = cv2.imdecode(packed, cv2.IMREAD_COLOR) if done else None
    if seen is None:
        raise DataError("this OpenCV can neither write nor read JPEG, which cameras of the puppets do: install another")
    return np.ascontiguousarray(np.asarray(seen, np.uint8)[..., ::-1])
