"""How much of a dataset is here: files are counted and nothing is opened, so that all sets can be listed at once."""

import os
import re
from collections.abc import Callable, Sequence
from fnmatch import translate
from pathlib import Path

from vidveil.data.catalogue import Holds


def counted(holds: Holds, root: Path) -> int:
    """How many files of it are here."""
    return _sum(_found(holds, root))


def state(holds: Holds, root: Path) -> str:
    """`here: 6,766 of 6,766 videos, with VP-HMDB51`, or `part` or `empty`, and what is missing, for lists."""
    found = _found(holds, root)
    count = _sum(found)
    word = "here" if count >= holds.official else "part" if count else "empty"
    parts = [f"{count:,} of {holds.official:,} {holds.what}"]
    if count > holds.official:
        parts = [f"{count:,} {holds.what}, {holds.official:,} are needed"]
    full = sum(number > 0 for folders in found for number in folders.values())
    if holds.classes and full < holds.classes:
        parts.append(f"{holds.classes - full:,} of {holds.classes:,} classes have none")
    for name, places in holds.labels.items():
        parts.append(f"{'with' if any((root / place).exists() for place in places) else 'without'} {name}")
    return f"{word}: {', '.join(parts)}"


def _found(holds: Holds, root: Path) -> list[dict[str, int]]:
    return [_first(root, places) for places in holds.files]


def _sum(found: Sequence[dict[str, int]]) -> int:
    return sum(sum(folders.values()) for folders in found)


def _first(root: Path, places: Sequence[str]) -> dict[str, int]:
    """Of the first place that has any."""
    return next((found for place in places if any((found := count_files(root, place)).values())), {})


def count_files(root: Path, pattern: str) -> dict[str, int]:
    """How many fit a pattern such as `hmdb51/*/*.avi`, by the folder they lie in; folders, if it ends with a slash.

    Hidden ones do not count.
    """
    *above, last = pattern.removesuffix("/").split("/")
    folders = [str(root)]
    for name in above:
        fits = _fitting(name)
        folders = [
            entry.path for folder in folders for entry in _entries(folder) if fits(entry.name) and _is_dir(entry)
        ]
    fits, only_folders = _fitting(last), pattern.endswith("/")
    counts = {}
    for folder in folders:
        if only_folders:
            counts[folder] = sum(fits(entry.name) and _is_dir(entry) for entry in _entries(folder))
        else:  # names alone: twice as fast, and there may be hundreds of thousands
            counts[folder] = sum(map(fits, _names(folder)))
    return counts


def _fitting(name: str) -> Callable[[str], bool]:
    pattern = re.compile(translate(name))
    return lambda found: not found.startswith(".") and pattern.match(found) is not None


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:  # not there, no folder, or not ours to list: nothing that could be counted
        return []


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208
    except OSError:
        return []


def _is_dir(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
