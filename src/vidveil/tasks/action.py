"""Action: which of the classes is done. Cross-entropy; top-1 of the mean softmax over views."""

import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.data.clips import ClipSet
from vidveil.tasks.task import Predictions, Task, on_device


class Action(Task):
    name = "action"

    def __init__(self, data: ClipSet, device: torch.device | str, label_smoothing: float = 0.0) -> None:
        self.outputs = len(data.actions)
        self.truth = data.action
        self.labels = on_device(data.action, device)
        self.label_smoothing = label_smoothing

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        return F.cross_entropy(logits.float(), self.labels[rows], label_smoothing=self.label_smoothing)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.float().softmax(-1)

    def score(self, predictions: Predictions) -> float:
        guess = predictions.probabilities[self.name].argmax(-1)
        return float((guess == self.truth[predictions.rows]).mean())
