"""What MGFN learns by: a video has a label, and no segment of it has one.

    mₜ = ‖hₜ‖₂                                      mean over crops
    S = top 3 of T by m                             the segments that stand for their video
    ŝ = mean_{t∈S} sₜ,   M = mean_{t∈S} mₜ          its score, and its magnitude

    L_bce = mean −[y log ŝ + (1 − y) log(1 − ŝ)]    over videos, half normal and half abnormal
    L_n = mean_{p≠q} (M_p − M_q)²                   of normal videos; L_a likewise of abnormal ones
    L_con = mean_{p,u} max(0, 200 − (M_u − M_p))²   p normal, u abnormal; as published |M_u − M_p| (`upwards: false`)
    L_smooth = mean Σₜ (sₜ₊₁ − sₜ)²,   L_sparse = mean Σₜ sₜ         over abnormal videos (Sultani et al. 2018)

    L = L_bce + 0.001 (0.001 L_con + L_a + L_n) + 8e-4 L_smooth + 8e-3 L_sparse

Who is chosen is chosen by magnitude, and learns by being chosen. So magnitudes have to rise where something happens,
and a distance that may as well grow by normal ones rising does not say so. Nor do the published weights say it loudly:
the loss of scores is a thousand times as strong, and is content with any segments of an abnormal video, since a glance
tells all of them what happened. `FIRM` does.

The released code compares otherwise (`released: true`): a video by the k sums ‖hₜ‖₁ of its chosen segments, not by one
mean length, and not each pair of videos but p with the p-th of the other kind, and one half of a kind with the other:

    L_con = mean_p max(0, 200 − ‖v_p − v'_p‖₂)²,   L_n = mean_p ‖v_p − v_{p + n/2}‖₂²,   v = (‖hₜ‖₁)_{t∈S}
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.core.errors import RecipeError, UsageError
from vidveil.tasks.anomaly.network import Seen


@dataclass(frozen=True, kw_only=True)
class Weights:
    """Of the parts of the loss, as published."""

    top: int = 3
    """Segments that stand for their video."""
    margin: float = 200.0
    """That magnitudes of normal and abnormal videos are to lie apart."""
    upwards: bool = True
    """Whether abnormal magnitudes are to be the larger ones; as published either way will do."""
    released: bool = False
    """Whether videos are compared as the released code does it."""
    magnitude: float = 1e-3
    """Of all that compares magnitudes."""
    between: float = 1e-3
    """Of L_con, within that."""
    smooth: float = 8e-4
    sparse: float = 8e-3

    def __post_init__(self) -> None:
        if self.top < 1:
            raise RecipeError(f"top must be 1 or more, got {self.top}")
        if min(self.margin, self.magnitude, self.between, self.smooth, self.sparse) < 0:
            raise RecipeError("weights and the margin are 0 or more")


FIRM = Weights(magnitude=0.1, between=1.0)
"""Ours: for telling when, and not only in which video."""


def magnitudes(features: Tensor) -> Tensor:
    """(B, crops, T, C) → (B, T)."""
    found: Tensor = torch.linalg.vector_norm(features.float(), dim=-1).mean(1)
    return found


def strongest(found: Tensor, top: int) -> Tensor:
    """(B, T) magnitudes → (B, k) segments, k = top, or T where that is fewer."""
    return found.topk(min(top, found.shape[1]), dim=1).indices


def of_videos(values: Tensor, chosen: Tensor) -> Tensor:
    """(B, T), (B, k) → (B,): the mean over the chosen segments."""
    return values.gather(1, chosen).mean(1)


def within(found: Tensor) -> Tensor:
    """(n,) magnitudes of videos of one kind → mean over pairs of their squared distance; 0 where there is no pair."""
    count = len(found)
    squared = (found[:, None] - found[None]).pow(2)
    return squared.sum() / max(count * (count - 1), 1)


def between(normal: Tensor, abnormal: Tensor, margin: float, *, upwards: bool = True) -> Tensor:
    """(n,), (a,) → mean over pairs of how much they lack of the margin, squared."""
    above = abnormal[None] - normal[:, None]  # (n, a)
    apart = above if upwards else above.abs()
    return (margin - apart).clamp(min=0).pow(2).mean()


def sums_of(features: Tensor, chosen: Tensor) -> Tensor:
    """(B, crops, T, C), (B, k) → (B, k): ‖h‖₁ of the chosen segments, mean over crops."""
    return features.float().abs().sum(-1).mean(1).gather(1, chosen)


def as_released(normal: Tensor, abnormal: Tensor, weights: Weights) -> Tensor:
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


def anomaly_loss(normal: Seen, abnormal: Seen, weights: Weights) -> Tensor:
    """Of normal and abnormal videos → a scalar."""
    if not len(normal.scores) or not len(abnormal.scores):
        raise UsageError("the loss compares normal videos with abnormal ones: each batch needs both")
    said, found = [], []
    for seen in (normal, abnormal):
        long = magnitudes(seen.features)
        chosen = strongest(long.detach(), weights.top)
        said.append(of_videos(seen.scores, chosen))
        found.append(sums_of(seen.features, chosen) if weights.released else of_videos(long, chosen))
    truth = torch.cat([torch.zeros_like(said[0]), torch.ones_like(said[1])])
    with torch.autocast(truth.device.type, enabled=False):  # which has no cross-entropy of probabilities
        told = F.binary_cross_entropy(torch.cat(said).float(), truth.float())
    if weights.released:
        compared = as_released(found[0], found[1], weights)
    else:
        apart = between(found[0], found[1], weights.margin, upwards=weights.upwards)
        compared = weights.between * apart + within(found[1]) + within(found[0])
    calm = weights.smooth * smoothness(abnormal.scores) + weights.sparse * sparsity(abnormal.scores)
    return told + weights.magnitude * compared + calm
