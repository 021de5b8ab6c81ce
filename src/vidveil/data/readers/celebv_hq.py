"""CelebV-HQ: 35,666 clips of faces out of films and talks on YouTube, with 83 attributes (Zhu et al. 2022).

    celebv_hq/celebvhq_info.json          of the official repository: {"meta_info": {"appearance_mapping": [40 names],
                                          ...}, "clips": {"M2Ohb0FAaJU_1": {"ytb_id": "M2Ohb0FAaJU", "attributes":
                                          {"appearance": [0, 0, 1, ...], "emotion": {...}, ...}, ...}, ...}}
    celebv_hq/35666/M2Ohb0FAaJU_1.mp4     the clips, cut and cropped: as copies have them. The official program writes
                                          them to processed/ or downloaded_celebvhq/processed/; these are read, too

The action is the facial expression, one of eight; the private attributes are five of appearance: young, pointy nose,
male, rosy cheeks, brown hair (STPrivacy, table 4). Names are compared by their letters.

    "emotion": {"sep_flag": false, "labels": "neutral"}                                      one all the time
    "emotion": {"sep_flag": true, "labels": [{"emotion": "happy", "start_sec": 0, "end_sec": 1.3}, ...]}

Where an expression changes, we take the longest, and of two equally long ones the earlier. The tag `expressions` is
their number: STPrivacy has one per video and does not say how it was chosen.

STPrivacy splits 60 to 40 at random and does not publish its split, and clips of one YouTube video show one face in one
light. Our split is by video: sha256 of "DRAW ID" gives each id a number from 0 to 1; below .06 is validation, below .6
training, and the rest test. So in a copy that lacks clips, the others are in the same splits as everywhere. `celebv_hq`
is draw 0, `celebv_hq:1` another one.

Identities are not published: `person` is -1, `group` the YouTube video, and a famous face may well be in two splits.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidveil.core.errors import DataError, UsageError
from vidveil.data.catalogue import CELEBV_HQ
from vidveil.data.clips import ClipSet, Split
from vidveil.data.readers.annotations import YOUTUBE_ID, letters, read_json
from vidveil.data.readers.find import files_in, first_folder, present_files
from vidveil.data.readers.subsampled import subsampled

FOLDER, INFO = "celebv_hq", "celebvhq_info.json"
EXPRESSIONS = ("neutral", "happy", "sad", "anger", "fear", "surprise", "contempt", "disgust")
SYNONYMS = {"happiness": "happy", "sadness": "sad", "angry": "anger", "surprised": "surprise", "disgusted": "disgust"}
ATTRIBUTES = ("young", "pointy_nose", "male", "rosy_cheeks", "brown_hair")
VALIDATION, TRAINING = 0.06, 0.6  # a tenth of what is trained on; 60 to 40


@dataclass(frozen=True, slots=True)
class Clip:
    name: str
    """`M2Ohb0FAaJU_1`"""
    video: str
    """YouTube's id."""
    expression: str
    """The longest one."""
    expressions: int
    """Their number."""
    attributes: tuple[int, ...]
    """0 or 1 of each of `ATTRIBUTES`."""


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    draw = argument or "0"
    if not re.fullmatch(r"\d{1,9}", draw, re.ASCII):
        raise UsageError(f"celebv_hq takes the number of a draw of its split, not {argument!r}; write celebv_hq:1")
    folder = root / FOLDER
    listed = read_info(folder / INFO)
    place = first_folder(folder, CELEBV_HQ).relative_to(folder).as_posix()
    wanted = [f"{clip.name}.mp4" for clip in listed]
    there = set(files_in(folder / place))
    clips = [listed[i] for i in present_files("celebv_hq", folder / INFO, folder / place, wanted, there, "clips")]
    files = [f"{place}/{clip.name}.mp4" for clip in clips]
    return ClipSet(
        name=f"celebv_hq:{draw}",
        videos=subsampled("celebv_hq", folder, files, size=size, aspect=1),
        ids=[clip.name for clip in clips],
        split=np.array([split_of(clip.video, draw) for clip in clips], dtype="<U5"),
        group=np.array([clip.video for clip in clips]),
        action=np.array([EXPRESSIONS.index(clip.expression) for clip in clips], np.int64),
        actions=EXPRESSIONS,
        attributes=np.array([clip.attributes for clip in clips], np.float32),  # (N, 5)
        attribute_names=ATTRIBUTES,
        tags={"expressions": np.array([clip.expressions for clip in clips], np.int64)},
    )


def split_of(video: str, draw: str) -> Split:
    """The split of a YouTube video, which does not depend on the other videos."""
    number = int.from_bytes(hashlib.sha256(f"{draw} {video}".encode()).digest()[:8], "big") / 2**64
    return "val" if number < VALIDATION else "train" if number < TRAINING else "test"


def read_info(path: Path) -> list[Clip]:
    """All clips that the file names, in its order."""
    info = read_json(path)
    try:
        names, clips = info["meta_info"]["appearance_mapping"], dict(info["clips"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f'{path} should be {{"meta_info": {{"appearance_mapping": […], …}}, "clips": {{…}}}}: '
            "take it from CelebV-HQ's repository again"
        ) from error
    if not clips:
        raise DataError(f"{path} names no clips: take it from CelebV-HQ's repository again")
    number = {letters(str(name)): i for i, name in enumerate(names)}
    if missing := [name for name in ATTRIBUTES if letters(name) not in number]:
        raise DataError(f"{path}: appearance_mapping has no {missing[0]!r} among its {len(names)} names")
    columns = [number[letters(name)] for name in ATTRIBUTES]
    return [_read_clip(path, str(name), about, columns, len(names)) for name, about in clips.items()]


def _read_clip(path: Path, name: str, about: Any, columns: list[int], width: int) -> Clip:
    try:
        video, appearance = about["ytb_id"], about["attributes"]["appearance"]
        emotion = about["attributes"]["emotion"]
        labels = emotion["labels"]
        segments = labels if emotion["sep_flag"] else [{"emotion": labels, "start_sec": 0, "end_sec": 1}]
        durations = _durations(segments)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}, clip {name!r}: ytb_id, and attributes with appearance and emotion are wanted, an emotion as "
            '{"sep_flag": false, "labels": "neutral"} or as a list with start_sec before end_sec'
        ) from error
    if not isinstance(video, str) or not re.fullmatch(YOUTUBE_ID, video, re.ASCII):
        raise DataError(f"{path}, clip {name!r}: ytb_id is an id of YouTube, 11 letters, not {video!r}")
    if not re.fullmatch(r"[\w-]+", name, re.ASCII):
        raise DataError(f"{path}: a clip is called M2Ohb0FAaJU_1 or the like, not {name!r}")
    if not isinstance(appearance, list) or len(appearance) != width or any(value not in (0, 1) for value in appearance):
        raise DataError(f"{path}, clip {name!r}: appearance is {width} numbers of 0 or 1, one a name of its mapping")
    if unknown := [one for one in durations if one not in EXPRESSIONS]:
        raise DataError(f"{path}, clip {name!r}: no expression is called {unknown[0]!r}; {', '.join(EXPRESSIONS)} are")
    longest = max(durations, key=lambda one: durations[one])  # the first of several equally long ones
    return Clip(name, video, longest, len(durations), tuple(int(appearance[i]) for i in columns))


def _durations(segments: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds of each expression, in the order of their first segments."""
    durations: dict[str, float] = {}
    for one in sorted(segments, key=lambda one: float(one["start_sec"])):
        word = str(one["emotion"]).casefold()
        seconds = float(one["end_sec"]) - float(one["start_sec"])
        if seconds < 0:
            raise ValueError
        word = SYNONYMS.get(word, word)
        durations[word] = durations.get(word, 0.0) + seconds
    if not durations:
        raise ValueError
    return durations
