"""Retrieval: given a clip, is a clip of the same action among the k nearest training clips?

    R@k = share of test clips with one of their action among the k nearest         mAP over the whole ranking

By cosine similarity of features that were trained for another task, or not at all. It needs no head and no loss, and is
measured like linkage, with actions instead of people.
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
    """R@1 of a random neighbour."""
    ranked: Linkage
    """One entry per clip, test clips first: for intervals."""


def retrieval(data: ClipSet, test: Predictions, train: Predictions) -> Retrieval:
    """Test clips are queries, training clips the gallery."""
    features = np.concatenate([test.features, train.features])
    action = np.concatenate([data.action[test.rows], data.action[train.rows]])
    queries = np.arange(len(features)) < len(test.rows)
    ranked = rank(features, LinkageSetup(person=action, probes=queries, among=~queries))
    recall = {k: float(np.nanmean(ranked.recall(k))) for k in CUTS}
    return Retrieval(recall, ranked.mean_average_precision, ranked.floor, ranked)
