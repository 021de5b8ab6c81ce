"""Detections in the videos of a set, computed once and kept in the cache as JSON.

Real videos are identified by their names and sizes rather than by their pixels: decoders differ in the last bit, and
detections do not. All splits of a set have the same videos, so they share one entry.
"""

import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from vidveil.core.atomic import write_text
from vidveil.core.bounded import ANNOTATION_VALUES, ANNOTATIONS_BYTES, read_json
from vidveil.data.clips import ClipSet
from vidveil.data.store.files import store_lock, unwritable
from vidveil.data.store.videos import VideoStore, cache_folder

SPLIT = re.compile(r"^(\w+):[^ ,]*")  # the set's name and, after the colon, one of its splits


def cached_detections(data: ClipSet, kind: str, settings: list[Any], detect: Callable[[], list[Any]]) -> list[Any]:
    """One entry per video: from the cache, else as `detect` returns them.

    Args:
        kind: of detections; a folder in the cache.
        settings: everything besides the videos that the result depends on.
    """
    videos = data.videos.fingerprint if has_ground_truth(data) else SPLIT.sub(r"\1", data.name)
    sizes = [list(data.videos.frames(i).shape) for i in range(len(data))]
    key = hashlib.sha256(json.dumps([videos, list(data.ids), sizes, *settings]).encode()).hexdigest()[:16]
    path = cache_folder() / kind / f"{key}.json"
    with store_lock(path):
        with suppress(OSError, ValueError):  # missing or damaged: computed below
            kept = read_json(path, ANNOTATIONS_BYTES, ANNOTATION_VALUES)
            if isinstance(kept, list):
                return kept
        found = detect()
        try:
            write_text(path, json.dumps(found, separators=(",", ":")))
        except OSError as error:
            raise unwritable(path.parent, error) from error
    return found


def has_ground_truth(data: ClipSet) -> bool:
    return isinstance(data.videos, VideoStore) and "masks" in data.videos.sides
