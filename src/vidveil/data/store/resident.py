"""Videos as tensors on a device.

A small set lies on the accelerator as a whole, frame after frame, so that a batch of clips is one gather. A large one
stays in its file, and each video that is asked for travels through pinned memory. On the CPU a video is a view of the
mapped file, private to the process: writing into it changes neither the file nor anyone else's view.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from vidveil.core.progress import counted
from vidveil.data.clips import Videos
from vidveil.data.store.videos import VideoStore
from vidveil.training.transfer import to_device

SHARE = 0.4  # of the accelerator's free memory that videos may take by themselves: networks need the rest


class Resident:
    """`frames(i)` of any videos as a uint8 tensor (T, H, W, 3) on the device."""

    def __init__(self, videos: Videos, device: torch.device | str, limit_bytes: int | None = None) -> None:
        self.videos = videos
        self.device = torch.device(device)
        self.whole = False
        """Whether all videos are on the device."""
        self._frames: Tensor | None = None
        """On an accelerator: (F, H, W, 3), the frames of all videos. Smaller pictures lie at the left and top."""
        self._flat: Tensor | None = None
        """The bytes of all videos, as in the file: on the CPU, and where padded pictures take too much memory."""
        self._shapes = [tuple(shape) for shape in _shapes(videos)]
        self._first = np.cumsum([0, *(shape[0] for shape in self._shapes)])  # frame of each video
        sizes = [int(np.prod(shape)) for shape in self._shapes]
        self._starts: list[int] = np.cumsum([0, *sizes]).tolist()
        canvas = (
            int(self._first[-1]),
            *(max((shape[axis] for shape in self._shapes), default=0) for axis in (1, 2)),
            3,
        )
        padded, self.bytes = int(np.prod(canvas)), self._starts[-1]
        limit = _room(self.device) if limit_bytes is None else limit_bytes
        if self.device.type == "cpu":
            if isinstance(videos, VideoStore):
                pages = np.memmap(videos.folder / "frames.bin", np.uint8, mode="c")
                self._flat = torch.from_numpy(np.asarray(pages))
                self.whole = True
        elif self.bytes <= limit:
            if padded <= limit:
                self._frames = torch.zeros(canvas, dtype=torch.uint8, device=self.device)
            else:
                self._flat = torch.empty(self.bytes, dtype=torch.uint8, device=self.device)
            for i in counted(range(len(sizes)), f"copying to {self.device}", len(sizes), "videos"):
                self.frames(i).copy_(torch.from_numpy(_own(videos.frames(i))))
            self.whole = True

    def __len__(self) -> int:
        return len(self._shapes)

    def shape(self, i: int) -> tuple[int, ...]:
        """(T, H, W, 3), without touching the pixels."""
        return self._shapes[i]

    def frames(self, i: int) -> Tensor:
        """uint8 (T, H, W, 3) on the device. Not to be written into."""
        if self._frames is not None:
            _, height, width, _ = self._shapes[i]
            return self._frames[self._first[i] : self._first[i + 1], :height, :width]
        if self._flat is not None:
            return self._flat[self._starts[i] : self._starts[i + 1]].view(self._shapes[i])
        video = torch.from_numpy(_own(self.videos.frames(i)))
        if self.device.type == "cuda":
            return video.pin_memory().to(self.device, non_blocking=True)
        return video.to(self.device)

    def clips(self, rows: Sequence[int] | NDArray[np.int64], picks: Sequence[NDArray[np.int64]]) -> Tensor:
        """uint8 (B, P, H, W, 3): `picks` (P,) of the frames of each row. Smaller pictures lie at the left and top."""
        high, wide = (max(self._shapes[row][axis] for row in rows) for axis in (1, 2))
        one_size = all(self._shapes[row][1:3] == (high, wide) for row in rows)
        if self._frames is not None:
            numbers = self._first[np.asarray(rows)][:, None] + np.stack(picks)  # (B, P) of the frames
            return self._frames[to_device(numbers, self.device)][:, :, :high, :wide]
        if self._flat is not None and one_size:
            return torch.stack([_picked(self.frames(i), these) for i, these in zip(rows, picks, strict=True)])
        shape = (len(rows), len(picks[0]), high, wide, 3)
        if self._flat is not None:
            canvas = torch.zeros(shape, dtype=torch.uint8, device=self.device)
            for place, i, these in zip(canvas, rows, picks, strict=True):
                _, height, width, _ = self._shapes[i]
                place[:, :height, :width] = _picked(self.frames(i), these)
            return canvas
        pinned = self.device.type == "cuda"
        batch = torch.zeros(shape, dtype=torch.uint8, pin_memory=pinned)
        for place, i, these in zip(batch, rows, picks, strict=True):
            _, height, width, _ = self._shapes[i]
            read = self.videos.frames(int(i))[these]  # no others of a mapped file
            place.numpy()[:, :height, :width] = read
        return batch.to(self.device, non_blocking=pinned)


def _picked(video: Tensor, picks: NDArray[np.int64]) -> Tensor:
    """A slice where the frames are evenly spaced: no list of numbers has to travel to the device."""
    steps = np.unique(np.diff(picks))
    if len(steps) == 0 or (len(steps) == 1 and steps[0] > 0):
        return video[int(picks[0]) : int(picks[-1]) + 1 : int(steps[0]) if len(steps) else 1]
    return video[to_device(picks, video.device)]


def _shapes(videos: Videos) -> list[tuple[int, ...]]:
    if isinstance(videos, VideoStore):  # noted there: no pixel has to be touched
        return videos.shapes
    return [videos.frames(i).shape for i in range(len(videos))]


def _own(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A copy: torch has no read-only tensors."""
    return np.array(frames, order="C")


def _room(device: torch.device) -> int:
    return int(torch.cuda.mem_get_info(device)[0] * SHARE) if device.type == "cuda" else 0
