"""Clips that cannot be decoded are left out of their set, and somebody is told.

A set without them is another set: its fingerprint differs, and the results say how many are missing. It is refused
where it would not measure what the whole one does: where a split is gone, or an action that was to be learned or
tested. Nor are many tolerated (`decoded.TOLERATED`), and none at all if `strict`.
"""

import numpy as np

from vidveil.core.errors import DataError
from vidveil.core.progress import say
from vidveil.data.clips import SPLITS, ClipSet
from vidveil.data.store.decoded import NAMED, name_failed
from vidveil.data.store.videos import VideoStore


def without_failed(clips: ClipSet, *, strict: bool = False) -> ClipSet:
    """The same set without the rows of videos that its store has none of."""
    videos = clips.videos
    if strict and clips.left_out:  # by a reader that could not keep their rows
        named = ", ".join(clips.left_out[:NAMED])
        raise DataError(
            f"{clips.name}: {len(clips.left_out):,} videos cannot be decoded, and --strict allows none: {named}"
        )
    if not isinstance(videos, VideoStore) or not videos.failed:
        return clips
    told = f"{clips.name}: {len(videos.failed):,} of {len(clips):,} videos cannot be decoded"
    named = name_failed({clips.ids[row]: failed for row, failed in sorted(videos.failed.items())})
    if strict:
        raise DataError(f"{told}, and --strict allows none: {named}; fetch them again")
    if gap := _gap(clips, list(videos.failed)):
        raise DataError(f"{told}, and {gap}: {named}; fetch them again")
    say(f"{told} and {'are' if len(videos.failed) > 1 else 'is'} left out: {named}")
    return clips.without(videos.failed, videos.without_failed())


def _gap(clips: ClipSet, gone: list[int]) -> str:
    """What the set lacks altogether without these rows."""
    kept = np.ones(len(clips), bool)
    kept[gone] = False
    for split in SPLITS:
        here = clips.split == split
        if here.any() and not (here & kept).any():
            return f"none is left in {split}"
        if split == "val":  # a class that happens to be absent from validation spoils no number
            continue
        lost = set(clips.action[here].tolist()) - set(clips.action[here & kept].tolist())
        if lost:  # of several actions at once hundreds are rare: numbers tell over how many of them they are
            return f"none of {clips.actions[min(lost)]} is left in {split}"
    return ""
