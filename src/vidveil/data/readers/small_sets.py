"""Two small sets of real video, each a folder with a `manifest.csv`.

`ucf101_5`: five classes of UCF101. A person is a (class, group), who does nothing but that one action, so linkage looks
among clips of the same action. Official splits 1-3; validation is every fifth group of the training part.

`weizmann`: ten actions, each done once by each of nine people, so linkage looks among the other actions. Two questions:

    people=F     for the action, whoever does it: three people are left out for test, two for validation
    actions=F    for the person, whatever is done: a third of the actions is left out for test, two for validation;
                 the people are the same everywhere, on purpose, and a group is an action
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.bounded import ANNOTATIONS_BYTES, open_regular, reason
from vidveil.core.errors import DataError, UsageError
from vidveil.core.text import printable
from vidveil.data.clips import ClipSet
from vidveil.data.store.decoded import decoded

FOLDS = 3
TEXT = "utf-8-sig"  # UTF-8, also with the mark in front that Windows' programs write
ATTRIBUTES = ("skin_colour", "face", "gender", "nudity", "relationship")
"""Of VP-UCF101: whether each can be told from the video, not what it is."""


def read_manifest(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    try:
        with io.TextIOWrapper(open_regular(path, ANNOTATIONS_BYTES), encoding=TEXT, newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {printable(reason(error), 200)}") from error
    if not rows:
        raise DataError(f"{path} lists nothing")
    if missing := [column for column in columns if column not in rows[0]]:
        raise DataError(f"{path} has no column {missing[0]!r}: its first line names {', '.join(map(str, rows[0]))}")
    for number, row in enumerate(rows, 2):
        if short := next((column for column in columns if row[column] is None), None):
            raise DataError(f"{path}, line {number} ends before its {short}")
    return rows


def codes(values: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Numbers for names, in the order of the alphabet: (N,) and the names."""
    names = sorted(set(values))
    number = {name: i for i, name in enumerate(names)}
    return np.array([number[value] for value in values], np.int64), names


def parse_split(name: str, argument: str | None) -> int:
    """`1`, `2` or `3`, also written `split=2`."""
    text = (argument or "1").removeprefix("split=")
    if text not in ("1", "2", "3"):
        raise UsageError(f"{name} has the splits 1, 2 and 3, not {argument!r}; write {name}:2")
    return int(text)


def with_validation(classes: Sequence[str], groups: Sequence[int], official: Sequence[str]) -> NDArray[np.str_]:
    """(N,) splits: every fifth group of the training part of a class, from its third on, becomes validation."""
    split = np.array(official, dtype="<U5")
    if strange := set(split.tolist()) - {"train", "test"}:
        raise DataError(f"a split is train or test, not {sorted(strange)[0]!r}")
    of_class, of_group = np.array(classes), np.array(groups)
    for name in sorted(set(classes)):
        training = (of_class == name) & (split == "train")
        chosen = np.unique(of_group[training])[2::5]
        split[training & np.isin(of_group, chosen)] = "val"
    return split


def load_ucf101_5(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    number = parse_split("ucf101_5", argument)
    folder = root / "ucf101_5"
    labels = ("skin_color", "face", "gender", "nudity", "relationship")
    column = f"split{number}"
    rows = read_manifest(folder / "manifest.csv", ("path", "class", "group", column, *labels))
    classes = [row["class"] for row in rows]
    try:
        groups = [int(row["group"]) for row in rows]
        told = [[int(row[label]) if row[label] else np.nan for label in labels] for row in rows]  # nobody said
        attributes = np.array(told, np.float32)
    except ValueError as error:
        raise DataError(f"{folder / 'manifest.csv'} has a group or a label that is no number") from error
    action, actions = codes(classes)
    names = [f"{name} g{group:02d}" for name, group in zip(classes, groups, strict=True)]
    return ClipSet(
        name=f"ucf101_5:{number}",
        videos=decoded("ucf101_5", folder, [row["path"] for row in rows]),
        ids=[row["path"] for row in rows],
        split=with_validation(classes, groups, [row[column] for row in rows]),
        group=np.array(names),
        action=action,
        actions=actions,
        person=codes(names)[0],
        attributes=attributes[:, :0] if np.isnan(attributes).all() else attributes,
        attribute_names=() if np.isnan(attributes).all() else ATTRIBUTES,
        gallery="same action",
    )


def load_weizmann(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    what, fold = _what_to_leave_out(argument)
    folder = root / "weizmann"
    rows = read_manifest(folder / "manifest.csv", ("path", "action", "subject"))
    action, actions = codes([row["action"] for row in rows])
    person, _ = codes([row["subject"] for row in rows])
    group = [row["subject" if what == "people" else "action"] for row in rows]
    return ClipSet(
        name=f"weizmann:{what}={fold}",
        videos=decoded("weizmann", folder, [row["path"] for row in rows]),
        ids=[row["path"] for row in rows],
        split=_left_out(person if what == "people" else action, fold),
        group=np.array(group),
        action=action,
        actions=actions,
        person=person,
        attributes=np.zeros((len(rows), 0), np.float32),
        gallery="other action",
    )


def _what_to_leave_out(argument: str | None) -> tuple[str, int]:
    what, _, fold = (argument or "people=0").partition("=")
    if what not in ("people", "actions") or (fold or "0") not in ("0", "1", "2"):
        raise UsageError(f"weizmann leaves out people=0, 1, 2 or actions=0, 1, 2, not {argument!r}")
    return what, int(fold or 0)


def _left_out(values: NDArray[np.int64], fold: int) -> NDArray[np.str_]:
    """Every third value from `fold` on is test, the first two of the next fold validation."""
    present = np.unique(values)
    test = present[fold::FOLDS]
    val = present[(fold + 1) % FOLDS :: FOLDS][:2]
    return np.where(np.isin(values, test), "test", np.where(np.isin(values, val), "val", "train"))
