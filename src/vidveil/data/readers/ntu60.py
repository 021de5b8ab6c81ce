"""NTU RGB+D 60 in its official layout: 60 actions by 40 performers before three cameras, 56,880 videos.

    nturgb+d_rgb/S001C001P001R001A001_rgb.avi      setup 1-17, camera 1-3, performer 1-40, replication 1-2, action 1-60
    ntu60_subgroups.txt                            P001 f, P002 m, ...: needed by bias_f and bias_m alone

    ntu60:subject    20 performers for training, the others for test (cross-subject)
    ntu60:view       cameras 2 and 3 for training, camera 1 for test (cross-view); the people are the same, on purpose
    ntu60:bias_f     7 women and 7 men for training, but each action shows six men and one woman; brushing hair (A004)
                     six women and one man. A network may learn that whoever brushes hair is a woman
    ntu60:bias_m     the same the other way round

The set does not publish anybody's gender, and we do not guess it: the protocol names that of two performers, a file
that of the others. The tag `subgroup` is 0 for f, 1 for m, -1 if unknown.

Validation is whole performers out of training. In bias_f and bias_m it is one woman and one man of the majority of
their actions, so five to one remain for training. All three cameras film the same moment, so linkage looks among other
actions. Of A050-A060, with two people in the picture, only one is named: the other may be from another split.

Setups above 17 in the same folder are NTU RGB+D 120's, and are skipped. The 302 videos without usable skeletons stay:
their pictures are complete.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vidveil.core.errors import DataError, UsageError
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import SUBGROUPS, read_subgroups
from vidveil.data.readers.find import first_folder, parse_file_names
from vidveil.data.readers.splits import hold_out_people, numbered
from vidveil.data.readers.subsampled import subsampled

FOLDER, GENDERS = "nturgb+d_rgb", "ntu60_subgroups.txt"
FORM = "S001C001P001R001A001_rgb.avi"
PATTERN = r"S(\d{3})C(\d{3})P(\d{3})R(\d{3})A(\d{3})_rgb\.avi"
LARGEST = {"camera": 3, "performer": 40, "replication": 2, "action": 60}
SETUPS = 17
USUAL, ASPECT = 35, 16 / 9  # frames that are kept of a video: its authors count 4 million in all

SUBJECTS = {1, 2, 4, 5, 8, 9, 13, 14, 15, 16, 17, 18, 19, 25, 27, 28, 31, 34, 35, 38}
CAMERAS = {2, 3}

BIAS_TEST = {2, 5, 6, 11, 12, 13, 14, 22, 23, 24, 26, *range(29, 37), 38}
BIAS_LEFT_OUT = {3, 4, 9, 19, 21, 40}
BIAS_PEOPLE = [number for number in range(1, 41) if number not in BIAS_LEFT_OUT]
BIAS_ACTION = 4
MINORITY = {"P010": SUBGROUPS.index("m"), "P039": SUBGROUPS.index("f")}
"""The one man and the one woman who are a minority in their actions; the protocol names their gender."""
MAJORITY = {"bias_f": SUBGROUPS.index("m"), "bias_m": SUBGROUPS.index("f")}
"""The subgroup of most performers in all actions but one. The split is named after the other subgroup, in that one."""

ACTIONS = tuple(
    """drink water; eat meal/snack; brushing teeth; brushing hair; drop; pickup; throw; sitting down; standing up (from
    sitting position); clapping; reading; writing; tear up paper; wear jacket; take off jacket; wear a shoe; take off a
    shoe; wear on glasses; take off glasses; put on a hat/cap; take off a hat/cap; cheer up; hand waving; kicking
    something; reach into pocket; hopping (one foot jumping); jump up; make a phone call/answer phone; playing with
    phone/tablet; typing on a keyboard; pointing to something with finger; taking a selfie; check time (from watch); rub
    two hands together; nod head/bow; shake head; wipe face; salute; put the palms together; cross hands in front (say
    stop); sneeze/cough; staggering; falling; touch head (headache); touch chest (stomachache/heart pain); touch back
    (backache); touch neck (neckache); nausea or vomiting condition; use a fan (with hand or paper)/feeling warm;
    punching/slapping other person; kicking other person; pushing other person; pat on back of other person; point
    finger at the other person; hugging other person; giving something to other person; touch other person's pocket;
    handshaking; walking towards each other; walking apart from each other""".replace("\n    ", " ").split("; ")
)


@dataclass(frozen=True, slots=True)
class Clip:
    path: str
    setup: int
    camera: int
    performer: int
    replication: int
    action: int
    """1-60, as in the name of the file."""

    @property
    def person(self) -> str:
        return f"P{self.performer:03d}"


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    how = argument or "subject"
    if how not in ("subject", "view", *MAJORITY):
        raise UsageError(f"ntu60 takes subject, view, bias_f or bias_m after a colon, not {argument!r}")
    name = f"ntu60:{how}"
    folder = first_folder(root, (FOLDER, f"ntu60/{FOLDER}"))
    subgroup = subgroups(folder.parent / GENDERS)
    if how in MAJORITY:
        _require_subgroups(name, subgroup, folder.parent / GENDERS)
    clips, parts = _used_clips(how, read_clips(folder), subgroup)
    if how in MAJORITY:
        _require_performers(name, {clip.performer for clip in clips}, folder)
    people = [clip.person for clip in clips]
    actions = [clip.action - 1 for clip in clips]
    split = np.array(parts)
    for candidates in _validation_candidates(how, people, subgroup):
        split = hold_out_people(name, people, actions, split.tolist(), candidates)
    shared = (split == "test") & (how == "view")  # cross-view has the same people in training and test
    return ClipSet(
        name=name,
        videos=subsampled("ntu60", folder, [clip.path for clip in clips], size=size, usual=USUAL, aspect=ASPECT),
        ids=[clip.path for clip in clips],
        split=split,
        group=np.where(shared, [f"{person}, tested" for person in people], people),
        action=np.array(actions, np.int64),
        actions=ACTIONS,
        person=numbered(people)[0],
        gallery="other action",
        tags={
            "setup": np.array([clip.setup for clip in clips], np.int64),
            "camera": np.array([clip.camera for clip in clips], np.int64),
            "replication": np.array([clip.replication for clip in clips], np.int64),
            "subgroup": np.array([subgroup.get(person, -1) for person in people], np.int64),
            **({"shortcut": np.array([a == BIAS_ACTION - 1 for a in actions], np.int64)} if how in MAJORITY else {}),
        },
    )


def read_clips(folder: Path) -> list[Clip]:
    """All of NTU RGB+D 60, in the order of their names."""
    clips = []
    for file, match in parse_file_names(folder, PATTERN, FORM):
        setup, *rest = map(int, match.groups())
        if setup > SETUPS:
            continue
        for (what, largest), number in zip(LARGEST.items(), rest, strict=True):
            if not 1 <= number <= largest:
                raise DataError(f"{folder / file}: NTU RGB+D 60 has {what} 1 to {largest}, not {number}")
        if not setup:
            raise DataError(f"{folder / file}: NTU RGB+D 60 has setup 1 to {SETUPS}, not 0")
        clips.append(Clip(file, setup, *rest))
    if not clips:
        raise DataError(f"{folder} holds setups above {SETUPS} alone, which are NTU RGB+D 120's: unpack S001 to S017")
    return clips


def subgroups(path: Path) -> dict[str, int]:
    """0 for f and 1 for m, by `P001`: from the protocol, and from the file, if there is one."""
    found = read_subgroups(path, "P001")
    for person, number in MINORITY.items():
        if found.setdefault(person, number) != number:
            raise DataError(f"{path} has {person} as {SUBGROUPS[found[person]]}, the protocol as {SUBGROUPS[number]}")
    return found


def part_of(how: str, clip: Clip, subgroup: Mapping[str, int]) -> str:
    """`train`, `test`, or `unused`."""
    if how == "subject":
        return "train" if clip.performer in SUBJECTS else "test"
    if how == "view":
        return "train" if clip.camera in CAMERAS else "test"
    if clip.performer in BIAS_TEST:
        return "test"
    if clip.performer in BIAS_LEFT_OUT:
        return "unused"
    majority = (subgroup[clip.person] == MAJORITY[how]) != (clip.person in MINORITY)
    return "train" if majority != (clip.action == BIAS_ACTION) else "unused"


def _used_clips(how: str, clips: Sequence[Clip], subgroup: Mapping[str, int]) -> tuple[list[Clip], list[str]]:
    parts = [part_of(how, clip, subgroup) for clip in clips]
    used = [(clip, part) for clip, part in zip(clips, parts, strict=True) if part != "unused"]
    return [clip for clip, _ in used], [part for _, part in used]


def _validation_candidates(how: str, people: Sequence[str], subgroup: Mapping[str, int]) -> list[set[str] | None]:
    """The people from whom validation is chosen, once per subgroup in a biased split, without the minority."""
    if how not in MAJORITY:
        return [None]
    return [{p for p in people if subgroup[p] == number and p not in MINORITY} for number in range(len(SUBGROUPS))]


def _require_performers(name: str, performers: set[int], folder: Path) -> None:
    """A biased split needs videos of all its performers: without some, the ratio of the subgroups would differ."""
    if missing := [f"P{number:03d}" for number in BIAS_PEOPLE if number not in performers]:
        raise DataError(
            f"{name} needs videos of all its {len(BIAS_PEOPLE)} performers, and {folder} has none of "
            f"{', '.join(missing)} that it uses: unpack setups 1 to {SETUPS}"
        )


def _require_subgroups(name: str, subgroup: Mapping[str, int], path: Path) -> None:
    """A biased split needs the subgroup of every performer, half of each in training."""
    wanted = [f"P{number:03d}" for number in BIAS_PEOPLE]
    if missing := [person for person in wanted if person not in subgroup]:
        raise DataError(
            f"{name} needs the perceived gender of all its people, and that of {', '.join(missing)} is unknown: "
            f"write {path} with a line for each, such as P001 f"
        )
    training = [subgroup[p] for p in wanted if int(p[1:]) not in BIAS_TEST]
    if training.count(0) != training.count(1):
        raise DataError(
            f"{path}: of the {len(training)} people in training by {name} half are f and half m, "
            f"not {training.count(0)} and {training.count(1)}"
        )
