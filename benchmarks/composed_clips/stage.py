"""Putting people on a stage: actors, what covers them and a camera become frames, and what is true of each frame.

Painted from back to front. Whoever comes later covers the faces before: the map of what is seen follows the painting.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from composed_clips.people import Ellipse, Floats, Person, Picture

WIDTH, HEIGHT, RATE = 1280, 720, 30
BANDS = ((16, 24), (24, 32), (32, 48), (48, 80), (80, 130), (130, 200))
VISIBLE, TURNED = 0.6, 60.0  # what counts
YAW_STEP = 3  # degrees: heads are turned in steps, so that pictures of them can be used again


@dataclass(frozen=True)
class Pose:
    x: float
    y: float
    """Of the middle of the face, when it looks ahead and is not tilted."""
    size: float
    """Of the face that looks ahead: geometric mean of its box's sides."""
    tilt: float = 0.0
    yaw: float = 0.0


Route = Callable[[float], Pose | None]


@dataclass(frozen=True)
class Actor:
    person: Person
    behaviour: str
    pose: Route
    """By seconds; None where this person is not there at all."""
    stretch: float = 1.0
    """How much wider than the person's pictures: a face of another shape."""


@dataclass(frozen=True)
class Occluder:
    """A wall, pole or table in front of all that comes before it: a picture, RGBA, and where its corner is."""

    texture: Picture
    corner: Callable[[float], tuple[float, float]]


@dataclass(frozen=True)
class Scene:
    backdrop: Picture
    view: Callable[[float], tuple[float, float, float]]
    """Middle of the picture on the backdrop (pixels) and zoom, by seconds."""
    layers: tuple[Actor | Occluder, ...]
    frames: int
    light: float = 1.0
    noise: float = 2.5
    shutter: float = 0.4
    """Share of a frame's time during which it is open: what moves is smeared along its way."""


@dataclass(frozen=True)
class Clip:
    name: str
    seed: int
    scenes: tuple[Scene, ...]

    @property
    def frames(self) -> int:
        return sum(scene.frames for scene in self.scenes)


@dataclass
class FaceTruth:
    """One face in one frame."""

    frame: int
    face: int
    kind: str
    behaviour: str
    ellipse: Ellipse
    yaw: float
    visible: float = 0.0
    counts: bool = field(init=False, default=False)

    def as_json(self) -> dict[str, Any]:
        numbers = [round(value, 2) for value in asdict(self.ellipse).values()]
        return {**asdict(self), "ellipse": numbers, "yaw": round(self.yaw, 1), "visible": round(self.visible, 4)}


# ---- painting -----------------------------------------------------------------------------------------------------


def _shrunk(picture: Picture, scale: float) -> tuple[Picture, float]:
    """Halved until it is at most twice as large as it will be shown: then interpolating it does not sparkle."""
    while scale <= 0.5 and min(picture.shape[:2]) >= 4:
        picture = np.asarray(cv2.resize(picture, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8)
        scale *= 2
    return picture, scale


class _Sizes:
    """Shrunk pictures of one clip, to use again."""

    def __init__(self) -> None:
        self.made: dict[tuple[int, int], tuple[Picture, Picture]] = {}

    def get(self, picture: Picture, scale: float) -> tuple[Picture, float]:
        level = max(0, int(np.floor(-np.log2(scale))))
        key = (id(picture), level)
        if key not in self.made:
            self.made[key] = (
                _shrunk(picture, 0.9999 * 2.0**-level if level else 1.0)[0],
                picture,
            )  # keeps the id alive
        small = self.made[key][0]
        return small, scale * picture.shape[0] / small.shape[0]


def _matrix(pose: Pose, actor: Actor, scale: float, shrunk: float, tilt: float) -> NDArray[np.float64]:
    """From a (shrunk) picture of the person to the frame. Tilting is about the neck."""
    px, py = actor.person.pivot
    face = actor.person.head(0.0).face
    c, s = np.cos(np.radians(tilt)), np.sin(np.radians(tilt))
    neck = (pose.x + (px - face.x) * scale * actor.stretch, pose.y + (py - face.y) * scale)
    turn = np.array([[c, -s], [s, c]]) @ np.diag([scale * actor.stretch, scale])
    shift = np.array(neck) - turn @ (px, py)
    ratio = scale / shrunk  # pixels of the shrunk picture per pixel of the full one
    return np.column_stack([turn / ratio, shift])


def face_of(actor: Actor, pose: Pose) -> Ellipse:
    scale = pose.size / actor.person.straight / np.sqrt(actor.stretch)
    face = actor.person.head(_stepped(pose.yaw)).face
    matrix = _matrix(pose, actor, scale, scale, pose.tilt)
    x, y = matrix @ (face.x, face.y, 1)
    return Ellipse(float(x), float(y), face.rx * scale * actor.stretch, face.ry * scale, pose.tilt)


def _stepped(yaw: float) -> float:
    return float(round(yaw / YAW_STEP) * YAW_STEP)


def _paint(frame: Floats, seen: Picture, actor: Actor, poses: list[Pose], sizes: _Sizes) -> None:
    """Put the person into `frame`, averaged over `poses`; faces behind it are no longer `seen`."""
    head = actor.person.head(_stepped(poses[len(poses) // 2].yaw)).rgba
    for picture, tilts in ((actor.person.body, 0.0), (head, 1.0)):
        layers = []
        for pose in poses:
            scale = pose.size / actor.person.straight / np.sqrt(actor.stretch)
            small, shrunk = sizes.get(picture, scale)
            layers.append((small, _matrix(pose, actor, scale, shrunk, tilts * pose.tilt)))
        corners = [m @ [[0, p.shape[1]] * 2, [0, 0, p.shape[0], p.shape[0]], [1] * 4] for p, m in layers]
        low, high = np.min([c.min(1) for c in corners], 0), np.max([c.max(1) for c in corners], 0)
        left, top, right, bottom = _window((low[0] - 1, low[1] - 1, high[0] + 1, high[1] + 1))
        if right <= left or bottom <= top:
            continue
        total = np.zeros((bottom - top, right - left, 4), np.float32)
        for small, matrix in layers:
            moved = matrix.copy()
            moved[:, 2] += 0.5 * moved[:, :2].sum(1) - 0.5 - (left, top)  # OpenCV counts from the centres of pixels
            cv2.accumulate(cv2.warpAffine(small, moved, (right - left, bottom - top), flags=cv2.INTER_LINEAR), total)
        total /= len(layers)
        share = total[..., 3:] / 255
        frame[top:bottom, left:right] *= 1 - share
        frame[top:bottom, left:right] += total[..., :3]
        seen[top:bottom, left:right][share[..., 0] > 0.5] = 0


def render(clip: Clip) -> Iterator[tuple[Picture, NDArray[np.uint8], list[FaceTruth]]]:
    """Frames (RGB), which face each pixel shows, and what is true of them."""
    rng = np.random.default_rng(clip.seed + 1_000_003)
    number, first_face = 0, 1
    for scene in clip.scenes:
        sizes = _Sizes()
        grain = [rng.normal(0, scene.noise, (HEIGHT, WIDTH, 1)).astype(np.float32) for _ in range(8)]
        for index in range(scene.frames):
            time = index / RATE
            x, y, zoom = scene.view(time)
            middle = np.array([[1 / zoom, 0, x - WIDTH / 2 / zoom], [0, 1 / zoom, y - HEIGHT / 2 / zoom]])
            flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
            frame = cv2.warpAffine(scene.backdrop, middle, (WIDTH, HEIGHT), flags=flags).astype(np.float32)
            seen = np.zeros((HEIGHT, WIDTH), np.uint8)
            found: list[FaceTruth] = []
            for offset, layer in enumerate(scene.layers):
                if isinstance(layer, Occluder):
                    _cover(frame, seen, layer, time)
                    continue
                pose = layer.pose(time)
                if pose is None:
                    continue
                _paint(frame, seen, layer, _smear(layer, time, scene.shutter), sizes)
                ellipse = face_of(layer, pose)
                left, top, right, bottom = _window(ellipse.box())
                if right > left and bottom > top:
                    inside = ellipse.mask(left, top, right - left, bottom - top)
                    seen[top:bottom, left:right][inside] = first_face + offset
                found.append(
                    FaceTruth(
                        number, first_face + offset, layer.person.kind, layer.behaviour, ellipse, _stepped(pose.yaw)
                    )
                )
            for one in found:
                left, top, right, bottom = (round(value) for value in one.ellipse.box())
                whole = one.ellipse.mask(left - 1, top - 1, right - left + 3, bottom - top + 3).sum()
                one.visible = float((seen == one.face).sum() / whole) if whole else 0.0
                one.counts = one.visible >= VISIBLE and abs(one.yaw) <= TURNED
            frame = frame * scene.light + grain[int(rng.integers(len(grain)))]
            there_still = [one for one in found if _touches(one.ellipse.grown(1.5).box())]
            yield frame.clip(0, 255).round().astype(np.uint8), seen, there_still
            number += 1
        first_face += len(scene.layers)


def _smear(actor: Actor, time: float, shutter: float) -> list[Pose]:
    """Poses while the shutter is open, the more the faster it goes; where it stands, one will do."""
    poses = [actor.pose(time + step * shutter / RATE) for step in (-0.5, -0.25, 0.0, 0.25, 0.5)]
    there = [pose for pose in poses if pose is not None]
    way = abs(there[0].x - there[-1].x) + abs(there[0].y - there[-1].y)
    if way < 0.7:
        return there[len(there) // 2 :][:1]
    return there[::2] if way < 4 else there


def _window(box: tuple[float, float, float, float]) -> tuple[int, int, int, int]:
    """The pixels that a box touches, as far as they are in the picture."""
    left, top = max(0, int(np.floor(box[0]))), max(0, int(np.floor(box[1])))
    return left, top, min(WIDTH, int(np.ceil(box[2]))), min(HEIGHT, int(np.ceil(box[3])))


def _touches(box: tuple[float, float, float, float]) -> bool:
    return box[2] > 0 and box[3] > 0 and box[0] < WIDTH and box[1] < HEIGHT


def _cover(frame: Floats, seen: Picture, occluder: Occluder, time: float) -> None:
    x, y = (round(value) for value in occluder.corner(time))
    height, width = occluder.texture.shape[:2]
    left, top, right, bottom = max(0, x), max(0, y), min(WIDTH, x + width), min(HEIGHT, y + height)
    if right > left and bottom > top:
        part = occluder.texture[top - y : bottom - y, left - x : right - x].astype(np.float32)
        share = part[..., 3:] / 255
        window = (slice(top, bottom), slice(left, right))
        frame[window] = frame[window] * (1 - share) + part[..., :3] * share
        seen[window][share[..., 0] > 0.5] = 0
