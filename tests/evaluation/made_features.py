"""A store of features whose content is known: what somebody does is a code, identity another, and the rest is noise.

    clip = class code + person code + noise            static clip = person code + noise

A person's code holds an attribute, too. Everybody does everything equally often: an action does not identify anybody.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet
from vidveil.data.features.labels import FILE, FeatureRows, write_labels
from vidveil.data.features.sets import FeatureSet, load_features
from vidveil.data.store.features import fill

WIDTH, ACTIONS, VIDEOS = 24, 3, 6
"""Of a feature; and how many videos everybody has."""
PEOPLE = (12, 6, 8)
"""In training, validation and test."""
PERSONAL = 6
"""Directions of which codes of people are made; the first is the attribute's."""
NOISE = 0.5


def made(
    folder: Path,
    *,
    people: tuple[int, int, int] = PEOPLE,
    encoder: str = "made",
    width: int = WIDTH,
    static: int = 3,
    attributes: bool = True,
) -> Path:
    """The folder of the store, with its labels."""
    rng = np.random.default_rng(0)
    axes = directions(width)
    who = np.repeat(np.arange(sum(people)), VIDEOS)
    action = np.tile(np.arange(VIDEOS) % ACTIONS, sum(people))
    shown = np.arange(sum(people)) % 2
    codes = rng.normal(size=(sum(people), PERSONAL)) * 1.5
    codes[:, 0] = 4 * shown - 2
    person = codes @ axes[:PERSONAL] + 1
    doing = 3 * axes[PERSONAL : PERSONAL + ACTIONS]

    def noise(count: int) -> NDArray[np.float64]:
        return rng.normal(size=(count, width)) * NOISE

    videos = [
        {
            "clips": (doing[a] + person[p] + noise(2 + i % 2)).astype(np.float32),
            "static": (person[p] + noise(static)).astype(np.float32),
        }
        for i, (p, a) in enumerate(zip(who, action, strict=True))
    ]
    about = {"encoder": {"spec": encoder, "width": width, "fingerprint": encoder}, "clips": {"stride": 1}}
    ids = [f"{p}-{i}" for i, p in enumerate(who)]
    store = fill(folder, about, ids, lambda rows: [videos[i] for i in rows])
    labels = ClipSet(
        name="made",
        videos=FeatureRows(store),
        ids=ids,
        split=np.array(["train", "val", "test"])[np.searchsorted(np.cumsum(people), who, side="right")],
        group=who.astype(str),
        action=action,
        actions=("walk", "wave", "bend"),
        person=who,
        attributes=shown[who].astype(np.float32)[:, None] if attributes else np.zeros((len(who), 0), np.float32),
        attribute_names=("beard",) if attributes else (),
    )
    write_labels(labels, folder / FILE)
    return folder


def read(folder: Path) -> FeatureSet:
    return load_features(f"features:{folder}", "")


def directions(width: int = WIDTH) -> NDArray[np.float64]:
    """(width, width) orthonormal rows: those of people first, then those of actions."""
    found: NDArray[np.float64] = np.linalg.qr(np.random.default_rng(1).normal(size=(width, width)))[0].T
    return found


def clips_of(data: FeatureSet, split: str) -> NDArray[np.bool_]:
    """(n,) which of all clips are of this split."""
    return np.repeat(data.labels.split == split, data.clips.count)
