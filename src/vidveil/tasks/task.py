"""A task: the width of its head, its loss, and its score on validation.

A task is made for one `ClipSet` and keeps the set's labels on the device. Batches have row numbers, by which labels are
looked up.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Predictions:
    """Of a network, for some clips of a set."""

    rows: NDArray[np.int64]
    """(n,) numbers of the clips."""
    features: NDArray[np.float32]
    """(n, D) means over views."""
    probabilities: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    """By task: (n, outputs), means over views."""


class Task(ABC):
    name: str
    outputs: int
    """Width of the head."""
    labels: Tensor
    """One per clip of the set, on the device."""

    @abstractmethod
    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """logits (B, outputs), rows (B,) → a scalar."""

    @abstractmethod
    def probabilities(self, logits: Tensor) -> Tensor:
        """(..., outputs) → the same shape, in [0, 1]."""

    @abstractmethod
    def score(self, predictions: Predictions) -> float:
        """On validation, higher is better: epochs and attackers are chosen by it."""


def on_device(values: NDArray[np.generic], device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)
