"""The loss of MGFN: videos have labels, their segments have none.

    mₜ = ‖hₜ‖₂                                      mean over crops
    S = top 3 of T by m                             the segments that represent their video
    ŝ = mean_{t∈S} sₜ,   M = mean_{t∈S} mₜ          its score, and its magnitude

    L_bce = mean −[y log ŝ + (1 − y) log(1 − ŝ)]    over videos, half normal and half abnormal
    L_n = mean_{p≠q} (M_p − M_q)²                   of normal videos; L_a likewise of abnormal ones
    L_con = mean_{p,u} max(0, 200 − (M_u − M_p))²   p normal, u abnormal; as published |M_u − M_p| (`upwards: false`)
    L_smooth = mean Σₜ (sₜ₊₁ − sₜ)²,   L_sparse = mean Σₜ sₜ         over abnormal videos (Sultani et al. 2018)

    L = L_bce + 0.001 (0.001 L_con + L_a + L_n) + 8e-4 L_smooth + 8e-3 L_sparse

Segments are chosen by magnitude, and only chosen segments learn. So magnitudes must rise where something happens. The
published |M_u − M_p| can also grow by the magnitudes of normal videos, so it does not require that. And with the
published weights L_bce is a thousand times as strong as L_con, but any segments of an abnormal video satisfy it, since
a glance block shows every segment what happened elsewhere. `FIRM` has other weights.

The released code compares videos differently (`released: true`): by the k sums ‖hₜ‖₁ of their chosen segments instead
of one mean length, and not all pairs of videos but p with the p-th of the other kind, and the two halves of one kind:

    L_con = mean_p max(0, 200 − ‖v_p − v'_p‖₂)²,   L_n = mean_p ‖v_p − v_{p + n/2}‖₂²,   v = (‖hₜ‖₁)_{t∈S}
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.core.errors import RecipeError, UsageError
from vidveil.tasks.anomaly.network import MGFNOutput


@dataclass(frozen=True, kw_only=True)
class LossWeights:
    """Weights of the parts of the loss, as published."""

    top: int = 3
    """Segments that represent their video."""
    margin: float = 200.0
    """Distance that L_con asks for between magnitudes of normal and abnormal videos."""
    upwards: bool = True
    """Whether abnormal magnitudes must be the larger ones; as published, either may be."""
    released: bool = False
    """Whether videos are compared as in the released code."""
    magnitude: float = 1e-3
    """Of L_con, L_a and L_n together."""
    between: float = 1e-3
    """Of L_con, within that."""
    smooth: float = 8e-4
    sparse: float = 8e-3

    def __post_init__(self) -> None:
        if self.top < 1:
            raise RecipeError(f"top must be 1 or more, got {self.top}")
        if min(self.margin, self.magnitude, self.between, self.smooth, self.sparse) < 0:
            raise RecipeError("weights and the margin are 0 or more")


FIRM = LossWeights(magnitude=0.1, between=1.0)
"""Ours: to find the time of an anomaly, not only its video."""


def magnitudes(features: Tensor) -> Tensor:
    """(B, crops, T, C) → (B, T)."""
    found: Tensor = torch.linalg.vector_norm(features.float(), dim=-1).mean(1)
    return found


def strongest(found: Tensor, top: int) -> Tensor:
    """(B, T) magnitudes → (B, k) segments, k = top, or T where that is fewer."""
    return found.topk(min(top, found.shape[1]), dim=1).indices


def of_videos(values: Tensor, chosen: Tensor) -> Tensor:
    """(B, T) values, (B, k) chosen segments → (B,) the mean over those."""
    return values.gather(1, chosen).mean(1)


def within(found: Tensor) -> Tensor:
    """(n,) magnitudes of videos of one kind → the mean squared distance of pairs; 0 where there is no pair."""
    count = len(found)
    squared = (found[:, None] - found[None]).pow(2)
    return squared.sum() / max(count * (count - 1), 1)


def between(normal: Tensor, abnormal: Tensor, margin: float, *, upwards: bool = True) -> Tensor:
    """(n,), (a,) magnitudes → the mean over pairs of (margin − distance)², 0 beyond the margin."""
    above = abnormal[None] - normal[:, None]  # (n, a)
    apart = above if upwards else above.abs()
    return (margin - apart).clamp(min=0).pow(2).mean()


def sums_of(features: Tensor, chosen: Tensor) -> Tensor:
    """(B, crops, T, C), (B, k) → (B, k): ‖h‖₁ of the chosen segments, mean over crops."""
    return features.float().abs().sum(-1).mean(1).gather(1, chosen)


def as_released(normal: Tensor, abnormal: Tensor, weights: LossWeights) -> Tensor:
    """(n, k), (a, k) sums of segments → 0.001 L_con + L_a + L_n of the released code."""
    pairs = min(len(normal), len(abnormal))
    apart = torch.linalg.vector_norm(normal[:pairs] - abnormal[:pairs], dim=-1)
    total: Tensor = weights.between * (weights.margin - apart).clamp(min=0).pow(2).mean()
    for found in (abnormal, normal):
        if half := len(found) // 2:
            total = total + (found[:half] - found[half : 2 * half]).pow(2).sum(-1).mean()
    return total


def smoothness(scores: Tensor) -> Tensor:
    """(a, T) → a scalar."""
    return scores.diff(dim=1).pow(2).sum(1).mean()


def sparsity(scores: Tensor) -> Tensor:
    """(a, T) → a scalar."""
    return scores.sum(1).mean()


def anomaly_loss(normal: MGFNOutput, abnormal: MGFNOutput, weights: LossWeights) -> Tensor:
    """Outputs for normal and for abnormal videos → a scalar."""
    if not len(normal.scores) or not len(abnormal.scores):
        raise UsageError("the loss compares normal videos with abnormal ones: each batch needs both")
    scores, lengths = [], []
    for output in (normal, abnormal):
        magnitude = magnitudes(output.features)
        chosen = strongest(magnitude.detach(), weights.top)
        scores.append(of_videos(output.scores, chosen))
        lengths.append(sums_of(output.features, chosen) if weights.released else of_videos(magnitude, chosen))
    truth = torch.cat([torch.zeros_like(scores[0]), torch.ones_like(scores[1])])
    with torch.autocast(truth.device.type, enabled=False):  # autocast has no cross-entropy of probabilities
        cross_entropy = F.binary_cross_entropy(torch.cat(scores).float(), truth.float())
    if weights.released:
        comparison = as_released(lengths[0], lengths[1], weights)
    else:
        contrast = between(lengths[0], lengths[1], weights.margin, upwards=weights.upwards)
        comparison = weights.between * contrast + within(lengths[1]) + within(lengths[0])
    regularization = weights.smooth * smoothness(abnormal.scores) + weights.sparse * sparsity(abnormal.scores)
    return cross_entropy + weights.magnitude * comparison + regularization
