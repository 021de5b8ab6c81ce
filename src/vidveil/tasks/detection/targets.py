"""Training targets: which moments of which level are positive for an action, and what they should predict.

Level l has stride s = 2^l, and its moments lie at 0, s, 2s, … features. Time is counted in features here, and feature i
covers (i − ½) to (i + ½). The moment t is positive for the action (a, e) where

    |t − (a + e) / 2| < radius · s   and   a < t < e                            centre sampling, radius 1.5
    low_l ≤ max(t − a, e − t) < high_l                                          the level's range, doubling:
                                        [0, 4), [4, 8), [8, 16), …, the last one without an end

If several actions fit, the shortest counts. Of equally long ones the first gives the distances, and the classes of all
are targets: some actions have two labels, as a cliff dive is also a dive.
"""

from typing import NamedTuple

import torch
from torch import Tensor

RADIUS = 1.5
RANGE = 4.0
"""Upper end of the first level's range."""
NONE = -1
"""The class that pads the events of a batch."""
ALIKE = 1e-3
"""Actions whose lengths differ by at most this many features count as equally long."""


class Grid(NamedTuple):
    """All M moments, the finest level first."""

    at: Tensor
    """(M,) features."""
    stride: Tensor
    """(M,) of the moment's level."""
    low: Tensor
    """(M,) of the level's range."""
    high: Tensor


class Targets(NamedTuple):
    classes: Tensor
    """(B, M, classes) 1 or 0."""
    distances: Tensor
    """(B, M, 2) back to the start and forward to the end, in features; 0 where not positive."""
    positive: Tensor
    """(B, M)"""


def grid(length: int, levels: int, device: torch.device | str = "cpu") -> Grid:
    """The moments of sequences of `length` features, padding included."""
    parts = []
    for level in range(levels):
        stride = 2.0**level
        at = stride * torch.arange(-(-length // 2**level), dtype=torch.float32, device=device)
        low = 0.0 if level == 0 else RANGE * stride / 2
        high = float("inf") if level == levels - 1 else RANGE * stride
        parts.append((at, *(torch.full_like(at, value) for value in (stride, low, high))))
    return Grid(*(torch.cat(part) for part in zip(*parts, strict=True)))


def assign(where: Grid, events: Tensor, mask: Tensor, classes: int, radius: float = RADIUS) -> Targets:
    """events (B, N, 3): start, end and class, padded with NONE; mask (B, M): moments that are no padding."""
    batch, moments = mask.shape
    if not events.shape[1]:
        nothing = torch.zeros(batch, moments, classes, device=mask.device)
        return Targets(nothing, nothing.new_zeros(batch, moments, 2), torch.zeros_like(mask, dtype=torch.bool))
    start, end, label = events[:, None].unbind(3)  # (B, 1, N) each
    at, stride, low, high = (part[None, :, None] for part in where)  # (1, M, 1) each
    left, right = at - start, end - at  # (B, M, N)
    far = torch.maximum(left, right)
    fits = (label >= 0) & (torch.minimum(left, right) > 0) & (low <= far) & (far < high) & mask[:, :, None]
    fits &= (at - (start + end) / 2).abs() < radius * stride
    length = (end - start).expand_as(fits).masked_fill(~fits, float("inf"))
    shortest, _ = length.min(2, keepdim=True)  # (B, M, 1)
    shortest_ones = fits & (length <= shortest + ALIKE)
    first = shortest_ones.int().argmax(2, keepdim=True)  # of equal lengths the first
    positive = fits.any(2)
    distances = torch.cat([left.gather(2, first), right.gather(2, first)], 2)
    of_class = label[..., None] == torch.arange(classes, device=label.device)  # (B, 1, N, classes)
    labels = torch.einsum("bmn,bnc->bmc", shortest_ones.float(), of_class[:, 0].float()).clamp(max=1).float()
    return Targets(labels, distances * positive[:, :, None], positive)
