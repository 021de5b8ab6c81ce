"""Datasets that are lists of YouTube videos: videos are taken down, so every copy lacks some.

Videos that are listed but missing are left out, and a line on stderr says how many of how many are there: accuracies on
two copies are of two different sets. Empty files, of failed downloads, count as missing.
"""

import re
from collections.abc import Collection, Sequence
from pathlib import Path

from vidveil.core.errors import DataError
from vidveil.core.progress import say

LENGTH = 11
ID = rf"[\w-]{{{LENGTH}}}"  # letters, digits, - and _; where `re.ASCII` is set


def files_in(folder: Path) -> list[str]:
    """Paths of videos below the folder, of one level or two, in alphabetical order, without hidden and empty files."""
    found = sorted([*folder.glob("*.mp4"), *folder.glob("*/*.mp4")])
    return [path.relative_to(folder).as_posix() for path in found if path.name[0] != "." and path.stat().st_size]


def present_files(
    name: str, list_file: Path, folder: Path, listed: Sequence[str], found: Collection[str], what: str = "videos"
) -> list[int]:
    """Which of the listed files are found, as indices into the list; their number is reported.

    Args:
        name, list_file, folder: the set, its list, and where its videos should lie, for messages.
        what: is listed, in the plural.
    """
    present = [i for i, file in enumerate(listed) if file in found]
    if not present:
        raise DataError(
            f"none of the {len(listed):,} {what} that {list_file} lists is there: "
            f"they are called {listed[0]} and so on, in {folder} or in folders in it"
        )
    if len(present) < len(listed):
        say(f"{name}: {len(present):,} of the {len(listed):,} {what} of {list_file.name} are there")
    return present


def letters(name: str) -> str:
    """What names are compared by, as `air drumming` is often written `Air_drumming`."""
    return re.sub("[^a-z0-9]+", "", name.casefold())
