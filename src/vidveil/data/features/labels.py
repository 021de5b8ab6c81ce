"""The labels of the videos of a store, as a table that people can read and write.

    id,split,group,action,person,attribute:face,tag:outfit,gallery
    Biking/v_Biking_g01_c01,train,Biking 1,Biking,12,1,0,same action

One line per video, in any order. `split` is train, val or test; `group` is what must not be in two splits. `action` is
a word, `person` a number or a word; an empty action, a person of -1 and an empty attribute are unknown. `gallery`, the
same in every line, says among which clips linkage searches: any, same action, other action. Only id, split and action
must be there.
"""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

import numpy as np
from numpy.typing import NDArray

from vidveil.core.atomic import new_path
from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet, Gallery
from vidveil.data.readers.annotations import read_table
from vidveil.data.readers.splits import numbered
from vidveil.data.store.features import FeatureStore

FILE = "labels.csv"
ATTRIBUTE, TAG = "attribute:", "tag:"


class FeatureRows:
    """The videos of a store, as a `ClipSet` has them: no pixels."""

    def __init__(self, store: FeatureStore) -> None:
        self.store = store
        self.fingerprint = store.fingerprint

    def __len__(self) -> int:
        return len(self.store)

    def frames(self, i: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint8]]":
        raise DataError(f"{self.store.folder} holds features, no pictures: video {i} cannot be shown")

    def digest(self, i: int) -> str:
        return f"{self.fingerprint}/{i}"


def write_labels(data: ClipSet, path: Path) -> None:
    head = ["id", "split", "group", "action", "person"]
    head += [ATTRIBUTE + name for name in data.attribute_names] + [TAG + name for name in data.tags] + ["gallery"]
    with new_path(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        for i, name in enumerate(data.ids):
            known = ["" if np.isnan(value) else f"{value:g}" for value in data.attributes[i]]
            tags = [int(values[i]) for values in data.tags.values()]
            action = data.actions[int(data.action[i])] if data.action[i] >= 0 else ""
            writer.writerow(
                [name, data.split[i], data.group[i], action, int(data.person[i]), *known, *tags, data.gallery]
            )


def _known(person: str | None) -> str:
    """Identity, as a group: nobody may be in two splits, unless groups say what may not."""
    return f"person {person}" if person and person != "-1" else ""


def labelled(store: FeatureStore) -> ClipSet:
    """The store with the labels next to it. A video that the table does not name is an error."""
    path = store.folder / FILE
    if not path.is_file():
        raise DataError(f"{store.folder} has no {FILE}: who is in it is not known (see docs/features.md)")
    lines = read_table(path, ("id", "split", "action"))
    rows = {row["id"]: row for row in lines}
    if len(rows) < len(lines):
        again = next(name for name, count in Counter(row["id"] for row in lines).items() if count > 1)
        raise DataError(f"{path} names {again} twice")
    if longer := next((name for name, row in rows.items() if None in row), None):  # an unquoted comma shifts the rest
        raise DataError(f"{path}: the line of {longer} has more fields than the first line names")
    if missing := [name for name in store.ids if name not in rows]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"{path} does not name {missing[0]}{more}")
    listed = [rows[name] for name in store.ids]
    columns = list(listed[0])
    gallery = listed[0].get("gallery") or "any"
    if gallery not in get_args(Gallery):
        raise DataError(f"{path}: a gallery is {', '.join(get_args(Gallery))}, not {gallery!r}")
    action, actions = _codes([row["action"] for row in listed])
    people = [row.get("person") or "-1" for row in listed]
    if all(re.fullmatch(r"-?[0-9]{1,18}", name) for name in people):
        person = np.array(people, np.int64)
    else:
        person, _ = _codes(["" if name == "-1" else name for name in people])
    names = [column for column in columns if column.startswith(ATTRIBUTE)]
    try:
        known = [[float(row[name] or "nan") for name in names] for row in listed]
        tags = {
            column.removeprefix(TAG): np.array([int(row[column] or -1) for row in listed], np.int64)
            for column in columns
            if column.startswith(TAG)
        }
    except (ValueError, OverflowError) as error:
        raise DataError(f"{path}: attributes and tags are numbers ({error})") from error
    return ClipSet(
        name=store.folder.name,
        videos=FeatureRows(store),
        ids=list(store.ids),
        split=np.array([row["split"] for row in listed]),
        group=np.array([row.get("group") or _known(row.get("person")) or row["id"] for row in listed]),
        action=action,
        actions=actions,
        person=person,
        attributes=np.array(known, np.float32).reshape(len(listed), len(names)),
        attribute_names=[name.removeprefix(ATTRIBUTE) for name in names],
        gallery=cast(Gallery, gallery),
        tags=tags,
    )


def _codes(words: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Numbers for words, and the words; -1 for the empty one, which is nobody's name."""
    numbers, names = numbered(words)
    return (numbers - 1, names[1:]) if names[0] == "" else (numbers, names)
