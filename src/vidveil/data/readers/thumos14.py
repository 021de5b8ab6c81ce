"""THUMOS14's temporal action detection: 20 sports in untrimmed videos (Jiang et al. 2014).

    thumos14/validation/video_validation_0000051.mp4       training: 200 videos, 3,003 events
    thumos14/TH14_test_set_mp4/video_test_0000004.mp4      test: 210 videos, 3,307 events
    thumos14/thumos14.json                                 {video: {"annotations": [{"segment": [18.6, 24.8], "label":
                                                           "HighJump"}, ...], "frames": 6799, ...}, ...}, also within
                                                           {"database": ...}, also as thumos_14_anno.json
    thumos14/annotation/HighJump_val.txt, _test.txt        instead of the JSON: video_test_0000896 18.6 24.8

Videos, lists and the JSON are found in any folder in `thumos14`, by their names. The official archives hold many more
videos, which have no events and are not needed.

Times are in seconds, to a tenth. The JSON's `duration` is `frames` by 30, though some videos have 25 frames a second:
62 sound events of 12 videos end after it. It is not read. Frames are found by their times.

Left out are three test videos that others leave out too: 0000270 and 0001496, whose annotations are wrong, and 0001292,
which has only ambiguous parts; and eight events that begin after the end of their videos. To compare with ActionFormer
or TriDet, use `read_videos(root, faulty=True)`: 212 test videos with all 3,358 events. `Ambiguous` is no class, and its
parts are not read; the official metric ignores them.

A row of `load` is an event, cut out of its video. Each CliffDiving is also annotated as Diving: an event with two
labels is one row, with the alphabetically first one. At most 96 frames of a row are read, 6.4 seconds: a long event is
known by its beginning. Validation is every fifth video of a class, from the third on.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vidveil.core.errors import DataError
from vidveil.data.catalogue import THUMOS14
from vidveil.data.clips import ClipSet
from vidveil.data.readers.annotations import match_lines, no_argument, read_json
from vidveil.data.readers.find import files_below, find_file, first_folder, require_videos
from vidveil.data.readers.splits import hold_out_groups
from vidveil.data.readers.subsampled import subsampled
from vidveil.data.untrimmed import Event, Untrimmed

DATABASES = ("thumos14.json", "thumos_14_anno.json")
CLASSES = (
    "BaseballPitch", "BasketballDunk", "Billiards", "CleanAndJerk", "CliffDiving", "CricketBowling", "CricketShot",
    "Diving", "FrisbeeCatch", "GolfSwing", "HammerThrow", "HighJump", "JavelinThrow", "LongJump", "PoleVault",
    "Shotput", "SoccerPenalty", "TennisSwing", "ThrowDiscus", "VolleyballSpiking",
)  # fmt: skip
AMBIGUOUS = "Ambiguous"
NAME = re.compile(r"video_(validation|test)_(\d{7})")
LIST = re.compile(r"([A-Za-z]+)_(val|test)\.txt")
PARTS = {"validation": "train", "test": "test"}
LISTS = {"validation": "val", "test": "test"}
FAULTY = ("video_test_0000270", "video_test_0001292", "video_test_0001496")
ENDS = {  # seconds, of videos with events after that
    "video_validation_0000364": 112.5,
    "video_validation_0000856": 83.0,
    "video_test_0000814": 181.1,
    "video_test_0001081": 117.1,
}
SLOWEST = 20  # frames a second, to find impossible times: the set has 24 to 30
USUAL = 54  # frames that are kept of an event, on average

Annotation = tuple[list[Event], int | None]
"""Of a video: its events, and the number of its frames, if known."""


def load(argument: str | None, *, root: Path, size: int, frames: int = 0, seed: int = 0) -> ClipSet:  # noqa: ARG001
    no_argument("thumos14", argument)
    folder = first_folder(root, THUMOS14)
    videos = read_videos(root)
    rows = [(video, part, label) for video in videos for part, label in cut(video.events).items()]
    return ClipSet(
        name="thumos14",
        videos=subsampled(
            "thumos14",
            folder,
            [video.path.relative_to(folder).as_posix() + part for video, part, _ in rows],
            size=size,
            usual=USUAL,
            aspect=16 / 9,
        ),
        ids=[video.path.name + part for video, part, _ in rows],
        split=np.array([video.split for video, _, _ in rows]),
        group=np.array([video.name for video, _, _ in rows]),
        action=np.array([CLASSES.index(label) for _, _, label in rows], np.int64),
        actions=CLASSES,
    )


def read_videos(root: Path, *, faulty: bool = False) -> list[Untrimmed]:
    """All videos with events, training first, by their numbers; events in seconds.

    Args:
        faulty: include the videos and events with wrong annotations.
    """
    folder = first_folder(root, THUMOS14)
    annotations = {
        name: (kept, frames)
        for name, (events, frames) in sorted(read_annotations(root).items())
        if (kept := [event for event in events if faulty or not _is_faulty(name, event)])
    }
    parts = [PARTS[_split_of(name)] for name in annotations]
    if set(parts) != {"train", "test"}:
        raise DataError(
            f"the annotations of {folder} have events of no {'test' if 'train' in parts else 'validation'} video"
        )
    found = files_below(folder, ".mp4")
    places = f"{folder / 'validation'} and {folder / 'TH14_test_set_mp4'}"
    require_videos("thumos14", folder, [f"{name}.mp4" for name in annotations], found, places)
    labels = [main_label(events) for events, _ in annotations.values()]
    split = hold_out_groups(labels, [int(name[-7:]) for name in annotations], parts)
    videos = [
        Untrimmed(name, found[f"{name}.mp4"][0], part, label, _sorted(events), "seconds", frames)
        for (name, (events, frames)), part, label in zip(annotations.items(), split.tolist(), labels, strict=True)
    ]
    return sorted(videos, key=lambda video: (video.split == "test", video.name))


def main_label(events: Sequence[Event]) -> str:
    """The most frequent one; of several, the alphabetically first."""
    counts = Counter(event.label for event in events)
    return min(counts, key=lambda label: (-counts[label], label))


def cut(events: Sequence[Event]) -> dict[str, str]:
    """Labels by parts of the video, `#t=18.6,24.8`. Of two labels of a part, the alphabetically first."""
    parts: dict[str, str] = {}
    for event in events:
        part = f"#t={_text(event.start)},{_text(event.end)}"
        parts[part] = min(event.label, parts.get(part, event.label))
    return parts


def read_annotations(root: Path) -> dict[str, Annotation]:
    """Of every annotated video, by its name without ending: from the JSON or, where there is none, the lists."""
    folder = first_folder(root, THUMOS14)
    if database := find_file(root, folder, "thumos", DATABASES):
        return read_database(database)
    lists = {name: paths[0] for name, paths in files_below(folder, ".txt").items() if LIST.fullmatch(name)}
    if not lists:
        raise DataError(
            f"{folder} has no annotations: {DATABASES[0]}, or CLASS_val.txt and CLASS_test.txt for each class, "
            "belong there"
        )
    return read_lists(lists)


def read_database(path: Path) -> dict[str, Annotation]:
    form = '{"video_test_0000896": {"annotations": [{"segment": [18.6, 24.8], "label": "HighJump"}, ...]}, ...}'
    database = read_json(path)
    try:
        database = database.get("database", database)
        entries = [
            (name, [(*event["segment"], event["label"]) for event in about["annotations"]], about)
            for name, about in database.items()
        ]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} is JSON of another form: it should be {form}") from error
    annotations = {}
    for name, events, about in entries:
        frames = about.get("frames", about.get("frame"))
        if frames is not None and (type(frames) is not int or frames < 1):
            raise DataError(f"{path}: {name} has {frames!r} frames, which should be a number above 0")
        annotations[name] = [_event(f"{path}: {name}", name, event, frames) for event in events], frames
    return annotations


def read_lists(lists: Mapping[str, Path]) -> dict[str, Annotation]:
    """Events from the official lists, by the names of the files: one for each class and part."""
    wanted = {f"{label}_{part}.txt" for label in CLASSES for part in LISTS.values()}
    if missing := sorted(wanted - set(lists)):
        where = next(iter(lists.values())).parent
        raise DataError(f"{where} has no {missing[0]}: {len(missing)} of {len(wanted)} lists are missing")
    annotations: dict[str, Annotation] = {}
    for file, path in sorted(lists.items()):
        label, part = file.removesuffix(".txt").rsplit("_", 1)
        if label == AMBIGUOUS:
            continue
        form = "a video and two times, video_test_0000896 18.6 24.8"
        for name, *times in map(re.Match.groups, match_lines(path, "THUMOS14", r"(\S+)\s+(\S+)\s+(\S+)", form)):
            if NAME.fullmatch(name) and LISTS[_split_of(name)] != part:
                raise DataError(f"{path}: {name} is not of this part")
            events, _ = annotations.setdefault(name, ([], None))
            events.append(_event(str(path), name, (*times, label), None))
    return annotations


def _event(where: str, name: str, values: Sequence[Any], frames: int | None) -> Event:
    """A valid event, or an error.

    Args:
        values: start, end and label.
    """
    if not NAME.fullmatch(name):
        raise DataError(f"{where}: a video is called video_validation_0000051 or video_test_0000004, not {name!r}")
    try:
        start, end, label = float(values[0]), float(values[1]), values[2]
        if len(values) != 3 or not 0 <= start < float("inf") or not end < float("inf"):
            raise ValueError
    except (IndexError, TypeError, ValueError) as error:
        raise DataError(f"{where}: an event has two times in seconds and a class, not {list(values)!r}") from error
    if label not in CLASSES:
        raise DataError(f"{where}: no class is called {label!r}; there are {', '.join(CLASSES)}")
    if end <= start:
        raise DataError(f"{where}: {label} ends at {end:g}, before it begins at {start:g}")
    event = Event(start, end, label)
    if frames is not None and end > frames / SLOWEST and not _is_faulty(name, event):
        over = f"{frames} frames are over after {frames / SLOWEST:g} s at the latest"
        raise DataError(f"{where}: {label} ends at {end:g} s, but {over}")
    return event


def _is_faulty(name: str, event: Event) -> bool:
    return name in FAULTY or event.start > ENDS.get(name, float("inf"))


def _split_of(name: str) -> str:
    """`validation` or `test`."""
    return name.split("_")[1]


def _sorted(events: Sequence[Event]) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda event: (event.start, event.end, event.label)))


def _text(seconds: float) -> str:
    return f"{seconds:.3f}".rstrip("0").rstrip(".")
