"""What was looked for in the pictures of a set: found once, and kept in the cache as JSON.

Real videos are known by their names and sizes rather than by their pixels: decoders differ in the last bit, and what is
found does not. All splits of a set have the same videos.
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
from vidveil.data.store.files import turn, unwritable
from vidveil.data.store.videos import VideoStore, cache_folder

SPLIT = re.compile(r"^(\w+):[^ ,]*")  # the set's name, and behind the colon which of its splits


def found_once(data: ClipSet, kind: str, about: list[Any], look: Callable[[], list[Any]]) -> list[Any]:
    """One entry a video, as `look` finds them, or has found them before; `about` is all that it depends on besides."""
    of = data.videos.fingerprint if has_truth(data) else SPLIT.sub(r"\1", data.name)
    sizes = [list(data.videos.frames(i).shape) for i in range(len(data))]
    key = hashlib.sha256(json.dumps([of, list(data.ids), sizes, *about]).encode()).hexdigest()[:16]
    path = cache_folder() / kind / f"{key}.json"
    with turn(path):
        with suppress(OSError, ValueError):  # not there, or damaged: then it is made
            kept = read_json(path, ANNOTATIONS_BYTES, ANNOTATION_VALUES)
            if isinstance(kept, list):
                return kept
        found = look()
        try:
            write_text(path, json.dumps(found, separators=(",", ":")))
        except OSError as error:
            raise unwritable(path.parent, error) from error
    return found


def has_truth(data: ClipSet) -> bool:
    return isinstance(data.videos, VideoStore) and "masks" in data.videos.sides
