"""Kinetics-400: ten seconds of each of some 260,000 videos on YouTube, 400 actions (Kay et al. 2017).

    kinetics400/train/abseiling/-3B32lodo2M_000059_000069.mp4      class, then YouTube's id and the seconds; val alike
    kinetics400/train.csv, val.csv or validate.csv                 optional, also in kinetics400/annotations:
                                                                   label,youtube_id,time_start,time_end,split
    kinetics400_label_map.txt                                      optional, here, in kinetics400 or in labels: one
                                                                   class per line, in the order of pretrained networks

With a list, a video may lie in any folder of its part, or in none, and its class is the listed one. Videos disappear
from YouTube, so every copy lacks some: videos that are listed but missing, or empty files, are left out, and a line
says how many are there. Accuracies on two copies are of two different sets. Without lists, the set is what lies there.
Names of classes are compared by letters and digits, as folders are often called `air_drumming`.

Test is the official validation part, since labels of the official test are not public. Validation is a twentieth of
each class of training, chosen by YouTube id (`hold_out_videos`). A YouTube video that is in training and in test is
left out of training. `group` is the id; identities are unknown, so `person` is -1.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import YOUTUBE_ID, letters, no_argument, read_lines, read_table
from vidveil.data.readers.find import files_in, first_file, present_files
from vidveil.data.readers.splits import hold_out_videos
from vidveil.data.readers.subsampled import subsampled

NAMES = "kinetics400_label_map.txt"
LISTS = {"train": ("train.csv",), "val": ("val.csv", "validate.csv")}
SPLIT_NAMES = {"train": ("train",), "val": ("val", "validate", "validation")}
COLUMNS = ("label", "youtube_id", "time_start", "time_end")
FILE = re.compile(rf"{YOUTUBE_ID}_\d{{6}}_\d{{6}}\.mp4", re.ASCII)
ROW = re.compile(rf"[^,]+,{YOUTUBE_ID},\d{{1,6}},\d{{1,6}}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Clip:
    path: str
    """`train/abseiling/-3B32lodo2M_000059_000069.mp4`"""
    action: str
    """As the list or the folder has it."""
    video: str
    """YouTube's id."""


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    no_argument("kinetics400", argument)
    folder = root / "kinetics400"
    test = read_part(folder, "val")
    test_ids = {clip.video for clip in test}
    train = [clip for clip in read_part(folder, "train") if clip.video not in test_ids]
    if not train:
        raise DataError(f"all videos in {folder / 'train'} are in {folder / 'val'} too: nothing is left to train on")
    clips = train + test
    action, actions = number_classes(root, [clip.action for clip in clips])
    held_out = hold_out_videos([clip.video for clip in train], action[: len(train)])
    split = ["val" if clip.video in held_out else "train" for clip in train] + ["test"] * len(test)
    paths = [clip.path for clip in clips]
    return ClipSet(
        name="kinetics400",
        videos=subsampled("kinetics400", folder, paths, size=size),
        ids=paths,
        split=np.array(split, dtype="<U5"),
        group=np.array([clip.video for clip in clips]),
        action=action,
        actions=actions,
    )


def read_part(folder: Path, part: str) -> list[Clip]:
    """The present clips of the official `train` or `val`, in alphabetical order or as listed."""
    places = [place / name for place in (folder, folder / "annotations") for name in LISTS[part]]
    listed = first_file(places)
    videos = _videos_in(folder / part, by_class=listed is None)
    if not videos:
        raise DataError(f"{folder / part} holds no video: CLASS/ID_000012_000022.mp4 and so on belong there")
    if listed is None:
        return [Clip(f"{part}/{path}", Path(path).parent.name, Path(path).name.rsplit("_", 2)[0]) for path in videos]
    return _read_list(listed, folder / part, {Path(path).name: path for path in videos})


def _videos_in(folder: Path, *, by_class: bool) -> list[str]:
    """Paths below the folder, of one level or two, without empty files."""
    found = files_in(folder)
    for path in found:
        if not FILE.fullmatch(Path(path).name):
            raise DataError(
                f"{folder / path} has no name of Kinetics: ID_000012_000022.mp4, YouTube's id and the seconds"
            )
        if by_class and "/" not in path:
            raise DataError(
                f"{folder / path} is in no folder of a class: put it into {folder.name}/CLASS, or "
                f"{LISTS[folder.name][0]} with {','.join(COLUMNS)} into {folder.parent}"
            )
    return found


def _read_list(listed: Path, folder: Path, videos: dict[str, str]) -> list[Clip]:
    """The listed clips that are among `videos`, which are paths in `folder` by name."""
    rows = read_table(listed, COLUMNS)
    part, clips = folder.name, {}
    for line, row in enumerate(rows, 2):
        label, video, start, end = values = [row[column].strip() for column in COLUMNS]
        if not ROW.fullmatch(",".join(values)):
            raise DataError(
                f"{listed}, line {line}: a class, an id of 11 letters and two whole seconds are wanted, "
                f"not {','.join(values)!r}"
            )
        if row.get("split") and row["split"].strip() not in SPLIT_NAMES[part]:
            raise DataError(f"{listed}, line {line}: {row['split']!r} is no split of this list; it is of {part}")
        name = f"{video}_{int(start):06d}_{int(end):06d}.mp4"
        if name in clips:
            raise DataError(f"{listed}, line {line}: {name} is listed twice")
        clips[name] = Clip(f"{part}/{videos.get(name, name)}", label, video)
    listed_clips = list(clips.values())
    return [listed_clips[i] for i in present_files("kinetics400", listed, folder, list(clips), videos)]


def number_classes(root: Path, labels: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """(N,) and the names: those of the label map in its order, else those that occur, sorted."""
    path = first_file(folder / NAMES for folder in (root / "kinetics400", root, root / "labels"))
    names = [line.strip() for line in read_lines(path, "Kinetics-400")] if path else sorted(set(labels))
    number: dict[str, int] = {}
    for i, name in enumerate(names):
        first = number.setdefault(letters(name), i)
        if first != i:
            where = path or root / "kinetics400"
            raise DataError(
                f"{where}: {names[first]!r} and {name!r} are one class by their letters; rename one of them"
            )
    if unknown := next((label for label in labels if letters(label) not in number), None):
        raise DataError(f"{path} has no class {unknown!r}: it should name every class of the videos, one per line")
    return np.array([number[letters(label)] for label in labels], np.int64), names
