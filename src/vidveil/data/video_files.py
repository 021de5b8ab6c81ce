"""Videos that are read from their files frame by frame, without a cache of pixels.

    videos = WholeFiles([Path("a.mp4"), ...], short_side=256)
    for picture in videos.pictures(0): ...              # (H, W, 3) uint8 RGB, one after the other

Decoded, the hours of THUMOS14 or UCF-Crime would take terabytes, and a single video may exceed the memory. Feature
extraction reads them once and keeps a few frames at a time.
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from vidveil.core.errors import DataError
from vidveil.data.decode import decode, decoder, fitted
from vidveil.data.frame_readers import Length, frames_in, measure


@runtime_checkable
class FrameStreams(Protocol):
    """Videos that are read frame by frame."""

    def length(self, i: int) -> int:
        """Number of frames, from the header."""
        ...

    def pictures(self, i: int) -> Iterator[NDArray[np.uint8]]:
        """(H, W, 3) RGB of each frame, in their order."""
        ...


class VideoFiles:
    """Implements `Videos`, too: `frames` decodes all of a file at once."""

    def __init__(self, paths: Sequence[Path], *, short_side: int) -> None:
        if missing := next((path for path in paths if not path.is_file()), None):
            raise DataError(f"{missing} is not there: copy it, or remove it from the list")
        self.paths, self.short_side, self.by = list(paths), short_side, decoder()

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def fingerprint(self) -> str:
        """Of the files' names and sizes and the decoding, since reading all pixels would take days."""
        about = [self.by, self.short_side, [self.digest(i) for i in range(len(self))]]
        return hashlib.sha256(json.dumps(about).encode()).hexdigest()

    def digest(self, i: int) -> str:
        path = self.paths[i]
        return hashlib.sha256(f"{path.name} {path.stat().st_size}".encode()).hexdigest()

    def measured(self, i: int) -> Length:
        """Frames and seconds, from the header."""
        found = measure(self.paths[i], self.by)
        if found.frames < 1 or not found.seconds > 0:
            raise DataError(f"{self.paths[i]} has no frames, or no duration in its header: copy it again")
        return found

    def length(self, i: int) -> int:
        return self.measured(i).frames

    def frames(self, i: int) -> NDArray[np.uint8]:
        return decode(self.paths[i], short_side=self.short_side, by=self.by)

    def pictures(self, i: int) -> Iterator[NDArray[np.uint8]]:
        empty = True
        for _, picture in frames_in(self.paths[i], None, self.by):
            empty = False
            yield fitted(picture(), self.short_side)
        if empty:
            raise DataError(f"{self.paths[i]} holds no picture that can be decoded: copy it again")
