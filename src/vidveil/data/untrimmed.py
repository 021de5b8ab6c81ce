"""Untrimmed videos of minutes, with events that last seconds.

    for video in thumos14.read_videos(root):         # or ucf_crime.read_videos
        for event in video.events:
            event.start, event.end, event.label      # in seconds, or in frames: video.unit says which
    length_of(video)                                 # frames and seconds, from the file's header
    frame_labels(video, frames)                      # (T,) 1 within an event

Detection of actions or anomalies reads whole videos in order, and needs this list instead of clips. Validation is whole
videos held out of the official training part.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.clips import Split
from vidveil.data.decode import decoder
from vidveil.data.frame_readers import Length, measure

NORMAL = "Normal"


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
    """Of the whole video: its most frequent action, a crime, or `Normal`."""
    events: tuple[Event, ...]
    """In the order of their starts. Empty where times are unknown: crimes in training."""
    unit: Literal["seconds", "frames"]
    """What `start` and `end` count. Frames count from 1, and `end` is the last one of the event."""
    frames: int | None = None
    """From the annotations, if known."""


def length_of(video: Untrimmed) -> Length:
    """Frames and seconds of the file, without decoding it. An event that begins after its end is an error."""
    length = measure(video.path, decoder())
    whole = length.seconds if video.unit == "seconds" else length.frames
    if late := next((event for event in video.events if event.start > whole), None):
        raise DataError(
            f"{video.path} has {whole:.6g} {video.unit}, but by the annotations {late.label} begins at {late.start:g}: "
            "copy the video anew, it is cut short or changed"
        )
    return length


def frame_labels(video: Untrimmed, frames: int) -> NDArray[np.uint8]:
    """(T,) 1 within an event.

    Args:
        frames: of the video, decoded or by `length_of`.
    """
    if video.unit != "frames":
        raise DataError(f"{video.name} has its events in {video.unit}: frame labels need events in frames")
    if video.label != NORMAL and not video.events:
        raise DataError(f"{video.name} shows {video.label} at an unknown time: only test videos have labels per frame")
    labels = np.zeros(frames, np.uint8)
    for event in video.events:
        if event.start > frames:
            raise DataError(
                f"{video.name} has {frames} frames, but {event.label} begins at {event.start:g}: "
                "copy the video anew, it is cut short or changed"
            )
        labels[max(int(event.start), 1) - 1 : int(event.end)] = 1
    return labels
