"""UCF101 in its official layout, and VP-UCF101's labels of visible private attributes.

    UCF-101/Archery/v_Archery_g01_c01.avi          class, group (a person and a place), clip
    ucfTrainTestlist/classInd.txt                  1 ApplyEyeMakeup
    ucfTrainTestlist/trainlist01.txt               Archery/v_Archery_g08_c01.avi 3
    ucfTrainTestlist/testlist01.txt                Archery/v_Archery_g01_c01.avi
    ucf101_privacy_attribute_label.pickle          optional: {"Archery/v_Archery_g01_c01.mp4": array (1, 5)}

Every second frame of a video is decoded, 96 frames at most, a little larger than the views.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import read_lines
from vidveil.data.readers.splits import hold_out_groups, numbered, split_number
from vidveil.data.readers.subsampled import subsampled
from vidveil.data.readers.vp_labels import ATTRIBUTES, find_labels, match_labels

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
    number = split_number("ucf101", argument)
    folder = root if (root / "UCF-101").is_dir() else root / "ucf101"
    lists = folder / "ucfTrainTestlist"
    actions = read_classes(lists / "classInd.txt")
    clips = read_split(lists, number, actions)
    names = [f"{clip.action} g{clip.group:02d}" for clip in clips]
    attributes = np.zeros((len(clips), 0), np.float32)
    if labels := find_labels(LABELS, folder, folder.parent):
        attributes = match_labels(labels, [clip.path for clip in clips])
    return ClipSet(
        name=f"ucf101:{number}",
        videos=subsampled("ucf101", folder / "UCF-101", [clip.path for clip in clips], size=size),
        ids=[clip.path for clip in clips],
        split=hold_out_groups([c.action for c in clips], [c.group for c in clips], [c.part for c in clips]),
        group=np.array(names),
        action=np.array([actions.index(clip.action) for clip in clips], np.int64),
        actions=actions,
        person=numbered(names)[0],
        attributes=attributes,
        attribute_names=ATTRIBUTES if attributes.shape[1] else (),
        gallery="same action",
    )


def read_classes(path: Path) -> list[str]:
    """Names in the order of their numbers, which count from 1."""
    lines = [line.split() for line in read_lines(path, "UCF101")]
    if any(len(line) != 2 or line[0] != str(i) for i, line in enumerate(lines, 1)):
        raise DataError(f"{path}: a line is a number and a class, counted from 1")
    return [name for _, name in lines]


def read_split(lists: Path, number: int, actions: list[str]) -> list[Clip]:
    """Training clips first, both as listed."""
    clips = []
    known = set(actions)
    for part in ("train", "test"):
        path = lists / f"{part}list{number:02d}.txt"
        for line in read_lines(path, "UCF101"):
            listed = line.split()[0]
            match = re.fullmatch(r"([^/]+)/v_[^/]+_g(\d+)_c\d+\.avi", listed)
            if not match or match[1] not in known:
                raise DataError(f"{path}: {listed!r} is no Class/v_Class_g01_c01.avi of a class in classInd.txt")
            clips.append(Clip(listed, match[1], int(match[2]), part))
    return clips
