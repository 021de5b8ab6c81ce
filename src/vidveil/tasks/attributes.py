"""Several binary labels per clip, such as private attributes: binary cross-entropy over the known ones; cMAP."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from vidveil.data.clips import ClipSet
from vidveil.statistics.metrics import cmap
from vidveil.tasks.task import Predictions, Task, on_device


class MultiLabel(Task):
    """Of any meaning: actions are such labels, too, if clips show more than one."""

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


class Attributes(MultiLabel):
    name = "attributes"

    def __init__(self, data: ClipSet, device: torch.device | str, label_smoothing: float = 0.0) -> None:  # noqa: ARG002
        super().__init__(data.attributes, data.attribute_names, device)
