"""Untrimmed video: minutes of it, and what happens in some seconds of them.

    for video in thumos14.read_videos(root):         # or ucf_crime.read_videos
        for event in video.events:
            event.start, event.end, event.label      # in seconds, or in frames: video.unit says which
    length_of(video)                                 # frames and seconds, as the file's header tells
    frame_labels(video, frames)                      # (T,) 1 where something anomalous happens

Who detects actions or anomalies reads whole videos in order, and needs the list, not cut clips. A video's `split` holds
validation out of the official training, by whole videos.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.catalogue import DEPTH
from vidveil.data.clips import Split
from vidveil.data.decode import decoder
from vidveil.data.frame_readers import Length, measure

NORMAL = "Normal"
NAMED = 5  # videos that are missing, by name; the others are counted


@dataclass(frozen=True, slots=True)
class Event:
    start: float
    end: float
    label: str


@dataclass(frozen=True, slots=True)
class Untrimmed:
    name: str
    """As the annotations call it: `video_test_0000004`, `Abuse/Abuse001_x264.mp4`."""
    path: Path
    split: Split
    label: str
    """What is known of all of it: the action that it shows most often, a crime, or `Normal`."""
    events: tuple[Event, ...]
    """In the order of their starts. None where nobody has said when: of the crimes that are trained on."""
    unit: Literal["seconds", "frames"]
    """What `start` and `end` count. Frames count from 1, and `end` is the last one of the event."""
    frames: int | None = None
    """As the annotations say, if they do."""


def length_of(video: Untrimmed) -> Length:
    """Frames and seconds of the file, without decoding it. All events must begin before its end."""
    length = measure(video.path, decoder())
    whole = length.seconds if video.unit == "seconds" else length.frames
    if late := next((event for event in video.events if event.start > whole), None):
        raise DataError(
            f"{video.path} has {whole:.6g} {video.unit}, but by the annotations {late.label} begins at {late.start:g}: "
            "copy the video anew, it is cut short or changed"
        )
    return length


def frame_labels(video: Untrimmed, frames: int) -> NDArray[np.uint8]:
    """(T,) 1 where something anomalous happens.

    Args:
        frames: how many the video has, decoded or by `length_of`.
    """
    if video.unit != "frames":
        raise DataError(f"{video.name} has its events in {video.unit}: only frames can be labelled by the frame")
    if video.label != NORMAL and not video.events:
        raise DataError(
            f"{video.name} shows {video.label}, but nobody has said when: only tested videos have labels by the frame"
        )
    labels = np.zeros(frames, np.uint8)
    for event in video.events:
        if event.start > frames:
            raise DataError(
                f"{video.name} has {frames} frames, but {event.label} begins at {event.start:g}: "
                "copy the video anew, it is cut short or changed"
            )
        labels[max(int(event.start), 1) - 1 : int(event.end)] = 1
    return labels


def find_folder(root: Path, names: Sequence[str]) -> Path:
    """The first of these folders that is there, else the first one."""
    return next((root / name for name in names if (root / name).is_dir()), root / names[0])


def files_below(folder: Path, *endings: str) -> dict[str, list[Path]]:
    """Files by their names, wherever they lie in the folder: every copy has its own tree. Hidden ones do not count."""
    found: dict[str, list[Path]] = {}
    for place, folders, files in os.walk(folder, followlinks=True):
        deep = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if deep < DEPTH and not name.startswith("."))
        for name in sorted(files):
            if name.endswith(endings) and not name.startswith("."):
                found.setdefault(name, []).append(Path(place) / name)
    return found


def need_all(name: str, folder: Path, listed: Sequence[str], found: Mapping[str, object], where: str) -> None:
    """A copy that lacks videos is refused, with how many and which.

    Args:
        listed: names of the files that the annotations speak of.
        found: what is there, by the name of the file.
        where: in which folders they usually lie, for people.
    """
    missing = [file for file in listed if file not in found]
    if not missing:
        return
    more = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
    raise DataError(
        f"{name}: {len(missing):,} of {len(listed):,} videos are not in {folder}: {', '.join(missing[:NAMED])}{more}; "
        f"they belong in {where}"
    )
