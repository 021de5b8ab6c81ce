"""Numbers of one set of predictions: top-1, average precision, cMAP, AUROC, F1.

Everything is numpy, and everything that is not a mean over clips takes weights, one a clip:

    average_precision(labels, scores)             one number
    average_precision(labels, scores, weights)    weights (B, N) -> (B,): one number a row of weights

A weight of 2 counts a clip twice, a weight of 0 leaves it out, so that a bootstrap of 2,000 resamples is one call. A
label of NaN means that nobody knows, and weighs 0. Labels may be (B, N), too: permutations of them are one call.

What is undefined is NaN, never 0 and never a warning: an AUROC without negatives says nothing about an attacker.
Scores that are not finite are an error, since a ranking of NaN is arbitrary.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import UsageError

Floats = NDArray[np.float64]
Threshold = Literal["probability", "logit"]
Weighted = Callable[[Floats, Floats, Floats | None], Floats]
"""(labels (..., N), scores (N,), weights (..., N) or None) -> (...)."""


def top1_hits(logits: ArrayLike, labels: ArrayLike) -> Floats:
    """1 where the most probable class is the label, else 0. The mean of this is top-1. (N, C), (N,) -> (N,)

    Of several classes with the same probability each has the same chance to be predicted: a network that has learned
    nothing gets 1 / C, whichever class is numbered 0. Probabilities closer than 1e-9 are the same.
    """
    values, classes = _finite(logits), np.asarray(labels)
    if values.ndim != 2 or not values.shape[1]:
        raise UsageError(f"logits are (clips, classes), got {values.shape}")
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    probabilities = powers / powers.sum(axis=1, keepdims=True)
    if classes.shape != probabilities.shape[:1]:
        raise UsageError(f"{len(probabilities)} clips, but labels of shape {classes.shape}")
    if len(classes) and not 0 <= classes.min() <= classes.max() < probabilities.shape[1]:
        raise UsageError(
            f"labels go from {classes.min()} to {classes.max()}, classes from 0 to {probabilities.shape[1] - 1}"
        )
    best = probabilities >= probabilities.max(axis=1, keepdims=True) - 1e-9  # (N, C)
    hits: Floats = best[np.arange(len(classes)), classes] / best.sum(axis=1)
    return hits


def average_precision(labels: ArrayLike, scores: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """AP = Σₖ (Rₖ − Rₖ₋₁) Pₖ over the distinct scores in falling order, as scikit-learn has it.

    Pₖ and Rₖ are precision and recall of "at least the k-th score". Clips with the same score enter together, so the
    order in which they are listed cannot matter, and a constant score gets the prevalence. NaN without positives.
    """
    hits, every = _by_score(labels, scores, weights)
    found, seen = hits.cumsum(axis=-1), every.cumsum(axis=-1)
    precision = np.divide(found, seen, out=np.zeros_like(found), where=seen > 0)
    return _divided((hits * precision).sum(axis=-1), hits.sum(axis=-1))


def average_precision_by_clip(labels: ArrayLike, scores: ArrayLike) -> Floats:
    """Values whose mean over clips is AP, and nearly so when clips are drawn again. (N,), NaN without positives

    AP is no mean over clips, but nearly one: with wₖ copies of clip k it is AP + Σ (wₖ − 1) ∂AP/∂wₖ up to squares, and
    that is the mean of AP + N ∂AP/∂wₖ. At w = 1, with n positives, Fᵢ of them and Sᵢ of all scored at or above i:

        n ∂AP/∂wₖ = yₖ (Fₖ/Sₖ − AP) + Σᵢ (yₖ/Sᵢ − Fᵢ/Sᵢ²)         over the positives i that score at most as high as k
    """
    values = _finite(scores)
    truth, known = _weighed(labels, None, len(values))
    place = np.unique(-values, return_inverse=True)[1]  # 0 is the highest score; the same for ties
    hits, every = (np.bincount(place, weights=weights) for weights in (known * truth, known))
    found, seen = hits.cumsum(), every.cumsum()
    count = found[-1] if len(found) else 0.0
    if not count:
        return np.full(len(values), np.nan)
    seen = np.maximum(seen, 1)  # nothing is found above the first clip that is known
    precision = found / seen
    ap = (hits * precision).sum() / count
    gained, lost = (each[::-1].cumsum()[::-1][place] for each in (hits / seen, hits * precision / seen))
    slope = known * (truth * (precision[place] - ap + gained) - lost) / count
    return _floats(ap + len(values) * slope)


def auroc(labels: ArrayLike, scores: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """P(score of a positive > score of a negative) + ½ P(the same score). NaN without positives or negatives."""
    hits, every = _by_score(labels, scores, weights)
    misses = every - hits
    below = misses.sum(axis=-1, keepdims=True) - misses.cumsum(axis=-1)
    won = (hits * (below + misses / 2)).sum(axis=-1)
    return _divided(won, hits.sum(axis=-1) * misses.sum(axis=-1))


def f1(
    labels: ArrayLike, logits: ArrayLike, weights: ArrayLike | None = None, *, threshold: Threshold = "probability"
) -> Floats:
    """2 TP / (2 TP + FP + FN), 0 if nothing is found. NaN where neither labels nor predictions hold a positive.

    `probability` says yes where sigmoid(logit) > 0.5, that is logit > 0. `logit` says yes where logit > 0.5, that is
    probability > 0.62: several released codes do so, and their tables can be compared with nothing else.
    """
    yes = _yes(logits, threshold)
    truth, weight = _weighed(labels, weights, yes.shape[-1])
    positive = weight * truth
    return _divided(2 * (positive * yes).sum(axis=-1), positive.sum(axis=-1) + (weight * yes).sum(axis=-1))


def f1_by_clip(labels: ArrayLike, logits: ArrayLike, *, threshold: Threshold = "probability") -> Floats:
    """Values whose mean over clips is F1, and nearly so when clips are drawn again. (N,), NaN where F1 is

    With n positives and m times yes, ∂F1/∂wₖ = (2 yₖ ŷₖ − F1 (yₖ + ŷₖ)) / (n + m) of known clips.
    """
    yes = _yes(logits, threshold)
    truth, known = _weighed(labels, None, len(yes))
    counted = known * (truth + yes)
    total = counted.sum()
    if not total:
        return np.full(len(yes), np.nan)
    both = 2 * known * truth * yes
    value = both.sum() / total
    return _floats(value + len(yes) * (both - value * counted) / total)


def varying(labels: ArrayLike) -> NDArray[np.bool_]:
    """Which attributes have both values among the known labels. (N, A) -> (A,)"""
    columns = _floats(labels)
    return np.asarray((columns == 1).any(axis=0) & (columns == 0).any(axis=0))


def cmap(labels: ArrayLike, scores: ArrayLike) -> float:
    """cMAP: average precision, averaged over the attributes that vary; NaN if none does. (N, A), (N, A)"""
    truth, values = _floats(labels), _floats(scores)
    if truth.shape != values.shape or truth.ndim != 2:
        raise UsageError(f"labels {truth.shape} and scores {values.shape} do not fit")
    each = [float(average_precision(truth[:, a], values[:, a])) for a in np.flatnonzero(varying(truth))]
    return float(np.mean(each)) if each else float("nan")


def settled(scores: ArrayLike, step: float = 1e-5) -> Floats:
    """Scores rounded to a grid, so that what differs by the noise of arithmetic is a tie.

    A network does not give the same black clip the same number 700 times: the last, smaller batch takes another path
    through the processor. Batches follow people, and a metric that ranks the last bit of a float would find a leak
    where there is none. Scores are logits here: probabilities crowd near 0 and 1.
    """
    rounded: Floats = np.round(_finite(scores) / step) * step
    return rounded


def _yes(logits: ArrayLike, threshold: Threshold) -> NDArray[np.bool_]:
    return _finite(logits) > {"probability": 0.0, "logit": 0.5}[threshold]


def _by_score(labels: ArrayLike, scores: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    """Weight of positives, and of all, at each distinct score, highest first: two of (..., K)."""
    values = _finite(scores)
    if values.ndim != 1:
        raise UsageError(f"scores of one attribute are (clips,), got {values.shape}")
    truth, weight = _weighed(labels, weights, len(values))
    if not len(values):
        return np.zeros((*weight.shape[:-1], 1)), np.zeros((*weight.shape[:-1], 1))
    order = np.argsort(-values, kind="stable")
    falling = values[order]
    starts = np.flatnonzero(np.concatenate([[True], falling[1:] != falling[:-1]]))
    weight = weight[..., order]
    positive = weight * truth[..., order]
    if len(starts) == len(values):  # no ties: every clip is a step of its own
        return positive, weight
    return np.add.reduceat(positive, starts, axis=-1), np.add.reduceat(weight, starts, axis=-1)


def _weighed(labels: ArrayLike, weights: ArrayLike | None, clips: int) -> tuple[Floats, Floats]:
    """Labels with 0 in place of NaN, and weights that are 0 there."""
    truth = _floats(labels)
    known = ~np.isnan(truth)
    truth = np.where(known, truth, 0.0)
    if not ((truth == 0) | (truth == 1)).all():
        raise UsageError("labels are 1, 0, or NaN where nobody knows")
    weight = np.ones(truth.shape[-1:]) if weights is None else _floats(weights)
    if truth.shape[-1:] != (clips,) or weight.shape[-1:] != (clips,):
        raise UsageError(f"{clips} scores, but labels {truth.shape} and weights {weight.shape}")
    return truth, weight if known.all() else weight * known


def _divided(numerator: Floats, denominator: Floats) -> Floats:
    ratio: Floats = np.divide(numerator, denominator, out=np.full(np.shape(denominator), np.nan), where=denominator > 0)
    return ratio


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _finite(values: ArrayLike) -> Floats:
    array = _floats(values)
    if not np.isfinite(array).all():
        raise UsageError("some scores are not finite, so nothing can be ranked by them; did training diverge?")
    return array
