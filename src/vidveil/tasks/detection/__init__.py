"""Temporal action detection: TriDet on features, its targets, losses, decoding and mAP."""

from vidveil.tasks.detection.decode import Decoding, Detections, Spans, decode, soft_nms
from vidveil.tasks.detection.metric import THRESHOLDS, AveragePrecision, detection_map
from vidveil.tasks.detection.network import Shape, TriDet
from vidveil.tasks.detection.task import Batch, Detection, TrainingBatches, detect, fit_detection
from vidveil.tasks.detection.videos import DetectionVideos

__all__ = [
    "THRESHOLDS",
    "AveragePrecision",
    "Batch",
    "Decoding",
    "Detection",
    "DetectionVideos",
    "Detections",
    "Shape",
    "Spans",
    "TrainingBatches",
    "TriDet",
    "decode",
    "detect",
    "detection_map",
    "fit_detection",
    "soft_nms",
]
