"""Longer videos in which a person does one thing after another, with the frames at which each begins and ends.

    for video in untrimmed(4, seconds=12, frames_per_second=5, size=64, seed=0):
        video.frames, video.segments        # (T, H, W, 3), [("waving", 4, 11), ...]

The same people, movements and places as in the clips. Between actions people stand about; who sat down stands up. How
long either lasts, and which actions there are, is a `Script`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.appearance import ACTION, appearance
from vidveil.data.puppets.body import J, pose
from vidveil.data.puppets.camera import CAMERAS, Shot
from vidveil.data.puppets.head import face_seen
from vidveil.data.puppets.motion import ACTIONS, PAIRS
from vidveil.data.puppets.people import Person, everybody
from vidveil.data.puppets.places import OBJECTS, PLACES, plate
from vidveil.data.puppets.plan import draw_performance, draw_yaw
from vidveil.data.puppets.render import detail, film
from vidveil.data.puppets.scene import Actor, Prop, Scene
from vidveil.data.puppets.style import SECONDS, Array, Performance
from vidveil.data.puppets.timeline import Part, along
from vidveil.data.puppets.world import World

Segment = tuple[str, int, int]
"""Action, first frame, last frame; both are part of it."""


@dataclass(frozen=True)
class Untrimmed:
    frames: NDArray[np.uint8]
    """(T, H, W, 3)"""
    masks: NDArray[np.uint8]
    """(T, H, W) kinds of pixels, as in the clips"""
    segments: tuple[Segment, ...]
    person: int


@dataclass(frozen=True)
class Script:
    """What people do in a video."""

    actions: tuple[str, ...] = tuple(name for name, about in ACTIONS.items() if about.cyclic or not about.backwards)
    """To draw from. What has to be undone is undone next."""
    lasting: tuple[float, float] = (1.6, 3.2)
    """Seconds of an action that can go on for as long as one likes, the shortest and the longest."""
    between: tuple[float, float] = (0.6, 1.6)
    """Seconds of standing about."""
    whole: bool = False
    """Whether nothing begins that would be over at once, since the video is."""
    trouble: tuple[str, ...] = ()
    """One of these happens once, as one of the first three things."""


def untrimmed(
    count: int,
    *,
    seconds: float = 12.0,
    frames_per_second: float = 5.0,
    size: int = 64,
    seed: int = 0,
    rho: float = 0.5,
) -> list[Untrimmed]:
    world = World(seed=seed, rho=rho, size=size)
    times = moments(seconds, frames_per_second)
    return [video(world, number, times, frames_per_second) for number in range(count)]


def moments(seconds: float, rate: float) -> Array:
    """(T,) seconds, the middle of each frame."""
    return np.asarray((np.arange(round(seconds * rate)) + 0.5) / rate, np.float64)


def video(
    world: World,
    number: int,
    times: Array,
    rate: float,
    *,
    people: Sequence[Person] = (),
    script: Script | None = None,
) -> Untrimmed:
    """One of them, by its number. `people` are whom to draw from: everybody, unless they are given."""
    rng = world.stream("untrim", number)
    people = people or everybody(world)
    person = people[int(rng.integers(len(people)))]
    shown = appearance(person, person.outfits[int(rng.integers(len(person.outfits)))], world.rho)
    parts = _parts(rng, float(times[-1]), script or Script())
    posed = pose(shown.build, along(parts, times, shown.style), draw_yaw(rng, away=bool(rng.random() < 0.36)))
    camera, place = CAMERAS[int(rng.integers(len(CAMERAS)))], int(rng.integers(PLACES))
    centre = _smooth(posed.joints[..., 0].mean(axis=1), round(rate))
    shot = Shot(camera.zoom, camera.tilt, centre)
    nobody = np.zeros(len(times), bool)
    props = tuple(prop for part in parts for prop in _prop(part, times, posed.joints, posed.at("pelvis")))
    scene = Scene(times, shot, ((Actor(shown, posed), shot),), props, (), nobody, face_seen(posed.head))
    objects = tuple(bool(x) for x in rng.random(len(OBJECTS)) < 0.3)
    behind = plate(world, place, objects, rng, world.size * detail(world.size))
    frames, masks = film(scene, behind, camera, 1.0, world.size, rng)
    return Untrimmed(frames, masks, segments(parts, times), person.number)


def segments(parts: list[Part], times: Array) -> tuple[Segment, ...]:
    """First and last frame of every action that is seen at all."""
    found: list[Segment] = []
    for part in parts:
        inside = np.flatnonzero((times >= part.start) & (times < part.end))
        if part.action is not None and len(inside):
            found.append((part.action, int(inside[0]), int(inside[-1])))
    return tuple(found)


def _parts(rng: np.random.Generator, seconds: float, script: Script) -> list[Part]:
    """Actions and pauses until the time is over."""
    names, undone = script.actions, dict(PAIRS)
    parts: list[Part] = []
    clock = 0.0
    odd = int(rng.integers(3)) if script.trouble else -1  # the number of the action that is trouble

    def add(action: str | None, length: float, performance: Performance) -> None:
        nonlocal clock
        parts.append(Part(action, clock, clock + length, performance))
        clock += length

    number = 0
    while clock < seconds:
        add(None, float(rng.uniform(*script.between)), draw_performance(rng))
        if script.whole and clock + script.lasting[0] > seconds:
            add(None, seconds - clock + 1, draw_performance(rng))
            break
        among = script.trouble if number == odd else names
        action = among[int(rng.integers(len(among)))]
        lasts = number == odd or ACTIONS[action].cyclic
        length = float(rng.uniform(*script.lasting)) if lasts else SECONDS
        performance = draw_performance(rng)
        add(action, length, performance)
        if not ACTIONS[action].cyclic:
            add(undone[action], SECONDS, performance)  # as it was done, so it is undone
        number += 1
    return parts


def _prop(part: Part, times: Array, joints: Array, pelvis: Array) -> list[Prop]:
    """The thing that a part needs, while it goes on. A ball stays in the hand until it is let go and is gone then."""
    name = None if part.action is None else ACTIONS[part.action].prop
    during = (times >= part.start) & (times < part.end)
    if name is None or not during.any():
        return []
    hands = joints[:, [J["hand_l"], J["hand_r"]]]  # (T, 2, 3)
    if name == "box":
        xyz = hands.mean(axis=1)
    elif name == "ball":
        xyz = hands[:, part.performance.side]
        half = (part.start + part.end) / 2
        during = during & (times >= half if ACTIONS[str(part.action)].backwards else times < half)
    else:
        where = pelvis[during][0 if ACTIONS[str(part.action)].backwards else -1]
        xyz = np.repeat(np.array([[where[0], 0.0, where[2]]]), len(times), 0)
    return [Prop(name, np.where(during[:, None], xyz, np.nan), ACTION)]


def _smooth(path: Array, window: int) -> Array:
    """The camera's man is slow: a running mean over a second before and after."""
    padded = np.pad(path, window, mode="edge")
    out: Array = np.convolve(padded, np.ones(2 * window + 1) / (2 * window + 1), mode="valid")
    return out
