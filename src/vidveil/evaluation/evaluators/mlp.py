"""A small network on the features of a frozen one: it is trained in seconds, and not in minutes.

    x → standardized by training clips → Linear → GELU → Dropout → Linear

On a frozen utility network it predicts the action (`with_heads`). On a frozen attacker its hidden layer, trained to
classify training people, is one more space to compare clips in (`identity_space`), next to those of `projections`. A
frozen network was not trained on pictures that a method has changed, so its numbers are lower bounds.
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
"""On all training clips at once. Heads take the number that does best on validation; spaces take the second, since
validation chooses among spaces."""
RATE, DECAY, DROPOUT, SMOOTHING = 1e-3, 0.05, 0.5, 0.1
HEADS = [WIDTH, *STEPS, RATE, DECAY, DROPOUT]
"""All that their predictions depend on, apart from the features."""


class Head(nn.Module):
    def __init__(self, features: Tensor, outputs: int) -> None:
        super().__init__()
        self.mean, self.deviation = features.mean(0), features.std(0) + 1e-3 * features.std() + 1e-6
        self.hidden = nn.Linear(features.shape[1], WIDTH)
        self.out = nn.Linear(WIDTH, outputs)

    def embed(self, features: Tensor) -> Tensor:
        return F.gelu(self.hidden((features - self.mean) / self.deviation))

    def forward(self, features: Tensor) -> Tensor:
        logits: Tensor = self.out(F.dropout(self.embed(features), DROPOUT, self.training))
        return logits


def trained_heads(features: Tensor, outputs: int, loss: Callable[[Tensor], Tensor], seed: int) -> Iterator[Head]:
    """The same head after each number of steps."""
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
    predictions: Mapping[str, Predictions], tasks: Sequence[Task], device: torch.device | str, seed: int
) -> dict[str, Predictions]:
    """The predictions, with probabilities by heads on their features for all splits but `train`, where the heads are
    trained. Their number of steps is chosen on `val`."""
    features = {split: torch.from_numpy(one.features).float().to(device) for split, one in predictions.items()}
    rows = torch.from_numpy(predictions["train"].rows).to(device)
    found = {split: dict(one.probabilities) for split, one in predictions.items()}
    predicted = [split for split in features if split != "train"]
    for task in tasks:
        best = -np.inf
        for head in trained_heads(features["train"], task.outputs, lambda logits, of=task: of.loss(logits, rows), seed):  # type: ignore[misc]
            with torch.no_grad():
                by_split = {split: task.probabilities(head(features[split])).cpu().numpy() for split in predicted}
            score = task.score(replace(predictions["val"], probabilities={task.name: by_split["val"]}))
            if score > best or not np.isfinite(best):
                best = score if np.isfinite(score) else best
                for split, probabilities in by_split.items():
                    found[split][task.name] = probabilities
    return {split: replace(one, probabilities=found[split]) for split, one in predictions.items()}


def identity_space(
    train: ArrayLike, person: ArrayLike, seed: int = 0, device: torch.device | str = "cpu"
) -> Callable[[ArrayLike], Floats]:
    """The hidden layer of a head that classifies training people: (N, D) → (N, WIDTH). Person -1 is left out."""
    people = np.asarray(person)
    known = people >= 0
    features = torch.from_numpy(np.asarray(train, np.float32)[known]).to(device)
    names, numbers = np.unique(people[known], return_inverse=True)
    truth = torch.from_numpy(numbers).to(device)
    heads = trained_heads(
        features, len(names), lambda logits: F.cross_entropy(logits, truth, label_smoothing=SMOOTHING), seed
    )

    next(heads)
    head = next(heads).requires_grad_(False)
    middle = head.embed(features).mean(0)

    def embedded(given: ArrayLike) -> Floats:
        hidden = head.embed(torch.from_numpy(np.asarray(given, np.float32)).to(device))
        made: Floats = (hidden - middle).cpu().numpy().astype(np.float64)
        return made

    return embedded
