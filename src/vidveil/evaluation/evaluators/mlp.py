"""A small network on the features of a frozen one: it learns in seconds what else takes minutes.

    x → by mean and deviation of training clips → Linear → GELU → Dropout → Linear

On top of a frozen utility network it tells the action (`with_heads`). Behind a frozen attacker its hidden layer, taught
to tell training people apart, is one more space to compare clips in (`identifying`), beside those of `projections`. A
frozen network was not made for pictures that a method has changed, so what is read off it is a lower bound.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from vidveil.tasks import Predictions, Task

Floats = NDArray[np.float64]
WIDTH = 256
STEPS = (50, 100, 200, 400)
"""On all training clips at once. Heads take the number that does best on validation; spaces have to do with the second:
validation chooses among spaces."""
RATE, DECAY, DROPOUT, SMOOTHING = 1e-3, 0.05, 0.5, 0.1
HEADS = [WIDTH, *STEPS, RATE, DECAY, DROPOUT]
"""All that what they tell depends on, beside the features."""


class Head(nn.Module):
    def __init__(self, features: Tensor, outputs: int) -> None:
        super().__init__()
        self.mean, self.deviation = features.mean(0), features.std(0) + 1e-3 * features.std() + 1e-6
        self.hidden = nn.Linear(features.shape[1], WIDTH)
        self.out = nn.Linear(WIDTH, outputs)

    def embed(self, features: Tensor) -> Tensor:
        return F.gelu(self.hidden((features - self.mean) / self.deviation))

    def forward(self, features: Tensor) -> Tensor:
        told: Tensor = self.out(F.dropout(self.embed(features), DROPOUT, self.training))
        return told


def taught(features: Tensor, outputs: int, loss: Callable[[Tensor], Tensor], seed: int) -> Iterator[Head]:
    """The same head again and again, after so many steps each."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = Head(features, outputs).to(features.device)
        optimizer = torch.optim.AdamW(head.parameters(), RATE, weight_decay=DECAY, fused=features.is_cuda)
        done = 0
        for upto in STEPS:
            head.train()
            for _ in range(upto - done):
                optimizer.zero_grad()
                loss(head(features)).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            done = upto
            yield head.eval()


def with_heads(
    said: Mapping[str, Predictions], tasks: Sequence[Task], device: torch.device | str, seed: int
) -> dict[str, Predictions]:
    """The predictions, with what heads on their features tell of all but `train`: learned there, chosen on `val`."""
    seen = {split: torch.from_numpy(one.features).float().to(device) for split, one in said.items()}
    rows = torch.from_numpy(said["train"].rows).to(device)
    found = {split: dict(one.probabilities) for split, one in said.items()}
    judged = [split for split in seen if split != "train"]
    for task in tasks:
        best = -np.inf
        for head in taught(seen["train"], task.outputs, lambda logits, of=task: of.loss(logits, rows), seed):  # type: ignore[misc]
            with torch.no_grad():
                told = {split: task.probabilities(head(seen[split])).cpu().numpy() for split in judged}
            score = task.score(replace(said["val"], probabilities={task.name: told["val"]}))
            if score > best or not np.isfinite(best):
                best = score if np.isfinite(score) else best
                for split, probabilities in told.items():
                    found[split][task.name] = probabilities
    return {split: replace(one, probabilities=found[split]) for split, one in said.items()}


def identifying(
    train: ArrayLike, person: ArrayLike, seed: int = 0, device: torch.device | str = "cpu"
) -> Callable[[ArrayLike], Floats]:
    """The hidden layer of a head that tells training people apart: (N, D) → (N, WIDTH). Person -1 is left out."""
    people = np.asarray(person)
    known = people >= 0
    features = torch.from_numpy(np.asarray(train, np.float32)[known]).to(device)
    names, numbers = np.unique(people[known], return_inverse=True)
    truth = torch.from_numpy(numbers).to(device)
    heads = taught(features, len(names), lambda said: F.cross_entropy(said, truth, label_smoothing=SMOOTHING), seed)
    next(heads)
    head = next(heads).requires_grad_(False)
    middle = head.embed(features).mean(0)

    def embedded(given: ArrayLike) -> Floats:
        hidden = head.embed(torch.from_numpy(np.asarray(given, np.float32)).to(device))
        made: Floats = (hidden - middle).cpu().numpy().astype(np.float64)
        return made

    return embedded
