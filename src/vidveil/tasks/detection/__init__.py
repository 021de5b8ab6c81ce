"""Temporal action detection: TriDet on features, its targets, losses, decoding and mAP."""

from vidveil.tasks.detection.decode import Decoding, Detections, Spans, decode, soft_nms
from vidveil.tasks.detection.metric import THRESHOLDS, AveragePrecision, detection_map
from vidveil.tasks.detection.network import Shape, TriDet
from vidveil.tasks.detection.task import Batch, Detection, Draws, adapted, detected, fit_detection
from vidveil.tasks.detection.untrimmed import Untrimmed, drawn

__all__ = [
    "THRESHOLDS",
    "AveragePrecision",
    "Batch",
    "Decoding",
    "Detection",
    "Detections",
    "Draws",
    "Shape",
    "Spans",
    "TriDet",
    "Untrimmed",
    "adapted",
    "decode",
    "detected",
    "detection_map",
    "drawn",
    "fit_detection",
    "soft_nms",
]
