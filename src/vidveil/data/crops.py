"""Only the person: every video cut to one square around whoever is seen, so that a place is not taken for a person.

The square is the same for all frames of a video: it holds the surest person of five frames, with a margin, and lies
inside the picture. Where nobody is found it is the middle of the picture. In built-in worlds the square is
drawn around the ground truth. Boxes are found once and kept in the cache as JSON.
"""

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet
from vidveil.data.found import found_once, has_truth
from vidveil.data.store.videos import VideoStore, cache_folder

if TYPE_CHECKING:
    from vidveil.detect.detectors import Yolox

Box = tuple[int, int, int, int]
"""left, top, right, bottom in pixels"""
LOOKS = 5
MARGIN = 0.1  # of the longer side, on each side
SURE = 0.3  # score below which a find is not believed


def person_crops(data: ClipSet) -> ClipSet:
    """The same clips, each cut to the square around its person."""
    boxes = person_boxes(data)
    about = {"crops of": data.videos.fingerprint, "boxes": hashlib.sha256(json.dumps(boxes).encode()).hexdigest()}
    key = hashlib.sha256(json.dumps(about).encode()).hexdigest()[:16]

    def cut() -> Iterator[NDArray[np.uint8]]:
        for i, (left, top, right, bottom) in enumerate(boxes):
            yield np.ascontiguousarray(data.videos.frames(i)[:, top:bottom, left:right])

    return data.with_videos(VideoStore.cached(cache_folder() / "crops" / key, about, cut), f"{data.name}, person crops")


def person_boxes(data: ClipSet) -> list[Box]:
    """One square a video, found by the ground truth or by the detector of people."""
    found = found_once(data, "crops", [LOOKS, MARGIN, SURE], lambda: [_box(data, i) for i in range(len(data))])
    return [tuple(box) for box in found]


def square(found: NDArray[np.float64], width: int, height: int) -> Box:
    """The smallest square inside the picture that holds the boxes (n, 4) and a margin; without boxes, the middle."""
    if not len(found):
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        return left, top, left + side, top + side
    x0, y0 = (float(edge) for edge in found[:, :2].min(axis=0))
    x1, y1 = (float(edge) for edge in found[:, 2:].max(axis=0))
    side = min(int(np.ceil(max(x1 - x0, y1 - y0) * (1 + 2 * MARGIN))), width, height)
    left = int(np.clip(round((x0 + x1) / 2 - side / 2), 0, width - side))
    top = int(np.clip(round((y0 + y1) / 2 - side / 2), 0, height - side))
    return left, top, left + side, top + side


def _box(data: ClipSet, i: int) -> Box:
    frames = data.videos.frames(i)
    height, width = frames.shape[1:3]
    if isinstance(data.videos, VideoStore) and has_truth(data):
        _, rows, columns = np.nonzero(data.videos.side("masks", i))
        edges = [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
        return square(np.array(edges, dtype=np.float64).reshape(-1, 4), width, height)
    detector = _detector()
    scale = detector.scale(width, height)
    surest = []
    for t in np.linspace(0, len(frames) - 1, min(LOOKS, len(frames))).round().astype(int):
        boxes = detector.look(frames[t], scale, SURE)
        if len(boxes):
            surest.append(boxes[boxes[:, 4].argmax(), :4])
    return square(np.array(surest, dtype=np.float64).reshape(-1, 4), width, height)


@cache
def _detector() -> "Yolox":
    from vidveil.detect.detectors import Yolox

    return Yolox()
