"""Places: rooms, streets, parks and halls, each with its own colours and texture, and clutter that differs by clip.

A plate is the scene without people, wider than the frame, so that a camera can pan over it.
"""

from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.brush import Brush, shade
from vidveil.data.puppets.people import CLOTH, Colour
from vidveil.data.puppets.world import World

Canvas = NDArray[np.uint8]
SCENES = ("room", "street", "park", "hall")
PLACES = 24
OBJECTS = ("plant", "lamp", "picture", "bag", "table", "bicycle")
WIDE = 3
"""Widths of a frame in a plate."""
HORIZON = 0.72


def scene_of(place: int) -> int:
    return place % len(SCENES)


def _soft(colour: Colour, towards: int = 150, share: float = 0.55) -> Colour:
    """Backgrounds are duller than clothes."""
    red, green, blue = (int(c * (1 - share) + towards * share) for c in colour)
    return red, green, blue


def plate(world: World, place: int, objects: tuple[bool, ...], where: np.random.Generator, side: int) -> Canvas:
    """(side, WIDE · side, 4): the place as it always is, with clutter put `where` it falls in this clip."""
    wide = _Wide(_empty(world.seed, place, side).copy())
    for name, there in zip(OBJECTS, objects, strict=True):
        spot, colour = where.uniform(0, 1, WIDE) + np.arange(WIDE), CLOTH[int(where.integers(len(CLOTH)))]
        if there:
            for x in spot.tolist():
                _object(wide, name, x, _soft(colour, 140, 0.7))
    return wide.canvas


@lru_cache(maxsize=PLACES)
def _empty(seed: int, place: int, side: int) -> Canvas:
    """A place without clutter. The same for all clips there, so kept."""
    rng = World(seed=seed).stream("place", place)
    wide = _Wide(np.zeros((side, WIDE * side, 4), np.uint8))
    {"room": _room, "street": _street, "park": _park, "hall": _hall}[SCENES[scene_of(place)]](wide, rng)
    wide.canvas[..., :3] = _textured(wide.canvas[..., :3], rng)
    return wide.canvas


class _Wide(Brush):
    def box(self, x0: float, y0: float, x1: float, y1: float, colour: Colour) -> None:
        corners = (complex(x0, y0), complex(x1, y0), complex(x1, y1), complex(x0, y1))
        self.polygon(corners, colour, 0, convex=True)


def _colour(rng: np.random.Generator, share: float = 0.66) -> Colour:
    return _soft(CLOTH[int(rng.integers(len(CLOTH)))], int(rng.integers(110, 200)), share)


def _room(wide: _Wide, rng: np.random.Generator) -> None:
    wall, floor = _colour(rng, 0.76), _colour(rng, 0.72)
    wide.box(0, 0, WIDE, HORIZON, wall)
    wide.box(0, HORIZON, WIDE, 1, shade(floor, 0.8))
    if rng.random() < 0.6:
        step = float(rng.uniform(0.08, 0.2))
        for x in np.arange(0, WIDE, step):
            wide.box(x, 0, x + step * 0.4, HORIZON, shade(wall, 0.9))
    wide.box(0, HORIZON - 0.03, WIDE, HORIZON, shade(wall, 0.6))
    pane = (190, 215, 235) if rng.random() < 0.7 else (60, 70, 100)
    for x in rng.uniform(0, 0.6) + np.arange(WIDE):
        wide.box(x, 0.12, x + 0.3, 0.45, shade(wall, 0.6))
        wide.box(x + 0.02, 0.14, x + 0.28, 0.43, pane)


def _street(wide: _Wide, rng: np.random.Generator) -> None:
    wide.box(0, 0, WIDE, HORIZON, (175, 200, 225))
    x = -float(rng.uniform(0, 0.3))
    while x < WIDE:
        width, top, wall = float(rng.uniform(0.25, 0.5)), float(rng.uniform(0, 0.3)), _colour(rng)
        wide.box(x, top, x + width, HORIZON, wall)
        for wx in np.arange(x + 0.04, x + width - 0.06, 0.11):
            for wy in np.arange(top + 0.06, HORIZON - 0.12, 0.15):
                wide.box(wx, wy, wx + 0.06, wy + 0.08, shade(wall, float(rng.choice([0.5, 0.6, 1.4]))))
        x += width
    road = int(rng.integers(85, 135))
    wide.box(0, HORIZON, WIDE, 1, (road, road, road))
    wide.box(0, HORIZON, WIDE, HORIZON + 0.04, (road + 50, road + 50, road + 45))


def _park(wide: _Wide, rng: np.random.Generator) -> None:
    wide.box(0, 0, WIDE, HORIZON, (170, 205, 230) if rng.random() < 0.7 else (200, 190, 180))
    for _ in range(14):
        x, size = float(rng.uniform(0, WIDE)), float(rng.uniform(0.1, 0.22))
        leaf = (int(rng.integers(50, 130)), int(rng.integers(100, 160)), int(rng.integers(40, 90)))
        wide.box(x - 0.02, 0.4, x + 0.02, HORIZON, (95, 70, 50))
        wide.disc(complex(x, rng.uniform(0.2, 0.42)), size, leaf, 0)
        wide.disc(complex(x - size * 0.3, rng.uniform(0.2, 0.35)), size * 0.6, shade(leaf, 1.15), 0)
    wide.box(0, HORIZON - 0.03, WIDE, 1, (int(rng.integers(90, 140)), int(rng.integers(130, 165)), 80))


def _hall(wide: _Wide, rng: np.random.Generator) -> None:
    wall, floor = (
        _colour(rng, 0.8),
        (int(rng.integers(150, 200)), int(rng.integers(110, 150)), int(rng.integers(70, 110))),
    )
    wide.box(0, 0, WIDE, HORIZON, wall)
    wide.box(0, 0.38, WIDE, HORIZON, _colour(rng, 0.74))
    wide.box(0, HORIZON, WIDE, 1, floor)
    for x in np.arange(0, WIDE, float(rng.uniform(0.2, 0.5))):
        wide.box(x, HORIZON, x + 0.012, 1, shade(floor, 0.7))
        wide.box(x, 0.0, x + 0.02, HORIZON, shade(wall, 0.75))


def _object(wide: _Wide, name: str, x: float, colour: Colour) -> None:
    y = HORIZON + 0.05
    foot = complex(x, y)
    if name == "plant":
        for k in (-2, -1, 0, 1, 2):
            leaf = foot + complex(0.035 * k, 0.02 * k * k - 0.3)
            wide.line((foot - 0.1j, leaf), 0.022, (110, 140 + 6 * k, 110), 0)
        wide.box(x - 0.04, y - 0.11, x + 0.04, y, colour)
    elif name == "lamp":
        wide.box(x - 0.008, y - 0.5, x + 0.008, y, (70, 70, 75))
        shape = [foot + corner for corner in (-0.03 - 0.58j, 0.03 - 0.58j, 0.07 - 0.47j, -0.07 - 0.47j)]
        wide.polygon(shape, (225, 218, 195), 0, convex=True)
    elif name == "picture":
        wide.box(x - 0.1, 0.16, x + 0.1, 0.34, (110, 100, 90))
        wide.box(x - 0.085, 0.175, x + 0.085, 0.325, colour)
        wide.disc(complex(x, 0.26), 0.04, shade(colour, 0.6), 0)
    elif name == "bag":
        wide.disc(foot - 0.1j, 0.04, shade(colour, 0.6), 0)
        wide.box(x - 0.06, y - 0.1, x + 0.06, y + 0.01, colour)
    elif name == "table":
        wide.box(x - 0.15, y - 0.19, x + 0.15, y - 0.165, colour)
        wide.box(x - 0.13, y - 0.17, x - 0.11, y + 0.02, shade(colour, 0.7))
        wide.box(x + 0.11, y - 0.17, x + 0.13, y + 0.02, shade(colour, 0.7))
    else:
        for wheel in (foot - 0.09 - 0.05j, foot + 0.09 - 0.05j):
            wide.disc(wheel, 0.062, (40, 40, 44), 0)
            wide.disc(wheel, 0.048, (150, 150, 150), 0)
        frame = [foot + corner for corner in (-0.09 - 0.05j, -0.02 - 0.15j, 0.07 - 0.15j, -0.05j)]
        wide.line(frame, 0.014, colour, 0)


def _textured(flat: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    """Walls and grounds are never of one colour: noise of two grains over all of it."""
    height, width = flat.shape[:2]
    out = flat.astype(np.float32)
    for cells, strength in ((10, 7.0), (42, 5.0)):
        grain = rng.standard_normal((cells, cells * WIDE)).astype(np.float32) * strength
        out += cv2.resize(grain, (width, height), interpolation=cv2.INTER_LINEAR)[..., None]
    return _hazy(out)


def _hazy(colours: NDArray[np.float32]) -> Canvas:
    """Places are pale next to people: a small network has to find the people first, in a few minutes on two cores."""
    grey = colours.mean(axis=-1, keepdims=True)
    pale = 0.3 * colours + 0.7 * grey
    return np.asarray(np.clip(150 + 0.7 * (pale - 130), 0, 255), np.uint8)
