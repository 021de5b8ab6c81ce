"""How well segments or videos that are not as usual are told: AUC, and an interval by drawing videos again.

    frame AUC = P(s of an abnormal frame > s of a normal one) + ½ P(the same)       over all frames of all test videos
    video AUC   likewise over videos, where nobody has said when it happens

Frames of a video are not independent witnesses, so what is drawn is videos, or where videos come from the same camera,
whole cameras (`group`). Frames of a segment share a score: they are counted, not listed, so that a million frames cost
as little as their segments.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError
from vidveil.statistics.intervals import RESAMPLES, Estimate, Resamples
from vidveil.statistics.metrics import auroc, settled

Floats = NDArray[np.float64]
NEAREST = 1e-9
"""To 0 and to 1, that a probability is taken to be at most: its logit has to be a number."""


def frame_auc(labels: Sequence[ArrayLike], scores: Sequence[ArrayLike]) -> float:
    """Of the frames of all videos together; one array of 0 and 1, and one of scores in [0, 1], a video. NaN where no
    frame, or every frame, is abnormal."""
    _, truth, said, count = _counted(labels, scores)
    return float(auroc(truth, said, count))


def video_auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """(V,), (V,) in [0, 1] → one number."""
    return float(auroc(labels, logits(scores)))


def frame_estimate(
    labels: Sequence[ArrayLike],
    scores: Sequence[ArrayLike],
    *,
    group: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The frame AUC with its interval. `group` is (V,), what is drawn together; without it each video by itself."""
    video, truth, said, count = _counted(labels, scores)
    drawn = _groups(group, len(labels))[video]
    return Resamples(drawn, resamples=resamples, seed=seed).statistic(lambda w: auroc(truth, said, w * count))


def video_estimate(
    labels: ArrayLike,
    scores: ArrayLike,
    *,
    group: ArrayLike | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """The video AUC with its interval."""
    truth, said = np.asarray(labels, np.float64), logits(scores)
    if truth.shape != said.shape:
        raise UsageError(f"{said.shape} scores of videos, but labels are {truth.shape}")
    drawn = _groups(group, len(truth))
    return Resamples(drawn, resamples=resamples, seed=seed).statistic(lambda w: auroc(truth, said, w))


def logits(scores: ArrayLike) -> Floats:
    """Of probabilities, on a grid: what differs by the noise of arithmetic is a tie, also near 0 and 1."""
    said = np.asarray(scores, np.float64)
    if not ((said >= 0) & (said <= 1)).all():
        raise UsageError("scores of anomalies are between 0 and 1; did training diverge?")
    safe = said.clip(NEAREST, 1 - NEAREST)
    return settled(np.log(safe) - np.log1p(-safe))


def _counted(
    labels: Sequence[ArrayLike], scores: Sequence[ArrayLike]
) -> tuple[NDArray[np.int64], Floats, Floats, Floats]:
    """Each (R,): video, label, score, and how many frames of that video have both."""
    if len(labels) != len(scores) or not len(labels):
        raise UsageError(f"labels of {len(labels)} videos and scores of {len(scores)} do not make a frame AUC")
    rows = []
    for number, (truth, said) in enumerate(zip(labels, scores, strict=True)):
        if np.shape(truth) != np.shape(said) or np.ndim(truth) != 1 or not np.size(truth):
            raise UsageError(f"video {number}: labels of frames {np.shape(truth)}, but scores {np.shape(said)}")
        both = np.stack([np.asarray(truth, np.float64), logits(said)])  # (2, F)
        kinds, count = np.unique(both, axis=1, return_counts=True)
        rows.append(np.vstack([np.full(len(count), number), kinds, count]))
    video, told, felt, times = np.concatenate(rows, axis=1)
    return video.astype(np.int64), told, felt, times


def _groups(group: ArrayLike | None, videos: int) -> NDArray[np.generic]:
    drawn = np.arange(videos) if group is None else np.asarray(group)
    if drawn.shape != (videos,):
        raise UsageError(f"{videos} videos, but groups are {drawn.shape}")
    return drawn
