"""UCF101 in its official layout, and VP-UCF101's labels of what can be told about the people in it.

    UCF-101/Archery/v_Archery_g01_c01.avi          class, group (a person and a place), clip
    ucfTrainTestlist/classInd.txt                  1 ApplyEyeMakeup
    ucfTrainTestlist/trainlist01.txt               Archery/v_Archery_g08_c01.avi 3
    ucfTrainTestlist/testlist01.txt                Archery/v_Archery_g01_c01.avi
    ucf101_privacy_attribute_label.pickle          optional: {"Archery/v_Archery_g01_c01.mp4": array (1, 5)}

Videos are decoded at every second frame, 96 frames at most, and a little larger than the views that will be taken.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.data.arrays_only import load_arrays
from vidveil.data.clips import ClipSet
from vidveil.data.decoded import decoded
from vidveil.data.small_sets import ATTRIBUTES, codes, parse_split, with_validation
from vidveil.errors import DataError

EVERY, LIMIT = 2, 96  # frames: 7.7 seconds at 12.5 a second, which is all of most clips
MARGIN = 8 / 7  # short side of what is kept over the size of a view: 128 for 112
LABELS = "ucf101_privacy_attribute_label.pickle"


@dataclass(frozen=True, slots=True)
class Clip:
    path: str
    """As listed: `Archery/v_Archery_g01_c01.avi`."""
    action: str
    group: int
    part: str
    """`train` or `test`."""


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    number = parse_split("ucf101", argument)
    folder = root if (root / "UCF-101").is_dir() else root / "ucf101"
    lists = folder / "ucfTrainTestlist"
    actions = read_classes(lists / "classInd.txt")
    clips = read_split(lists, number, actions)
    short_side = round(size * MARGIN)
    names = [f"{clip.action} g{clip.group:02d}" for clip in clips]
    attributes = np.zeros((len(clips), 0), np.float32)
    if labels := next((place for place in _places(folder) if place.is_file()), None):
        attributes = match_labels(read_labels(labels), [clip.path for clip in clips])
    return ClipSet(
        name=f"ucf101:{number}",
        videos=decoded(
            "ucf101",
            folder / "UCF-101",
            [clip.path for clip in clips],
            short_side=short_side,
            every=EVERY,
            limit=LIMIT,
            expected_bytes=len(clips) * LIMIT * 3 * short_side * (short_side * 4 // 3),
        ),
        ids=[clip.path for clip in clips],
        split=with_validation([c.action for c in clips], [c.group for c in clips], [c.part for c in clips]),
        group=np.array(names),
        action=np.array([actions.index(clip.action) for clip in clips], np.int64),
        actions=actions,
        person=codes(names)[0],
        attributes=attributes,
        attribute_names=ATTRIBUTES if attributes.shape[1] else (),
        gallery="same action",
    )


def read_classes(path: Path) -> list[str]:
    """Names in the order of their numbers, which count from 1."""
    lines = [line.split() for line in _lines(path)]
    if any(len(line) != 2 or line[0] != str(i) for i, line in enumerate(lines, 1)):
        raise DataError(f"{path}: a line is a number and a class, counted from 1")
    return [name for _, name in lines]


def read_split(lists: Path, number: int, actions: list[str]) -> list[Clip]:
    """Training clips first, both as listed."""
    clips = []
    known = set(actions)
    for part in ("train", "test"):
        path = lists / f"{part}list{number:02d}.txt"
        for line in _lines(path):
            listed = line.split()[0]
            match = re.fullmatch(r"([^/]+)/v_[^/]+_g(\d+)_c\d+\.avi", listed)
            if not match or match[1] not in known:
                raise DataError(
                    f"{path}: {listed!r} is no Class/v_Class_g01_c01.avi of a class that classInd.txt knows"
                )
            clips.append(Clip(listed, match[1], int(match[2]), part))
    return clips


def read_labels(path: Path) -> dict[str, NDArray[np.float32]]:
    """Attributes (5,) of a clip by its name without folder and ending. Only arrays are read out of the pickle."""
    found = load_arrays(path)
    if not isinstance(found, dict):
        raise DataError(f"{path} holds no labels by clip")
    labels = {}
    for name, values in found.items():
        if not isinstance(name, str) or not isinstance(values, np.ndarray) or values.size != len(ATTRIBUTES):
            raise DataError(f"{path}: {name!r} has no {len(ATTRIBUTES)} labels")
        labels[Path(name).stem.lower()] = values.reshape(-1).astype(np.float32)
    return labels


def match_labels(labels: dict[str, NDArray[np.float32]], paths: list[str]) -> NDArray[np.float32]:
    """(N, 5), NaN for clips without labels."""
    unknown = np.full(len(ATTRIBUTES), np.nan, np.float32)
    return np.stack([labels.get(Path(path).stem.lower(), unknown) for path in paths])


def _places(folder: Path) -> list[Path]:
    return [folder / LABELS, folder / "labels" / "vp" / LABELS, folder.parent / LABELS]


def _lines(path: Path) -> list[str]:
    try:
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read: it comes with UCF101's lists of splits") from error
    if not lines:
        raise DataError(f"{path} lists nothing")
    return lines
