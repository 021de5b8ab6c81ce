"""Private attributes, several at once: binary cross-entropy over those that are known; mean average precision."""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.data.clips import ClipSet
from vidveil.evaluation.metrics import cmap
from vidveil.tasks.task import Predictions, Task, on_device


class Attributes(Task):
    name = "attributes"

    def __init__(self, data: ClipSet, device: torch.device | str, label_smoothing: float = 0.0) -> None:  # noqa: ARG002
        self.names = tuple(data.attribute_names)
        self.outputs = len(self.names)
        self.truth = data.attributes
        known = ~np.isnan(data.attributes)
        self.labels = on_device(np.where(known, data.attributes, 0).astype(np.float32), device)
        self.known = on_device(known.astype(np.float32), device)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        each = F.binary_cross_entropy_with_logits(logits.float(), self.labels[rows], reduction="none")  # (B, A)
        known = self.known[rows]
        return (each * known).sum() / known.sum().clamp(min=1)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.float().sigmoid()

    def score(self, predictions: Predictions) -> float:
        return cmap(self.truth[predictions.rows], predictions.probabilities[self.name], self.names).mean
