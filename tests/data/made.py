"""Small sets of clips made for tests."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet, Videos
from vidveil.data.store.videos import VideoStore


def noise(*shapes: tuple[int, int, int], seed: int = 0) -> list[NDArray[np.uint8]]:
    """A video of noise for each (T, H, W)."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (*shape, 3), dtype=np.uint8) for shape in shapes]


def numbered(frames: int, size: int, videos: int) -> list[NDArray[np.uint8]]:
    """Frame t of video i is a flat 16 * i + t: a view shows which frames it took of which video."""
    return [
        np.repeat(16 * i + np.arange(frames, dtype=np.uint8), size * size * 3).reshape(frames, size, size, 3)
        for i in range(videos)
    ]


class InMemory:
    """`Videos` that lie in no file."""

    fingerprint = "made"

    def __init__(self, videos: Sequence[NDArray[np.uint8]]) -> None:
        self.videos = videos
        for video in videos:
            video.flags.writeable = False

    def __len__(self) -> int:
        return len(self.videos)

    def frames(self, i: int) -> NDArray[np.uint8]:
        return self.videos[i]

    def digest(self, i: int) -> str:
        return str(i)


def clip_set(videos: Videos) -> ClipSet:
    n = len(videos)
    return ClipSet(
        name="made",
        videos=videos,
        ids=[f"clip {i}" for i in range(n)],
        split=np.full(n, "train"),
        group=np.array([f"group {i}" for i in range(n)]),
        action=np.zeros(n, np.int64),
        actions=("none",),
        person=np.arange(n),
    )


def stored(folder: Path, videos: Sequence[NDArray[np.uint8]]) -> ClipSet:
    return clip_set(VideoStore.write(folder, iter(videos), {}))
