"""UCF-Crime: 1,900 untrimmed videos of surveillance cameras, 13 crimes and normal scenes (Sultani et al. 2018).

    UCF_Crimes/Videos/Abuse/Abuse001_x264.mp4                           crimes, 950
    UCF_Crimes/Videos/Training_Normal_Videos_Anomaly/Normal_Videos001_x264.mp4     800, training
    UCF_Crimes/Videos/Testing_Normal_Videos_Anomaly/Normal_Videos_003_x264.mp4     150, test
    Anomaly_Train.txt                                                   Abuse/Abuse001_x264.mp4
    Temporal_Anomaly_Annotation_for_Testing_Videos.txt                  Abuse028_x264.mp4  Abuse  165  240  -1  -1
      or Temporal_Anomaly_Annotation.txt                                first and last frame, twice; -1: no such range
    Anomaly_Test.txt                                                    optional: must name the same videos

Videos and lists are found in any folder in `UCF_Crimes` by their names, so archives may stay as they unpack:
`Anomaly-Videos-Part-1/Abuse`, `Testing_Normal_Videos/…`. Lists may also lie next to it. The 50 normal videos for event
recognition are copies of others and are not read.

The 1,610 training videos have one label each, a crime or normal; the 290 test videos, 140 with a crime, also have
ranges of frames. The set does not define how frames are counted. Its authors' evaluation counts from 1, includes the
last one and cuts ranges at the end of the video: so do we.

A row of `load` is a video, of which 96 frames are kept, evenly from the first to the last. Validation is every fifth
video of a class, from the third on. Identities and cameras are unknown.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from vidveil.core.errors import DataError
from vidveil.data.catalogue import UCF_CRIME
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import match_lines, no_argument, read_lines, refuse_duplicates
from vidveil.data.readers.find import files_below, find_file, first_folder, require_videos
from vidveil.data.readers.splits import hold_out_groups
from vidveil.data.readers.subsampled import subsampled
from vidveil.data.untrimmed import NORMAL, Event, Untrimmed

TRAINING_LIST, TEST_LIST = "Anomaly_Train.txt", "Anomaly_Test.txt"
RANGES = ("Temporal_Anomaly_Annotation_for_Testing_Videos.txt", "Temporal_Anomaly_Annotation.txt")
CRIMES = (
    "Abuse", "Arrest", "Arson", "Assault", "Burglary", "Explosion", "Fighting", "RoadAccidents", "Robbery", "Shooting",
    "Shoplifting", "Stealing", "Vandalism",
)  # fmt: skip
PLACES = {"train": "Training_Normal_Videos_Anomaly", "test": "Testing_Normal_Videos_Anomaly"}
COPIES = ("Normal_Videos_event", "Normal_Videos_for_Event_Recognition")
FORM = "Abuse028_x264.mp4 Abuse 165 240 -1 -1"
FILE = re.compile(r"([A-Za-z]+?)(?:_Videos_?)?\d+_x264\.mp4")


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    no_argument("ucf_crime", argument)
    folder = first_folder(root, UCF_CRIME)
    videos = read_videos(root)
    actions = (NORMAL, *CRIMES)
    names = [video.name for video in videos]
    return ClipSet(
        name="ucf_crime",
        videos=subsampled(
            "ucf_crime",
            folder,
            [video.path.relative_to(folder).as_posix() for video in videos],
            size=size,
            spread=True,
        ),
        ids=names,
        split=np.array([video.split for video in videos]),
        group=np.array(names),
        action=np.array([actions.index(video.label) for video in videos], np.int64),
        actions=actions,
    )


def read_videos(root: Path) -> list[Untrimmed]:
    """Training videos first, both as listed. Events are ranges of frames, of test videos only."""
    folder = first_folder(root, UCF_CRIME)
    training, ranges = find_list(root, TRAINING_LIST), find_list(root, *RANGES)
    tested = read_ranges(ranges)
    listed: list[tuple[str, str, list[Event]]] = [(name, "train", []) for name in read_training(training)]
    if both := next((name for name, _, _ in listed if name in tested), None):
        raise DataError(f"{both} is in training by {training.name} and in test by {ranges.name}")
    listed += [(name, "test", events) for name, events in tested.items()]
    _compare(root, list(tested))
    found = {name: _original(paths) for name, paths in files_below(folder, ".mp4").items()}
    places = ", ".join(str(folder / "Videos" / place) for place in (CRIMES[0], *PLACES.values()))
    require_videos("ucf_crime", folder, [Path(name).name for name, _, _ in listed], found, f"{places} and so on")
    labels = [label_of(name) for name, _, _ in listed]
    split = hold_out_groups(labels, range(len(listed)), [part for _, part, _ in listed])
    return [
        Untrimmed(name, found[Path(name).name], part, label, tuple(events), "frames")
        for (name, _, events), part, label in zip(listed, split.tolist(), labels, strict=True)
    ]


def label_of(name: str) -> str:
    """`Normal` or a crime, by the name of the file, with or without its folder."""
    match = FILE.fullmatch(Path(name).name)
    if not match or match[1] not in (NORMAL, *CRIMES):
        raise DataError(
            f"{name!r} is no video of UCF-Crime: those are called Abuse001_x264.mp4 or Normal_Videos001_x264.mp4"
        )
    return match[1]


def find_list(root: Path, *names: str) -> Path:
    """The first of these lists that is found."""
    folder = first_folder(root, UCF_CRIME)
    path = find_file(root, folder, "ucfcrime", names)
    if path is None:
        raise DataError(f"there is no {' or '.join(names)} in {folder} or next to it: it comes with UCF-Crime's splits")
    return path


def read_training(path: Path) -> list[str]:
    """`Abuse/Abuse001_x264.mp4` and so on, as listed."""
    names = [line.strip() for line in read_lines(path, "UCF-Crime")]
    for name in names:
        label = _label(path, name)
        if name != _listed(Path(name).name, label, "train"):
            raise DataError(f"{path}: a line is {_listed(Path(name).name, label, 'train')}, not {name!r}")
    refuse_duplicates(path, names)
    return names


def read_ranges(path: Path) -> dict[str, list[Event]]:
    """Events of the test videos, by `Abuse/Abuse028_x264.mp4` and so on."""
    form = f"a video, its class and four frames, such as {FORM}"
    lines = match_lines(path, "UCF-Crime", r"(\S+)\s+(\S+)((?:\s+(?:-1|\d+)){4})", form)
    refuse_duplicates(path, [match[1] for match in lines])
    ranges: dict[str, list[Event]] = {}
    for file, label, frames in map(re.Match.groups, lines):
        if label != _label(path, file):
            raise DataError(f"{path}: {file} is labelled {label}, but by its name it shows {_label(path, file)}")
        numbers = [int(number) for number in frames.split()]
        ranges[_listed(file, label, "test")] = _events(f"{path}: {file}", label, numbers)
    return ranges


def _events(where: str, label: str, numbers: Sequence[int]) -> list[Event]:
    pairs = [pair for pair in (tuple(numbers[:2]), tuple(numbers[2:])) if pair != (-1, -1)]
    if label == NORMAL and pairs:
        raise DataError(f"{where} is normal and has -1 four times, not {pairs[0][0]} to {pairs[0][1]}")
    if label != NORMAL and (not pairs or numbers[0] == -1):
        raise DataError(f"{where} shows {label}, but its first range of frames is missing")
    for first, last in pairs:
        if first < 0 or last < 0:
            raise DataError(f"{where}: a range is two frames, or -1 twice, not {first} and {last}")
        if last < first:
            raise DataError(f"{where}: {label} ends at frame {last}, before it begins at {first}")
    if len(pairs) == 2 and pairs[1][0] <= pairs[0][1]:
        raise DataError(
            f"{where}: the second range begins at {pairs[1][0]}, before the first one ends at {pairs[0][1]}"
        )
    return [Event(first, last, label) for first, last in pairs]


def _listed(file: str, label: str, part: str) -> str:
    return f"{PLACES[part] if label == NORMAL else label}/{file}"


def _label(path: Path, name: str) -> str:
    try:
        return label_of(name)
    except DataError as error:
        raise DataError(f"{path}: {error}") from error


def _original(paths: Sequence[Path]) -> Path:
    """Of several files of one name, the one that is not a copy for event recognition."""
    return min(paths, key=lambda path: path.parent.name in COPIES)


def _compare(root: Path, tested: Sequence[str]) -> None:
    """Anomaly_Test.txt, if present, must name the annotated videos."""
    path = find_file(root, first_folder(root, UCF_CRIME), "ucfcrime", (TEST_LIST,))
    if path is None:
        return
    listed = {Path(line.strip()).name for line in read_lines(path, "UCF-Crime")}
    if odd := sorted(listed ^ {Path(name).name for name in tested}):
        here, there = (path.name, "the annotated ranges") if odd[0] in listed else ("the annotated ranges", path.name)
        raise DataError(f"{path}: {len(odd)} videos are not in both lists: {odd[0]} is in {here}, but not in {there}")
