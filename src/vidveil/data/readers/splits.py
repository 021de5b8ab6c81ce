"""Splits of published datasets: the official number, and validation held out of the official training part."""

import hashlib
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError

HELD_OUT_VIDEOS = 0.05  # share of each class


def split_number(name: str, argument: str | None) -> int:
    """`1`, `2` or `3`, also written `split=2`."""
    text = (argument or "1").removeprefix("split=")
    if text not in ("1", "2", "3"):
        raise UsageError(f"{name} has the splits 1, 2 and 3, not {argument!r}; write {name}:2")
    return int(text)


def numbered(values: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """(N,) an index into the sorted names for each value, and these names."""
    names = sorted(set(values))
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[value] for value in values], np.int64), names


def hold_out_groups(classes: Sequence[str], groups: Sequence[int], official: Sequence[str]) -> NDArray[np.str_]:
    """(N,) splits: every fifth group of the training part of a class, from its third on, becomes validation."""
    split = np.array(official, dtype="<U5")
    of_class, of_group = np.array(classes), np.array(groups)
    for name in sorted(set(classes)):
        training = (of_class == name) & (split == "train")
        chosen = np.unique(of_group[training])[2::5]
        split[training & np.isin(of_group, chosen)] = "val"
    return split


def hold_out_people(
    name: str,
    people: Sequence[str],
    actions: Sequence[int] | Sequence[str],
    official: Sequence[str],
    candidates: Collection[str] | None = None,
) -> NDArray[np.str_]:
    """(N,) splits: of the people in training, every fifth becomes validation, from the third on.

    A person without whom some action would be missing from training is skipped, and the next one is taken.

    Args:
        people, actions, official: of each clip: the person, the action, and `train`, `val` or `test`.
        candidates: the people to choose from; all of them, if None.
    """
    who, what, split = np.array(people), np.array(actions), np.array(official, dtype="<U5")
    if not (split == "test").any():
        raise DataError(f"{name}: of the people here nobody is tested; unpack all of the set")
    needed = set(what[split == "train"].tolist())
    pool = [str(p) for p in np.unique(who[split == "train"]) if candidates is None or p in candidates]
    first = pool[2::5] or pool[:1]
    held_out = 0
    for person in (*first, *(p for p in pool if p not in first)):
        rest = (split == "train") & (who != person)
        if held_out < len(first) and set(what[rest].tolist()) == needed:
            split[(split == "train") & (who == person)] = "val"
            held_out += 1
    if not held_out:
        raise DataError(
            f"{name}: validation takes whole people out of training, and of {', '.join(pool) or 'nobody'} none can be "
            "spared: each action needs two people to train on; unpack all of the set"
        )
    return split


def hold_out_videos(videos: Sequence[str], action: NDArray[np.int64]) -> set[str]:
    """YouTube ids to hold out of training: a twentieth of each class, at least one where there are two.

    They are those with the lowest hashes of their ids, so that different copies hold out nearly the same videos.
    """
    held_out: set[str] = set()
    ids = np.array(videos)
    for number in np.unique(action):
        found = sorted(set(ids[action == number].tolist()), key=lambda name: hashlib.sha256(name.encode()).digest())
        held_out.update(found[: min(max(1, round(HELD_OUT_VIDEOS * len(found))), len(found) - 1)])
    return held_out
