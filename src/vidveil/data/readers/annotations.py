"""Reading the files that datasets are published with: lists, tables, JSON, and file names that carry labels."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from vidveil.core import bounded
from vidveil.core.bounded import ANNOTATION_VALUES, ANNOTATIONS_BYTES, open_regular, read_text
from vidveil.core.errors import DataError, UsageError
from vidveil.core.text import printable

ENCODING = "utf-8-sig"  # UTF-8, also with the byte order mark that programs on Windows write
SUBGROUPS = ("f", "m")  # numbers of the tag `subgroup`; -1 is unknown


def no_argument(name: str, argument: str | None) -> None:
    """Refuse `NAME:ARGUMENT` of a dataset that has only one split."""
    if argument is not None:
        raise UsageError(f"{name} takes nothing after a colon, not {argument!r}")


def first_file(places: Iterable[Path]) -> Path | None:
    """The first of these that is a file."""
    return next((place for place in places if place.is_file()), None)


def first_folder(root: Path, names: Sequence[str]) -> Path:
    """The first of these folders that exists, else the first one."""
    return next((root / name for name in names if (root / name).is_dir()), root / names[0])


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """The rows of a CSV file that has at least these columns."""
    try:
        with io.TextIOWrapper(open_regular(path, ANNOTATIONS_BYTES), encoding=ENCODING, newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {printable(bounded.reason(error), 200)}") from error
    if not rows:
        raise DataError(f"{path} lists nothing")
    if missing := [column for column in columns if column not in rows[0]]:
        raise DataError(f"{path} has no column {missing[0]!r}: its first line names {', '.join(map(str, rows[0]))}")
    for number, row in enumerate(rows, 2):
        if short := next((column for column in columns if row[column] is None), None):
            raise DataError(f"{path}, line {number} ends before its {short}")
    return rows


def read_lines(path: Path, dataset: str) -> list[str]:
    """The lines of a list that comes with a dataset, without empty ones."""
    try:
        lines = [line for line in read_text(path, ANNOTATIONS_BYTES).splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: it comes with {dataset}, as plain text") from error
    if not lines:
        raise DataError(f"{path} lists nothing")
    return lines


def read_json(path: Path) -> Any:
    """The content of a JSON file, of any type."""
    try:
        return bounded.read_json(path, ANNOTATIONS_BYTES, ANNOTATION_VALUES, finite=False)
    except OSError as error:
        raise DataError(f"{path} {bounded.reason(error)}") from error
    except ValueError as error:
        raise DataError(f"{path} {error}: copy it again") from error


def refuse_duplicates(path: Path, names: Sequence[str]) -> None:
    if len(set(names)) != len(names):
        raise DataError(f"{path} lists {next(name for name in names if names.count(name) > 1)} twice")


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


def read_grey(path: Path, advice: str) -> NDArray[np.uint8]:
    """(H, W) of a picture."""
    grey = cv2.imread(str(path), cv2.IMREAD_GRAYSCALE)
    if grey is None:
        raise DataError(f"{path} is no picture that can be read: {advice}")
    return grey.astype(np.uint8, copy=False)


def read_subgroups(path: Path, example: str) -> dict[str, int]:
    """Perceived gender by the names of persons: 0 woman, 1 man. Empty if there is no such file.

    Args:
        example: a valid name of a person, such as P001; others differ in digits.
    """
    if not path.exists():
        return {}
    try:
        lines = [line.split() for line in read_text(path, ANNOTATIONS_BYTES).splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: it should be text, {example} f or {example} m a line") from error
    subgroups: dict[str, int] = {}
    person = re.sub(r"\d", r"\\d", example)
    for line in lines:
        if len(line) != 2 or not re.fullmatch(person, line[0]) or line[1] not in SUBGROUPS:
            raise DataError(
                f"{path}: a line is a person and f or m, such as {example} f, not {printable(repr(' '.join(line)))}"
            )
        if subgroups.setdefault(line[0], SUBGROUPS.index(line[1])) != SUBGROUPS.index(line[1]):
            raise DataError(f"{path} has {line[0]} as f and as m")
    return subgroups
