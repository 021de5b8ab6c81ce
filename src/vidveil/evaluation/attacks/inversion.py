"""Raw features out of anonymized ones: whether an adapter hides, or only encodes otherwise.

    black box    the attacker has pairs (z, ẑ) of training videos, and learns ẑ → z: least squares, and a network of
                 two hidden layers for what is left
    white box    the attacker has the adapter, and looks for an x with adapter(x) = ẑ by gradient descent from x = ẑ

Nothing is learned from test videos: pairs are of training videos, and of validation videos to choose by.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.progress import phase
from vidveil.data.clips import Split
from vidveil.data.features.sets import FeatureSet

EPOCHS, BATCH, RATE = 100, 512, 1e-3
LEAST, VALIDATIONS, WIDEST = 300, 20, 512
"""Of the black box: its fewest steps, how often it is validated, and its widest layer."""
RIDGES = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
"""Of least squares, as shares of the mean variance."""
STEPS, STEP = 150, 0.03
"""Of the white box: Adam, in units of the features' own size."""
AT_ONCE = 4096


class Adapter(Protocol):
    """What an attacker with white-box access has."""

    scale: Tensor
    """Root mean square of training features."""

    def adapt(self, z: Tensor) -> Tensor:
        """(n, D) → (n, D), both in units of `scale`; differentiable."""


@phase("inversion by pairs")
def black_box(raw: FeatureSet, after: FeatureSet, *, seed: int) -> FeatureSet:
    """What an attacker recovers with pairs of training videos; validation videos decide when training ends."""
    given, wanted = _of(after, "train"), _of(raw, "train")
    given_val, wanted_val = _of(after, "val"), _of(raw, "val")
    if not len(given_val):
        given_val, wanted_val = given, wanted
    linear = _least_squares(given, wanted, given_val, wanted_val)
    width, middle = given.shape[1], given.mean(0)
    size = (given - middle).pow(2).mean().sqrt().clamp(min=1e-12)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        hidden = min(2 * width, WIDEST)
        layers = (nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        last = nn.Linear(hidden, width)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        network = nn.Sequential(*layers, last).to(given.device)

        def recovered(features: Tensor) -> Tensor:
            found: Tensor = linear(features) + size * network((features - middle) / size)
            return found

        optimizer = torch.optim.AdamW(network.parameters(), RATE, weight_decay=0.01)
        batch = min(BATCH, len(given))
        steps = max(LEAST, EPOCHS * (len(given) // batch))
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        best, kept = float("inf"), copy.deepcopy(network.state_dict())
        for step in range(steps + 1):
            if step % max(1, steps // VALIDATIONS) == 0 or step == steps:
                with torch.no_grad():
                    error = float(sum((recovered(g) - w).pow(2).sum() for g, w in _parts(given_val, wanted_val)))
                if error < best:
                    best, kept = error, copy.deepcopy(network.state_dict())
            if step == steps:
                break
            some = torch.randint(len(given), (batch,), device=given.device)
            optimizer.zero_grad()
            F.mse_loss(recovered(given[some]) / size, wanted[some] / size).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    network.load_state_dict(kept)
    network.requires_grad_(False)
    found = torch.cat([recovered(part) for part in torch.split(after.clips.all, AT_ONCE)])
    return replace(after, clips=replace(after.clips, all=found))


def _least_squares(given: Tensor, wanted: Tensor, given_val: Tensor, wanted_val: Tensor) -> Callable[[Tensor], Tensor]:
    """Ridge regression, by the ridge that is best on validation: a rotation needs the smallest."""
    middle, target = given.double().mean(0), wanted.double().mean(0)
    x, y = given.double() - middle, wanted.double() - target
    moments, one = x.T @ x / len(x), torch.eye(x.shape[1], dtype=torch.float64, device=x.device)
    level = (moments.trace() / len(one)).clamp(min=1e-12)
    tried = [torch.linalg.solve(moments + ridge * level * one, x.T @ y / len(x)) for ridge in RIDGES]
    errors = [float(((given_val.double() - middle) @ map_ + target - wanted_val).pow(2).mean()) for map_ in tried]
    best = tried[errors.index(min(errors))]
    return lambda features: ((features.double() - middle) @ best + target).to(features.dtype)


def _of(data: FeatureSet, split: Split) -> Tensor:
    """(n, D): all clips of the videos of a split."""
    mine = torch.from_numpy(np.repeat(data.labels.split == split, data.clips.count))
    return data.clips.all[mine.to(data.clips.all.device)]


def _parts(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(torch.split(one, AT_ONCE) for one in tensors), strict=True)


@phase("inversion by the adapter")
def white_box(after: FeatureSet, adapter: Adapter) -> FeatureSet:
    """What an attacker recovers with the adapter."""
    found = torch.cat([_inverted(part, adapter) for part in torch.split(after.clips.all, AT_ONCE)])
    return replace(after, clips=replace(after.clips, all=found))


def _inverted(after: Tensor, adapter: Adapter) -> Tensor:
    """(n, D) → (n, D): each clip for itself, since no adapter but the published one mixes clips."""
    target = after / adapter.scale
    guess = target.clone().requires_grad_()
    optimizer = torch.optim.Adam([guess], STEP)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        optimizer.zero_grad()
        (adapter.adapt(guess) - target).pow(2).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
    return guess.detach() * adapter.scale
