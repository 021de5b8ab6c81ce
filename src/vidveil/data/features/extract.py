"""Features of the videos of a set, by a frozen encoder.

    clips      all that do not overlap: frames 0 to T − 1, T to 2T − 1, …; a short video repeats its last frame
    hop h      or one every h frames, around the middle of frames i h to (i + 1) h − 1: what a long video shows then;
               at both ends the first and the last frame are repeated
    static     single frames, evenly spaced, each shown T times: what a clip shows without any motion

Videos that lie in files (`data.whole`) are read frame by frame: a day of a camera fits in no memory.

Every picture is cut to the square in its middle. Nothing is augmented: features are computed once.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.progress import phase
from vidveil.data.clips import ClipSet, Videos
from vidveil.data.store.features import FeatureStore, Vectors, fill
from vidveil.data.video_files import FrameStreams
from vidveil.data.views import cropped, even_picks
from vidveil.models.encoders.encoder import Encoder

STATIC = 4
"""Static clips a video: training draws two of them."""
BATCH = 8
"""Clips at once: always as many, so that a clip's vector depends on nothing but the clip."""
CUT = 1
"""Of this way to cut clips out of videos: another way gets another number, and makes another store."""
Progress = Callable[[int, int], None]
_Clip = tuple[str, Tensor]
"""Of which kind, and (T, H, W, 3)."""


@contextmanager
def progress_of(title: str, total: int, unit: str = "videos") -> Iterator[Progress]:
    """What is done of a total is reported."""
    with phase(title, total, unit) as one:

        def progress(done: int, of: int) -> None:
            one.done, one.total = done, of

        yield progress


def extract(
    data: ClipSet,
    encoder: Encoder,
    folder: Path,
    *,
    stride: int = 1,
    static: int = STATIC,
    hop: int = 0,
    batch: int = BATCH,
    device: str = "cpu",
    progress: Progress | None = None,
) -> FeatureStore:
    """The store of all videos of the set; what is there of it already stays.

    Args:
        stride: every how many-th frame is one of a clip.
        hop: frames from one clip to the next, of videos in which things happen; 0: clips that do not overlap.
        progress: called with how many videos are done, of how many.
    """

    def make(rows: range) -> Iterator[Mapping[str, Vectors]]:
        for row, vectors in zip(rows, _encoded(data, rows, encoder, stride, static, hop, batch, device), strict=True):
            if progress is not None:
                progress(row + 1, len(data))
            yield vectors

    about = {"encoder": encoder.about(), **how(data, stride, static, hop)}
    return fill(folder, about, list(data.ids), make)


def how(data: ClipSet, stride: int, static: int, hop: int = 0) -> dict[str, Any]:
    """What a store records besides its encoder: all that its numbers depend on."""
    return {
        "videos": data.videos.fingerprint,
        "clips": {"stride": stride, "static": static, **({"hop": hop} if hop else {})},
        "cut": CUT,
    }


def clip_picks(length: int, frames: int, stride: int, hop: int = 0) -> NDArray[np.int64]:
    """(clips, frames): which frames are in each clip of a video of that length. None overlap, unless there is a hop."""
    span = frames * stride
    if hop:
        starts = np.arange(0, max(length, 1), hop) + (hop - span + stride - 1) // 2
    else:
        starts = np.arange(0, max(length - span + stride, 1), span)
    picks: NDArray[np.int64] = np.clip(starts[:, None] + stride * np.arange(frames), 0, length - 1)
    return picks


def _shown(
    videos: Videos, row: int, encoder: Encoder, stride: int, static: int, hop: int
) -> tuple[int, Iterator[_Clip]]:
    """How many clips a video has, and each: static or not, and its frames (T, H, W, 3)."""
    length = videos.length(row) if isinstance(videos, FrameStreams) else len(frames := videos.frames(row))
    moving = clip_picks(length, encoder.frames, stride, hop)
    still = np.repeat(even_picks(length, 1, 1, static), encoder.frames, axis=1)[: static or 0]
    wanted = [("clips", pick) for pick in moving] + [("static", pick) for pick in still]
    if isinstance(videos, FrameStreams):
        return len(wanted), _while_read(videos, row, wanted)
    video = torch.from_numpy(np.array(frames))  # (T, H, W, 3)
    return len(wanted), ((kind, video[torch.from_numpy(pick)]) for kind, pick in wanted)


def _while_read(videos: FrameStreams, row: int, wanted: Sequence[tuple[str, NDArray[np.int64]]]) -> Iterator[_Clip]:
    """Clips as soon as their last frame is there; frames are kept for as long as one waits for them.

    The header of a file may count more frames than there are: then the last one stands for those that are missing.
    """
    waiting = deque(sorted(wanted, key=lambda one: (one[1].max(), one[0])))
    first = np.minimum.accumulate([pick.min() for _, pick in waiting][::-1])[::-1].tolist()  # that is still asked for
    kept: dict[int, Tensor] = {}
    last, done = -1, 0
    for last, picture in enumerate(videos.pictures(row)):
        kept[last] = torch.from_numpy(picture)
        while waiting and waiting[0][1].max() <= last:
            kind, pick = waiting.popleft()
            yield kind, torch.stack([kept[int(i)] for i in pick])
            done += 1
        for gone in [i for i in kept if waiting and i < first[done] and i != last]:
            del kept[gone]
        if not waiting:
            return
    for kind, pick in waiting:
        yield kind, torch.stack([kept[min(int(i), last)] for i in pick])


def _encoded(
    data: ClipSet, rows: range, encoder: Encoder, stride: int, static: int, hop: int, batch: int, device: str
) -> Iterator[dict[str, Vectors]]:
    """One entry per video. Batches reach over videos: an accelerator is not to wait for short ones."""
    waiting: list[Tensor] = []
    owners: list[tuple[int, str]] = []
    found: dict[int, dict[str, list[Vectors]]] = {}
    expected: dict[int, int] = {}
    at = rows.start

    def flush() -> None:
        clips = torch.stack(waiting)
        missing = batch - len(clips)
        padded = torch.cat([clips, clips[:1].expand(missing, *clips.shape[1:])]) if missing > 0 else clips
        vectors = encoder.encode(padded.to(device))[: len(clips)].cpu().numpy()
        for (row, kind), vector in zip(owners, vectors, strict=True):
            found[row][kind].append(vector)
        waiting.clear()
        owners.clear()

    def whole() -> bool:
        return at in expected and sum(map(len, found[at].values())) == expected[at]

    for row in rows:
        found[row] = {"clips": [], "static": []}
        expected[row], clips = _shown(data.videos, row, encoder, stride, static, hop)
        for kind, clip in clips:
            waiting.append(cropped(clip[None, None], size=encoder.size, crops=1)[0, 0])
            owners.append((row, kind))
            if len(waiting) == batch:
                flush()
        while whole():
            yield _stacked(found.pop(at), encoder.width)
            at += 1
    if waiting:
        flush()
    while whole():
        yield _stacked(found.pop(at), encoder.width)
        at += 1


def _stacked(vectors: Mapping[str, list[Vectors]], width: int) -> dict[str, Vectors]:
    return {kind: np.stack(these) if these else np.zeros((0, width), np.float32) for kind, these in vectors.items()}
