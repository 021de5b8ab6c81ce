"""A moving figure, turned, mirrored, stretched and moved in the picture at random, differently in each scene.

    seed    the first difference that shows something: the same recording gives the same video
    shown   as `figure`, but blocks are cut of the figure after it was turned: else their edges would tell how. The
            picture's own edges do, where a camera moves: what lies outside is black

How tall somebody is for their width, and how their camera was held, is then no longer the same in two videos of theirs.
What they do is. Pace is left alone: actions are recognized by it.
"""

import hashlib
from typing import NamedTuple, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError
from vidveil.methods.figure import HIDES, Box, Figure, Floats

TURN = 40  # degrees, either way; the others go with it
STRETCH = 0.64  # of the logarithm of a side's length
SHIFT = 0.192  # of half of the box
GAIN = 0.48  # of the logarithm of brightness
OVER = 8  # pixels a side of a block before its mean is taken


class View(NamedTuple):
    turn: NDArray[np.float64]
    """(2, 2): from where a point is shown to where it was filmed, in halves of the box, x first."""
    shift: NDArray[np.float64]
    gain: float


class Recast(Figure):
    """`recast:N,D`: N blocks, turned by up to D degrees; by default as many blocks as hide a face."""

    def __init__(self, spec: str, argument: str | None) -> None:
        blocks, comma, degrees = (part.strip() for part in (argument or "").partition(","))
        super().__init__(spec, blocks if argument else None)
        if comma and (not degrees.isascii() or not degrees.isdigit() or int(degrees) > 90):
            raise UsageError(f"{spec}: after the comma comes by how many degrees it may be turned, from 0 to 90")
        self.strength = int(degrees) / TURN if comma else 1.0
        if not argument:
            self.blocks = self.hides
        self._drawn: tuple[Floats, View] | None = None

    @property
    def hides(self) -> int:
        return int(HIDES / np.exp(STRETCH * self.strength))

    def means(self, small: Floats, box: Box, shape: tuple[int, int], first: Floats) -> Floats:
        view = self._view(first)
        rows, columns = shape
        step = 2 * box.half * small.shape[0] / (rows * OVER) * np.exp(STRETCH * self.strength)
        if step > 1:  # filmed pixels a drawn one, at most: some would be passed over
            small = cast(Floats, cv2.resize(small, None, fx=1 / step, fy=1 / step, interpolation=cv2.INTER_AREA))
        canvas = seen_from(small, box, (rows * OVER, columns * OVER), view)
        blocks = cv2.resize(canvas, (columns, rows), interpolation=cv2.INTER_AREA)
        return cast(Floats, view.gain * blocks)

    def _view(self, first: Floats) -> View:
        """Drawn once a scene. Clips may be worked on side by side: the scene and its view change hands together."""
        drawn = self._drawn
        if drawn is None or drawn[0] is not first:
            drawn = self._drawn = (first, view_of(first, self.strength))
        return drawn[1]


def view_of(first: Floats, strength: float) -> View:
    digest = hashlib.sha256(np.ascontiguousarray(first).tobytes()).digest()
    random = np.random.default_rng(int.from_bytes(digest, "big"))
    angle = np.deg2rad(strength * random.uniform(-TURN, TURN))
    stretch = np.exp(strength * random.uniform(-STRETCH, STRETCH, 2))
    mirror = random.choice((-1.0, 1.0))
    shift, gain = strength * random.uniform(-SHIFT, SHIFT, 2), np.exp(strength * random.uniform(-GAIN, GAIN))
    turned = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return View(turned @ np.diag([mirror * stretch[0], stretch[1]]), shift, float(gain))


def seen_from(small: Floats, box: Box, shape: tuple[int, int], view: View) -> Floats:
    """What is in the box, drawn from the view on `shape` pixels. What lies outside the picture is 0."""
    (height, width), (tall, wide) = small.shape, shape
    aspect = width / height  # of the picture, hence of the box
    drawn = np.array([[2 * aspect / wide, 0, aspect / wide - aspect], [0, 2 / tall, 1 / tall - 1], [0, 0, 1]])
    moved = np.eye(3)
    moved[:2, :2], moved[:2, 2] = view.turn, view.shift * (aspect, 1)
    half = box.half * height
    filmed = np.array([[half, 0, box.x * width - 0.5], [0, half, box.y * height - 0.5], [0, 0, 1]])
    to_filmed = (filmed @ moved @ drawn)[:2]
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    return cast(Floats, cv2.warpAffine(small, to_filmed, (wide, tall), flags=flags))
