"""CelebV-HQ: 35,666 clips of faces out of films and talks on YouTube, with 83 attributes (Zhu et al. 2022).

    celebv_hq/celebvhq_info.json          of the official repository: {"meta_info": {"appearance_mapping": [40 names],
                                          ...}, "clips": {"M2Ohb0FAaJU_1": {"ytb_id": "M2Ohb0FAaJU", "attributes":
                                          {"appearance": [0, 0, 1, ...], "emotion": {...}, ...}, ...}, ...}}
    celebv_hq/35666/M2Ohb0FAaJU_1.mp4     the clips, cut and cropped: as copies have them. The official program writes
                                          them to processed/ or downloaded_celebvhq/processed/; these are read, too

What is done is the facial expression, one of eight, and five attributes of appearance are to be hidden: young, pointy
nose, male, rosy cheeks, brown hair (STPrivacy, table 4). Names are compared by their letters.

    "emotion": {"sep_flag": false, "labels": "neutral"}                                      one all the time
    "emotion": {"sep_flag": true, "labels": [{"emotion": "happy", "start_sec": 0, "end_sec": 1.3}, ...]}

Where an expression changes, we take the one that is there longest, and of two the earlier one. The tag `expressions`
says how many there are: STPrivacy speaks of one a video and does not say how it got there.

STPrivacy splits 60 to 40 by lot, we do not know by which, and clips of one YouTube video show one face in one light. So
ours is by the video: sha256 of "DRAW ID" gives each id a number from 0 to 1; below .06 is validation, below .6
training, and the rest test. A copy that lacks clips has the others where all have them. `celebv_hq` is draw 0,
`celebv_hq:1` another one.

Who is seen is not published: `person` is -1, `group` the YouTube video, and a famous face may well be in two splits.
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
from vidveil.data.readers.published import read_json, thinned
from vidveil.data.readers.youtube import ID, files_in, letters, those_there

FOLDER, INFO = "celebv_hq", "celebvhq_info.json"
EXPRESSIONS = ("neutral", "happy", "sad", "anger", "fear", "surprise", "contempt", "disgust")
SPELLED = {"happiness": "happy", "sadness": "sad", "angry": "anger", "surprised": "surprise", "disgusted": "disgust"}
ATTRIBUTES = ("young", "pointy_nose", "male", "rosy_cheeks", "brown_hair")
VALIDATION, TRAINING = 0.06, 0.6  # a tenth of what is trained on; 60 to 40


@dataclass(frozen=True, slots=True)
class Clip:
    name: str
    """`M2Ohb0FAaJU_1`"""
    video: str
    """YouTube's id."""
    expression: str
    """The one that is there longest."""
    expressions: int
    """How many there are."""
    attributes: tuple[int, ...]
    """0 or 1 of each of `ATTRIBUTES`."""


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    draw = argument or "0"
    if not re.fullmatch(r"\d{1,9}", draw, re.ASCII):
        raise UsageError(f"celebv_hq takes the number of a draw of its split, not {argument!r}; write celebv_hq:1")
    folder = root / FOLDER
    listed = read_info(folder / INFO)
    place = next((place for place in CELEBV_HQ if (folder / place).is_dir()), CELEBV_HQ[0])
    wanted = [f"{clip.name}.mp4" for clip in listed]
    there = set(files_in(folder / place))
    clips = [listed[i] for i in those_there("celebv_hq", folder / INFO, folder / place, wanted, there, "clips")]
    files = [f"{place}/{clip.name}.mp4" for clip in clips]
    return ClipSet(
        name=f"celebv_hq:{draw}",
        videos=thinned("celebv_hq", folder, files, size=size, aspect=1),
        ids=[clip.name for clip in clips],
        split=np.array([split_of(clip.video, draw) for clip in clips], dtype="<U5"),
        group=np.array([clip.video for clip in clips]),
        action=np.array([EXPRESSIONS.index(clip.expression) for clip in clips], np.int64),
        actions=EXPRESSIONS,
        person=np.full(len(clips), -1, np.int64),
        attributes=np.array([clip.attributes for clip in clips], np.float32),  # (N, 5)
        attribute_names=ATTRIBUTES,
        tags={"expressions": np.array([clip.expressions for clip in clips], np.int64)},
    )


def split_of(video: str, draw: str) -> Split:
    """Where a YouTube video belongs, whatever else is there."""
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
        told = labels if emotion["sep_flag"] else [{"emotion": labels, "start_sec": 0, "end_sec": 1}]
        lasted = _seconds(told)
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}, clip {name!r}: ytb_id, and attributes with appearance and emotion are wanted, an emotion as "
            '{"sep_flag": false, "labels": "neutral"} or as a list with start_sec before end_sec'
        ) from error
    if not isinstance(video, str) or not re.fullmatch(ID, video, re.ASCII):
        raise DataError(f"{path}, clip {name!r}: ytb_id is an id of YouTube, 11 letters, not {video!r}")
    if not re.fullmatch(r"[\w-]+", name, re.ASCII):
        raise DataError(f"{path}: a clip is called M2Ohb0FAaJU_1 or the like, not {name!r}")
    if len(appearance) != width or not set(appearance) <= {0, 1}:
        raise DataError(f"{path}, clip {name!r}: appearance is {width} numbers of 0 or 1, one a name of its mapping")
    if strange := [one for one in lasted if one not in EXPRESSIONS]:
        raise DataError(f"{path}, clip {name!r}: no expression is called {strange[0]!r}; {', '.join(EXPRESSIONS)} are")
    longest = max(lasted, key=lambda one: lasted[one])  # the first of those that last as long
    return Clip(name, video, longest, len(lasted), tuple(int(appearance[i]) for i in columns))


def _seconds(told: list[dict[str, Any]]) -> dict[str, float]:
    """How long each expression is there, in the order of their first moments."""
    lasted: dict[str, float] = {}
    for one in sorted(told, key=lambda one: float(one["start_sec"])):
        word = str(one["emotion"]).casefold()
        seconds = float(one["end_sec"]) - float(one["start_sec"])
        if seconds < 0:
            raise ValueError
        lasted[SPELLED.get(word, word)] = lasted.get(SPELLED.get(word, word), 0.0) + seconds
    if not lasted:
        raise ValueError
    return lasted
