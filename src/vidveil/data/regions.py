"""Where faces or people are in every frame of the videos of a set."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from vidveil.core.cache import code_of
from vidveil.core.frame import Region
from vidveil.core.progress import counted
from vidveil.data.clips import ClipSet
from vidveil.data.detection_cache import cached_detections
from vidveil.detect.settings import DetectionSettings, regions_of

VideoRegions = list[tuple[Region, ...]]
"""Of a video, frame by frame."""
DIGITS = 2  # of a pixel


def regions(data: ClipSet, region: str) -> Callable[[int], VideoRegions]:
    """A function from a row of the set to its regions.

    Args:
        region: as a user writes it: faces, people, `faces:2`, a detector.
    """
    source = DetectionSettings(region=region).region_source()
    assert source is not None

    def detect() -> list[Any]:
        rows = counted(range(len(data)), f"looking for {region}", len(data), "clips")
        return [[[_to_json(one) for one in frame] for frame in _detect(data, row, source)] for row in rows]

    found = cached_detections(data, "regions", [region, *source.weights, DIGITS, code_of("detect/*.py")], detect)
    return lambda row: [tuple(_from_json(one) for one in frame) for frame in found[row]]


def _detect(data: ClipSet, row: int, source: Any) -> VideoRegions:
    frames = np.array(data.videos.frames(row))  # (T, H, W, 3)
    return regions_of(torch.from_numpy(frames).movedim(-1, 0).float() / 255, source)


def _to_json(region: Region) -> list[Any]:
    return [region.kind, region.shape, *(round(edge, DIGITS) for edge in region.box or ())]


def _from_json(values: Sequence[Any]) -> Region:
    kind, shape, *box = values
    edges = tuple(box) if box else None
    return Region(box=edges, shape=shape, kind=kind, track=0, score=0.0, source="found")
