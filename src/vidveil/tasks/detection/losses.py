"""The loss of TriDet.

    focal(p, y) = α_y · (1 − p_y)^γ · (− log p_y)          p_1 = p, p_0 = 1 − p;  α_1 = 0.25, α_0 = 0.75;  γ = 2
    DIoU        = 1 − IoU + (distance of the middles / length of what holds both)²

    L = (Σ_{t, c} w_{t, c} · focal + Σ_{t positive} DIoU_t) / n
    w = IoU_t^0.2 where y = 1, 1 where y = 0

IoU_t is that of the predicted segment at t with the true one. It is a weight only: no gradient goes through it. So a
moment with a wrong segment need not be confident of its class, and scores rank segments by quality. n is a running mean
of the number of positive moments per batch, so that a batch with few of them has no larger gradient.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.tasks.detection.network import TriDetOutput
from vidveil.tasks.detection.targets import Targets

ALPHA, GAMMA = 0.25, 2.0
POWER = 0.2
MOMENTUM = 0.9
TINY = 1e-8


def focal(logits: Tensor, truth: Tensor, alpha: float = ALPHA, gamma: float = GAMMA) -> Tensor:
    """Logits and truth (1 or 0) of any shape → the loss of each element."""
    chance = logits.sigmoid()
    right = chance * truth + (1 - chance) * (1 - truth)
    balance = alpha * truth + (1 - alpha) * (1 - truth)
    return balance * (1 - right) ** gamma * F.binary_cross_entropy_with_logits(logits, truth, reduction="none")


def overlap(predicted: Tensor, truth: Tensor) -> Tensor:
    """IoU of segments around the same moment, given as distances (..., 2) to their starts and ends → (...)."""
    shared = torch.minimum(predicted, truth).sum(-1)
    return shared / (predicted.sum(-1) + truth.sum(-1) - shared).clamp(min=TINY)


def diou(predicted: Tensor, truth: Tensor) -> Tensor:
    """The DIoU loss of segments given as in `overlap`: 0 where they are the same, below 2."""
    holds_both = torch.maximum(predicted, truth).sum(-1).clamp(min=TINY)
    apart = ((predicted[..., 1] - predicted[..., 0]) - (truth[..., 1] - truth[..., 0])) / 2
    return 1 - overlap(predicted, truth) + (apart / holds_both) ** 2


def total(output: TriDetOutput, targets: Targets) -> Tensor:
    """The sum over all moments that are no padding, before the division by n."""
    weight = overlap(output.distances, targets.distances).detach().pow(POWER)[:, :, None]  # (B, M, 1)
    weight = torch.where(targets.classes > 0, weight, 1.0)
    actions = (weight * focal(output.logits, targets.classes) * output.mask[:, :, None]).sum()
    return actions + (diou(output.distances, targets.distances) * targets.positive).sum()


class Positives(nn.Module):
    """n: the running mean of positive moments per batch. It starts with the first batch's number."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    @torch.no_grad()
    def forward(self, positive: Tensor) -> Tensor:
        """(B, M) → a number, 1 or more. The mean is updated in training mode only."""
        count = positive.sum().clamp(min=1).to(self.mean)
        if not self.training:
            return torch.where(self.mean > 0, self.mean, count)
        self.mean.copy_(torch.where(self.mean > 0, MOMENTUM * self.mean + (1 - MOMENTUM) * count, count))
        return self.mean.clone()
