"""Where faces or people are in every frame of the videos of a set."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vidveil.core.code_hash import code_of
from vidveil.core.frame import Region
from vidveil.core.progress import counted
from vidveil.data.clips import ClipSet
from vidveil.data.found import found_once
from vidveil.detect.settings import DetectionSettings, regions_of

Places = list[tuple[Region, ...]]
"""Of a video, frame by frame."""
DIGITS = 2  # of a pixel


def regions(data: ClipSet, region: str) -> Callable[[int], Places]:
    """What a row of the set has where; `region` is what a user would write: faces, people, `faces:2`, a detector."""
    watch = DetectionSettings(region=region).watch()
    assert watch is not None

    def look() -> list[Any]:
        rows = counted(range(len(data)), f"looking for {region}", len(data), "clips")
        return [[[_told(one) for one in frame] for frame in _watched(data, row, watch)] for row in rows]

    found = found_once(data, "regions", [region, *watch.weights, DIGITS, code_of("detect/*.py")], look)
    return lambda row: [tuple(_read(one) for one in frame) for frame in found[row]]


def _watched(data: ClipSet, row: int, watch: Any) -> Places:
    import torch

    frames = np.array(data.videos.frames(row))  # (T, H, W, 3)
    return regions_of(torch.from_numpy(frames).movedim(-1, 0).float() / 255, watch)


def _told(one: Region) -> list[Any]:
    return [one.kind, one.shape, *(round(edge, DIGITS) for edge in one.box or ())]


def _read(told: Sequence[Any]) -> Region:
    kind, shape, *box = told
    edges = tuple(box) if box else None
    return Region(box=edges, shape=shape, kind=kind, track=0, score=0.0, source="found")
