"""Any number of clips of a video → the network's number of segments, and scores of segments back to frames.

    segment i of T averages the clips  ⌊i n / T⌋ … max(⌊(i + 1) n / T⌋, ⌊i n / T⌋ + 1) − 1        of n

With n ≥ T every clip is in exactly one segment, and spans differ by one clip at most. With fewer clips than segments
each segment is one clip, and clips are repeated in order.

Back: the score of a clip is the mean over the segments that contain it. Frame f of F belongs to clip ⌊f n / F⌋: clips
are assumed to share the frames of their video evenly.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from vidveil.core.errors import DataError, UsageError

SEGMENTS = 32


def spans(clips: int, segments: int = SEGMENTS) -> NDArray[np.int64]:
    """(T, 2) the first clip of each segment, and the one after its last."""
    if clips < 1:
        raise DataError("a video without clips has no segments")
    if segments < 1:
        raise UsageError(f"a video has 1 segment or more, not {segments}")
    edges = np.arange(segments + 1, dtype=np.int64) * clips // segments
    return np.stack([edges[:-1], np.maximum(edges[1:], edges[:-1] + 1)], axis=1)


def belongs(clips: int, segments: int = SEGMENTS) -> NDArray[np.bool_]:
    """(T, n) whether a segment contains a clip."""
    first, end = spans(clips, segments).T[:, :, None]
    number = np.arange(clips)
    return np.asarray((first <= number) & (number < end))


def into_segments(clips: Tensor, segments: int = SEGMENTS) -> Tensor:
    """(n, D) of one video → (T, D). Gradients reach every clip."""
    if clips.ndim != 2:
        raise UsageError(f"clips of a video are (n, D), got {tuple(clips.shape)}")
    within = belongs(len(clips), segments)
    shares = torch.from_numpy(within / within.sum(axis=1, keepdims=True)).to(clips)
    return shares @ clips


def all_into_segments(clips: Tensor, counts: Sequence[int], segments: int = SEGMENTS) -> Tensor:
    """(n, D) of several videos, one after the other, `counts` clips of each → (V, T, D)."""
    if sum(counts) != len(clips):
        raise UsageError(f"{sum(counts)} clips are counted, but there are {len(clips)}")
    return torch.stack([into_segments(own, segments) for own in torch.split(clips, list(counts))])


def to_clips(scores: ArrayLike, clips: int) -> NDArray[np.float64]:
    """(T,) scores of segments → (n,) of clips."""
    of_segments = np.asarray(scores, np.float64)
    if of_segments.ndim != 1:
        raise UsageError(f"scores of the segments of one video are (T,), got {of_segments.shape}")
    within = belongs(clips, len(of_segments))
    of_clips: NDArray[np.float64] = (of_segments @ within) / within.sum(axis=0)
    return of_clips


def to_frames(scores: ArrayLike, clips: int, frames: int) -> NDArray[np.float64]:
    """(T,) scores of segments → (F,) of the frames of a video that has `clips` clips."""
    if frames < 1:
        raise DataError("a video without frames has no scores of them")
    return to_clips(scores, clips)[np.arange(frames, dtype=np.int64) * clips // frames]
