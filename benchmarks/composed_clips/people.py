"""What a person in a composed clip is: a head that can turn, with the place of its face, and a body that cannot.

Head and body are pictures with the same origin, RGBA, colours premultiplied by alpha. The face is its own ellipse:
forehead to chin, ear to ear, without hair and neck.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import cv2
import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
Floats = NDArray[np.float32]
Colour = tuple[float, float, float]


@dataclass(frozen=True)
class Ellipse:
    """In pixels, (0, 0) the corner of a picture; `angle` in degrees, clockwise as pictures have it."""

    x: float
    y: float
    rx: float
    ry: float
    angle: float = 0.0

    @property
    def size(self) -> float:
        """Geometric mean of the sides of its box, before it is tilted."""
        return float(2 * np.sqrt(self.rx * self.ry))

    def grown(self, by: float) -> "Ellipse":
        return Ellipse(self.x, self.y, self.rx * by, self.ry * by, self.angle)

    def box(self) -> tuple[float, float, float, float]:
        c, s = np.cos(np.radians(self.angle)), np.sin(np.radians(self.angle))
        w, h = float(np.hypot(self.rx * c, self.ry * s)), float(np.hypot(self.rx * s, self.ry * c))
        return self.x - w, self.y - h, self.x + w, self.y + h

    def mask(self, left: int, top: int, width: int, height: int) -> NDArray[np.bool_]:
        """Which pixels of a window have their centres inside."""
        if min(self.rx, self.ry) <= 0:
            return np.zeros((height, width), np.bool_)
        x = np.arange(left, left + width)[None, :] + 0.5 - self.x
        y = np.arange(top, top + height)[:, None] + 0.5 - self.y
        c, s = np.cos(np.radians(self.angle)), np.sin(np.radians(self.angle))
        return np.asarray(((x * c + y * s) / self.rx) ** 2 + ((y * c - x * s) / self.ry) ** 2 < 1)


@dataclass(frozen=True)
class Sprite:
    rgba: Picture
    face: Ellipse


@dataclass(frozen=True)
class Person:
    kind: str
    head: Callable[[float], Sprite]
    """By yaw in degrees, positive to the right of the picture."""
    body: Picture
    pivot: tuple[float, float]
    """Where the head sits on the neck: it tilts and nods about this point."""
    straight: float = field(init=False)
    """Size of the face that looks ahead."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "straight", self.head(0.0).face.size)


def figure(
    height: int,
    width: int,
    middle: int,
    neck: tuple[int, int],
    unit: float,
    skin: Colour,
    shirt: Colour,
    trousers: Colour,
) -> Picture:
    """Neck, backbone, arms and legs from the front. `neck` is where it begins and where the shoulders do, in rows."""
    rgba = np.zeros((height, width, 4), np.float32)
    top, shoulder = neck
    half = round(0.36 * unit)

    def shape(points: list[tuple[float, float]], colour: Colour) -> None:
        """Both sides of the body, given the right one in units from the middle of the shoulders."""
        right = [(middle + x * unit, shoulder + y * unit) for x, y in points]
        left = [(2 * middle - x, y) for x, y in reversed(right)]
        cv2.fillPoly(rgba, [np.array(right + left).round().astype(np.int32)], (*colour, 255), cv2.LINE_AA)

    legs = [(0.0, 3.2), (0.75, 3.2), (0.7, 7.5), (0.3, 7.5), (0.08, 4.2), (0.0, 4.2)]
    arms = [(0.95, 0.4), (1.35, 0.55), (1.5, 1.6), (1.45, 3.4), (1.15, 3.4), (1.1, 1.6), (0.95, 1.2)]
    backbone = [
        (0.0, -0.05),
        (0.38, -0.08),
        (0.75, 0.1),
        (1.1, 0.25),
        (1.32, 0.5),
        (1.1, 1.3),
        (0.85, 2.2),
        (0.85, 3.4),
        (0, 3.4),
    ]
    shape(legs, trousers)
    shape(arms, _times(shirt, 0.8))
    shape(backbone, shirt)
    cv2.rectangle(rgba, (middle - half, top), (middle + half, shoulder), (*_times(skin, 0.72), 255), -1)
    cv2.ellipse(rgba, (middle, shoulder), (half, half // 2), 0, 0, 180, (*_times(skin, 0.78), 255), -1, cv2.LINE_AA)
    light = np.linspace(1.06, 0.78, width, dtype=np.float32)[None, :, None]
    folds = np.random.default_rng(round(sum(shirt))).normal(0, 0.07, (height // 60, width // 20)).astype(np.float32)
    rgba[..., :3] *= light * (1 + cv2.resize(folds, (width, height), interpolation=cv2.INTER_CUBIC))[..., None]
    soft = np.asarray(cv2.GaussianBlur(rgba.clip(0, 255), (0, 0), 1.0), np.float32)
    soft[..., :3] *= soft[..., 3:] / 255
    return np.asarray(soft.round(), np.uint8)


def _times(colour: Colour, by: float) -> Colour:
    r, g, b = (min(255.0, c * by) for c in colour)
    return (r, g, b)
