"""Action recognition. One action per clip: cross-entropy; top-1 of the mean softmax over views. Several per clip, where
the set has `action_labels`: binary cross-entropy; cMAP of the mean probability over views."""

import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.data.clips import ClipSet
from vidveil.tasks.attributes import MultiLabel
from vidveil.tasks.task import Predictions, Task, on_device


def action_task(data: ClipSet, device: torch.device | str, label_smoothing: float = 0.0) -> Task:
    """The task that fits the set."""
    if data.action_labels is not None:
        return Actions(data, device)  # label smoothing is for a choice of one class
    return Action(data, device, label_smoothing)


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
        predicted = predictions.probabilities[self.name].argmax(-1)
        return float((predicted == self.truth[predictions.rows]).mean())


class Actions(MultiLabel):
    name = "action"

    def __init__(self, data: ClipSet, device: torch.device | str) -> None:
        assert data.action_labels is not None
        super().__init__(data.action_labels, data.actions, device)
