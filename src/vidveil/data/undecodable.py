"""Clips that cannot be decoded are left out of their set, with a line on stderr.

The remaining set has another fingerprint, and results report the number of missing clips. It is an error if a whole
split is gone, or an action of training or test, if too many clips are missing (`decoded.TOLERATED`), and if any is with
`strict`.
"""

import numpy as np

from vidveil.core.errors import DataError
from vidveil.core.progress import say
from vidveil.data.clips import SPLITS, ClipSet
from vidveil.data.store.decoded import NAMED, name_failed
from vidveil.data.store.videos import VideoStore


def without_failed(clips: ClipSet, *, strict: bool = False) -> ClipSet:
    """The same set without the rows whose videos could not be decoded."""
    videos = clips.videos
    if strict and clips.left_out:  # by a reader that dropped their rows
        named = ", ".join(clips.left_out[:NAMED])
        raise DataError(
            f"{clips.name}: {len(clips.left_out):,} videos cannot be decoded, and --strict allows none: {named}"
        )
    if not isinstance(videos, VideoStore) or not videos.failed:
        return clips
    count = f"{clips.name}: {len(videos.failed):,} of {len(clips):,} videos cannot be decoded"
    named = name_failed({clips.ids[row]: failed for row, failed in sorted(videos.failed.items())})
    if strict:
        raise DataError(f"{count}, and --strict allows none: {named}; fetch them again")
    if gap := _gap(clips, list(videos.failed)):
        raise DataError(f"{count}, and {gap}: {named}; fetch them again")
    say(f"{count} and {'are' if len(videos.failed) > 1 else 'is'} left out: {named}")
    return clips.without(videos.failed, videos.without_failed())


def _gap(clips: ClipSet, dropped: list[int]) -> str:
    """A split or an action that has no clip left without these rows."""
    kept = np.ones(len(clips), bool)
    kept[dropped] = False
    for split in SPLITS:
        here = clips.split == split
        if here.any() and not (here & kept).any():
            return f"none is left in {split}"
        if split == "val":  # a class may be absent from validation
            continue
        lost = set(clips.action[here].tolist()) - set(clips.action[here & kept].tolist())
        if lost:  # never with several actions at once, where rare ones may be lost: `action` is -1 for all
            return f"none of {clips.actions[min(lost)]} is left in {split}"
    return ""
