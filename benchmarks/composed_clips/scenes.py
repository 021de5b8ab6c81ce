"""What happens in the composed clips: ways in which faces come, move and go, each played twice by other people.

Sizes go round the bands, so that all bands are about as full. A detector that searches every 0.2 s finds a face that
rushes by at 7.5 sizes per second one and a half faces further on.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle

import cv2
import numpy as np

from composed_clips import drawn_heads, portrait, routes
from composed_clips.people import Person, Picture
from composed_clips.stage import BANDS, HEIGHT, RATE, WIDTH, Actor, Clip, Occluder, Route, Scene

Layers = list[Actor | Occluder]
Sizes = Sequence[float]
SECONDS = 3.0


def person(rng: np.random.Generator) -> Person:
    if rng.integers(2):
        return portrait.person(portrait.Variant.draw(rng))
    return drawn_heads.person(drawn_heads.Looks.draw(rng))


def actor(rng: np.random.Generator, behaviour: str, route: Route) -> Actor:
    return Actor(person(rng), behaviour, route, float(rng.uniform(0.88, 1.14)))


def numbers(rng: np.random.Generator, low: Sequence[float], high: Sequence[float]) -> list[float]:
    return [float(value) for value in rng.uniform(low, high)]


def tilted(rng: np.random.Generator) -> float:
    return float(np.clip(rng.normal(0, 8), -20, 20))


# ---- places -------------------------------------------------------------------------------------------------------


def clutter(rng: np.random.Generator, width: int, height: int) -> Picture:
    """Shades, boards, posters, stripes and pebbles: much to look at and no face."""
    base = rng.uniform(60, 190, 3)
    picture = np.full((height, width, 3), base, np.float32)
    for cells in (4, 16, 64, 256):
        grid = rng.normal(0, 1, (cells, cells, 1)) + rng.normal(0, 0.3, (cells, cells, 3))
        shades = (grid * 26 * cells**-0.25).astype(np.float32)
        picture += cv2.resize(shades, (width, height), interpolation=cv2.INTER_CUBIC)
    for _ in range(60):
        x, y = int(rng.integers(width)), int(rng.integers(height))
        w, h = (int(side) for side in rng.integers(12, (width // 7, height // 5)))
        colour = (base * 0.5 + rng.uniform(10, 240, 3) * 0.5).tolist()
        kind = int(rng.integers(5))
        if kind == 0:
            cv2.rectangle(picture, (x, y), (x + w, y + h), colour, -1)
        elif kind == 1:
            cv2.rectangle(picture, (x, y), (x + w, y + h), colour, int(rng.integers(2, 9)))
        elif kind == 2:
            cv2.ellipse(picture, (x, y), (w // 2, h // 2), float(rng.uniform(0, 180)), 0, 360, colour, -1, cv2.LINE_AA)
        elif kind == 3:
            for line in range(0, h, int(rng.integers(6, 18))):
                cv2.line(picture, (x, y + line), (x + w, y + line), colour, 3)
        else:
            end = (x + 2 * w, y + int(rng.integers(-h, h)))
            cv2.line(picture, (x, y), end, colour, int(rng.integers(1, 8)), cv2.LINE_AA)
    picture += rng.normal(0, 4, picture.shape).astype(np.float32)
    return np.asarray(cv2.GaussianBlur(picture.clip(0, 255), (0, 0), 0.9), np.uint8)


def board(rng: np.random.Generator, width: float, height: float) -> Picture:
    """Something to stand behind, RGBA."""
    size = (max(2, round(height)), max(2, round(width)))
    texture = np.full((*size, 3), rng.uniform(40, 200, 3), np.float32)
    texture += rng.normal(0, 12, (1, size[1], 1)) + rng.normal(0, 5, (*size, 1))
    texture *= np.linspace(1.15, 0.8, size[1])[None, :, None]
    return np.dstack([texture.clip(0, 255), np.full(size, 255.0)]).astype(np.uint8)


def standing_at(texture: Picture, x: float, y: float) -> Occluder:
    return Occluder(texture, lambda _: (x, y))


def drifters(rng: np.random.Generator, count: int = 4) -> Layers:
    """Round and angular things that move behind the people, one of them of the colour of skin."""
    found: Layers = []
    for number in range(count):
        size = int(rng.integers(30, 130))
        texture = np.zeros((size, size, 4), np.uint8)
        colour = (*(rng.uniform(20, 240, 3) if number else np.array([205, 160, 135.0])).tolist(), 255)
        if number % 2:
            cv2.rectangle(texture, (size // 8, size // 4), (size - size // 8, size - size // 4), colour, -1)
        else:
            cv2.ellipse(texture, (size // 2, size // 2), (size // 3, size // 2 - 2), 0, 0, 360, colour, -1, cv2.LINE_AA)
        found.append(_adrift(texture, *numbers(rng, (0, 0, 40, 0.5), (WIDTH, HEIGHT, 260, 2))))
    return found


def _adrift(texture: Picture, x: float, y: float, far: float, pace: float) -> Occluder:
    return Occluder(texture, lambda t: (x + far * math.sin(pace * t), y + 0.4 * far * math.cos(1.3 * pace * t)))


def scene(
    rng: np.random.Generator, layers: Layers, light: float = 1.0, noise: float = 2.5, shutter: float = 0.4
) -> Scene:
    width, height = WIDTH * 5 // 4, HEIGHT * 5 // 4
    pan, speed, phase = float(rng.uniform(10, 70)), float(rng.uniform(0.4, 1.2)), float(rng.uniform(0, 6))

    def view(t: float) -> tuple[float, float, float]:
        zoom = 1.06 + 0.05 * math.sin(0.7 * speed * t + phase)
        return width / 2 + pan * math.sin(speed * t + phase), height / 2 + 0.4 * pan * math.cos(speed * t), zoom

    backdrop = clutter(rng, width, height)
    return Scene(backdrop, view, (*drifters(rng), *layers), round(SECONDS * RATE), light, noise, shutter)


def places(rng: np.random.Generator, sizes: Sizes) -> list[tuple[float, float]]:
    """For each size a middle of a face, such that nobody stands before another's face if it can be had."""
    taken: list[tuple[float, float, float]] = []
    found: dict[int, tuple[float, float]] = {}
    for index in sorted(range(len(sizes)), key=lambda i: -sizes[i]):
        size, best = sizes[index], (-math.inf, 0.0, 0.0)
        for _ in range(300):
            x = float(rng.uniform(size, WIDTH - size))
            y = float(rng.uniform(1.1 * size, max(1.2 * size, 0.72 * HEIGHT)))
            # Room to the nearest body, of which all is below the top of its head.
            room = min((max(abs(x - a) - 1.3 * s, (b - s) - y) for a, b, s in taken), default=math.inf)
            best = max(best, (room, x, y))
            if room > size:
                break
        taken.append((best[1], best[2], size))
        found[index] = best[1:]
    return [found[index] for index in range(len(sizes))]


def placed(rng: np.random.Generator, sizes: Sizes) -> list[tuple[float, float, float]]:
    """(x, y, size), the farthest first, as they are painted."""
    return sorted(((x, y, s) for s, (x, y) in zip(sizes, places(rng, sizes), strict=True)), key=lambda one: one[2])


# ---- behaviours ---------------------------------------------------------------------------------------------------


def still(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    layers: Layers = []
    for place in placed(rng, sizes):
        layers.append(actor(rng, "still", routes.standing(*place, tilted(rng), *numbers(rng, [0], [6]))))
    return [scene(rng, layers)]


def drifting(rng: np.random.Generator, sizes: Sizes, behaviour: str = "drifting", **look: float) -> list[Scene]:
    layers: Layers = []
    for place in placed(rng, sizes):
        route = routes.strolling(*place, tilted(rng), *numbers(rng, (0, 0.4, -30), (6, 1.5, 30)))
        layers.append(actor(rng, behaviour, route))
    return [scene(rng, layers, **look)]


def crowd(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    return drifting(rng, [*sizes, *(size * 1.17 for size in sizes)], "crowd")


def dark(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    return drifting(rng, sizes, "dark", light=float(rng.uniform(0.08, 0.2)), noise=6.0, shutter=1.0)


def fast(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    layers: Layers = []
    for _, y, size in placed(rng, sizes):
        far = float(np.clip(4 * size * rng.uniform(0.7, 1.3), 60, 0.4 * WIDTH))
        pace = size * float(rng.uniform(4, 7.5)) / far
        x, phase = numbers(rng, (far, 0), (WIDTH - far, 6))
        layers.append(actor(rng, "fast", routes.rushing(x, y, size, far, pace, phase)))
    return [scene(rng, layers, shutter=1.0)]


def border(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    """At times that are no multiple of anything."""
    layers: Layers = []
    for number, place in enumerate(placed(rng, sizes)):
        begin, stay, speed = numbers(rng, (0.1, 0.3, 3), (0.9, 1.1, 7))
        route = routes.visiting(*place, begin, stay, speed, number % 3)
        layers.append(actor(rng, "border", route))
    return [scene(rng, layers)]


def occluded(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    """Out from behind a wall, then behind a pole and on."""
    layers: Layers = []
    for wall, y, size in placed(rng, sizes):
        speed, start = numbers(rng, (1.2, 0), (3.5, 0.7))
        way, top = (1 if wall < WIDTH / 2 else -1), y - 0.9 * size
        layers.append(actor(rng, "occluded", routes.emerging(wall, y, size, speed, start, way)))
        layers.append(standing_at(board(rng, 2 * size, 1.9 * size), wall - (1.3 if way > 0 else 0.7) * size, top))
        pole = wall + way * size * (1.0 + 0.9 * speed)
        layers.append(standing_at(board(rng, 0.55 * size, 1.9 * size), pole, top))
    return [scene(rng, layers)]


def turning(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    layers: Layers = []
    for place in placed(rng, sizes):
        speed, phase = numbers(rng, (0.8, 0), (1.6, 6))
        route = routes.turning_round(*place, speed, phase, 1 if rng.integers(2) else -1)
        layers.append(actor(rng, "turning", route))
    return [scene(rng, layers)]


def brief(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    """Up from behind a table for a third to half of a second, and down."""
    layers: Layers = []
    for x, y, size in placed(rng, sizes):
        route = routes.popping_up(x, y, size, *numbers(rng, (0.15, 0.3, 1.5), (0.9, 0.5, 2.3)))
        layers.append(actor(rng, "brief", route))
        layers.append(standing_at(board(rng, 3.4 * size, HEIGHT), x - 1.7 * size, y + 0.85 * size))
    return [scene(rng, layers)]


def sizing(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    """Towards the camera or away from it."""
    layers: Layers = []
    for number, place in enumerate(placed(rng, sizes)):
        growth = float(rng.uniform(1.8, 3.5)) ** (1 if number % 2 else -1)
        layers.append(actor(rng, "sizing", routes.approaching(*place, growth, SECONDS)))
    return [scene(rng, layers)]


def cut(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    """Three places, three groups of people, no transition."""
    parts = [drifting(rng, [*sizes[i::3], *sizes[(i + 1) % 3 :: 3]], "cut")[0] for i in range(3)]
    return [replace(part, frames=int(rng.integers(20, 45))) for part in parts]


def crossing(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    """Pairs of about the same size walk past each other, one behind the other."""
    layers: Layers = []
    for number, size in enumerate(sorted(sizes[::2])):
        y, meet, speed = HEIGHT * (0.2 + 0.25 * number), *numbers(rng, (0.3 * WIDTH, 0.9), (0.7 * WIDTH, 2.2))
        for way, part in ((1, 0.93), (-1, 1.07)):
            route = routes.passing(meet, y, min(size * part, 199.0), speed, way, SECONDS)
            layers.append(actor(rng, "crossing", route))
    return [scene(rng, layers)]


def shaking(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    layers: Layers = []
    for place in placed(rng, sizes):
        layers.append(actor(rng, "shaking", routes.shaking(*place, *numbers(rng, (0.2, 3, 0), (0.6, 5, 6)))))
    return [scene(rng, layers)]


def glimpse(rng: np.random.Generator, sizes: Sizes) -> list[Scene]:
    """Up from behind a table for one to five frames: less than a search every 0.2 s is sure to find."""
    layers: Layers = []
    for x, y, size in placed(rng, sizes):
        stay = (int(rng.integers(1, 6)) - 0.5) / RATE
        begin, again = (round(v * RATE) / RATE for v in numbers(rng, (0.15, 1.2), (0.9, 2.6)))
        route = routes.glimpsed(x, y, size, begin, stay, again)
        layers.append(actor(rng, "glimpse", route))
        layers.append(standing_at(board(rng, 3.4 * size, HEIGHT), x - 1.7 * size, y + 0.85 * size))
    return [scene(rng, layers)]


PLAYS: dict[str, tuple[Callable[[np.random.Generator, Sizes], list[Scene]], int]] = {
    "still": (still, 6), "drifting": (drifting, 6), "fast": (fast, 4), "border": (border, 5), "occluded": (occluded, 4),
    "turning": (turning, 5), "brief": (brief, 5), "sizing": (sizing, 4), "dark": (dark, 5), "cut": (cut, 6),
    "crossing": (crossing, 6), "crowd": (crowd, 5), "shaking": (shaking, 5), "glimpse": (glimpse, 5),
}  # fmt: skip
"""What is played, and by how many."""
APART = "glimpse"
"""Scored by itself: who searches every frame has the better of it."""


def clips(seed: int, names: Sequence[str] = tuple(PLAYS), takes: int = 2) -> Iterator[Clip]:
    for take in range(takes):
        for place, name in enumerate(PLAYS):
            play, count = PLAYS[name]
            if name not in names:
                continue
            rng = np.random.default_rng([seed, take, place])
            bands = cycle(BANDS[:3] if name == "crowd" else BANDS)
            for _ in range(take + place):
                next(bands)
            sizes = [float(np.exp(rng.uniform(*np.log(next(bands))))) for _ in range(count)]
            yield Clip(f"{name}_{take + 1}", seed * 1000 + take * 100 + place, tuple(play(rng, sizes)))
