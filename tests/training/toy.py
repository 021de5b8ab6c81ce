"""A small problem with everything that makes resuming hard: dropout, BatchNorm, an average, a data order by epoch."""

import multiprocessing
import os
import signal
import time
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vidveil.core import atomic
from vidveil.training import checkpoints
from vidveil.training.loop import fit
from vidveil.training.options import Options
from vidveil.training.seeds import seeded

PROCESSES = multiprocessing.get_context("forkserver")  # imports once, then each start takes milliseconds
PROCESSES.set_forkserver_preload(["tests.training.toy", "lightning.fabric"])


class Sums:
    """Is the sum of eight numbers positive? A batch depends on its epoch and number alone."""

    def __init__(self, batches: int = 10, rows: int = 16, seconds: float = 0.0) -> None:
        self.batches, self.rows, self.seconds = batches, rows, seconds

    def __len__(self) -> int:
        return self.batches

    def epoch(self, epoch: int, start: int = 0):
        for i in range(start, self.batches):
            time.sleep(self.seconds)
            yield self.draw(1000 * epoch + i)

    def draw(self, seed: int) -> tuple[Tensor, Tensor]:
        x = torch.randn(self.rows, 8, generator=torch.Generator().manual_seed(seed))
        return x, (x.sum(1) > 0).long()


def network(seed: int = 0) -> nn.Module:
    with seeded(seed):
        return nn.Sequential(
            nn.Linear(8, 16),
            nn.BatchNorm1d(16),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(16, 16),
            nn.ReLU(),
            nn.Linear(16, 2),
        )


def loss(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return cross_entropy(model(batch[0]), batch[1])


def accuracy(model: nn.Module) -> dict[str, float]:
    x, y = Sums(rows=300).draw(-1 % 2**31)
    return {"top1": (model(x).argmax(1) == y).float().mean().item()}


def train(folder: Path | None, model: nn.Module | None = None, batches: Sums | None = None, **options):
    """A whole training; returns the model and its Fit."""
    model = model or network()
    chosen = Options(**{"epochs": 4, "lr": 0.01, "device": "cpu", **options})
    return model, fit(model, batches=batches or Sums(), loss=loss, validate=accuracy, options=chosen, folder=folder)


LONG = {"epochs": 25, "ema": 0.98, "checkpoint_seconds": 0.02, "log_every": 5}
"""Options of the runs that are killed: 250 steps."""


def train_long(folder: Path) -> None:
    """In a process of its own, and slow enough to be killed before it ends: a second at least."""
    torch.set_num_threads(1)
    checkpoints.COST = 0  # as often as the options say
    train(folder, batches=Sums(seconds=0.004), **LONG)


def train_and_die_while_saving(folder: Path, call: int) -> None:
    """Kills itself at the `call`-th write of a checkpoint to disk, with the file half written."""
    torch.set_num_threads(1)
    left = call
    real = os.fsync

    def fsync(file: int) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            if not os.path.isdir(f"/proc/self/fd/{file}") and (size := os.fstat(file).st_size):  # noqa: PTH112
                os.truncate(f"/proc/self/fd/{file}", size // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        real(file)

    atomic.os.fsync = fsync
    train(folder, **LONG | {"checkpoint_seconds": 0})
