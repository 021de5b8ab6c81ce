"""Videos that stay in their files, after a method: anonymized while they are read, never cached as pixels.

    data = anonymized_videos(clips, Setting(method="blur:strong"))     # any set: in files lazily, others by the cache
    for picture in data.videos.pictures(0): ...                        # (H, W, 3) uint8 RGB, one after the other

A method that works frame by frame gets a few frames at a time. Any other gets the whole video, as far as it fits into
`BYTES_AT_ONCE`; a longer one gets it in parts, each as a video by itself. The number of frames never changes, so
annotations stay valid: a method that leaves frames out shows the one before for as long.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from vidveil.core.anonymizer import Anonymizer, Chain, FrameMethod
from vidveil.core.cache import code_of
from vidveil.core.errors import UsageError
from vidveil.core.version import __version__
from vidveil.data.clips import ClipSet
from vidveil.data.video_files import VideoFiles
from vidveil.methods.anonymized_data import (
    BYTES_AT_ONCE,
    Setting,
    anonymized,
    as_json,
    load_setting,
)
from vidveil.methods.masking.baselines import is_pruning_control
from vidveil.methods.painting import pixels_of, tensor_of

FRAMES_AT_ONCE = 32
"""Of a method that works frame by frame."""
CODE = ("methods/*.py", "methods/*/*.py", "core/*.py", "detect/*.py", "models/layers/*.py", "models/recognizers/*.py")
"""Nothing is kept that could be compared with what the method makes today."""
NOISE = 0x015F
Part = NDArray[np.uint8]
"""(T, H, W, 3)"""


class AnonymizedFiles:
    """Implements `Videos` and `FrameStreams`."""

    def __init__(self, files: VideoFiles, setting: Setting, device: str = "cpu") -> None:
        if is_pruning_control(setting.method):
            raise UsageError(f"{setting.method} is a control of clips, and these videos stay in their files")
        self.files, self.setting, self.device = files, setting, device
        self.method = None if setting.method == "noise" else load_setting(setting)

    def __len__(self) -> int:
        return len(self.files)

    @cached_property
    def fingerprint(self) -> str:
        """Of the files' fingerprint, the method and its code."""
        about = {
            **{key: as_json(value) for key, value in asdict(self.setting).items()},
            "weights": self.method.weights if self.method else None,
            "of": self.files.fingerprint,
            "at once": [FRAMES_AT_ONCE, BYTES_AT_ONCE],
            "vidveil": __version__,
            "code": code_of(*CODE),
        }
        return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()

    def digest(self, i: int) -> str:
        return hashlib.sha256(f"{self.fingerprint} {self.files.digest(i)}".encode()).hexdigest()

    def length(self, i: int) -> int:
        return self.files.length(i)

    def frames(self, i: int) -> Part:
        return np.stack(list(self.pictures(i)))

    def pictures(self, i: int) -> Iterator[NDArray[np.uint8]]:
        change = self._noise(i) if self.method is None else self._changed
        for part in _parts(self.files.pictures(i), self.by_frame):
            yield from change(part)

    @property
    def by_frame(self) -> bool:
        """Whether each frame after the method depends on that frame alone; where faces are does not."""
        if self.method is None:
            return True
        stages: Sequence[Anonymizer] = self.method.stages if isinstance(self.method, Chain) else (self.method,)
        return self.setting.region == "frame" and all(isinstance(stage, FrameMethod) for stage in stages)

    def _changed(self, part: Part) -> Part:
        assert self.method is not None
        knobs = {"keep": self.setting.keep, "privacy_weight": self.setting.privacy_weight}
        made = self.method.anonymize(tensor_of(part, self.device), **knobs).video
        found: Part = pixels_of(made[None], part.shape, self.setting.method)[0]
        return found

    def _noise(self, i: int) -> Callable[[Part], Part]:
        rng = np.random.default_rng([NOISE, i])
        return lambda part: rng.integers(0, 256, part.shape, dtype=np.uint8)


def anonymized_videos(data: ClipSet, setting: Setting, *, device: str = "cpu") -> ClipSet:
    """The set after the method: videos that stay in their files while they are read, others by the cache."""
    if not isinstance(data.videos, VideoFiles):
        return anonymized(data, setting, device=device)
    return data.with_videos(AnonymizedFiles(data.videos, setting, device), f"{data.name} after {setting}")


def _parts(pictures: Iterator[NDArray[np.uint8]], by_frame: bool) -> Iterator[Part]:
    """Pictures that are in memory together."""
    held: list[NDArray[np.uint8]] = []
    for picture in pictures:
        held.append(picture)
        most = FRAMES_AT_ONCE if by_frame else max(1, BYTES_AT_ONCE // picture.nbytes)
        if len(held) == most:
            yield np.stack(held)
            held = []
    if held:
        yield np.stack(held)
