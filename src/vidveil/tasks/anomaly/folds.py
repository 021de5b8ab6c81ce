"""Five folds of videos: each video is tested once, and no camera is in two folds.

    fold = cut_into_folds(label, group)          # (V,) 0 … 4
    for number in range(FOLDS):
        split = split_of(fold, number)           # (V,) fold `number` is test, the next one validation, the others train

Each fold gets its share of both labels as nearly as whole groups allow. The largest groups come first; each goes to the
fold that lacks most of what it holds. Ties are broken at random.

`surveillance_fight` names no source in its manifest, but neighbouring files are often of one camera. Its reader
(`data.readers.surveillance_fight`) groups scenes by the similarity of their mean pictures, and returns them as `group`.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet

FOLDS = 5


def cut_into_folds(
    label: ArrayLike, group: ArrayLike | None = None, *, count: int = FOLDS, seed: int = 0
) -> NDArray[np.int64]:
    """(V,) the fold of each video.

    Args:
        label: (V,) 0 or 1.
        group: (V,) numbers or names; videos of a group stay together. Without it each video is a group.
    """
    truth = np.asarray(label)
    if truth.ndim != 1 or not np.isin(truth, (0, 1)).all():
        raise UsageError(f"labels of videos are 0 or 1, one per video, got {truth.shape}")
    if count < 2:
        raise UsageError(f"two folds at least, not {count}")
    together = np.arange(len(truth)) if group is None else np.asarray(group)
    if together.shape != truth.shape:
        raise UsageError(f"{len(truth)} videos, but groups are {together.shape}")
    names, own = np.unique(together, return_inverse=True)
    holds = np.stack([np.bincount(own[truth == kind], minlength=len(names)) for kind in (0, 1)], axis=1)  # (G, 2)
    for kind, word in enumerate(("normal", "abnormal")):
        if (holds[:, kind] > 0).sum() < count:
            raise DataError(
                f"{count} folds need as many groups with {word} videos, there are {(holds[:, kind] > 0).sum()}"
            )
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(names))
    lacks = np.tile(holds.sum(axis=0) / count, (count, 1))  # (folds, 2)
    fold_of_group = np.empty(len(names), np.int64)
    for index in shuffled[np.argsort(-holds[shuffled].sum(axis=1), kind="stable")]:
        need = lacks @ holds[index]
        best = np.flatnonzero(need >= need.max() - 1e-9)
        fold_of_group[index] = rng.choice(best)
        lacks[fold_of_group[index]] -= holds[index]
    fold = fold_of_group[own]
    for number in range(count):
        if len(set(truth[fold == number].tolist())) < 2:
            raise DataError(
                f"fold {number + 1} of {count} has videos of one label: groups are too large, use fewer folds"
            )
    return fold


def split_of(fold: NDArray[np.int64], number: int) -> NDArray[np.str_]:
    """(V,) train, val or test: this fold is test, the next one is val."""
    count = int(fold.max()) + 1
    if count < 3 or not 0 <= number < count:
        raise UsageError(f"fold {number} of {count}: three folds at least, counted from 0, make train, val and test")
    return np.where(fold == number, "test", np.where(fold == (number + 1) % count, "val", "train"))


def folds_of(data: ClipSet, normal: str, *, count: int = FOLDS, seed: int = 0) -> NDArray[np.int64]:
    """Folds of a set by its groups. `normal` is the action of normal videos: `none` of surveillance_fight."""
    if normal not in data.actions:
        raise UsageError(f"{data.name} has no action {normal!r}: {', '.join(data.actions)}")
    abnormal = np.asarray(data.action != data.actions.index(normal), np.int64)
    return cut_into_folds(abnormal, data.group, count=count, seed=seed)
