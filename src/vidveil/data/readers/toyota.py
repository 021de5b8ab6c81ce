"""Toyota Smarthome, trimmed, in its official layout: daily life of 18 elderly people, 31 activities, 16,115 videos.

    toyota_smarthome/mp4/Cook.Cleandishes_p02_r00_v02_c03.mp4      activity, subject, repetition, view, camera 1-7
    toyota_smarthome/toyota_subgroups.txt                          optional: p02 m, p03 f, ...

Eleven subjects are in training and seven in test (cross-subject). Activities are taken from the file names. The tag
`subgroup` is 0 for f, 1 for m, -1 if unknown: the set does not publish it, and we do not guess it.

Validation is every fifth of the training subjects, but nobody without whom an activity would be missing from training:
some are rare, and most subjects do not do them all. Several cameras film the same moment, so linkage looks among other
activities. Many videos are longer than the 192 frames that are read: a long activity is known by its beginning.
"""

from pathlib import Path

import numpy as np

from vidveil.core.errors import DataError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import no_argument, read_subgroups
from vidveil.data.readers.find import parse_file_names
from vidveil.data.readers.splits import hold_out_people, numbered
from vidveil.data.readers.subsampled import subsampled

FOLDER, GENDERS = "toyota_smarthome", "toyota_subgroups.txt"
FORM = "Cook.Cleandishes_p02_r00_v02_c03.mp4"
PATTERN = r"([^_]+)_p(\d\d)_r(\d+)_v(\d+)_c(\d\d)\.mp4"
CAMERAS = 7

PARTS = dict.fromkeys((3, 4, 6, 7, 9, 12, 13, 15, 17, 19, 25), "train") | dict.fromkeys(
    (2, 10, 11, 14, 16, 18, 20), "test"
)


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    no_argument("toyota", argument)
    folder = root / FOLDER if (root / FOLDER / "mp4").is_dir() else root
    videos = folder / "mp4"
    found = parse_file_names(videos, PATTERN, FORM)
    for file, match in found:
        if int(match[2]) not in PARTS:
            known = ", ".join(f"p{number:02d}" for number in sorted(PARTS))
            raise DataError(f"{videos / file}: no subject is called p{match[2]}; there are {known}")
        if not 1 <= int(match[5]) <= CAMERAS:
            raise DataError(f"{videos / file}: no camera is called c{match[5]}; there are c01 to c{CAMERAS:02d}")
    files, people = [file for file, _ in found], [f"p{match[2]}" for _, match in found]
    action, actions = numbered([match[1] for _, match in found])
    subgroup = read_subgroups(folder / GENDERS, "p02")
    official = [PARTS[int(match[2])] for _, match in found]
    return ClipSet(
        name="toyota",
        videos=subsampled("toyota", videos, files, size=size),
        ids=files,
        split=hold_out_people("toyota", people, action.tolist(), official),
        group=np.array(people),
        action=action,
        actions=actions,
        person=numbered(people)[0],
        gallery="other action",
        tags={
            "camera": np.array([match[5] for _, match in found], np.int64),
            "subgroup": np.array([subgroup.get(person, -1) for person in people], np.int64),
        },
    )
