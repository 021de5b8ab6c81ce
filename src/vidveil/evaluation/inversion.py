"""Raw features out of anonymized ones: whether an adapter hides, or only writes in another hand.

    black box    the attacker has pairs (z, ẑ) of training videos, and learns ẑ → z: a network of two hidden layers
    white box    the attacker has the adapter, and looks for an x with AAM(x) = ẑ, from x = ẑ on, by gradient descent

Nobody attacks test videos with what is known of test videos: pairs are of training videos alone.
"""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.features.sets import FeatureSet, Vectors
from vidveil.methods.splavu import AAM

EPOCHS, BATCH, RATE = 100, 512, 1e-3
"""Of the black box."""
STEPS, STEP = 300, 0.02
"""Of the white box: Adam, in units of the features' own size."""
AT_ONCE = 4096


def adapted(data: FeatureSet, adapter: AAM) -> FeatureSet:
    """The set after the adapter; static clips, too."""
    static = None if data.static is None else _through(data.static, adapter)
    return replace(data, clips=_through(data.clips, adapter), static=static)


def black_box(raw: FeatureSet, after: FeatureSet, *, seed: int) -> FeatureSet:
    """What an attacker recovers who has seen pairs of training videos."""
    device = raw.clips.all.device
    rows = raw.labels.indices("train")
    mine = torch.zeros(len(raw.clips.all), dtype=torch.bool)
    for first, count in zip(raw.clips.first[rows].tolist(), raw.clips.count[rows].tolist(), strict=True):
        mine[first : first + count] = True
    given, wanted = after.clips.all[mine.to(device)], raw.clips.all[mine.to(device)]
    size = given.pow(2).mean().sqrt()
    width = given.shape[1]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers = (nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, 2 * width), nn.GELU())
        inverse = nn.Sequential(*layers, nn.Linear(2 * width, width)).to(device)
        optimizer = torch.optim.AdamW(inverse.parameters(), RATE, weight_decay=0.01)
        batch = min(BATCH, len(given))
        steps = EPOCHS * (len(given) // batch)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            some = torch.randint(len(given), (batch,), device=device)
            guess = given[some] / size + inverse(given[some] / size)  # the change is what has to be learned
            optimizer.zero_grad()
            F.mse_loss(guess, wanted[some] / size).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    inverse.requires_grad_(False)
    found = torch.cat([part + size * inverse(part / size) for part in torch.split(after.clips.all, AT_ONCE)])
    return replace(after, clips=replace(after.clips, all=found))


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
