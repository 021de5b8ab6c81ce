"""Several actions at once: cMAP over those that vary in test, by the network that is best on validation.

`many_labels` explains how so many are measured together. The floor is a formula, so that nothing is permuted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.evaluation.evaluators.train import TrainedNetwork
from vidveil.evaluation.measures.many_labels import cmap_number, over_how_many
from vidveil.evaluation.measures.measured import MeasuredClips
from vidveil.evaluation.number import Number
from vidveil.statistics import metrics


def readable(data: ClipSet) -> bool:
    """Whether actions can be learned and tested: else none of test was ever shown, or there is one alone, and any
    prediction is right."""
    if data.action_labels is not None:
        varies = [metrics.varying(data.action_labels[data.indices(split)]) for split in ("train", "test")]
        return bool(np.logical_and(*varies).any())
    seen = set(data.action[data.indices("train")].tolist())
    return len(seen) > 1 and set(data.action[data.indices("test")].tolist()) <= seen


def several_actions(measure: MeasuredClips, networks: Mapping[str, Sequence[TrainedNetwork]]) -> Number:
    """cMAP of a set with `action_labels`. Actions that are the same in all test clips are left out."""
    data = measure.data
    assert data.action_labels is not None
    truth = data.action_labels[measure.rows].astype(np.float64)
    alive = np.flatnonzero(metrics.varying(truth))
    if not len(alive):
        raise DataError(f"{data.name}: every action is in all test clips or in none, and none can be evaluated")
    note = over_how_many(data.action_labels, data.indices("train"), alive, "actions")
    if len(alive) == len(data.actions) and "training" not in note:
        note = ""  # over all of them, and each could be learned
    return replace(cmap_number(measure, networks, "action", truth), kind="utility", note=note)
