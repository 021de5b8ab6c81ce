"""Reading the files that datasets are published with: lists, tables and JSON."""

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vidveil.core import bounded
from vidveil.core.bounded import ANNOTATION_VALUES, ANNOTATIONS_BYTES, open_regular, read_text
from vidveil.core.errors import DataError, UsageError
from vidveil.core.text import printable

ENCODING = "utf-8-sig"  # UTF-8, also with the byte order mark that programs on Windows write
SUBGROUPS = ("f", "m")  # numbers of the tag `subgroup`; -1 is unknown
YOUTUBE_ID = r"[\w-]{11}"  # letters, digits, - and _; where `re.ASCII` is set


def no_argument(name: str, argument: str | None) -> None:
    """Refuse `NAME:ARGUMENT` of a dataset that has only one split."""
    if argument is not None:
        raise UsageError(f"{name} takes nothing after a colon, not {argument!r}")


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


def match_lines(path: Path, dataset: str, pattern: str, form: str) -> list[re.Match[str]]:
    """The lines of such a list, each of which must match a pattern as a whole.

    Args:
        form: what a line is, for error messages.
    """
    matches = []
    for line in map(str.strip, read_lines(path, dataset)):
        if not (match := re.fullmatch(pattern, line)):
            raise DataError(f"{path}: a line is {form}, not {printable(repr(line))}")
        matches.append(match)
    return matches


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


def letters(name: str) -> str:
    """What names are compared by, as `air drumming` is often written `Air_drumming`."""
    return re.sub("[^a-z0-9]+", "", name.casefold())
