"""Which moments of which level answer for an action, and what they are to say.

Level l has stride s = 2^l, and its moments lie at 0, s, 2s, … features. Time is counted in features here, and feature i
is at i: its seconds go from (i − ½) to (i + ½) of them. The moment t answers for the action (a, e) where

    |t − (a + e) / 2| < radius · s   and   a < t < e                            centre sampling, radius 1.5
    low_l ≤ max(t − a, e − t) < high_l                                          the level's range, doubling:
                                        [0, 4), [4, 8), [8, 16), …, the last one without an end

Where several fit, the shortest does; of equals the first, whose distances are taken, and the classes of all of them are
right: some actions are two at once, such as a cliff dive, which is a dive.
"""

from typing import NamedTuple

import torch
from torch import Tensor

RADIUS = 1.5
RANGE = 4.0
"""Where the first level's range ends."""
NONE = -1
"""The class of what is no action: events of a batch are padded with it."""
ALIKE = 1e-3
"""Features by which two actions may differ in length and are equally long."""


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
    """(B, M, 2) back to the start and on to the end, in features; 0 where nothing is answered for."""
    positive: Tensor
    """(B, M) who answers for something."""


def grid(length: int, levels: int, device: torch.device | str = "cpu") -> Grid:
    """Of sequences of so many features, padded ones among them."""
    parts = []
    for level in range(levels):
        stride = 2.0**level
        at = stride * torch.arange(-(-length // 2**level), dtype=torch.float32, device=device)
        low = 0.0 if level == 0 else RANGE * stride / 2
        high = float("inf") if level == levels - 1 else RANGE * stride
        parts.append((at, *(torch.full_like(at, value) for value in (stride, low, high))))
    return Grid(*(torch.cat(part) for part in zip(*parts, strict=True)))


def assign(where: Grid, events: Tensor, mask: Tensor, classes: int, radius: float = RADIUS) -> Targets:
    """events (B, N, 3): start, end and class, NONE where there is none; mask (B, M) of moments that are there."""
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
    right_ones = fits & (length <= shortest + ALIKE)
    first = right_ones.int().argmax(2, keepdim=True)  # of equals the first
    positive = fits.any(2)
    distances = torch.cat([left.gather(2, first), right.gather(2, first)], 2)
    of_class = label[..., None] == torch.arange(classes, device=label.device)  # (B, 1, N, classes)
    told = torch.einsum("bmn,bnc->bmc", right_ones.float(), of_class[:, 0].float()).clamp(max=1).float()
    return Targets(told, distances * positive[:, :, None], positive)
