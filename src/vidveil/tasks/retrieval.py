"""Retrieval: given a clip, is a clip of the same action among the k nearest training clips?

    R@k = share of test clips with one of their action among the k nearest         mAP over the whole ranking

By cosine of features that were trained for something else, or not at all. No head, no loss: it is a use that features
may be put to, and is measured like linkage, with actions in the place of people.
"""

from dataclasses import dataclass

import numpy as np

from vidveil.data.clips import ClipSet
from vidveil.statistics.linkage import Linkage, LinkageSetup, rank
from vidveil.tasks.task import Predictions

CUTS = (1, 5, 10)


@dataclass(frozen=True)
class Retrieval:
    recall: dict[int, float]
    """R@k."""
    mean_average_precision: float
    floor: float
    """R@1 of a neighbour drawn by lot."""
    ranked: Linkage
    """One entry a clip, test clips first: for intervals."""


def retrieval(data: ClipSet, test: Predictions, train: Predictions) -> Retrieval:
    """Test clips looked up among training clips."""
    features = np.concatenate([test.features, train.features])
    action = np.concatenate([data.action[test.rows], data.action[train.rows]])
    asked = np.arange(len(features)) < len(test.rows)
    ranked = rank(features, LinkageSetup(person=action, probes=asked, among=~asked))
    recall = {k: float(np.nanmean(ranked.recall(k))) for k in CUTS}
    return Retrieval(recall, ranked.mean_average_precision, ranked.floor, ranked)
