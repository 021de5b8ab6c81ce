"""One-class anomaly detection: training videos are normal throughout, test videos have a label per frame.

Methods for it read whole videos in order (`Untrimmed`, with ranges of frames as events). Code that reads clips gets
windows instead: 64 frames without overlap, so that every frame is in one of them; a rest of 32 or fewer belongs to the
window before it. A window is abnormal if any of its frames is.

Validation is every fifth training video, from the third on: it is normal, too. So training has one action only, and
`vidveil evaluate` reports no action accuracy there.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.progress import counted
from vidveil.data.clips import ClipSet, Split
from vidveil.data.store.decoded import ensure_room
from vidveil.data.store.videos import VideoStore, cache_folder
from vidveil.data.untrimmed import NORMAL, Event, Untrimmed, frame_labels

WINDOW = 64
ABNORMAL = "Abnormal"

FrameSource = Callable[[Untrimmed], NDArray[np.uint8]]
"""All frames of a video, (T, H, W, 3) RGB."""


def training_videos(paths: Mapping[str, Path], frames: Mapping[str, int] | None = None) -> list[Untrimmed]:
    """Normal videos by name: every fifth is validation, from the third on; of fewer than three the last one.

    Args:
        frames: of each video, if known without decoding.
    """
    names = list(paths)
    held_out = set(names[2::5] or names[1:])
    known = frames or {}

    def split(name: str) -> Split:
        return "val" if name in held_out else "train"

    return [Untrimmed(name, path, split(name), NORMAL, (), "frames", known.get(name)) for name, path in paths.items()]


def test_video(name: str, path: Path, labels: NDArray[Any]) -> Untrimmed:
    """A video with its labels (T,), 0 for normal frames."""
    around = np.concatenate([[0], labels != 0, [0]])
    edges = np.flatnonzero(np.diff(around))  # starts and one past the ends, alternating, from 0
    events = tuple(Event(int(start) + 1, int(end), ABNORMAL) for start, end in edges.reshape(-1, 2))
    return Untrimmed(name, path, "test", ABNORMAL if events else NORMAL, events, "frames", len(labels))


def windows(length: int) -> list[tuple[int, int]]:
    """First frames, and one past the last ones."""
    starts = range(0, max(length - WINDOW // 2, 1), WINDOW)
    return [*zip(starts, [*starts[1:], length], strict=True)]


def window_set(
    name: str, videos: Sequence[Untrimmed], read_frames: FrameSource, about: Mapping[str, Any], expected_bytes: int
) -> ClipSet:
    """One row per window; its tags are its first frame, counted from 0, and the number of its abnormal frames.

    Args:
        about: what the pixels depend on, such as the sizes of files; the key of the cache.
        expected_bytes: approximate size of the pixels; an error at once if there is no room for them.
    """
    known = {"data": name, "window": WINDOW, "videos": [video.name for video in videos], **about}
    key = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:12]

    def make() -> Iterator[tuple[NDArray[np.uint8], Mapping[str, NDArray[np.int64]]]]:
        ensure_room(expected_bytes)
        for i, video in counted(enumerate(videos), f"decoding {name}", len(videos), "videos"):
            frames = read_frames(video)
            for start, stop in windows(len(frames)):
                yield frames[start:stop], {"window": np.array([i, start, stop], np.int64)}

    store = VideoStore.cached(cache_folder() / f"{name.replace(':', '_')}-{key}", known, make)
    window = store.side_stack("window")  # (N, 3): video, start, stop
    labels = [_labels(name, video, int(window[window[:, 0] == i, 2].max())) for i, video in enumerate(videos)]
    abnormal = np.array([labels[i][start:stop].sum() for i, start, stop in window], np.int64)
    of = [videos[i] for i in window[:, 0]]
    return ClipSet(
        name=name,
        videos=store,
        ids=[f"{videos[i].name}#frames={start}-{stop - 1}" for i, start, stop in window],
        split=np.array([video.split for video in of], dtype="<U5"),
        group=np.array([video.name for video in of]),
        action=(abnormal > 0).astype(np.int64),
        actions=(NORMAL, ABNORMAL),
        tags={"start": np.array(window[:, 1], np.int64), "abnormal": abnormal},
    )


def _labels(name: str, video: Untrimmed, frames: int) -> NDArray[np.uint8]:
    """(T,) of a video with this number of frames. A surplus or missing label would shift all later ones."""
    if video.frames is not None and video.frames != frames:
        raise DataError(
            f"{name}: {video.name} has {frames} frames and {video.frames} labels: one of them is of another copy of "
            "the set; if only the decoder counts differently, set VIDVEIL_DECODER to av or opencv"
        )
    return frame_labels(video, frames)


def files_hash(paths: Sequence[Path]) -> str:
    """sha256 of the names and sizes of files."""
    return hashlib.sha256(json.dumps([[path.name, path.stat().st_size] for path in paths]).encode()).hexdigest()
