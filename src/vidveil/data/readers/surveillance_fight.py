"""`surveillance_fight`: 150 fights and 150 ordinary scenes from surveillance cameras, labelled by the video.

There is no official split, and neighbouring files often come from the same camera, with fights and without. In a split
by file, a network could recognize the place, so the split is by scene:

    two videos share a scene  ⟺  their mean pictures, 24 × 16, correlate by more than 0.6,
                                  or a chain of such pairs joins them

and whole scenes go to training, validation and test (60 / 15 / 25 % of the videos), the largest first, each to the part
that still lacks most of its labels. Identities are unknown: `person` is -1.
"""

from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet, Videos
from vidveil.data.readers.annotations import no_argument, read_table
from vidveil.data.store.decoded import decoded

SHARES = {"train": 0.60, "val": 0.15, "test": 0.25}
ALIKE = 0.6  # the lowest at which scenes do not yet merge (at 0.55 the largest has 42 videos, at 0.6 ten): joining too
# many does no harm, a camera in two splits would
THUMBNAIL = (24, 16)


def load(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    no_argument("surveillance_fight", argument)
    folder = root / "surveillance_fight"
    rows = read_table(folder / "manifest.csv", ("path", "label"))
    if unknown := {row["label"] for row in rows} - {"0", "1"}:
        raise DataError(f"{folder / 'manifest.csv'}: a label is 0 or 1, not {min(unknown)!r}")
    videos = decoded("surveillance_fight", folder, [row["path"] for row in rows])
    fight = np.array([int(row["label"]) for row in rows], np.int64)
    scene = scenes(videos)
    return ClipSet(
        name="surveillance_fight",
        videos=videos,
        ids=[row["path"] for row in rows],
        split=split_scenes(scene, fight),
        group=np.array([f"scene {number}" for number in scene]),
        action=fight,
        actions=("none", "fight"),
        tags={"scene": scene},
    )


def scenes(videos: Videos) -> NDArray[np.int64]:
    """(N,) the number of the scene of each video, in order of first appearance."""
    small = []
    for i in range(len(videos)):
        frames = videos.frames(i)
        if not len(frames):  # it could not be decoded, and is like no other
            small.append(np.zeros(3 * THUMBNAIL[0] * THUMBNAIL[1], np.float32))
            continue
        mean = frames[:: max(1, len(frames) // 16)].mean(axis=0, dtype=np.float32)
        small.append(cv2.resize(mean, THUMBNAIL, interpolation=cv2.INTER_AREA).reshape(-1))
    pictures = np.stack(small)
    pictures -= pictures.mean(axis=1, keepdims=True)
    pictures /= np.maximum(np.linalg.norm(pictures, axis=1, keepdims=True), 1e-6)
    alike = pictures @ pictures.T > ALIKE
    scene = np.full(len(pictures), -1, np.int64)
    for first in range(len(pictures)):
        if scene[first] >= 0:
            continue
        number, reached = scene.max() + 1, [first]
        while reached:
            i = reached.pop()
            if scene[i] < 0:
                scene[i] = number
                reached.extend(np.flatnonzero(alike[i] & (scene < 0)).tolist())
    return scene


def split_scenes(scene: NDArray[np.int64], label: NDArray[np.int64]) -> NDArray[np.str_]:
    """(N,) whole scenes to train, val and test, so that each gets about its share of either label."""
    names = list(SHARES)
    counts = np.array([[np.sum((scene == s) & (label == k)) for k in (0, 1)] for s in range(scene.max() + 1)])  # (S, 2)
    lacks = np.array([share * counts.sum(axis=0) for share in SHARES.values()])  # (3, 2)
    given = np.empty(len(counts), dtype="<U5")
    for s in np.argsort(-counts.sum(axis=1), kind="stable"):
        part = int(np.argmax(lacks @ counts[s]))
        given[s] = names[part]
        lacks[part] -= counts[s]
    return given[scene]
