"""Weakly supervised anomaly detection on features (MGFN): labels are of videos, predictions of segments."""

from vidveil.tasks.anomaly.losses import FIRM, LossWeights
from vidveil.tasks.anomaly.metric import frame_auc, video_auc
from vidveil.tasks.anomaly.network import MGFN, Shape
from vidveil.tasks.anomaly.task import Anomaly, AnomalyScores, fit_anomaly
from vidveil.tasks.anomaly.videos import AnomalyVideos, BalancedBatches

__all__ = [
    "FIRM",
    "MGFN",
    "Anomaly",
    "AnomalyScores",
    "AnomalyVideos",
    "BalancedBatches",
    "LossWeights",
    "Shape",
    "fit_anomaly",
    "frame_auc",
    "video_auc",
]
