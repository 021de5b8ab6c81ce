"""A photographed head: the portrait of an astronaut that scikit-image brings (NASA, public domain), cut out by hand.

Measured on the 512 x 512 picture: outlines of head and suit, the face's box, the axis of the head. Variants are
mirrored, recoloured, and turned as if pasted on a cylinder, whose back is hair.
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files

import cv2
import numpy as np
from numpy.typing import NDArray

from composed_clips.people import Ellipse, Floats, Person, Picture, Sprite

FACE = (176, 62, 276, 180)
AXIS, RADIUS = 227.0, 73.5  # of the head, hair included
CROWN = 80  # above this row it grows narrower
ZOOM = 2  # sprites are twice as large as the photograph
WIDTH, HEIGHT = 400, 1500  # of the canvas, in pixels of the photograph
NAPE = 112  # the last row that shows hair at both sides
CHIN, COLLAR, WAIST = 182, 150, 330
HEAD = (
    "195,28 210,20 232,15 258,22 280,36 295,56 301,80 300,98 292,114 282,124 279,134 271,137 267,137 262,156 250,172 "
    "236,180 222,182 208,177 195,164 186,150 184,134 175,131 170,120 160,106 154,88 154,70 160,56 172,46 186,39"
)
SUIT = (
    "188,140 256,140 254,176 262,177 283,197 298,220 305,240 325,252 342,272 352,295 360,330 28,330 40,295 62,250 "
    "85,228 112,212 116,195 124,180 132,163 150,152 170,148 184,149 188,160"
)


@dataclass(frozen=True)
class Variant:
    mirrored: bool = False
    gains: tuple[float, float, float] = (1.0, 1.0, 1.0)
    """Of red, green, blue: skin and hair from pale to dark."""
    contrast: float = 1.0
    suit: int = 0
    """By how much the suit's hue is turned, of 180."""
    dye: float = 1.0
    """How much of its colour is left."""

    @staticmethod
    def draw(rng: np.random.Generator) -> "Variant":
        dark = float(rng.uniform(0, 1)) ** 1.5
        gains = np.array([1.05, 1.02, 1.0]) * (1 - dark) + np.array([0.62, 0.5, 0.46]) * dark
        r, g, b = (gains * rng.uniform(0.9, 1.1) * rng.normal(1, 0.03, 3)).tolist()
        return Variant(
            bool(rng.integers(2)),
            (r, g, b),
            float(rng.uniform(0.75, 1.15)),
            int(rng.integers(180)),
            float(rng.uniform(0.15, 0.8)),
        )


@lru_cache(maxsize=1)
def photograph() -> Picture:
    """RGB. Read as a file: importing scikit-image for one picture takes a second."""
    with as_file(files("skimage") / "data" / "astronaut.png") as path:
        picture = cv2.imread(str(path))
    if picture is None:
        raise FileNotFoundError("scikit-image is installed without its astronaut.png")
    return np.asarray(picture[..., ::-1], np.uint8)


def person(variant: Variant) -> Person:
    head, suit = _parts(variant)

    @lru_cache(maxsize=128)
    def turned(yaw: float) -> Sprite:
        return _turned(head, yaw, variant.mirrored)

    axis = WIDTH - AXIS if variant.mirrored else AXIS
    return Person("portrait", turned, suit, (axis * ZOOM, (CHIN - 10.0) * ZOOM))


def _parts(variant: Variant) -> tuple[Floats, Picture]:
    """Head and suit, RGBA of the canvas, the head not yet premultiplied."""
    photo = photograph()[:, :WIDTH].astype(np.float32)
    hsv = np.asarray(cv2.cvtColor(photo / np.float32(255), cv2.COLOR_RGB2HSV), np.float32)
    orange = (hsv[..., 1] > 0.5).astype(np.float32)[..., None]
    hsv[..., 0] = (hsv[..., 0] + 2 * variant.suit) % 360
    hsv[..., 1] *= variant.dye
    dyed = cv2.cvtColor(hsv, cv2.COLOR_HSV2RGB) * 255
    clothed = photo * (1 - orange) + dyed * orange
    tone = np.asarray(variant.gains, np.float32)
    head = ((photo * tone - 110) * variant.contrast + 110).clip(0, 255)
    head = _cut(head, _outline(HEAD))
    rows = np.arange(len(clothed))[:, None, None]
    skin = (rows < 190) & (photo[..., :1] > 90)  # the neck takes the tone of the head
    clothed = np.where(skin, ((photo * tone - 110) * variant.contrast + 110).clip(0, 255), clothed)
    below = clothed[183:187, 205:245].mean((0, 1))  # the neck itself, where the chin hides it in the photograph
    clothed[130:CHIN, 186:260] = below * 0.85
    suit = _cut(clothed, _outline(SUIT))
    tall = np.zeros((HEIGHT, WIDTH, 4), np.float32)
    tall[: len(suit)] = suit
    cloth = clothed[290:WAIST, 80:300].mean((0, 1))
    for points in (
        "28,326 360,326 345,560 330,660 60,660 45,560",
        "60,650 330,650 320,1500 215,1500 198,820 180,1500 70,1500",
    ):
        cv2.fillPoly(tall, [_outline(points)], (*(cloth * 0.85).tolist(), 255), cv2.LINE_AA)
    fade = np.linspace(0, 1, 60, dtype=np.float32)[:, None, None]  # from the photographed suit to plain cloth
    strip = slice(WAIST - 60, WAIST)
    tall[strip, :, :3] = tall[strip, :, :3] * (1 - fade) + cloth * 0.85 * fade
    large = np.asarray(cv2.resize(tall, None, fx=ZOOM, fy=ZOOM, interpolation=cv2.INTER_CUBIC).clip(0, 255), np.float32)
    if variant.mirrored:
        large = large[:, ::-1].copy()
    large[..., :3] *= large[..., 3:] / 255
    return head, np.asarray(large.round(), np.uint8)


def _outline(points: str) -> NDArray[np.int32]:
    return np.array([[int(number) for number in pair.split(",")] for pair in points.split()], np.int32)


def _cut(picture: Floats, outline: NDArray[np.int32]) -> Floats:
    mask = np.zeros(picture.shape[:2], np.uint8)
    cv2.fillPoly(mask, [outline], 255, cv2.LINE_AA)
    soft = cv2.GaussianBlur(mask.astype(np.float32), (0, 0), 1.0)
    return np.dstack([picture, soft])


def _turned(head: Floats, yaw: float, mirrored: bool) -> Sprite:
    turn = -yaw if mirrored else yaw
    high = CHIN + 20
    solid = head[:high, :, 3] > 127
    x = np.arange(WIDTH, dtype=np.float32)[None, :]
    rows = np.arange(high, dtype=np.float32)[:, None]
    wide = np.asarray(solid.any(1))
    first = np.where(wide, solid.argmax(1), 0)[:, None]
    last = np.where(wide, WIDTH - 1 - solid[:, ::-1].argmax(1), 0)[:, None]
    # The crown is a ball. Below, all rows lie on one cylinder: a chin is as far from the axis as a forehead.
    ball = rows < CROWN
    middle = np.where(ball, (first + last) / 2, AXIS)
    radius = np.where(ball, np.maximum((last - first) / 2, 1), RADIUS)
    across = (x - middle) / radius
    at = np.degrees(np.arcsin(across.clip(-1, 1))) - turn  # degrees round the head, 0 where the nose is
    sight = at.clip(-76, 76)  # the outermost columns are seen too flatly to be spread out
    source_x = middle + radius * np.sin(np.radians(sight))
    picture = cv2.remap(head[:high], source_x.astype(np.float32), (rows + 0 * x).astype(np.float32), cv2.INTER_LINEAR)
    # The back: hair from above the ears, there and back again so that no seam shows, down to the nape.
    ripple = 0.93 - 0.12 * np.abs(((np.abs(at) - 76) / 24) % 2 - 1)
    hair_x, hair_y = AXIS + np.sign(at) * ripple * RADIUS, np.minimum(rows * 0.45 + 44, NAPE) + 0 * x
    hair = cv2.remap(head[:high], hair_x.astype(np.float32), hair_y.astype(np.float32), cv2.INTER_LINEAR)
    nape = NAPE + 34 * np.sqrt((1 - across**2).clip(0, 1)) * min(1, abs(turn) / 40)
    hair[..., 3] = np.where((rows < nape) & wide[:, None], 255, 0)
    bare = (picture[..., 3] < 128) & (at * turn < 0)  # where the photograph's background shows behind the cheek
    back = np.dstack([(np.abs(at) > 76) | bare] * 4)
    whole = np.where(back, hair, picture).astype(np.float32)
    whole[..., 3] = cv2.GaussianBlur(np.where(np.abs(across) < 1, whole[..., 3], np.float32(0)), (0, 0), 1.0)
    if turn == 0:
        whole = head[:high].astype(np.float32)
    edges = np.degrees(np.arcsin((np.array(FACE[::2]) - AXIS) / RADIUS)) + turn
    left, right = AXIS + RADIUS * np.sin(np.radians(edges.clip(-90, 90)))
    large = np.asarray(
        cv2.resize(whole, None, fx=ZOOM, fy=ZOOM, interpolation=cv2.INTER_CUBIC).clip(0, 255), np.float32
    )
    large[..., :3] *= large[..., 3:] / 255
    if mirrored:
        large, left, right = large[:, ::-1], WIDTH - right, WIDTH - left
    box = np.array([left, FACE[1], right, FACE[3]]) * ZOOM
    face = Ellipse(*((box[:2] + box[2:]) / 2).tolist(), *((box[2:] - box[:2]) / 2).tolist())
    return Sprite(np.ascontiguousarray(large.round().astype(np.uint8)), face)
