"""Shapes on a canvas of four channels: red, green, blue, and the kind of what is drawn.

One call paints a shape's colour and its ground truth, so the two cannot come apart. The canvas is larger than the
picture (supersampled) and drawn without antialiasing; the colours are averaged down, the kinds are sampled.

Points are complex numbers x + iy in frame heights, 0 top left, 1 + 1i bottom right of a square frame: Python adds and
turns those much faster than small arrays, and a clip has some fifteen thousand of them.
"""

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.people import Colour

BITS = 4  # of a pixel that OpenCV takes fractions in
Points = Sequence[complex] | NDArray[np.complex128]
LIGHT = -0.5 - 0.6j
"""Where light comes from, on the screen."""
_CIRCLE = np.exp(1j * np.linspace(0, 2 * np.pi, 18, endpoint=False))


def shade(colour: Colour, by: float) -> Colour:
    """Darker below 1, lighter above."""
    if by <= 1:
        return int(colour[0] * by), int(colour[1] * by), int(colour[2] * by)
    return mix(colour, (255, 255, 255), by - 1)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    red, green, blue = (int(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


class Brush:
    def __init__(self, canvas: NDArray[np.uint8]) -> None:
        """Draws on a canvas (H, W, 4)."""
        self.canvas = canvas
        self.side = canvas.shape[0]
        self._unit = float(self.side << BITS)
        self._half = (1 << BITS) / 2

    def _fixed(self, points: Points) -> NDArray[np.int32]:
        """(N, 2) in fractions of pixels, whose centres are at one half."""
        flat = np.asarray(points, np.complex128).view(np.float64).reshape(-1, 2)
        fixed: NDArray[np.int32] = (flat * self._unit - self._half).astype(np.int32)
        return fixed

    def polygon(self, points: Points, colour: Colour, kind: int, *, convex: bool = False) -> None:
        if convex:
            cv2.fillConvexPoly(self.canvas, self._fixed(points), (*colour, kind), cv2.LINE_8, BITS)
        else:
            cv2.fillPoly(self.canvas, [self._fixed(points)], (*colour, kind), cv2.LINE_8, BITS)

    def disc(self, centre: complex, radius: float, colour: Colour, kind: int) -> None:
        unit, half = self._unit, self._half
        where = (int(centre.real * unit - half), int(centre.imag * unit - half))
        cv2.circle(self.canvas, where, int(max(radius, 0.001) * unit), (*colour, kind), -1, cv2.LINE_8, BITS)

    def oval(self, centre: complex, across: complex, along: complex, colour: Colour, kind: int) -> None:
        """An ellipse by two half-axes, which need not be at right angles."""
        self.polygon(centre + _CIRCLE.real * across + _CIRCLE.imag * along, colour, kind, convex=True)

    def line(self, points: Points, width: float, colour: Colour, kind: int) -> None:
        thick = max(1, round(width * self.side))
        cv2.polylines(self.canvas, [self._fixed(points)], False, (*colour, kind), thick, cv2.LINE_8, BITS)

    def tube(self, a: complex, b: complex, ra: float, rb: float, colour: Colour, kind: int) -> None:
        """A stripe from a to b, so wide at either end."""
        along = b - a
        length = abs(along)
        if length > 1e-6:
            normal = along * (1j / length)
            corners = (a + normal * ra, b + normal * rb, b - normal * rb, a - normal * ra)
            self.polygon(corners, colour, kind, convex=True)

    def capsule(self, a: complex, b: complex, ra: float, rb: float, colour: Colour, kind: int) -> None:
        """The same with round ends."""
        self.disc(a, ra, colour, kind)
        self.disc(b, rb, colour, kind)
        self.tube(a, b, ra, rb, colour, kind)

    def limb(self, a: complex, b: complex, ra: float, rb: float, colour: Colour, kind: int) -> None:
        """A capsule lit from one side."""
        self.capsule(a, b, ra, rb, shade(colour, 0.74), kind)
        lit = LIGHT * 0.3
        self.capsule(a + lit * ra, b + lit * rb, ra * 0.72, rb * 0.72, colour, kind)

    def finish(self, size: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """The picture (size, size, 3) and its kinds (size, size)."""
        step = self.side // size
        averaged = cv2.resize(self.canvas, (size, size), interpolation=cv2.INTER_AREA)
        picture = np.asarray(averaged, np.uint8)[..., :3]
        return picture, self.canvas[step // 2 :: step, step // 2 :: step, 3].copy()
