"""Features of the videos of a set, by a frozen encoder.

    clips      all that do not overlap: frames 0 to T − 1, T to 2T − 1, …; a short video repeats its last frame
    static     single frames, evenly spaced, each shown T times: what a clip tells without any motion

Every picture is cut to the square in its middle. Nothing is augmented: features are computed once.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.data.clips import ClipSet
from vidveil.data.views import cropped, even_picks
from vidveil.encoders.encoder import Encoder
from vidveil.features.store import FeatureStore, Vectors, fill

STATIC = 4
"""Static clips a video: training draws two of them."""
BATCH = 8
"""Clips at once: always as many, so that a clip's vector depends on nothing but the clip."""
CUT = 1
"""Of this way to cut clips out of videos: another way gets another number, and makes another store."""
Progress = Callable[[int, int], None]


@contextmanager
def told(title: str, total: int) -> Iterator[Progress]:
    """A bar with the time left on stderr, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bars

    console = Console(stderr=True)
    with Bars(console=console, transient=True, disable=not console.is_terminal) as bars:
        bar = bars.add_task(title, total=total)
        yield lambda done, of: bars.update(bar, completed=done, total=of)


def extract(
    data: ClipSet,
    encoder: Encoder,
    folder: Path,
    *,
    stride: int = 1,
    static: int = STATIC,
    batch: int = BATCH,
    device: str = "cpu",
    progress: Progress | None = None,
) -> FeatureStore:
    """The store of all videos of the set; what is there of it already stays.

    Args:
        stride: every how many-th frame is one of a clip.
        progress: told how many videos are done, of how many.
    """

    def make(rows: range) -> Iterator[Mapping[str, Vectors]]:
        for row, vectors in zip(rows, _encoded(data, rows, encoder, stride, static, batch, device), strict=True):
            if progress is not None:
                progress(row + 1, len(data))
            yield vectors

    about = {"encoder": encoder.about(), **how(data, stride, static)}
    return fill(folder, about, list(data.ids), make)


def how(data: ClipSet, stride: int, static: int) -> dict[str, Any]:
    """What a store remembers beside its encoder: all that its numbers depend on."""
    return {
        "videos": data.videos.fingerprint,
        "clips": {"stride": stride, "static": static},
        "cut": CUT,
    }


def clip_picks(length: int, frames: int, stride: int) -> NDArray[np.int64]:
    """(clips, frames): which frames are in each clip of a video of that length. None overlap."""
    span = frames * stride
    starts = np.arange(0, max(length - span + stride, 1), span)
    picks: NDArray[np.int64] = np.minimum(starts[:, None] + stride * np.arange(frames), length - 1)
    return picks


def _encoded(
    data: ClipSet, rows: range, encoder: Encoder, stride: int, static: int, batch: int, device: str
) -> Iterator[dict[str, Vectors]]:
    """One entry a video. Batches reach over videos: an accelerator is not to wait for short ones."""
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
        video = torch.from_numpy(np.array(data.videos.frames(row)))  # (T, H, W, 3)
        moving = clip_picks(len(video), encoder.frames, stride)
        still = np.repeat(even_picks(len(video), 1, 1, static), encoder.frames, axis=1)[: static or 0]
        expected[row] = len(moving) + len(still)
        for kind, picks in (("clips", moving), ("static", still)):
            for pick in picks:
                view = cropped(video[torch.from_numpy(pick)][None, None], size=encoder.size, crops=1)[0, 0]
                waiting.append(view)
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
