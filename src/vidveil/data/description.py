"""The description of a dataset in results and checkpoints."""

import hashlib
import json
from typing import Any, Literal

import numpy as np

from vidveil.data.clips import SPLITS, ClipSet

UtilityMetric = Literal["action_top1", "action_cmap"]
UTILITY_METRICS: tuple[UtilityMetric, ...] = ("action_top1", "action_cmap")
"""Accuracy for clips of one action each, cMAP for clips of several. A set has one of them."""


def utility_metric(data: ClipSet) -> UtilityMetric:
    """The name of the metric of utility on this set."""
    return "action_top1" if data.action_labels is None else "action_cmap"


def data_description(data: ClipSet) -> dict[str, Any]:
    """Which clips these are. Two results are of the same data if their descriptions are equal."""
    rows = {split: data.indices(split) for split in SPLITS}
    return {
        "name": data.name,
        "fingerprint": data.videos.fingerprint,
        "labels": labels_fingerprint(data),
        "clips": {split: len(which) for split, which in rows.items()},
        "people": {split: len(np.unique(data.person[which][data.person[which] >= 0])) for split, which in rows.items()},
        "actions": list(data.actions),
        "attributes": list(data.attribute_names),
        "gallery": data.gallery,
        **({"left_out": len(data.left_out)} if data.left_out else {}),
        **({"here": list(data.here)} if data.here else {}),
    }


def labels_fingerprint(data: ClipSet) -> str:
    """sha256 of the ids and all labels of the test clips, and of the gallery for linkage."""
    rows = data.indices("test")
    columns: list[Any] = [data.action, data.person, data.attributes, *(data.tags[name] for name in sorted(data.tags))]
    labels = [[data.ids[i] for i in rows], data.gallery, *(column[rows].tolist() for column in columns)]
    if data.action_labels is not None:
        labels.append(hashlib.sha256(data.action_labels[rows].tobytes()).hexdigest())
    return hashlib.sha256(json.dumps(labels).encode()).hexdigest()
