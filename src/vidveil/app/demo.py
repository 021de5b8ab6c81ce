"""Built-in material: synthetic people who wave, and an attacker who tries to find them again.

Enough to try vidveil on a machine without any video, and to see that a blur which hides a face from the eye may hide
little from a program. People are drawn from a seed: skin, hair, clothes, build and face differ from one to the next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import av
import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.methods import Anonymizer

if TYPE_CHECKING:
    from torch import Tensor

Picture = NDArray[np.uint8]
WIDTH, HEIGHT, RATE = 640, 360, 25
LINE = cv2.LINE_AA


@dataclass(frozen=True, slots=True)
class Person:
    skin: tuple[int, int, int]
    hair: tuple[int, int, int]
    shirt: tuple[int, int, int]
    trousers: tuple[int, int, int]
    build: float
    face: tuple[float, float, float]
    """Distance of the eyes, height of the mouth, width of the face."""

    @staticmethod
    def random(seed: int) -> "Person":
        rng = np.random.default_rng([7, seed])
        tone = rng.uniform(0.35, 1.0)

        def colour(base: NDArray[np.float64]) -> tuple[int, int, int]:
            r, g, b = (int(c) for c in np.clip(base, 0, 255))
            return r, g, b

        return Person(
            skin=colour(np.array([235, 190, 160]) * tone),
            hair=colour(np.array([200, 150, 90]) * rng.uniform(0.1, 1.0) * rng.uniform(0.7, 1.1, 3)),
            shirt=colour(rng.uniform(30, 230, 3)),
            trousers=colour(rng.uniform(20, 160, 3)),
            build=rng.uniform(0.85, 1.2),
            face=(rng.uniform(0.32, 0.42), rng.uniform(0.4, 0.62), rng.uniform(0.72, 0.95)),
        )


def clip(person: Person, take: int, frames: int = 50) -> Iterator[Picture]:
    """Pictures (H, W, 3) of a person waving in front of a wall; each take has its own wall, place and rhythm."""
    rng = np.random.default_rng([11, take])
    coarse = rng.integers(90, 180, (6, 10, 3), dtype=np.uint8)
    wall: Picture = np.asarray(cv2.resize(coarse, (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR), np.uint8)
    wall += rng.integers(0, 24, (HEIGHT, WIDTH, 1), dtype=np.uint8)
    middle, sway, rhythm = rng.uniform(0.4, 0.6) * WIDTH, rng.uniform(8, 20), rng.uniform(0.8, 1.4)
    for i in range(frames):
        time = i / RATE * rhythm
        picture = wall.copy()
        _draw(picture, person, middle + sway * np.sin(2 * time), time)
        yield picture


def _draw(picture: Picture, person: Person, x: float, time: float) -> None:
    size, top = 62.0, 70.0
    face_width = person.face[2]
    shoulder = 62 * person.build
    hip = (x, top + 230)
    for side in (-1, 1):
        _limb(picture, hip, (x + side * 26 * person.build, HEIGHT + 20), person.trousers, 30 * person.build)
    _limb(picture, (x, top + 60), (x, top + 100), tuple(int(0.8 * c) for c in person.skin), 34)
    body = [
        (x - shoulder, top + 95),
        (x + shoulder, top + 95),
        (x + 0.7 * shoulder, hip[1]),
        (x - 0.7 * shoulder, hip[1]),
    ]
    cv2.fillConvexPoly(picture, np.array(body, np.int32), person.shirt, LINE)
    for side in (-1, 1):
        start = (x + side * shoulder * 0.9, top + 105)
        swing = 0.9 * np.sin(6 * time) - 2.2 if side > 0 else 0.2 * np.sin(3 * time) + 1.3
        elbow = (start[0] + side * 20, start[1] + 55 * (0.3 if side > 0 else 1))
        hand = (elbow[0] + side * 65 * abs(np.cos(swing)), elbow[1] + 65 * np.sin(swing))
        _limb(picture, start, elbow, person.shirt, 24)
        _limb(picture, elbow, hand, person.skin, 18)
    centre = (int(x), int(top + 20))
    cv2.ellipse(
        picture,
        (centre[0], centre[1] - 12),
        (int(size * face_width * 0.95), int(size)),
        0,
        180,
        360,
        person.hair,
        -1,
        LINE,
    )
    cv2.ellipse(picture, centre, (int(size * face_width * 0.85), int(size)), 0, 0, 360, person.skin, -1, LINE)
    cv2.ellipse(
        picture, (centre[0], centre[1] - 30), (int(size * face_width * 0.85), 30), 0, 180, 360, person.hair, -1, LINE
    )
    _draw_face(picture, person, centre, size, time)


def _draw_face(picture: Picture, person: Person, centre: tuple[int, int], size: float, time: float) -> None:
    """Eyes, brows, nose and mouth, with light from above and a soft shadow: enough for a network that knows faces."""
    eyes, mouth, face_width = person.face
    x, y = centre
    shade = tuple(int(0.6 * c) for c in person.skin)
    dark = tuple(int(0.35 * c) for c in person.hair)
    height, width = int(size), int(size * face_width * 0.85)
    top, left = max(0, y - height), x - width
    skin = picture[top : y + height, left : x + width]
    lit = skin.copy()
    cv2.ellipse(lit, (x - left, y + 4 * height - top), (4 * width, int(3.45 * height)), 0, 0, 360, shade, -1, LINE)
    for side in (-1, 1):  # sockets, and the sides of the nose
        cv2.ellipse(lit, (int(x - left + side * eyes * size), y - 4 - top), (13, 9), 0, 0, 360, shade, -1, LINE)
        cv2.line(lit, (x - left + side * 6, y - 2 - top), (x - left + side * 9, y + 20 - top), shade, 3, LINE)
    inside = (np.abs(skin.astype(int) - person.skin).sum(2) < 30)[..., None]
    np.copyto(skin, cv2.GaussianBlur(lit, (0, 0), 4), where=inside)
    for side in (-1, 1):
        eye = (int(x + side * eyes * size), y - 3)
        cv2.ellipse(picture, eye, (9, 5), 0, 0, 360, (235, 230, 225), -1, LINE)
        cv2.circle(picture, eye, 4, (45, 32, 25), -1, LINE)
        cv2.ellipse(picture, (eye[0], eye[1] + 1), (10, 7), 0, 190, 350, dark, 2, LINE)
        cv2.ellipse(picture, (eye[0], eye[1] - 9), (13, 5), side * 4, 190, 350, dark, 4, LINE)
        cv2.circle(picture, (x + side * 5, y + 21), 2, dark, -1, LINE)
    lips = (x, int(y + mouth * size + 4))
    red = tuple(int(0.5 * c + 0.5 * r) for c, r in zip(person.skin, (170, 60, 65), strict=True))
    cv2.ellipse(picture, lips, (15, int(6 + 2 * np.sin(9 * time))), 0, 0, 360, red, -1, LINE)
    cv2.line(picture, (lips[0] - 13, lips[1]), (lips[0] + 13, lips[1]), tuple(int(0.5 * c) for c in red), 2, LINE)


def _limb(
    picture: Picture, a: tuple[float, float], b: tuple[float, float], colour: tuple[int, ...], width: float
) -> None:
    cv2.line(picture, (int(a[0]), int(a[1])), (int(b[0]), int(b[1])), colour, int(width), LINE)


def draw_video(path: Path, *, frames: int = 100, person: int = 0) -> None:
    """A video with what videos carry unasked: sound, a place, a time, a device."""
    with av.open(str(path), "w") as output:
        output.metadata.update(
            {"title": "demo", "location": "+48.8584+002.2945/", "creation_time": "2026-01-01T12:00:00Z"}
        )
        stream = output.add_stream("libx264", rate=RATE, options={"preset": "veryfast", "crf": "18"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        sound = output.add_stream("aac", rate=48_000, layout="mono")
        for picture in clip(Person.random(person), take=person, frames=frames):
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        output.mux(stream.encode(None))
        seconds = np.arange(48_000 * frames // RATE) / 48_000
        voice = sum(0.1 / k * np.sin(2 * np.pi * 140 * k * seconds) for k in range(1, 9)) * (np.sin(9 * seconds) > 0)
        tone = av.AudioFrame.from_ndarray(np.asarray(voice, np.float32)[None], "fltp", "mono")
        tone.sample_rate, tone.pts, tone.time_base = 48_000, 0, Fraction(1, 48_000)
        output.mux(sound.encode(tone))
        output.mux(sound.encode(None))


def linkage(method: Anonymizer | None, people: int = 24) -> float:
    """The share of people whose second take is found by comparing small pictures: raw, or both takes anonymized.

    The attacker looks where something moves, averages over time and compares colours. It adapts no further than to
    compare anonymized with anonymized; a stronger one finds more, never less. Chance is 1 / people.
    """
    first, second = (np.stack([_feature(method, i, take) for i in range(people)]) for take in (0, 1))
    distance = np.square(first[:, None] - second[None]).sum(-1)
    best = distance <= distance.min(1, keepdims=True) * (1 + 1e-6)
    return float((best.diagonal() / best.sum(1)).mean())  # a tie is shared: a black picture gives exactly chance


@cache
def _small_clip(person: int, take: int) -> "Tensor":
    import torch

    pictures = [cv2.resize(p, None, fx=0.5, fy=0.5) for p in clip(Person.random(person), 100 + 2 * person + take, 8)]
    return torch.from_numpy(np.stack(pictures)).permute(3, 0, 1, 2).contiguous().float() / 255  # (3, T, H, W)


def _feature(method: Anonymizer | None, person: int, take: int) -> NDArray[np.float64]:
    video = _small_clip(person, take)
    if method is not None:
        video = method.anonymize(video).video
    moving = video.std(1).sum((0, 1)).numpy() + 1e-9  # (W,)
    middle = int((moving * np.arange(len(moving))).sum() / moving.sum())
    left = min(max(middle - 40, 0), video.shape[-1] - 80)
    mean = video.mean(1).permute(1, 2, 0).numpy()[:, left : left + 80]
    return cv2.resize(mean, (8, 18), interpolation=cv2.INTER_AREA).astype(np.float64).ravel()
