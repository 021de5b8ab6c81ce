"""PA-HMDB51: 515 videos of HMDB51 whose every frame says what can be told about the people in it.

    PrivacyAttributes/brush_hair.json      one file a class, beside `hmdb51`, or in `PA-HMDB51` beside it:

    {"April_09_brush_hair_u_nm_np1_ba_goo_0.avi": {"skin_color": [[0, 57, 1], [58, 80, [1, 2]]], "face": …, …}}
                                                   first frame, last frame, value: counted from 0, the last one included

A value is 0 where the attribute cannot be told, else which it is, or a list of several; of nudity 0 is an answer, too:
none. What is read is whether it is 0. Frames that no range covers (0.2 % of them) are unknown. Where ranges overlap,
the later one holds.

As a set, the 515 videos are test and all others of HMDB51 are training and validation (`hmdb51`), whatever the official
splits do with them: so its authors use it. It names no attributes to train on. Those of training are VP-HMDB51's, which
is needed: the same five, but named by other people for whole videos, so the two differ. Of the 515, both agree on .95,
.81, .93, .71 and .84 (skin colour, face, gender, nudity, relationship); nudity is told of .59 here and of .34 there. A
tested clip has an attribute if any of its frames has.

By our guess of films, 457 of the 515 are of a film that is trained on, 404 of them in the same class.

    pa_hmdb51                 whole videos
    pa_hmdb51:frames          frames of them (`single_frames`): of tested videos with the labels of that very frame, of
                              the others with those of their video
    pa_hmdb51:frames_60_40    frames of the 515 alone, all with their own labels: 60 % of the videos, drawn by lot, are
                              trained on and 40 % tested, as STPrivacy does. Its draw was not released, so `data_seed`
                              gives others

Of the 515's 52,533 frames 2,963 become rows, 5.8 a video. What can be told of them is told of .690 on the mean of the
five attributes, of all frames of .691. By our guess of films, a third of the 206 tested videos of 60/40 are of a film
that is trained on; in all three sets a group is a film, so intervals are over films, of which the 515 have 356.
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
from vidveil.data.readers.published import match_labels, read_json
from vidveil.data.single_frames import by_frame

FOLDER = "PrivacyAttributes"
SPELLED = ("skin_color", "face", "gender", "nudity", "relationship")
"""The five attributes in their order, as the files spell them."""
LONGEST = 100_000  # frames; HMDB51's clips have some hundred


TRAINED = 0.6  # of the 515, in 60/40


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    if argument not in (None, "frames", "frames_60_40"):
        raise UsageError(f"pa_hmdb51 takes frames or frames_60_40 after a colon, not {argument!r}")
    by_time = read_frame_labels(root)
    if argument == "frames_60_40":
        return by_frame(_divided(by_time, seed, root=root, size=size), by_time)
    tested = {path: np.nanmax(each, axis=0) for path, each in by_time.items()}
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
    return whole if argument is None else by_frame(whole, by_time)


def _all_clips(root: Path, tested: Collection[str]) -> list[hmdb51.Clip]:
    """Of HMDB51, which must know all of the 515."""
    clips = hmdb51.read_split(root, 1)  # each split names all clips
    if strange := set(tested) - {clip.path for clip in clips}:
        raise DataError(f"{_folder(root)}: HMDB51's lists know no {min(strange)}")
    if silent := sorted({clip.action for clip in clips} - {path.split("/")[0] for path in tested}):
        raise DataError(
            f"{_folder(root)} has no {silent[0]}.json, or no video in it: PA-HMDB51 has one for each class of HMDB51, "
            "and what it does not name would be trained on"
        )
    return clips


def _divided(by_time: Mapping[str, NDArray[np.float32]], seed: int, *, root: Path, size: int) -> ClipSet:
    """The 515 whole videos, in two parts by lot."""
    clips = [clip for clip in _all_clips(root, by_time) if clip.path in by_time]
    order = np.random.default_rng(seed).permutation(len(clips))
    trained = set(order[: round(TRAINED * len(clips))].tolist())
    parts = ["train" if row in trained else "test" for row in range(len(clips))]
    attributes = np.stack([np.nanmax(by_time[clip.path], axis=0) for clip in clips])
    return hmdb51.clip_set("pa_hmdb51:frames_60_40", clips, parts, attributes, root=root, size=size)


def read_frame_labels(root: Path) -> dict[str, NDArray[np.float32]]:
    """(T, 5) of each video by `class/clip.avi`, 1 or 0, NaN where nobody said. T is up to the last frame that is named.

    Rows are frames of the video's own. Of what is decoded, frame i is row `published.EVERY` · i.
    """
    folder, found = _folder(root), {}
    for path in sorted(folder.glob("*.json")):
        videos = read_json(path)
        if not isinstance(videos, dict):
            raise DataError(f"{path} should be {{video: {{attribute: [[first, last, value], …]}}}}")
        for name, told in videos.items():
            found[f"{path.stem}/{name}"] = frame_labels(told, f"{path}: {name}")
    if not found:
        raise DataError(f"{folder} labels no video: it should hold PA-HMDB51's files, one CLASS.json for each class")
    return found


def frame_labels(told: object, where: str = "a video") -> NDArray[np.float32]:
    """(T, 5) out of {attribute: [[first, last, value], …]}. `where` is for the person who has to mend it."""
    if not isinstance(told, dict):
        raise DataError(f"{where} should be {{attribute: [[first, last, value], …]}}")
    columns = [_ranges(told.get(name), f"{where}: {name}") for name in SPELLED]
    labels = np.full((1 + max(last for each in columns for _, last, _ in each), len(SPELLED)), np.nan, np.float32)
    for column, each in enumerate(columns):
        for first, last, visible in each:
            labels[first : last + 1, column] = visible
    return labels


def _ranges(told: Any, where: str) -> list[tuple[int, int, bool]]:
    """First and last frame, and whether it can be told."""
    if not isinstance(told, list) or not told:
        raise DataError(f"{where} should be [[first, last, value], …], not {json.dumps(told)[:60]}")
    ranges = []
    for one in told:
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
    places = (root / FOLDER, root / "PA-HMDB51" / FOLDER)
    return next((place for place in places if place.is_dir()), places[0])
