"""Untrimmed videos as sequences of features, with what happens in them.

    feature i of a video stands for the seconds from i · p to (i + 1) · p           p: seconds a feature

    data = drawn(features, labels, background, seed=0)          # an easy set out of features of clips
    data.through(adapter)                                       # the same videos, each feature anonymized

`drawn` puts clips of a class one after the other between background: an easy set, whose boundaries are sharp and fall
between two features. What a network cannot find here it finds nowhere.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import SPLITS, Split
from vidveil.tasks.detection.decode import Spans, Whole

Features = NDArray[np.float32]
Segment = tuple[float, float, int]
"""Seconds of its start and end, and its class."""
Range = tuple[int, int]
"""From, to, both among them."""


@dataclass(frozen=True, eq=False)
class Untrimmed:
    """A set of videos."""

    features: Sequence[Features]
    """(T_i, D) float32 of each video, in the order of time."""
    seconds: Sequence[float]
    """A feature, of each video."""
    segments: Sequence[Sequence[Segment]]
    """What happens in each; none where nothing does."""
    split: Sequence[Split]
    """Of each."""
    classes: tuple[str, ...]
    name: str = "untrimmed"

    def __post_init__(self) -> None:
        counts = {name: len(getattr(self, name)) for name in ("features", "seconds", "segments", "split")}
        if len(set(counts.values())) > 1 or not self.features or not self.classes:
            told = ", ".join(f"{count} {name}" for name, count in counts.items())
            raise DataError(f"{self.name} needs videos and classes, and one of each for every video; it has {told}")
        for row in range(len(self)):
            if wrong := self._wrong(row):
                raise DataError(f"{self.name}: video {row} {wrong}")

    def __len__(self) -> int:
        return len(self.features)

    @property
    def width(self) -> int:
        """D."""
        return int(self.features[0].shape[1])

    @property
    def fingerprint(self) -> str:
        told = hashlib.sha256(repr((self.classes, list(self.split))).encode())
        for row, features in enumerate(self.features):
            about = (features.shape, float(self.seconds[row]), [tuple(map(float, s)) for s in self.segments[row]])
            told.update(repr(about).encode())
            told.update(np.ascontiguousarray(features).tobytes())
        return told.hexdigest()

    def indices(self, split: Split) -> Whole:
        return np.flatnonzero(np.asarray(self.split) == split)

    def duration(self, row: int) -> float:
        return len(self.features[row]) * float(self.seconds[row])

    def truth(self, rows: Whole) -> Spans:
        """What happens in these videos."""
        all_ = [(row, *segment) for row in rows.tolist() for segment in self.segments[row]]
        table = np.array(all_, np.float64).reshape(-1, 4)
        return Spans(table[:, 0].astype(np.int64), table[:, 1:3], table[:, 3].astype(np.int64))

    def through(self, change: Callable[[Features], Features]) -> "Untrimmed":
        """The same videos of changed features: (T, D) → (T, D′)."""
        return replace(self, features=[np.asarray(change(features), np.float32) for features in self.features])

    def _wrong(self, row: int) -> str:
        features, seconds = self.features[row], float(self.seconds[row])
        if features.ndim != 2 or features.dtype != np.float32:
            return f"must be (T, D) of float32, it is {features.shape} of {features.dtype}"
        if 0 in features.shape:
            return "is empty: it has no features"
        if features.shape[1] != self.features[0].shape[1]:
            return f"has features of {features.shape[1]} numbers, and video 0 of {self.features[0].shape[1]}"
        if not np.isfinite(features).all():
            return "has features that are not finite"
        if not 0 < seconds < float("inf"):
            return f"has {seconds} seconds a feature"
        if self.split[row] not in SPLITS:
            return f"is of split {self.split[row]!r}, which is none of {', '.join(SPLITS)}"
        until = self.duration(row)
        for start, end, label in self.segments[row]:
            if not (0 <= start < end <= until * (1 + 1e-9)):
                return f"goes from 0 to {until:g} s, and a segment in it from {start:g} to {end:g} s"
            if label != int(label) or not 0 <= label < len(self.classes):
                return f"shows class {label}, and there are {len(self.classes)}"
        return ""


def drawn(
    features: Features,
    labels: Whole,
    background: Features,
    *,
    videos: tuple[int, int, int] = (48, 16, 16),
    events: Range = (1, 4),
    lasting: Range = (4, 24),
    between: Range = (4, 16),
    seconds: float = 1.0,
    parts: tuple[NDArray[np.str_], NDArray[np.str_]] | None = None,
    seed: int = 0,
) -> Untrimmed:
    """An easy set out of features of clips: the same for the same arguments.

    Args:
        features, labels: (n, D) of clips, (n,) their classes from 0.
        background: (m, D) of clips in which nothing happens.
        videos: of training, validation and test.
        events: how many a video has.
        lasting, between: features of an event, and of background before, between and after events.
        parts: to which split each of `features` and of `background` belongs; a video is made of its own split's, so
            that none is tested on what another trained on. None: any video of any.
    """
    _refuse(features, labels, background, parts, (events, lasting, between))
    classes = int(labels.max()) + 1
    made: list[Features] = []
    segments: list[list[Segment]] = []
    split: list[Split] = [name for name, count in zip(SPLITS, videos, strict=True) for _ in range(count)]
    for row, name in enumerate(split):
        draws = np.random.default_rng((seed, row))
        mine, others = (np.ones(len(x), bool) for x in (features, background))
        if parts is not None:
            mine, others = parts[0] == name, parts[1] == name
        idle = np.flatnonzero(others)
        can = np.unique(labels[mine])
        if not len(idle) or not len(can):
            raise DataError(f"there are no features for videos of split {name!r}")
        pieces, happened, at = [], [], 0
        for number in range(int(draws.integers(events[0], events[1] + 1)) + 1):
            if number:
                label, count = int(draws.choice(can)), int(draws.integers(lasting[0], lasting[1] + 1))
                pieces.append(features[draws.choice(np.flatnonzero(mine & (labels == label)), count)])
                happened.append((at * seconds, (at + count) * seconds, label))
                at += count
            count = int(draws.integers(between[0], between[1] + 1))
            pieces.append(background[draws.choice(idle, count)])
            at += count
        made.append(np.concatenate(pieces).astype(np.float32))
        segments.append(happened)
    names = tuple(f"class {number}" for number in range(classes))
    return Untrimmed(made, [seconds] * len(made), segments, split, names, name="drawn")


def _refuse(
    features: Features,
    labels: Whole,
    background: Features,
    parts: tuple[NDArray[np.str_], NDArray[np.str_]] | None,
    ranges: tuple[Range, ...],
) -> None:
    if features.ndim != 2 or background.ndim != 2 or features.shape[1] != background.shape[1]:
        raise UsageError(f"features and background must be as wide, got {features.shape} and {background.shape}")
    if not len(features) or not len(background) or labels.shape != features.shape[:1] or labels.min() < 0:
        raise UsageError(f"{len(features)} features need as many labels from 0 and some background")
    if parts is not None and tuple(map(len, parts)) != (len(features), len(background)):
        raise UsageError("parts must name the split of every feature and of every background feature")
    if any(low > high or low < 0 for low, high in ranges) or ranges[1][0] < 1 or ranges[2][0] < 1:
        raise UsageError(f"events, lasting and between are from, to; the last two from 1 on; got {ranges}")
