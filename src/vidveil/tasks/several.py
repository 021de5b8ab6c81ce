"""Several binary labels per clip: binary cross-entropy over the known ones; cMAP.

Private attributes are such labels, and so are actions where a clip shows more than one.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vidveil.statistics.metrics import cmap
from vidveil.tasks.task import Predictions, Task, on_device


class Several(Task):
    def __init__(self, truth: NDArray[np.float32], names: Sequence[str], device: torch.device | str) -> None:
        """`truth` is (N, len(names)), 1 or 0, NaN where unknown."""
        self.names = tuple(names)
        self.outputs = len(self.names)
        self.truth = truth
        known = ~np.isnan(truth)
        self.labels = on_device(np.where(known, truth, 0).astype(np.float32), device)
        self.known = on_device(known.astype(np.float32), device)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        each = F.binary_cross_entropy_with_logits(logits.float(), self.labels[rows], reduction="none")  # (B, A)
        known = self.known[rows]
        return (each * known).sum() / known.sum().clamp(min=1)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.float().sigmoid()

    def score(self, predictions: Predictions) -> float:
        """Over labels that differ among these clips; NaN if none does."""
        return cmap(self.truth[predictions.rows], predictions.probabilities[self.name])
