"""A surveillance camera over several people who walk, and what should be noticed: a fall, a fight, someone running.

for video in anomalies(8, seconds=10, frames_per_second=5, size=64, seed=0):
    video.frames, video.events          # (T, H, W, 3), [("fall", 21, 49)]; none in a normal video
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.appearance import appearance
from vidveil.data.puppets.body import Posed, pose
from vidveil.data.puppets.camera import CAMERAS, GROUND, Shot
from vidveil.data.puppets.people import everybody
from vidveil.data.puppets.places import OBJECTS, PLACES, plate
from vidveil.data.puppets.plan import draw_turn
from vidveil.data.puppets.render import detail, film
from vidveil.data.puppets.scene import Actor, Scene
from vidveil.data.puppets.style import SECONDS, Array
from vidveil.data.puppets.timeline import Part, along
from vidveil.data.puppets.world import World

Trouble = Literal["fall", "fight", "run"]
Event = tuple[Trouble, int, int]
"""What, first frame, last frame; both are part of it."""
FAR = 0.52
"""Zoom of the camera, against that of clips."""
ROUND = 3.6
"""Statures, more than a frame is wide: who leaves on one side comes back on the other."""


@dataclass(frozen=True)
class Surveillance:
    frames: NDArray[np.uint8]
    """(T, H, W, 3)"""
    masks: NDArray[np.uint8]
    """(T, H, W) kinds of pixels, as in the clips"""
    events: tuple[Event, ...]
    people: tuple[int, ...]
    frames_per_second: float


@dataclass(frozen=True)
class _Walker:
    actor: Actor
    depth: float
    """How far behind the foremost people, in statures."""


def anomalies(
    count: int,
    *,
    seconds: float = 10.0,
    frames_per_second: float = 5.0,
    size: int = 64,
    seed: int = 0,
    rho: float = 0.5,
    share: float = 0.5,
) -> list[Surveillance]:
    """`share` of the videos have an event, by chance; the others show people walking and nothing else."""
    world = World(seed=seed, rho=rho, size=size)
    times = np.asarray((np.arange(round(seconds * frames_per_second)) + 0.5) / frames_per_second, np.float64)
    return [_video(world, number, times, frames_per_second, share) for number in range(count)]


def _video(world: World, number: int, times: Array, rate: float, share: float) -> Surveillance:
    rng = world.stream("anomaly", number)
    crowd = int(rng.integers(3, 6))
    chosen = rng.choice(len(everybody(world)), crowd, replace=False).tolist()
    odd = bool(rng.random() < share)
    trouble: Trouble | None = get_args(Trouble)[int(rng.integers(3))] if odd else None
    end = float(times[-1])
    start = float(rng.uniform(0.25, 0.6)) * end
    walkers = []
    for rank, who in enumerate(chosen):
        part_of = {"fight": rank < 2, "fall": rank == 0, "run": rank == 0}.get(str(trouble), False)
        walkers.append(_walker(world, rng, who, rank, times, trouble if part_of else None, start, crowd))
    walkers.sort(key=lambda walker: -walker.depth)
    camera = CAMERAS[int(rng.integers(len(CAMERAS)))]
    still = np.zeros(len(times))
    near = Shot(camera.zoom * FAR, camera.tilt, still)
    cast = tuple(
        (walker.actor, Shot(near.zoom * (1 - 0.2 * walker.depth), near.tilt, still, GROUND - 0.12 * walker.depth))
        for walker in walkers
    )
    objects = tuple(bool(x) for x in rng.random(len(OBJECTS)) < 0.3)
    behind = plate(world, int(rng.integers(PLACES)), objects, rng, world.size * detail(world.size))
    nothing = np.zeros(len(times), bool)
    frames, masks = film(Scene(times, near, cast, (), (), nothing, nothing), behind, camera, 1.0, world.size, rng)
    events: tuple[Event, ...] = ()
    if trouble is not None:
        events = ((trouble, int(np.argmax(times >= start)), len(times) - 1),)
    return Surveillance(frames, masks, events, tuple(int(who) for who in chosen), rate)


def _walker(
    world: World,
    rng: np.random.Generator,
    who: int,
    rank: int,
    times: Array,
    trouble: Trouble | None,
    start: float,
    crowd: int,
) -> _Walker:
    person = everybody(world)[who]
    shown = appearance(person, person.outfits[int(rng.integers(len(person.outfits)))], world.rho)
    ahead = 1 if rng.random() < 0.5 else -1
    turn, end = draw_turn(rng), float(times[-1]) + 1
    if trouble == "fight":
        ahead = 1 if rank == 0 else -1  # towards each other
    then = {None: "walking", "run": "running", "fall": "falling", "fight": "punching"}[trouble]
    parts = [Part("walking", 0.0, start, turn), Part(then, start, end, turn)]
    if trouble is None:
        parts = [Part("walking", 0.0, end, turn)]
    moves = along(parts, times, shown.style)
    posed = pose(shown.build, moves, ahead * 1.35)
    depth = float(rng.uniform(0.0, 0.3) if trouble else rng.uniform(0, 2) * (rank + 1) / crowd)
    shift = np.zeros((len(times), 1, 3))
    x = posed.at("pelvis")[:, 0] + _entrance(rng, posed, times, trouble, start, ahead)
    shift[:, 0, 0] = (x + ROUND / 2) % ROUND - ROUND / 2 - posed.at("pelvis")[:, 0]
    return _Walker(Actor(shown, posed.moved(shift)), depth)


def _entrance(
    rng: np.random.Generator, posed: Posed, times: Array, trouble: Trouble | None, start: float, ahead: int
) -> float:
    """Where a way begins, so that its middle, or what should be noticed, lies in the frame."""
    x = posed.at("pelvis")[:, 0]
    if trouble is None:
        return float(rng.uniform(-0.6, 0.6) - x.mean())
    goal = -ahead * 0.17 if trouble == "fight" else rng.uniform(-0.3, 0.3) - ahead * (0.8 if trouble == "run" else 0.2)
    seen = min(start + SECONDS / 4, float(times[-1]))
    return float(goal - x[int(np.argmax(times >= seen))])
