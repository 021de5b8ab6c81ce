"""What a network says of moments, as a list of actions with their seconds.

    all (moment, class) with a score above the floor, the best 2000 over all levels → segments → soft-NMS → the best 200

Soft-NMS (Bodla et al. 2017), each class by itself: the best segment i is taken, and the others that it overlaps are
believed less,

    s_j ← s_j · exp(−IoU(i, j)² / σ)

until what is left falls below the floor. Segments of different classes leave each other alone, so that taking the best
of all classes again and again is the same as class by class, and can stop at the number that is wanted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Decoding:
    floor: float = 0.001
    """Scores below are not looked at, neither before soft-NMS nor after."""
    before: int = 2000
    """Segments of a video that enter soft-NMS, at most."""
    sigma: float = 0.5
    """Of soft-NMS: smaller believes less in what overlaps."""
    most: int = 200
    """Segments of a video in the end."""

    def __post_init__(self) -> None:
        if not (0 <= self.floor < 1 and self.sigma > 0 and self.before > 0 and self.most > 0):
            raise UsageError(f"floor must be in [0, 1), sigma, before and most above 0, got {self}")


@dataclass(frozen=True, eq=False)
class Spans:
    """Actions of some videos: those that are true."""

    video: Whole
    """(n,) whose each is."""
    span: Floats
    """(n, 2) seconds of its start and end."""
    label: Whole
    """(n,)"""

    def __len__(self) -> int:
        return len(self.video)


@dataclass(frozen=True, eq=False)
class Detections(Spans):
    """Actions that a network says are there."""

    score: Floats
    """(n,)"""


def decode(
    scores: Floats, starts_ends: Floats, duration: float, *, video: int = 0, by: Decoding | None = None
) -> Detections:
    """Of one video.

    Args:
        scores: (M, classes) in [0, 1], of the moments that are there.
        starts_ends: (M, 2) seconds; what is beyond the video is cut off.
        duration: seconds of the video.
    """
    by = by or Decoding()
    flat = scores.ravel()
    order = np.argsort(-flat, kind="stable")[: by.before]  # of equals the earlier moment of the finer level
    order = order[flat[order] > by.floor]
    moment, label = np.divmod(order, scores.shape[1])
    span = np.clip(starts_ends[moment], 0, duration)
    some = span[:, 1] > span[:, 0]
    span, label, score = span[some], label[some].astype(np.int64), flat[order][some].astype(np.float64)
    taken, left = soft_nms(span, score, label, sigma=by.sigma, floor=by.floor, most=by.most)
    return Detections(np.full(len(taken), video, np.int64), span[taken], label[taken], left)


def soft_nms(
    span: Floats, score: Floats, label: Whole, *, sigma: float = 0.5, floor: float = 0.001, most: int = 200
) -> tuple[Whole, Floats]:
    """(n, 2), (n,), (n,) → which are taken, the best first, and the scores that they are left with."""
    score = score.astype(np.float64).copy()
    length = span[:, 1] - span[:, 0]
    taken, left = [], []
    for _ in range(min(most, len(score))):
        best = int(score.argmax())  # of equals the first
        if score[best] < floor:
            break
        taken.append(best)
        left.append(score[best])
        shared = np.minimum(span[:, 1], span[best, 1]) - np.maximum(span[:, 0], span[best, 0])
        shared = np.maximum(shared, 0)
        iou = shared / np.maximum(length + length[best] - shared, 1e-12)
        score = np.where(label == label[best], score * np.exp(-(iou**2) / sigma), score)
        score[best] = -1  # it has been taken
    return np.array(taken, np.int64), np.array(left, np.float64)


def joined(parts: list[Detections]) -> Detections:
    """Of several videos."""
    if not parts:
        return Detections(np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, np.int64), np.zeros(0))
    names = ("video", "span", "label", "score")
    return Detections(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
