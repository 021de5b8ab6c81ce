"""Identity: which of the training people a clip shows. Linkage ranks other people by the features that this gives.

Cross-entropy over training people. Validation people are usually others, and the score is linkage among them. If they
are the same people, doing something else, the score is top-1 accuracy.

With `within_action`, the choice is among the people who do the clip's action. Otherwise, where few people do an action,
a network would learn the action in order to recognize people.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.statistics.linkage import LinkageSetup, rank
from vidveil.tasks.task import Predictions, Task, on_device


class Identity(Task):
    name = "identity"

    def __init__(
        self,
        data: ClipSet,
        device: torch.device | str,
        label_smoothing: float = 0.0,
        *,
        within_action: bool = False,
    ) -> None:
        people = np.unique(data.person[data.indices("train")])
        people = people[people >= 0]
        if len(people) < 2:
            raise DataError(f"{data.name} has {len(people)} named people in training, and identity needs two")
        self.data = data
        self.all_known = everybody_is_known(data)
        self.outputs = len(people)
        number = np.full(int(data.person.max()) + 2, -100, dtype=np.int64)  # -100: not a training person, no loss
        number[people] = np.arange(len(people))
        self.labels = on_device(number[data.person], device)  # a person of -1 is the last entry: -100
        self.label_smoothing = 0.0 if within_action else label_smoothing  # it would reward impossible people
        self.others: Tensor | None = None
        if within_action:
            rows = data.indices("train")
            does = np.zeros((len(data.actions), len(people)), bool)
            known = rows[number[data.person[rows]] >= 0]
            does[data.action[known], number[data.person[known]]] = True
            self.others = on_device(~does, device)  # (actions, people)
            self.actions = on_device(data.action, device)

    def loss(self, logits: Tensor, rows: Tensor) -> Tensor:
        labels = self.labels[rows]
        logits = logits.float()
        if self.others is not None:
            logits = logits.masked_fill(self.others[self.actions[rows]], float("-inf"))
        each = F.cross_entropy(logits, labels, label_smoothing=self.label_smoothing, reduction="sum")
        return each / (labels >= 0).sum().clamp(min=1)

    def probabilities(self, logits: Tensor) -> Tensor:
        return logits.float().softmax(-1)

    def score(self, predictions: Predictions) -> float:
        rows = predictions.rows
        if self.all_known and self.name in predictions.probabilities:
            return float((predictions.probabilities[self.name].argmax(-1) == self.labels.cpu().numpy()[rows]).mean())
        setup = LinkageSetup(person=self.data.person[rows], rule=self.data.gallery, action=self.data.action[rows])
        return rank(predictions.features, setup).rank1


def everybody_is_known(data: ClipSet) -> bool:
    """Whether all people of validation and test are training people, so that they can be classified."""
    known = np.unique(data.person[data.indices("train")])
    others = data.person[np.concatenate([data.indices("val"), data.indices("test")])]
    return bool(len(others)) and bool((others >= 0).all()) and bool(np.isin(others, known).all())
