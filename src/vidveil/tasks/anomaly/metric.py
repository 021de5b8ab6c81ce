"""How well abnormal frames or videos are separated from normal ones.

    frame AUC = P(s of an abnormal frame > s of a normal one) + ½ P(equal)       over all frames of all test videos
    video AUC   likewise over videos, where the time of the anomaly is not labelled

Frames of a segment share a score: they are counted, not listed, so that a million frames cost as little as their
segments.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError
from vidveil.statistics.metrics import auroc, settled

Floats = NDArray[np.float64]
NEAREST = 1e-9
"""Probabilities are kept this far from 0 and 1, so that their logits are finite."""


def frame_auc(labels: Sequence[ArrayLike], scores: Sequence[ArrayLike]) -> float:
    """Over the frames of all videos together.

    Args:
        labels: one array of 0 and 1 per video.
        scores: one array in [0, 1] per video.

    Returns:
        NaN where no frame, or every frame, is abnormal.
    """
    if len(labels) != len(scores) or not len(labels):
        raise UsageError(f"labels of {len(labels)} videos and scores of {len(scores)} do not make a frame AUC")
    columns = []
    for number, (label, score) in enumerate(zip(labels, scores, strict=True)):
        if np.shape(label) != np.shape(score) or np.ndim(label) != 1 or not np.size(label):
            raise UsageError(f"video {number}: labels of frames {np.shape(label)}, but scores {np.shape(score)}")
        both = np.stack([np.asarray(label, np.float64), logits(score)])  # (2, F)
        kinds, count = np.unique(both, axis=1, return_counts=True)
        columns.append(np.vstack([kinds, count]))
    truth, score, count = np.concatenate(columns, axis=1)
    return float(auroc(truth, score, count))


def video_auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """(V,) of 0 and 1, (V,) in [0, 1] → one number."""
    return float(auroc(labels, logits(scores)))


def logits(scores: ArrayLike) -> Floats:
    """Of probabilities, rounded so that differences from rounding errors are ties, also near 0 and 1."""
    given = np.asarray(scores, np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise UsageError("scores of anomalies are between 0 and 1; did training diverge?")
    safe = given.clip(NEAREST, 1 - NEAREST)
    return settled(np.log(safe) - np.log1p(-safe))
