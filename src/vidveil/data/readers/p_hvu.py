"""P-HVU: the videos of HVU that are tagged with actions, objects and scenes at once (Dave et al. 2022, of Diba et al.).

    hvu/HVU_Train_V1.0.csv, HVU_Val_V1.0.csv       out of the official archives, also in hvu/annotations:
                                                   Tags,youtube_id,time_start,time_end with tags joined by |
    hvu/HVU_Tags_Categories_V1.0.csv               Tag,Category: 739 actions, 1,678 objects, 248 scenes, and others
    hvu/train/ID_000057_000067.mp4, hvu/val/...    also videos_train and videos_val, with folders in them or without

Names end in seconds, and the official program writes one more underscore after them (ID_000057_000067_.mp4); that of
MMAction2 counts tenths of a second (ID_000570_000670.mp4). The naming by which most videos of a part are found is used
for all of the part. If a list has a video twice, the first line counts.

The task is to recognize several actions at once (`action_labels`, with `action` -1 for all). The private attributes are
objects and scenes (STPrivacy, table 5):

    p_hvu, p_hvu:both         objects and scenes of at least one in a hundred videos of the official training list: of
                              rarer ones a part of the set has too few for training or evaluation
    p_hvu:objects, :scenes    only these
    p_hvu:both,every          every tag of the categories, as in published results

P-HVU itself is published as two numbers, 245,212 training and 16,012 test videos. We take each video of HVU's lists
that has a tag of all three categories, and assume that these are the same videos.

Test is the official validation. Validation is a twentieth of training, by YouTube id. A YouTube video in training and
test is left out of training. `group` is the id; identities are unknown, so `person` is -1.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.data.catalogue import HVU
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import YOUTUBE_ID, read_table
from vidveil.data.readers.find import files_in, first_file, first_folder, present_files
from vidveil.data.readers.splits import hold_out_videos
from vidveil.data.readers.subsampled import subsampled

LISTS = {part: HVU[part] for part in ("train", "val")}
CATEGORIES = HVU["tags"]
COLUMNS = ("Tags", "youtube_id", "time_start", "time_end")
WHICH = {"both": ("object", "scene"), "objects": ("object",), "scenes": ("scene",)}
FREQUENT = 0.01  # share of the training list that has a tag
NUMBER = re.compile(r"\d{1,6}(\.\d*)?", re.ASCII)
NAMES: tuple[Callable[[str, float, float], str], ...] = (
    lambda video, start, end: f"{video}_{int(start):06d}_{int(end):06d}.mp4",
    lambda video, start, end: f"{video}_{int(start):06d}_{int(end):06d}_.mp4",
    lambda video, start, end: f"{video}_{int(start * 10):06d}_{int(end * 10):06d}.mp4",
)


@dataclass(frozen=True, slots=True)
class Clip:
    video: str
    """YouTube's id."""
    start: float
    end: float
    tags: tuple[str, ...]


Categories = dict[str, dict[str, int]]
"""For each category its tags, with their indices."""


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    which, comma, every = (argument or "both").partition(",")
    if which not in WHICH or (comma and every != "every"):
        raise UsageError(f"p_hvu hides both, objects or scenes, often or every, not {argument!r}; write p_hvu:scenes")
    folder = root / "hvu"
    categories = read_categories(find(folder, CATEGORIES))
    lists = {part: read_list(find(folder, file), categories) for part, file in LISTS.items()}
    test, test_paths = _present(folder, "val", lists["val"])
    train, train_paths = _present(folder, "train", lists["train"])
    test_ids = {clip.video for clip in test}
    keep = [i for i, clip in enumerate(train) if clip.video not in test_ids]
    if not keep:
        raise DataError(f"all videos of {LISTS['train']} that are there are in test, too: nothing is left to train on")
    train = [train[i] for i in keep]
    paths = [train_paths[i] for i in keep] + test_paths
    clips = train + test
    held_out = hold_out_videos([clip.video for clip in train], np.zeros(len(train), np.int64))
    split = ["val" if clip.video in held_out else "train" for clip in train] + ["test"] * len(test)
    private = [(kind, tag) for kind in WHICH[which] for tag in _columns(lists["train"], categories[kind], bool(every))]
    actions = categories["action"]
    return ClipSet(
        name=f"p_hvu:{which}{comma}{every}",
        videos=subsampled("p_hvu", folder, paths, size=size),
        ids=paths,
        split=np.array(split, dtype="<U5"),
        group=np.array([clip.video for clip in clips]),
        action=np.full(len(clips), -1, np.int64),
        actions=tuple(actions),
        attributes=tagged(clips, [tag for _, tag in private]),
        attribute_names=tuple(f"{kind}_{tag}" for kind, tag in private),
        action_labels=tagged(clips, tuple(actions)),
    )


def tagged(clips: Sequence[Clip], tags: Sequence[str]) -> NDArray[np.float32]:
    """(N, len(tags)) 1 where a clip has the tag, else 0."""
    number: dict[str, list[int]] = {}
    for i, tag in enumerate(tags):  # one that is an object and a scene has two columns
        number.setdefault(tag, []).append(i)
    found = np.zeros((len(clips), len(tags)), np.float32)
    for row, clip in zip(found, clips, strict=True):
        row[[i for tag in clip.tags for i in number.get(tag, ())]] = 1
    return found


def _columns(listed: Sequence[Clip], tags: dict[str, int], every: bool) -> list[str]:
    """The tags of a category that are attributes. Counted in the whole list, so that every copy has the same."""
    count = np.zeros(len(tags), np.int64)
    for clip in listed:
        count[[tags[tag] for tag in set(clip.tags) if tag in tags]] += 1
    return [tag for tag, times in zip(tags, count, strict=True) if every or times >= FREQUENT * len(listed)]


def find(folder: Path, file: str) -> Path:
    """A file that comes with HVU."""
    path = first_file((folder / file, folder / "annotations" / file))
    if path is None:
        packed = folder / file.replace(".csv", ".zip")
        raise DataError(f"{packed} is still packed: unpack it" if packed.is_file() else f"no {file} in {folder}")
    return path


def read_categories(path: Path) -> Categories:
    categories: Categories = {"action": {}, "object": {}, "scene": {}}
    for line, row in enumerate(read_table(path, ("Tag", "Category")), 2):
        tag, category = row["Tag"].strip(), row["Category"].strip()
        if not tag or not category:
            raise DataError(f"{path}, line {line}: a tag and its category are wanted, such as dance,action")
        tags = categories.setdefault(category, {})
        tags.setdefault(tag, len(tags))
    for category in ("action", "object", "scene"):
        if not categories[category]:
            raise DataError(f"{path} has no tag of {category}: a line is dance,action or beach,scene")
    return categories


def read_list(path: Path, categories: Categories) -> list[Clip]:
    """The listed videos with a tag of all three categories, once each, in the order of the list."""
    known = {tag for tags in categories.values() for tag in tags}
    wanted = [categories[category].keys() for category in ("action", "object", "scene")]
    clips: dict[tuple[str, float, float], Clip] = {}
    for line, row in enumerate(read_table(path, COLUMNS), 2):
        text, video, start, end = (row[column].strip() for column in COLUMNS)
        times = NUMBER.fullmatch(start) and NUMBER.fullmatch(end) and float(start) < float(end)
        if not times or not re.fullmatch(YOUTUBE_ID, video, re.ASCII):
            raise DataError(
                f"{path}, line {line}: tags, an id of 11 letters and two times in seconds are wanted, "
                f"not {video!r}, {start!r}, {end!r}"
            )
        tags = tuple(text.split("|"))
        unknown = next((tag for tag in tags if tag not in known), None)
        if unknown is not None:
            raise DataError(f"{path}, line {line}: {unknown!r} is in no category; tags are joined by |, as dance|beach")
        if all(not category.isdisjoint(tags) for category in wanted):
            key = video, float(start), float(end)
            clips.setdefault(key, Clip(*key, tags))
    if not clips:
        raise DataError(f"{path} has no video with an action, an object and a scene: take it from HVU again")
    return list(clips.values())


def _present(folder: Path, part: str, listed: Sequence[Clip]) -> tuple[list[Clip], list[str]]:
    """The listed videos that are present, and their paths in `folder`."""
    place = first_folder(folder, (part, f"videos_{part}"))
    found = {Path(path).name: path for path in files_in(place)}
    namings = [[name(clip.video, clip.start, clip.end) for clip in listed] for name in NAMES]
    names = max(namings, key=lambda names: sum(name in found for name in names))
    first: dict[str, int] = {}
    for i in present_files("p_hvu", find(folder, LISTS[part]), place, names, found):
        first.setdefault(names[i], i)
    return [listed[i] for i in first.values()], [f"{place.name}/{found[name]}" for name in first]
