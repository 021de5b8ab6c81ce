"""Single frames of videos as clips, for labels per frame and attackers that see one frame at a time.

A row is one frame; a view of it is a static clip. Methods are applied to the whole videos, as everywhere, and the
frames are taken from the result: a mask computed for a single picture would be another mask.

Of each video every eighth of the decoded frames is a row, from the fifth on, and at least one: every sixteenth frame of
the file. So a long video has more rows than a short one, and results are means over frames, not over videos. Videos are
decoded up to frame 192 (`subsampled.LIMIT`), and later frames are never a row: of PA-HMDB51 9.7 % of the labelled
frames, in 49 videos.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vidveil.data.clips import ClipSet
from vidveil.data.readers.subsampled import EVERY
from vidveil.data.undecodable import without_failed

EACH = 8  # every so many decoded frames, one is a row
ACTIONS = ("none",)


@dataclass(frozen=True, eq=False)
class SingleFrames:
    """Implements `Videos`: video i is frame `frame[i]` of the whole video `row[i]`."""

    whole: ClipSet
    row: NDArray[np.int64]
    frame: NDArray[np.int64]
    length: NDArray[np.int64]
    """Frames of the whole video before any method."""

    @property
    def fingerprint(self) -> str:
        about = hashlib.sha256(self.whole.videos.fingerprint.encode())
        about.update(self.row.tobytes() + self.frame.tobytes())
        return about.hexdigest()

    def __len__(self) -> int:
        return len(self.row)

    def frames(self, i: int) -> NDArray[np.uint8]:
        """(1, H, W, 3). After a method that changed the number of frames, the one at the same time."""
        video = self.whole.videos.frames(int(self.row[i]))
        at = int(self.frame[i]) * len(video) // int(self.length[i])
        return video[at : at + 1]

    def digest(self, i: int) -> str:
        """Of the video and the index of the frame, not of its pixels: two videos may both have black frames, which is
        no overlap. Whole videos were compared when their set was constructed."""
        return f"{self.whole.videos.digest(int(self.row[i]))} {self.frame[i]}"

    def of(self, whole: ClipSet) -> "SingleFrames":
        """The same frames of the videos after a method."""
        return SingleFrames(whole, self.row, self.frame, self.length)


def by_frame(whole: ClipSet, labels: Mapping[str, NDArray[np.float32]]) -> ClipSet:
    """Frames of all videos of a set, with one action, `none`: a frame does not show an action.

    Args:
        labels: (T, A) of some videos by their id, a row per frame of the file, NaN if unknown. Frames of the other
            videos have the attributes of their video.
    """
    whole = without_failed(whole)
    lengths = [len(whole.videos.frames(i)) for i in range(len(whole))]
    picks = [np.arange(min(EACH // 2, length - 1), length, EACH) for length in lengths]
    row = np.repeat(np.arange(len(whole)), [len(each) for each in picks])
    frame = np.concatenate(picks)
    attributes = whole.attributes[row].copy()
    for i, (video, at) in enumerate(zip(row.tolist(), (frame * EVERY).tolist(), strict=True)):
        if (known := labels.get(whole.ids[video])) is not None:
            attributes[i] = known[at] if at < len(known) else np.nan
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
