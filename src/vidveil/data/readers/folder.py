"""A folder of videos without labels: features can be extracted from it, but nothing can be trained on it."""

from pathlib import Path

import numpy as np

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.data.store.decoded import decoded
from vidveil.video.sources import VIDEO_SUFFIXES


def videos_in(folder: Path, *, size: int) -> ClipSet:
    """All videos in it, however deep, by their names there.

    Args:
        size: of the views; pictures are decoded with a short side of at most that.
    """
    found = [path for path in sorted(folder.rglob("*")) if path.suffix.lower() in VIDEO_SUFFIXES and path.is_file()]
    ids = [path.relative_to(folder).as_posix() for path in found if not path.name.startswith(".")]
    if not ids:
        raise DataError(f"there are no videos in {folder}")
    return ClipSet(
        name=folder.resolve().name,
        videos=decoded("folder", folder, ids, short_side=size),
        ids=ids,
        split=np.full(len(ids), "train"),
        group=np.array(ids),
        action=np.full(len(ids), -1),
        actions=(),
    )
