"""mAP of detections, as ActivityNet and THUMOS define it.

Per class, over all videos, in falling order of scores: a detection is correct if it overlaps a true action of its video
by tIoU ≥ θ, and no better detection was matched to that action. Of several such actions it is matched to the one that
it overlaps most. With precision P and recall R after each detection,

    AP = Σ (R_k − R_{k−1}) · max_{j ≥ k} P_j          interpolated: the best precision at this recall or a higher one

mAP at θ is the mean over classes that occur. Reported is the mean over θ = 0.3 … 0.7.

Detections of the same score are ordered by video, start and end, and enter the curve together, so that the result does
not depend on the order of a list. Without ties it is as published.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import UsageError
from vidveil.tasks.detection.decode import Detections, Floats, Integers, Spans

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7)


@dataclass(frozen=True, eq=False)
class AveragePrecision:
    thresholds: tuple[float, ...]
    each: Floats
    """(thresholds, classes), NaN for a class that never occurs."""

    @property
    def by_threshold(self) -> Floats:
        """(thresholds,) mAP; NaN if no class occurs."""
        occurs = ~np.isnan(self.each)
        count = occurs.sum(1)
        total: Floats = np.where(occurs, self.each, 0).sum(1)
        mean: Floats = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
        return mean

    @property
    def mean(self) -> float:
        return float(self.by_threshold.mean())

    def at(self, threshold: float) -> float:
        """mAP at this tIoU."""
        near = np.isclose(self.thresholds, threshold)
        if not near.any():
            raise UsageError(f"mAP was computed at tIoU {', '.join(map(str, self.thresholds))}, not at {threshold}")
        return float(self.by_threshold[near][0])


def detection_map(
    truth: Spans, found: Detections, classes: int, thresholds: Sequence[float] = THRESHOLDS
) -> AveragePrecision:
    """Over all videos of `truth` and `found`."""
    _refuse(truth, found, classes, thresholds)
    found = by_falling_score(found)
    hits = correct_detections(truth, found, thresholds)  # (thresholds, n)
    each = np.full((len(thresholds), classes), np.nan)
    for label in np.unique(truth.label):
        own = found.label == label
        each[:, label] = interpolated(hits[:, own], found.score[own], int((truth.label == label).sum()))
    return AveragePrecision(tuple(float(threshold) for threshold in thresholds), each)


def correct_detections(truth: Spans, found: Detections, thresholds: Sequence[float]) -> NDArray[np.bool_]:
    """(thresholds, n): whether detections, in falling order of their scores, are correct.

    Detections compete only within the same video and class. So all videos and classes are matched at once: first the
    best detections of all of them, then the second best.
    """
    minimum = np.asarray(thresholds, np.float64)[:, None]  # (θ, 1)
    hits = np.zeros((len(minimum), len(found)), bool)
    if not len(truth) or not len(found):
        return hits
    listed = np.lexsort((truth.span[:, 1], truth.span[:, 0], truth.video, truth.label))
    pairs, group, sizes = np.unique(
        np.stack([truth.label, truth.video])[:, listed], axis=1, return_inverse=True, return_counts=True
    )  # (2, G), (truths,), (G,)
    group = group.ravel()
    spans = np.full((len(sizes), sizes.max(), 2), np.nan)  # (G, most, 2)
    spans[group, _rank(group)] = truth.span[listed]
    number = {(int(label), int(video)): g for g, (label, video) in enumerate(pairs.T)}
    owner = np.array([number.get((int(c), int(v)), -1) for c, v in zip(found.label, found.video, strict=True)])
    some = np.flatnonzero(owner >= 0)  # the other detections are of videos without their class
    rank = _rank(owner[some])
    free = np.ones((len(sizes), len(minimum), sizes.max()), bool)  # (G, θ, most)
    for number_in_group in range(int(rank.max(initial=-1)) + 1):
        at = some[rank == number_in_group]  # one of each group, at most
        group_of = owner[at]
        iou = tiou(found.span[at, None], spans[group_of])[:, None]  # (a, 1, most)
        fits = free[group_of] & (iou >= minimum)  # (a, θ, most); NaN pads the truth and fits nothing
        best = np.where(fits, iou, -1).argmax(2)  # (a, θ)
        hit = fits.any(2)
        hits[:, at] = hit.T
        a, which = np.nonzero(hit)
        free[group_of[a], which, best[a, which]] = False
    return hits


def tiou(first: Floats, second: Floats) -> Floats:
    """(..., 2), (..., 2) → (...)"""
    shared = np.minimum(first[..., 1], second[..., 1]) - np.maximum(first[..., 0], second[..., 0])
    shared = np.maximum(shared, 0)
    both = first[..., 1] - first[..., 0] + second[..., 1] - second[..., 0] - shared
    ratio: Floats = np.divide(shared, both, out=np.zeros_like(both), where=both > 0)
    return np.where(np.isnan(both), np.nan, ratio)


def interpolated(hits: NDArray[np.bool_], score: Floats, truths: int) -> Floats:
    """AP of one class: hits (thresholds, n) and scores (n,) in falling order → (thresholds,)."""
    last_of_ties = np.append(score[1:] != score[:-1], True) if len(score) else np.zeros(0, bool)
    found = hits.cumsum(1)[:, last_of_ties]
    precision = found / (np.flatnonzero(last_of_ties) + 1)
    best_from_here = np.maximum.accumulate(precision[:, ::-1], axis=1)[:, ::-1]
    steps = np.diff(found, axis=1, prepend=0) / truths
    area: Floats = (steps * best_from_here).sum(1)
    return area


def _rank(group: Integers) -> Integers:
    """(n,) how many entries of the same group come before each."""
    order = np.argsort(group, kind="stable")
    _, first, counts = np.unique(group[order], return_index=True, return_counts=True)
    rank = np.empty(len(group), np.int64)
    rank[order] = np.arange(len(group)) - np.repeat(first, counts)
    return rank


def by_falling_score(found: Detections) -> Detections:
    order = np.lexsort((found.span[:, 1], found.span[:, 0], found.video, -found.score))
    return Detections(found.video[order], found.span[order], found.label[order], found.score[order])


def _refuse(truth: Spans, found: Detections, classes: int, thresholds: Sequence[float]) -> None:
    if not thresholds or not all(0 < threshold <= 1 for threshold in thresholds):
        raise UsageError(f"tIoU thresholds are in (0, 1], got {list(thresholds)}")
    if not (np.isfinite(found.score).all() and np.isfinite(found.span).all()):
        raise UsageError("scores and segments of detections must be finite")
    for spans in (truth, found):
        if len(spans) and not 0 <= spans.label.min() <= spans.label.max() < classes:
            raise UsageError(f"classes go from 0 to {classes - 1}, got {spans.label.min()} to {spans.label.max()}")
