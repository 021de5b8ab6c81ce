"""Sets that are lists of videos on YouTube: their owners take videos away, so every copy lacks some.

What a list names and a folder does not hold is left out, and a line on stderr says how many of how many are there:
accuracies on two copies are of two different sets. Files without a byte, of downloads that failed, count as absent.
"""

import hashlib
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.core.progress import say

LENGTH = 11
ID = rf"[\w-]{{{LENGTH}}}"  # letters, digits, - and _; where `re.ASCII` is set
VALIDATION = 0.05


def files_in(folder: Path, ending: str = ".mp4") -> list[str]:
    """Paths below the folder, of one level or two, by the alphabet, without hidden and empty files."""
    found = sorted([*folder.glob(f"*{ending}"), *folder.glob(f"*/*{ending}")])
    return [path.relative_to(folder).as_posix() for path in found if path.name[0] != "." and path.stat().st_size]


def those_there(
    name: str, listed: Path, folder: Path, wanted: Sequence[str], found: Collection[str], what: str = "videos"
) -> list[int]:
    """Which of the files that a list wants are found, by their places in it; how many they are is said.

    Args:
        name, listed, folder: the set, its list, and where its videos should lie, for people.
        what: is listed, in the plural.
    """
    there = [i for i, file in enumerate(wanted) if file in found]
    if not there:
        raise DataError(
            f"none of the {len(wanted):,} {what} that {listed} lists is there: "
            f"they are called {wanted[0]} and so on, in {folder} or in folders in it"
        )
    if len(there) < len(wanted):
        say(f"{name}: {len(there):,} of the {len(wanted):,} {what} of {listed.name} are there")
    return there


def validation_videos(videos: Sequence[str], action: NDArray[np.int64]) -> set[str]:
    """YouTube's ids to hold out of training: a twentieth of each class, one at least where two are there.

    They are those with the lowest sums of their ids, so that copies that differ hold out nearly the same.
    """
    held_out: set[str] = set()
    of = np.array(videos)
    for number in np.unique(action):
        found = sorted(set(of[action == number].tolist()), key=lambda name: hashlib.sha256(name.encode()).digest())
        held_out.update(found[: min(max(1, round(VALIDATION * len(found))), len(found) - 1)])
    return held_out


def letters(name: str) -> str:
    """What names are compared by, as `air drumming` is often written `Air_drumming`."""
    return re.sub("[^a-z0-9]+", "", name.casefold())
