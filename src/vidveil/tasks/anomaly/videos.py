"""Features of untrimmed videos, whether something abnormal happens in each, and batches of them.

    data = AnomalyVideos("ours", features, label, split)                # (n_i, D) float32 per video; 0 or 1; split
    for rows in BalancedBatches(data, batch=32, seed=0).epoch(0): ...    # as many normal videos as abnormal ones

Batches depend on (seed, epoch) alone, so that a resumed training sees the same ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import SPLITS, Split
from vidveil.data.views import ORDER


@dataclass(frozen=True, eq=False)
class AnomalyVideos:
    """Features of untrimmed videos, and whether something abnormal happens in them."""

    name: str
    features: tuple[NDArray[np.float32], ...]
    """(n_i, D) per video: its clips in order."""
    label: NDArray[np.int64]
    """(V,) 1 where something abnormal happens, 0 where nothing does."""
    split: NDArray[np.str_]
    """(V,) train, val or test."""
    frames: tuple[NDArray[np.uint8] | None, ...] | None = None
    """(F_i,) per video, 1 where it happens; None where that is not labelled, or the number of frames is unknown."""

    def __post_init__(self) -> None:
        videos, frames = len(self.features), self.frames or (None,) * len(self.features)
        if not videos:
            raise DataError(f"{self.name} has no videos")
        if not len(self.label) == len(self.split) == len(frames) == videos:
            raise DataError(f"{self.name} has {videos} videos, but labels, splits or frames of another number")
        if not np.isin(self.label, (0, 1)).all() or not np.isin(self.split, SPLITS).all():
            raise DataError(f"{self.name}: labels are 0 or 1, splits {', '.join(SPLITS)}")
        for number, (own, label, of_frames) in enumerate(zip(self.features, self.label, frames, strict=True)):
            where = f"{self.name}: video {number}"
            if own.ndim != 2 or not len(own):
                raise DataError(f"{where} has no clips: features are (n, D), got {own.shape}")
            if own.shape[1] != self.width:
                raise DataError(f"{where} has features of {own.shape[1]} numbers, the first video {self.width}")
            if own.dtype != np.float32 or not np.isfinite(own).all():
                raise DataError(f"{where} has features that are not float32 and finite")
            if of_frames is None:
                continue
            if not of_frames.size or not np.isin(of_frames, (0, 1)).all() or of_frames.any() != bool(label):
                raise DataError(f"{where} is labelled {label}, and its labels of frames do not agree with that")

    @property
    def width(self) -> int:
        return int(self.features[0].shape[1])

    def indices(self, split: Split) -> NDArray[np.int64]:
        return np.flatnonzero(self.split == split)

    def of(self, split: Split) -> list[NDArray[np.float32]]:
        """The features of a split's videos."""
        return [self.features[row] for row in self.indices(split)]

    def clips(self, rows: Sequence[int] | NDArray[np.int64]) -> tuple[Tensor, list[int]]:
        """(n, D) clips of these videos, one after the other, and how many each video has."""
        own = [self.features[row] for row in rows]
        return torch.from_numpy(np.concatenate(own)), [len(each) for each in own]

    def frame_labels(self, split: Split) -> list[NDArray[np.uint8]] | None:
        """Labels of the frames of a split's videos, or None if any of them has none."""
        if self.frames is None:
            return None
        known = [labels for row in self.indices(split) if (labels := self.frames[row]) is not None]
        return known if len(known) == len(self.indices(split)) > 0 else None

    def check_both_labels(self, split: Split) -> None:
        """Raise DataError unless the split has normal and abnormal videos."""
        for label, kind in enumerate(("normal", "abnormal")):
            if label not in self.label[self.indices(split)]:
                raise DataError(f"{self.name} has no {kind} videos in {split}: both kinds are needed")


class BalancedBatches:
    """Batches of row numbers: first normal videos, then as many abnormal ones.

    Every video of the more frequent kind is in an epoch once. The others are repeated, each time in another order,
    until there are as many.
    """

    def __init__(self, data: AnomalyVideos, *, batch: int, seed: int) -> None:
        if batch < 2 or batch % 2:
            raise UsageError(f"a batch is half normal and half abnormal videos, so it is even: got {batch}")
        data.check_both_labels("train")
        train = data.indices("train")
        self.kinds = [train[data.label[train] == label] for label in (0, 1)]
        most = max(map(len, self.kinds))
        self.half, self.seed = min(batch // 2, most), seed
        self.batches = -(-most // self.half)

    def __len__(self) -> int:
        return self.batches

    def epoch(self, epoch: int, start: int = 0) -> Iterator[NDArray[np.int64]]:
        orders = []
        for label, rows in enumerate(self.kinds):
            rng = np.random.default_rng((self.seed, ORDER, epoch, label))
            rounds = -(-self.batches * self.half // len(rows))
            orders.append(np.concatenate([rng.permutation(rows) for _ in range(rounds)]))
        for number in range(start, self.batches):
            place = slice(number * self.half, (number + 1) * self.half)
            yield np.concatenate([order[place] for order in orders])
