"""Weakly supervised anomaly detection on features: videos are labelled, segments are told (MGFN)."""

from vidveil.tasks.anomaly.folds import cut_into_folds, folds_of, split_of
from vidveil.tasks.anomaly.losses import FIRM, Weights
from vidveil.tasks.anomaly.metric import frame_auc, frame_estimate, video_auc, video_estimate
from vidveil.tasks.anomaly.network import MGFN, Shape
from vidveil.tasks.anomaly.task import Anomaly, Told, fit_anomaly
from vidveil.tasks.anomaly.untrimmed import untrimmed_set
from vidveil.tasks.anomaly.watched import Pairs, Watched

__all__ = [
    "FIRM",
    "MGFN",
    "Anomaly",
    "Pairs",
    "Shape",
    "Told",
    "Watched",
    "Weights",
    "cut_into_folds",
    "fit_anomaly",
    "folds_of",
    "frame_auc",
    "frame_estimate",
    "split_of",
    "untrimmed_set",
    "video_auc",
    "video_estimate",
]
