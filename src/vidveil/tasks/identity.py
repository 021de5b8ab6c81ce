"""Identity: who of the training people is seen. It serves linkage, which ranks people never trained on by its features.

Cross-entropy over training people. Validation people are others, as a rule, so the score is linkage among them; where
they are the same people, doing something else, it is how often they are named.

Where an action tells who (`within_action`), the choice is among those who do the clip's own action: otherwise whoever
learns to tell people apart learns the action with it.
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
            raise DataError(f"{data.name} names {len(people)} people in training: nobody to tell apart")
        self.data = data
        self.names_them = everybody_is_known(data)
        self.outputs = len(people)
        number = np.full(int(data.person.max()) + 2, -100, dtype=np.int64)  # -100: not a training person, no loss
        number[people] = np.arange(len(people))
        self.labels = on_device(number[data.person], device)  # a person of -1 is the last entry: -100
        self.label_smoothing = 0.0 if within_action else label_smoothing  # none for who is out of the question
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
        if self.names_them and self.name in predictions.probabilities:
            return float((predictions.probabilities[self.name].argmax(-1) == self.labels.cpu().numpy()[rows]).mean())
        setup = LinkageSetup(person=self.data.person[rows], rule=self.data.gallery, action=self.data.action[rows])
        return rank(predictions.features, setup).rank1


def everybody_is_known(data: ClipSet) -> bool:
    """Whether all people of validation and test are training people, so that they can be named."""
    known = np.unique(data.person[data.indices("train")])
    others = data.person[np.concatenate([data.indices("val"), data.indices("test")])]
    return bool(len(others)) and bool((others >= 0).all()) and bool(np.isin(others, known).all())
