"""Which part of the pictures of a set is used: all of it, a square around the person, or the place alone.

    whole         the videos as they are
    person_crop   every video cut to one square around its person, so that a network cannot learn the place instead
    median        every video becomes one frame, the temporal median of its frames: whoever moves is gone, the place
                  remains. A person who stands still remains, too

The square is the same for all frames of a video: it holds the most certain detection in each of five frames, with a
margin, and lies inside the picture. Without any detection it is the middle of the picture. Where a set has ground-truth
masks, the square is drawn around these. Squares are computed once and kept in the cache as JSON.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError
from vidveil.core.progress import counted
from vidveil.data.clips import ClipSet
from vidveil.data.detection_cache import cached_detections, has_ground_truth
from vidveil.data.store.videos import VideoStore, cache_folder
from vidveil.detect.detectors import Yolox

VideoPart = Literal["whole", "person_crop", "median"]
Box = tuple[int, int, int, int]
"""left, top, right, bottom in pixels"""
FRAMES = 5  # of each video, in which people are detected
MARGIN = 0.1  # of the longer side, on each side
MIN_SCORE = 0.3  # detections below are ignored


def check_video_part(part: str, data: str) -> None:
    """Refuse sets that have no such part, by their names: before anything is loaded."""
    if part != "whole" and data.startswith("puppets"):
        raise UsageError(f"part: {part} is for recorded video; built-in people have view=: puppets:view=mask")
    if part != "whole" and data.startswith("pa_hmdb51:frames"):
        raise UsageError(f"part: {part} is of videos, and {data} is single frames")


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
    """One square per video, from the ground truth or a person detector."""
    found = cached_detections(
        data, "crops", [FRAMES, MARGIN, MIN_SCORE], lambda: [_person_box(data, i) for i in range(len(data))]
    )
    return [tuple(box) for box in found]


def medians(data: ClipSet) -> ClipSet:
    """The same clips, each a video of one frame; views of it repeat that frame."""
    about = {"medians of": data.videos.fingerprint}
    key = hashlib.sha256(data.videos.fingerprint.encode()).hexdigest()[:16]

    def made() -> Iterator[NDArray[np.uint8]]:
        for i in counted(range(len(data)), f"medians of {data.name}", len(data), "videos"):
            frames = data.videos.frames(i)
            yield np.partition(frames, (len(frames) - 1) // 2, axis=0)[(len(frames) - 1) // 2][None]  # (1, H, W, 3)

    return data.with_videos(VideoStore.cached(cache_folder() / "medians" / key, about, made), f"{data.name}, medians")


VIDEO_PARTS: dict[str, Callable[[ClipSet], ClipSet]] = {
    "whole": lambda data: data, "person_crop": person_crops, "median": medians
}  # fmt: skip


def square(boxes: NDArray[np.float64], width: int, height: int) -> Box:
    """The smallest square inside the picture that holds the boxes (n, 4) and a margin; without boxes, the middle."""
    if not len(boxes):
        side = min(width, height)
        left, top = (width - side) // 2, (height - side) // 2
        return left, top, left + side, top + side
    x0, y0 = (float(edge) for edge in boxes[:, :2].min(axis=0))
    x1, y1 = (float(edge) for edge in boxes[:, 2:].max(axis=0))
    side = min(int(np.ceil(max(x1 - x0, y1 - y0) * (1 + 2 * MARGIN))), width, height)
    left = int(np.clip(round((x0 + x1) / 2 - side / 2), 0, width - side))
    top = int(np.clip(round((y0 + y1) / 2 - side / 2), 0, height - side))
    return left, top, left + side, top + side


def _person_box(data: ClipSet, i: int) -> Box:
    frames = data.videos.frames(i)
    height, width = frames.shape[1:3]
    if isinstance(data.videos, VideoStore) and has_ground_truth(data):
        _, rows, columns = np.nonzero(data.videos.side("masks", i))
        edges = [[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]] if len(rows) else []
        return square(np.array(edges, dtype=np.float64).reshape(-1, 4), width, height)
    detector = _detector()
    scale = detector.scale(width, height)
    best = []
    for t in np.linspace(0, len(frames) - 1, min(FRAMES, len(frames))).round().astype(int):
        boxes = detector.look(frames[t], scale, MIN_SCORE)
        if len(boxes):
            best.append(boxes[boxes[:, 4].argmax(), :4])
    return square(np.array(best, dtype=np.float64).reshape(-1, 4), width, height)


@cache
def _detector() -> Yolox:
    return Yolox()
