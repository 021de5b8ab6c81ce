"""A small network on the easy set."""

import torch

from vidveil.tasks.anomaly import FIRM, Anomaly, Shape, Watched, fit_anomaly, untrimmed_set
from vidveil.tasks.anomaly.untrimmed import kinds_of_noise
from vidveil.training.options import Options
from vidveil.training.seeds import seeded

WIDTH = 16
SMALL = Shape(width=WIDTH, widths=(16, 16, 32), depths=(1, 1, 1), head=8)


def easy(seed: int = 0, videos: int = 160) -> Watched:
    return untrimmed_set(*kinds_of_noise(width=WIDTH, seed=seed), videos=videos, seed=seed)


def task(seed: int = 0, **changed) -> Anomaly:
    """As if it had learned: nothing is 0 any more, and magnitudes differ."""
    with seeded(seed):
        made = Anomaly(Shape(**{**SMALL.__dict__, **changed}), FIRM)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.2)
    return made


def train(data: Watched, folder=None, *, seed: int = 0, epochs: int = 15, **changed):
    options = Options(epochs=epochs, lr=1e-3, weight_decay=5e-4, warmup_epochs=0.0, seed=seed, device="cpu", **changed)
    return fit_anomaly(data, shape=SMALL, weights=FIRM, options=options, batch=16, folder=folder)


def features(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))
