"""Heads to be hidden: drawn ones in many tones, turned as solid bodies, each with the place of its face.

A head is a stack of ovals around an upright axis, given by an angle θ (0 is the nose, ±90° the ears) and a height
y (-1 is the chin, 1 the crown):

    x = w(y) sin θ        z = d(y) cos θ + nose, brows, eye sockets, lips

It is coloured by what a frontal portrait shows at (x, y), lit, turned by `yaw` and splatted point by point, the
nearest last. The face is what lies between hairline and chin, ear and ear; its ellipse fills the box of what of it is
still to be seen from the front.
"""

from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from composed_clips.people import Ellipse, Floats, Person, Sprite, figure

WIDTH, HEIGHT, TALL = 640, 480, 2000  # of the head's picture; that of the body is taller
UNIT = 165  # pixels from the middle of a head to its crown
MIDDLE = (320, 240)  # where the axis and y = 0 are
HAIRLINE = 0.5
EAR = 82.0  # degrees; what lies behind is no face


@dataclass(frozen=True)
class Looks:
    """All that makes one drawn person differ from another."""

    skin: tuple[float, float, float]
    hair: tuple[float, float, float]
    shirt: tuple[float, float, float]
    trousers: tuple[float, float, float]
    iris: tuple[float, float, float]
    width: float
    jaw: float
    eyes_apart: float
    brow: float
    mouth: float
    smile: float
    nose: float
    fringe: float
    volume: float
    beard: float
    light: float
    seed: int

    @staticmethod
    def draw(rng: np.random.Generator) -> "Looks":
        # From pale to dark along the line on which skin lies, a little redder or yellower.
        depth, warm = float(rng.uniform(0, 1)), float(rng.normal(0, 6))
        pale, dark = np.array([238, 196, 170.0]), np.array([112, 74, 54.0])
        skin = pale * (1 - depth) + dark * depth + np.array([warm, 0, -warm])
        hairs = ([28, 22, 20], [70, 46, 30], [120, 82, 50], [190, 150, 92], [130, 128, 126], [120, 56, 30])
        hair = np.array(hairs[int(rng.integers(len(hairs)))], float) * rng.uniform(0.85, 1.15)
        if depth > 0.6:
            hair = np.array([26, 22, 21.0]) * rng.uniform(0.8, 1.6)
        return Looks(
            skin=_triple(skin),
            hair=_triple(hair),
            shirt=_triple(float(rng.uniform(30, 220)) + rng.uniform(-45, 45, 3)),
            trousers=_triple(np.array([40, 45, 60.0]) * rng.uniform(0.5, 2.2)),
            iris=_triple(np.array([[90, 60, 40], [70, 100, 130], [80, 110, 80]][int(rng.integers(3))], float)),
            width=float(rng.uniform(0.6, 0.69)),
            jaw=float(rng.uniform(0.55, 0.78)),
            eyes_apart=float(rng.uniform(0.27, 0.32)),
            brow=float(rng.uniform(0.7, 1.5)),
            mouth=float(rng.uniform(0.2, 0.27)),
            smile=float(rng.uniform(-0.01, 0.06)),
            nose=float(rng.uniform(0.8, 1.25)),
            fringe=float(rng.uniform(-0.06, 0.12)),
            volume=float(rng.uniform(0.03, 0.12)),
            beard=float(rng.choice([0, 0, 0, 0.5, 0.9])),
            light=float(rng.uniform(-0.5, 0.5)),
            seed=int(rng.integers(1 << 30)),
        )


def _triple(values: NDArray[np.float64]) -> tuple[float, float, float]:
    r, g, b = values.clip(0, 255).tolist()
    return (r, g, b)


def _bump(x: Floats, y: Floats, at: tuple[float, float], size: tuple[float, float]) -> Floats:
    return np.exp(-(((x - at[0]) / size[0]) ** 2) - ((y - at[1]) / size[1]) ** 2)


def _portrait(looks: Looks) -> Floats:
    """What is seen from the front, flatly lit: (y, x, RGB) over [-1, 1]², y downwards."""
    size = 800
    picture = np.empty((size, size, 3), np.float32)
    picture[:] = looks.skin
    rng = np.random.default_rng(looks.seed)
    for cells, strength in ((12, 3.0), (90, 3.0), (300, 4.0)):  # blotches and pores
        grid = rng.normal(0, strength, (cells, cells, 1)).astype(np.float32)
        picture += cv2.resize(grid, (size, size), interpolation=cv2.INTER_CUBIC)[..., None]
    y, x = np.mgrid[1 : -1 : size * 1j, -1 : 1 : size * 1j].astype(np.float32)

    def tint(mask: Floats, colour: NDArray[np.float64] | tuple[float, float, float], share: float) -> None:
        weight = (mask * share).clip(0, 1)[..., None]
        picture[:] = picture * (1 - weight) + np.asarray(colour, np.float32) * weight

    skin = np.array(looks.skin)
    apart, eye_y, mouth_y = looks.eyes_apart, 0.02, -0.62
    for side in (-1, 1):
        tint(_bump(x, y, (side * 0.4, -0.3), (0.17, 0.14)), skin * [1.0, 0.72, 0.7], 0.4)  # cheeks
        tint(_bump(x, y, (side * apart, eye_y + 0.01), (0.15, 0.1)), skin * 0.62, 0.65)  # shade of the sockets
        tint(_bump(x, y, (side * apart, eye_y - 0.13), (0.12, 0.03)), skin * 0.75, 0.4)  # below the eyes
        tint(_bump(x, y, (side * 0.075, -0.335), (0.032, 0.022)), skin * 0.22, 0.95)  # nostrils
        tint(_bump(x, y, (side * 0.125, -0.31), (0.03, 0.06)), skin * 0.66, 0.6)  # wings of the nose
        tint(_bump(x, y, (side * 0.27, -0.47), (0.028, 0.13)), skin * 0.75, 0.5)  # folds next to the mouth
    tint(_bump(x, y, (0, -0.1), (0.045, 0.2)), np.minimum(skin * 1.18, 255), 0.6)  # ridge of the nose
    tint(_bump(x, y, (0, -0.27), (0.05, 0.04)), np.minimum(skin * 1.25, 255), 0.6)
    tint(_bump(x, y, (0, -0.385), (0.11, 0.028)), skin * 0.62, 0.7)  # shade below it
    tint(_bump(x, y, (0, -0.78), (0.12, 0.03)), skin * 0.68, 0.6)  # below the lower lip
    if looks.beard:
        edge = np.where(abs(x) > 0.3, -0.1 - 0.55 * ((0.6 - abs(x)) / 0.3).clip(0, 1), -0.46)  # cheeks free, lip not
        jaw = cv2.GaussianBlur((y < edge).astype(np.float32), (0, 0), 22)
        tint(jaw * rng.uniform(0.5, 1, jaw.shape).astype(np.float32), looks.hair, looks.beard)

    def pixel(px: float, py: float) -> tuple[int, int]:
        return round((px + 1) / 2 * size), round((1 - py) / 2 * size)

    layer = picture.copy()
    scale = size / 2
    for side in (-1, 1):
        centre = pixel(side * apart, eye_y)
        axes = (round(0.115 * scale), round(0.052 * scale))
        eye = np.zeros((size, size), np.uint8)
        cv2.ellipse(eye, centre, axes, 0, 0, 360, 1, -1)
        white = np.full_like(layer, 222) * np.array([1, 0.97, 0.95], np.float32)
        iris = pixel(side * apart, eye_y + 0.006)
        cv2.circle(white, iris, round(0.058 * scale), [c * 0.8 for c in looks.iris], -1, cv2.LINE_AA)
        cv2.circle(white, iris, round(0.026 * scale), (12, 12, 14), -1, cv2.LINE_AA)
        cv2.circle(white, (iris[0] + 7, iris[1] - 7), 5, (250, 250, 250), -1, cv2.LINE_AA)
        white[: centre[1] - axes[1] // 2] *= 0.6  # the lid's shade
        layer[eye > 0] = white[eye > 0]
        dark = [c * 0.25 for c in looks.skin]
        cv2.ellipse(layer, centre, axes, 0, 185, 355, dark, 8, cv2.LINE_AA)
        cv2.ellipse(layer, centre, axes, 0, 10, 170, [c * 0.55 for c in looks.skin], 4, cv2.LINE_AA)
        cv2.ellipse(
            layer, (centre[0], centre[1] - 13), axes, 0, 200, 340, [c * 0.55 for c in looks.skin], 4, cv2.LINE_AA
        )
        for hair in range(70):  # brows: short strokes along an arc
            at = hair / 69 * 2 - 1
            foot = pixel(side * (apart + 0.02 + 0.17 * at), eye_y + 0.155 - 0.045 * at**2 + float(rng.normal(0, 0.01)))
            tip = (
                foot[0] + side * round(9 + 3 * float(rng.normal())),
                foot[1] - round(8 * looks.brow * (1 - 0.5 * at)),
            )
            cv2.line(layer, foot, tip, [c * 0.75 for c in looks.hair], max(2, round(5 * looks.brow)), cv2.LINE_AA)
    half, lift = looks.mouth, looks.smile
    lips = np.minimum(skin * [0.86, 0.5, 0.5] + [18, 0, 4], 255)
    curve = [(half * s, mouth_y + lift * s * s * 2) for s in np.linspace(-1, 1, 25)]
    upper = [
        pixel(px, py + 0.062 * (1 - (px / half) ** 2) * (1 - 0.25 * np.exp(-((px / 0.03) ** 2)))) for px, py in curve
    ]
    lower = [pixel(px, py - 0.085 * (1 - (px / half) ** 2)) for px, py in curve]
    line = [pixel(px, py) for px, py in curve]
    cv2.fillPoly(layer, [np.array(upper + line[::-1])], (lips * 0.82).tolist(), cv2.LINE_AA)
    cv2.fillPoly(layer, [np.array(lower + line[::-1])], lips.tolist(), cv2.LINE_AA)
    cv2.polylines(layer, [np.array(line)], False, (lips * 0.3).tolist(), 7, cv2.LINE_AA)
    return np.asarray(cv2.GaussianBlur(layer, (0, 0), 1.6))


@lru_cache(maxsize=12)
def _solid(looks: Looks) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Points (rows, columns, xyz), their colours, lit for a head that looks ahead, and which of them are face."""
    rows, columns = 900, 1500
    theta = np.linspace(-np.pi, np.pi, columns, endpoint=False, dtype=np.float32)[None, :]
    y = np.linspace(-1, 1, rows, dtype=np.float32)[:, None]
    crown = np.sqrt((1 - (y.clip(0.15, 1) - 0.15) ** 2 / 0.85**2).clip(0, 1))
    taper = 1 - (1 - looks.jaw) * (-y).clip(0, 1) ** 2.2
    chin = np.sqrt((1 - ((-y - 0.62).clip(0, 1) / 0.38) ** 2).clip(0, 1)) ** 0.8
    width = looks.width * crown * taper * (0.25 + 0.75 * chin) * (y < 1)
    depth = 0.9 * crown * (1 - 0.16 * (-y).clip(0, 1)) * (0.35 + 0.65 * chin)
    x, z = width * np.sin(theta), depth * np.cos(theta) + 0 * y
    front = np.cos(theta) > 0
    bulge = (
        0.2 * looks.nose * _bump(x, y, (0, -0.26), (0.085, 0.07))
        + 0.13 * looks.nose * _bump(x, y, (0, -0.1), (0.06, 0.16))
        + 0.05 * _bump(x, y, (0, 0.16), (0.5, 0.07))
        + 0.05 * _bump(x, y, (0, -0.62), (0.2, 0.09))
        + 0.08 * _bump(x, y, (0, -0.93), (0.2, 0.12))
    )
    for side in (-1, 1):
        bulge -= 0.1 * _bump(x, y, (side * looks.eyes_apart, 0.03), (0.16, 0.1))
        bulge += 0.035 * _bump(x, y, (side * looks.eyes_apart, 0.01), (0.1, 0.05))
        bulge += 0.04 * _bump(x, y, (side * 0.38, -0.25), (0.16, 0.16))
    z = z + np.where(front, bulge, 0)
    ear = np.exp(-(((np.abs(theta) - np.radians(92)) / 0.13) ** 2)) * np.exp(-(((y + 0.08) / 0.2) ** 4))
    x = x + np.sign(theta) * 0.11 * ear
    colours = cv2.remap(
        _portrait(looks),
        ((x + 1) * 399.5).astype(np.float32),
        ((1 - y + 0 * x) * 399.5).astype(np.float32),
        cv2.INTER_LINEAR,
    )
    colours = np.where((front | (ear > 0.2))[..., None], colours, np.array(looks.skin, np.float32))
    rng = np.random.default_rng(looks.seed + 1)
    grain = rng.normal(0, 1, (rows, columns)).astype(np.float32)
    strands = np.asarray(cv2.GaussianBlur(grain, (0, 0), sigmaX=1.2, sigmaY=14), np.float32)
    strands /= strands.std()
    # Hair grows above the hairline, and behind the ears down to the nape.
    line = HAIRLINE - looks.fringe - 0.25 * (np.abs(theta) / np.radians(70)) ** 4 + 0.03 * np.cos(theta * 14)
    line = np.where(np.abs(theta) > np.radians(74), -0.05, line)
    line = np.where(np.abs(theta) > np.radians(104), -0.75, line)
    hairy = (y > line) & (ear < 0.35)
    soft = cv2.GaussianBlur(hairy.astype(np.float32), (0, 0), 5)
    grow = 1 + looks.volume * soft * (1 + 0.15 * strands)
    x, z, up = x * grow, z * grow, y * (1 + 0.6 * looks.volume * soft) + 0 * x
    tone = np.array(looks.hair, np.float32) * (1 + 0.22 * strands)[..., None].clip(0.4, 2)
    colours = colours * (1 - soft[..., None]) + tone * soft[..., None]
    points = np.stack([x, up, z], -1).astype(np.float32)
    across, along = np.gradient(points, axis=1), np.gradient(points, axis=0)
    normal = np.cross(across, along)
    normal = cv2.GaussianBlur(normal / (np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-9), (0, 0), 3)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True) + 1e-9
    light = np.array([looks.light, 0.55, 1.0], np.float32)
    light /= np.linalg.norm(light)
    lit = (normal @ light).clip(0, 1)
    shine = lit**24 * 22 * (1 - soft)
    colours = colours * (0.42 + 0.72 * lit)[..., None] + shine[..., None]
    face = (np.abs(theta) < np.radians(EAR)) & (y < HAIRLINE)
    return points, colours.clip(0, 255).astype(np.float32), np.broadcast_to(face, x.shape)


def person(looks: Looks) -> Person:
    rows = (MIDDLE[1] + round(0.5 * UNIT), MIDDLE[1] + round(1.2 * UNIT))
    body = figure(TALL, WIDTH, MIDDLE[0], rows, UNIT, looks.skin, looks.shirt, looks.trousers)

    @lru_cache(maxsize=128)
    def turned(yaw: float) -> Sprite:
        return _turned(looks, yaw)

    return Person("drawn", turned, body, (MIDDLE[0], MIDDLE[1] + 0.8 * UNIT))


def _turned(looks: Looks, yaw: float) -> Sprite:
    points, colours, face = (part.reshape(-1, *part.shape[2:]) for part in _solid(looks))
    turn = np.radians(yaw)
    x = points[:, 0] * np.cos(turn) + points[:, 2] * np.sin(turn)
    z = points[:, 2] * np.cos(turn) - points[:, 0] * np.sin(turn)
    near = np.flatnonzero(z > -0.25)
    near = near[np.argsort(z[near], kind="stable")]  # the nearest are written last, over the others
    column = np.round(MIDDLE[0] + x[near] * UNIT).astype(np.int32)
    row = np.round(MIDDLE[1] - points[near, 1] * UNIT).astype(np.int32)
    rgba = np.zeros((HEIGHT, WIDTH, 4), np.float32)
    rgba[row, column, :3] = colours[near]
    rgba[row, column, 3] = 255
    depth = np.full(rgba.shape[:2], -9, np.float32)
    depth[row, column] = z[near]
    rgba[..., :3] *= rgba[..., 3:] / 255
    soft = np.asarray(cv2.GaussianBlur(rgba, (0, 0), 1.0).round(), np.uint8)
    seen = face[near] & (z[near] >= depth[row, column] - 0.03)
    if not seen.any():
        return Sprite(soft, Ellipse(*MIDDLE, 0, 0))
    left, right = float(column[seen].min()), float(column[seen].max() + 1)
    top, bottom = float(row[seen].min()), float(row[seen].max() + 1)
    ellipse = Ellipse((left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2)
    return Sprite(soft, ellipse)
