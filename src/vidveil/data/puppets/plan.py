"""What happens in clip i: who, doing what, where, filmed how, next to whom. A pure function of the world and i.

Person, action, place, camera, clothes, direction and company are drawn one after the other from the clip's own stream,
none depending on another, so that nothing but the person gives the person away.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from vidveil.data.clips import Split
from vidveil.data.puppets.appearance import Appearance, appearance, walker
from vidveil.data.puppets.camera import CAMERAS
from vidveil.data.puppets.motion import ACTIONS
from vidveil.data.puppets.people import Outfit, Person, everybody, muted, somebody
from vidveil.data.puppets.places import OBJECTS, PLACES
from vidveil.data.puppets.style import SECONDS, Array, Performance
from vidveil.data.puppets.world import CLIPS, World

CROWD = (0.5, 0.35, 0.15)
"""How often nobody, one or two stand about."""
USUAL = 0.3
"""How often people wear their usual clothes; otherwise any of theirs."""
SHORTCUT, EXCEPTIONS, EVERYTHING = "walking", 0.05, 3
"""Of biased worlds: the action of the other subgroup, how often it is not so, and how often test people do each."""
ATTRIBUTES = ("skin_colour", "face", "gender", "nudity", "relationship")
"""Names and order of VP-UCF101. Here: darker skin; face seen; presents as a woman; little on; someone holds on."""


@dataclass(frozen=True)
class Row:
    """Where a clip stands in the set."""

    split: Split
    person: int
    clip: int
    """Of this person."""
    number: int
    """Of the streams that it is drawn from: the same clip has the same one in every world that it is in."""


@dataclass(frozen=True)
class Bystander:
    """Someone who stands apart and has nothing to do with it."""

    appearance: Appearance
    x: float
    """Statures from the middle of the frame."""
    far: float
    """Share of the size of the person of interest."""
    yaw: float
    performance: Performance


@dataclass(frozen=True)
class Companion:
    """A child who holds on to the person of interest, for all of the clip or part of it."""

    appearance: Appearance
    side: int
    """-1 left of the person on the screen, 1 right"""
    since: float
    until: float
    hand: bool
    """Holds the hand where it can reach it, else the hip."""


@dataclass(frozen=True)
class Plan:
    index: int
    person: Person
    outfit: Outfit
    appearance: Appearance
    action: str
    performance: Performance
    place: int
    camera: int
    objects: tuple[bool, ...]
    stool: bool
    yaw: float
    """Of the body: 0 faces the camera."""
    gaze: float
    """The head is turned by this angle against the body: who faces the camera looks towards it."""
    glance: tuple[float, float, float]
    """The head turns by this angle, from and to these seconds."""
    masked: bool
    room: float
    """Statures that a camera lets people go before it follows."""
    zoom: float
    shift: float
    drift: float
    gain: float
    bystanders: tuple[Bystander, ...]
    companion: Companion | None
    coins: tuple[bool, ...]
    """Five flips: the labels of attributes where nothing of them is drawn."""


@lru_cache(maxsize=8)
def rows(world: World) -> tuple[Row, ...]:
    """Every clip of the set, person by person."""
    found: list[Row] = []
    first = 0
    splits: tuple[Split, ...] = ("train", "val", "test")
    for split in splits:
        count, clips = world.people()[split], CLIPS[split]
        start = len(found)
        found += [Row(split, first + p, c, start + p * clips + c) for p in range(count) for c in range(clips)]
        first += count
    return biased(world, found) if world.biased else tuple(found)


def biased(world: World, usual: Sequence[Row]) -> tuple[Row, ...]:
    """After NTU-Bias (SPLAVU, appendix A): of training and validation people one subgroup is seen in all actions but
    one, and the other in that one, but for one clip in twenty. Whoever is tested does everything, equally often."""
    learned = [row for row in usual if row.split != "test" and _fits(world, row)]
    tested = sorted({row.person for row in usual if row.split == "test"})
    each = EVERYTHING * len(ACTIONS)
    return (
        *learned,
        *(Row("test", p, c, len(usual) + i * each + c) for i, p in enumerate(tested) for c in range(each)),
    )


def _fits(world: World, row: Row) -> bool:
    _, _, action = _begun(world, row)
    own = everybody(world)[row.person].woman == (world.kind == "bias_f")
    exception = bool(world.stream("bias", row.number).random() < EXCEPTIONS)
    return (own != (action == SHORTCUT)) != exception


def sample_times(frames: int) -> Array:
    """(T,) seconds: the frames are spread evenly over the clip."""
    return np.asarray((np.arange(frames) + 0.5) * (SECONDS / frames), np.float64)


def draw_performance(rng: np.random.Generator) -> Performance:
    return Performance(
        phase=float(rng.random()),
        onset=float(rng.uniform(0.08, 0.3)),
        tempo=float(rng.uniform(0.93, 1.08)),
        size=float(rng.uniform(0.92, 1.08)),
        side=int(rng.integers(2)),
        way=int(rng.integers(2)),
    )


def draw_yaw(rng: np.random.Generator, *, away: bool) -> float:
    """Never straight at the camera nor straight across, so that movements forwards and sideways are both seen."""
    yaw = float(rng.uniform(0.75, 1.2))
    yaw = np.pi - yaw - 0.05 if away else yaw
    return yaw if rng.random() < 0.5 else -yaw


def draw_stranger(rng: np.random.Generator, *, pale: float) -> Appearance:
    """Someone drawn for one clip alone, in paler clothes. They look like people of the full world at any rho."""
    dark, woman = bool(rng.random() < 0.45), bool(rng.random() < 0.5)
    person = somebody(rng, -1, dark=dark, woman=woman, nude=[False])
    return appearance(person, muted(person.outfits[0], pale), 0.5)


def plan(world: World, index: int) -> Plan:
    """What happens in clip `index`."""
    row = rows(world)[index]
    person, index = everybody(world)[row.person], row.number
    rng, outfit, action = _begun(world, row)
    performance = draw_performance(rng)
    place, camera = int(rng.integers(PLACES)), int(rng.integers(len(CAMERAS)))
    objects = tuple(bool(x) for x in rng.random(len(OBJECTS)) < 0.3)
    stool = bool(rng.random() < 0.25)
    away, masked = bool(rng.random() < 0.43), bool(rng.random() < 0.14)
    yaw = draw_yaw(rng, away=away)
    gaze = float(rng.uniform(0.4, 0.7)) * (0.0 if away else -yaw)
    glance = _glance(rng, yaw)
    room, zoom, shift, drift, gain = (
        float(rng.uniform(low, high))
        for low, high in ((0.4, 0.55), (0.97, 1.04), (-0.04, 0.04), (-0.06, 0.06), (0.86, 1.12))
    )
    bystanders = tuple(_bystander(world.stream("by", index * 4 + k)) for k in range(int(rng.choice(3, p=CROWD))))
    companion = _companion(rng, world.stream("with", index))
    coins = tuple(bool(x) for x in rng.random(len(ATTRIBUTES)) < (0.45, 0.5, 0.5, 0.42, 0.45))
    if not world.personal:
        companion, masked = None, False
    return Plan(
        index=index,
        person=person,
        outfit=outfit,
        appearance=_appearance(world, index, person, outfit),
        action=action,
        performance=performance,
        place=place,
        camera=camera,
        objects=objects,
        stool=stool or ACTIONS[action].prop == "stool",
        yaw=yaw,
        gaze=gaze,
        glance=glance,
        masked=masked,
        room=room,
        zoom=zoom,
        shift=shift,
        drift=drift,
        gain=gain,
        bystanders=bystanders,
        companion=companion,
        coins=coins,
    )


def _begun(world: World, row: Row) -> tuple[np.random.Generator, Outfit, str]:
    """The stream of a clip, after clothes and action were drawn from it."""
    rng, outfits = world.stream("clip", row.number), everybody(world)[row.person].outfits
    outfit = outfits[0 if rng.random() < USUAL else int(rng.integers(len(outfits)))]
    action = int(rng.integers(len(ACTIONS)))
    if world.biased and row.split == "test":
        action = row.clip % len(ACTIONS)
    return rng, outfit, tuple(ACTIONS)[action]


def _appearance(world: World, index: int, person: Person, outfit: Outfit) -> Appearance:
    if world.kind == "gait":
        return walker(person)
    if world.kind == "null":  # somebody new in every clip: much to see, nothing to recognise
        rng = world.stream("null", index)
        dark, woman, nude = (bool(x) for x in rng.random(3) < (0.45, 0.5, 0.42))
        nobody = somebody(rng, -1, dark=dark, woman=woman, nude=[nude])
        return appearance(nobody, nobody.outfits[0], world.rho)
    return appearance(person, outfit, world.rho)


def _glance(rng: np.random.Generator, yaw: float) -> tuple[float, float, float]:
    """In a fifth of the clips the head turns for a while, away from the camera or towards it."""
    often, size, start, length = rng.random(), rng.uniform(1.15, 1.5), rng.uniform(0, 0.9), rng.uniform(0.4, 1.2)
    towards = -np.sign(yaw) if abs(yaw) > np.pi / 2 or rng.random() < 0.4 else np.sign(yaw)
    return (float(towards * size) if often < 0.18 else 0.0), float(start), float(start + length)


def _bystander(rng: np.random.Generator) -> Bystander:
    return Bystander(
        appearance=draw_stranger(rng, pale=0.75),
        x=float(rng.choice([-1, 1]) * rng.uniform(0.36, 0.6)),
        far=float(rng.uniform(0.44, 0.56)),
        yaw=float(rng.uniform(-np.pi, np.pi)),
        performance=draw_performance(rng),
    )


def _companion(rng: np.random.Generator, own: np.random.Generator) -> Companion | None:
    there, part, early, share = rng.random() < 0.48, rng.random() < 0.25, rng.random() < 0.5, rng.random()
    side, hand = int(rng.choice([-1, 1])), bool(rng.random() < 0.5)
    if not there:
        return None
    held = 1.0 if not part else float(0.2 + 0.3 * share if share < 0.3 else 0.6 + 0.3 * share)
    since, until = (0.0, held * SECONDS) if early else ((1 - held) * SECONDS, SECONDS)
    child = draw_stranger(own, pale=0.5)
    child = replace(child, face=replace(child.face, beard="none", lips=False))
    return Companion(appearance=child, side=side, since=since, until=until, hand=hand)
