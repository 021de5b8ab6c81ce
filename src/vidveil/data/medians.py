"""Only what stands still: every video becomes one picture, the temporal median of all of its frames.

Whoever moves is gone, and the place remains. Who stands still remains, too: a median cannot know.
"""

import hashlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from vidveil.core.progress import counted
from vidveil.data.clips import ClipSet
from vidveil.data.store.videos import VideoStore, cache_folder


def medians(data: ClipSet) -> ClipSet:
    """The same clips, each a video of one frame; views of it repeat that frame."""
    about = {"medians of": data.videos.fingerprint}
    key = hashlib.sha256(data.videos.fingerprint.encode()).hexdigest()[:16]

    def made() -> Iterator[NDArray[np.uint8]]:
        for i in counted(range(len(data)), f"medians of {data.name}", len(data), "videos"):
            frames = data.videos.frames(i)
            yield np.partition(frames, (len(frames) - 1) // 2, axis=0)[(len(frames) - 1) // 2][None]  # (1, H, W, 3)

    return data.with_videos(VideoStore.cached(cache_folder() / "medians" / key, about, made), f"{data.name}, medians")
