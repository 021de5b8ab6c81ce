"""Identity: who of the training people is seen. It serves linkage, which ranks people never trained on by its features.

Cross-entropy over training people. The validation people are others, so the score is linkage among them.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.data.clips import ClipSet
from vidveil.errors import DataError
from vidveil.evaluation.linkage import Lineup, rank
from vidveil.tasks.task import Predictions, Task, on_device


class Identity(Task):
    name = "identity"

    def __init__(self, data: ClipSet, device: torch.device | str, label_smoothing: float = 0.0) -> None:
        people = np.unique(data.person[data.indices("train")])
        people = people[people >= 0]
        if len(people) < 2:
            raise DataError(f"{data.name} names {len(people)} people in training: nobody to tell apart")
        self.data = data
        self.outputs = len(people)
        number = np.full(int(data.person.max()) + 2, -100, dtype=np.int64)  # -100: not a training person, no loss
        number[people] = np.arange(len(people))
        self.labels = on_device(number[data.person], device)  # a person of -1 is the last entry: -100
        self.label_smoothing = label_smoothing

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        labels = self.labels[rows]
        each = F.cross_entropy(logits.float(), labels, label_smoothing=self.label_smoothing, reduction="sum")
        return each / (labels >= 0).sum().clamp(min=1)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.float().softmax(-1)

    def score(self, predictions: Predictions) -> float:
        rows = predictions.rows
        lineup = Lineup(person=self.data.person[rows], rule=self.data.gallery, action=self.data.action[rows])
        return rank(predictions.features, lineup).rank1
