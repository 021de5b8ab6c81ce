"""Finding the files of datasets: copies differ in their folders, and sets of YouTube lack videos that were taken down.

A list of YouTube videos is used as far as its videos are there: those that are missing are left out, and a line on
stderr says how many of how many are there, since accuracies on two copies are of two different sets. Empty files, of
failed downloads, count as missing. Of other sets a copy that lacks videos is refused.
"""

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from vidveil.core.errors import DataError
from vidveil.core.progress import say
from vidveil.data.catalogue import DEPTH

NAMED = 5  # missing videos that a message names; the others are counted


def first_file(places: Iterable[Path]) -> Path | None:
    """The first of these that is a file."""
    return next((place for place in places if place.is_file()), None)


def first_folder(root: Path, names: Sequence[str]) -> Path:
    """The first of these folders that exists, else the first one."""
    return next((root / name for name in names if (root / name).is_dir()), root / names[0])


def files_below(folder: Path, *endings: str) -> dict[str, list[Path]]:
    """Files by their names, wherever they lie in the folder, since copies differ. Hidden ones are skipped."""
    found: dict[str, list[Path]] = {}
    for place, folders, files in os.walk(folder, followlinks=True):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if depth < DEPTH and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(endings) and not name.startswith("."):
                found.setdefault(name, []).append(Path(place) / name)
    return found


def find_file(root: Path, folder: Path, labels: str, names: Sequence[str]) -> Path | None:
    """The first of these files anywhere in the folder of a set, else in `root` or `root/labels/LABELS`."""
    below = files_below(folder, *names)
    outside = [place / name for place in (root, root / "labels" / labels) for name in names]
    places = [below[name][0] for name in names if name in below] + [place for place in outside if place.is_file()]
    return places[0] if places else None


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


def require_videos(name: str, folder: Path, listed: Sequence[str], found: Mapping[str, object], where: str) -> None:
    """Refuse a copy that lacks videos, with their number and some names.

    Args:
        listed: names of the annotated files.
        found: the present ones, by the name of the file.
        where: the folders in which they usually lie, for the message.
    """
    missing = [file for file in listed if file not in found]
    if not missing:
        return
    more = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
    raise DataError(
        f"{name}: {len(missing):,} of {len(listed):,} videos are not in {folder}: {', '.join(missing[:NAMED])}{more}; "
        f"they belong in {where}"
    )


def parse_file_names(folder: Path, pattern: str, example: str) -> list[tuple[str, re.Match[str]]]:
    """The videos in a folder whose names carry their labels, in the order of their names.

    Hidden files and those with another ending than the example are skipped.

    Args:
        pattern: what a whole name must match.
        example: a valid name, for error messages.
    """
    ending = Path(example).suffix
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be listed: it should be a folder of videos such as {example}") from error
    found = []
    for name in names:
        if name.startswith(".") or not name.endswith(ending):
            continue
        if not (match := re.fullmatch(pattern, name)):
            raise DataError(f"{folder / name} has no valid name: it should look like {example}")
        found.append((name, match))
    if not found:
        raise DataError(
            f"{folder} holds no {ending} file: videos such as {example} belong there, in no folder of their own"
        )
    return found


def require_numbers(folder: Path, found: Sequence[str], form: str, advice: str) -> None:
    """Refuse names that are not all numbers from 1 on, such as 001.tif, 002.tif and so on.

    Args:
        form: of a name, such as `{:03d}.tif`.
        advice: what to do where one is missing, for error messages.
    """
    wanted = [form.format(number) for number in range(1, max(len(found), 1) + 1)]
    if missing := next((name for name in wanted if name not in found), None):
        raise DataError(f"{folder} has no {missing}: {advice}")
