"""The world's fingerprint: what must not change while its version stays.

    python -m vidveil.data.puppets.freeze > tests/data/puppets/frozen.json

Labels and joints are compared exactly, by sha256. Pictures are compared as thumbnails, within a few grey levels, since
versions of OpenCV differ in the last bit. A change on purpose gets a new `VERSION` next to the old one.
"""

import hashlib
import json
from typing import Any

import cv2
import numpy as np

from vidveil.data.puppets.labels import labels
from vidveil.data.puppets.plan import plan, rows, sample_times
from vidveil.data.puppets.render import render
from vidveil.data.puppets.scene import act
from vidveil.data.puppets.world import RHOS, VERSION, World, parse

SAMPLE = 40
"""Clips whose labels and joints count, spread over all splits."""
PICTURES = ("rho=0", "rho=0.5", "rho=1", "gait", "null", "view=mask", "view=motion", "view=background")
THUMB = 10


def sample(world: World) -> list[int]:
    return list(range(0, len(rows(world)), len(rows(world)) // SAMPLE))


def known(seed: int) -> str:
    """sha256 of labels and of joints, rounded to a thousandth of a stature, over all dials."""
    sums = hashlib.sha256()
    for rho in RHOS:
        world = World(seed=seed, rho=rho)
        found = labels(world, sample(world))
        sums.update(found.facts.astype("<i8").tobytes() + found.attributes.tobytes())
        for index in sample(world)[::4]:
            scene = act(plan(world, index), sample_times(world.frames))
            for actor, shot in scene.cast:
                where = np.concatenate([actor.posed.joints.ravel(), shot.centre])
                sums.update(np.round(where * 1000).astype("<i8").tobytes())
    return sums.hexdigest()


def thumbnails(seed: int) -> dict[str, list[list[int]]]:
    """One clip of every kind of picture: first and last frame, grey, tiny."""
    found = {}
    for number, argument in enumerate(PICTURES):
        world = parse(argument, frames=8, size=64, seed=seed)
        frames = render(world, 101 + 400 * number).frames[[0, -1]]
        small = [cv2.resize(frame, (THUMB, THUMB), interpolation=cv2.INTER_AREA) for frame in frames]
        found[argument] = [np.asarray(picture).mean(axis=-1).round().astype(int).ravel().tolist() for picture in small]
    return found


def fingerprint() -> dict[str, Any]:
    return {"version": VERSION, "known": {str(seed): known(seed) for seed in (0, 1)}, "thumbnails": thumbnails(0)}


if __name__ == "__main__":
    print(json.dumps(fingerprint()))
