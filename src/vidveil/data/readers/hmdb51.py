"""HMDB51 in its official layout, and VP-HMDB51's labels of visible private attributes.

    hmdb51/brush_hair/April_09_brush_hair_u_nm_np1_ba_goo_0.avi     class, clip
    testTrainMulti_7030_splits/brush_hair_test_split1.txt           April_09_brush_hair_u_nm_np1_ba_goo_0.avi 1
                                                                    0: in no split, 1: training, 2: test
    hmdb51_privacy_attribute_label.pickle                           optional: {"brush_hair/April_….mp4": array (1, 5)}

Lists and labels lie next to `hmdb51` or in it.

Identities are unknown, so `person` is -1. What is known of a clip's source is its file name: a title, the class, and
six tags. We assume that clips of one title are of one film or upload. Only letters are compared, so that parts are
joined (`Return_of_the_King_1` to `_13`, `Oceans11` to `13`): joining too many does no harm, a film in two splits would.
That gives 1,255 films for 6,766 clips. Titles that differ in letters may still be one film.

Validation is a fifth of training, in whole films: it shares none with the rest of training. Test is the official one,
whose authors separated titles within a class, but neither across classes nor the parts of a film. In split 1, by this
rule, 128 films are in training and in test, with 544 of the 1,530 test clips: an actor or a place may be known from
training, and test results may be better than those of validation. `group` is the film, and in test another group of its
own; the tag `film` is the same in both.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import match_lines
from vidveil.data.readers.splits import numbered, split_number
from vidveil.data.readers.subsampled import subsampled
from vidveil.data.readers.vp_labels import ATTRIBUTES, find_labels, match_labels

LABELS = "hmdb51_privacy_attribute_label.pickle"
LISTS = "testTrainMulti_7030_splits"
VALIDATION = 0.2  # of a class's training clips, at most
USUAL = 51  # frames that are kept of a clip: PA-HMDB51's 515 have 102 on average

# visible part of the body, camera, people, view, quality, running number
TAGS = re.compile(r"_[fhlu]_(?:cm|nm)_np\d+_(?:ba|fr|le|ri)_(?:bad|goo|med)_\d+$")


@dataclass(frozen=True, slots=True)
class Clip:
    path: str
    """`brush_hair/April_09_brush_hair_u_nm_np1_ba_goo_0.avi`"""
    action: str
    film: str
    """Guessed from the title, see above."""
    part: str
    """`train`, `test`, or `unused`."""


PARTS = {"0": "unused", "1": "train", "2": "test"}


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    number = split_number("hmdb51", argument)
    clips = [clip for clip in read_split(root, number) if clip.part != "unused"]
    attributes = np.zeros((len(clips), 0), np.float32)
    if labels := labels_in(root):
        attributes = match_labels(labels, [clip.path for clip in clips])
    return clip_set(f"hmdb51:{number}", clips, [clip.part for clip in clips], attributes, root=root, size=size)


def clip_set(
    name: str, clips: Sequence[Clip], parts: Sequence[str], attributes: NDArray[np.float32], *, root: Path, size: int
) -> ClipSet:
    """Training and test clips; a fifth of the former becomes validation."""
    paths, films = [clip.path for clip in clips], [clip.film for clip in clips]
    action, actions = numbered([clip.action for clip in clips])
    film, names = numbered(films)
    split = np.array(parts, dtype="<U5")
    training = split == "train"
    held_out = validation_films(film[training], action[training], (len(names), len(actions)))
    split[training & np.isin(film, held_out)] = "val"
    return ClipSet(
        name=name,
        videos=subsampled("hmdb51", root / "hmdb51", paths, size=size, usual=USUAL),
        ids=paths,
        split=split,
        group=np.where(training, films, [f"{name}, tested" for name in films]),
        action=action,
        actions=actions,
        attributes=attributes,
        attribute_names=ATTRIBUTES if attributes.shape[1] else (),
        tags={"film": film},
    )


def validation_films(film: NDArray[np.int64], action: NDArray[np.int64], shape: tuple[int, int]) -> NDArray[np.int64]:
    """Films to hold out of training: in a fixed random order, as long as no class loses more than a fifth.

    Args:
        film, action: (N,) of the training clips.
        shape: numbers of films and classes.
    """
    clips = np.zeros(shape, np.int64)
    np.add.at(clips, (film, action), 1)
    room = np.ceil(VALIDATION * clips.sum(axis=0)).astype(np.int64)  # (classes,)
    chosen = []
    for number in np.random.default_rng(0).permutation(len(clips)):
        if clips[number].any() and (clips[number] <= room).all():
            room -= clips[number]
            chosen.append(number)
    return np.array(chosen, np.int64)


def read_split(root: Path, number: int) -> list[Clip]:
    """All clips of all classes, also those that belong to no split."""
    lists, ending = _lists_in(root), f"_test_split{number}.txt"
    listed = {path.name.removesuffix(ending): path for path in sorted(lists.glob(f"*{ending}"))}
    if not listed:
        raise DataError(f"{lists} has no file CLASS{ending}: it should have one for each class")
    videos = root / "hmdb51"
    for folder in sorted(videos.iterdir()) if videos.is_dir() else ():
        if folder.name not in listed and folder.is_dir() and any(folder.glob("*.avi")):
            raise DataError(f"{lists} has no {folder.name}{ending}, but {folder} holds videos of that class")
    return [clip for action, path in listed.items() for clip in _read_class(path, action)]


def labels_in(root: Path) -> Path | None:
    """VP-HMDB51's pickle."""
    return find_labels(LABELS, root, root / "hmdb51")


def film_of(file: str, action: str) -> str:
    """The letters of the title in a clip's name; the title itself if it has no letters."""
    title = TAGS.sub("", Path(file).stem).casefold().removesuffix(f"_{action.casefold()}")
    return re.sub("[^a-z]+", "", title) or title


def _lists_in(root: Path) -> Path:
    places = (root / LISTS, root / "hmdb51" / LISTS)
    if found := next((place for place in places if place.is_dir()), None):
        return found
    raise DataError(f"there is no {places[0]}: HMDB51's lists of splits, CLASS_test_split1.txt and so on, belong there")


def _read_class(path: Path, action: str) -> list[Clip]:
    form = "clip.avi and 0, 1 or 2 (in no split, training, test)"
    lines = match_lines(path, "HMDB51", r"([^/\\\s]+\.avi)\s+([012])", form)
    return [
        Clip(f"{action}/{name}", action, film_of(name, action), PARTS[flag])
        for name, flag in map(re.Match.groups, lines)
    ]
