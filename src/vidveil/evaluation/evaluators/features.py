"""Heads on features: of the action, and of attackers. Trained anew on whatever the features are.

    linear    features → standardized by training clips → Linear
    mlp       … → Linear(D, D) → ReLU → Linear                                        the attacker of the paper
    mlp2      … → Linear(D, 512) → ReLU → Linear(512, 256) → ReLU → Linear            for what is not linear

A clip of each training video is drawn anew each epoch. Of a test video the probability is the mean over five clips.
The epoch is chosen on validation. Where there are few videos, more epochs are trained (`least_steps`).
"""

import copy
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.core.progress import counted
from vidveil.data.clips import SPLITS
from vidveil.data.features.sets import FeatureSet
from vidveil.data.views import ORDER, VIEW, draw
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.recipes.features import FeaturesRecipe, HeadKind
from vidveil.tasks import Predictions, Task

DROPOUT = {"linear": 0.0, "mlp": 0.1, "mlp2": 0.3}
WIDTHS = (512, 256)
SALT = 1000
"""Added to seeds: an evaluator must not draw what the adapter of the same seed drew."""
SPACE = "features:frozen"
"""Linkage needs no head: the features are a space, and `Measure` derives others from them."""
MLP_SPACE = "mlp.safetensors"
"""Where `Measure` keeps the space of a small network on them."""
VALIDATIONS = 20
"""At most, in a training: after every epoch they would take longer than the training."""


class Head(nn.Module):
    """Of features that are as long as `like` (n, D), and standardized by its mean and deviation."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, kind: HeadKind, like: Tensor, outputs: int) -> None:
        super().__init__()
        width = like.shape[1]
        self.register_buffer("mean", like.mean(0))
        self.register_buffer("deviation", like.std(0) + 1e-3 * like.std() + 1e-6)
        sizes = {"linear": (width,), "mlp": (width, width), "mlp2": (width, *WIDTHS)}[kind]
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.out = nn.Linear(sizes[-1], outputs)
        self.dropout = DROPOUT[kind]

    def forward(self, features: Tensor) -> Tensor:
        x = (features - self.mean) / self.deviation
        for layer in self.hidden:
            x = F.dropout(F.relu(layer(x)), self.dropout, self.training)
        logits: Tensor = self.out(x)
        return logits


@dataclass(frozen=True, eq=False)
class TrainedHead:
    head: Head
    task: Task
    name: str
    seconds: float

    def predict(self, data: FeatureSet, folder: Path) -> TrainedNetwork:
        """Predictions for these features, which need not be those that it was trained on."""
        predictions = {
            split: Predictions(
                one.rows, one.features, {self.task.name: _probabilities(self.head, self.task, data, one.rows)}
            )
            for split, one in features_by_split(data).items()
            if len(one.rows)
        }
        score = {self.task.name: self.task.score(predictions["val"])}
        parameters = sum(p.numel() for p in self.head.parameters())
        return TrainedNetwork(predictions, score, parameters, self.seconds, self.name, folder)


def features_by_split(data: FeatureSet) -> dict[str, Predictions]:
    """The features themselves, the mean over five clips of a video."""
    rows = {split: data.labels.indices(split) for split in SPLITS}
    return {split: Predictions(which, data.clips.even(which).mean(1).cpu().numpy()) for split, which in rows.items()}


def space(data: FeatureSet, folder: Path) -> TrainedNetwork:
    """For linkage, without any training. The space of a small network is removed: an interrupted run may have learned
    it of other features."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MLP_SPACE).unlink(missing_ok=True)
    return TrainedNetwork(features_by_split(data), {}, 0, 0.0, SPACE, folder)


def head_epochs(recipe: FeaturesRecipe, videos: int, epochs: int) -> tuple[int, int]:
    """Epochs of a head, which are more than asked for where there are few training videos; and steps of each."""
    steps = videos // min(recipe.batch, videos)
    return max(epochs, -(-recipe.least_steps // steps)), steps


def train_head(
    data: FeatureSet, kind: HeadKind, task: Task, recipe: FeaturesRecipe, *, epochs: int, lr: float, seed: int
) -> TrainedHead:
    """A head, on the training videos."""
    began = monotonic()
    rows, device = data.labels.indices("train"), data.clips.all.device
    batch = min(recipe.batch, len(rows))
    (epochs, steps), seed = head_epochs(recipe, len(rows), epochs), seed + SALT
    every = max(1, epochs // VALIDATIONS)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = Head(kind, data.clips.even(rows).flatten(0, 1), task.outputs).to(device)
        optimizer = torch.optim.AdamW(head.parameters(), lr, weight_decay=recipe.weight_decay)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * steps)
        best, kept = -np.inf, copy.deepcopy(head.state_dict())
        for epoch in counted(range(epochs), f"{task.name} head, {kind}, seed {seed - SALT}", epochs, "epochs"):
            head.train()
            order = np.random.default_rng((seed, ORDER, epoch)).permutation(rows)
            for number in range(steps):
                chosen = order[number * batch : (number + 1) * batch]
                clip = data.clips.one(chosen, draw(seed, VIEW, epoch, chosen, 1)[:, 0])
                optimizer.zero_grad()
                task.loss(head(clip), torch.from_numpy(chosen)).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
            if (epoch + 1) % every == 0 or epoch + 1 == epochs:
                score = _validated(head, task, data)
                if score > best or not np.isfinite(best):
                    best, kept = (score if np.isfinite(score) else best), copy.deepcopy(head.state_dict())
        head.load_state_dict(kept)
    name = kind if len(recipe.attacker_lr) == 1 else f"{kind} lr {lr:g}"
    return TrainedHead(head.eval().requires_grad_(False), task, name, round(monotonic() - began, 1))


def _validated(head: Head, task: Task, data: FeatureSet) -> float:
    rows = data.labels.indices("val")
    probabilities = _probabilities(head.eval(), task, data, rows)
    return task.score(Predictions(rows, np.zeros((len(rows), 0), np.float32), {task.name: probabilities}))


@torch.inference_mode()
def _probabilities(head: Head, task: Task, data: FeatureSet, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    views = data.clips.even(rows)  # (n, V, D)
    found: NDArray[np.float32] = task.probabilities(head(views)).mean(1).cpu().numpy()
    return found
