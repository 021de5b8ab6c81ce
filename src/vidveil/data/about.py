"""What results and checkpoints say of the data that they were made with."""

import hashlib
import json
from typing import Any, Literal

import numpy as np

from vidveil.data.clips import SPLITS, ClipSet

Use = Literal["action_top1", "action_cmap"]
USES: tuple[Use, ...] = ("action_top1", "action_cmap")
"""What is measured of the action: of one a clip, of several at once. A set has one of them."""


def use_of(data: ClipSet) -> Use:
    """What the score of the action is called: of one a clip, of several at once."""
    return "action_top1" if data.action_labels is None else "action_cmap"


def about_data(data: ClipSet) -> dict[str, Any]:
    """Which clips, so that two results can be told to be about the same."""
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
    """sha256 over which clips are tested, who and what is in them, and who may be looked for among whom."""
    rows = data.indices("test")
    columns: list[Any] = [data.action, data.person, data.attributes, *(data.tags[name] for name in sorted(data.tags))]
    told = [[data.ids[i] for i in rows], data.gallery, *(column[rows].tolist() for column in columns)]
    if data.action_labels is not None:
        told.append(hashlib.sha256(data.action_labels[rows].tobytes()).hexdigest())
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()
