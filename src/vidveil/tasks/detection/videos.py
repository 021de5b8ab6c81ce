"""Untrimmed videos as sequences of features, with the actions in them.

Feature i of a video covers the seconds from i · p to (i + 1) · p, where p is the number of seconds per feature.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.clips import SPLITS, Split
from vidveil.tasks.detection.decode import Integers, Spans

Features = NDArray[np.float32]
Segment = tuple[float, float, int]
"""Seconds of its start and end, and its class."""


@dataclass(frozen=True, eq=False)
class DetectionVideos:
    """A set of untrimmed videos."""

    features: Sequence[Features]
    """(T_i, D) float32 of each video, in the order of time."""
    seconds: Sequence[float]
    """Seconds per feature, of each video."""
    segments: Sequence[Sequence[Segment]]
    """The actions in each video."""
    split: Sequence[Split]
    """Of each video."""
    classes: tuple[str, ...]
    name: str = "untrimmed"

    def __post_init__(self) -> None:
        counts = {name: len(getattr(self, name)) for name in ("features", "seconds", "segments", "split")}
        if len(set(counts.values())) > 1 or not self.features or not self.classes:
            listed = ", ".join(f"{count} {name}" for name, count in counts.items())
            raise DataError(f"{self.name} needs videos and classes, and one of each for every video; it has {listed}")
        for row in range(len(self)):
            if problem := self._problem(row):
                raise DataError(f"{self.name}: video {row} {problem}")

    def __len__(self) -> int:
        return len(self.features)

    @property
    def width(self) -> int:
        """D."""
        return int(self.features[0].shape[1])

    @property
    def fingerprint(self) -> str:
        digest = hashlib.sha256(repr((self.classes, list(self.split))).encode())
        for row, features in enumerate(self.features):
            about = (features.shape, float(self.seconds[row]), [tuple(map(float, s)) for s in self.segments[row]])
            digest.update(repr(about).encode())
            digest.update(np.ascontiguousarray(features).tobytes())
        return digest.hexdigest()

    def indices(self, split: Split) -> Integers:
        return np.flatnonzero(np.asarray(self.split) == split)

    def duration(self, row: int) -> float:
        return len(self.features[row]) * float(self.seconds[row])

    def truth(self, rows: Integers) -> Spans:
        """The actions in these videos."""
        all_ = [(row, *segment) for row in rows.tolist() for segment in self.segments[row]]
        table = np.array(all_, np.float64).reshape(-1, 4)
        return Spans(table[:, 0].astype(np.int64), table[:, 1:3], table[:, 3].astype(np.int64))

    def with_features(self, change: Callable[[Features], Features]) -> "DetectionVideos":
        """The same videos with changed features: (T, D) → (T, D′)."""
        return replace(self, features=[np.asarray(change(features), np.float32) for features in self.features])

    def _problem(self, row: int) -> str:
        """What is wrong with a video, or ""."""
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
