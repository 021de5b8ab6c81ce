"""A head from any side: skull, hair, face, hats, masks.

What lies on the head is given by directions from its centre, (left, up, forwards), turned with the head and drawn where
they come towards the camera. Outlines that run around the back are pushed to the rim of the head.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.appearance import Appearance
from vidveil.data.puppets.brush import Brush, mix, shade
from vidveil.data.puppets.people import Colour
from vidveil.data.puppets.style import Array

SEEN = 0.12
"""A face is seen while its forward direction comes towards the camera by this much: up to about 83 degrees."""
MASK_COLOUR: Colour = (95, 200, 235)
EYE_WHITE: Colour = (250, 250, 248)
GLASSES: Colour = (20, 20, 26)
LIPS: Colour = (196, 40, 60)
_AROUND = np.linspace(0, 2 * np.pi, 24, endpoint=False)
_RING = np.exp(1j * np.linspace(0, 2 * np.pi, 13))
_ARC = np.exp(1j * np.linspace(0, np.pi, 12))


def face_seen(turned: Array) -> NDArray[np.bool_]:
    """(T,): whether heads (T, 3, 3) show their face."""
    seen: NDArray[np.bool_] = turned[:, 2, 2] > SEEN
    return seen


def _on_face(*ring: tuple[float, float]) -> Array:
    """(N, 3) directions to points of the face given by (left, up)."""
    return np.array([[x, y, np.sqrt(max(0.04, 1 - x * x - y * y))] for x, y in ring])


def _beard(wide: float, top: float) -> Array:
    outer = [(wide, top), (wide * 0.9, -0.62), (0.3, -0.95), (-0.3, -0.95), (-wide * 0.9, -0.62), (-wide, top)]
    return _on_face(*outer, (-0.32 * wide, top - 0.18), (0.32 * wide, top - 0.18))


BEARDS = {"full": _beard(0.85, -0.15), "goatee": _beard(0.36, -0.42)}
MASK = _on_face((0.85, 0.0), (0.75, -0.55), (0.25, -0.95), (-0.25, -0.95), (-0.75, -0.55), (-0.85, 0.0), (0.0, 0.1))
_RIDGE = np.linspace(-0.35, 2.5, 7)  # of a crest: angles from straight ahead over the top
CREST = np.concatenate(
    [
        np.stack([0 * _RIDGE, np.sin(_RIDGE) * 0.98, np.cos(_RIDGE) * 0.98], 1)[1:],
        np.stack([0 * _RIDGE, np.sin(_RIDGE) * 1.38, np.cos(_RIDGE) * 1.2], 1)[:1:-1],
    ]
)


class _Skull:
    """The head's axes on the screen, as complex numbers scaled by its size, and towards the camera."""

    def __init__(self, centre: complex, radius: float, wide: float, turned: Array) -> None:
        self.centre, self.radius, self.wide = centre, radius, wide
        shape = np.array([wide, 1.0, wide * 1.08])
        self.screen = (turned[0] - 1j * turned[1]) * shape * radius  # (3,) left, up, forwards
        self.towards = turned[2] * shape  # (3,)
        self.left, self.up, self.ahead = (complex(axis) for axis in self.screen)
        length = abs(self.up)
        along = self.up / length if length > 0.25 * radius else -1j
        self.along = along * max(length, 0.86 * radius)
        self.across = along * 1j * wide * 1.02 * radius
        """Half-axes of the silhouette."""

    def spot(self, left: float, up: float, lift: float = 1.0) -> tuple[complex, float]:
        """A point of the face, and how much it comes towards the camera."""
        ahead = (1 - left * left - up * up) ** 0.5
        to = self.towards
        point = self.centre + lift * (left * self.left + up * self.up + ahead * self.ahead)
        return point, float(left * to[0] + up * to[1] + ahead * to[2])

    def outline(self, directions: Array) -> NDArray[np.complex128]:
        """(N, 3) directions on the screen, those behind pushed to the rim."""
        flat: NDArray[np.complex128] = directions @ self.screen
        behind = directions @ self.towards < 0
        if behind.any():
            rim = flat / np.maximum(np.abs(flat), 1e-6) * (0.97 * self.wide * self.radius)
            flat = np.where(behind, rim, flat)
        return self.centre + flat


def draw_head(
    brush: Brush, appearance: Appearance, centre: complex, radius: float, turned: Array, *, masked: bool
) -> None:
    """`turned` (3, 3) has the head's left, up and forwards as columns, in the camera's axes."""
    kind, hair, colour = appearance.head_kind, appearance.hair, appearance.hair_colour
    skull = _Skull(centre, radius, appearance.face.width, turned)
    across, along = skull.across, skull.along
    shown = bool(turned[2, 2] > SEEN)
    shaved = hair == "crest"
    if hair == "curls":
        brush.oval(centre + along * 0.12, across * 1.65, along * 1.35, shade(colour, 0.85), kind)
        brush.oval(centre + along * 0.2 + across * 0.1, across * 1.4, along * 1.15, colour, kind)
    rim, grown = (mix(appearance.head_skin, colour, 0.0 if shown else 0.6), 1.0) if shaved else (colour, 1.08)
    brush.oval(centre, across * grown, along * grown, shade(rim, 0.82), kind)
    brush.oval(centre + along * 0.05, across * 0.92, along * 0.95, rim, kind)
    if shown:
        if not shaved:
            brush.polygon(skull.outline(_FACES[hair]), appearance.head_skin, kind)
        _features(brush, appearance, skull, kind, masked=masked)
    if shaved:
        brush.polygon(centre + CREST @ skull.screen, shade(colour, 0.9), kind)
        brush.line(centre + CREST[6:] @ skull.screen, radius * 0.22, colour, kind)
    if appearance.hat != "none":
        _hat(brush, appearance, skull, kind)


def _hairline(brow: float, back: float) -> Array:
    """(N, 3) directions around the part of the head that hair leaves free."""
    side, up = np.cos(_AROUND), np.sin(_AROUND)
    up = np.where(up > 0, brow * up, 1.15 * up)
    rim = np.stack([side * 0.98, up, np.where(np.abs(side) > 0.75, back, 0.55)], axis=1)
    return np.asarray(rim / np.linalg.norm(rim, axis=1, keepdims=True))


_FACES = {
    "short": _hairline(0.66, -0.15),
    "flat": _hairline(0.78, -0.15),
    "fringe": _hairline(0.42, 0.1),
    "long": _hairline(0.66, 0.25),
    "tail": _hairline(0.66, 0.0),
    "bob": _hairline(0.5, 0.25),
    "curls": _hairline(0.5, 0.25),
}


def _features(brush: Brush, appearance: Appearance, skull: _Skull, kind: int, *, masked: bool) -> None:
    face, r, up = appearance.face, skull.radius, skull.up
    left = skull.left / skull.wide
    hair_tone = mix(appearance.hair_colour, (30, 24, 22), 0.35)
    if face.beard in BEARDS and not masked:
        brush.polygon(skull.outline(BEARDS[face.beard]), hair_tone, kind)
    for sign in (1.0, -1.0):
        eye, near = skull.spot(sign * face.eyes, 0.12)
        if near < 0.05:
            continue
        squeeze = max(0.35, min(1.0, near + 0.25))
        size = face.eye_size
        brush.oval(eye, left * size * 1.3 * squeeze, up * size * 1.1, EYE_WHITE, kind)
        brush.oval(eye, left * size * 0.9 * squeeze, up * size * 0.95, face.iris, kind)
        brow = eye + up * (size + 0.12)
        brush.line((brow - left * 0.17 * squeeze, brow + left * 0.17 * squeeze), face.brows * r * 1.8, hair_tone, kind)
        if appearance.glasses:
            brush.line(eye + _RING.real * (left * 0.27 * squeeze) + _RING.imag * (up * 0.24), r * 0.09, GLASSES, kind)
    if masked:
        brush.polygon(skull.outline(MASK), MASK_COLOUR, kind)
        return
    top, _ = skull.spot(0, 0.05)
    tip, near = skull.spot(0, 0.05 - face.nose, 1.12)
    if near > 0:
        tone = shade(appearance.head_skin, 1.25 if sum(appearance.head_skin) < 330 else 0.78)
        brush.line((top, tip), r * 0.13, tone, kind)
    mouth, near = skull.spot(0, -0.5)
    if near > 0:
        if face.beard == "moustache":
            brush.oval(mouth + up * 0.14, left * 0.36, up * 0.1, hair_tone, kind)
        lips = LIPS if face.lips else mix(appearance.head_skin, (120, 30, 40), 0.6)
        brush.oval(mouth, left * face.mouth, up * (0.11 if face.lips else 0.06), lips, kind)


def _hat(brush: Brush, appearance: Appearance, skull: _Skull, kind: int) -> None:
    colour, r, across, along = appearance.hat_colour, skull.radius, skull.across, skull.along
    if appearance.hat == "band":
        middle = skull.centre + along * 0.55
        brush.line((middle - across, middle + across), r * 0.26, colour, kind)
        return
    low = skull.centre + along * (0.42 if appearance.hat == "cap" else 0.3)
    brush.polygon(low + _ARC.real * (across * 1.13) + _ARC.imag * (along * 0.8), colour, kind)
    if appearance.hat == "cap":
        ahead = skull.ahead
        brim = low + ahead * 0.75
        brush.oval(brim, across * 0.75 + ahead * 0.1, along * 0.1 + ahead * 0.35, shade(colour, 0.8), kind)
    else:
        brush.line((low - across * 1.12, low + across * 1.12), r * 0.24, shade(colour, 0.75), kind)


LENGTHS = {"long": (1.3, 2.5), "bob": (1.55, 1.45), "tail": (0.6, 2.5), "curls": (1.5, 1.1)}
"""Of hair that hangs: width and length, in half heads."""


def hanging_hair(appearance: Appearance) -> Callable[[Brush, complex, float, Array], None] | None:
    """What hangs down the back: drawn behind the torso when the face is seen, before it when the back is."""
    if appearance.hair not in LENGTHS:
        return None
    wide, long = LENGTHS[appearance.hair]

    def draw(brush: Brush, centre: complex, radius: float, turned: Array) -> None:
        back = centre - complex(turned[0, 2], -turned[1, 2]) * radius * 0.45
        down = -complex(turned[0, 1], -turned[1, 1]) * radius + 0.25j * radius
        across = down * (1j / max(abs(down), 1e-6)) * radius * wide * 0.8
        tip = back + down * long
        outline = (back - across * 0.9, back + across * 0.9, tip + across, tip + down * 0.15, tip - across)
        brush.polygon(outline, shade(appearance.hair_colour, 0.8), appearance.head_kind)

    return draw
