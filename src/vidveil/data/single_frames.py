"""Frames of videos as clips of their own: where labels are given by the frame, and attackers look at one at a time.

A row is one frame, which a view shows as a picture that stands still. The videos stay where they are, whole: a method
goes over whole videos, as it does everywhere, and the frames are taken out of what it leaves. A mask that was made for
a single picture would be another mask.

Of each video every eighth of the decoded frames is a row, from the fifth on, and one at least: every sixteenth of the
video's own. So a long video has more rows than a short one, and numbers are means over frames, not over videos. Videos
are decoded up to their frame 192 (`published.LIMIT`), and nothing from there on is ever a row: of PA-HMDB51 9.7 % of
the labelled frames, in 49 videos.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet
from vidveil.data.left_out import without_failed
from vidveil.data.readers.published import EVERY

EACH = 8  # decoded frames to one that is a row
ACTIONS = ("none",)


@dataclass(frozen=True, eq=False)
class SingleFrames:
    """Implements `Videos`: video i is frame `frame[i]` of the whole video `row[i]`."""

    whole: ClipSet
    row: NDArray[np.int64]
    frame: NDArray[np.int64]
    length: NDArray[np.int64]
    """Frames of the whole video, as it was before any method."""

    @property
    def fingerprint(self) -> str:
        about = hashlib.sha256(self.whole.videos.fingerprint.encode())
        about.update(self.row.tobytes() + self.frame.tobytes())
        return about.hexdigest()

    def __len__(self) -> int:
        return len(self.row)

    def frames(self, i: int) -> NDArray[np.uint8]:
        """(1, H, W, 3). After a method that changed how many frames there are, the one at the same time."""
        video = self.whole.videos.frames(int(self.row[i]))
        at = int(self.frame[i]) * len(video) // int(self.length[i])
        return video[at : at + 1]

    def digest(self, i: int) -> str:
        """Of the video and the number of the frame, not of its pixels: two films may both begin in black, and that is
        no overlap. Whole videos were compared when their own set was made."""
        return f"{self.whole.videos.digest(int(self.row[i]))} {self.frame[i]}"

    def of(self, whole: ClipSet) -> "SingleFrames":
        """The same frames of the videos after a method."""
        return SingleFrames(whole, self.row, self.frame, self.length)


def by_frame(whole: ClipSet, labels: Mapping[str, NDArray[np.float32]]) -> ClipSet:
    """Frames of all videos of a set. What is done takes more than a frame to tell, so there is one action, `none`.

    Args:
        labels: (T, A) of some videos by their id, a row a frame of the video's own, NaN where nobody said. Frames of
            the other videos have the attributes of their video.
    """
    whole = without_failed(whole)
    lengths = [len(whole.videos.frames(i)) for i in range(len(whole))]
    picks = [np.arange(min(EACH // 2, length - 1), length, EACH) for length in lengths]
    row = np.repeat(np.arange(len(whole)), [len(each) for each in picks])
    frame = np.concatenate(picks)
    attributes = whole.attributes[row].copy()
    for i, (video, at) in enumerate(zip(row.tolist(), (frame * EVERY).tolist(), strict=True)):
        if (told := labels.get(whole.ids[video])) is not None:
            attributes[i] = told[at] if at < len(told) else np.nan
    return ClipSet(
        name=whole.name,
        videos=SingleFrames(whole, row, frame, np.array(lengths, np.int64)[row]),
        ids=[f"{whole.ids[video]} {at}" for video, at in zip(row.tolist(), (frame * EVERY).tolist(), strict=True)],
        split=whole.split[row],
        group=whole.group[row],
        action=np.zeros(len(row), np.int64),
        actions=ACTIONS,
        person=whole.person[row],
        attributes=attributes,
        attribute_names=whole.attribute_names,
        tags={name: values[row] for name, values in whole.tags.items()},
        left_out=whole.left_out,
    )
