"""Untrimmed videos made of features: ordinary ones, and ones in which for a while something else goes on.

    normal, abnormal = kinds_of_noise(width=16, seed=0)          # or rows of any store
    data = untrimmed_set(normal, abnormal, seed=0)               # Watched, half of it abnormal

    video     clips drawn from `normal`, 20 to 90 of them
    abnormal  for a tenth to two fifths of its length, in a row, they are drawn from `abnormal` instead

Rows of both arrays are dealt to training, validation and test first: no feature is seen in two of them. Everything is a
function of the arrays and the seed. It is an easy set: whoever fails here has a mistake, and who does well has shown no
more than that.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import SPLITS
from vidveil.tasks.anomaly.watched import Watched

SHARES = (0.6, 0.15, 0.25)
"""Of videos and of features: train, val, test."""
CLIPS = (20, 90)
"""The fewest and the most of a video."""
LASTS = (0.1, 0.4)
"""Of a video, the shortest and the longest that something abnormal goes on."""
FRAMES = 16
"""Of a clip."""
_NORMAL, _ABNORMAL, _VIDEO, _KINDS = 1, 2, 3, 4  # streams of chance

Features = NDArray[np.float32]


def untrimmed_set(normal: ArrayLike, abnormal: ArrayLike, *, videos: int = 80, seed: int = 0) -> Watched:
    """Args:
    normal, abnormal: (n, D) and (m, D), features of clips.
    videos: in all, half of them with something abnormal.
    """
    ordinary, other = _features(normal, "normal"), _features(abnormal, "abnormal")
    if ordinary.shape[1] != other.shape[1]:
        raise DataError(f"normal features have {ordinary.shape[1]} numbers, abnormal ones {other.shape[1]}")
    if videos < 20:
        raise UsageError(f"{videos} videos are too few to have both kinds in each split: 20 or more")
    dealt = [_deal(ordinary, (seed, _NORMAL)), _deal(other, (seed, _ABNORMAL))]
    label = np.arange(videos, dtype=np.int64) % 2
    ends = np.round(np.cumsum(SHARES) * (videos // 2)).astype(np.int64)
    part = np.searchsorted(ends, np.arange(videos) // 2, side="right").clip(max=len(SPLITS) - 1)  # of each kind alike
    made = [
        _video(dealt[0][part[number]], dealt[1][part[number]], bool(label[number]), (seed, _VIDEO, number))
        for number in range(videos)
    ]
    return Watched(
        name=f"untrimmed, seed {seed}",
        features=tuple(clips for clips, _ in made),
        label=label,
        split=np.array(SPLITS)[part],
        frames=tuple(frames for _, frames in made),
    )


def kinds_of_noise(
    *, width: int = 16, kinds: int = 6, each: int = 200, apart: float = 3.0, seed: int = 0
) -> tuple[Features, Features]:
    """Clouds of noise around centres of one length: (kinds · each, D) of normal ones, (each, D) of one more."""
    rng = np.random.default_rng((seed, _KINDS))
    centres = rng.normal(size=(kinds + 1, width))
    centres *= apart / np.linalg.norm(centres, axis=1, keepdims=True)
    clouds = centres[:, None] + rng.normal(size=(kinds + 1, each, width)) * (apart / 6)
    return clouds[:-1].reshape(-1, width).astype(np.float32), clouds[-1].astype(np.float32)


def _features(given: ArrayLike, kind: str) -> Features:
    made = np.asarray(given, np.float32)
    if made.ndim != 2 or len(made) < len(SPLITS) or not np.isfinite(made).all():
        raise DataError(f"{kind} features are (n, D), finite, and {len(SPLITS)} or more, got {made.shape}")
    return made


def _deal(rows: Features, seed: tuple[int, ...]) -> list[Features]:
    """To train, val and test, at least one each."""
    order = np.random.default_rng(seed).permutation(len(rows))
    val, test = (max(1, round(share * len(rows))) for share in SHARES[1:])
    return [rows[own] for own in np.split(order, [len(rows) - val - test, len(rows) - test])]


def _video(
    normal: Features, abnormal: Features, happens: bool, seed: tuple[int, ...]
) -> tuple[Features, NDArray[np.uint8]]:
    """(n, D), and (16 n,) frames."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(CLIPS[0], CLIPS[1] + 1))
    clips = normal[rng.integers(len(normal), size=count)]
    seen = np.zeros(count, np.uint8)
    if happens:
        lasts = max(1, round(float(rng.uniform(*LASTS)) * count))
        first = int(rng.integers(count - lasts + 1))
        clips[first : first + lasts] = abnormal[rng.integers(len(abnormal), size=lasts)]
        seen[first : first + lasts] = 1
    return clips, np.repeat(seen, FRAMES)
