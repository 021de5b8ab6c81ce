"""What is known of every clip: the columns of a `ClipSet`. Known from the plan; no pixel is looked at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.data.puppets.motion import ACTIONS
from vidveil.data.puppets.people import everybody
from vidveil.data.puppets.places import OBJECTS, scene_of
from vidveil.data.puppets.plan import ATTRIBUTES, SHORTCUT, Plan, plan, rows, sample_times
from vidveil.data.puppets.scene import Scene, act
from vidveil.data.puppets.world import World

THINGS = (*OBJECTS, "stool")
FACTS = ("action", "outfit", "place", "scene", "camera", "distractors", *(f"object_{name}" for name in THINGS))
_ACTION = {name: i for i, name in enumerate(ACTIONS)}


def facts(this: Plan) -> NDArray[np.int64]:
    """(F,) of `FACTS`."""
    where = (this.place, scene_of(this.place), this.camera, len(this.bystanders))
    return np.array([_ACTION[this.action], this.outfit.number, *where, *this.objects, this.stool], np.int64)


def attributes(world: World, this: Plan, scene: Scene) -> NDArray[np.uint8]:
    """(T, 5) of `ATTRIBUTES`, frame by frame. Where people have no looks of their own they are flips of a coin."""
    out = np.empty((len(scene.times), len(ATTRIBUTES)), np.uint8)
    if world.personal:
        out[:, [0, 2, 3]] = (this.person.dark, this.person.woman, this.outfit.nude)
        out[:, 1], out[:, 4] = scene.facing, scene.holding
    else:
        out[:] = this.coins
    return out


def of_clips(per_frame: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(N, T, 5) -> (N, 5): a clip has an attribute if at least half of its frames have it."""
    return np.asarray(per_frame.mean(axis=1) >= 0.5, np.float32)


def tags(world: World, action: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """Further labels of some worlds, one per clip: view and gallery for gait, subgroup and shortcut for a bias."""
    if world.kind == "gait":
        return {"view": np.array([_side(plan(world, i)) for i in range(len(rows(world)))]), "gallery": _gallery(world)}
    if world.biased:
        men = np.array([not person.woman for person in everybody(world)], np.int64)
        shortcut = (action == _ACTION[SHORTCUT]).astype(np.int64)
        return {"subgroup": men[[row.person for row in rows(world)]], "shortcut": shortcut}
    return {}


def _side(this: Plan) -> int:
    """Degrees by which somebody is turned away from the camera, to the nearest of four: who is seen from where."""
    return round(math.degrees(this.yaw) % 360 / 60) * 60 % 360


def _gallery(world: World) -> NDArray[np.int64]:
    """The first half of everybody's clips."""
    last = {row.split: row.clip for row in rows(world)}
    return np.array([row.clip <= last[row.split] // 2 for row in rows(world)], np.int64)


@dataclass(frozen=True)
class Labels:
    facts: NDArray[np.int64]
    """(N, F)"""
    attributes: NDArray[np.uint8]
    """(N, T, 5)"""


def labels(world: World, indices: Sequence[int] | None = None) -> Labels:
    """Of some or all clips, without drawing them."""
    times = sample_times(world.frames)
    plans = [plan(world, i) for i in (range(len(rows(world))) if indices is None else indices)]
    return Labels(
        facts=np.stack([facts(this) for this in plans]),
        attributes=np.stack([attributes(world, this, act(this, times)) for this in plans]),
    )
