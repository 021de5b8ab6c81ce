"""Whole videos of which everything is known: clips of the made store in a row, and what happens in them.

untrimmed(data)     walks and waves between bends: detection has two classes
watched(data)       bends for a while, in half of the videos, among walks and waves
"""

from dataclasses import replace

import numpy as np

from vidveil.data.features.sets import FeatureSet
from vidveil.tasks import anomaly, detection

BEND = 2


def untrimmed(data: FeatureSet, videos: tuple[int, int, int] = (8, 4, 4)) -> detection.Untrimmed:
    z, action, split = _clips(data)
    idle = action == BEND
    return detection.drawn(
        z[~idle], action[~idle], z[idle], videos=videos, parts=(split[~idle], split[idle]), events=(1, 2),
        lasting=(4, 6), between=(3, 5),
    )  # fmt: skip


def watched(data: FeatureSet, videos: int = 60) -> anomaly.Watched:
    z, action, _ = _clips(data)
    return replace(anomaly.untrimmed_set(z[action != BEND], z[action == BEND], videos=videos), name="watched")


def _clips(data: FeatureSet):
    numbers = data.clips.count
    return data.clips.all.numpy(), np.repeat(data.labels.action, numbers), np.repeat(data.labels.split, numbers)
