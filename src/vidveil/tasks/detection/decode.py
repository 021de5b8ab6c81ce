"""From the network's output for moments to a list of actions with their seconds.

    all (moment, class) with a score above the floor, the best 2000 over all levels → segments → soft-NMS → the best 200

Soft-NMS (Bodla et al. 2017), class by class: the best segment i is taken, and the scores of those that it overlaps are
lowered,

    s_j ← s_j · exp(−IoU(i, j)² / σ)

until all remaining scores are below the floor. Segments of different classes do not influence one another, so that
repeatedly taking the best of all classes gives the same as class by class, and can stop at the wanted number.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Decoding:
    floor: float = 0.001
    """Lower scores are dropped, before soft-NMS and after."""
    before: int = 2000
    """Segments of a video that enter soft-NMS, at most."""
    sigma: float = 0.5
    """Of soft-NMS: a smaller one lowers the scores of overlapping segments more."""
    most: int = 200
    """Segments of a video after soft-NMS, at most."""

    def __post_init__(self) -> None:
        if not (0 <= self.floor < 1 and self.sigma > 0 and self.before > 0 and self.most > 0):
            raise UsageError(f"floor must be in [0, 1), sigma, before and most above 0, got {self}")


@dataclass(frozen=True, eq=False)
class Spans:
    """Actions of some videos."""

    video: Integers
    """(n,) the video of each."""
    span: Floats
    """(n, 2) seconds of start and end."""
    label: Integers
    """(n,)"""

    def __len__(self) -> int:
        return len(self.video)


@dataclass(frozen=True, eq=False)
class Detections(Spans):
    """Actions that a network predicts."""

    score: Floats
    """(n,)"""


def decode(
    scores: Floats, starts_ends: Floats, duration: float, *, video: int = 0, settings: Decoding | None = None
) -> Detections:
    """The detections of one video.

    Args:
        scores: (M, classes) in [0, 1], of the moments that are no padding.
        starts_ends: (M, 2) seconds; parts beyond the video are cut off.
        duration: seconds of the video.
        video: its number in the result.
    """
    settings = settings or Decoding()
    flat = scores.ravel()
    order = np.argsort(-flat, kind="stable")[: settings.before]  # of equal scores the earlier moment of the finer level
    order = order[flat[order] > settings.floor]
    moment, label = np.divmod(order, scores.shape[1])
    span = np.clip(starts_ends[moment], 0, duration)
    some = span[:, 1] > span[:, 0]
    span, label, score = span[some], label[some].astype(np.int64), flat[order][some].astype(np.float64)
    taken, left = soft_nms(span, score, label, sigma=settings.sigma, floor=settings.floor, most=settings.most)
    return Detections(np.full(len(taken), video, np.int64), span[taken], label[taken], left)


def soft_nms(
    span: Floats, score: Floats, label: Integers, *, sigma: float = 0.5, floor: float = 0.001, most: int = 200
) -> tuple[Integers, Floats]:
    """(n, 2), (n,), (n,) → the rows that are kept, the best first, and their lowered scores."""
    score = score.astype(np.float64).copy()
    length = span[:, 1] - span[:, 0]
    taken, left = [], []
    for _ in range(min(most, len(score))):
        best = int(score.argmax())  # of equal scores the first
        if score[best] < floor:
            break
        taken.append(best)
        left.append(score[best])
        shared = np.minimum(span[:, 1], span[best, 1]) - np.maximum(span[:, 0], span[best, 0])
        shared = np.maximum(shared, 0)
        iou = shared / np.maximum(length + length[best] - shared, 1e-12)
        score = np.where(label == label[best], score * np.exp(-(iou**2) / sigma), score)
        score[best] = -1  # is taken
    return np.array(taken, np.int64), np.array(left, np.float64)


def joined(parts: list[Detections]) -> Detections:
    """Detections of several videos in one table."""
    if not parts:
        return Detections(np.zeros(0, np.int64), np.zeros((0, 2)), np.zeros(0, np.int64), np.zeros(0))
    names = ("video", "span", "label", "score")
    return Detections(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
