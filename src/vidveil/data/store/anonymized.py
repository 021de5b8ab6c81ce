"""Videos after a method, in the cache: found again by other runs, and deleted by the run that made them alone."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from vidveil.core.atomic import remove_folder
from vidveil.data.clips import ClipSet
from vidveil.data.single_frames import SingleFrames
from vidveil.data.store.files import FRAMES, store_lock
from vidveil.data.store.videos import VideoStore

KEPT, SCORES, SHARE = "kept", "scores", "share"


class AnonymizedVideos(VideoStore):
    """Videos after a method. Next to each, where it hides by a mask: `kept` and `scores` (L, h, w), or `share` (1,)."""

    made: tuple[int, int] | None = None
    """What this run wrote, as identified by `created`; None if the videos were there before."""

    @property
    def masked(self) -> bool:
        return KEPT in self.sides or SHARE in self.sides

    def share_kept(self, row: int) -> float:
        """Of all tubelets of a clip."""
        return float(self.side(KEPT if KEPT in self.sides else SHARE, row).mean())

    @property
    def as_filmed(self) -> bool:
        """Whether what its mask keeps is shown as it was filmed."""
        return bool(self.about.get("as_filmed", True))

    @property
    def fingerprint(self) -> str:
        """Of the pixels alone: scores are no part of what anybody sees, and their last digits are the machine's."""
        content = {FRAMES: asdict(self._arrays[FRAMES])}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def kept_as_filmed(after: Iterable[ClipSet]) -> bool | None:
    """Whether masks that keep everything would leave these sets as they were; None where nothing is masked."""
    masked = [data.videos for data in after if isinstance(data.videos, AnonymizedVideos) and data.videos.masked]
    return all(videos.as_filmed for videos in masked) if masked else None


_until_later: list[list[AnonymizedVideos]] = []


@contextmanager
def forgotten_at_the_end() -> Iterator[None]:
    """What would be deleted meanwhile is deleted at the end: several evaluations find the same clips, one of each
    split of a set, say."""
    waiting: list[AnonymizedVideos] = []
    _until_later.append(waiting)
    try:
        yield
    finally:
        _until_later.pop()
        for videos in waiting:
            _delete(videos)


def forget(after: Iterable[ClipSet]) -> None:
    """Delete anonymized clips from the cache, if they were made for these very sets.

    What was found there is somebody else's and stays, and so does what another wrote in its place since. Whoever has
    it open can read on.
    """
    for data in after:
        videos = data.videos.whole.videos if isinstance(data.videos, SingleFrames) else data.videos
        if not isinstance(videos, AnonymizedVideos) or videos.made is None:
            continue
        if _until_later:
            _until_later[-1].append(videos)
        else:
            _delete(videos)


def _delete(videos: AnonymizedVideos) -> None:
    with store_lock(videos.folder):
        if created(videos.folder) != videos.made:
            return
        with suppress(OSError):
            remove_folder(videos.folder)


def created(folder: Path) -> tuple[int, int] | None:
    """Distinguishes a store from one that took its place; the number of a file alone may be used again."""
    try:
        found = (folder / "index.json").stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
