"""`ucf101_5`: five classes of UCF101, in a folder with a `manifest.csv`.

A person is a (class, group), who does only that one action, so linkage looks among clips of the same action. Official
splits 1-3; validation is every fifth group of the training part.
"""

from pathlib import Path

import numpy as np

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import read_table
from vidveil.data.readers.splits import hold_out_groups, numbered, split_number
from vidveil.data.readers.vp_labels import ATTRIBUTES
from vidveil.data.store.decoded import decoded

COLUMNS = ("skin_color", *ATTRIBUTES[1:])
"""The attributes as the manifest spells them."""


def load(argument: str | None, *, root: Path, frames: int = 0, size: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    number = split_number("ucf101_5", argument)
    folder = root / "ucf101_5"
    column = f"split{number}"
    rows = read_table(folder / "manifest.csv", ("path", "class", "group", column, *COLUMNS))
    classes, official = [row["class"] for row in rows], [row[column] for row in rows]
    if unknown := set(official) - {"train", "test"}:
        raise DataError(f"{folder / 'manifest.csv'}: a split is train or test, not {min(unknown)!r}")
    try:
        groups = [int(row["group"]) for row in rows]
        labels = [[int(row[label]) if row[label] else np.nan for label in COLUMNS] for row in rows]
        attributes = np.array(labels, np.float32)
    except ValueError as error:
        raise DataError(f"{folder / 'manifest.csv'} has a group or a label that is no number") from error
    action, actions = numbered(classes)
    names = [f"{name} g{group:02d}" for name, group in zip(classes, groups, strict=True)]
    return ClipSet(
        name=f"ucf101_5:{number}",
        videos=decoded("ucf101_5", folder, [row["path"] for row in rows]),
        ids=[row["path"] for row in rows],
        split=hold_out_groups(classes, groups, official),
        group=np.array(names),
        action=action,
        actions=actions,
        person=numbered(names)[0],
        attributes=attributes[:, :0] if np.isnan(attributes).all() else attributes,
        attribute_names=() if np.isnan(attributes).all() else ATTRIBUTES,
        gallery="same action",
    )
