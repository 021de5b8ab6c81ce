"""Long videos out of the clips of the made feature store.

detection_videos(data)     walks and waves between bends: two classes
anomaly_videos(data)       half of the videos have some bends among walks and waves
"""

import numpy as np

from tests.tasks.anomaly.made import synthetic as synthetic_anomalies
from tests.tasks.detection.made import synthetic as synthetic_actions
from vidveil.data.features.sets import FeatureSet
from vidveil.tasks.anomaly import AnomalyVideos
from vidveil.tasks.detection import DetectionVideos

BEND = 2


def detection_videos(data: FeatureSet, videos: tuple[int, int, int] = (8, 4, 4)) -> DetectionVideos:
    z, action, split = _clips(data)
    idle = action == BEND
    return synthetic_actions(
        z[~idle], action[~idle], z[idle], videos=videos, parts=(split[~idle], split[idle]), events=(1, 2),
        lasting=(4, 6), between=(3, 5),
    )  # fmt: skip


def anomaly_videos(data: FeatureSet, videos: int = 60) -> AnomalyVideos:
    z, action, _ = _clips(data)
    return synthetic_anomalies(z[action != BEND], z[action == BEND], videos=videos)


def _clips(data: FeatureSet):
    numbers = data.clips.count
    return data.clips.all.numpy(), np.repeat(data.labels.action, numbers), np.repeat(data.labels.split, numbers)
