"""PA-HMDB51: 515 videos of HMDB51, labelled frame by frame with the visible private attributes.

    PrivacyAttributes/brush_hair.json      one file per class, next to `hmdb51`, or in `PA-HMDB51` next to it:

    {"April_09_brush_hair_u_nm_np1_ba_goo_0.avi": {"skin_color": [[0, 57, 1], [58, 80, [1, 2]]], "face": …, …}}
                                                   first frame, last frame, value: counted from 0, the last one included

A value is 0 where the attribute is not visible, else its class, or a list of several; for nudity 0 means none. What is
read is whether it is 0. Frames that no range covers (0.2 % of them) are unknown. Where ranges overlap, the later one
holds.

As a set, the 515 videos are test and all others of HMDB51 are training and validation (`hmdb51`), independent of the
official splits, as its authors use it. It has no attributes for training; these are VP-HMDB51's, which is required: the
same five, but labelled by other people for whole videos, so the two differ. On the 515, they agree on .95, .81, .93,
.71 and .84 (skin colour, face, gender, nudity, relationship); nudity is visible in .59 of them here and in .34 there. A
test clip has an attribute if any of its frames has.

By the films guessed from titles, 457 of the 515 are of a film that is in training, 404 of them in the same class.

    pa_hmdb51                 whole videos
    pa_hmdb51:frames          frames of them (`single_frames`): those of test videos with the labels of that very frame,
                              the others with those of their video
    pa_hmdb51:frames_60_40    frames of the 515 alone, all with their own labels: a random 60 % of the videos are
                              training, 40 % test, as in STPrivacy. Its split was not released: `data_seed` gives others

Of the 515's 52,533 frames 2,963 become rows, 5.8 per video. The mean prevalence of the five attributes is .690 in these
rows and .691 in all frames. By the guessed films, a third of the 206 test videos of 60/40 are of a film that is in
training; in all three sets a group is a film, so intervals are over films, of which the 515 have 356.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.readers import hmdb51
from vidveil.data.readers.annotations import read_json
from vidveil.data.readers.find import first_folder
from vidveil.data.readers.vp_labels import match_labels
from vidveil.data.single_frames import by_frame

FOLDER = "PrivacyAttributes"
SPELLED = ("skin_color", "face", "gender", "nudity", "relationship")
"""The five attributes in their order, as the files spell them."""
LONGEST = 100_000  # frames; HMDB51's clips have some hundred
TRAINING_SHARE = 0.6  # of the 515, in 60/40


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    if argument not in (None, "frames", "frames_60_40"):
        raise UsageError(f"pa_hmdb51 takes frames or frames_60_40 after a colon, not {argument!r}")
    labels_by_frame = read_frame_labels(root)
    if argument == "frames_60_40":
        return by_frame(_random_60_40(labels_by_frame, seed, root=root, size=size), labels_by_frame)
    tested = {path: np.nanmax(each, axis=0) for path, each in labels_by_frame.items()}
    labels = hmdb51.labels_in(root)
    if labels is None:
        raise DataError(
            f"there is no {root / hmdb51.LABELS}: PA-HMDB51 has labels for its 515 videos only, "
            "those to train on are VP-HMDB51's"
        )
    clips = _all_clips(root, tested)
    attributes = match_labels(labels, [clip.path for clip in clips])
    for row, clip in enumerate(clips):
        if clip.path in tested:
            attributes[row] = tested[clip.path]
    parts = ["test" if clip.path in tested else "train" for clip in clips]
    name = "pa_hmdb51" if argument is None else f"pa_hmdb51:{argument}"
    whole = hmdb51.clip_set(name, clips, parts, attributes, root=root, size=size)
    return whole if argument is None else by_frame(whole, labels_by_frame)


def _all_clips(root: Path, tested: Collection[str]) -> list[hmdb51.Clip]:
    """All clips of HMDB51, which must include the 515."""
    clips = hmdb51.read_split(root, 1)  # each split names all clips
    if unknown := set(tested) - {clip.path for clip in clips}:
        raise DataError(f"{_folder(root)}: HMDB51's lists have no {min(unknown)}")
    if missing := sorted({clip.action for clip in clips} - {path.split("/")[0] for path in tested}):
        raise DataError(
            f"{_folder(root)} has no {missing[0]}.json, or no video in it: PA-HMDB51 has one for each class of HMDB51, "
            "and what it does not name would be trained on"
        )
    return clips


def _random_60_40(labels: Mapping[str, NDArray[np.float32]], seed: int, *, root: Path, size: int) -> ClipSet:
    """The 515 whole videos, in two random parts."""
    clips = [clip for clip in _all_clips(root, labels) if clip.path in labels]
    order = np.random.default_rng(seed).permutation(len(clips))
    training = set(order[: round(TRAINING_SHARE * len(clips))].tolist())
    parts = ["train" if row in training else "test" for row in range(len(clips))]
    attributes = np.stack([np.nanmax(labels[clip.path], axis=0) for clip in clips])
    return hmdb51.clip_set("pa_hmdb51:frames_60_40", clips, parts, attributes, root=root, size=size)


def read_frame_labels(root: Path) -> dict[str, NDArray[np.float32]]:
    """(T, 5) of each video by `class/clip.avi`, 1 or 0, NaN if unknown, up to the last labelled frame.

    Rows are frames of the original video: frame i of the subsampled one is row `subsampled.EVERY` · i.
    """
    folder, found = _folder(root), {}
    for path in sorted(folder.glob("*.json")):
        videos = read_json(path)
        if not isinstance(videos, dict):
            raise DataError(f"{path} should be {{video: {{attribute: [[first, last, value], …]}}}}")
        for name, attributes in videos.items():
            found[f"{path.stem}/{name}"] = frame_labels(attributes, f"{path}: {name}")
    if not found:
        raise DataError(f"{folder} labels no video: it should hold PA-HMDB51's files, one CLASS.json for each class")
    return found


def frame_labels(attributes: object, where: str = "a video") -> NDArray[np.float32]:
    """(T, 5) from {attribute: [[first, last, value], …]}. `where` begins error messages."""
    if not isinstance(attributes, dict):
        raise DataError(f"{where} should be {{attribute: [[first, last, value], …]}}")
    columns = [_ranges(attributes.get(name), f"{where}: {name}") for name in SPELLED]
    labels = np.full((1 + max(last for each in columns for _, last, _ in each), len(SPELLED)), np.nan, np.float32)
    for column, each in enumerate(columns):
        for first, last, visible in each:
            labels[first : last + 1, column] = visible
    return labels


def _ranges(entries: Any, where: str) -> list[tuple[int, int, bool]]:
    """First and last frame, and whether the attribute is visible."""
    if not isinstance(entries, list) or not entries:
        raise DataError(f"{where} should be [[first, last, value], …], not {json.dumps(entries)[:60]}")
    ranges = []
    for one in entries:
        numbers: list[Any] = one if isinstance(one, list) and len(one) == 3 else [None] * 3
        first, last, value = numbers
        values = value if isinstance(value, list) and value else [value]
        if any(type(number) is not int for number in (first, last, *values)):
            raise DataError(f"{where}: {json.dumps(one)[:60]} should be [first, last, value], in whole numbers")
        if not 0 <= first <= last < LONGEST:
            raise DataError(f"{where}: frames {first} to {last} are no range: they count from 0, the first one first")
        ranges.append((first, last, any(values)))
    return ranges


def _folder(root: Path) -> Path:
    return first_folder(root, (FOLDER, f"PA-HMDB51/{FOLDER}"))
