"""What a network may learn of a clip: a head's width, a loss, and a score on validation.

A task is made for one `ClipSet` and keeps that set's labels on the device; batches bring row numbers, so that labels
are looked up and never travel with pixels.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True)
class Predictions:
    """What a network says of some clips of a set."""

    rows: NDArray[np.int64]
    """(n,) which clips."""
    features: NDArray[np.float32]
    """(n, D) mean over views."""
    probabilities: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    """Of each task's head: (n, outputs), mean over views."""


class Task(ABC):
    name: str
    outputs: int
    """Width of the head."""
    labels: Tensor
    """One a clip of the set, on the device."""

    @abstractmethod
    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        """logits (B, outputs), rows (B,) → a scalar."""

    @abstractmethod
    def probabilities(self, logits: Tensor) -> Tensor:
        """(..., outputs) → the same shape, in [0, 1]."""

    @abstractmethod
    def score(self, predictions: Predictions) -> float:
        """On validation, higher is better: what an epoch and an attacker are chosen by."""


def on_device(values: NDArray[np.generic], device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)
