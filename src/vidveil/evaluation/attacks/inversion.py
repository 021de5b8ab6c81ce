"""Raw features out of anonymized ones: whether an adapter hides, or only writes in another hand.

    black box    the attacker has pairs (z, ẑ) of training videos, and learns ẑ → z: least squares, and a network of
                 two hidden layers for what is left
    white box    the attacker has the adapter, and looks for an x with AAM(x) = ẑ, from x = ẑ on, by gradient descent

Nobody attacks test videos with what is known of test videos: pairs are of training videos, and of validation videos to
choose by.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.progress import phase
from vidveil.data.clips import SPLITS, Split
from vidveil.data.features.sets import FeatureSet, Vectors
from vidveil.methods.splavu.model import AAM

EPOCHS, BATCH, RATE = 100, 512, 1e-3
LEAST, LOOKS, WIDEST = 300, 20, 512
"""Of the black box: steps that it takes at least, times that validation is asked, and its widest layer."""
RIDGES = (1e-8, 1e-6, 1e-4, 1e-2, 1e-1, 1.0)
"""What holds least squares back, as shares of the mean variance."""
STEPS, STEP = 150, 0.03
"""Of the white box: Adam, in units of the features' own size."""
AT_ONCE = 4096


def adapted(data: FeatureSet, adapter: AAM) -> FeatureSet:
    """The set after the adapter; static clips, too."""
    if adapter.shape.reference and adapter.shape.kind == "attention":
        return replace(data, clips=_among_others(data, adapter), static=None)
    static = None if data.static is None else _through(data.static, adapter)
    return replace(data, clips=_through(data.clips, adapter), static=static)


@torch.inference_mode()
def _among_others(data: FeatureSet, adapter: AAM) -> Vectors:
    """Published attention looks across a batch: batches are as large as in training, of clips of one split, by lot."""
    made = torch.empty_like(data.clips.all)
    lots = np.random.default_rng(0)
    for split in SPLITS:
        rows = lots.permutation(np.flatnonzero(np.repeat(data.labels.split == split, data.clips.count)))
        for some in torch.split(torch.from_numpy(rows).to(made.device), BATCH):
            made[some] = adapter(data.clips.all[some])
    return replace(data.clips, all=made)


@phase("inversion by pairs")
def black_box(raw: FeatureSet, after: FeatureSet, *, seed: int) -> FeatureSet:
    """What an attacker recovers who has seen pairs of training videos; validation videos tell him when to stop."""
    given, wanted = _of(after, "train"), _of(raw, "train")
    asked, hoped = _of(after, "val"), _of(raw, "val")
    if not len(asked):
        asked, hoped = given, wanted
    line = _straight(given, wanted, asked, hoped)
    width, middle = given.shape[1], given.mean(0)
    size = (given - middle).pow(2).mean().sqrt().clamp(min=1e-12)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        hidden = min(2 * width, WIDEST)
        layers = (nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU())
        last = nn.Linear(hidden, width)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        bent = nn.Sequential(*layers, last).to(given.device)

        def recovered(features: Tensor) -> Tensor:
            found: Tensor = line(features) + size * bent((features - middle) / size)
            return found

        optimizer = torch.optim.AdamW(bent.parameters(), RATE, weight_decay=0.01)
        batch = min(BATCH, len(given))
        steps = max(LEAST, EPOCHS * (len(given) // batch))
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        best, kept = float("inf"), copy.deepcopy(bent.state_dict())
        for step in range(steps + 1):
            if step % max(1, steps // LOOKS) == 0 or step == steps:
                with torch.no_grad():
                    error = float(sum((recovered(g) - w).pow(2).sum() for g, w in _parts(asked, hoped)))
                if error < best:
                    best, kept = error, copy.deepcopy(bent.state_dict())
            if step == steps:
                break
            some = torch.randint(len(given), (batch,), device=given.device)
            optimizer.zero_grad()
            F.mse_loss(recovered(given[some]) / size, wanted[some] / size).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    bent.load_state_dict(kept)
    bent.requires_grad_(False)
    found = torch.cat([recovered(part) for part in torch.split(after.clips.all, AT_ONCE)])
    return replace(after, clips=replace(after.clips, all=found))


def _straight(given: Tensor, wanted: Tensor, asked: Tensor, hoped: Tensor) -> Callable[[Tensor], Tensor]:
    """Least squares, held back by as much as does best on what is asked: a rotation needs no more."""
    middle, target = given.double().mean(0), wanted.double().mean(0)
    x, y = given.double() - middle, wanted.double() - target
    moments, one = x.T @ x / len(x), torch.eye(x.shape[1], dtype=torch.float64, device=x.device)
    level = (moments.trace() / len(one)).clamp(min=1e-12)
    tried = [torch.linalg.solve(moments + ridge * level * one, x.T @ y / len(x)) for ridge in RIDGES]
    errors = [float(((asked.double() - middle) @ map_ + target - hoped).pow(2).mean()) for map_ in tried]
    best = tried[errors.index(min(errors))]
    return lambda features: ((features.double() - middle) @ best + target).to(features.dtype)


def _of(data: FeatureSet, split: Split) -> Tensor:
    """(n, D): all clips of the videos of a split."""
    mine = torch.from_numpy(np.repeat(data.labels.split == split, data.clips.count))
    return data.clips.all[mine.to(data.clips.all.device)]


def _parts(*tensors: Tensor) -> Iterator[tuple[Tensor, ...]]:
    return zip(*(torch.split(one, AT_ONCE) for one in tensors), strict=True)


@phase("inversion by the adapter")
def white_box(after: FeatureSet, adapter: AAM) -> FeatureSet:
    """What an attacker recovers who has the adapter."""
    found = torch.cat([_sought(part, adapter) for part in torch.split(after.clips.all, AT_ONCE)])
    return replace(after, clips=replace(after.clips, all=found))


def _sought(after: Tensor, adapter: AAM) -> Tensor:
    """(n, D) → (n, D): each by itself, since nothing in an adapter joins clips (but in the published one)."""
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


@torch.inference_mode()
def _through(vectors: Vectors, adapter: AAM) -> Vectors:
    return replace(vectors, all=torch.cat([adapter(part) for part in torch.split(vectors.all, AT_ONCE)]))
